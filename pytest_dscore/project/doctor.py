"""``dscore doctor``: what is installed, which settings hold, and what keeps the gates from running."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_dscore.errors import SettingsError

if TYPE_CHECKING:
    from pytest_dscore.project.checks import Check


def add_to(groups: Any) -> None:
    """Add the command."""
    parser = groups.add_parser(
        "doctor",
        help="what is installed, which settings hold, what is missing",
        description="Imports what the settings refer to, and calls none of it. Exit code 1 if something is missing or "
        "wrong.",
    )
    parser.add_argument("--root", metavar="DIR", help="where pyproject.toml lies; default: from here upwards")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print every check; 1 if something is missing or wrong."""
    from pytest_dscore.holdout.commands._project import find_root
    from pytest_dscore.project.checks import lines, summary

    found = list(checks(find_root(options.root).resolve()))
    ok = all(one.state == "ok" for one in found)
    if options.json:
        print(json.dumps({"ok": ok, "checks": [one.as_json() for one in found]}, indent=2))
    else:
        print("\n".join([*lines(found), summary(found)]))
    return 0 if ok else 1


def checks(root: Path) -> Iterator[Check]:
    """Yield every check of a project, the installation first."""
    from pytest_dscore.project import installation
    from pytest_dscore.project.checks import Check
    from pytest_dscore.project.declared import settings_of
    from pytest_dscore.project.pyproject import PytestSettings, pytest_settings

    yield from installation.installed()
    told = PytestSettings()
    try:
        told = pytest_settings(root)
        yield from installation.plugin(root, told)
    except SettingsError as error:
        yield Check(installation.PYTEST, "wrong", str(error))
    yield from installation.devices()
    settings, said = settings_of(root)
    yield from said
    if settings is not None:
        yield from _declared(settings, root, told.pythonpath)


def _declared(settings: Any, root: Path, pythonpath: tuple[str, ...]) -> Iterator[Check]:
    from pytest_dscore.project import declared
    from pytest_dscore.project.users_code import imports

    kinds: Any = (
        (declared.model, settings.models),
        (declared.holdout, settings.holdouts),
        (declared.protocol, settings.protocols),
    )
    for look, subjects in kinds:
        for name, own in subjects.items():
            with imports(root, pythonpath):
                found = list(look(name, own, root))
            yield from found
