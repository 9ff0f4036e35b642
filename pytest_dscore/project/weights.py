"""Which of a project's files of weights belongs to a model, by its header where it has one, and by its name."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from pytest_dscore.project.candidates import Candidate
from pytest_dscore.project.words import MODEL, words

_LARGEST_HEADER = 16 * 1024 * 1024
_STATE = {"optimizer", "optim", "scheduler", "scaler", "ema"}
_CHOSEN = {"best", "final", "model", "weights", "state"}
_CALLED = (".weight", ".bias", ".running_mean")


@dataclass(frozen=True)
class Weights:
    """One file.

    Parameters
    ----------
    path
        Below the project's root.
    tensors
        Names of the tensors in it; None where only running code could tell.
    """

    path: str
    tensors: frozenset[str] | None = field(default=None, repr=False)

    def rank(self, model: Candidate) -> int:
        """Return how likely it belongs to a model; below 0 it does not."""
        said = set(words(PurePosixPath(self.path).stem))
        about = set(words(model.reference))
        strangers = said - about - _CHOSEN - MODEL
        named = 2 * len(said & about) + bool(said & _CHOSEN) - min(len(strangers), 2) - 6 * bool(said & _STATE)
        return 3 + named + self._by_layers(model.layers) + (self.path.endswith(".safetensors"))

    def _by_layers(self, layers: frozenset[str]) -> int:
        if not self.tensors or not layers:
            return 0
        starts = {name.removeprefix("module.").removeprefix("_orig_mod.").partition(".")[0] for name in self.tensors}
        return 6 if starts <= layers else -12


def read_weights(root: Path, paths: tuple[str, ...]) -> list[Weights]:
    """Return the files that can be weights; a .safetensors that holds no layers is data."""
    found = []
    for path in paths:
        tensors = _tensors(root / path) if path.endswith(".safetensors") else None
        if tensors is None or any(name.endswith(_CALLED) for name in tensors):
            found.append(Weights(path, tensors))
    return found


def _tensors(path: Path) -> frozenset[str] | None:
    """Read the names in a safetensors file's header: its length, then JSON."""
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length)) if length <= _LARGEST_HEADER else None
    except (OSError, ValueError, RecursionError, struct.error):
        return None
    return frozenset(header) - {"__metadata__"} if isinstance(header, dict) else None
