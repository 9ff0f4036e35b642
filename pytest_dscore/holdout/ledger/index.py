"""The records of a ledger in memory, kept up to date record by record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from pytest_dscore.holdout.ledger.faults import LedgerDamaged
from pytest_dscore.holdout.ledger.identity import HoldoutIdentity, Overlap, overlap
from pytest_dscore.holdout.ledger.record import Declaration, Import, Record, Retirement, Use


class Index:
    """All records by name, and what is asked of them: heads, uses, hold-outs, retirements.

    Records stand in an order of the graph, parents before children; the clock only breaks ties. The same records give
    the same order whatever order they were read in, as long as they were read in one go.
    """

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.heads: set[str] = set()
        self.declared: dict[str, HoldoutIdentity] = {}
        self.retired: dict[str, Retirement] = {}
        self._uses: dict[str, list[Use]] = defaultdict(list)
        self._by_outcomes: dict[tuple[str, bytes], Use] = {}
        self._refused: dict[tuple[str, bytes], Use] = {}
        self._by_model: dict[tuple[str, str], Use] = {}

    def add(self, new: Mapping[str, Record]) -> None:
        """Take in records whose parents are known or among them.

        Raises
        ------
        LedgerDamaged
            A parent or a hold-out is not there; nothing is taken in.
        """
        for name, parent in missing_parents(new, self.records):
            raise LedgerDamaged(
                f"record {parent} is missing from the ledger: record {name} was written after it; restore it from "
                "version control or a backup, and see `dscore holdout verify`",
                "missing",
            )
        for name, reason in broken_links(new, self.records, self.declared):
            raise LedgerDamaged(f"record {name} speaks of {reason}; see `dscore holdout verify`", "broken link")
        for name in graph_order(new):
            self._add(name, new[name])

    def _add(self, name: str, record: Record) -> None:
        self.records[name] = record
        self.heads.difference_update(record.parents)
        self.heads.add(name)
        if isinstance(record, Declaration):
            self.declared.setdefault(record.identity.digest, record.identity)
        elif isinstance(record, Retirement):
            self.retired.setdefault(record.holdout, record)
        elif isinstance(record, Use) and record.refused:
            if (record.holdout, record.outcomes) not in self._refused:
                self._uses[record.holdout].append(record)
                self._refused[record.holdout, record.outcomes] = record
        elif isinstance(record, Use) and (record.holdout, record.outcomes) not in self._by_outcomes:
            # Two branches may each have recorded the same use; it counts once. Not so where the model is the same and
            # the outcomes differ: then two scores were shown.
            self._uses[record.holdout].append(record)
            self._by_outcomes[record.holdout, record.outcomes] = record
            self._by_model.setdefault((record.holdout, record.model), record)

    def same_use(self, use: Use) -> Use | None:
        """Return the use of the same hold-out by the same model or with the same outcomes that was shown."""
        return self._by_outcomes.get((use.holdout, use.outcomes)) or self._by_model.get((use.holdout, use.model))

    def recorded(self, use: Use) -> Use:
        """Return what `same_use` finds, for a use that was just recorded or found."""
        found = self.same_use(use) or self._refused.get((use.holdout, use.outcomes))
        if found is None:
            raise LedgerDamaged(f"the use of model {use.model} was written and cannot be found again", "missing")
        return found

    def related(self, holdout: HoldoutIdentity) -> tuple[Overlap, ...]:
        """Return the declared hold-outs that share examples with `holdout`, the most first."""
        found = (overlap(holdout, earlier) for earlier in self.declared.values())
        return tuple(sorted((o for o in found if o.related), key=lambda o: (-o.common, o.digest)))

    def uses_of(self, digests: Iterable[str] | None = None) -> list[Use]:
        """Return the distinct uses of some hold-outs, or of all, hold-out after hold-out.

        One that was refused and later shown, or shown in another branch, counts as shown.
        """
        chosen = self._uses if digests is None else digests
        return [use for digest in chosen for use in self._uses.get(digest, ()) if not self._shown_later(use)]

    def _shown_later(self, use: Use) -> bool:
        return use.refused and (use.holdout, use.outcomes) in self._by_outcomes


def missing_parents(new: Mapping[str, Record], known: Mapping[str, Record]) -> list[tuple[str, str]]:
    """Return (record, parent) for every parent that is in neither."""
    return [
        (name, parent)
        for name, record in new.items()
        for parent in record.parents
        if parent not in new and parent not in known
    ]


def broken_links(
    new: Mapping[str, Record], known: Mapping[str, Record], declared: Mapping[str, HoldoutIdentity]
) -> Iterator[tuple[str, str]]:
    """Yield (record, what it speaks of in vain): a hold-out that is not on record, imported records that are not."""
    sizes = {digest: identity.n for digest, identity in declared.items()}
    sizes |= {r.identity.digest: r.identity.n for r in new.values() if isinstance(r, Declaration)}
    for name, record in new.items():
        if isinstance(record, Use | Retirement) and record.holdout not in sizes:
            yield name, f"hold-out {record.holdout[:12]}, which is not on record"
        elif isinstance(record, Use) and sizes[record.holdout] != record.n:
            size = sizes[record.holdout]
            yield name, f"hold-out {record.holdout[:12]} with {record.n} examples, which has {size}"
        elif isinstance(record, Import):
            absent = [other for other in record.records if other not in new and other not in known]
            if absent:
                yield name, f"{len(absent)} imported records that are not there, the first {absent[0]}"


def graph_order(records: Mapping[str, Record]) -> list[str]:
    """Names of records, parents before children; by generation, time and name, in linear time but for the sorting."""
    generation: dict[str, int] = {}
    for start in records:
        stack = [start]
        while stack:
            name = stack[-1]
            inside = [parent for parent in records[name].parents if parent in records]
            waiting = [parent for parent in inside if parent not in generation]
            if waiting and name not in generation:
                stack.extend(waiting)
                continue
            stack.pop()
            generation[name] = 1 + max((generation[parent] for parent in inside), default=0)
    return sorted(records, key=lambda name: (generation[name], records[name].when, name))
