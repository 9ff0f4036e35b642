"""Borrowing a model: evaluation mode and device for the time of scoring, everything as it was afterwards."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import chain

import numpy as np
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parameter import is_lazy

from pytest_dscore.errors import DScoreError, SettingsError


def unwrap(model: nn.Module) -> nn.Module:
    """The plain module inside torch.compile, DataParallel or DistributedDataParallel.

    A compiled graph would not see the hooks that mask its layers.
    """
    while True:
        wrapped = isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel))
        inner = getattr(model, "module" if wrapped else "_orig_mod", None)
        if not isinstance(inner, nn.Module):
            return model
        model = inner


@contextmanager
def borrowed(model: nn.Module, device: str) -> Iterator[torch.device]:
    """Put a model into evaluation mode on `device`; restore mode, device and all random states on leaving.

    Yields
    ------
    torch.device
        Where the model now is.

    Raises
    ------
    SettingsError
        If `device` is unknown or not there.
    DScoreError
        If a batch-norm layer would still use the statistics of the batch.
    """
    modes = [(module, module.training) for module in model.modules()]
    with random_states_kept(), _uncompiled(model), _buffers_kept(model):
        try:
            model.eval()
            _refuse_batch_statistics(model)
            with _on_device(model, device) as place, _weights_untouched(model):
                yield place
        finally:
            # Through train() where it is the layer's own: some fold or unfold weights when their mode changes.
            for module, training in modes:
                if type(module).train is not nn.Module.train:
                    module.train(training)
            for module, training in modes:
                module.training = training


@contextmanager
def _uncompiled(model: nn.Module) -> Iterator[None]:
    """Let compiled parts of a model run as plain code: a graph that exists already would not see the hooks."""
    compiled = (hasattr(m, "_orig_mod") or getattr(m, "_compiled_call_impl", None) for m in model.modules())
    with torch.compiler.set_stance("force_eager") if any(compiled) else nullcontext():
        yield


@contextmanager
def _buffers_kept(model: nn.Module) -> Iterator[None]:
    """Put back buffers that a forward pass changes, such as a counter of steps."""
    kept = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    try:
        yield
    finally:
        for buffer, before in kept:
            if not torch.equal(buffer.to(before.device), before):
                with torch.no_grad():
                    buffer.copy_(before)


@contextmanager
def _weights_untouched(model: nn.Module) -> Iterator[None]:
    versions = [(name, weight, weight._version) for name, weight in model.named_parameters()]
    yield
    for name, weight, version in versions:
        if weight._version != version:
            raise DScoreError(f"the model changes its own weight '{name}' in forward: its score means nothing")


@contextmanager
def random_states_kept() -> Iterator[None]:
    """Restore the states of Python's, NumPy's and torch's global random generators on leaving."""
    python_state, numpy_state = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
            yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)


def refuse_without_values(model: nn.Module) -> None:
    """Raise DScoreError where weights are on the meta device, or lazy and not yet made."""
    if any(is_lazy(tensor) or tensor.is_meta for tensor in _tensors(model)):
        raise DScoreError(
            "the model has weights without values (meta or lazy): run it once or load them before scoring"
        )


def choose_device(requested: str, model: nn.Module) -> torch.device:
    """The device to score on: ``auto`` keeps a model that is on an accelerator there, else takes CUDA if it can."""
    homes = {tensor.device for tensor in _tensors(model)}
    if requested == "auto":
        accelerators = [home for home in homes if home.type not in ("cpu", "meta")]
        if accelerators:
            return accelerators[0]
        requested = "cuda" if torch.cuda.is_available() else "cpu"
    if str(requested).startswith("meta"):
        raise SettingsError('device = "meta" holds no values: set device = "auto"')
    try:
        device = torch.device(requested)
        # An allocation resolves "cuda" to "cuda:0" and fails now, not in the middle, where the device is not there.
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError, TypeError) as error:
        there = "cpu, cuda" if torch.cuda.is_available() else "cpu"
        raise SettingsError(
            f'device = "{requested}" is not available here (there is: {there}): set device = "auto" or '
            "run where it exists"
        ) from error


@contextmanager
def _on_device(model: nn.Module, requested: str) -> Iterator[torch.device]:
    device = choose_device(requested, model)
    homes = {tensor.device for tensor in _tensors(model)}
    refuse_without_values(model)
    if homes <= {device} or len(homes) > 1:
        # A model spread over several devices moves its own activations; it is fed where its first weights are.
        yield next((tensor.device for tensor in _tensors(model)), device)
        return
    home = homes.pop()
    model.to(device)
    try:
        yield device
    finally:
        model.to(home)


def _tensors(model: nn.Module) -> Iterator[torch.Tensor]:
    return chain(model.parameters(), model.buffers())


def _refuse_batch_statistics(model: nn.Module) -> None:
    for name, module in model.named_modules():
        if isinstance(module, _BatchNorm) and (module.training or module.running_mean is None):
            why = "stays in training mode after model.eval()" if module.training else "keeps no running statistics"
            raise DScoreError(
                f"batch-norm layer '{name}' {why}, so every prediction depends on its batch: "
                "let model.eval() reach it, or build it with track_running_stats=True"
            )
