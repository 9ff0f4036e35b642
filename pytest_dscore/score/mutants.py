"""Mutants without copies: forward hooks that change one region of every convolutional layer's output.

A mutant is the model with `Mutator.region` set. Nothing is copied: the hook writes into the fresh output of the layer,
after the convolution and before whatever follows it (D-Score spec, item 1).
"""

from __future__ import annotations

import zlib
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from pytest_dscore.errors import DScoreError, first_line
from pytest_dscore.score.operators import Operator
from pytest_dscore.score.regions import cell


class Mutator:
    """Context manager that holds the hooks.

    Parameters
    ----------
    model
        Any module with ``nn.Conv2d`` layers inside.
    n
        The grid.
    operator
        What is done to a region.
    seed
        Base of the operators' seeds.

    Attributes
    ----------
    region : (row, col) or None
        The region mutated in the next forward pass; None for the unchanged model.
    maps : dict of str to (height, width)
        Size of the smallest output map seen of every layer that has run, by the layer's name in the model.

    Raises
    ------
    DScoreError
        If the model holds no ``nn.Conv2d``.
    """

    def __init__(self, model: nn.Module, n: int, operator: Operator, seed: int) -> None:
        if any(isinstance(module, torch.jit.ScriptModule) for module in model.modules()):
            raise DScoreError("the model is or holds TorchScript, whose layers cannot be masked: give plain nn.Modules")
        self._layers = {name or "(model)": m for name, m in model.named_modules() if isinstance(m, nn.Conv2d)}
        if not self._layers:
            raise DScoreError(
                f"the model ({type(model).__name__}) has no nn.Conv2d layer: the D-Score masks regions of "
                "convolutional layers"
            )
        self._n = n
        self.operator = operator
        self._seed = seed
        self._handles: list[RemovableHandle] = []
        self.region: tuple[int, int] | None = None
        self.maps: dict[str, tuple[int, int]] = {}

    def __enter__(self) -> Mutator:
        for name, layer in self._layers.items():
            self._handles.append(layer.register_forward_hook(self._hook(name)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        while self._handles:
            self._handles.pop().remove()

    @property
    def skipped(self) -> tuple[str, ...]:
        """Names of the layers whose map is smaller than n x n and is therefore left alone."""
        return tuple(name for name, size in self.maps.items() if min(size) < self._n)

    @property
    def unused(self) -> tuple[str, ...]:
        """Names of the convolutional layers that have not run as modules."""
        return tuple(name for name in self._layers if name not in self.maps)

    def require_a_map(self) -> None:
        """Raise unless at least one layer that ran can be cut into n x n regions."""
        if not self.maps:
            raise DScoreError(
                f"none of the model's {len(self._layers)} nn.Conv2d layers ran as a module: "
                "a scripted, traced or functional forward pass cannot be masked, give the plain nn.Module"
            )
        if len(self.skipped) == len(self.maps):
            height, width = max(self.maps.values(), key=min)
            if min(height, width) < 2:
                raise DScoreError("no feature map of the model is larger than one pixel: there are no regions to mask")
            raise DScoreError(
                f"n = {self._n} is larger than every feature map (the largest is {height} x {width}): set n <= "
                f"{min(height, width)}"
            )

    def _hook(self, name: str) -> Any:
        layer_seed = self._seed ^ zlib.crc32(name.encode())

        def mutate(module: nn.Module, arguments: Any, output: Tensor) -> Tensor:
            height, width = output.shape[-2:]
            self.maps[name] = min(self.maps.get(name, (height, width)), (height, width), key=min)
            if self.region is None or min(height, width) < self._n:
                return output
            row, col = self.region
            rows, columns = cell(self._n, row, col, height, width)
            # A subclass may hand on its input or a kept tensor; only a plain convolution's output is surely its own.
            mutated = output if type(module) is nn.Conv2d else output.clone()
            try:
                self.operator(mutated[..., rows, columns], mutated, layer_seed + 7919 * (row * self._n + col))
            except Exception as error:
                raise DScoreError(
                    f"the mutation operator raised {type(error).__name__}: {first_line(error)}"
                ) from error
            return mutated

        return mutate
