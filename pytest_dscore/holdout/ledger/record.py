"""What a ledger holds: small immutable records, each one line of canonical JSON whose SHA-256 is its name.

Every record names the heads of the ledger that its writer knew, as a commit names its parents; so the records form a
hash-linked graph, in which none can be changed or taken out without breaking a link, except at the very end.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from datetime import datetime, timezone
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

from pytest_dscore.errors import DScoreError
from pytest_dscore.holdout.ledger.faults import LedgerDamaged
from pytest_dscore.holdout.ledger.fields import KINDS, fields_fault
from pytest_dscore.holdout.ledger.identity import HoldoutIdentity, content_digest, label_digest

FORMAT = "dscore-ledger"
SCHEMA = 1


#: How the verdict of a use begins that was refused for its own outcomes.
REFUSED = "refused; "


@dataclass(frozen=True)
class Use:
    """One model evaluated on one hold-out.

    Parameters
    ----------
    holdout
        Digest of the `HoldoutIdentity`.
    n
        Examples.
    outcomes
        One bit per example, 1 where the model is wrong, in the hold-out's canonical order; ceil(n / 8) bytes, the first
        example in the highest bit, unused bits 0. `HoldoutIdentity.pack` makes them.
    model
        Fingerprint of the model; the same fingerprint on the same hold-out is the same use.
    commit
        Git commit, None where there is none.
    ran_by
        What ran it: the id of a CI run, or a person's machine.
    when
        UTC, ``2026-01-31T12:00:00.000000Z``; the ledger fills it in where empty. It is for people: nothing is decided
        by it, so a clock that goes backwards does no harm.
    verdict
        The verdict shown; the ledger fills in what the admission function returned.
    parents
        Names of the heads known when it was recorded, sorted; filled in by the ledger.
    """

    kind: ClassVar[str] = "use"

    holdout: str
    n: int
    outcomes: bytes = field(repr=False)
    model: str
    commit: str | None = None
    ran_by: str = ""
    when: str = ""
    verdict: str = ""
    parents: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, holdout: HoldoutIdentity, outcomes: Any, *, model: str, commit: str | None = None, ran_by: str = ""
    ) -> Use:
        """Make the use to record from outcomes of shape (n,) in the order of the caller's data, 1 where wrong."""
        return cls(holdout.digest, holdout.n, holdout.pack(outcomes), model, commit, ran_by)

    @cached_property
    def key(self) -> str:
        """Digest of hold-out and outcomes: equal for the same answers on the same hold-out."""
        return hashlib.sha256(bytes.fromhex(self.holdout) + self.outcomes).hexdigest()

    @property
    def name(self) -> str:
        """SHA-256 of the record."""
        return name_of(to_line(self))

    @property
    def score_hidden(self) -> bool:
        """Whether less than its score was shown when it was recorded: only whether it passed, or a Ladder's answer."""
        return self.verdict.startswith(("pass-fail; ", "ladder; "))

    @property
    def refused(self) -> bool:
        """Whether it was refused for its own outcomes: nothing was shown of it, and it counts all the same."""
        return self.verdict.startswith(REFUSED)

    @property
    def wrong(self) -> int:
        """Number of examples that the model got wrong."""
        return int.from_bytes(self.outcomes, "big").bit_count()


@dataclass(frozen=True)
class Declaration:
    """The first record of a hold-out: its fingerprints, by which later ones are recognised."""

    kind: ClassVar[str] = "holdout"

    identity: HoldoutIdentity
    when: str = ""
    parents: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Digest of the hold-out."""
        return self.identity.digest


@dataclass(frozen=True)
class Retirement:
    """The end of a hold-out, with the reason: no model is scored on it, or on its examples, any more."""

    kind: ClassVar[str] = "retire"

    holdout: str
    why: str
    ran_by: str = ""
    when: str = ""
    parents: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Digest of the hold-out."""
        return self.holdout


@dataclass(frozen=True)
class Import:
    """Records taken over from elsewhere, with the reason."""

    kind: ClassVar[str] = "import"

    records: tuple[str, ...]
    why: str
    ran_by: str = ""
    when: str = ""
    parents: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Digest of the list of records."""
        return hashlib.sha256("".join(self.records).encode()).hexdigest()


Record: TypeAlias = Use | Declaration | Retirement | Import


def utc_now() -> str:
    """Return the time as records write it."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def to_line(record: Record) -> str:
    """Return the canonical JSON of a record: one line, ASCII, keys sorted, no spaces.

    Raises
    ------
    DScoreError
        A field holds what `parse` would not take back.
    """
    body = _to_json(record)
    if reason := fields_fault(record.kind, body):
        raise DScoreError(f"the {record.kind} record cannot be written: {reason}")
    return json.dumps(
        body | {"format": FORMAT, "kind": record.kind, "schema": SCHEMA}, sort_keys=True, separators=_TIGHT
    )


_TIGHT = (",", ":")


def name_of(line: str | bytes) -> str:
    """Return the name of a record: the SHA-256 of its line, without the line's end."""
    return hashlib.sha256(line.encode() if isinstance(line, str) else line).hexdigest()


def parse(line: str | bytes, where: str, name: str | None = None) -> Record:
    """Read one record, strictly.

    Parameters
    ----------
    line
        The record without its line's end.
    where
        The file or row it comes from, for messages.
    name
        What the record should be called; None where nothing says so.

    Raises
    ------
    LedgerDamaged
        Empty, cut short, foreign, edited, or of a newer version.
    """
    raw = line.encode() if isinstance(line, str) else line
    outcomes, rest = _cut(raw)
    body = _read(rest, where)
    if outcomes is not None:
        body["outcomes"] = outcomes
    if name is not None and name_of(raw) != name:
        raise LedgerDamaged(f"{where} was edited: its content is not what its name stands for{_ADVICE}")
    kind = body.pop("kind")
    try:
        if reason := fields_fault(kind, body):
            raise ValueError(reason)
        return _FROM_JSON[kind](body)
    except (ValueError, IndexError) as error:
        raise LedgerDamaged(f"{where} is not a valid {kind} record: {error}{_ADVICE}") from None


_ADVICE = "; restore it from version control or a backup, and see `dscore holdout verify`"


def _cut(raw: bytes) -> tuple[str | None, bytes]:
    """Take the outcomes, nearly all of a record, out of it: they need no JSON parser, and a ledger has thousands."""
    start = raw.find(_OUTCOMES) + len(_OUTCOMES)
    end = raw.find(b'"', start)
    # Quotes inside a JSON text are escaped, so this can only be the key and the value itself.
    if start < len(_OUTCOMES) or end < 0 or b"\\" in raw[start:end]:
        return None, raw
    return raw[start:end].decode("ascii", "replace"), raw[:start] + raw[end:]


_OUTCOMES = b'"outcomes":"'


def _read(raw: bytes, where: str) -> dict[str, Any]:
    if not raw.strip():
        raise LedgerDamaged(f"{where} is empty{_ADVICE}")
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        state = "was cut short" if raw.startswith(b'{"') and not raw.endswith(b"}") else "is not a record (no JSON)"
        raise LedgerDamaged(f"{where} {state}{_ADVICE}", "edited" if "cut" in state else "foreign") from None
    if not isinstance(body, dict) or body.pop("format", None) != FORMAT:
        raise LedgerDamaged(
            f"{where} is foreign: it is not a record of a hold-out ledger; move it out of the ledger", "foreign"
        )
    schema = body.pop("schema", None)
    if type(schema) is not int or schema < 1:
        raise LedgerDamaged(f"{where} was edited: its schema is {schema!r}{_ADVICE}")
    if schema > SCHEMA:
        raise LedgerDamaged(
            f"{where} was written by a newer pytest-dscore (schema {schema}, this one knows {SCHEMA}): upgrade it here"
        )
    if body.get("kind") not in KINDS:
        raise LedgerDamaged(f"{where} was edited: there is no record of kind {body.get('kind')!r}{_ADVICE}")
    return body


def _to_json(record: Record) -> dict[str, Any]:
    if isinstance(record, Declaration):
        identity = record.identity
        body = {f.name: getattr(identity, f.name) for f in fields(identity) if f.name != "order"}
        body |= {"when": record.when, "parents": record.parents}
    else:
        body = {f.name: getattr(record, f.name) for f in fields(record)}
    return {key: _plain(value) for key, value in body.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return list(value) if isinstance(value, tuple) else value


def _unhex(text: str) -> bytes:
    content = bytes.fromhex(text)
    if 2 * len(content) != len(text):
        raise ValueError("there are spaces between hexadecimal digits")
    return content


def _use(body: dict[str, Any]) -> Use:
    return Use(
        body["holdout"],
        body["n"],
        _unhex(body["outcomes"]),
        body["model"],
        body["commit"],
        body["ran_by"],
        body["when"],
        body["verdict"],
        tuple(body["parents"]),
    )


def _declaration(body: dict[str, Any]) -> Declaration:
    fingerprints, codes = _unhex(body["fingerprints"]), _unhex(body["codes"])
    identity = HoldoutIdentity(
        body["name"], body["n"], body["digest"], body["labels"], fingerprints, codes, body["sample_bits"]
    )
    kept_count, odd = divmod(len(fingerprints), 8)
    if odd or not kept_count or len(codes) not in (kept_count, 2 * kept_count, 4 * kept_count):
        raise ValueError("it needs 8 bytes of fingerprint and 1, 2 or 4 of label code per example")
    kept = identity.kept()
    if bool((kept[1:] < kept[:-1]).any()):
        raise ValueError("the fingerprints are not in ascending order")
    if identity.sample_bits == 0:
        if len(kept) != identity.n or content_digest(kept) != identity.digest:
            raise ValueError("the fingerprints do not give its digest")
        if label_digest(identity.kept_codes()) != identity.labels:
            raise ValueError("the label codes do not give its label digest")
    return Declaration(identity, body["when"], tuple(body["parents"]))


def _retirement(body: dict[str, Any]) -> Retirement:
    return Retirement(body["holdout"], body["why"], body["ran_by"], body["when"], tuple(body["parents"]))


def _import(body: dict[str, Any]) -> Import:
    return Import(tuple(body["records"]), body["why"], body["ran_by"], body["when"], tuple(body["parents"]))


_FROM_JSON: dict[str, Callable[[dict[str, Any]], Record]] = {
    "use": _use,
    "holdout": _declaration,
    "retire": _retirement,
    "import": _import,
}
