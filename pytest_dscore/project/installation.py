"""What is installed here, and whether pytest loads the plugin."""

from __future__ import annotations

import os
import platform
import shlex
import shutil
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from pytest_dscore.errors import SettingsError, first_line
from pytest_dscore.project.checks import Check
from pytest_dscore.project.pyproject import PytestSettings, document, table

#: Dependencies that are always named; the others only where something is wrong with them.
_NAMED = ("pytest", "torch", "torchvision", "numpy", "scikit-learn")
_OPTIONAL = (
    ("pytest-xdist", "xdist", "pytest -n"),
    ("psycopg", "postgres", "a ledger in PostgreSQL"),
    ("dask", "dask", "nested cross-validation on a cluster"),
)
_DISTRIBUTION, _ENTRY, _PLUGIN = "pytest-dscore", "dscore", "pytest_dscore.plugin"
_AUTOLOAD = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"
INSTALLED, PYTEST, DEVICES = "installed", "pytest", "devices"


def installed() -> Iterator[Check]:
    """Check Python, the dependencies, the optional ones, and git."""
    yield Check(INSTALLED, "ok", f"Python {platform.python_version()}")
    yield from _dependencies()
    for name, extra, purpose in _OPTIONAL:
        version = _version(name)
        here = f"{name} {version}" if version else f"{name} is not installed; only {purpose} needs it (extra [{extra}])"
        yield Check(INSTALLED, "ok", here)
    if shutil.which("git") is None:
        yield Check(INSTALLED, "ok", "git is not installed; only a ledger in git needs it, and commits on record")
    else:
        yield Check(INSTALLED, "ok", "git")


def _dependencies() -> Iterator[Check]:
    try:
        wanted = [Requirement(line) for line in metadata.requires(_DISTRIBUTION) or ()]
    except metadata.PackageNotFoundError:
        yield Check(INSTALLED, "missing", f"{_DISTRIBUTION} is on the path, not installed", "pip install it")
        wanted = [Requirement(name) for name in _NAMED]
    for one in wanted:
        if one.marker is not None and not one.marker.evaluate({"extra": ""}):
            continue
        version = _version(one.name)
        if version is None:
            yield Check(INSTALLED, "missing", one.name, f"pip install '{one.name}{one.specifier}'")
        elif not one.specifier.contains(version, prereleases=True):
            fix = f"pip install '{one.name}{one.specifier}'"
            yield Check(INSTALLED, "wrong", f"{one.name} {version}, and {one.specifier} is needed", fix)
        elif one.name in _NAMED:
            yield Check(INSTALLED, "ok", f"{one.name} {version}")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def plugin(root: Path, settings: PytestSettings) -> Iterator[Check]:
    """Check that pytest loads the plugin, and that no setting takes away what the gate needs."""
    entries = [one for one in metadata.entry_points(group="pytest11") if one.name == _ENTRY]
    if not entries:
        fix = "pip install pytest-dscore where pytest is installed"
        yield Check(PYTEST, "missing", f"pytest knows no plugin {_ENTRY} in this environment", fix)
    elif entries[0].value != _PLUGIN:
        yield Check(PYTEST, "wrong", f"another package registers a plugin {_ENTRY}: {entries[0].value}", "uninstall it")
    else:
        yield Check(PYTEST, "ok", f"the plugin {_ENTRY} is registered")
    yield from _autoload(settings)
    for place, arguments in _arguments(settings):
        yield from _conflicts(place, arguments)
    if table(document(root), "tool", "pytest", "dscore"):
        where = "pyproject.toml has [tool.pytest.dscore], which pytest takes for a setting of its own"
        yield Check(PYTEST, "wrong", where, "call the table [tool.dscore]")


def _arguments(settings: PytestSettings) -> Iterator[tuple[str, Sequence[str]]]:
    if settings.addopts:
        yield f"{settings.place} addopts", settings.addopts
    if given := os.environ.get("PYTEST_ADDOPTS"):
        try:
            yield "PYTEST_ADDOPTS", shlex.split(given)
        except ValueError as error:
            raise SettingsError(f"PYTEST_ADDOPTS cannot be read: {first_line(error)}") from error


def _autoload(settings: PytestSettings) -> Iterator[Check]:
    given = [argument for _, arguments in _arguments(settings) for argument in arguments]
    off = os.environ.get(_AUTOLOAD) or "--disable-plugin-autoload" in given
    named = {_ENTRY, _PLUGIN} & {*_values(given, "-p"), *os.environ.get("PYTEST_PLUGINS", "").split(",")}
    if off and not named:
        why = _AUTOLOAD if os.environ.get(_AUTOLOAD) else "--disable-plugin-autoload"
        yield Check(PYTEST, "wrong", f"{why} keeps pytest from loading plugins", f"unset it, or add -p {_PLUGIN}")


def _conflicts(place: str, arguments: Sequence[str]) -> Iterator[Check]:
    for value in _values(arguments, "-p"):
        if value in (f"no:{_ENTRY}", f"no:{_PLUGIN}"):
            yield Check(PYTEST, "wrong", f"{place} has -p {value}, which turns the gate off", "take it out")
        elif value == "no:junitxml":
            yield Check(PYTEST, "wrong", f"{place} has -p {value}, so no report.xml can be written", "take it out")
    for value in _values(arguments, "-m"):
        if "not dscore" in value:
            yield Check(PYTEST, "wrong", f"{place} has -m '{value}', which leaves the gates out", "take it out")


def _values(arguments: Sequence[str], option: str) -> Iterator[str]:
    """Yield the values of a short option, written apart or together."""
    for number, argument in enumerate(arguments):
        if argument == option and number + 1 < len(arguments):
            yield arguments[number + 1]
        elif argument.startswith(option) and argument != option:
            yield argument[len(option) :]


def devices() -> Iterator[Check]:
    """Name the devices that torch finds."""
    try:
        import torch
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a broken installation raises anything
        yield Check(
            DEVICES, "wrong", f"importing torch raised {type(error).__name__}: {first_line(error)}", "reinstall it"
        )
        return
    yield Check(DEVICES, "ok", f"cpu, {torch.get_num_threads()} threads")
    if torch.cuda.is_available():
        for number in range(torch.cuda.device_count()):
            yield Check(DEVICES, "ok", f"cuda:{number}, {torch.cuda.get_device_name(number)}")
    else:
        yield Check(DEVICES, "ok", "no CUDA; models are scored on the cpu")
