"""Records: what is written is read back the same, and nothing else is read at all."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_dscore.errors import DScoreError
from pytest_dscore.holdout.ledger import Declaration, HoldoutIdentity, Import, LedgerDamaged, Record, Retirement, Use
from pytest_dscore.holdout.ledger.record import name_of, parse, to_line, utc_now
from tests.holdout.ledger.examples import holdout, use

DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64)
PARENTS = st.lists(DIGESTS, unique=True, max_size=3).map(lambda names: tuple(sorted(names)))
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
REASON = TEXT.filter(str.strip)
WHEN = st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31)).map(lambda time: f"{time:%Y-%m-%dT%H:%M:%S.%fZ}")


@st.composite
def uses(draw: st.DrawFn) -> Use:
    n = draw(st.integers(1, 70))
    bits = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    packed = int("".join("01"[bit] for bit in bits).ljust(-(-n // 8) * 8, "0"), 2).to_bytes(-(-n // 8), "big")
    return Use(
        holdout=draw(DIGESTS),
        n=n,
        outcomes=packed,
        model=draw(REASON),
        commit=draw(st.none() | TEXT),
        ran_by=draw(TEXT),
        when=draw(WHEN),
        verdict=draw(TEXT),
        parents=draw(PARENTS),
    )


@st.composite
def declarations(draw: st.DrawFn) -> Declaration:
    inputs = draw(st.lists(st.integers(0, 9), min_size=1, max_size=20))
    labels = draw(st.lists(st.integers(0, 3), min_size=len(inputs), max_size=len(inputs)))
    return Declaration(HoldoutIdentity.of(inputs, labels, draw(TEXT)), draw(WHEN), draw(PARENTS))


RECORDS: st.SearchStrategy[Record] = st.one_of(
    uses(),
    declarations(),
    st.builds(Retirement, holdout=DIGESTS, why=REASON, ran_by=TEXT, when=WHEN, parents=PARENTS),
    st.builds(Import, records=PARENTS, why=REASON, ran_by=TEXT, when=WHEN, parents=PARENTS),
)


@given(RECORDS)
def test_a_record_is_read_back_as_it_was(record: Record) -> None:
    line = to_line(record)
    assert line.isascii()
    assert "\n" not in line
    assert parse(line, "here", name_of(line)) == record
    assert parse(line.encode(), "here") == record
    assert to_line(parse(line, "here")) == line


@given(uses(), st.data())
def test_any_changed_byte_is_noticed(record: Use, data: st.DataObject) -> None:
    raw = to_line(record).encode()
    place = data.draw(st.integers(0, len(raw) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != raw[place]))
    changed = raw[:place] + bytes([other]) + raw[place + 1 :]
    with pytest.raises(LedgerDamaged, match=r"^here "):
        parse(changed, "here", name_of(raw))


@given(uses(), st.data())
def test_any_shortening_is_noticed(record: Use, data: st.DataObject) -> None:
    raw = to_line(record).encode()
    with pytest.raises(LedgerDamaged, match=r"^here (is empty|was cut short|is not a record)"):
        parse(raw[: data.draw(st.integers(0, len(raw) - 1))], "here", name_of(raw))


def edited(**changes: Any) -> str:
    """A line with some fields replaced; None takes one out."""
    data = holdout()
    body = json.loads(to_line(Use(**(vars(use(0, data)) | {"when": utc_now()}))))
    body |= changes
    return json.dumps({key: value for key, value in body.items() if value != "gone"})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"format": "other"}, "is foreign: it is not a record of a hold-out ledger"),
        ({"schema": 2}, r"was written by a newer pytest-dscore \(schema 2, this one knows 1\): upgrade it here"),
        ({"schema": True}, "was edited: its schema is True"),
        ({"kind": "gift"}, "was edited: there is no record of kind 'gift'"),
        ({"n": 0}, "n must be a whole number of at least 1, not '0'"),
        ({"n": True}, "n must be a whole number of at least 1, not 'True'"),
        ({"n": 1000}, "outcomes hold 13 bytes, but 1000 examples take 125"),
        ({"outcomes": "xy" * 13}, "not a valid use record: non-hexadecimal number"),
        ({"outcomes": "ff" * 13}, "outcomes have bits set beyond the last of 100 examples"),
        ({"outcomes": "0 " * 12 + "00"}, "not a valid use record"),
        ({"outcomes": "00  " * 6 + "00"}, "there are spaces between hexadecimal digits"),
        ({"outcomes": 5}, "outcomes must be hexadecimal digits, not '5'"),
        ({"holdout": "abc"}, "holdout must be a SHA-256, not 'abc'"),
        ({"model": ""}, "model must be a fingerprint"),
        ({"commit": 7}, "commit must be a commit or null"),
        ({"when": "yesterday"}, "when must be a UTC time"),
        ({"parents": ["b" * 64, "a" * 64]}, "parents must be a sorted list of record names"),
        ({"parents": "a"}, "parents must be a sorted list of record names"),
        ({"verdict": "gone"}, "the fields verdict are missing or unknown"),
        ({"extra": 1}, "the fields extra are missing or unknown"),
    ],
)
def test_what_is_no_use_is_refused_with_the_reason(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(LedgerDamaged, match=reason):
        parse(edited(**changes), "here")


def declared(**changes: Any) -> str:
    body = json.loads(to_line(Declaration(holdout(n=3), utc_now()))) | changes
    return json.dumps(body)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"fingerprints": "00" * 24}, "the fingerprints do not give its digest"),
        ({"fingerprints": "ff" * 8 + "00" * 16}, "the fingerprints are not in ascending order"),
        ({"fingerprints": "00" * 20}, "it needs 8 bytes of fingerprint and 1, 2 or 4 of label code per example"),
        ({"fingerprints": "", "codes": ""}, "it needs 8 bytes of fingerprint"),
        ({"codes": "00" * 9}, "it needs 8 bytes of fingerprint"),
        ({"codes": "00" * 12}, "the label codes do not give its label digest"),
        ({"n": 4}, "the fingerprints do not give its digest"),
        ({"sample_bits": 64}, "sample_bits must be a whole number from 0 to 63"),
    ],
)
def test_what_is_no_hold_out_is_refused_with_the_reason(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(LedgerDamaged, match=reason):
        parse(declared(**changes), "here")


def test_a_deeply_nested_text_is_no_record() -> None:
    with pytest.raises(LedgerDamaged, match="is not a record"):
        parse("[" * 100_000, "here")


def test_what_cannot_be_read_back_is_not_written() -> None:
    with pytest.raises(DScoreError, match="the retire record cannot be written: why must be a reason"):
        to_line(Retirement("a" * 64, " ", when=utc_now()))
    with pytest.raises(DScoreError, match="ran_by must be text"):
        to_line(Retirement("a" * 64, "why", ran_by="\ud800", when=utc_now()))


def test_the_key_is_of_hold_out_and_answers() -> None:
    data = holdout()
    assert use(0, data).key == use(0, data, model="another", ran_by="elsewhere").key
    assert use(0, data).key != use(1, data).key
    assert use(0, data).key != use(0, holdout(seed=1)).key
