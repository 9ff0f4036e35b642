"""Pairwise similarities of outcome vectors: bit-packed in memory, counted exactly, in time that BLAS allows.

A matrix of k models on n examples takes k * n / 8 bytes. Similarities of all pairs come from one symmetric matrix
product over blocks of examples; those of one new model against k old ones from exclusive-or and bit counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from pytest_dscore.errors import DScoreError
from pytest_dscore.holdout import checks

Floats = NDArray[np.float64]

_BLOCK = 4096  # examples unpacked at a time; a multiple of 8
_FEW_ROWS = 16  # so many models are compared with all others bit by bit; more by a matrix product
_COMPARED = 16  # models compared at a time: their bits stay in the processor's cache
_EXACT_FLOAT32 = 2**24  # counts up to here are exact in single precision
_BYTE_BITS = np.array([bin(i).count("1") for i in range(256)], dtype=np.uint8)


@dataclass(frozen=True)
class PackedOutcomes:
    """Outcome vectors, eight examples to a byte (``numpy.packbits``, first example in the highest bit).

    Parameters
    ----------
    bits
        uint8 array of shape (k, ceil(n / 8)); padding bits are 0.
    n
        Number of examples.
    """

    bits: NDArray[np.uint8]
    n: int

    @property
    def k(self) -> int:
        """Number of models."""
        return int(self.bits.shape[0])

    def errors(self) -> NDArray[np.int64]:
        """Return each model's number of wrong examples, shape (k,)."""
        return count_bits(self.bits)

    def rows(self, start: int = 0, stop: int | None = None) -> NDArray[np.bool_]:
        """Return the outcomes of models start..stop - 1 unpacked, shape (models, n)."""
        return np.unpackbits(self.bits[start:stop], axis=1, count=self.n).astype(np.bool_)


def pack(outcomes: Any) -> PackedOutcomes:
    """Pack an outcome matrix.

    Parameters
    ----------
    outcomes
        Shape (k, n), True or 1 where the model is wrong; or already packed.

    Raises
    ------
    DScoreError
        The matrix is not two-dimensional, is empty, or holds anything but 0 and 1.
    """
    if isinstance(outcomes, PackedOutcomes):
        return _checked(outcomes)
    matrix = checks.outcomes(outcomes)
    return PackedOutcomes(np.packbits(matrix, axis=1), matrix.shape[1])


def _checked(packed: PackedOutcomes) -> PackedOutcomes:
    """Return `packed` if its shape fits and its padding is empty (a set padding bit would be counted)."""
    bits, n = packed.bits, packed.n
    if n < 1 or bits.ndim != 2 or bits.shape[0] < 1 or bits.shape[1] != -(-n // 8) or bits.dtype != np.uint8:
        raise DScoreError(f"packed outcomes of shape {bits.shape} do not hold {n} examples a model; use pack().")
    if n % 8 and bool((bits[:, -1] & (0xFF >> (n % 8))).any()):
        raise DScoreError(f"packed outcomes have bits set beyond example {n - 1}; use pack().")
    return packed


def count_bits(bits: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the number of set bits of each row, shape (rows,)."""
    if not hasattr(np, "bitwise_count"):  # NumPy 1
        return np.asarray(_BYTE_BITS[bits].sum(axis=1, dtype=np.int64))
    words = bits.shape[1] // 8 * 8
    whole = np.ascontiguousarray(bits[:, :words]).view(np.uint64)
    total = np.bitwise_count(whole).sum(axis=1, dtype=np.int64)
    return np.asarray(total + np.bitwise_count(bits[:, words:]).sum(axis=1, dtype=np.int64))


def disagreements(packed: PackedOutcomes, vector: Any, block: int = 1024) -> NDArray[np.int64]:
    """Return on how many examples each stored model and one new model differ, shape (k,).

    Parameters
    ----------
    packed
        The k stored models.
    vector
        The new model's outcomes, shape (n,), or its packed bits, uint8 of shape (ceil(n / 8),).
    block
        Models compared at a time: memory is ``block * n / 8`` bytes.

    Raises
    ------
    DScoreError
        The vector's length is not n or it is not binary.
    """
    values = np.asarray(vector)
    if not (values.dtype == np.uint8 and values.shape == packed.bits.shape[1:] and values.shape != (packed.n,)):
        values = np.packbits(checks.outcome_vector(values, packed.n))
    result = np.empty(packed.k, dtype=np.int64)
    for start in range(0, packed.k, block):
        result[start : start + block] = count_bits(packed.bits[start : start + block] ^ values)
    return result


def similarity_row(packed: PackedOutcomes, vector: Any) -> Floats:
    """Return the similarity of one new model to each stored one, shape (k,); as `disagreements`."""
    return np.asarray(1 - disagreements(packed, vector) / packed.n, dtype=np.float64)


def joint_failures(packed: PackedOutcomes) -> NDArray[np.float32] | Floats:
    """Return on how many examples both of two models are wrong, shape (k, k); only the upper triangle is filled.

    Counts are exact: whole numbers below 2^24 in single precision, and in double precision for more examples.
    """
    double = packed.n > _EXACT_FLOAT32
    dtype = np.dtype(np.float64 if double else np.float32)
    product = blas.dsyrk if double else blas.ssyrk
    total = np.zeros((packed.k, packed.k), dtype=dtype, order="F")
    for start in range(0, packed.bits.shape[1], _BLOCK // 8):
        block = np.unpackbits(packed.bits[:, start : start + _BLOCK // 8], axis=1).astype(dtype)
        # The transpose of a C-ordered block is Fortran-ordered: BLAS reads and adds up without a copy.
        total = product(1.0, block.T, beta=1.0, c=total, trans=1, overwrite_c=1)
    return total


def agreements(packed: PackedOutcomes, start: int, stop: int) -> NDArray[np.int64]:
    """Return on how many examples models start..stop - 1 agree with each of models 0..stop - 1.

    Parameters
    ----------
    packed
        Outcomes of `stop` models or more.
    start, stop
        The models in question, ``0 <= start < stop <= k``.

    Returns
    -------
    ndarray
        int64, shape (stop - start, stop). A few rows are counted by bit operations, many by a matrix product, exactly.
    """
    bits, n = packed.bits[:stop], packed.n
    if stop - start <= _FEW_ROWS:
        before = PackedOutcomes(bits, n)
        differ = np.stack([disagreements(before, bits[row], _COMPARED) for row in range(start, stop)])
        return np.asarray(n - differ, dtype=np.int64)
    dtype = np.dtype(np.float64 if n > _EXACT_FLOAT32 else np.float32)
    both: NDArray[Any] = np.zeros((stop - start, stop), dtype=dtype)
    for first in range(0, bits.shape[1], _BLOCK // 32):
        block: NDArray[Any] = np.unpackbits(bits[:, first : first + _BLOCK // 32], axis=1).astype(dtype)
        both += block[start:] @ block.T
    wrong = count_bits(bits)
    return np.asarray(n - (wrong[start:, None] + wrong - 2 * np.rint(both).astype(np.int64)), dtype=np.int64)


def similarity_matrix(outcomes: Any) -> Floats:
    """Return the similarity of every pair of models: the share of examples on which both are right or both wrong.

    Parameters
    ----------
    outcomes
        Outcome matrix of shape (k, n), or `PackedOutcomes`.

    Returns
    -------
    ndarray
        float64, shape (k, k), symmetric, ones on the diagonal. Peak memory is about 12 k^2 bytes.

    Raises
    ------
    DScoreError
        As `pack`.
    """
    packed = pack(outcomes)
    both = joint_failures(packed)
    wrong = np.diagonal(both).astype(np.float64)
    result = np.empty((packed.k, packed.k))
    for row in range(packed.k):
        # 1 - (wrong_i + wrong_j - 2 both) / n, from whole numbers so that equal vectors give exactly 1
        differ = wrong[row] + wrong[row:] - 2 * both[row, row:].astype(np.float64)
        result[row, row:] = (packed.n - differ) / packed.n
        result[row:, row] = result[row, row:]
    return result


def similarity_cover(similarity: Floats, errors: Sequence[float] | NDArray[Any], eta: float) -> NDArray[np.int64]:
    """Return the indices of an eta similarity cover (Definition 1 of Mania et al. 2019), found greedily.

    Every model q has a member no worse and a member no better than itself (in error), both at similarity eta or more.
    The size is an upper bound on the minimal cover's; a model always covers itself, so a cover exists.

    Parameters
    ----------
    similarity
        Shape (k, k).
    errors
        Error rates, shape (k,).
    eta
        In [0, 1].

    Raises
    ------
    SettingsError
        `eta` out of range.
    """
    level = float(checks.closed_unit(eta, "eta"))
    rate = np.asarray(errors, dtype=np.float64)
    near = similarity >= level - 1e-15
    below, above = near & (rate[:, None] <= rate), near & (rate[:, None] >= rate)
    need_below, need_above = np.ones(rate.size, dtype=bool), np.ones(rate.size, dtype=bool)
    members: list[int] = []
    while need_below.any() or need_above.any():
        gain = (below & need_below).sum(axis=1) + (above & need_above).sum(axis=1)
        member = int(np.argmax(gain))
        members.append(member)
        need_below &= ~below[member]
        need_above &= ~above[member]
    return np.array(members, dtype=np.int64)
