"""``dscore protocol manifest``: writes down which data and splits a declared protocol is for."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pytest_dscore.errors import DScoreError, SettingsError
from pytest_dscore.names import unknown_name
from pytest_dscore.settings.protocols import MANIFEST, ProtocolSettings, protocol_settings
from pytest_dscore.settings.reading import read_table

_SELECTIONS = ("internal", "external", "median", "none")


def add_to(commands: Any) -> None:
    """Add the sub-command."""
    parser = commands.add_parser("manifest", help="write the manifest of a declared protocol, for its data as they are")
    parser.add_argument("name", metavar="NAME", help="of a table [tool.dscore.protocols.NAME]")
    parser.add_argument(
        "--selection",
        choices=_SELECTIONS,
        help="how hyper-parameters are chosen; default: internal, or none where nothing is chosen",
    )
    parser.add_argument("--force", action="store_true", help="replace a manifest that is there")
    parser.add_argument("--root", metavar="DIR", help="where pyproject.toml lies; default: from here upwards")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Load the protocol's data and splits, and write the manifest."""
    # Imported here: `dscore holdout` needs nothing of this.
    from pytest_dscore.holdout.commands._project import find_root
    from pytest_dscore.report.text import wrapped

    root = find_root(options.root).resolve()
    settings = _declared(root, options.name)
    assert settings.manifest is not None
    path = root / settings.manifest
    if path.exists() and not options.force:
        raise SettingsError(f"{settings.manifest} exists already: give --force to replace it")
    try:
        rows, splits = _write(path, options.name, settings, options.selection, root, options.force)
    except DScoreError as error:
        raise DScoreError(f"protocol '{options.name}': {error}") from error
    text = f"{settings.manifest} declares protocol '{options.name}': {rows:,} rows, {splits} splits; commit it"
    print("\n".join(wrapped(text)))
    return 0


def _declared(root: Path, name: str) -> ProtocolSettings:
    declared = protocol_settings(read_table(root).get("protocols"))
    if not declared:
        raise SettingsError(f"{root / 'pyproject.toml'} declares no protocol: add a table [tool.dscore.protocols.NAME]")
    if name not in declared:
        raise SettingsError(unknown_name("protocol", name, declared))
    if declared[name].manifest is None:
        raise SettingsError(
            f'[tool.dscore.protocols.{name}] names no file to write to: add manifest = "{MANIFEST}", or another name'
        )
    return declared[name]


def _write(
    path: Path, name: str, settings: ProtocolSettings, selection: str | None, root: Path, force: bool
) -> tuple[int, int]:
    from pytest_dscore.gates.protocol_data import load_protocol, users_code
    from pytest_dscore.gates.protocol_declared import declared_fields
    from pytest_dscore.protocol.manifest import make_manifest, write_manifest

    with users_code("it", root, None):
        loaded = load_protocol(settings)
        found, folds = loaded.experiment, loaded.folds()
        chosen = selection or ("internal" if loaded.selects else "none")
        fields: dict[str, Any] = declared_fields(name, settings)
        manifest = make_manifest(found.X, found.y, folds, found.groups, **fields, selection=chosen)
    write_manifest(path, manifest, overwrite=force)
    return manifest.rows, len(manifest.splits)
