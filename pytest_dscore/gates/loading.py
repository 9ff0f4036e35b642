"""From the settings of a model to a loaded module and checked data; bad input becomes one sentence."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Mapping
from pathlib import Path

import safetensors
import torch
from safetensors.torch import load_file
from torch import nn

from pytest_dscore.errors import DScoreError, first_line
from pytest_dscore.gates.references import call
from pytest_dscore.score.examples import Examples, load_examples
from pytest_dscore.score.guard import refuse_without_values, unwrap
from pytest_dscore.settings import ModelSettings

_WRAPPERS = ("state_dict", "model_state_dict")
_PREFIXES = ("module.", "_orig_mod.")


def load_model(settings: ModelSettings, root: Path) -> nn.Module:
    """Build the model and load its weights.

    Raises
    ------
    DScoreError
        The factory is missing, raises or returns no Module; the weights are missing, damaged, unsafe or do not fit.
    """
    model = call(settings.factory, "factory")
    if not isinstance(model, nn.Module):
        raise DScoreError(
            f"factory '{settings.factory}' returned a {type(model).__name__}: it must return a torch.nn.Module"
        )
    if settings.weights is not None:
        _fit(unwrap(model), read_weights(root / settings.weights), settings.weights)
    refuse_without_values(model)
    return model


def load_data(settings: ModelSettings) -> Examples:
    """Call the data function and check what it returns.

    Raises
    ------
    DScoreError
        The function is missing or raises, or its data cannot be scored (see `load_examples`).
    """
    data = call(settings.data, "data")
    try:
        if isinstance(data, tuple) or (isinstance(data, list) and len(data) == 2 and hasattr(data[0], "shape")):
            if len(data) != 2:
                raise DScoreError(f"it returned {len(data)} values: return a Dataset or the pair (images, labels)")
            return load_examples(*data)
        return load_examples(data)
    except DScoreError as error:
        raise DScoreError(f"data '{settings.data}': {error}") from error


def read_weights(path: Path) -> Mapping[str, torch.Tensor]:
    """Read a state dict from .safetensors, or from .pt/.pth without running any code in it.

    Raises
    ------
    DScoreError
        The file is missing, damaged, of an unknown kind, or a pickle that would run code.
    """
    if not path.is_file():
        raise DScoreError(f"weights {path} do not exist: check the path, which is relative to pyproject.toml")
    if path.suffix == ".safetensors":
        try:
            return load_file(path)
        except (safetensors.SafetensorError, OSError, ValueError) as error:
            raise DScoreError(
                f"weights {path} are truncated or no safetensors file ({error}): write them anew"
            ) from error
    if path.suffix in (".pt", ".pth"):
        return _read_torch(path)
    raise DScoreError(f"weights {path} end in '{path.suffix}': give a .safetensors, .pt or .pth file")


def _read_torch(path: Path) -> Mapping[str, torch.Tensor]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        code = re.search(r"GLOBAL ([\w.]+)", str(error))
        what = (
            f"a pickle that would run code ({code[1]})" if code else "a damaged file, or a pickle that would run code"
        )
        raise DScoreError(
            f"weights {path} are refused: {what}; where you trust it, load the model yourself once and convert it with "
            "safetensors.torch.save_file(model.state_dict(), 'weights.safetensors')"
        ) from error
    except Exception as error:  # The unpickler raises whatever damaged bytes lead it to.
        raise DScoreError(
            f"weights {path} are truncated or no torch file ({first_line(error)}): write them anew"
        ) from error
    for key in _WRAPPERS:
        if isinstance(loaded, Mapping) and isinstance(loaded.get(key), Mapping):
            loaded = loaded[key]
    if not isinstance(loaded, Mapping) or not all(
        isinstance(name, str) and (isinstance(value, torch.Tensor) or name.endswith("_extra_state"))
        for name, value in loaded.items()
    ):
        raise DScoreError(
            f"weights {path} hold no state dict (a mapping of names to tensors): save model.state_dict(), not a "
            "checkpoint or a model"
        )
    return loaded


def _fit(model: nn.Module, state: Mapping[str, torch.Tensor], path: str) -> None:
    for prefix in _PREFIXES:
        fits = state.keys() == model.state_dict().keys()
        if state and not fits and all(name.startswith(prefix) for name in state):
            state = {name.removeprefix(prefix): value for name, value in state.items()}
    try:
        model.load_state_dict(state, strict=True)
    except Exception as error:
        problems = [line.strip() for line in str(error).splitlines()[1:]]
        shown = " ".join(problems[:3]) + (f" and {len(problems) - 3} more" if len(problems) > 3 else "")
        raise DScoreError(
            f"weights '{path}' do not fit the model that the factory builds ({type(model).__name__}): {shown or error}"
        ) from error
