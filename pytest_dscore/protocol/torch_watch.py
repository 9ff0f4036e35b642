"""See which rows train a torch module while a protocol runs; used to name a leak, never to find one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .duplicates import row_hashes
from .inputs import is_sparse

# Enough for every row of a small set in many epochs; a long training must not be slowed down by hashing.
_MOST_ROWS = 200_000


@dataclass
class TrainedModule:
    """A module that gradients flowed into.

    Parameters
    ----------
    module
        The module; outermost ones only.
    seen
        Hashes of the rows whose outputs got a gradient.
    position
        How many other fits had begun when it was last trained.
    step
        Number of the last gradient that reached it, over all modules.
    """

    module: Any
    seen: set[bytes] = field(default_factory=set)
    position: int = 0
    step: int = 0


@dataclass
class Training:
    """What was seen of all modules.

    Parameters
    ----------
    modules
        Those that were trained, in the order in which they were last trained.
    watched
        Hashes of the rows that went through a module both before the last gradient of all and after it, and that none
        was trained on: where test rows are predicted last, they were looked at during training.
    """

    modules: list[TrainedModule] = field(default_factory=list)
    watched: set[bytes] = field(default_factory=set)


class _Recorder:
    """The hook on every module's forward pass, and what it has seen."""

    def __init__(self, width: int, position: Callable[[], int], tensor: Any) -> None:
        self.width, self.position, self.tensor = width, position, tensor
        self.modules: dict[int, TrainedModule] = {}
        #: Of each row, how many gradients had come when it went through a module first, and last.
        self.passed: dict[bytes, tuple[int, int]] = {}
        self.hashed = self.steps = 0

    def watch(self, module: Any, inputs: Any, output: Any) -> None:
        """Note the rows of one forward pass, and wait for the gradient."""
        made = _first_tensor(output, self.tensor)
        given = inputs[0] if inputs and isinstance(inputs[0], self.tensor) else None
        if made is None or given is None or not made.ndim or not given.ndim or self.hashed > _MOST_ROWS:
            return
        if len(made) != len(given) or given.numel() != self.width * len(given):
            return
        keys: NDArray[Any] = np.array(single_hashes(given.detach().cpu().numpy()))
        self.hashed += len(keys)
        now = self.steps
        self.passed.update({key: (self.passed.get(key, (now, now))[0], now) for key in keys.tolist()})
        if made.requires_grad:
            made.register_hook(lambda grad: self._reached(module, keys, grad))

    def _reached(self, module: Any, keys: NDArray[Any], grad: Any) -> None:
        self.steps += 1
        record = self.modules.setdefault(id(module), TrainedModule(module))
        record.seen.update(keys[grad.reshape(len(grad), -1).ne(0).any(dim=1).cpu().numpy()].tolist())
        record.position, record.step = self.position(), self.steps

    def result(self) -> Training:
        """What was seen, of outermost modules only."""
        inner = {id(part) for record in self.modules.values() for part in list(record.module.modules())[1:]}
        outer = [record for key, record in self.modules.items() if key not in inner]
        used = {key for record in outer for key in record.seen}
        watched = {key for key, (first, last) in self.passed.items() if first < self.steps == last} - used
        return Training(sorted(outer, key=lambda record: (record.position, record.step)), watched)


@contextmanager
def watch_training(X: Any, position: Callable[[], int]) -> Iterator[Callable[[], Training]]:
    """Record the rows that torch modules are trained on; nothing where torch is not imported.

    A row counts where a gradient reaches the module's output for it: rows that are only predicted do not, though they
    go through the module too, nor do rows of a batch that the loss leaves out.

    Parameters
    ----------
    X
        The data, n rows. Inputs with another number of values a row are passed over (inner features).
    position
        Number of other fits so far.

    Yields
    ------
    callable
        Gives what was seen so far.
    """
    width = _width(X)
    if "torch" not in sys.modules or not width:
        yield Training
        return
    import torch
    from torch.nn.modules.module import register_module_forward_hook

    recorder = _Recorder(width, position, torch.Tensor)
    handle = register_module_forward_hook(recorder.watch)
    try:
        yield recorder.result
    finally:
        handle.remove()


def single_hashes(X: Any) -> list[bytes]:
    """One hash a row, equal for rows that are equal in single precision, in which modules are trained.

    Parameters
    ----------
    X
        Array, sparse matrix or frame of numbers, n rows, any shape.
    """
    if hasattr(X, "columns"):
        X = np.stack([np.asarray(X[name]) for name in X.columns], axis=1)
    values: NDArray[Any] = np.asarray(X.toarray() if is_sparse(X) else X)
    with np.errstate(over="ignore"):
        return row_hashes(values.reshape(len(values), -1).astype(np.float32))


def _width(X: Any) -> int:
    """Values in a row of numbers; 0 where some are not numbers, so that no module can have been given them."""
    columns = [np.asarray(X[name]) for name in X.columns] if hasattr(X, "columns") else [X]
    if not all(hasattr(c, "dtype") and getattr(c.dtype, "kind", "") in "fiub" for c in columns):
        return 0
    return len(columns) if hasattr(X, "columns") else int(np.prod(X.shape[1:]))


def _first_tensor(output: Any, tensor: Any) -> Any:
    if isinstance(output, dict):
        output = tuple(output.values())
    if isinstance(output, (tuple, list)):
        output = next((part for part in output if isinstance(part, tensor)), None)
    return output if isinstance(output, tensor) else None
