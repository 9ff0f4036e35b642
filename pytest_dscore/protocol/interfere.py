"""Non-interference: change what a protocol must not use, and see whether a prediction moves."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .perturb import change_labels, replace_features
from .runner import Predictions, Runner, moved
from .splits import Fold, Rows


@dataclass(frozen=True, eq=False)
class Finding:
    """A prediction that moved.

    Parameters
    ----------
    channel
        ``"labels"`` or ``"features"`` of test rows alone suffice, or ``"both"`` are needed.
    text
        What was changed and how many predictions moved.
    X
        The changed features; None where labels alone were changed.
    """

    channel: str
    text: str
    X: Any


@dataclass(frozen=True, eq=False)
class _Step:
    """Changed features and labels (None: unchanged) and the positions of the test rows whose predictions must stay."""

    what: str
    X: Any
    y: NDArray[Any] | None
    kept: Rows


def interfere(
    runner: Runner, split: Fold, base: Predictions, clean: Rows, watched: bool = False
) -> tuple[Finding | None, str]:
    """Change labels, then half of the rows, then both; stop at the first prediction that moves.

    Parameters
    ----------
    runner
        Runs the protocol; at most eight runs are used, two more where something is found.
    split
        (train rows, test rows).
    base
        Predictions of the unchanged protocol, one per test row.
    clean
        Positions among the test rows of those that are not training rows too.
    watched
        Whether test rows were seen to go through a model during its training; one more change is tried then.

    Returns
    -------
    finding or None, reason why nothing can be said (empty where something can)
    """
    tried = {"labels": 0, "features": 0}
    for step in _steps(runner, split, base, clean, watched):
        if not runner.left:
            break
        found = runner.attempt(step.what, split, step.X, step.y)
        if found is None:
            continue
        tried["labels"] += step.y is not None
        tried["features"] += step.X is not None
        count = int(moved(base, found)[step.kept].sum())
        if count:
            others = "predictions" if step.X is None else "other predictions"
            text = f"with {step.what} {count} of {len(step.kept)} {others} change"
            return Finding(_channel(runner, split, base, step), text, step.X), ""
    blind = [name for name, count in tried.items() if not count]
    if blind:
        first = runner.notes[0] if runner.notes else "no run was left"
        return None, f"the protocol could not be run with changed {' and '.join(blind)} of test rows ({first})"
    return None, ""


def _steps(runner: Runner, split: Fold, base: Predictions, clean: Rows, watched: bool) -> Iterator[_Step]:
    train, test = split
    changed, kept = halves(clean, runner.seed)

    def labels(how: str, rows: Rows = clean) -> NDArray[Any]:
        return change_labels(runner.y, test[rows], train, how, runner.seed, base[rows])

    def features(how: str) -> tuple[Any, Rows]:
        return replace_features(runner.X, test[changed], train, how, runner.seed)

    everyone = np.arange(len(test))
    yield _Step("flipped test labels", None, labels("flipped"), everyone)
    yield _Step("permuted test labels", None, labels("permuted"), everyone)
    yield _Step("half of the test rows made outliers", features("outliers")[0], None, kept)
    yield _Step("half of the test rows shifted", features("shifted")[0], None, kept)
    yield _Step("half of the test rows and all test labels constant", features("constant")[0], labels("constant"), kept)
    # Whoever tunes on these is turned to one extreme: single copies of training rows with the wrong label are noise, so
    # rigid models look best; small islands of equal rows against their surroundings can only be had by flexible ones.
    for how, what in (("resampled", "contradicting the training rows"), ("islands", "made islands of the wrong label")):
        X, source = features(how)
        y = labels("flipped")
        y[test[changed]] = runner.y[source]
        y = change_labels(y, test[changed], train, "flipped", runner.seed, y[test[changed]])
        yield _Step(f"half of the test rows {what}", X, y, kept)
    if watched:
        # What came before makes a training that stops on test rows stop early; here it goes on as long as it can.
        X, source = features("resampled")
        y = runner.y.copy()
        y[test[changed]] = runner.y[source]
        yield _Step("half of the test rows made copies of training rows", X, y, kept)


def _channel(runner: Runner, split: Fold, base: Predictions, step: _Step) -> str:
    """Whether features or labels alone would have done it; costs a run where both were changed."""
    if step.X is None:
        return "labels"
    if step.y is None:
        return "features"
    for channel, X, y in (("features", step.X, None), ("labels", None, step.y)):
        found = runner.attempt(f"{channel} of these alone", split, X, y) if runner.left else None
        if found is not None and moved(base, found)[step.kept].any():
            return channel
    return "both"


def poison(runner: Runner, split: Fold, base: Predictions, clean: Rows) -> None:
    """Impossible labels on the test rows and NaN in half of them.

    A protocol that raises or changes has read them. That is noted; it is no leak yet, for reading (to log a test score,
    to scale each row by its own norm) is not using.
    """
    if not runner.left:
        return
    changed, kept = halves(clean, runner.seed)
    how = "permuted" if _uses_cuda() else "impossible"
    labels = change_labels(runner.y, split[1][clean], split[0], how, runner.seed, base[clean])
    data = replace_features(runner.X, split[1][changed], split[0], "missing", runner.seed)[0]
    found = runner.attempt("poisoned test rows (NaN, impossible labels)", split, X=data, y=labels)
    if found is not None and moved(base, found)[kept].any():
        runner.notes.append("poisoned test rows (NaN, impossible labels): other predictions change")


def _uses_cuda() -> bool:
    """Whether this process works on a GPU: there a label out of range ends not the run but the use of the GPU."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_initialized())


def halves(clean: Rows, seed: int) -> tuple[Rows, Rows]:
    """Two random halves of the positions: those to change and those to watch."""
    order = np.random.default_rng(seed).permutation(clean)
    middle = len(order) // 2
    return np.sort(order[:middle]), np.sort(order[middle:])
