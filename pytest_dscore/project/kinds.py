"""What the classes of a project derive from, and what a call or an annotation stands for, as far as sources tell."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pytest_dscore.project.sources import Function, Module, assigned, needs_arguments, returns

Kind = Literal["module", "dataset", "loader", "pair", "estimator", "other", ""]

_PLAIN = {
    "torch.nn.Module": "module",
    "torch.nn.modules.Module": "module",
    "torch.nn.modules.module.Module": "module",
    "lightning.LightningModule": "module",
    "lightning.pytorch.LightningModule": "module",
    "pytorch_lightning.LightningModule": "module",
    "torch.utils.data.Dataset": "dataset",
    "torch.utils.data.dataset.Dataset": "dataset",
}
_LOADERS = {"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"}
_ITERABLE = {"torch.utils.data.IterableDataset", "torch.utils.data.dataset.IterableDataset"}
#: Methods that return the module they are called on.
_SAME = {"eval", "to", "cpu", "cuda", "float", "half", "double", "train", "requires_grad_"}
_CONVOLUTION = re.compile(r"(Lazy)?Conv(Transpose)?[123]d|Conv[23]dNormActivation")


@dataclass(frozen=True)
class Known:
    """Everything that the project's files define, by full name.

    Parameters
    ----------
    modules
        The files.
    """

    modules: Mapping[str, Module]
    classes: Mapping[str, tuple[Module, ast.ClassDef]]
    functions: Mapping[str, tuple[Module, Function]]

    @classmethod
    def of(cls, modules: list[Module]) -> Known:
        """Collect the definitions of files."""
        defined = [(f"{module.name}.{node.name}", module, node) for module in modules for node in module.definitions()]
        return cls(
            {module.name: module for module in modules},
            {name: (module, node) for name, module, node in defined if isinstance(node, ast.ClassDef)},
            {name: (module, node) for name, module, node in defined if not isinstance(node, ast.ClassDef)},
        )

    def home(self, name: str) -> str:
        """Follow a name that a package passes on to where it is defined."""
        for _ in range(10):
            before, _, last = name.rpartition(".")
            module = self.modules.get(before)
            if name in self.classes or name in self.functions or module is None or last not in module.names:
                break
            name = module.names[last]
        return name

    # Classes

    def kind_of_class(self, name: str, seen: frozenset[str] = frozenset()) -> Kind:
        """Return what an instance of a class is."""
        name = self.home(name)
        if name not in self.classes or name in seen:
            return _kind_elsewhere(name)
        module, node = self.classes[name]
        kinds = [self.kind_of_class(module.meaning(_unsubscripted(base)), seen | {name}) for base in node.bases]
        return next((kind for kind in kinds if kind not in ("", "other")), "")

    def needs_arguments(self, name: str, seen: frozenset[str] = frozenset()) -> bool:
        """Whether a class cannot be called without arguments, or nobody can tell."""
        name = self.home(name)
        if name not in self.classes or name in seen:
            return name not in _PLAIN
        module, node = self.classes[name]
        if any(module.meaning(_called(one)).endswith("dataclass") for one in node.decorator_list):
            return True
        own = method(node, "__init__")
        if own is not None:
            return needs_arguments(own, own=1)
        bases = [module.meaning(_unsubscripted(base)) for base in node.bases]
        return not bases or all(self.needs_arguments(base, seen | {name}) for base in bases)

    def has_method(self, name: str, wanted: str, seen: frozenset[str] = frozenset()) -> bool:
        """Whether a class has a method, its own or inherited; a library's class other than the plain base has it."""
        name = self.home(name)
        if name not in self.classes or name in seen:
            return bool(_kind_elsewhere(name)) and name not in _PLAIN
        module, node = self.classes[name]
        if method(node, wanted) is not None:
            return True
        return any(self.has_method(module.meaning(_unsubscripted(base)), wanted, seen | {name}) for base in node.bases)

    def layers(self, name: str, seen: frozenset[str] = frozenset()) -> frozenset[str]:
        """Return the attributes that a class sets on itself when it is made, which begin the names of its weights."""
        name = self.home(name)
        if name not in self.classes or name in seen:
            return frozenset()
        module, node = self.classes[name]
        inherited = [self.layers(module.meaning(_unsubscripted(base)), seen | {name}) for base in node.bases]
        init = method(node, "__init__")
        return frozenset(_set_on_self(init) if init is not None else ()).union(*inherited)

    # Expressions

    def kind_of_annotation(self, module: Module, node: ast.expr | None) -> Kind:
        """Return what an annotation says is returned."""
        if node is None:
            return ""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                return self.kind_of_annotation(module, ast.parse(node.value, mode="eval").body)
            except (SyntaxError, ValueError, RecursionError):
                return ""
        if isinstance(node, ast.Subscript) and module.meaning(node.value) in ("tuple", "typing.Tuple"):
            return "pair" if isinstance(node.slice, ast.Tuple) and len(node.slice.elts) == 2 else "other"
        meaning = module.meaning(_unsubscripted(node))
        return "" if meaning in ("typing.Any", "object") else self.kind_of_class(meaning) or "other"

    def kind_of_returns(self, module: Module, function: Function) -> Kind:
        """Return what the function's ``return`` statements give, as far as they show it."""
        given = assigned(function)
        kinds = {self._kind_of(module, value, given) for value in returns(function)}
        return next(iter(kinds)) if len(kinds) == 1 else ""

    def made_by(self, module: Module, function: Function) -> str:
        """Return the name of the class whose instance a function returns, empty where that does not show."""
        given = assigned(function)
        names = {self.home(module.meaning(_called(_behind(value, given)))) for value in returns(function)}
        return next(iter(names)) if len(names) == 1 else ""

    def _kind_of(self, module: Module, value: ast.expr, given: Mapping[str, ast.expr]) -> Kind:
        value = _behind(value, given)
        if isinstance(value, ast.Tuple):
            return "pair" if len(value.elts) == 2 else "other"
        if isinstance(value, (ast.Constant, ast.Dict, ast.JoinedStr, ast.Compare)):
            return "other"
        if not isinstance(value, ast.Call):
            return ""
        name = self.home(module.meaning(value.func))
        if name.startswith("sklearn.datasets."):
            return "pair" if any(word.arg == "return_X_y" for word in value.keywords) else "other"
        if name in self.functions:
            other, function = self.functions[name]
            return self.kind_of_annotation(other, function.returns)
        if name.startswith("torchvision.models."):
            return "module"
        return self.kind_of_class(name)

    # Contents

    def convolves(self, name: str, seen: set[str] | None = None) -> bool:
        """Whether a convolution is named in a class or function, or in what it names of the project's own."""
        seen = set() if seen is None else seen
        name = self.home(name)
        found = self.classes.get(name) or self.functions.get(name)
        if found is None or name in seen:
            return False
        seen.add(name)
        module, node = found
        for named in named_in(module, node):
            last = named.rpartition(".")[2]
            if _CONVOLUTION.fullmatch(last) or named.startswith("torchvision.models.") or self.convolves(named, seen):
                return True
        return False


def named_in(module: Module, node: ast.AST) -> set[str]:
    """Return the full names of all that is mentioned in a definition."""
    inside = (part for part in ast.walk(node) if isinstance(part, (ast.Name, ast.Attribute)))
    return {meaning for part in inside if (meaning := module.meaning(part))}


def method(node: ast.ClassDef, name: str) -> Function | None:
    """Return a class's own method."""
    functions = (part for part in node.body if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return next((part for part in functions if part.name == name), None)


def _kind_elsewhere(name: str) -> Kind:
    """Return what an instance of a library's class is."""
    last = name.rpartition(".")[2]
    if name in _LOADERS:
        return "loader"
    if name in _ITERABLE or not last[:1].isupper():
        return ""
    if name in _PLAIN:
        return "module" if _PLAIN[name] == "module" else "dataset"
    if name.startswith(("torch.nn.", "torchvision.models.")) and not name.startswith("torch.nn.utils"):
        return "module"
    if name.startswith(("torch.utils.data.", "torchvision.datasets.")):
        return "dataset"
    return "estimator" if name.startswith("sklearn.") else ""


def _unsubscripted(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Subscript) else node


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _behind(value: ast.expr, given: Mapping[str, ast.expr]) -> ast.expr:
    """Look through variables, and through calls such as ``net.eval()`` that return what they are called on."""
    for _ in range(10):
        if isinstance(value, ast.Name) and value.id in given:
            value = given[value.id]
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _SAME:
            value = value.func.value
        else:
            break
    return value


def _set_on_self(init: Function) -> set[str]:
    targets = (
        target
        for node in ast.walk(init)
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    )
    return {
        target.attr
        for target in targets
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"
    }
