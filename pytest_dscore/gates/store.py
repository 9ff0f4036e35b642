"""Hits on disk: pytest's cache (by content) and the directory that the workers of one run share.

Only hits are kept. Figures and intervals are made from them anew, so no threshold or interval setting can go stale.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import tokenize
import zipfile
import zlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pytest_dscore.score.engine import Hits
from pytest_dscore.score.exhibit import Exhibit
from pytest_dscore.writing import write_whole

_FORMAT = 2
#: What NumPy, zipfile and zlib raise on damaged bytes.
_DAMAGED = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, EOFError, MemoryError, RuntimeError, SyntaxError),
    *(struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)


@dataclass(frozen=True)
class Measured:
    """Hits with all that is needed to summarise them and to say what they belong to.

    Parameters
    ----------
    hits
        From the engine.
    padding, fill
        As resolved against the images.
    model_fingerprint, data_fingerprint
        SHA-256.
    remarks
        Sentences on what looks wrong in the input.
    cached
        True where they were read from pytest's cache directory, so that no forward pass was made.
    exhibit
        Pictures for reports; None where there are none, as in files that are committed.
    """

    hits: Hits
    padding: tuple[int, int]
    fill: tuple[float, ...]
    model_fingerprint: str
    data_fingerprint: str
    remarks: tuple[str, ...] = ()
    cached: bool = False
    exhibit: Exhibit | None = None


def save(path: Path, measured: Measured, *, pictures: bool = False) -> None:
    """Write atomically: another process sees the whole file or none.

    Parameters
    ----------
    path
        Where to.
    measured
        What to keep.
    pictures
        Whether to keep its exhibit too, which holds images of the data.

    Raises
    ------
    OSError
        The directory cannot be written.
    """
    meta = asdict(measured)
    del meta["exhibit"]
    hits = meta["hits"].pop("hits")
    meta |= {"format": _FORMAT, "shape": hits.shape, "sha256": _digest(hits)}
    buffer = io.BytesIO()
    arrays: dict[str, Any] = {"meta": np.array(json.dumps(meta)), "hits": np.packbits(hits, axis=1)}
    if pictures and measured.exhibit is not None:
        arrays["exhibit"] = np.array(measured.exhibit.to_json())
    np.savez_compressed(buffer, **arrays)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, buffer.getvalue())


def load(path: Path) -> Measured | None:
    """Read what `save` wrote; None where there is no file, or it is damaged or of another version.

    None makes the caller measure anew, so a bad file can cost time but never a verdict.
    """
    try:
        # Read whole first: NumPy leaves the file open where it is damaged.
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            meta = json.loads(str(stored["meta"]))
            rows, columns = meta.pop("shape")
            hits = np.unpackbits(stored["hits"], axis=1, count=columns).astype(np.bool_)
            exhibit = Exhibit.from_json(str(stored["exhibit"])) if "exhibit" in stored.files else None
        if meta.pop("format") != _FORMAT or meta.pop("sha256") != _digest(hits) or len(hits) != rows:
            return None
        seen = meta.pop("hits")
        maps = {name: (int(height), int(width)) for name, (height, width) in seen.pop("maps").items()}
        skipped, unused = tuple(seen.pop("skipped")), tuple(seen.pop("unused"))
        kept = Hits(hits=hits, maps=maps, skipped=skipped, unused=unused, **seen)
        padding, fill, remarks = (tuple(meta.pop(name)) for name in ("padding", "fill", "remarks"))
        return Measured(hits=kept, padding=padding, fill=fill, remarks=remarks, exhibit=exhibit, **meta)
    except _DAMAGED:
        return None


class Cache:
    """Hits by content in pytest's cache directory; does nothing where there is none.

    Parameters
    ----------
    directory
        Where files are kept.
    read
        False to measure anew; what comes of it replaces what was kept.
    """

    def __init__(self, directory: Path | None, read: bool = True) -> None:
        self._directory = directory
        self._read = read

    def get(self, key: str) -> Measured | None:
        """The hits kept under `key`, marked as cached."""
        kept = load(self._directory / f"{key}.npz") if self._directory and self._read else None
        return replace(kept, cached=True) if kept else None

    def put(self, key: str, measured: Measured) -> None:
        """Keep hits under `key`; a cache that cannot be written must not fail a gate that was computed."""
        if self._directory:
            try:
                save(self._directory / f"{key}.npz", measured, pictures=True)
            except OSError:
                return

    def drop(self, key: str) -> None:
        """Keep nothing under `key`."""
        if self._directory:
            (self._directory / f"{key}.npz").unlink(missing_ok=True)


def _digest(hits: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> str:
    return hashlib.sha256(np.packbits(hits, axis=1).tobytes()).hexdigest()
