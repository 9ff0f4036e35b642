"""A declared hold-out's examples, loaded once: inputs, labels, and what they are recognised by."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pytest_dscore.errors import DScoreError, first_line
from pytest_dscore.gates.predicting import as_labels
from pytest_dscore.gates.references import call, importable
from pytest_dscore.holdout.ledger import HoldoutIdentity
from pytest_dscore.score.guard import random_states_kept


@dataclass(frozen=True)
class HoldoutData:
    """The examples of one hold-out.

    Parameters
    ----------
    inputs
        As the data function returned them; those of a Dataset stacked, where they are of one shape.
    labels
        Shape (n,).
    identity
        What the ledger knows them by.
    """

    inputs: Any = field(repr=False)
    labels: NDArray[Any] = field(repr=False)
    identity: HoldoutIdentity


def load_holdout(name: str, reference: str, root: Path) -> HoldoutData:
    """Call the data function of a hold-out and fingerprint its examples.

    Raises
    ------
    DScoreError
        The function is missing or raises, or returns no examples with one label each.
    """
    with importable(root), random_states_kept():
        data = call(reference, "data")
        try:
            inputs, labels = _pair(data)
            found = as_labels(labels, "the labels are")
            if not len(found):
                raise DScoreError("it returned no example")
            return HoldoutData(inputs, found, HoldoutIdentity.of(inputs, found, name=name))
        except DScoreError as error:
            raise DScoreError(f"data '{reference}': {error}") from error


def _pair(data: Any) -> tuple[Any, Any]:
    if isinstance(data, (tuple, list)) and len(data) == 2:
        return data[0], data[1]
    if isinstance(data, (tuple, list)):
        raise DScoreError(f"it returned {len(data)} values: return the pair (inputs, labels) or a Dataset")
    if not (hasattr(data, "__getitem__") and hasattr(data, "__len__")) or hasattr(data, "columns"):
        raise DScoreError(
            f"it returned a {type(data).__name__}: return the pair (inputs, labels) or a map-style Dataset"
        )
    inputs, labels = [], []
    for row in range(len(data)):
        try:
            item = data[row]
        except Exception as error:
            raise DScoreError(f"the Dataset raised {type(error).__name__} on row {row}: {first_line(error)}") from error
        if not isinstance(item, (tuple, list)) or len(item) < 2:
            raise DScoreError(
                f"row {row} of the Dataset is a {type(item).__name__}: each row must be an (input, label) pair"
            )
        inputs.append(item[0])
        labels.append(item[1])
    return _stacked(inputs), np.asarray(labels)


def _stacked(inputs: list[Any]) -> Any:
    if inputs and all(isinstance(one, torch.Tensor) and one.shape == inputs[0].shape for one in inputs):
        return torch.stack(inputs)
    if inputs and all(isinstance(one, np.ndarray) and one.shape == inputs[0].shape for one in inputs):
        return np.stack(inputs)
    return inputs
