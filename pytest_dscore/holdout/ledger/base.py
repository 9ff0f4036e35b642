"""The ledger of hold-out uses: one interface over every backend."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeAlias, TypeVar

from pytest_dscore.errors import DScoreError
from pytest_dscore.holdout.ledger import exchange, verification
from pytest_dscore.holdout.ledger.backend import Backend, Entry, load
from pytest_dscore.holdout.ledger.faults import (
    HoldoutRetired,
    LabelsChanged,
    LedgerBusy,
    LedgerDamaged,
    LostRace,
)
from pytest_dscore.holdout.ledger.identity import HoldoutIdentity, Overlap, changed_labels
from pytest_dscore.holdout.ledger.index import Index, graph_order, missing_parents
from pytest_dscore.holdout.ledger.record import (
    Declaration,
    Import,
    Record,
    Retirement,
    Use,
    name_of,
    to_line,
    utc_now,
)
from pytest_dscore.holdout.ledger.report import Report
from pytest_dscore.holdout.ledger.verification import Base

#: Called inside the critical section with the uses already charged to the hold-out and those about to be; returns the
#: verdict to put on record, or raises `UseRefused`. It may be called again when another process was faster.
Admit: TypeAlias = Callable[[Sequence[Use], Sequence[Use]], str]
_T = TypeVar("_T")


@dataclass(frozen=True)
class Recorded:
    """What became of a use.

    Parameters
    ----------
    use
        The use on record. Show the score of this one, not of the one passed in: they differ where the same model gave
        other outcomes this time, and every other answer would be one more use.
    is_new
        Whether it was charged now; False for the same model or the same outcomes again.
    """

    use: Use
    is_new: bool


@dataclass(frozen=True)
class Change(Generic[_T]):
    """What to write: records taken over as they are, then new ones, which still lack their parents."""

    result: _T
    new: Sequence[Record] = ()
    taken: Mapping[str, Record] = field(default_factory=dict)


class Ledger:
    """All uses of hold-outs, shared by everyone who opens the same place.

    Parameters
    ----------
    backend
        Where the records are kept.
    clock
        Returns the time as records write it.
    """

    def __init__(self, backend: Backend, clock: Callable[[], str] = utc_now) -> None:
        self._backend = backend
        self._clock = clock
        self._index = Index()
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"Ledger({self.where!r})"

    @property
    def begun(self) -> bool:
        """Whether there is any record."""
        return bool(self._backend.listing().names)

    @property
    def where(self) -> str:
        """Where the ledger lies, without passwords."""
        return self._backend.where

    def begin(self, holdout: HoldoutIdentity) -> bool:
        """Put a hold-out on record before its first use, so that a ledger without it is known to be the wrong one.

        Returns
        -------
        bool
            False where it was on record already.

        Raises
        ------
        UseRefused
            Examples of it were retired, or its labels differ from those on record.
        LedgerError
            The ledger cannot be read or written.
        """

        def build(index: Index) -> Change[bool]:
            _check_known(index, holdout, index.related(holdout))
            if holdout.digest in index.declared:
                return Change(False)
            return Change(True, [Declaration(holdout, self._clock())])

        return self._change(build)

    def check(self, holdout: HoldoutIdentity) -> None:
        """Raise `UseRefused` where any use of the hold-out would be: it was retired, or its labels changed."""
        with self._lock:
            self._refresh()
            _check_known(self._index, holdout, self._index.related(holdout))

    def record(self, use: Use, holdout: HoldoutIdentity, admit: Admit | None = None) -> Recorded:
        """Charge one use, unless it is on record already. See `record_all`."""
        return self.record_all([use], holdout, admit)[0]

    def record_all(
        self, uses: Sequence[Use], holdout: HoldoutIdentity, admit: Admit | None = None
    ) -> tuple[Recorded, ...]:
        """Charge several uses of one hold-out at once, all or none.

        The check and the record are one step for all processes that share the ledger: nobody else records between the
        call of `admit` and the end. When this returns, the uses are durably on record and their scores may be shown.

        Parameters
        ----------
        uses
            As made by `Use.of`; `parents` and `verdict` are filled in, and `when` where it is empty.
        holdout
            The hold-out they are uses of; put on record with its first use.
        admit
            Called once with the uses already charged (those of every hold-out that shares examples with this one) and
            the new ones, if there are new ones. One that was refused before and not shown since is new again.

        Returns
        -------
        tuple of Recorded
            One for each of `uses`.

        Raises
        ------
        UseRefused
            By `admit`, or because the hold-out was retired or its labels changed; nothing was written.
        LedgerError
            The ledger cannot be read or written.
        """
        for use in uses:
            if (use.holdout, use.n) != (holdout.digest, holdout.n):
                raise DScoreError(f"a use of hold-out {use.holdout[:12]} was given with hold-out {holdout.digest[:12]}")

        def build(index: Index) -> Change[frozenset[str]]:
            related = index.related(holdout)
            _check_known(index, holdout, related)
            new: dict[str, Use] = {}
            for use in uses:
                if index.same_use(use) is None and not any(_same(use, other) for other in new.values()):
                    new[use.key] = use
            if not new:
                return Change(frozenset())
            existing = index.uses_of(found.digest for found in related)
            verdict = admit(existing, tuple(new.values())) if admit else ""
            charged = [replace(use, verdict=verdict, when=use.when or self._clock()) for use in new.values()]
            first = [] if holdout.digest in index.declared else [Declaration(holdout, self._clock())]
            return Change(frozenset(new), [*first, *charged])

        with self._lock:
            charged = self._change(build)
            new = set(charged)
            recorded = []
            for use in uses:
                found = self._index.recorded(use)
                recorded.append(Recorded(found, found.key in new))
                new.discard(found.key)
        return tuple(recorded)

    def uses(self, holdout: HoldoutIdentity | str | None = None) -> tuple[Use, ...]:
        """Return the distinct uses, earlier ones first within a hold-out.

        Parameters
        ----------
        holdout
            An identity: the uses of every hold-out that shares examples with it. A digest: of that hold-out alone.
        """
        with self._lock:
            self._refresh()
            if isinstance(holdout, HoldoutIdentity):
                return tuple(self._index.uses_of(found.digest for found in self._index.related(holdout)))
            return tuple(self._index.uses_of(None if holdout is None else [holdout]))

    def related(self, holdout: HoldoutIdentity) -> tuple[Overlap, ...]:
        """Return the hold-outs on record that share examples with this one, and how many, the most first."""
        with self._lock:
            self._refresh()
            return self._index.related(holdout)

    def holdouts(self) -> tuple[HoldoutIdentity, ...]:
        """Return the hold-outs on record."""
        with self._lock:
            self._refresh()
            return tuple(self._index.declared.values())

    def history(self) -> tuple[Record, ...]:
        """Return every record, parents before children."""
        with self._lock:
            self._refresh()
            records = self._index.records
            return tuple(records[name] for name in graph_order(records))

    def heads(self) -> tuple[str, ...]:
        """Return the names of the newest records, those that no other names as its parent."""
        with self._lock:
            self._refresh()
            return tuple(sorted(self._index.heads))

    def retire(self, holdout: HoldoutIdentity | str, why: str, ran_by: str = "") -> None:
        """End a hold-out: later uses of it, or of hold-outs that share examples with it, are refused.

        Raises
        ------
        DScoreError
            No reason, an unknown hold-out, or one that is retired already.
        """
        digest = holdout if isinstance(holdout, str) else holdout.digest
        _need_reason(why, "retire")

        def build(index: Index) -> Change[None]:
            if digest not in index.declared:
                raise DScoreError(f"{self.where} has no hold-out {digest!r}; it has {_listed(index)}")
            if earlier := index.retired.get(digest):
                raise DScoreError(f"hold-out {digest[:12]} was retired on {earlier.when} already: {earlier.why}")
            return Change(None, [Retirement(digest, why, ran_by, self._clock())])

        self._change(build)

    def export_lines(self) -> tuple[str, ...]:
        """Return the whole ledger as JSON lines, parents first, closed by a line that says how many there are."""
        return exchange.export(self.history())

    def import_lines(self, lines: Iterable[str], why: str, ran_by: str = "") -> int:
        """Take over the records of an export, with the reason on record; nothing is ever replaced.

        Returns
        -------
        int
            Records that were not here before.

        Raises
        ------
        LedgerDamaged
            The export is cut short, edited, or names records that neither it nor this ledger has; nothing was taken.
        DScoreError
            No reason.
        """
        _need_reason(why, "import")
        offered = exchange.read(lines)

        def build(index: Index) -> Change[int]:
            for name, parent in missing_parents(offered, index.records):
                raise LedgerDamaged(
                    f"the import lacks record {parent}, a parent of {name}: export the whole ledger", "missing"
                )
            new = {name: record for name, record in offered.items() if name not in index.records}
            if not new:
                return Change(0)
            return Change(len(new), [Import(tuple(sorted(new)), why, ran_by, self._clock())], new)

        return self._change(build)

    def verify(self, base: Base | None = None) -> Report:
        """Read everything again from scratch and name whatever is missing, edited, foreign or unlinked.

        Parameters
        ----------
        base
            What was known elsewhere: a git revision (``"origin/main"``) at which the ledger is looked up, or names of
            records, such as the heads of an earlier report. Every one of them must still be here.
        """
        return verification.verify(self._backend, base)

    def _change(self, build: Callable[[Index], Change[_T]]) -> _T:
        """Write what `build` makes of the present state, as one step for all processes."""
        reason = ""
        with self._lock:
            for _ in self._backend.attempts():
                try:
                    with self._backend.exclusive():
                        self._refresh()
                        change = build(self._index)
                        entries = _linked(self._index, change)
                        if entries:
                            self._backend.append(entries)
                except LostRace as lost:
                    reason = f" ({lost})" if str(lost) else ""
                    continue
                self._index.add({entry.name: entry.record for entry in entries})
                return change.result
        raise LedgerBusy(
            f"{self.where} was being written by others all the time, nothing was recorded: try again{reason}"
        )

    def _refresh(self) -> None:
        """Take in what others wrote since."""
        listing, records = load(self._backend, self._index.records, _raise)
        for finding in listing.findings:
            raise LedgerDamaged(finding.reason, finding.fault)
        for name in self._index.records.keys() - listing.names.keys():
            raise LedgerDamaged(f"record {name} was in {self.where} a moment ago and is gone: restore it", "missing")
        self._index.add(records)


def _raise(_name: str, _where: str, fault: LedgerDamaged) -> None:
    raise fault


def _linked(index: Index, change: Change[Any]) -> list[Entry]:
    """Give new records their parents: the first all heads, each further one the record before it."""
    entries = [Entry(name, to_line(change.taken[name]), change.taken[name]) for name in graph_order(change.taken)]
    parents = {parent for entry in entries for parent in entry.record.parents}
    heads = tuple(sorted((index.heads | change.taken.keys()) - parents))
    for record in change.new:
        linked = replace(record, parents=heads)
        line = to_line(linked)
        entries.append(Entry(name_of(line), line, linked))
        heads = (entries[-1].name,)
    return entries


def _same(one: Use, other: Use) -> bool:
    return one.outcomes == other.outcomes or one.model == other.model


def _need_reason(why: str, what: str) -> None:
    if not why.strip():
        raise DScoreError(f"{what} needs a reason, which is put on record: pass why")


def _listed(index: Index) -> str:
    return ", ".join(f"{found.name} {digest[:12]}" for digest, found in index.declared.items()) or "none"


def _check_known(index: Index, holdout: HoldoutIdentity, related: Iterable[Overlap]) -> None:
    """Refuse a hold-out whose examples were retired, or whose labels are not those of earlier uses."""
    for found in related:
        if retired := index.retired.get(found.digest):
            raise HoldoutRetired(
                f"hold-out {holdout.name!r} has {found.common} examples ({found.share:.0%}) of hold-out "
                f"{found.name!r}, which was retired on {retired.when} ({retired.why}): use examples that no model "
                "was scored on"
            )
        changed = changed_labels(holdout, index.declared[found.digest])
        if changed:
            shown = ", ".join(map(str, changed[:10])) + (", ..." if len(changed) > 10 else "")
            raise LabelsChanged(
                f"hold-out {holdout.name!r}: the labels of {len(changed)} examples differ from those on record for "
                f"{found.name!r} (rows {shown}): put the old labels back, or retire the hold-out and go on with new "
                "examples; another task on the same examples needs a ledger of its own"
            )
