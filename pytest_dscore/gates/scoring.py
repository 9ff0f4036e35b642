"""Each model is loaded, measured and summarised once per run, whoever asks: items, fixtures, xdist workers."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import metadata
from pathlib import Path

import filelock
import torch
from torch import nn

from pytest_dscore import __version__
from pytest_dscore import score as score_package
from pytest_dscore.errors import DScoreError
from pytest_dscore.gates import store
from pytest_dscore.gates.fingerprint import model_fingerprint, operator_fingerprint
from pytest_dscore.gates.loading import load_data, load_model
from pytest_dscore.gates.references import describe, importable
from pytest_dscore.gates.store import Cache, Measured
from pytest_dscore.score.api import make_plan
from pytest_dscore.score.engine import Hits, Plan, Progress, measure
from pytest_dscore.score.examples import Examples
from pytest_dscore.score.exhibit import Exhibit, make_exhibit
from pytest_dscore.score.guard import choose_device, random_states_kept
from pytest_dscore.score.operators import OPERATORS, Operator
from pytest_dscore.score.result import DScore, Recipe, summarise
from pytest_dscore.score.shifts import INTERPOLATION, fill_remarks
from pytest_dscore.settings import GATES, ModelSettings

#: A bar for the work on one model; entering it gives the engine's progress callback, or None.
ProgressBar = Callable[[str], AbstractContextManager[Progress | None]]

_SUMMARY_KEYS = {"form", "bootstrap", "confidence", "max_drop", "strict", "inconclusive", *GATES}


@functools.cache
def versions() -> dict[str, str]:
    """What a score depends on besides model, data and settings."""
    return {
        "pytest-dscore": __version__,
        **{name: metadata.version(name) for name in ("torch", "torchvision", "numpy")},
        "interpolation": INTERPOLATION,
    }


class Scorer:
    """Scores models on demand and remembers.

    Parameters
    ----------
    root
        pytest's rootdir: paths and imports start there.
    cache
        By content, across runs.
    shared
        Directory that the xdist workers of this run share; None in a run of one process.
    threads
        Threads that torch may use; None to leave its own choice.
    operators
        Mutation operators of other plugins.
    bar
        Progress display.
    """

    def __init__(
        self,
        root: Path,
        cache: Cache,
        shared: Path | None = None,
        threads: int | None = None,
        operators: Mapping[str, Operator] | None = None,
        bar: ProgressBar = lambda name: nullcontext(),
    ) -> None:
        self._root = root
        self._cache = cache
        self._shared = shared
        self._threads = threads
        self._operators = {**OPERATORS, **(operators or {})}
        self._bar = bar
        self._measured: dict[str, Measured | DScoreError] = {}
        self._results: dict[str, DScore] = {}
        self._kept: dict[str, str] = {}
        self._subject: tuple[tuple[str, ...], nn.Module, Examples] | None = None

    def score(self, name: str, settings: ModelSettings) -> tuple[DScore, Measured]:
        """The result for one model under these settings.

        Raises
        ------
        DScoreError
            The model or its data cannot be loaded or scored; raised again for every gate that asks.
        """
        key = _measured_key(name, settings)
        if key not in self._measured:
            self._measured[key] = self._measure_once(key, name, settings)
        measured = self._measured[key]
        if isinstance(measured, DScoreError):
            raise measured
        result_key = _digest(key, settings.model_dump_json(include={"form", "bootstrap", "confidence"}))
        if result_key not in self._results:
            self._results[result_key] = _summarise(measured, settings)
        return self._results[result_key], measured

    def forget(self, name: str, settings: ModelSettings) -> None:
        """Keep nothing of a score that must not be seen."""
        if kept := self._kept.pop(_measured_key(name, settings), None):
            self._cache.drop(kept)

    def _measure_once(self, key: str, name: str, settings: ModelSettings) -> Measured | DScoreError:
        if self._shared is None:
            return self._attempt(name, settings)
        path = self._shared / f"{key}.npz"
        refusal = path.with_suffix(".txt")
        # The first worker measures, the others wait for what it found.
        with filelock.FileLock(path.with_suffix(".lock")):
            if refusal.exists():
                return DScoreError(refusal.read_text(encoding="utf-8"))
            outcome: Measured | DScoreError = store.load(path) or self._attempt(name, settings)
            if isinstance(outcome, DScoreError):
                refusal.write_text(str(outcome), encoding="utf-8", errors="backslashreplace")
            elif not path.exists():
                store.save(path, outcome, pictures=True)
        return outcome

    def _attempt(self, name: str, settings: ModelSettings) -> Measured | DScoreError:
        try:
            with importable(self._root), random_states_kept(), _thread_limit(self._threads):
                return self._load_and_measure(name, settings)
        except DScoreError as error:
            return error
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever a user's model or data raises is a failed gate
            return DScoreError(f"scoring raised {describe(error)}")

    def _load_and_measure(self, name: str, settings: ModelSettings) -> Measured:
        model, examples = self._load(settings)
        s = settings
        plan = make_plan(examples, s.n, s.operator, s.pad, s.fill, s.batch_size, s.seed, s.bf16, self._operators)
        prints = model_fingerprint(model, s.factory, self._root), examples.fingerprint()
        operator = operator_fingerprint(plan.operator)
        fill = tuple(float(value) for value in plan.fill)
        key = _digest(
            *prints,
            operator,
            json.dumps([s.n, plan.padding, s.fill, fill, s.batch_size, s.seed, s.bf16]),
            str(choose_device(s.device, model)),
            json.dumps(versions()),
            _engine_code(),
        )
        self._kept[_measured_key(name, settings)] = key
        if (kept := self._cache.get(key)) is not None:
            return kept
        with self._bar(name) as progress:
            hits = measure(model, examples, plan, s.device, progress)
        measured = Measured(
            hits,
            plan.padding,
            fill,
            *prints,
            remarks=fill_remarks(s.fill, examples.images),
            exhibit=_exhibit(model, examples, plan, s.device, hits),
        )
        self._cache.put(key, measured)
        return measured

    def _load(self, settings: ModelSettings) -> tuple[nn.Module, Examples]:
        origin = (settings.factory, settings.weights or "", settings.data)
        if self._subject is None or self._subject[0] != origin:
            # Let go of the model before this one first: two data sets need not fit into memory.
            self._subject = None
            self._subject = (origin, load_model(settings, self._root), load_data(settings))
        return self._subject[1:]


def _measured_key(name: str, settings: ModelSettings) -> str:
    return _digest(name, settings.model_dump_json(exclude=_SUMMARY_KEYS))


def _summarise(measured: Measured, settings: ModelSettings) -> DScore:
    s = settings
    recipe = Recipe(
        n=s.n,
        operator=s.operator,
        form=s.form,
        padding=measured.padding,
        fill=measured.fill,
        bf16=s.bf16,
        replicates=s.bootstrap,
        confidence=s.confidence,
        seed=s.seed,
        remarks=measured.remarks,
    )
    return summarise(measured.hits, recipe)


def _exhibit(model: nn.Module, examples: Examples, plan: Plan, device: str, hits: Hits) -> Exhibit | None:
    try:
        return make_exhibit(model, examples, plan, device, hits)
    except Exception:  # noqa: BLE001 - pictures explain a verdict, and must not change it
        return None


@contextmanager
def _thread_limit(threads: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    if threads is not None:
        torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _engine_code() -> str:
    """Digest of this package's own scoring code: a checkout changes without its version changing."""
    files = sorted(Path(score_package.__path__[0]).glob("*.py"))
    return _digest(*(file.read_text(encoding="utf-8") for file in files))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
