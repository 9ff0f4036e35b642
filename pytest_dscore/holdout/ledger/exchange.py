"""A whole ledger as JSON lines, for backups and for moving from one backend to another."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pytest_dscore.holdout.ledger.faults import LedgerDamaged
from pytest_dscore.holdout.ledger.record import FORMAT, SCHEMA, Record, name_of, parse, to_line


def export(records: Sequence[Record]) -> tuple[str, ...]:
    """Return one line per record, in the order given, and a last one that says how many there are."""
    return (*(to_line(record) for record in records), _end(len(records)))


def read(lines: Iterable[str]) -> dict[str, Record]:
    """Read the lines of `export` back: record name -> record.

    Raises
    ------
    LedgerDamaged
        The last line is missing or counts differently, or a line is not a record as this package writes it.
    """
    given = [line.strip() for line in lines]
    while given and not given[-1]:
        given.pop()
    if not given or (count := _count(given[-1])) is None:
        raise LedgerDamaged("the import was cut short: its last line must be the one that ends an export")
    body = given[:-1]
    if count != len(body):
        raise LedgerDamaged(f"the import is incomplete: it says that it has {count} records and has {len(body)}")
    records: dict[str, Record] = {}
    for number, line in enumerate(body, 1):
        record = parse(line, f"line {number} of the import")
        if to_line(record) != line:
            raise LedgerDamaged(f"line {number} of the import was edited: it is not written as an export writes it")
        records[name_of(line)] = record
    return records


def _end(count: int) -> str:
    body = {"format": FORMAT, "kind": "end", "records": count, "schema": SCHEMA}
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


def _count(line: str) -> int | None:
    try:
        body: Any = json.loads(line)
    except ValueError:
        return None
    count = body.get("records") if isinstance(body, dict) else None
    return count if type(count) is int and line == _end(count) else None
