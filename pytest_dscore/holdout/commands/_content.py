"""Hold-outs that the settings call otherwise than the ledger: recognised by what they hold."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass, field

from pytest_dscore.errors import DScoreError
from pytest_dscore.holdout.commands._ledgers import Project
from pytest_dscore.holdout.ledger import HoldoutIdentity, Ledger
from pytest_dscore.holdout.terms import Terms
from pytest_dscore.report.text import plain


@dataclass(frozen=True)
class Content:
    """What the data of declared hold-outs say about those on record under other names.

    Parameters
    ----------
    renamed
        Digest of a hold-out on record -> the name that the settings give it now.
    notes
        Declared name -> what else is known of it.
    """

    renamed: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)


def by_content(project: Project, names: list[str]) -> Content:
    """Look at the data of each hold-out that is declared and not on record by its name, where it may be by another.

    Only then are data loaded: they may be large, and the other commands need none.

    Parameters
    ----------
    project
        Its settings and ledgers.
    names
        Hold-outs that are asked for; all where there are none.
    """
    content = Content()
    for name, terms in project.declared.items():
        if names and name not in names:
            continue
        ledger = project.open(project.url or terms.ledger)
        known = {one.name for one in ledger.holdouts()}
        if name in known or not known - project.declared.keys():
            continue
        try:
            _compare(content, ledger, _identity(project, name, terms))
        except DScoreError as error:
            content.notes[name] = f"whether its data are under another is not known: {error}"
    return content


def _compare(content: Content, ledger: Ledger, identity: HoldoutIdentity) -> None:
    related = ledger.related(identity)
    for found in related:
        if found.digest == identity.digest:
            content.renamed[found.digest] = identity.name
            return
    if related:
        shared = ", ".join(f"{one.common:,} with '{plain(one.name)}'" for one in related)
        content.notes[identity.name] = f"it shares examples, and so the budget: {shared}"


def _identity(project: Project, name: str, terms: Terms) -> HoldoutIdentity:
    # Imported here: the data function may need torch, and the commands seldom need the data.
    from pytest_dscore.gates.holdout_data import load_holdout

    assert terms.data is not None  # of what is declared
    with contextlib.redirect_stdout(sys.stderr):  # what the data function prints is no part of our output
        return load_holdout(name, terms.data, project.root.resolve()).identity
