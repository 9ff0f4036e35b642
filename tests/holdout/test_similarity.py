"""Bit-packed similarities against comparing vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_dscore.errors import DScoreError
from pytest_dscore.holdout import PackedOutcomes, disagreements, pack, similarity, similarity_matrix, similarity_row
from pytest_dscore.holdout.similarity import count_bits, similarity_cover


@settings(max_examples=40, deadline=None)
@given(k=st.integers(1, 9), n=st.integers(1, 90), seed=st.integers(0, 10**6))
def test_against_a_plain_comparison(k: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.random((k, n)) < rng.random()
    want = np.array([[np.mean(a == b) for b in matrix] for a in matrix])
    packed = pack(matrix)
    np.testing.assert_allclose(similarity_matrix(matrix), want, atol=1e-15)
    np.testing.assert_array_equal(similarity_matrix(packed), similarity_matrix(matrix))
    vector = rng.random(n) < 0.5
    np.testing.assert_array_equal(disagreements(packed, vector, block=2), (matrix != vector).sum(axis=1))
    np.testing.assert_allclose(similarity_row(packed, vector), (matrix == vector).mean(axis=1), atol=1e-15)
    np.testing.assert_array_equal(packed.errors(), matrix.sum(axis=1))
    np.testing.assert_array_equal(packed.rows(), matrix)
    np.testing.assert_array_equal(packed.rows(1, 3), matrix[1:3])


def test_a_packed_vector_is_taken_too() -> None:
    matrix = np.random.default_rng(0).random((3, 20)) < 0.5
    packed = pack(matrix)
    np.testing.assert_array_equal(disagreements(packed, packed.bits[1]), disagreements(packed, matrix[1]))


def test_more_examples_than_one_block_and_double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.random.default_rng(1).random((4, 9_001)) < 0.3
    want = [[np.mean(a == b) for b in matrix] for a in matrix]
    np.testing.assert_allclose(similarity_matrix(matrix), want, atol=1e-15)
    monkeypatch.setattr(similarity, "_EXACT_FLOAT32", 100)
    np.testing.assert_allclose(similarity_matrix(matrix), want, atol=1e-15)


def test_bits_are_counted_without_numpy_2_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    bits = np.random.default_rng(2).integers(0, 256, size=(3, 21), dtype=np.uint8)
    want = [sum(bin(b).count("1") for b in row.tolist()) for row in bits]
    assert count_bits(bits).tolist() == want
    monkeypatch.delattr(np, "bitwise_count", raising=False)
    assert count_bits(bits).tolist() == want


def test_copies_are_exactly_one() -> None:
    row = np.random.default_rng(3).random(77) < 0.4
    assert (similarity_matrix(np.stack([row] * 3)) == 1.0).all()


@pytest.mark.parametrize(
    ("bits", "n", "words"),
    [
        (np.zeros((2, 2), dtype=np.uint8), 20, "do not hold 20 examples"),
        (np.zeros((2, 3), dtype=np.int64), 20, "do not hold 20 examples"),
        (np.full((1, 3), 255, dtype=np.uint8), 20, "bits set beyond example 19"),
    ],
)
def test_packed_bits_that_do_not_fit(bits: np.ndarray, n: int, words: str) -> None:
    with pytest.raises(DScoreError, match=words):
        similarity_matrix(PackedOutcomes(bits, n))


@pytest.mark.parametrize("eta", [0.0, 0.6, 0.8, 0.95, 1.0])
def test_a_cover_covers(eta: float) -> None:
    rng = np.random.default_rng(4)
    base = rng.random(200) < 0.3
    matrix = base ^ (rng.random((15, 200)) < rng.uniform(0, 0.3, size=(15, 1)))
    alike, errors = similarity_matrix(matrix), matrix.mean(axis=1)
    cover = similarity_cover(alike, errors, eta)
    for i in range(15):
        near = [j for j in cover if alike[i, j] >= eta]
        assert any(errors[j] <= errors[i] for j in near)
        assert any(errors[j] >= errors[i] for j in near)
    if eta == 0.0:
        assert len(cover) <= 3  # the best and the worst model are enough; greedily it may be one more
