"""Stand between a training loop and its data set: note which rows are read, and refuse test rows during fitting."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.context import get_spawning_popen
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import Dataset, IterableDataset

from ..errors import DScoreError, SettingsError, first_line
from ..names import unknown_name
from .leak import Leak, LeakVerdict, make_leak
from .splits import Rows

#: In the order of the marks; ``"outside"`` is whenever neither `fitting` nor `evaluating` runs.
PHASES = ("outside", "fitting", "evaluating")
_OUTSIDE, _FITTING, _EVALUATING = range(3)
# One more row of marks: test rows that were asked for during fitting and not handed out.
_REFUSED = 3


class GuardError(DScoreError):
    """A row was asked for that must not be read now."""

    def __init__(self, message: str) -> None:
        # An error in a worker process reaches the loop with the worker's whole traceback as its message, the sentence
        # itself at the end of it.
        super().__init__(message.rstrip().rsplit(f"{type(self).__name__}: ", 1)[-1])


class DatasetGuard(Dataset[Any]):
    """A map-style data set that notes which of its rows are read in which phase and keeps test rows from the fit.

    Use it in the place of the data set, under ``Subset``, ``random_split``, ``ConcatDataset``, samplers and
    ``DataLoader`` (worker processes too, however they are started), and say what the loop is doing::

        guard = DatasetGuard(dataset, test=test_rows)
        with guard.fitting():
            ...                      # reading a test row raises GuardError
        with guard.evaluating():
            ...                      # any row may be read
        assert guard.verdict().passed

    Outside both, test rows are refused as well, so that no copy of them is made beforehand. One guard goes with one
    model: fit, then evaluate.

    Parameters
    ----------
    dataset
        Map-style data set (or anything else with ``len`` and integer indices), n rows.
    test
        Numbers of the test rows, or a boolean mask of n.
    where
        How a leak names the place.

    Raises
    ------
    SettingsError
        The data set cannot be watched (it is iterable-style or has no length), or `test` is empty, names rows that do
        not exist or leaves none to train on.

    Notes
    -----
    It sees what is read through it, and nothing else. Whoever reads the wrapped data set itself, its tensors or files,
    goes past it; therefore it does not hand on the attributes of the data set. What is noted lies in memory that worker
    processes share; a copy elsewhere (``copy.deepcopy``, joblib) would note for itself, so copying is refused.
    Rows that workers fetch ahead count in the phase in which they are fetched: end an iteration before the phase.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import DataLoader, Subset, TensorDataset
    >>> guard = DatasetGuard(TensorDataset(torch.arange(6.0)), test=[4, 5])
    >>> with guard.fitting():
    ...     batches = [len(batch) for (batch,) in DataLoader(Subset(guard, [0, 1, 2, 3]), batch_size=2)]
    >>> guard.reads("fitting").tolist()
    [0, 1, 2, 3]
    >>> guard.verdict().passed
    True
    """

    def __init__(self, dataset: Any, test: Any, *, where: str = "the data set") -> None:
        rows = _watchable(dataset)
        self._guarded = dataset
        self._where = where
        self._is_test: NDArray[np.bool_] = _test_mask(test, rows)
        # Marks, not counts: several processes may set the same mark at once and none is lost.
        self._marks = _shared(4, rows)
        self._phase = _shared(1)
        self._fitted_after_test = False

    def __len__(self) -> int:
        return int(self._marks.shape[1])

    def __getitem__(self, index: Any) -> Any:
        """Hand out what the data set has at an index (or slice, list, mask), unless it must not be read now."""
        single, rows = _rows_of(index, len(self))
        self._note(rows)
        return self._guarded[int(rows[0]) if single else index]

    def __getitems__(self, indices: Sequence[Any]) -> Any:
        """Hand out a batch at once, as ``DataLoader`` asks for it."""
        rows = np.array([_rows_of(index, len(self))[1][0] for index in indices], dtype=np.intp)
        self._note(rows)
        fetch = getattr(self._guarded, "__getitems__", None)
        return fetch(rows.tolist()) if callable(fetch) else [self._guarded[i] for i in rows.tolist()]

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            raise AttributeError(
                f"a DatasetGuard has no {name!r}: it hands on no attribute of the data set, as what is read there is "
                "not seen; read rows through the guard, or take what is no data before you wrap it."
            )
        raise AttributeError(name)

    def __getstate__(self) -> dict[str, Any]:
        if get_spawning_popen() is None:
            raise GuardError(
                "a DatasetGuard cannot be copied or sent to another process, for the copy would note its reads for "
                "itself: make a guard where the loop runs (DataLoader workers are fine)."
            )
        return self.__dict__.copy()

    @contextmanager
    def fitting(self) -> Iterator[None]:
        """Phase in which test rows are refused: training, and whatever steers it (early stopping, scaling).

        Raises
        ------
        GuardError
            Another phase runs.
        """
        # Whoever fits on after looking at test rows may let them steer: nobody can tell by the reads alone.
        self._fitted_after_test |= bool(self._read(_EVALUATING)[self._is_test].any())
        with self._during(_FITTING):
            yield

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Phase in which any row may be read.

        Raises
        ------
        GuardError
            Another phase runs.
        """
        with self._during(_EVALUATING):
            yield

    def reads(self, phase: str) -> Rows:
        """Rows that were handed out in a phase, in ascending order.

        Parameters
        ----------
        phase
            ``"fitting"``, ``"evaluating"`` or ``"outside"``.

        Raises
        ------
        SettingsError
            There is no such phase.
        """
        if phase not in PHASES:
            raise SettingsError(f"{unknown_name('phase', phase, PHASES)}.")
        return np.flatnonzero(self._read(PHASES.index(phase)))

    def verdict(self) -> LeakVerdict:
        """Say whether test rows reached the fit.

        Returns
        -------
        LeakVerdict
            An ``"overlap"`` leak where test rows were asked for during fitting, also where the loop went on after the
            refusal. Undecided, which is no pass, where nothing was read during fitting or where fitting went on after
            test rows had been evaluated. ``runs`` is 0: nothing is run here.
        """
        refused = np.flatnonzero(self._read(_REFUSED))
        if len(refused):
            evidence = f"{len(refused)} test rows were asked for during fitting (rows {_some(refused)})"
            return LeakVerdict((make_leak("overlap", self._where, evidence),), False, "", 0)
        seen = self._read(_EVALUATING)[self._is_test].any()
        notes = () if seen else ("no test row was read in evaluating(): are these the rows that the result is for?",)
        return LeakVerdict((), bool(self._doubt()), self._doubt(), 0, notes)

    def leaks(self) -> tuple[Leak, ...]:
        """The leaks of `verdict`; empty is a pass.

        Raises
        ------
        GuardError
            It cannot be told.
        """
        found = self.verdict()
        if found.undecided:
            raise GuardError(f"cannot tell whether {self._where} leaks: {found.reason}.")
        return found.leaks

    def _doubt(self) -> str:
        if not self._read(_FITTING).any():
            return (
                "no row was read through the guard in fitting(), so the loop got its rows elsewhere or never ran: give "
                "it the guard in the place of the data set"
            )
        if self._fitted_after_test:
            return (
                "fitting() began again after test rows had been read in evaluating(), so they may have steered it: "
                "evaluate once, at the end, with a guard for each model, or ask probe_leaks"
            )
        return ""

    def _read(self, marks: int) -> NDArray[np.bool_]:
        return np.asarray(self._marks[marks].numpy() > 0)

    @contextmanager
    def _during(self, phase: int) -> Iterator[None]:
        now = int(self._phase[0])
        if now != _OUTSIDE:
            raise GuardError(f"{PHASES[phase]}() was entered inside {PHASES[now]}(): end the one before the other.")
        self._phase[0] = phase
        try:
            yield
        finally:
            self._phase[0] = _OUTSIDE

    def _note(self, rows: Rows) -> None:
        phase = int(self._phase[0])
        tested = rows[self._is_test[rows]]
        if len(tested) and phase != _EVALUATING:
            if phase == _FITTING:
                self._marks[_REFUSED, torch.from_numpy(tested)] = 1
                raise GuardError(
                    f"test row {tested[0]} of {self._where} was asked for during fitting: fit, scale and stop on "
                    "training rows only."
                )
            raise GuardError(
                f"test row {tested[0]} of {self._where} was asked for outside fitting() and evaluating(): read test "
                "rows in `with guard.evaluating():`."
            )
        self._marks[phase, torch.from_numpy(rows)] = 1


def _shared(*shape: int) -> torch.Tensor:
    """Zeros that worker processes and this one share."""
    memory: Any = torch.zeros(*shape, dtype=torch.uint8)
    return memory.share_memory_()  # type: ignore[no-any-return]


def _watchable(dataset: Any) -> int:
    """Count the rows of a data set that can be watched.

    Raises
    ------
    SettingsError
        It cannot.
    """
    kind = type(dataset).__name__
    if isinstance(dataset, IterableDataset):
        raise SettingsError(
            f"{kind} is an IterableDataset, whose rows have no numbers, so nobody can see which are read: use a "
            "map-style data set, or probe_leaks on the loop."
        )
    if isinstance(dataset, type) or not hasattr(dataset, "__getitem__"):
        raise SettingsError(f"{dataset!r} is no data set: pass one with __getitem__ and __len__.")
    try:
        rows = len(dataset)
    except Exception as error:
        raise SettingsError(
            f"{kind} has no length ({first_line(error)}), so its rows cannot be numbered: give it a __len__."
        ) from error
    return rows


def _test_mask(test: Any, rows: int) -> NDArray[np.bool_]:
    """Test rows as a mask, shape (rows,).

    Raises
    ------
    SettingsError
        They are none or all, or are no rows.
    """
    given = np.asarray(test)
    if given.dtype == bool and given.shape == (rows,):
        given = np.flatnonzero(given)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise SettingsError(f"test must be a list of row numbers or a mask of {rows}, not {_short(test)}.")
    given = given.astype(np.intp)
    outside = given[(given < 0) | (given >= rows)]
    if len(outside):
        raise SettingsError(f"test names row {outside[0]}, but the data set has rows 0..{rows - 1}.")
    mask = np.zeros(rows, dtype=bool)
    mask[given] = True
    if not mask.any() or mask.all():
        what = "every row, so none is left to train on" if mask.any() else "no row, so there is nothing to guard"
        raise SettingsError(f"test names {what}: pass the numbers of the test rows.")
    return mask


def _rows_of(index: Any, length: int) -> tuple[bool, Rows]:
    """Whether an index names one row, and the rows that it names, counted from the front.

    Raises
    ------
    IndexError
        A row does not exist, as for a list.
    GuardError
        The rows that it stands for cannot be known.
    """
    if isinstance(index, slice):
        return False, np.arange(length)[index]
    many = isinstance(index, (list, tuple, np.ndarray, torch.Tensor)) and np.ndim(index) > 0
    if many:
        rows = np.asarray(index)
        if rows.dtype == bool and rows.shape == (length,):
            return False, np.flatnonzero(rows)
        if rows.ndim != 1 or isinstance(index, tuple) or (rows.size and rows.dtype.kind not in "iu"):
            raise GuardError(_unknown(index))
        return False, _counted(rows.astype(np.intp), length)
    try:
        if isinstance(index, (bool, np.bool_)):
            raise TypeError("a truth value is no row")
        row = operator.index(index)
    except TypeError:
        raise GuardError(_unknown(index)) from None
    return True, _counted(np.array([row], dtype=np.intp), length)


def _counted(rows: Rows, length: int) -> Rows:
    outside = rows[(rows < -length) | (rows >= length)]
    if len(outside):
        raise IndexError(f"row {outside[0]} of a data set of {length} rows")
    return np.where(rows < 0, rows + length, rows)


def _unknown(index: Any) -> str:
    return f"a DatasetGuard cannot tell which rows the index {_short(index)} stands for: use row numbers."


def _short(value: Any) -> str:
    text = repr(value).replace("\n", " ")
    return text if len(text) <= 60 else f"{text[:57]}..."


def _some(rows: Rows) -> str:
    return ", ".join(str(row) for row in rows[:5]) + (", ..." if len(rows) > 5 else "")
