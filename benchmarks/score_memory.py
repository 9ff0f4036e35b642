"""Peak memory of `d_score` on a Dataset too large to be held in memory: one child process per size.

Run as ``python -m benchmarks.score_memory IMAGES BATCH_SIZE`` it is that child and prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from pytest_dscore.score import d_score, examples

ROOT = Path(__file__).resolve().parents[1]

_SIDE = 128
_STATUS = Path("/proc/self/status")
_SAMPLE_SECONDS = 0.002


@dataclass(frozen=True)
class Memory:
    """What one child process used, in bytes.

    Parameters
    ----------
    images, batch_size
        Size of the Dataset and of a forward pass.
    data
        Decoded images.
    anonymous
        Peak of the process's own memory during `d_score`, above what it had before. None without ``/proc``.
    resident
        The same for all its resident pages. These include pages of the temporary file that holds the decoded images,
        which the kernel drops when memory is short.
    """

    images: int
    batch_size: int
    data: int
    anonymous: int | None
    resident: int


class Noise(torch.utils.data.Dataset[tuple[Tensor, int]]):
    """Images made on the fly, so that the Dataset itself takes no memory.

    Parameters
    ----------
    count
        Number of images.
    """

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        return torch.randn((3, _SIDE, _SIDE), generator=torch.Generator().manual_seed(row)), row % 10


class Peak:
    """Context manager that samples a process's own (anonymous) memory in a thread."""

    def __init__(self) -> None:
        self.before = self.most = _status("RssAnon") or 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_SAMPLE_SECONDS):
            self.most = max(self.most, _status("RssAnon") or 0)


def _status(field: str) -> int | None:
    """One field of ``/proc/self/status`` in bytes, None where there is none."""
    if not _STATUS.exists():
        return None
    lines = (line.split() for line in _STATUS.read_text().splitlines())
    return next((int(words[1]) * 1024 for words in lines if words[0] == f"{field}:"), None)


def _high_water() -> int:
    """Most resident memory so far, in bytes."""
    import resource

    # A child inherits its parent's ru_maxrss when it is spawned; the kernel's high-water mark begins anew.
    unit = 1 if sys.platform == "darwin" else 1024
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _child(count: int, batch_size: int) -> Memory:
    torch.set_num_threads(1)
    examples.IN_MEMORY_BYTES = 2**20
    model = nn.Sequential(
        nn.Conv2d(3, 8, 5, 4, 2), nn.ReLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(4096, 10)
    )
    d_score(model, Noise(2 * batch_size), batch_size=batch_size)  # everything that is loaded or allocated but once
    before = _high_water()
    with Peak() as peak:
        d_score(model, Noise(count), batch_size=batch_size)
    anonymous = None if _status("RssAnon") is None else peak.most - peak.before
    return Memory(count, batch_size, count * 3 * _SIDE**2 * 4, anonymous, _high_water() - before)


def measure_memory(count: int, batch_size: int) -> Memory:
    """Score `count` images in a process of its own and report its peak memory."""
    command = [sys.executable, "-m", "benchmarks.score_memory", str(count), str(batch_size)]
    # Work space that BLAS keeps for every thread would be counted as ours.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    return Memory(**json.loads(done.stdout))


if __name__ == "__main__":
    print(json.dumps(asdict(_child(int(sys.argv[1]), int(sys.argv[2])))))
