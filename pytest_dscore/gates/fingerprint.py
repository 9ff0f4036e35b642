"""What decides a model's predictions, as one digest: the key under which results are kept.

Too much in the digest costs time, too little lets a changed model pass on an old result; so whatever cannot be digested
makes the digest unique, and the result is not found again.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import io
import re
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pytest_dscore.gates.references import resolve

#: Attributes that every module has, hooks among them, and what compiling puts there.
_MODULE_S_OWN = {*vars(nn.Module()), "_compiled_call_impl", "_orig_mod"}
_PLAIN = (int, float, complex, str, bytes, bool, type(None), tuple, list, dict, set, frozenset, torch.dtype)


def model_fingerprint(model: nn.Module, factory: str, root: Path) -> str:
    """SHA-256 over a model's weights, buffers, plain attributes, structure and source code.

    The source is that of the factory's module, of every class in the model and its bases (but torch's), and of what
    those modules import from the project itself; files and variables that code reads while it runs are not followed.

    Parameters
    ----------
    model
        With its weights loaded.
    factory
        ``module:callable``, imported before.
    root
        pytest's rootdir: what lies below it is the project.
    """
    built_by = getattr(inspect.unwrap(resolve(factory, "factory")), "__module__", "")
    return module_fingerprint(model, root, {factory.partition(":")[0], built_by})


def module_fingerprint(model: nn.Module, root: Path, modules: Iterable[str] = ()) -> str:
    """The same without a factory; `modules` are further ones whose source counts."""
    digest = hashlib.sha256()
    for name, value in sorted(_state(model), key=lambda pair: pair[0]):
        digest.update(name.encode())
        digest.update(_bytes(value))
    # Some classes print their address.
    digest.update(re.sub(r"0x[0-9a-f]+", "", repr(model)).encode())
    classes = {base.__module__ for module in model.modules() for base in type(module).__mro__}
    for name in sorted(_with_imports({*modules, *classes}, root)):
        digest.update(f"{name} {source_of(name)}".encode())
    return digest.hexdigest()


def operator_fingerprint(operator: Callable[..., Any]) -> str:
    """What decides a mutation operator's effect: the source of its module and the values bound into it."""
    bound: list[Any] = []
    while isinstance(operator, functools.partial):
        bound.append((operator.args, operator.keywords))
        operator = operator.func
    cells = [cell.cell_contents for cell in getattr(operator, "__closure__", None) or ()]
    bound += [cells, getattr(operator, "__defaults__", None), vars(operator) if hasattr(operator, "__dict__") else None]
    name = getattr(operator, "__qualname__", type(operator).__qualname__)
    module = getattr(operator, "__module__", "")
    return f"{module}.{name} {re.sub(r'0x[0-9a-f]+', '', repr(bound))} {source_of(module)}"


def source_of(module_name: str) -> str:
    """Source code of an imported module; empty where it has none."""
    try:
        return inspect.getsource(sys.modules[module_name])
    except (KeyError, OSError, TypeError):
        return ""


def _state(model: nn.Module) -> Iterator[tuple[str, Any]]:
    yield from model.named_parameters()
    yield from model.named_buffers()
    yield from ((f"state {name}", value) for name, value in model.state_dict().items())
    for place, module in model.named_modules():
        attributes = {name: value for name, value in vars(module).items() if name not in _MODULE_S_OWN}
        yield from ((f"attribute {place}.{name}", value) for name, value in attributes.items())
        hooks = ((name, value) for name, value in vars(module).items() if name.endswith("_hooks") and value)
        yield from ((f"hooks {place}.{name}", list(value.values())) for name, value in hooks)


def _bytes(value: Any) -> bytes:
    if isinstance(value, torch.Tensor) and value.layout is torch.strided and not value.is_quantized:
        flat = value.detach().cpu().clone(memory_format=torch.contiguous_format).reshape(-1)
        pixels = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
        return f"{tuple(value.shape)} {value.dtype}".encode() + hashlib.sha256(pixels).digest()
    if _is_plain(value):
        return re.sub(r"0x[0-9a-f]+", "", repr(value)).encode()
    try:
        buffer = io.BytesIO()
        torch.save(value, buffer)
        return hashlib.sha256(buffer.getvalue()).digest()
    except Exception:  # noqa: BLE001 - packed weights and extra states pickle as they please
        return uuid.uuid4().bytes


def _is_plain(value: Any) -> bool:
    """Whether a value is what its repr says, all through."""
    if isinstance(value, dict):
        return all(_is_plain(entry) for pair in value.items() for entry in pair)
    if isinstance(value, (tuple, list, set, frozenset)):
        return all(map(_is_plain, value))
    return isinstance(value, _PLAIN)


def _with_imports(modules: set[str], root: Path) -> set[str]:
    """These modules (but torch's) and, transitively, those of the project that they import."""
    waiting = {name for name in modules if name.partition(".")[0] not in ("torch", "torchvision", "builtins", "")}
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= {other for other in _imported(name) if _is_below(other, root)} - found
    return found


def _imported(name: str) -> Iterator[str]:
    package = (getattr(sys.modules.get(name), "__package__", None) or "").split(".")
    for node in ast.walk(ast.parse(source_of(name))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package[: len(package) - (node.level - 1)] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            yield from (base, *(f"{base}.{alias.name}" for alias in node.names))


def _is_below(name: str, root: Path) -> bool:
    file = getattr(sys.modules.get(name), "__file__", None)
    return bool(file) and root in Path(str(file)).parents and "site-packages" not in Path(str(file)).parts
