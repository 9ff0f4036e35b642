"""A hold-out known by what it holds: not by its name, its order, nor how its labels are written."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_dscore.errors import DScoreError
from pytest_dscore.holdout.checks import outcome_vector
from pytest_dscore.holdout.ledger.fingerprints import Digests, digests

#: Two hold-outs are related, and share their budget, from this share of common examples on.
RELATED_SHARE = 0.01
#: At most about this many fingerprints are kept; larger hold-outs keep those below a threshold.
KEPT = 1 << 20


@dataclass(frozen=True)
class HoldoutIdentity:
    """Which examples a hold-out consists of.

    The canonical order of the examples is that of their fingerprints, so the same examples in any order give the same
    identity and the same packed outcome vectors.

    Parameters
    ----------
    name
        What its owner calls it; it identifies nothing.
    n
        Examples.
    digest
        SHA-256 over all the fingerprints in canonical order, without the labels: the same for re-encoded labels.
    labels
        SHA-256 over the label codes in canonical order. Codes number the labels by first appearance in that order, so
        ``[0, 1]``, ``["cat", "dog"]``, one-hot rows or a permutation of the classes give the same codes.
    fingerprints
        The kept fingerprints, ascending, 8 bytes each, big-endian.
    codes
        The kept examples' label codes, 1, 2 or 4 bytes each as the largest needs, little-endian.
    sample_bits
        Kept are fingerprints whose first `sample_bits` bits are 0; 0 for up to 2^20 examples, all of which are kept.
    order
        Row of the caller's data that stands at each canonical place; None for an identity read from a ledger.
    """

    name: str
    n: int
    digest: str
    labels: str
    fingerprints: bytes = field(repr=False)
    codes: bytes = field(repr=False)
    sample_bits: int = 0
    order: NDArray[np.intp] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, inputs: Any, labels: Any, name: str = "") -> HoldoutIdentity:
        """Fingerprint the examples of a hold-out.

        Parameters
        ----------
        inputs
            Array or tensor of shape (n, ...), or an iterable of examples (arrays, text, bytes, lists, dicts).
        labels
            n labels of any kind: numbers, text, one-hot rows.
        name
            What to call it in reports.

        Raises
        ------
        DScoreError
            No example, another number of labels than examples, or an example without content to digest.
        """
        found, label_digests = digests(inputs, "inputs"), digests(labels, "labels")
        if not len(found):
            raise DScoreError("inputs hold no example; a hold-out needs at least one")
        if len(found) != len(label_digests):
            raise DScoreError(f"there are {len(found)} examples and {len(label_digests)} labels; give one label each")
        order = np.lexsort((label_digests, found))
        ordered, codes = found[order], _first_appearance(label_digests[order])
        n = len(ordered)
        bits = max(0, (n - 1) // KEPT).bit_length()
        kept = n if bits == 0 else int(np.searchsorted(ordered, np.uint64(1 << (64 - bits))))
        return cls(
            name=name,
            n=n,
            digest=content_digest(ordered),
            labels=label_digest(codes),
            fingerprints=ordered[:kept].astype(">u8").tobytes(),
            codes=codes[:kept].astype(_smallest(codes[:kept])).tobytes(),
            sample_bits=bits,
            order=order,
        )

    def pack(self, outcomes: Any) -> bytes:
        """Pack one model's outcomes, one bit per example in canonical order.

        Parameters
        ----------
        outcomes
            Shape (n,) in the order of the data that this identity was made of; 1 or True where the model is wrong.

        Raises
        ------
        DScoreError
            Another length, values other than 0 and 1, or an identity read from a ledger, which has no order.
        """
        return np.packbits(self.ordered(outcomes)).tobytes()

    def ordered(self, outcomes: Any) -> NDArray[np.bool_]:
        """Return what `pack` packs: outcomes that are the same in whatever order the data came."""
        return outcome_vector(outcomes, self.n)[self._rows()]

    def unpack(self, packed: bytes) -> NDArray[np.bool_]:
        """Return packed outcomes as booleans of shape (n,), in the order of the data this identity was made of."""
        canonical = np.unpackbits(np.frombuffer(packed, np.uint8), count=self.n).astype(np.bool_)
        outcomes = np.empty_like(canonical)
        outcomes[self._rows()] = canonical
        return outcomes

    def _rows(self) -> NDArray[np.intp]:
        if self.order is None:
            raise DScoreError(
                f"hold-out {self.name!r} was read from a ledger, which does not keep the order of your data: make the "
                "identity with HoldoutIdentity.of(inputs, labels)"
            )
        return self.order

    def kept(self, bits: int | None = None) -> Digests:
        """Return the kept fingerprints, ascending; only those that `bits` leading zero bits would keep."""
        values = np.frombuffer(self.fingerprints, ">u8").astype(np.uint64)
        if not bits or bits <= self.sample_bits:
            return values
        return values[: int(np.searchsorted(values, np.uint64(1 << (64 - bits))))]

    def kept_codes(self) -> NDArray[np.uint32]:
        """Return the label codes of `kept`."""
        width = 8 * len(self.codes) // len(self.fingerprints)
        return np.frombuffer(self.codes, f"<u{width}").astype(np.uint32)


@dataclass(frozen=True)
class Overlap:
    """What two hold-outs have in common.

    Parameters
    ----------
    digest, name
        The earlier hold-out.
    common
        Examples in both; an estimate where `exact` is False (hold-outs of more than 2^20 examples).
    share
        `common` divided by the size of the smaller one.
    exact
        Whether all fingerprints were compared.
    """

    digest: str
    name: str
    common: int
    share: float
    exact: bool = True

    @property
    def related(self) -> bool:
        """Whether the two share their budget."""
        return self.common > 0 and self.share >= RELATED_SHARE


def content_digest(ordered: Digests) -> str:
    """Return the digest of a hold-out from all its fingerprints in ascending order."""
    return hashlib.sha256(b"dscore-holdout-1" + np.asarray(ordered, ">u8").tobytes()).hexdigest()


def label_digest(codes: NDArray[Any]) -> str:
    """Return the digest of the label codes in canonical order."""
    return hashlib.sha256(b"dscore-labels-1" + np.asarray(codes, "<u4").tobytes()).hexdigest()


def overlap(own: HoldoutIdentity, earlier: HoldoutIdentity) -> Overlap:
    """Count the examples of `earlier` that are also in `own`; an example that occurs twice in both counts twice."""
    if own.digest == earlier.digest:
        return Overlap(earlier.digest, earlier.name, own.n, 1.0)
    bits = max(own.sample_bits, earlier.sample_bits)
    mine, my_counts = np.unique(own.kept(bits), return_counts=True)
    theirs, their_counts = np.unique(earlier.kept(bits), return_counts=True)
    _, in_mine, in_theirs = np.intersect1d(mine, theirs, assume_unique=True, return_indices=True)
    smaller = min(own.n, earlier.n)
    common = min(int(np.minimum(my_counts[in_mine], their_counts[in_theirs]).sum()) << bits, smaller)
    return Overlap(earlier.digest, earlier.name, common, common / smaller, exact=bits == 0)


def changed_labels(own: HoldoutIdentity, earlier: HoldoutIdentity) -> Sequence[int]:
    """Return the rows whose label is another one than in `earlier`, after allowing for labels written differently.

    The labels of the common examples are matched one to one, the most frequent pair first; examples outside the
    matching have changed. For hold-outs of more than 2^20 examples only the kept ones are looked at.

    Returns
    -------
    sequence of int
        Rows of the caller's data, ascending; places in canonical order where `own` has no order.
    """
    if own.digest == earlier.digest:
        if own.labels == earlier.labels:
            return ()
        places = np.arange(len(own.kept()))
        mine, theirs = own.kept_codes(), earlier.kept_codes()
    else:
        bits = max(own.sample_bits, earlier.sample_bits)
        _, places, others = np.intersect1d(own.kept(bits), earlier.kept(bits), return_indices=True)
        mine, theirs = own.kept_codes()[places], earlier.kept_codes()[others]
    if np.array_equal(_first_appearance(mine), _first_appearance(theirs)):
        return ()
    pairs, inverse, counts = np.unique(
        np.stack([mine, theirs], axis=1), axis=0, return_inverse=True, return_counts=True
    )
    matched = np.zeros(len(pairs), dtype=np.bool_)
    used_mine: set[int] = set()
    used_theirs: set[int] = set()
    for pair in np.argsort(-counts, kind="stable"):
        one, other = pairs[pair].tolist()
        if one not in used_mine and other not in used_theirs:
            matched[pair] = True
            used_mine.add(one)
            used_theirs.add(other)
    changed = places[~matched[inverse.reshape(-1)]]
    rows = changed if own.order is None else own.order[changed]
    return sorted(int(row) for row in rows)


def _smallest(codes: NDArray[np.uint32]) -> str:
    largest = int(codes.max())
    return "<u1" if largest < 1 << 8 else "<u2" if largest < 1 << 16 else "<u4"


def _first_appearance(labels: NDArray[Any]) -> NDArray[np.uint32]:
    """Number labels 0, 1, ... in the order in which they first occur."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.uint32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.uint32)
    return rank[inverse.reshape(-1)]
