"""What is finished, kept by content: weights and hits under a digest of everything that decides them.

A file is written beside its place and then renamed, so that a kill leaves either the whole file or none that counts.
Files that cannot be read count as missing, and are made again.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from benchmarks.study.measured import Hits, Measured, Recipe
from pytest_dscore.writing import write_whole

DEFAULT = Path.home() / ".cache" / "pytest-dscore" / "study"

#: Change it when files are laid out otherwise.
LAYOUT = 1


def key(recipe: Recipe, **decisive: Any) -> str:
    """Name a result: SHA-256 over the recipe and all else that decides the outcome, as JSON."""
    text = json.dumps([LAYOUT, asdict(recipe), decisive], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Store:
    """A folder of results.

    Parameters
    ----------
    folder
        Made when first written to.
    """

    folder: Path = DEFAULT

    def keep_weights(self, name: str, weights: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Write weights, with facts to look up later."""
        plain = {key: tensor.contiguous() for key, tensor in weights.items()}
        self._write(self._weights(name), save(plain, {"facts": json.dumps({**facts, **_versions()})}))

    def weights(self, name: str) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Weights and facts, or None where there are none that can be read."""
        try:
            content = self._weights(name).read_bytes()
            head = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
            return load(content), json.loads(head["__metadata__"]["facts"])
        except (OSError, SafetensorError, ValueError, KeyError):
            return None

    def keep_hits(self, name: str, measured: Measured) -> None:
        """Write hits, a bit each."""
        passes: dict[str, Hits] = {"clean": measured.clean}
        passes |= {f"mutants/{n}/{operator}/{seed}": hits for (n, operator, seed), hits in measured.mutants.items()}
        passes |= {f"shifts/{n}/{pad}": hits for (n, pad), hits in measured.shifts.items()}
        passes |= {f"unseen/{key}": hits for key, hits in measured.unseen.items()}
        arrays: dict[str, Any] = {key: np.packbits(hits, axis=-1) for key, hits in passes.items()}
        facts = {"recipe": asdict(measured.recipe), "classes": measured.classes, "size": measured.size, **_versions()}
        buffer = io.BytesIO()
        np.savez(buffer, labels=measured.labels, facts=np.array(json.dumps(facts)), **arrays)
        self._write(self._hits(name), buffer.getvalue())

    def hits(self, name: str) -> Measured | None:
        """Hits, or None where there are none that can be read."""
        try:
            with np.load(io.BytesIO(self._hits(name).read_bytes()), allow_pickle=False) as file:
                return _measured({key: file[key] for key in file.files})
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def _weights(self, name: str) -> Path:
        return self.folder / "weights" / f"{name}.safetensors"

    def _hits(self, name: str) -> Path:
        return self.folder / "hits" / f"{name}.npz"

    def _write(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)


def _measured(arrays: dict[str, Any]) -> Measured:
    facts = json.loads(str(arrays.pop("facts")))
    labels = arrays.pop("labels")
    mutants: dict[tuple[int, str, int], Hits] = {}
    shifts: dict[tuple[int, int], Hits] = {}
    unseen: dict[str, Hits] = {}
    passes = {key: np.unpackbits(bits, axis=-1, count=len(labels)).astype(bool) for key, bits in arrays.items()}
    clean = passes.pop("clean")
    for key, hits in passes.items():
        kind, *rest = key.split("/")
        if kind == "mutants":
            mutants[int(rest[0]), rest[1], int(rest[2])] = hits
        elif kind == "shifts":
            shifts[int(rest[0]), int(rest[1])] = hits
        else:
            unseen[rest[0]] = hits
    return Measured(Recipe(**facts["recipe"]), labels, facts["classes"], clean, mutants, shifts, unseen, facts["size"])


def _versions() -> dict[str, str]:
    return {"torch": str(torch.__version__), "numpy": np.__version__}
