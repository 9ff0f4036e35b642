"""Copies, near copies, groups and times, against plain double loops and planted offenders; and at scale."""

# mypy: disable-error-code="import-untyped,misc,untyped-decorator,no-any-return,type-arg,no-untyped-def,no-untyped-call"
from __future__ import annotations

import time as clock
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_digits, load_iris

from pytest_dscore.errors import DScoreError
from pytest_dscore.protocol import check_data
from pytest_dscore.protocol.duplicates import exact_duplicates, expected_coincidences, near_duplicates, row_hashes
from pytest_dscore.protocol.fingerprints import image_fingerprints


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 12), st.integers(1, 12), st.integers(1, 3))
def test_exact_equals_a_double_loop(seed: int, n: int, m: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 3, (n, d)), rng.integers(0, 3, (m, d)).astype(float)
    expected = []
    for i in range(m):
        equal = [j for j in range(n) if np.array_equal(a[j], b[i])]
        expected += [(i, equal[0])] if equal else []
    assert exact_duplicates(a.astype(float), b).tolist() == [list(pair) for pair in expected]


def test_hashes_see_values_not_storage() -> None:
    table = np.array([[0.0, 1.5], [-0.0, 1.5], [2.0, 3.0]])
    hashes = row_hashes(table)
    assert hashes[0] == hashes[1] != hashes[2]
    assert row_hashes(np.asfortranarray(table)) == hashes
    assert row_hashes(table.astype(np.float32)) == hashes
    assert row_hashes(sparse.csr_matrix(table)) == hashes
    assert row_hashes(np.array([["a", "b"], ["a", "c"]]))[0] == row_hashes(np.array([["a", "b"]], dtype=object))[0]


@pytest.mark.parametrize("seed", range(20))
def test_near_copies_in_tables(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scales = 10.0 ** rng.uniform(-3, 3, 6)
    train, test = rng.normal(size=(300, 6)), rng.normal(size=(100, 6))
    test[[7, 30]] = train[[5, 250]] + 0.01 * rng.normal(size=(2, 6))
    assert near_duplicates(train * scales, test * scales).tolist() == [[7, 5], [30, 250]]
    clean = rng.normal(size=(100, 6))
    assert len(near_duplicates(train * scales, clean * scales)) == 0


def test_near_copies_false_alarms_are_rare_in_few_columns() -> None:
    """Nominally one data set in twenty by chance, at every number of columns."""
    for d in (1, 2, 3):
        alarms = 0
        for seed in range(100):
            rng = np.random.default_rng(seed)
            alarms += len(near_duplicates(rng.normal(size=(200, d)), rng.normal(size=(50, d)))) > 0
        assert alarms <= 15, (d, alarms)


def test_near_copies_of_images() -> None:
    pictures = load_digits().images
    rng = np.random.default_rng(0)
    train, test = pictures[:1200], pictures[1200:].copy()
    assert len(near_duplicates(train, test)) == 0
    test[[3, 9]] = 0.8 * train[[100, 200]] + 1 + 0.1 * rng.normal(size=(2, 8, 8))
    assert near_duplicates(train, test).tolist() == [[3, 100], [9, 200]]
    colour = rng.random((60, 16, 20, 3)).astype(np.float32)
    copies = np.concatenate([colour[:1] * 0.9, rng.random((5, 16, 20, 3)).astype(np.float32)])
    assert near_duplicates(colour, copies).tolist() == [[0, 0]]
    assert near_duplicates(colour.transpose(0, 3, 1, 2), copies.transpose(0, 3, 1, 2)).tolist() == [[0, 0]]


def test_fingerprint_is_the_centred_block_means() -> None:
    rng = np.random.default_rng(0)
    images = rng.random((3, 16, 24))
    blocks = images.reshape(3, 8, 2, 8, 3).mean(axis=(2, 4)).reshape(3, 64)
    centred = blocks - blocks.mean(axis=1, keepdims=True)
    assert np.allclose(image_fingerprints(images), centred / np.linalg.norm(centred, axis=1, keepdims=True), atol=1e-6)
    assert np.allclose(image_fingerprints(3 * images + 5), image_fingerprints(images), atol=1e-5)
    assert not image_fingerprints(np.full((1, 9, 9), 7.0)).any()


def test_coincidences_expected_of_independent_columns() -> None:
    rng = np.random.default_rng(0)
    sets = [(rng.integers(0, 4, (300, 5)), rng.integers(0, 4, (200, 5))) for _ in range(20)]
    found = np.mean([len(exact_duplicates(*pair)) for pair in sets])
    assert np.mean([expected_coincidences(*pair) for pair in sets]) == pytest.approx(found, rel=0.1)
    assert expected_coincidences(rng.normal(size=(50, 2)), rng.normal(size=(50, 2))) == 0


def test_iris_has_one_known_pair() -> None:
    """Rows 101 and 142 of the iris data are equal: one such pair in data this coarse is no leak of the split."""
    X = load_iris().data
    train = np.setdiff1d(np.arange(150), [142])
    assert exact_duplicates(X[train], X[142:143]).tolist() == [[0, 101]]


def test_groups_and_time_name_counts_and_offenders() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(6, 3)), rng.normal(size=(3, 3))
    (leak,) = check_data(a, b, groups=([1, 1, 2, 2, 3, 3], [3, 4, 3]))
    assert leak.kind == "groups"
    assert "1 group(s)" in leak.evidence
    assert "2 of 3 test rows" in leak.evidence
    (leak,) = check_data(
        a, b, time=(np.array(["2020", "2021", "2022", "2023", "2020", "2020"]), ["2021", "2022", "2023"])
    )
    assert leak.kind == "time"
    assert "2 of 6 training rows are later" in leak.evidence
    assert "2, 3" in leak.evidence
    assert check_data(a, b, groups=([1] * 6, [2] * 3), time=([1] * 6, [1, 2, 3])) == ()


@pytest.mark.parametrize("frames", ["pandas", "polars"])
def test_frames(frames: str) -> None:
    module: Any = pytest.importorskip(frames, reason=f"{frames} is not installed: its frames were not checked")
    rng = np.random.default_rng(0)
    train: dict[str, Any] = {"a": rng.normal(size=40), "name": [f"n{i}" for i in range(40)]}
    test = {"a": train["a"][:2], "name": train["name"][:2]}
    (leak,) = check_data(module.DataFrame(train), module.DataFrame(test))
    assert leak.kind == "duplicates"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"X_test": np.ones((2, 4))}, "shape"),
        ({"groups": [1, 2, 3]}, "groups must be a pair"),
        ({"time": ([1], [2])}, "time has 1"),
    ],
)
def test_bad_input(more: dict[str, Any], words: str) -> None:
    with pytest.raises(DScoreError, match=words):
        check_data(**({"X_train": np.ones((3, 2)), "X_test": np.zeros((2, 2))} | more))


def test_time_grows_in_proportion_to_the_rows() -> None:
    """Exact copies: eight times the rows in well under eight squared times the time."""
    rng = np.random.default_rng(0)

    def seconds(n: int) -> float:
        rows = rng.integers(0, 256, (n, 64), dtype=np.uint8)
        start = clock.perf_counter()
        exact_duplicates(rows, rows)
        return clock.perf_counter() - start

    seconds(1000)
    assert seconds(40_000) < 24 * min(seconds(5000) for _ in range(3))
