"""One 8-byte digest per example, from what the example holds and not from how it is stored.

The same example has the same digest as uint8, float32 or float64, as a list, an array or a tensor, with or without
its axes. Any change of the values themselves, were it one pixel or a normalisation, gives another digest: this
recognises copies, not look-alikes.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_dscore.errors import DScoreError

Digests = NDArray[np.uint64]

_BLOCK_BYTES = 8 << 20
_NUMERIC = "biuf"


def digests(values: Any, name: str) -> Digests:
    """Digest every example of `values`.

    Parameters
    ----------
    values
        An array or tensor of shape (n, ...), or any iterable of numbers, arrays, tensors, texts, bytes, or lists and
        dicts of these.
    name
        What the values are, for messages.

    Returns
    -------
    numpy.ndarray of uint64, shape (n,)

    Raises
    ------
    DScoreError
        An example is of a kind that has no bytes to digest.
    """
    array = _array(values)
    if array is not None and array.dtype.kind in _NUMERIC and array.ndim:
        if not len(array):
            return np.zeros(0, np.uint64)
        if array.ndim == 1 and len(array):
            # Labels repeat: digest each value once.
            unique, inverse = np.unique(array, return_inverse=True)
            return _joined(_numeric_rows(unique.reshape(-1, 1)))[inverse.reshape(-1)]
        return _joined(_numeric_rows(array.reshape(len(array), -1)))
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise DScoreError(f"{name} must hold one entry per example, not {type(values).__name__}")
    # A data frame would be iterated over by its columns.
    rows = array if array is not None and array.ndim else values
    return _joined(_example(value, f"{name}[{row}]") for row, value in enumerate(rows))


def _joined(rows: Iterable[Any]) -> Digests:
    hashed = b"".join(hashlib.blake2b(row, digest_size=8).digest() for row in rows)
    return np.frombuffer(hashed, dtype=">u8").astype(np.uint64)


def _array(values: Any) -> NDArray[Any] | None:
    """`values` as an array where it is one or acts as one (torch tensors, also on a device or with a gradient)."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    if isinstance(values, np.ndarray):
        return values
    return np.asarray(values) if hasattr(values, "__array__") else None


def _numeric_rows(table: NDArray[Any]) -> Iterator[Any]:
    """Bytes of each row of a table of shape (n, d): its values rounded to float32, whatever type they came in."""
    step = max(1, _BLOCK_BYTES // max(1, 4 * table.shape[1]))
    for start in range(0, len(table), step):
        block = table[start : start + step]
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = block.astype("<f4") + np.float32(0)  # -0.0 becomes 0.0
        rounded[np.isnan(rounded)] = np.nan  # one NaN of the many
        flat = np.ascontiguousarray(rounded).reshape(-1).view(np.uint8).data
        width = 4 * table.shape[1]
        lost = _lost(block, rounded)
        for row in range(len(block)):
            content = flat[row * width : (row + 1) * width]
            yield content if lost is None or not lost[row].any() else bytes(content) + lost[row].tobytes()


def _lost(block: NDArray[Any], rounded: NDArray[np.float32]) -> NDArray[Any] | None:
    """What float32 dropped of large integers, identifiers say, which must stay apart; None where nothing can be."""
    if block.dtype.kind not in "iu" or block.dtype.itemsize < 4:
        return None
    lost = block.astype("<f8") - rounded.astype("<f8")
    return lost if lost.any() else None


def _example(value: Any, where: str) -> bytes:
    array = _array(value)
    if array is None and isinstance(value, (bool, int, float, list, tuple)):
        try:
            array = np.asarray(value)
        except (ValueError, OverflowError):
            array = None
    if array is not None and array.dtype.kind in _NUMERIC:
        return b"".join(bytes(row) for row in _numeric_rows(array.reshape(1, -1)))
    if isinstance(value, str):
        return b"text:" + unicodedata.normalize("NFC", value).encode("utf-8", "surrogatepass")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return b"bytes:" + bytes(value)
    if value is None:
        return b"none:"
    if isinstance(value, dict):
        return _nested([str(key) for key in value], value.values(), where)
    if array is not None and array.dtype.kind in "OUS" and array.ndim:
        return _nested(None, array.reshape(-1).tolist(), where)
    if isinstance(value, (list, tuple)):
        return _nested(None, value, where)
    raise DScoreError(
        f"{where} is a {type(value).__name__}, which cannot be recognised by content: give numbers, arrays, text or "
        "bytes (an image as an array)"
    )


def _nested(keys: Iterable[str] | None, values: Iterable[Any], where: str) -> bytes:
    parts = [_example(value, where) for value in values]
    if keys is not None:
        # A dict has no order of its own; its keys belong to the content.
        parts = [part for pair in sorted(zip((key.encode() for key in keys), parts, strict=True)) for part in pair]
    # The lengths keep ("ab", "c") apart from ("a", "bc").
    return b"nested:" + b"".join(b"%d:%s" % (len(part), part) for part in parts)
