"""Costs kept from run to run, in one file for each hold-out and its terms.

The file is a cache and is never trusted further than it can be checked. It is bound to the hold-out, n, epsilon, delta,
the models in their order (by the digests of their outcomes) and the version of this format; what does not fit is
computed anew, from the first use on that differs. A checksum over the content tells a damaged file from a whole one.

Whoever edits the file can also write the checksum that fits: there is no secret here, and someone who may write to the
cache may usually change the ledger or the code as well. Against the cheap form of it, the costs of a few models are
computed again each time, of others with every new model, and the file is dropped if they differ. Lowering all costs is
noticed at once, lowering half of them in all but about one of 2^8 runs, lowering a single model's seldom, which gains
no more than that model. Which parents a file names does not matter as long as each comes before its child, which is
checked of all: any such tree gives a bound.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_dscore.holdout.costs import FIRST, Costing, Costs
from pytest_dscore.holdout.ledger.record import Use
from pytest_dscore.writing import write_whole

_FORMAT = 1
_CHECKED = 8  # models whose costs are computed again
_DIGEST = 32


class Kept:
    """The costs of a hold-out's models, from the file as far as they are there.

    Parameters
    ----------
    directory
        Where the file lies; None: there is none.
    own
        Uses in the order of the record, more than `FIRST`.
    costing
        Of these uses.
    """

    def __init__(self, directory: Path | None, own: Sequence[Use], costing: Costing) -> None:
        self._costing = costing
        self._keys = np.frombuffer(b"".join(bytes.fromhex(use.key) for use in own), np.uint8).reshape(-1, _DIGEST)
        anchor = costing.anchor
        self._bound_to = {
            "format": _FORMAT,
            "holdout": own[0].holdout,
            "n": costing.n,
            "deviation": costing.deviation,
            "anchor": anchor.model,
            "offsets": anchor.offsets.tolist(),
        }
        name = hashlib.sha256(repr((own[0].holdout, costing.deviation, costing.delta)).encode()).hexdigest()
        self._path = None if directory is None else directory / f"costs-{name[:32]}.npz"

    def costs(self) -> Costs:
        """Return the costs of all uses, and keep them."""
        found = self._found()
        costs = self._costing.extended(found)
        if costs.k > found.k and self._path is not None:
            self._write(self._path, costs)
        return costs

    def _found(self) -> Costs:
        """Return the costs on file of the first uses that are the same; of none where anything is amiss."""
        none = self._costing.none()
        content = _read(self._path)
        if content is None or bytes(content.pop("bound_to", b"")) != self._header():
            return none
        keys = content.pop("keys", np.zeros((0, _DIGEST), np.uint8))
        try:
            costs = Costs(**content)
        except TypeError:
            return none
        if keys.dtype != np.uint8 or keys.shape != (len(keys), _DIGEST) or not _alike(costs, none, len(keys)):
            return none
        few = min(len(keys), len(self._keys))
        differ = (keys[:few] != self._keys[:few]).any(axis=1)
        same = int(np.argmax(differ)) if differ.any() else few
        if same < FIRST:  # another anchor
            return none
        costs = costs.first(same)
        return costs if self._costing.agrees(costs, self._sample(same)) else none

    def _sample(self, k: int) -> NDArray[np.int64]:
        """Return models to be checked, others each time a model is added."""
        rng = np.random.default_rng(np.frombuffer(self._keys[-1].tobytes(), np.uint32))
        return np.unique(rng.integers(0, k, _CHECKED))

    def _header(self) -> bytes:
        return json.dumps(self._bound_to, sort_keys=True).encode()

    def _write(self, path: Path, costs: Costs) -> None:
        arrays: dict[str, NDArray[Any]] = {one.name: getattr(costs, one.name) for one in fields(costs)}
        arrays |= {"keys": self._keys, "bound_to": np.frombuffer(self._header(), np.uint8)}
        buffer = io.BytesIO()
        np.savez(buffer, checksum=np.frombuffer(_checksum(arrays), np.uint8), **arrays)  # type: ignore[arg-type]
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, buffer.getvalue())


def _read(path: Path | None) -> dict[str, NDArray[Any]] | None:
    """Return the arrays of a file whose checksum fits; None where there is no such file."""
    if path is None:
        return None
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as archive:
            content = {name: archive[name] for name in archive.files}
    except Exception:  # noqa: BLE001  whatever a damaged zip file or header raises: the file is no use
        return None
    checksum = content.pop("checksum", None)
    return content if checksum is not None and checksum.tobytes() == _checksum(content) else None


def _checksum(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype.str} {arrays[name].shape}\n".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.digest()


def _alike(costs: Costs, none: Costs, k: int) -> bool:
    """Whether arrays have the types and shapes of k models' costs and hold nothing that no cost can be."""
    for one in fields(costs):
        array, model = getattr(costs, one.name), getattr(none, one.name)
        if array.dtype != model.dtype or array.shape != (k, *model.shape[1:]):
            return False
        if array.dtype == np.float64 and not bool((array <= 0).all()):  # nor nan
            return False
    return True
