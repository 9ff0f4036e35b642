"""From whatever a model returns to predicted classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from pytest_dscore.errors import DScoreError


def read_logits(output: Any, batch: int) -> Tensor:
    """Find the logits in a model's output.

    Parameters
    ----------
    output
        A tensor; a tuple or list whose first entry is one; a mapping with ``logits`` or a single tensor; or an object
        with an attribute ``logits``.
    batch
        Number of examples that went in.

    Returns
    -------
    Tensor, (batch, c)
        c = 1 for a one-logit binary head.

    Raises
    ------
    DScoreError
        If no floating point tensor of that many rows is found.
    """
    logits = _find(output)
    if not logits.is_floating_point():
        raise DScoreError(f"the model returned {str(logits.dtype).removeprefix('torch.')}: return logits, not classes")
    if logits.ndim == 1 and len(logits) == batch:
        return logits[:, None]
    if logits.ndim >= 2 and len(logits) == batch and logits.shape[1] > 0 and logits.shape[2:].numel() == 1:
        return logits.flatten(1)
    raise DScoreError(
        f"the model returned a tensor of shape {tuple(logits.shape)} for {batch} images: expected ({batch}, classes)"
    )


def _find(output: Any) -> Tensor:
    if isinstance(output, Tensor):
        return output
    found = getattr(output, "logits", None)
    if isinstance(output, Mapping):
        tensors = [value for value in output.values() if isinstance(value, Tensor)]
        found = output.get("logits", tensors[0] if len(tensors) == 1 else None)
    elif not isinstance(found, Tensor) and isinstance(output, (tuple, list)) and output:
        found = output[0]
    if isinstance(found, Tensor):
        return found
    keys = f" with the keys {sorted(map(str, output))}" if isinstance(output, Mapping) else ""
    raise DScoreError(
        f"the model returned a {type(output).__name__}{keys}: "
        "expected logits as a tensor, first in a tuple, under the key 'logits' or as the attribute .logits"
    )


def predictions(logits: Tensor, situation: str) -> Tensor:
    """Predicted classes (B,): the largest logit, or for one logit whether it is above 0.

    Raises
    ------
    DScoreError
        If a logit is NaN: that is a broken model, not a class.
    """
    if torch.isnan(logits).any():
        raise DScoreError(
            f"the model's logits are NaN {situation}: a NaN is no prediction, find the layer that makes it"
        )
    return (logits[:, 0] > 0).long() if logits.shape[1] == 1 else logits.argmax(dim=1)
