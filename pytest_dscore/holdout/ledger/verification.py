"""Looks at a ledger from scratch and names everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from pytest_dscore.holdout.ledger.backend import Backend, Listing, load
from pytest_dscore.holdout.ledger.faults import LedgerDamaged
from pytest_dscore.holdout.ledger.index import Index, broken_links, missing_parents
from pytest_dscore.holdout.ledger.record import Record, name_of, to_line
from pytest_dscore.holdout.ledger.report import Finding, Report

#: What was known elsewhere: a git revision, or the names of records.
Base: TypeAlias = str | Iterable[str]


def verify(backend: Backend, base: Base | None) -> Report:
    """See `Ledger.verify`."""
    findings: list[Finding] = []

    def note(name: str, where: str, fault: LedgerDamaged) -> None:
        findings.append(Finding(fault.fault, name, where, str(fault)))

    listing, records = load(backend, {}, note)
    findings.extend(listing.findings)
    for name, record in records.items():
        if name_of(to_line(record)) != name:
            reason = f"{listing.names.get(name, name)} was edited: it is not written as this package writes records"
            findings.append(Finding("edited", name, listing.names.get(name, name), reason))
    findings.extend(_missing(records, listing))
    findings.extend(_broken(records, listing))
    findings.extend(_rolled_back(backend, base, listing.names.keys() | records.keys()))
    sound = _sound(records)
    return Report(
        where=backend.where,
        records=len(sound.records),
        uses=len(sound.uses_of()),
        heads=tuple(sorted(sound.heads)),
        findings=tuple(dict.fromkeys(findings)),
    )


def _missing(records: Mapping[str, Record], listing: Listing) -> Iterable[Finding]:
    # A parent that is there and cannot be read has been named already.
    gone: dict[str, str] = {}
    for name, parent in missing_parents(records, {}):
        if parent not in listing.names:
            gone.setdefault(parent, name)
    for parent, child in gone.items():
        yield Finding(
            "missing",
            parent,
            listing.names.get(child, child),
            f"record {parent} is gone: {listing.names.get(child, child)} was written after it; restore it from version "
            "control or a backup",
        )


def _broken(records: Mapping[str, Record], listing: Listing) -> Iterable[Finding]:
    for name, reason in broken_links(records, {}, {}):
        where = listing.names.get(name, name)
        yield Finding("broken link", name, where, f"{where} speaks of {reason}; restore what is missing")


def _rolled_back(backend: Backend, base: Base | None, present: Iterable[str]) -> Iterable[Finding]:
    if base is None:
        return
    known = backend.known(base) if isinstance(base, str) else frozenset(base)
    source = f"at {base}" if isinstance(base, str) else "in the base"
    for name in sorted(known - frozenset(present)):
        reason = f"record {name} was known {source} and is gone from {backend.where}: restore it"
        yield Finding("rolled back", name, backend.where, reason)


def _sound(records: Mapping[str, Record]) -> Index:
    """Index the records that are sound together with all their ancestors."""
    children: dict[str, list[str]] = {}
    for name, record in records.items():
        for parent in record.parents:
            children.setdefault(parent, []).append(name)
    sound = dict(records)
    # What lacks an unsound record may leave others without what they speak of, hence again until nothing is left.
    while bad := {name for name, _ in [*missing_parents(sound, {}), *broken_links(sound, {}, {})]}:
        waiting = list(bad)
        while waiting:
            below = [child for child in children.get(waiting.pop(), ()) if child not in bad]
            bad.update(below)
            waiting.extend(below)
        sound = {name: record for name, record in sound.items() if name not in bad}
    index = Index()
    index.add(sound)
    return index
