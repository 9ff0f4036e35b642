"""Whatever a user calls a model, asked for its predictions; and what makes two of them the same model."""

from __future__ import annotations

import copy
import hashlib
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pytest_dscore.errors import DScoreError
from pytest_dscore.gates.fingerprint import module_fingerprint
from pytest_dscore.gates.references import describe
from pytest_dscore.score.guard import borrowed
from pytest_dscore.score.outputs import predictions, read_logits


def predict(model: Any, inputs: Any, batch_size: int) -> NDArray[Any]:
    """Return predicted labels, shape (n,).

    Parameters
    ----------
    model
        A torch module that returns logits, (batch, classes) or one logit for two classes; an estimator with
        ``predict``; or a function of the inputs that returns labels.
    inputs
        All inputs of the hold-out, in order.
    batch_size
        Examples that a torch module sees at a time.

    Raises
    ------
    DScoreError
        It is none of these, it raises, or it returns something else.
    """
    if not isinstance(batch_size, int) or batch_size < 1:
        raise DScoreError(f"batch_size = {batch_size!r} must be a whole number >= 1")
    if isinstance(model, nn.Module):
        return _from_module(model, inputs, batch_size)
    try:
        function = getattr(model, "predict", model)
    except Exception as error:  # of a property
        raise DScoreError(f"predict of the {type(model).__name__} raised {describe(error)}") from error
    if isinstance(model, type) or not callable(function):
        raise DScoreError(
            f"a {type(model).__name__} makes no predictions: give a torch module, an estimator with predict, or a "
            "function of the inputs that returns labels"
        )
    try:
        return as_labels(function(copy.deepcopy(inputs)), "the model returned")
    except DScoreError:
        raise
    except Exception as error:
        raise DScoreError(f"the model raised {describe(error)}") from error


def _from_module(model: nn.Module, inputs: Any, batch_size: int) -> NDArray[Any]:
    try:
        data = inputs if isinstance(inputs, torch.Tensor) else torch.as_tensor(np.asarray(inputs))
    except (TypeError, ValueError, RuntimeError) as error:
        raise DScoreError(
            f"the inputs of the hold-out do not make one tensor ({error}): predict yourself and give predictions"
        ) from error
    found = []
    with borrowed(model, "auto") as device, torch.inference_mode():
        for start in range(0, len(data), batch_size):
            # A copy: a model that works in place must not change the hold-out for the tests to come.
            batch = data[start : start + batch_size].clone().to(device)
            try:
                output = model(batch)
            except Exception as error:
                raise DScoreError(f"the model raised {describe(error)}") from error
            logits = read_logits(output, len(batch))
            found.append(predictions(logits, f"for example {start} and those after it").cpu().numpy())
    return np.concatenate(found)


def as_labels(values: Any, what: str) -> NDArray[Any]:
    """Return labels as an array of shape (n,); `what` begins the message where they are not."""
    found = _as_array(values, what)
    if found.dtype.kind not in _LABELS:
        raise DScoreError(f"{what} values of type {found.dtype}: give labels that are numbers, text or bytes")
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1:
        raise DScoreError(f"{what} an array of shape {found.shape}: one label per example is needed, not scores")
    if found.dtype.kind == "f" and not bool(np.isfinite(found).all()):
        raise DScoreError(f"{what} NaN or infinity for example {int(np.argmin(np.isfinite(found)))}, which is no label")
    if found.dtype.kind == "O" and any(map(_is_missing, found)):
        raise DScoreError(f"{what} labels that are missing (None or NaN)")
    return found


#: Kinds of NumPy's types that a label may have: no dates, no complex numbers, no records of several fields.
_LABELS = "biufOUS"


def _as_array(values: Any, what: str) -> NDArray[Any]:
    if np.ma.is_masked(values):
        raise DScoreError(f"{what} a masked array that lacks values: one label per example is needed")
    try:
        if isinstance(values, torch.Tensor):
            values = values.detach().cpu().numpy()
        elif hasattr(values, "to_numpy"):
            values = values.to_numpy()
        return np.asarray(values)
    except ValueError as error:
        raise DScoreError(f"{what} rows that differ in length: one label per example is needed") from error
    except Exception as error:  # of somebody else's conversion
        raise DScoreError(f"{what} a {type(values).__name__} that makes no array: {describe(error)}") from error


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # pandas.NA is neither equal to itself nor not
        return True


def wrong_where(predicted: NDArray[Any], labels: NDArray[Any], what: str) -> NDArray[np.bool_]:
    """Return the outcome vector, True where a prediction is not the label.

    Raises
    ------
    DScoreError
        Another number of predictions than labels, or predictions of a kind that never equal a label.
    """
    if len(predicted) != len(labels):
        raise DScoreError(f"{what} {len(predicted):,} predictions for {len(labels):,} examples: give one for each")
    kinds = _kind(predicted), _kind(labels)
    if kinds[0] != kinds[1]:
        raise DScoreError(
            f"{what} predictions such as {predicted[0]!r} where the labels are such as {labels[0]!r}: none could ever "
            "be right, so give predictions of the labels' own kind"
        )
    if predicted.dtype.kind == "b" and labels.dtype.kind in "iuf" and not bool(np.isin(labels, (0, 1)).all()):
        other = labels[~np.isin(labels, (0, 1))][0]
        raise DScoreError(
            f"{what} True and False where the labels are numbers such as {other}: give labels as predictions, or "
            "give outcomes=... if True says that the model is wrong"
        )
    if predicted.dtype.kind == "f" and labels.dtype.kind in "biu" and bool((predicted != np.rint(predicted)).any()):
        fraction = predicted[predicted != np.rint(predicted)][0]
        raise DScoreError(
            f"{what} fractions such as {fraction!r} where the labels are whole numbers: give labels, not probabilities"
        )
    return np.asarray(predicted != labels, dtype=np.bool_)


def _kind(values: NDArray[Any]) -> str:
    """What values are as labels: numbers, text or bytes; those of an object array by their first."""
    if values.dtype.kind == "O":
        first = values[0]
        return "text" if isinstance(first, str) else "bytes" if isinstance(first, bytes) else "numbers"
    return {"U": "text", "S": "bytes"}.get(values.dtype.kind, "numbers")


def model_key(model: Any, outcomes: NDArray[np.bool_], root: Path, label: str = "") -> str:
    """Return what identifies a model on record, from its outcomes in the order of `HoldoutIdentity.ordered`.

    A torch module is known by its weights and code. Anything else is known by its answers alone: what an estimator or a
    function will answer cannot be read off it, and a fingerprint that misses a change would show an old score. `label`
    is what those are called.
    """
    if isinstance(model, nn.Module):
        return module_fingerprint(model, root)
    own = getattr(model, "__qualname__", "") if inspect.isroutine(model) else type(model).__qualname__
    return answers_key(label or own or type(model).__qualname__, outcomes)


def answers_key(name: str, outcomes: NDArray[np.bool_]) -> str:
    """Return a name with the digest of an outcome vector, in the order of `HoldoutIdentity.ordered`."""
    return f"{name}@{hashlib.sha256(np.packbits(outcomes).tobytes()).hexdigest()[:16]}"
