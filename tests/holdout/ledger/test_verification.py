"""Records that this package would not have written, and listings that others write into."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_dscore.holdout.ledger import (
    Backend,
    Declaration,
    Entry,
    Import,
    Ledger,
    LedgerDamaged,
    Listing,
    Record,
    Retirement,
    Use,
)
from pytest_dscore.holdout.ledger.files import path_of
from pytest_dscore.holdout.ledger.record import name_of, parse, to_line, utc_now
from tests.holdout.ledger.examples import holdout, use
from tests.holdout.ledger.places import DirectoryPlace

DATA = holdout()


@pytest.fixture
def place(tmp_path: Path) -> DirectoryPlace:
    made = DirectoryPlace(tmp_path)
    made.open().record(use(0, DATA), DATA)
    return made


def forge(place: DirectoryPlace, record: Record, line: str | None = None) -> str:
    """Put a record in by hand, as somebody could who knows the format; returns its name."""
    text = to_line(record) if line is None else line
    entry = Entry(name_of(text), text, record)
    path = place.path / "ledger" / path_of(entry)
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{text}\n")
    return entry.name


def forgeries() -> Iterator[tuple[str, Record, str]]:
    when = utc_now()
    other = holdout(seed=5)
    yield "use of nothing", replace(use(1, other), when=when), r"hold-out [0-9a-f]{12}, which is not on record"
    yield "retired nothing", Retirement("a" * 64, "why", when=when), r"hold-out a{12}, which is not on record"
    yield "too short", replace(use(1, holdout(n=50)), holdout=DATA.digest, when=when), "with 50 examples, which has 100"
    yield (
        "import of nothing",
        Import(("b" * 64,), "why", when=when),
        "1 imported records that are not there, the first bb",
    )


@pytest.mark.parametrize(("record", "reason"), [pytest.param(r, why, id=label) for label, r, why in forgeries()])
def test_a_record_that_speaks_of_nothing_is_a_broken_link(place: DirectoryPlace, record: Record, reason: str) -> None:
    name = forge(place, record)
    report = place.open().verify()
    assert [(f.fault, f.record) for f in report.findings] == [("broken link", name)]
    assert (report.uses, report.records) == (1, 2)
    with pytest.raises(LedgerDamaged, match=f"record {name} speaks of .*{reason}"):
        place.open().record(use(2, DATA), DATA)


def test_what_builds_on_a_broken_link_does_not_count(place: DirectoryPlace) -> None:
    parent = forge(place, Import(("b" * 64,), "why", when=utc_now()))
    other = holdout(seed=5)
    declaration = forge(place, Declaration(other, utc_now(), (parent,)))
    forge(place, replace(use(3, other), when=utc_now(), parents=(declaration,)))
    forge(place, replace(use(4, other), when=utc_now()))
    report = place.open().verify()
    assert [(f.fault, f.record) for f in report.findings] == [("broken link", parent)]
    assert report.uses == 1


def test_a_record_written_in_another_way_is_an_edit(place: DirectoryPlace) -> None:
    record = replace(use(1, DATA), when=utc_now())
    spaced = json.dumps(json.loads(to_line(record)), sort_keys=True)
    name = forge(place, record, spaced)
    report = place.open().verify()
    assert [(f.fault, f.record) for f in report.findings] == [("edited", name)]
    assert "is not written as this package writes records" in str(report)


class Rotating(Backend):
    """Another process records between the moments at which a listing looks at two folders."""

    where = "a place that is written to while it is listed"

    def __init__(self, records: Sequence[Record], first: Sequence[int]) -> None:
        self.lines = {name_of(to_line(r)): to_line(r) for r in records}
        self.views = [list(self.lines)[i] for i in first]
        self.listed = 0

    def listing(self) -> Listing:
        self.listed += 1
        shown = self.views if self.listed == 1 else list(self.lines)
        return Listing({name: name for name in shown})

    def read(self, names: Mapping[str, str]) -> Iterator[tuple[str, bytes | LedgerDamaged]]:
        for name in names:
            yield name, self.lines[name].encode()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        yield

    def append(self, entries: Sequence[Entry]) -> None:
        self.lines |= {entry.name: entry.line for entry in entries}


def chain(length: int) -> list[Record]:
    records: list[Record] = [Declaration(DATA, utc_now())]
    for number in range(length):
        records.append(replace(use(number, DATA), when=utc_now(), parents=(name_of(to_line(records[-1])),)))
    return records


def test_a_parent_written_behind_the_listing_s_back_is_not_missing() -> None:
    records = chain(5)
    # The last was seen, and three of its ancestors were written where the listing had already passed.
    backend = Rotating(records, [0, 1, 5])
    assert len(Ledger(backend).uses()) == 5
    assert Ledger(Rotating(records, [0, 1, 5])).verify().ok


def test_a_third_party_s_backend_is_a_ledger() -> None:
    ledger = Ledger(Rotating([], []))
    assert ledger.record(use(0, DATA), DATA).is_new
    assert not ledger.record(use(0, DATA), DATA).is_new
    (found,) = ledger.uses()
    assert isinstance(parse(to_line(found), "here"), Use)
