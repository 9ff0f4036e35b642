"""What of a project could be gated: its models, its data and its estimators, the likeliest first."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pytest_dscore.project.kinds import Kind, Known, method, named_in
from pytest_dscore.project.sources import Function, Module, is_generator, needs_arguments, returns
from pytest_dscore.project.words import DATA, DOING, HOLDOUT, LESSER, MAKING, MODEL, NO_MODELS, PARTS, TRAINING, words

#: Decorators after which a function is no longer one to be called.
_CHANGES = {"fixture", "command", "group", "task", "route", "hookimpl", "contextmanager", "property", "overload"}
#: As in `pytest_dscore.settings`, which is not imported here: it loads pydantic.
_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


@dataclass(frozen=True)
class Candidate:
    """Something that settings can refer to.

    Parameters
    ----------
    reference
        ``module:name``.
    place
        ``file:line``.
    what
        What it seems to be, in a few words.
    rank
        The higher, the likelier.
    usable
        Whether it may be written as an active setting: one that seems to be training data is only named.
    layers
        For a model: attributes that begin the names of its weights; empty where unknown.
    """

    reference: str
    place: str
    what: str
    rank: int
    usable: bool = True
    layers: frozenset[str] = field(default=frozenset(), repr=False)


def models(known: Known) -> list[Candidate]:
    """Return torch modules that can be made without arguments, and functions that return one."""
    found = [*_module_classes(known), *_model_functions(known)]
    return _sorted(found)


def data(known: Known) -> list[Candidate]:
    """Return functions, and classes of Datasets, that give examples with labels without arguments."""
    return _sorted([*_data_functions(known), *_dataset_classes(known)])


def loaders(known: Known) -> list[Candidate]:
    """Return functions that give a DataLoader, which no gate takes."""
    return _sorted(
        [
            Candidate(_reference(module, node), _place(module, node), "returns a DataLoader", 0, usable=False)
            for module, node in _callable_functions(known)
            if _kind(known, module, node) == "loader"
        ]
    )


def estimators(known: Known) -> list[Candidate]:
    """Return functions that give a scikit-learn estimator."""
    return _sorted(
        [
            Candidate(_reference(module, node), _place(module, node), "returns a scikit-learn estimator", 0)
            for module, node in _callable_functions(known)
            if _kind(known, module, node) == "estimator"
        ]
    )


# Models


def _module_classes(known: Known) -> Iterator[Candidate]:
    inside = _used_inside(known)
    for name, (module, node) in known.classes.items():
        if known.kind_of_class(name) != "module" or node.name.startswith("_") or known.needs_arguments(name):
            continue
        if set(words(node.name)) & NO_MODELS or _is_abstract(node) or not known.has_method(name, "forward"):
            continue
        rank = 8 - 4 * (name in inside) + _model_rank(known, name, node.name)
        what = "a torch module" + _without_convolution(known, name)
        yield Candidate(_reference(module, node), _place(module, node), what, rank, layers=known.layers(name))


def _model_functions(known: Known) -> Iterator[Candidate]:
    for module, node in _callable_functions(known):
        kind, said = _kind(known, module, node), words(node.name)
        # `build_model`, `net_v2`; not `model_parameters`.
        named = said[0] in MAKING | MODEL and bool(set(said[-2:] if _is_version(said[-1]) else said[-1:]) & MODEL)
        if kind != "module" and not (kind == "" and named and returns(node)):
            continue
        name = f"{module.name}.{node.name}"
        rank = (9 if kind == "module" else 6) + _model_rank(known, name, node.name)
        what = "returns a torch module" if kind == "module" else "is called like a model"
        layers = known.layers(known.made_by(module, node))
        yield Candidate(
            _reference(module, node),
            _place(module, node),
            what + _without_convolution(known, name),
            rank,
            layers=layers,
        )


def _is_version(word: str) -> bool:
    return word.lstrip("v").isdigit()


def _model_rank(known: Known, full: str, name: str) -> int:
    said = set(words(name))
    return 3 * known.convolves(full) - 3 * bool(said & PARTS) - 2 * bool(said & LESSER)


def _without_convolution(known: Known, name: str) -> str:
    return "" if known.convolves(name) else "; no convolution is seen in it, and a D-Score needs one"


def _used_inside(known: Known) -> set[str]:
    """Return the modules that others are made of, or derive from."""
    found: set[str] = set()
    for name, (module, node) in known.classes.items():
        if known.kind_of_class(name) == "module":
            found |= {home for part in named_in(module, node) if (home := known.home(part)) != name}
    return found


def _is_abstract(node: ast.ClassDef) -> bool:
    functions = (part for part in node.body if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return any("abstract" in ast.dump(decorator) for part in functions for decorator in part.decorator_list)


# Data


def _data_functions(known: Known) -> Iterator[Candidate]:
    for module, node in _callable_functions(known):
        kind, said = _kind(known, module, node), words(node.name)
        annotated = known.kind_of_annotation(module, node.returns) in ("pair", "dataset")
        if said[0] in DOING - TRAINING or not _is_about_data(kind, set(said), annotated or bool(_part(node))):
            continue
        if kind == "" and not returns(node):
            continue
        shown = {"pair": "returns a pair", "dataset": "returns a Dataset"}.get(kind, "is called like data")
        yield _as_data(module, node, shown, set(said), _part(node), 3 if kind else 0)


def _is_about_data(kind: Kind, said: set[str], clear: bool) -> bool:
    if kind in ("pair", "dataset"):
        return clear or bool(said & (DATA | HOLDOUT))
    return kind == "" and bool(said & HOLDOUT) and (bool(said & DATA) or said <= HOLDOUT | MAKING)


def _dataset_classes(known: Known) -> Iterator[Candidate]:
    for name, (module, node) in known.classes.items():
        if known.kind_of_class(name) != "dataset" or node.name.startswith("_") or known.needs_arguments(name):
            continue
        if known.has_method(name, "__getitem__") and not _is_abstract(node):
            init = method(node, "__init__")
            part = _part(init) if init is not None else ""
            yield _as_data(module, node, "a Dataset", set(words(node.name)), part, 2)


def _as_data(
    module: Module, node: ast.ClassDef | Function, shown: str, said: set[str], part: str, evidence: int
) -> Candidate:
    training = part == "training" or (part == "" and bool(said & TRAINING) and not said & HOLDOUT)
    holdout = not training and (part == "holdout" or bool(said & HOLDOUT))
    about = "; seems to be training data" if training else "; seems to be held out" if holdout else ""
    rank = evidence + 5 * holdout - 5 * training - 2 * bool(said & LESSER)
    return Candidate(_reference(module, node), _place(module, node), shown + about, rank, usable=not training)


def _part(function: Function) -> str:
    """Return which part of the data a default such as ``train=True`` chooses, empty where there is none."""
    arguments = [*function.args.posonlyargs, *function.args.args]
    defaults = dict(zip([a.arg for a in arguments[::-1]], function.args.defaults[::-1], strict=False))
    defaults |= {a.arg: d for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True) if d}
    for name, value in defaults.items():
        given = value.value if isinstance(value, ast.Constant) else None
        if name in ("train", "training") and isinstance(given, bool):
            return "training" if given else "holdout"
        if name in ("split", "part", "subset") and isinstance(given, str):
            return "training" if set(words(given)) & TRAINING else "holdout" if set(words(given)) & HOLDOUT else ""
    return ""


# Common to all


def _callable_functions(known: Known) -> Iterator[tuple[Module, ast.FunctionDef]]:
    """Yield the functions that can be called without arguments, and whose result is what they return."""
    for module, node in known.functions.values():
        if isinstance(node, ast.AsyncFunctionDef) or node.name.startswith("_") or not words(node.name):
            continue
        if needs_arguments(node) or is_generator(node) or any(map(_changes, node.decorator_list)):
            continue
        yield module, node


def _changes(decorator: ast.expr) -> bool:
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    last = named.attr if isinstance(named, ast.Attribute) else named.id if isinstance(named, ast.Name) else ""
    return last in _CHANGES


def _kind(known: Known, module: Module, node: Function) -> Kind:
    """Return what a function gives, by its annotation or else by what it returns."""
    annotated = known.kind_of_annotation(module, node.returns)
    shown = known.kind_of_returns(module, node)
    return shown if annotated == "" or (annotated == "other" and shown not in ("", "other")) else annotated


def _reference(module: Module, node: ast.ClassDef | Function) -> str:
    return f"{module.name}:{node.name}"


def _place(module: Module, node: ast.ClassDef | Function) -> str:
    return f"{module.path}:{node.lineno}"


def _sorted(found: list[Candidate]) -> list[Candidate]:
    """Likeliest first; among equals those with the fewest words of their own, then as the files come.

    Without those whose names settings do not take.
    """

    def place(one: Candidate) -> tuple[int, int, int]:
        own = set(words(one.reference.partition(":")[2])) - MAKING - MODEL - DATA - HOLDOUT
        return -one.rank, one.reference.count("."), len(own)

    return sorted((one for one in found if _REFERENCE.fullmatch(one.reference)), key=place)
