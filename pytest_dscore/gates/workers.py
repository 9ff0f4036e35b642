"""What a worker of pytest-xdist must know: that it shares the machine."""

from __future__ import annotations

import os
from typing import Any

import pytest


def worker_threads(workers: int) -> int:
    """Threads for each of several workers on this machine, at least 1."""
    return max(1, (os.cpu_count() or 1) // workers)


def threads_here(config: pytest.Config) -> int | None:
    """Threads that this process should use; None where it is no worker, and has the machine to itself."""
    worker: dict[str, Any] = getattr(config, "workerinput", {})
    return worker_threads(int(worker["workercount"])) if worker else None
