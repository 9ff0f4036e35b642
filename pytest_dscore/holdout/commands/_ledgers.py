"""Which ledger a command is about, and which of its hold-outs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_dscore.errors import DScoreError, SettingsError
from pytest_dscore.holdout.commands._project import find_root, load_holdouts
from pytest_dscore.holdout.ledger.base import Ledger
from pytest_dscore.holdout.ledger.identity import HoldoutIdentity
from pytest_dscore.holdout.ledger.opening import open_ledger
from pytest_dscore.holdout.terms import Terms
from pytest_dscore.settings.holdouts import LEDGER

_SHORTEST_DIGEST = 8


@dataclass(frozen=True)
class Project:
    """The hold-outs declared, and where to look for ledgers.

    Parameters
    ----------
    root
        What relative paths start from.
    declared
        By name.
    url
        The ledger given on the command line in place of the project's own; None if none was.
    """

    root: Path
    declared: Mapping[str, Terms]
    url: str | None

    def urls(self) -> tuple[str, ...]:
        """Return each ledger once, in the order of the hold-outs."""
        if self.url is not None:
            return (self.url,)
        return tuple(dict.fromkeys(one.ledger for one in self.declared.values())) or (LEDGER,)

    def open(self, url: str, *, must_exist: bool | None = None) -> Ledger:
        """Open one of `urls`. One named on the command line must exist: a slip of the pen is not an empty ledger."""
        return open_ledger(url, root=self.root, must_exist=self.url is not None if must_exist is None else must_exist)

    def only(self, name: str | None = None, *, must_exist: bool = True) -> Ledger:
        """Open the one ledger there is, or that of the hold-out called `name`.

        Raises
        ------
        SettingsError
            There are several, and nothing says which.
        """
        if self.url is None and name is not None and name in self.declared:
            return self.open(self.declared[name].ledger, must_exist=must_exist)
        urls = self.urls()
        if len(urls) > 1:
            raise SettingsError(f"the project keeps {len(urls)} ledgers: say which with --ledger")
        return self.open(urls[0], must_exist=must_exist)

    def settings_of(self, identity: HoldoutIdentity, url: str) -> Terms:
        """Return what is declared for a hold-out on record; defaults where its name is not declared."""
        found = self.declared.get(identity.name)
        return found if found is not None else Terms(name=identity.name, ledger=url)


def add_ledger_options(parser: argparse.ArgumentParser) -> None:
    """Add --ledger and --root."""
    parser.add_argument("--ledger", metavar="URL", help="a directory, git:REF or a database; default: the project's")
    parser.add_argument("--root", metavar="DIR", help="where pyproject.toml lies; default: from here upwards")


def project_of(options: argparse.Namespace, **override: Any) -> Project:
    """Return the project that the options mean, with settings overridden where they are given."""
    root = find_root(options.root)
    given = {key: value for key, value in override.items() if value is not None}
    declared = {name: replace(one, **given) for name, one in load_holdouts(root).items()}
    return Project(root, declared, options.ledger)


def matching(identities: tuple[HoldoutIdentity, ...], wanted: str) -> Iterator[HoldoutIdentity]:
    """Yield the hold-outs on record of that name, or whose digest begins so."""
    for identity in identities:
        if identity.name == wanted or (len(wanted) >= _SHORTEST_DIGEST and identity.digest.startswith(wanted)):
            yield identity


def one_matching(ledger: Ledger, wanted: str) -> HoldoutIdentity:
    """Return the one hold-out meant.

    Raises
    ------
    DScoreError
        There is none, or more than one.
    """
    known = ledger.holdouts()
    found = list(matching(known, wanted))
    if len(found) != 1:
        listed = ", ".join(f"'{one.name}' {one.digest[:12]} ({one.n:,} examples)" for one in found or known) or "none"
        what = f"several hold-outs {wanted!r}, say which by its digest" if found else f"no hold-out {wanted!r}; it has"
        raise DScoreError(f"{ledger.where} has {what}: {listed}")
    return found[0]
