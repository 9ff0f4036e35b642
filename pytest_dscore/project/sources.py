"""A project's Python files as syntax trees: what they define and what their names mean. Nothing is imported or run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pytest_dscore.project.walking import LARGEST_SOURCE, module_name

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One file.

    Parameters
    ----------
    name
        What it is imported as.
    path
        Below the project's root.
    tree
        What it says.
    names
        What each imported name stands for, such as ``nn`` for ``torch.nn``.
    """

    name: str
    path: str
    tree: ast.Module = field(repr=False)
    names: Mapping[str, str] = field(repr=False)

    def meaning(self, node: ast.expr | None) -> str:
        """Return the full dotted name that an expression stands for, empty where it is no name."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            # An annotation in quotes.
            try:
                return self.meaning(ast.parse(node.value, mode="eval").body)
            except (SyntaxError, ValueError, RecursionError):
                return ""
        dotted = _dotted(node)
        first, _, rest = dotted.partition(".")
        own = f"{self.name}.{first}" if first in self.defined else first
        full = self.names.get(first, own)
        return f"{full}.{rest}" if rest else full

    @cached_property
    def defined(self) -> frozenset[str]:
        """Names of `definitions`."""
        return frozenset(node.name for node in self.definitions())

    def definitions(self) -> Iterator[ast.ClassDef | Function]:
        """Yield the classes and functions that can be imported."""
        for node in self.tree.body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                yield node


def read_modules(root: Path, paths: tuple[str, ...], src_layout: bool) -> tuple[list[Module], list[str]]:
    """Parse files; also return a sentence for each that cannot be."""
    modules: list[Module] = []
    problems: list[str] = []
    for path in paths:
        name = module_name(path, src_layout)
        if name is None:
            continue
        try:
            if (root / path).stat().st_size > LARGEST_SOURCE:
                problems.append(f"{path} was not read: it is larger than {LARGEST_SOURCE // 1000:,} kB")
                continue
            tree = _parse((root / path).read_bytes())
        except OSError as error:
            problems.append(f"{path} cannot be read ({error.strerror})")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
            problems.append(f"{path} was left out: it is no Python that this version reads{line}")
        else:
            package = name if path.endswith("__init__.py") else name.rpartition(".")[0]
            modules.append(Module(name, path, tree, dict(_imports(tree, package))))
    return modules, problems


def _parse(source: bytes) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of their escapes and comparisons; not our business
        return ast.parse(source)


def _imports(tree: ast.Module, package: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                yield alias.asname or alias.name, f"{source}.{alias.name}"


def _dotted(node: ast.expr | None) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return ""


def needs_arguments(function: Function, own: int = 0) -> bool:
    """Whether a function cannot be called without arguments, the first `own` (``self``) apart."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args][own:]
    required = len(positional) - len(arguments.defaults)
    return required > 0 or any(default is None for default in arguments.kw_defaults)


def returns(function: Function) -> list[ast.expr]:
    """Return what the function itself returns, not the functions within it."""
    found: list[ast.expr] = []
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return) and node.value is not None:
            found.append(node.value)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))
    return found


def is_generator(function: Function) -> bool:
    """Whether calling it returns no value but an iterator over values."""
    inside = (node for statement in function.body for node in ast.walk(statement))
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in inside)


def assigned(function: Function) -> Mapping[str, ast.expr]:
    """Return what each name was last given in the function's own statements, such as ``net`` in ``net = Net()``."""
    found: dict[str, ast.expr] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            found[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            found[node.target.id] = node.value
    return found
