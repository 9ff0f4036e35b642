"""Catch a leaking protocol from outside, by what information flows: poison, non-interference, determinism first."""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SettingsError
from .duplicates import check_data, overlap_leaks
from .inputs import check_int, explain_failure, n_rows, take_rows
from .interfere import Finding, halves, interfere, poison
from .leak import Leak, LeakVerdict, make_leak
from .nested import as_data
from .parallel import Progress, Tally
from .perturb import change_labels, is_numeric_target, replace_features
from .runner import Predictions, Runner, as_callable, moved
from .splits import Fold, Rows, all_pairs, as_fold, make_splitter
from .watch import FitCall, culprit, watch_fits


def probe_leaks(
    protocol: Any,
    X: Any,
    y: Any,
    splits: Any,
    seed: int = 0,
    *,
    groups: Any = None,
    time: Any = None,
    max_runs: int = 10,
    progress: Progress | None = None,
) -> LeakVerdict:
    """Look for leaks in an evaluation protocol, whoever wrote it, by changing what it must not use.

    The data comes first (rows, copies, groups and times on both sides of a split). Then the protocol is run on one
    split, with the labels of the test rows changed, which must change no prediction; and with half of the test rows
    replaced, which must not change the predictions for the other half.

    Parameters
    ----------
    protocol
        Callable ``(X, y, train, test, seed) -> predictions on test``, or an estimator or search object, which is fitted
        on the training rows.
    X, y
        n rows: array (tables or images), sparse matrix, pandas or polars frame; n labels.
    splits
        List of (train rows, test rows), splitter, or number of folds. The split with the largest test part is probed.
    seed
        Integer >= 0; given to the protocol, and seeds the perturbations.
    groups, time
        One group, one time per row: looked at in every split.
    max_runs
        Most runs of the protocol, at least 6; ``runs`` of the verdict says how many there were.
    progress
        Called with (runs done, most runs) after each run, and with as many as there were at the end.

    Returns
    -------
    LeakVerdict
        ``undecided`` where the protocol disagrees with itself or could not be probed; that is never a pass. Beside what
        the splits show, one leak is named at a time: mend it and probe again.

    Raises
    ------
    SettingsError
        The input cannot be used, or the protocol returns the wrong number of predictions.

    Notes
    -----
    torch's global generators, from which layers draw their first weights, are set from `seed` before every run and put
    back afterwards; other generators are the protocol's own business.

    References
    ----------
    Non-interference: Goguen and Meseguer 1982, Security policies and security models.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3)) * [1, 10, 100]
    >>> y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    >>> def scales_everything(X, y, train, test, seed):
    ...     Z = StandardScaler().fit_transform(X)
    ...     return KNeighborsClassifier(3).fit(Z[train], y[train]).predict(Z[test])
    >>> [leak.kind for leak in probe_leaks(scales_everything, X, y, 3).leaks]
    ['preprocessing']
    """
    check_int(seed, "seed", 0)
    check_int(max_runs, "max_runs", 6)
    X, labels, group_array = as_data(X, y, groups)
    times = None if time is None else np.asarray(time)
    if times is not None and len(times) != n_rows(X):
        raise SettingsError(f"time has {len(times)} entries but X has {n_rows(X)} rows: pass one time per row.")
    folds = as_folds(splits, X, labels, group_array, seed)
    found = data_leaks(X, folds, group_array, times)
    runner = Runner(as_callable(protocol), X, labels, seed, max_runs, Tally(progress, max_runs))
    number = int(np.argmax([len(np.setdiff1d(test, train)) / max(len(train), 1) for train, test in folds]))
    if len(np.setdiff1d(folds[number][1], folds[number][0])) < 2:
        reason = "no split has two test rows that are not training rows: larger test parts are needed"
        return LeakVerdict(found, not found, "" if found else reason, 0)
    leak, reason = _probe_split(runner, folds, number, group_array)
    runner.tally.total = runner.runs
    runner.tally.add(0)
    leaks = found if leak is None else (*found, leak)
    undecided = bool(reason) and not leaks
    return LeakVerdict(leaks, undecided, reason if undecided else "", runner.runs, tuple(runner.notes))


def data_leaks(
    X: Any, folds: list[Fold], groups: NDArray[Any] | None = None, times: NDArray[Any] | None = None
) -> tuple[Leak, ...]:
    """Leaks that the splits themselves show; of each kind the first split that has it.

    Parameters
    ----------
    X
        n rows. Near copies are looked for among images only: tables may be close for good reason.
    folds
        List of (train rows, test rows).
    groups, times
        One per row, or None.
    """
    leaks: dict[str, Leak] = {}
    for number, (train, test) in enumerate(folds):
        where = f"split {number}"
        apart = np.setdiff1d(test, train)
        found = overlap_leaks(train, test, where)
        if len(apart):
            pair = None if groups is None else (groups[train], groups[apart])
            clock = None if times is None else (times[train], times[apart])
            near = getattr(X, "ndim", 2) > 2
            parts = take_rows(X, train), take_rows(X, apart)
            found += check_data(*parts, groups=pair, time=clock, near=near, where=where)
        for leak in found:
            leaks.setdefault(leak.kind, leak)
    return tuple(leaks.values())


def _probe_split(runner: Runner, folds: list[Fold], number: int, groups: Any) -> tuple[Leak | None, str]:
    """Probe one split: the leak found, if any, and why nothing can be said, if so."""
    split, base = _start(runner, folds[number], groups)
    where = f"split {number}" if len(split[1]) == len(folds[number][1]) else f"split {number}, its test part widened"
    clean = np.flatnonzero(~np.isin(split[1], split[0]))
    with watch_fits(runner.X, *split) as calls:
        again = runner(split)
    if moved(base, again).any():
        count = int(moved(base, again).sum())
        return None, (
            f"the protocol disagrees with itself: run twice with seed {runner.seed}, {count} of {len(base)} "
            "predictions differ: fix the seed"
        )
    watched = any(call.role == "watched" for call in calls)
    finding, blind = interfere(runner, split, base, clean, watched)
    if finding is None:
        poison(runner, split, base, clean)
        seen = culprit(calls)
        if seen is not None:
            # Not a leak: a model may be refitted on all rows for use, and not be the one that predicts here.
            runner.notes.append(f"{seen[1]}, though no prediction moved")
        return None, blind
    kind, evidence = _name(runner, split, base, clean, finding, calls)
    flattery, rows = _flattery(runner, folds, number, finding)
    if np.isfinite(flattery):
        gain = f"flatters the error by {flattery:.1f} points" if flattery > 0 else "does not flatter the error"
        evidence += f"; it {gain} on {rows} test rows"
    return make_leak(kind, where, evidence, flattery), ""


def _start(runner: Runner, split: Fold, groups: Any) -> tuple[Fold, Predictions]:
    """Predictions of the unchanged protocol, on the widened split if the protocol takes it."""
    wide = widened(split, runner.y, groups, runner.seed)
    if wide is not None:
        found = runner.attempt("a split with a wider test part", wide)
        if found is not None:
            return wide, found
    try:
        return split, runner(split)
    except Exception as error:
        clear = explain_failure(error, runner.X)
        if clear is error:
            raise
        raise clear from error


def widened(split: Fold, y: NDArray[Any], groups: NDArray[Any] | None, seed: int) -> Fold | None:
    """Split whose test part is one half of the rows: the larger it is, the more a change of it moves what leaks.

    A tenth of the rows would often not turn a choice that was made on all of them. Rows are moved from the training to
    the test part by class; whole groups where there are groups; the last ones where training comes before testing.

    Parameters
    ----------
    split
        (train rows, test rows).
    y, groups
        One per row of the data.
    seed
        Seed of the choice.

    Returns
    -------
    (train rows, test rows) or None
        None where the test part is large enough already or cannot be made so.
    """
    train, test = split
    keep = (len(train) + len(test)) // 2
    if keep >= len(train) or keep < 4:
        return None
    if train.max() < test.min():
        kept = np.sort(train)[:keep]
    else:
        order = np.random.default_rng(seed).permutation(train)
        if groups is not None:
            # Whole groups in random order, until there are enough rows.
            first = {group: i for i, group in reversed(list(enumerate(groups[order])))}
            rank = np.array([first[group] for group in groups[order]])
            kept = order[np.argsort(rank, kind="stable")][:keep]
            kept = kept[groups[kept] != groups[kept[-1]]]
        elif is_numeric_target(y):
            kept = order[:keep]
        else:
            # Every class in its proportion: rows by their place within their class.
            place = np.zeros(len(order))
            for label in np.unique(y[order]):
                own = y[order] == label
                place[own] = (np.arange(own.sum()) + 0.5) / own.sum()
            kept = order[np.argsort(place, kind="stable")][:keep]
    if len(kept) < 2 or (not is_numeric_target(y) and len(np.unique(y[kept])) < len(np.unique(y[train]))):
        return None
    kept = train[np.isin(train, kept)]
    return kept, np.concatenate([test, train[~np.isin(train, kept)]])


def _name(
    runner: Runner, split: Fold, base: Predictions, clean: Rows, finding: Finding, calls: list[FitCall]
) -> tuple[str, str]:
    """Name the leak and give the evidence; the calls seen say how, where they say anything."""
    guess = culprit(calls)
    if guess is not None and (finding.channel == "features" or guess[0] != "preprocessing"):
        return guess[0], f"{finding.text}; {guess[1]}"
    watched = [str(call) for call in calls if call.role == "watched"]
    if finding.channel == "features":
        if watched and _same_training(runner, split, finding, calls):
            return "early-stopping", f"{finding.text}; {watched[0]}"
        return "preprocessing", finding.text
    if guess is not None and guess[1].role == "network":
        # Labels matter, and the module that was trained on test rows is not the last one: it served to choose.
        return "selection", f"{finding.text}; {guess[1]}"
    if finding.channel == "both":
        return ("early-stopping", f"{finding.text}; {watched[0]}") if watched else ("selection", finding.text)
    if _only_through_argument(runner, split, base, clean):
        return "early-stopping", f"{finding.text}, and only the rows that are passed as test rows matter"
    return "labels", finding.text


def _same_training(runner: Runner, split: Fold, finding: Finding, calls: list[FitCall]) -> bool:
    """Whether modules are trained on the very same values still, once the features of test rows are changed.

    So it is where an epoch is chosen by the loss on the test rows; a scaler fitted on them changes the training rows.
    """
    if not runner.left:
        return False
    with watch_fits(finding.X, *split) as after:
        found = runner.attempt("the same again, watched", split, finding.X)
    return found is not None and _trained_on(calls) == _trained_on(after)


def _trained_on(calls: list[FitCall]) -> set[bytes]:
    return {key for call in calls for key in call.keys}


def _only_through_argument(runner: Runner, split: Fold, base: Predictions, clean: Rows) -> bool:
    """Whether labels leak only from rows that the protocol is told to test on.

    One half of the test rows is left out of the ``test`` argument and its labels are flipped; then the other half. Who
    encodes or tunes on all of the data is moved by them still; who watches the test error during training is not.
    """
    if len(clean) < 4:
        return False
    for unnamed, named in (halves(clean, runner.seed), halves(clean, runner.seed)[::-1]):
        if runner.left < 2:
            return False
        short = (split[0], split[1][named])
        labels = change_labels(runner.y, split[1][unnamed], split[0], "flipped", runner.seed, base[unnamed])
        told = runner.attempt("flipped labels of rows that are not tested", short, y=labels)
        if told is None:
            return False
        if not moved(base[named], told).any():
            continue
        # Fewer test rows may change what is chosen, without any flow from the others.
        plain = runner.attempt("fewer test rows", short)
        if plain is None or moved(plain, told).any():
            return False
    return True


def _flattery(runner: Runner, folds: list[Fold], number: int, finding: Finding) -> tuple[float, int]:
    """Percentage points by which the error rate looks better than where the leak carries no information.

    The test rows of the splits as given are judged by their true labels, once as the protocol predicts them and once as
    it does when the test labels it sees are permuted (or half of the rows are copies of training rows), for as many
    splits as the budget of runs allows.
    """
    gains: list[NDArray[np.float64]] = []
    for i in [number] + [i for i in range(len(folds)) if i != number]:
        train, test = folds[i]
        own = np.flatnonzero(~np.isin(test, train))
        if runner.left < 2 or is_numeric_target(runner.y):
            break
        seen = runner.attempt("another split", folds[i])
        if seen is None or seen.ndim != 1 or not np.isin(seen, runner.y).all():
            break
        honest, judged = _without(runner, folds[i], own, finding)
        if honest is None or len(judged) == 0:
            continue
        truth = runner.y[test[judged]]
        gains.append((honest[judged] != truth).astype(float) - (seen[judged] != truth).astype(float))
    every = np.concatenate(gains) if gains else np.array([])
    return (100 * float(every.mean()), len(every)) if len(every) else (float("nan"), 0)


def _without(runner: Runner, split: Fold, clean: Rows, finding: Finding) -> tuple[Predictions | None, Rows]:
    """Predictions where the leak carries nothing, and the test rows on which to compare them."""
    if finding.channel == "features":
        changed, kept = halves(clean, runner.seed)
        data = replace_features(runner.X, split[1][changed], split[0], "resampled", runner.seed)[0]
        return runner.attempt("resampled test rows", split, X=data), kept
    labels = change_labels(runner.y, split[1][clean], split[0], "permuted", runner.seed, runner.y[split[1][clean]])
    return runner.attempt("permuted test labels", split, y=labels), clean


def as_folds(splits: Any, X: Any, y: NDArray[Any], groups: Any, seed: int) -> list[Fold]:
    """Splits as a list of (train rows, test rows); rows on both sides are allowed here, as they are to be found.

    Parameters
    ----------
    splits
        List of (train rows, test rows), splitter, or number of folds.
    X, y, groups
        The data, n rows.
    seed
        Seed of the folds where only their number is given.

    Raises
    ------
    SettingsError
        There is no split, a part is empty, or a row does not exist.
    """
    splitter = make_splitter(splits, "splits", not is_numeric_target(y), groups, seed)
    name = type(splitter).__name__ if hasattr(splitter, "split") else "splits"
    folds = [as_fold(pair, name, i) for i, pair in enumerate(all_pairs(splitter, X, y, groups))]
    if not folds:
        raise SettingsError(f"{name} yields no split: pass at least one (train, test) pair.")
    for i, (train, test) in enumerate(folds):
        if not len(train) or not len(test):
            raise SettingsError(f"{name} fold {i}: the {'test' if len(train) else 'training'} part is empty.")
        if min(train.min(), test.min()) < 0 or max(train.max(), test.max()) >= len(y):
            raise SettingsError(f"{name} fold {i} names a row outside 0..{len(y) - 1}.")
    return folds
