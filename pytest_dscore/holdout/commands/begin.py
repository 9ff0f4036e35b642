"""``dscore holdout begin``: puts declared hold-outs on record, so that a lost ledger is never taken for a new one."""

from __future__ import annotations

import argparse
from typing import Any

from pytest_dscore.errors import DScoreError, SettingsError
from pytest_dscore.holdout.apart import refuse_second_ledger
from pytest_dscore.holdout.commands._ledgers import Project, project_of
from pytest_dscore.holdout.provenance import committed_files
from pytest_dscore.names import unknown_name
from pytest_dscore.report.text import wrapped


def add_to(commands: Any) -> None:
    """Add the sub-command."""
    parser = commands.add_parser("begin", help="put a declared hold-out on record, before its first use")
    parser.add_argument("names", nargs="*", metavar="NAME", help="hold-outs; default: all that are declared")
    parser.add_argument("--root", metavar="DIR", help="where pyproject.toml lies; default: from here upwards")
    parser.set_defaults(run=run, ledger=None)


def run(options: argparse.Namespace) -> int:
    """Load the examples of each hold-out and put them on record where they are not."""
    project = project_of(options)
    declared = project.declared
    if not declared:
        file = project.root.resolve() / "pyproject.toml"
        raise SettingsError(f"{file} declares no hold-out: add a table [tool.dscore.holdouts.NAME]")
    for name in options.names:
        if name not in declared:
            raise SettingsError(unknown_name("hold-out", name, declared))
    for name in options.names or declared:
        try:
            print("\n".join(wrapped(_begin(name, project))))
        except DScoreError as error:
            text = str(error)
            raise DScoreError(text if text.startswith("hold-out") else f"hold-out '{name}': {text}") from error
    return 0


def _begin(name: str, project: Project) -> str:
    # Imported here: the data function may need torch, the other commands do not.
    from pytest_dscore.gates.holdout_data import load_holdout

    terms, root = project.declared[name], project.root.resolve()
    assert terms.data is not None  # of what is declared
    ledger = project.open(terms.ledger)
    if not ledger.begun and (lost := committed_files(root, ledger.where)):
        raise DScoreError(
            f"{ledger.where} is committed with {lost} files and missing here: restore it with `git checkout HEAD -- "
            f"{ledger.where}`; it is not begun anew"
        )
    identity = load_holdout(name, terms.data, root).identity
    refuse_second_ledger(name, identity, {key: one.ledger for key, one in project.declared.items()}, project.open)
    others = [found for found in ledger.related(identity) if found.digest != identity.digest] if ledger.begun else []
    what = f"hold-out '{name}' ({identity.n:,} examples, {identity.digest[:12]})"
    if not ledger.begin(identity):
        return f"{what} is on record in {ledger.where} already"
    shared = ", ".join(f"{found.common:,} of them with '{found.name}'" for found in others)
    more = f"; it shares examples, and so its budget: {shared}" if shared else ""
    return f"{what} begins in {ledger.where}{more}"
