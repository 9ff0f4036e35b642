"""From the settings of a model to a loaded module and checked data; bad input becomes one sentence."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import pickle
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import load_file
from torch import nn

from pytest_dscore.errors import DScoreError
from pytest_dscore.names import unknown_name
from pytest_dscore.score.examples import Examples, load_examples
from pytest_dscore.settings import ModelSettings

_WRAPPERS = ("state_dict", "model_state_dict")
_PREFIXES = ("module.", "_orig_mod.")


@contextmanager
def importable(root: Path) -> Iterator[None]:
    """Put pytest's rootdir first on the import path, so that ``module:callable`` is found from there."""
    sys.path.insert(0, str(root))
    try:
        yield
    finally:
        # The user's code may have changed the path itself.
        if str(root) in sys.path:
            sys.path.remove(str(root))


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
        _fit(model, read_weights(root / settings.weights), settings.weights)
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
        if isinstance(data, (tuple, list)):
            if len(data) != 2:
                raise DScoreError(f"it returned {len(data)} values: return a Dataset or the pair (images, labels)")
            return load_examples(*data)
        return load_examples(data)
    except DScoreError as error:
        raise DScoreError(f"data '{settings.data}': {error}") from error


def call(reference: str, key: str) -> Any:
    """Import ``module:callable`` and call it without arguments.

    Raises
    ------
    DScoreError
        With the user's own file and line where their code raised.
    """
    function = resolve(reference, key)
    try:
        return function()
    except (Exception, SystemExit) as error:
        raise DScoreError(f"{key} '{reference}' raised {_describe(error)}") from error


def resolve(reference: str, key: str) -> Callable[..., Any]:
    """Import ``module:callable``.

    Raises
    ------
    DScoreError
        If the module or the name in it does not exist, the import raises, or the object cannot be called.
    """
    module_name, _, attribute = reference.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise DScoreError(
            f"{key} '{reference}': importing {module_name} raised {_describe(error)} (searched from pytest's rootdir)"
        ) from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            public = [name for name in vars(found) if not name.startswith("_")]
            raise DScoreError(f"{key} '{reference}': in {module_name} the {unknown_name('name', part, public[:40])}")
        found = getattr(found, part)
    if not callable(found):
        raise DScoreError(f"{key} '{reference}' is a {type(found).__name__}: it must be a callable without arguments")
    return found  # type: ignore[no-any-return]


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
            f"weights {path} are truncated or no torch file ({_first_line(error)}): write them anew"
        ) from error
    for key in _WRAPPERS:
        if isinstance(loaded, Mapping) and isinstance(loaded.get(key), Mapping):
            loaded = loaded[key]
    if not isinstance(loaded, Mapping) or not all(
        isinstance(name, str) and isinstance(value, torch.Tensor) for name, value in loaded.items()
    ):
        raise DScoreError(
            f"weights {path} hold no state dict (a mapping of names to tensors): save model.state_dict(), not a "
            "checkpoint or a model"
        )
    return loaded


def _fit(model: nn.Module, state: Mapping[str, torch.Tensor], path: str) -> None:
    for prefix in _PREFIXES:
        if state and all(name.startswith(prefix) for name in state):
            state = {name.removeprefix(prefix): value for name, value in state.items()}
    try:
        model.load_state_dict(state, strict=True)
    except RuntimeError as error:
        problems = [line.strip() for line in str(error).splitlines()[1:]]
        shown = " ".join(problems[:3]) + (f" and {len(problems) - 3} more" if len(problems) > 3 else "")
        raise DScoreError(
            f"weights '{path}' do not fit the model that the factory builds ({type(model).__name__}): {shown or error}"
        ) from error


def model_fingerprint(model: nn.Module, factory: str) -> str:
    """SHA-256 over what decides a model's predictions: weights, buffers, structure and source code.

    The source is that of the factory's module and of every class in the model that torch does not bring; code that
    those modules import from elsewhere is not followed.
    """
    digest = hashlib.sha256()
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers()), **_plain_state(model)}
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(flat.view(torch.uint8).numpy().data if flat.numel() else b"")
    # Some classes print their address.
    digest.update(re.sub(r"0x[0-9a-f]+", "", repr(model)).encode())
    modules = {factory.partition(":")[0], *(type(module).__module__ for module in model.modules())}
    for name in sorted(name for name in modules if name.partition(".")[0] not in ("torch", "torchvision")):
        digest.update(f"{name} {source_of(name)}".encode())
    return digest.hexdigest()


def source_of(module_name: str) -> str:
    """Source code of an imported module; empty where it has none."""
    try:
        return inspect.getsource(sys.modules[module_name])
    except (KeyError, OSError, TypeError):
        return ""


def _plain_state(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value for name, value in model.state_dict().items() if isinstance(value, torch.Tensor)}


def _describe(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if "importlib" not in frame.filename and frame.filename != __file__]
    where = f" ({theirs[-1].filename}:{theirs[-1].lineno})" if theirs else ""
    return f"{type(error).__name__}: {_first_line(error)}{where}"


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0]
