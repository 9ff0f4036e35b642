"""Give every run of somebody's code the same state of torch's global generators, without importing torch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


def run_seeded(run: Callable[[], T], seed: int) -> T:
    """Call `run` with torch's global generators (CPU and CUDA) set from `seed`, and put them back afterwards.

    Layers draw their first weights, and ``DataLoader`` its order, from the global generator, and most training loops
    set it nowhere or once at the top of a script. Python's and NumPy's generators are left alone: code gets `seed` to
    make its own.

    Parameters
    ----------
    run
        Without arguments; called twice where it is the first to import torch, whose generators could not be set before.
    seed
        Integer >= 0.
    """
    known = "torch" in sys.modules
    with _torch_seeded(seed):
        result = run()
    if known or "torch" not in sys.modules:
        return result
    with _torch_seeded(seed):
        return run()


@contextmanager
def _torch_seeded(seed: int) -> Iterator[None]:
    torch: Any = sys.modules.get("torch")
    if torch is None:
        yield
        return
    state = torch.get_rng_state()
    # A protocol may be the first to use a GPU; what its generator was before is then nobody's concern.
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    torch.manual_seed(seed % 2**63)
    try:
        yield
    finally:
        torch.set_rng_state(state)
        if devices is not None:
            torch.cuda.set_rng_state_all(devices)
