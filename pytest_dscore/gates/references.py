"""``module:callable`` from pyproject.toml to the object it names, and what a user's exception says in one sentence."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pytest_dscore.errors import DScoreError, first_line
from pytest_dscore.names import unknown_name

#: Files that a user's exception passes through without being of interest to them.
_NOT_THEIRS = ("importlib", "pytest_dscore/", "pytest_dscore\\", "site-packages/torch/")


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
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # pytest.skip() in a user's function must not skip the gate.
        raise DScoreError(f"{key} '{reference}' raised {describe(error)}") from error


def resolve(reference: str, key: str) -> Callable[..., Any]:
    """Import ``module:callable``.

    Raises
    ------
    DScoreError
        If the module or the name in it does not exist, the import raises, or the object cannot be called.
    """
    found = find(reference, key)
    if not callable(found):
        raise DScoreError(f"{key} '{reference}' is a {type(found).__name__}: it must be a callable without arguments")
    return found  # type: ignore[no-any-return]


def find(reference: str, key: str) -> Any:
    """Import ``module:name``, whatever it is.

    Raises
    ------
    DScoreError
        If the module or the name in it does not exist, or the import raises.
    """
    module_name, _, attribute = reference.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        raise DScoreError(
            f"{key} '{reference}': importing {module_name} raised {describe(error)} "
            "(searched from pytest's rootdir and pythonpath)"
        ) from error
    _refuse_namesake(module_name, key, reference)
    for part in attribute.split("."):
        if not hasattr(found, part):
            public = [name for name in vars(found) if not name.startswith("_")]
            raise DScoreError(f"{key} '{reference}': in {module_name} the {unknown_name('name', part, public[:40])}")
        found = getattr(found, part)
    return found


def _refuse_namesake(module_name: str, key: str, reference: str) -> None:
    """Refuse a module imported from elsewhere although the rootdir, first on the path, has one of that name."""
    top = module_name.partition(".")[0]
    spec = importlib.machinery.PathFinder.find_spec(top, sys.path[:1])
    file = getattr(sys.modules.get(top), "__file__", None)
    if spec is not None and spec.origin and file and not Path(spec.origin).samefile(file):
        raise DScoreError(
            f"{key} '{reference}': {top} is {spec.origin}, but {file} of the same name was imported before it: "
            "rename one of them"
        )


def describe(error: BaseException) -> str:
    """Type, first line and place (in the user's code where there is any) of an exception."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not any(part in frame.filename for part in _NOT_THEIRS)]
    # Their own file rather than that of a library they called; a library's where there is no other.
    own = [frame for frame in theirs if "site-packages" not in frame.filename] or theirs
    where = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {first_line(error)}{where}"
