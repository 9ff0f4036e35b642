"""What a place to keep records must be able to do, so that `Ledger` can do the rest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from pytest_dscore.errors import SettingsError
from pytest_dscore.holdout.ledger.faults import LedgerDamaged
from pytest_dscore.holdout.ledger.index import missing_parents
from pytest_dscore.holdout.ledger.record import Record, parse
from pytest_dscore.holdout.ledger.report import Finding


@dataclass(frozen=True)
class Listing:
    """What lies in a ledger.

    Parameters
    ----------
    names
        Record name -> file or row, for messages and for reading it.
    findings
        What is wrong with the ledger as far as the listing shows: what lies there and cannot be a record, or what
        was there when this machine last looked.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Entry:
    """One record to write."""

    name: str
    line: str
    record: Record


class Backend(ABC):
    """Where records are kept. A third party's ledger implements these and passes the conformance tests."""

    #: Where the ledger lies, without passwords.
    where: str

    @abstractmethod
    def listing(self) -> Listing:
        """List all records there are, from what others see too; empty where the ledger was never begun."""

    @abstractmethod
    def read(self, names: Mapping[str, str]) -> Iterator[tuple[str, bytes | LedgerDamaged]]:
        """Yield (name, line without its end) for records of a listing; in place of a line, what keeps it unread."""

    @abstractmethod
    def exclusive(self) -> AbstractContextManager[None]:
        """Keep all other writers out until the block is left.

        What was appended counts only once the block was left without an exception; `LostRace` then, or inside, means
        that another writer was faster and nothing was written.
        """

    @abstractmethod
    def append(self, entries: Sequence[Entry]) -> None:
        """Write records, durably, parents first. Called inside `exclusive` after `listing`."""

    def attempts(self) -> Iterator[None]:
        """Yield before each try at a write; ends when it is time to give up."""
        yield

    def known(self, revision: str) -> frozenset[str]:
        """Names of the records that the ledger had at a git revision."""
        raise SettingsError(
            f"{self.where} is not kept in git, so base = {revision!r} says nothing about it: pass the record names of "
            "an earlier export or report"
        )


def load(
    backend: Backend, known: Mapping[str, Record], on_fault: Callable[[str, str, LedgerDamaged], None]
) -> tuple[Listing, dict[str, Record]]:
    """Read every record that is not known yet.

    Parameters
    ----------
    backend
        Where they are.
    known
        Records read before; their parents are not looked for again.
    on_fault
        Called with name, file or row, and fault for each record that cannot be read; may raise it.
    """
    listing = backend.listing()
    records: dict[str, Record] = {}

    def take(names: Mapping[str, str]) -> None:
        for name, content in backend.read(names):
            try:
                if isinstance(content, LedgerDamaged):
                    raise content
                records[name] = parse(content, names[name], name)
            except LedgerDamaged as fault:
                on_fault(name, names[name], fault)

    take({name: where for name, where in listing.names.items() if name not in known})
    if any(parent not in listing.names for _, parent in missing_parents(records, known)):
        # A listing takes time: a writer may have added a parent where it had already passed, and then the child where
        # it had not. Whatever such a parent builds on was there before it, so a second listing has all of it.
        later = backend.listing().names
        seen = set(listing.names)
        while missing := {p for _, p in missing_parents(records, known)} & later.keys() - seen:
            seen |= missing
            take({name: later[name] for name in missing})
    return listing, records
