"""Reading pyproject.toml whole, and the settings that pytest itself takes in a project."""

from __future__ import annotations

import configparser
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_dscore.errors import SettingsError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: In the order in which pytest looks for its settings; the first that has any is the only one that counts.
_PLACES = (
    ("pytest.toml", ("pytest",)),
    (".pytest.toml", ("pytest",)),
    ("pytest.ini", ("pytest",)),
    (".pytest.ini", ("pytest",)),
    ("pyproject.toml", ("tool", "pytest")),
    ("tox.ini", ("pytest",)),
    ("setup.cfg", ("tool:pytest",)),
)
#: These count even where they are empty.
_ALWAYS = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini")


def parsed(content: bytes, path: Path) -> dict[str, Any]:
    """Parse a TOML file's content.

    Raises
    ------
    SettingsError
        It is no TOML.
    """
    try:
        return tomllib.loads(content.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from error


def document(root: Path) -> dict[str, Any]:
    """Return pyproject.toml of a project, empty where there is none.

    Raises
    ------
    SettingsError
        It is no TOML.
    """
    path = root / "pyproject.toml"
    return parsed(path.read_bytes(), path) if path.is_file() else {}


def table(of: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return a table within tables, empty where there is none."""
    found: Any = of
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True)
class PytestSettings:
    """What pytest is told by a project.

    Parameters
    ----------
    place
        The file and table, for messages; empty where nothing is told.
    addopts
        Arguments added to every run.
    pythonpath
        Folders, relative to the project, that modules are imported from.
    """

    place: str = ""
    addopts: tuple[str, ...] = ()
    pythonpath: tuple[str, ...] = ()


def pytest_settings(root: Path) -> PytestSettings:
    """Return what the settings file that pytest would choose in `root` says.

    Raises
    ------
    SettingsError
        The file cannot be read.
    """
    for name, keys in _PLACES:
        if not (root / name).is_file():
            continue
        found, where = _read(root / name, keys)
        if found or name in _ALWAYS:
            words = {key: _words(found.get(key), f"{where} {key}") for key in ("addopts", "pythonpath")}
            return PytestSettings(where, words["addopts"], words["pythonpath"])
    return PytestSettings()


def _read(path: Path, keys: tuple[str, ...]) -> tuple[dict[str, Any], str]:
    if path.suffix == ".toml":
        found = table(parsed(path.read_bytes(), path), *keys)
        inner = found.get("ini_options")
        if isinstance(inner, dict):
            return inner, f"{path.name} [{'.'.join(keys)}.ini_options]"
        # [tool.pytest.NAME] alone is no setting of pytest's.
        own = {key: value for key, value in found.items() if not isinstance(value, dict)}
        return own, f"{path.name} [{'.'.join(keys)}]"
    reader = configparser.RawConfigParser()
    try:
        reader.read_string(path.read_text(encoding="utf-8"))
    except (configparser.Error, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {' '.join(str(error).split())}") from error
    section = keys[0]
    return (dict(reader[section]) if reader.has_section(section) else {}), f"{path.name} [{section}]"


def _words(given: Any, where: str) -> tuple[str, ...]:
    if isinstance(given, list):
        return tuple(str(one) for one in given)
    try:
        return tuple(shlex.split(given)) if isinstance(given, str) else ()
    except ValueError as error:
        raise SettingsError(f"{where} cannot be read: {error}") from error
