"""``dscore init``: a starting [tool.dscore] and a GitHub workflow, from what the project's sources show."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pytest_dscore.errors import SettingsError
from pytest_dscore.report.text import wrapped

_MOST_SHOWN, _MOST_REMARKS = 8, 20


def add_to(groups: Any) -> None:
    """Add the command."""
    parser = groups.add_parser(
        "init",
        help="write a first [tool.dscore] and a GitHub workflow",
        description="Reads the project's sources, without importing them, for models, data and weights, and writes "
        "settings to begin with. Nothing that is there is changed or replaced.",
    )
    parser.add_argument("--root", metavar="DIR", help="the project's directory; default: the present one")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Look, write, and say what was found, written and is to be done next."""
    from pytest_dscore.project.block import block
    from pytest_dscore.project.looking import look

    root = Path(options.root if options.root is not None else ".")
    if not root.is_dir():
        raise SettingsError(f"--root {root} is not a directory")
    path = root / "pyproject.toml"
    before = path.read_bytes() if path.is_file() else None
    _refuse_second(path, before)
    found = look(root)
    text = block(found)
    wrote = [_write_settings(path, before, text), _write_workflow(root)]
    lines = [
        f"read {_counted(found.sources, 'Python file')}, found {_counted(len(found.weights), 'file')} of weights; "
        "nothing was run",
        "",
        *_section("found", _found(found), 13),
        *_section("not found", _not_found(found)),
        *_section("left out", _few(found.remarks, _MOST_REMARKS)),
        *_section("wrote", wrote),
        *_section("next", (f"{number}. {step}" for number, step in enumerate(_steps(root, found), 1))),
    ]
    print("\n".join(lines).rstrip())
    return 0


def _refuse_second(path: Path, content: bytes | None) -> None:
    from pytest_dscore.project.block import MARK
    from pytest_dscore.project.pyproject import parsed

    if content is None:
        return
    tool = parsed(content, path).get("tool")
    if isinstance(tool, dict) and "dscore" in tool:
        raise SettingsError(f"{path} has [tool.dscore] already, so nothing was written; `dscore doctor` looks at it")
    if MARK.encode() in content:
        raise SettingsError(
            f"{path} has a block of `dscore init` already, all comments, so nothing was written: uncomment it, or "
            "delete it and run this again"
        )


def _write_settings(path: Path, before: bytes | None, text: str) -> str:
    from pytest_dscore.project.writing import appended, create, replace

    if before is not None:
        replace(path, before, appended(before, text, path))
        return f"{path}: the block at its end, all before it is as it was"
    if not create(path, text):
        raise SettingsError(f"{path} was made by somebody else meanwhile, so nothing was written: run it again")
    return f"{path}"


def _write_workflow(root: Path) -> str:
    from pytest_dscore.project.workflow import PATH, workflow
    from pytest_dscore.project.writing import create

    if (top := _repository_above(root)) is not None:
        return f"no workflow: GitHub reads {PATH} only at the top of the repository, which is {top}"
    written = create(root / PATH, workflow(root))
    return f"{root / PATH}" if written else f"no workflow: {root / PATH} exists, and stays as it is"


def _repository_above(root: Path) -> Path | None:
    """Return the top of the git repository that the project is a folder of; None where it is the top itself."""
    here = root.resolve()
    if (here / ".git").exists():
        return None
    return next((above for above in here.parents if (above / ".git").exists()), None)


def _found(found: Any) -> Iterator[str]:
    kinds = (("model", found.models), ("data", found.data), ("estimator", found.estimators))
    for kind, candidates in kinds:
        said = [f"{one.reference} ({one.place}): {one.what}" for one in candidates]
        yield from (f"{kind:<9}  {line}" for line in _few(said, _MOST_SHOWN))
    yield from (f"{'weights':<9}  {line}" for line in _few([one.path for one in found.weights], _MOST_SHOWN))


def _not_found(found: Any) -> Iterator[str]:
    if not found.models:
        yield (
            "a model: write a class derived from torch.nn.Module that can be made without arguments, or a function "
            "such as build_model() that returns one"
        )
    if found.holdout is None:
        yield (
            "data to judge on: write a function without arguments, such as test_set(), that returns a Dataset or the "
            "pair (images, labels)"
        )
    if found.models and not found.fitting:
        yield (
            "weights that fit the model: name the file in the block, unless the factory loads them; an untrained model "
            "fails its gate"
        )


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _few(lines: Iterable[str], most: int) -> list[str]:
    lines = list(lines)
    return lines if len(lines) <= most else [*lines[:most], f"... and {len(lines) - most} more"]


def _section(title: str, lines: Iterable[str], indent: int = 5) -> list[str]:
    lines = list(lines)
    if not lines:
        return []
    return [title, *(part for line in lines for part in wrapped(line, "  ", " " * indent)), ""]


def _steps(root: Path, found: Any) -> Iterator[str]:
    from pytest_dscore.project.block import active_model, active_protocol, holdout_name
    from pytest_dscore.project.workflow import PATH, needs_source

    model, protocol = active_model(found), active_protocol(found)
    if model is None and protocol is None:
        yield (
            "Write what is missing, put its module:function in the block's PLACEHOLDERs, and take the # off the block"
        )
    else:
        yield "Look through [tool.dscore]: the likeliest of each kind is active, the others are comments"
    if found.src_layout and not _src_is_on_path(root):
        yield (
            'The modules lie in src: set pythonpath = ["src"] in [tool.pytest.ini_options], unless the project is '
            "installed where the gate runs"
        )
    yield "`dscore doctor` says what is missing or wrong"
    yield "`pytest --dscore` judges; its thresholds are PLACEHOLDERs until you set them"
    yield (
        "Set max_drop, run `pytest --dscore --dscore-update-baseline`, and commit .dscore: from then on a drop fails"
    )
    yield (
        "To keep count of how often the test data are used, uncomment "
        f"[tool.dscore.holdouts.{holdout_name(found)}] and run `dscore holdout begin`"
    )
    workflow = root / PATH
    if workflow.is_file() and needs_source(workflow.read_text(encoding="utf-8", errors="replace")):
        yield f"Say in {workflow} where pytest-dscore comes from"


def _src_is_on_path(root: Path) -> bool:
    from pytest_dscore.project.pyproject import pytest_settings

    try:
        return any(Path(place) == Path("src") for place in pytest_settings(root).pythonpath)
    except SettingsError:
        return False
