"""Imports what settings refer to, and nothing more: functions of the project are found here, not called."""

from __future__ import annotations

import contextlib
import inspect
import io
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_dscore.errors import DScoreError
from pytest_dscore.gates.references import find, importable, resolve
from pytest_dscore.project.checks import Check


@contextlib.contextmanager
def imports(root: Path, pythonpath: Sequence[str]) -> Iterator[None]:
    """Look modules up as pytest would; what they print while they are imported is not the doctor's to say."""
    before = list(sys.path)
    sys.path[:0] = [str(root / place) for place in pythonpath]
    silent = io.StringIO()
    try:
        with (
            importable(root),
            warnings.catch_warnings(),
            contextlib.redirect_stdout(silent),
            contextlib.redirect_stderr(silent),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.path[:] = before


def resolves(area: str, key: str, reference: str, root: Path, *, called: bool = True) -> Check:
    """Check that ``module:name`` is there, and, where it will be `called`, that it can be, without arguments."""
    try:
        if called:
            _callable_without_arguments(reference, key)
        else:
            find(reference, key)
    except DScoreError as error:
        return Check(area, "wrong", str(error), _in_src(reference, root))
    return Check(area, "ok", f"{key} {reference}")


def _callable_without_arguments(reference: str, key: str) -> None:
    function = resolve(reference, key)
    try:
        inspect.signature(function).bind()
    except TypeError as error:
        raise DScoreError(
            f"{key} '{reference}' cannot be called without arguments ({error}): give them defaults"
        ) from error
    except ValueError:  # a builtin that does not tell
        return


def _in_src(reference: str, root: Path) -> str:
    top = reference.partition(":")[0].partition(".")[0]
    there = (root / "src" / top).is_dir() or (root / "src" / f"{top}.py").is_file()
    on_path = any(Path(place).resolve() == (root / "src").resolve() for place in sys.path)
    if not there or on_path:
        return ""
    return f'{top} lies in src: set pythonpath = ["src"] in [tool.pytest.ini_options], or install the project'
