"""The guard round a data set: what is read when and what is refused, in this process and in workers."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,type-arg"
from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    random_split,
)

from pytest_dscore.errors import DScoreError
from pytest_dscore.protocol import DatasetGuard, GuardError

ROWS = 24
TEST = [3, 7, 11, 20, 21, 22, 23]
TRAIN = [i for i in range(ROWS) if i not in TEST]
DATA = TensorDataset(torch.arange(float(ROWS)).reshape(-1, 1), torch.arange(ROWS) % 2)


class Squares(Dataset):
    """A data set of its own kind, without batched fetching; workers that are spawned can import it."""

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> int:
        if not 0 <= index < ROWS:
            raise IndexError(index)
        return index**2


class Batched(Squares):
    """Notes how it is asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def __getitems__(self, indices: list[int]) -> list[int]:
        self.asked.append(indices)
        return [i**2 for i in indices]


@pytest.fixture
def guard() -> DatasetGuard:
    return DatasetGuard(DATA, TEST, where="fold 0")


def drain(loader: DataLoader) -> int:
    return sum(len(batch[0] if isinstance(batch, (list, tuple)) else batch) for batch in loader)


def test_a_clean_loop_passes_and_every_read_is_known(guard: DatasetGuard) -> None:
    with guard.fitting():
        assert drain(DataLoader(Subset(guard, TRAIN[:10]), batch_size=4, shuffle=True)) == 10
    with guard.evaluating():
        assert drain(DataLoader(Subset(guard, TEST), batch_size=3)) == len(TEST)
    assert guard[0][0] == 0
    assert guard.reads("fitting").tolist() == TRAIN[:10]
    assert guard.reads("evaluating").tolist() == TEST
    assert guard.reads("outside").tolist() == [0]
    assert guard.leaks() == ()
    verdict = guard.verdict()
    assert verdict.passed
    assert verdict.notes == ()


def test_what_is_handed_out_is_what_the_data_set_has(guard: DatasetGuard) -> None:
    assert len(guard) == ROWS
    with guard.evaluating():
        for index in (5, np.int64(5), torch.tensor(5), -19):
            assert [int(part) for part in guard[index]] == [5, 1]
        for many in (slice(2, 9, 3), [2, 5, 8], torch.tensor([2, 5, 8]), np.array([2, 5, 8])):
            assert guard[many][0].flatten().tolist() == [2, 5, 8]
        mask = torch.zeros(ROWS, dtype=torch.bool)
        mask[[2, 5, 8]] = True
        assert guard[mask][0].flatten().tolist() == [2, 5, 8]
        assert list(DatasetGuard(Squares(), TEST, where="squares")._guarded) == [i**2 for i in range(ROWS)]
    assert guard.reads("evaluating").tolist() == [2, 5, 8]


def test_a_sequence_is_read_to_its_end() -> None:
    guard = DatasetGuard(Squares(), TEST)
    with guard.evaluating():
        assert list(guard) == [i**2 for i in range(ROWS)]
        assert list(DatasetGuard([5, 6, 7], [2]).reads("outside")) == []
    with pytest.raises(IndexError):
        guard[ROWS]


@pytest.mark.parametrize(
    "index", [3, -21, np.int32(3), torch.tensor(3), slice(0, 5), [1, 3], np.array([1, 3]), torch.tensor([1, 3])]
)
def test_no_way_of_naming_a_test_row_gets_it(guard: DatasetGuard, index: Any) -> None:
    with guard.fitting(), pytest.raises(GuardError, match=r"test row 3 of fold 0 was asked for during fitting"):
        guard[index]
    (leak,) = guard.leaks()
    assert leak.kind == "overlap"
    assert leak.where == "fold 0"
    assert leak.evidence == "1 test rows were asked for during fitting (rows 3)"
    assert guard.reads("fitting").tolist() == []


def test_masks_are_refused_too(guard: DatasetGuard) -> None:
    mask = np.arange(ROWS) == 20
    with guard.fitting(), pytest.raises(GuardError, match="test row 20"):
        guard[mask]


def test_a_loop_that_swallows_the_refusal_is_still_caught(guard: DatasetGuard) -> None:
    with guard.fitting():
        for row in range(ROWS):
            try:
                guard[row]
            except DScoreError:
                continue
    verdict = guard.verdict()
    assert [leak.kind for leak in verdict.leaks] == ["overlap"]
    assert "7 test rows" in verdict.leaks[0].evidence
    assert not verdict.passed
    assert guard.reads("fitting").tolist() == TRAIN


@pytest.mark.parametrize("build", ["loader", "sampler", "weighted", "subset", "random_split", "concat", "nested"])
def test_test_rows_among_the_batches(build: str) -> None:
    guard = DatasetGuard(DATA, TEST)
    data: Any = guard
    sampler: Any = None
    if build == "sampler":
        sampler = SubsetRandomSampler([*TRAIN, 20])
    elif build == "weighted":
        sampler = WeightedRandomSampler([float(i in TEST) for i in range(ROWS)], 5)
    elif build == "subset":
        data = Subset(guard, [*TRAIN, 20])
    elif build == "random_split":
        data = random_split(guard, [20, 4], generator=torch.Generator().manual_seed(0))[0]
    elif build == "concat":
        data = ConcatDataset([DATA, guard])
    elif build == "nested":
        data = Subset(ConcatDataset([Subset(guard, TRAIN), Subset(guard, TEST)]), list(range(len(TRAIN) + 1)))
    with guard.fitting(), pytest.raises(GuardError, match="during fitting: fit, scale and stop on training rows only"):
        drain(DataLoader(data, batch_size=5, sampler=sampler))
    assert [leak.kind for leak in guard.leaks()] == ["overlap"]


def test_a_batch_is_fetched_at_once_where_the_data_set_can() -> None:
    data = Batched()
    guard = DatasetGuard(data, TEST)
    with guard.fitting():
        assert drain(DataLoader(Subset(guard, TRAIN[:6]), batch_size=3)) == 6
        assert data.asked == [TRAIN[:3], TRAIN[3:6]]
        with pytest.raises(GuardError):
            guard.__getitems__([0, 3])
    assert data.asked == [TRAIN[:3], TRAIN[3:6]]
    assert guard.reads("fitting").tolist() == TRAIN[:6]


@pytest.mark.parametrize(("workers", "persistent"), [(1, False), (2, True)])
def test_reads_in_worker_processes_are_noted(workers: int, persistent: bool) -> None:
    guard = DatasetGuard(DATA, TEST)
    loader = DataLoader(Subset(guard, TRAIN), batch_size=4, num_workers=workers, persistent_workers=persistent)
    for _ in range(2):
        with guard.fitting():
            assert drain(loader) == len(TRAIN)
    with guard.evaluating():
        assert drain(loader) == len(TRAIN)  # the same workers, told of the phase
    assert guard.reads("fitting").tolist() == TRAIN
    assert guard.reads("evaluating").tolist() == TRAIN
    assert guard.reads("outside").tolist() == []
    assert guard.verdict().passed
    assert "no test row was read in evaluating()" in guard.verdict().notes[0]


def test_a_refusal_in_a_worker_is_one_sentence_here() -> None:
    guard = DatasetGuard(Squares(), TEST, where="fold 2")
    loader = DataLoader(guard, batch_size=4, num_workers=1)
    with guard.fitting(), pytest.raises(GuardError) as caught:
        drain(loader)
    assert str(caught.value) == (
        "test row 3 of fold 2 was asked for during fitting: fit, scale and stop on training rows only."
    )
    assert [leak.kind for leak in guard.leaks()] == ["overlap"]


def test_workers_that_are_spawned_note_their_reads() -> None:
    guard = DatasetGuard(Squares(), TEST)
    with guard.fitting():
        drain(DataLoader(Subset(guard, TRAIN), batch_size=4, num_workers=1, multiprocessing_context="spawn"))
    assert guard.reads("fitting").tolist() == TRAIN


def test_nothing_read_is_no_pass(guard: DatasetGuard) -> None:
    cached = [guard[i] for i in TRAIN]
    with guard.fitting():
        assert len(cached) == len(TRAIN)
    verdict = guard.verdict()
    assert verdict.undecided
    assert not verdict.passed
    assert "no row was read through the guard in fitting()" in verdict.reason
    with pytest.raises(GuardError, match="cannot tell whether fold 0 leaks: no row was read"):
        guard.leaks()


def test_fitting_on_after_test_rows_were_seen_is_no_pass(guard: DatasetGuard) -> None:
    for _ in range(2):
        with guard.fitting():
            guard[0]
        with guard.evaluating():
            guard[TRAIN[3]]
    assert guard.verdict().passed  # only rows that are not test rows steered it
    for _ in range(2):
        with guard.fitting():
            guard[0]
        with guard.evaluating():
            guard[3]
    assert not guard.verdict().passed
    assert "fitting() began again after test rows" in guard.verdict().reason
    with pytest.raises(GuardError, match="may have steered it"):
        guard.leaks()


def test_test_rows_cannot_be_put_aside_before_the_fit(guard: DatasetGuard) -> None:
    with pytest.raises(GuardError, match=r"test row 3 of fold 0 was asked for outside fitting\(\) and evaluating\(\)"):
        [guard[i] for i in range(ROWS)]
    assert guard.reads("outside").tolist() == [0, 1, 2]


def test_phases_do_not_overlap_and_end_with_an_error(guard: DatasetGuard) -> None:
    with guard.fitting():
        with pytest.raises(GuardError, match=r"evaluating\(\) was entered inside fitting\(\)"), guard.evaluating():
            pass
        with pytest.raises(GuardError, match="test row 3"):
            guard[3]  # still fitting

    def fails() -> None:
        with guard.evaluating():
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        fails()
    with pytest.raises(GuardError, match="outside"):
        guard[3]


def test_there_is_no_way_round_by_attributes_or_copies(guard: DatasetGuard) -> None:
    for name in ("tensors", "dataset", "targets", "data"):
        with pytest.raises(AttributeError, match=f"no '{name}': it hands on no attribute of the data set"):
            getattr(guard, name)
    for copying in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(GuardError, match="cannot be copied"):
            copying(guard)


class Stream(IterableDataset):
    def __iter__(self) -> Any:
        return iter(range(3))


class NoLength(Dataset):
    def __getitem__(self, index: int) -> int:
        return index


BAD: dict[str, tuple[Any, Any, str]] = {
    "iterable": (Stream(), [0], "Stream is an IterableDataset, whose rows have no numbers"),
    "no length": (NoLength(), [0], "NoLength has no length"),
    "no data set": (3, [0], "3 is no data set"),
    "a class": (Squares, [0], "is no data set"),
    "outside": (DATA, [3, 24], r"test names row 24, but the data set has rows 0..23"),
    "negative": (DATA, [-1], "test names row -1"),
    "none": (DATA, [], "names no row, so there is nothing to guard"),
    "all": (DATA, range(ROWS), "names every row, so none is left to train on"),
    "fractions": (DATA, [0.5], "must be a list of row numbers or a mask of 24"),
    "short mask": (DATA, [True, False], "must be a list of row numbers or a mask of 24"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_clear_sentence(name: str) -> None:
    data, test, words = BAD[name]
    with pytest.raises(DScoreError, match=words) as caught:
        DatasetGuard(data, test)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("index", ["a", 1.5, True, (1, 2), np.zeros((2, 2), int), [True, False], None])
def test_an_index_that_cannot_be_read_is_refused(guard: DatasetGuard, index: Any) -> None:
    with guard.evaluating(), pytest.raises(GuardError, match="cannot tell which rows the index"):
        guard[index]


def test_a_misspelt_phase(guard: DatasetGuard) -> None:
    with pytest.raises(DScoreError, match="did you mean 'fitting'"):
        guard.reads("fiting")


def test_scikit_learn_users_import_neither_torch_nor_yaml() -> None:
    code = """
import sys
from sklearn.tree import DecisionTreeClassifier
from pytest_dscore.protocol import nested_cv, probe_leaks
X = [[i, i * i % 7] for i in range(30)]
y = [i % 2 for i in range(30)]
nested_cv(DecisionTreeClassifier(), None, X, y, outer=2)
probe_leaks(DecisionTreeClassifier(), X, y, 2)
print({"torch", "yaml"} & set(sys.modules))
from pytest_dscore.protocol import DatasetGuard, load_manifest
print(sorted({"torch", "yaml"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["set()", "['torch', 'yaml']"]
