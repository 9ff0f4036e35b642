"""``dscore holdout status``: what is used, what still holds, what remains."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_dscore.errors import DScoreError
from pytest_dscore.holdout.budget import Budget, parts
from pytest_dscore.holdout.checks import open_unit
from pytest_dscore.holdout.commands._content import Content, by_content
from pytest_dscore.holdout.commands._ledgers import Project, add_ledger_options, matching, project_of
from pytest_dscore.holdout.ledger import HoldoutIdentity, Ledger, Retirement
from pytest_dscore.holdout.planning import CouplingWarning
from pytest_dscore.holdout.running import running_budget
from pytest_dscore.holdout.wording import refused_note, sentence
from pytest_dscore.report.text import percent, percent_above, plain, wrapped

#: Where pytest keeps the gates' results unless `cache_dir` says otherwise. It makes the same figures faster.
_GATES_CACHE = Path(".pytest_cache", "d", "dscore")


_LOST = (
    "hold-out '{name}': its ledger holds no record. Restore it (a checkout without it, a wrong URL or a wiped database "
    "look like this), or begin it with `dscore holdout begin {name}`"
)


@dataclass(frozen=True)
class Found:
    """A hold-out on record with its budget and, if it was retired, the record of that.

    Parameters
    ----------
    ledger
        Where it is on record.
    identity
        By the name that the settings give it, if they give it one.
    budget
        Of its uses.
    retired
        The record of its end.
    begun_as
        The name that it has on record.
    """

    ledger: str
    identity: HoldoutIdentity
    budget: Budget
    retired: Retirement | None
    begun_as: str

    @property
    def spent(self) -> bool:
        """Whether another model must be refused; a retired hold-out has no budget to spend."""
        return self.retired is None and self.budget.limit == 0


def add_to(commands: Any) -> None:
    """Add the sub-command."""
    parser = commands.add_parser("status", help="models used, what still holds, what remains")
    parser.add_argument("names", nargs="*", metavar="NAME", help="hold-outs, by name or digest; default: all")
    parser.add_argument("--epsilon", type=float, help="in place of the project's")
    parser.add_argument("--delta", type=float, help="in place of the project's")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_ledger_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the state of each hold-out; return 1 if the budget of any is spent, or its ledger holds no record."""
    for name in ("epsilon", "delta"):
        if getattr(options, name) is not None:
            open_unit(getattr(options, name), f"--{name}")
    project = project_of(options, epsilon=options.epsilon, delta=options.delta)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CouplingWarning)  # `Analysis.note` says it too
        content = by_content(project, options.names)
        recorded = find(project, options.names, content, epsilon=options.epsilon, delta=options.delta)
        found = [quick(project, one) for one in recorded]
        if options.json:
            print(json.dumps([as_json(one) for one in found], indent=2))
        else:
            for number, one in enumerate(found):
                print("\n".join(([""] if number else []) + lines(one)))
            for line in _not_used(project, options.names, found, content):
                print(line)
        lost = [name for name in project.declared if (not options.names or name in options.names)]
        lost = [name for name in lost if not project.open(project.url or project.declared[name].ledger).begun]
        for name in lost:
            sys.stderr.write("\n".join(wrapped(_LOST.format(name=name))) + "\n")
    return int(bool(lost) or any(one.spent for one in found))


def find(project: Project, names: list[str], content: Content | None = None, **override: Any) -> Iterator[Found]:
    """Yield the hold-outs on record that are wanted, ledger by ledger.

    Parameters
    ----------
    project
        Its settings and ledgers.
    names
        What is wanted, by name or digest; everything where there are none.
    content
        Which of them the settings call otherwise than the ledger; None where the data are not looked at.
    override
        Terms in place of the project's, but for None.

    Raises
    ------
    DScoreError
        A name is neither declared nor on record.
    """
    seen: set[str] = set()
    renamed = {} if content is None else content.renamed
    for url in project.urls():
        ledger = project.open(url)
        begun = {one.digest: one.name for one in ledger.holdouts()}
        identities = tuple(replace(one, name=renamed.get(one.digest, one.name)) for one in ledger.holdouts())
        wanted = {one.digest for name in names for one in matching(identities, name)}
        seen.update(name for name in names if list(matching(identities, name)))
        retired = {one.holdout: one for one in ledger.history() if isinstance(one, Retirement)}
        for identity in identities:
            if (not names or identity.digest in wanted) and _is_here(project, identity, url):
                budget = _budget(project, ledger, identity, url, override)
                if not any(use.holdout == identity.digest for use in budget.uses):
                    continue  # begun, and not used so far
                ended = next((retired[o.digest] for o in ledger.related(identity) if o.digest in retired), None)
                yield Found(ledger.where, identity, budget, ended, begun[identity.digest])
    for name in names:
        if name not in seen and name not in project.declared:
            raise DScoreError(f"there is no hold-out {name!r}, neither in the project nor on record")


def quick(project: Project, found: Found) -> Found:
    """Return the same with the budget by which the gate judges: for many models one that is added up, not analysed."""
    kept = project.root / _GATES_CACHE
    budget = found.budget
    cache = kept if kept.is_dir() else None
    return replace(found, budget=running_budget(budget.terms, budget.own, budget.elsewhere, budget.refused, cache))


def _is_here(project: Project, identity: HoldoutIdentity, url: str) -> bool:
    """Whether the settings of a hold-out's name, if any, mean this ledger."""
    declared = project.declared.get(identity.name)
    return project.url is not None or declared is None or declared.ledger == url


def _budget(project: Project, ledger: Ledger, identity: HoldoutIdentity, url: str, override: dict[str, Any]) -> Budget:
    declared = project.settings_of(identity, url)
    declared = replace(declared, **{key: value for key, value in override.items() if value is not None})
    return Budget(declared, *parts(ledger.uses(identity), identity.digest))


def lines(found: Found) -> list[str]:
    """Return what is printed of one hold-out."""
    budget, kind = found.budget, found.budget.terms
    text = wrapped(sentence(budget, found.identity.name))
    rows = [
        ("still holds", f"+-{percent_above(budget.tolerance)} with probability {percent(1 - kind.delta)}"),
        ("by bound", f"{kind.bound}{_method(budget)}"),
        ("examples", f"{budget.n:,} (hold-out {found.identity.digest[:12]} of {found.ledger})"),
    ]
    if found.begun_as != found.identity.name:
        name = plain(found.begun_as)
        rows.append(
            ("begun as", f"'{name}': the examples on record under that name are the same, and so is the budget")
        )
    if budget.effective_note:
        rows.append(("effective", budget.effective_note))
    if budget.elsewhere:
        others = f"{len(budget.elsewhere):,} of these models were scored on hold-outs that share examples with it"
        rows.append(("of these", f"{others}; each is charged at the union price"))
    if budget.refused:
        rows.append(("refused", refused_note(budget)))
    if kind.max_uses is not None:
        rows.append(("max_uses", f"{kind.max_uses:,}, {max(0, kind.max_uses - budget.used):,} left"))
    if found.retired is not None:
        rows.append(("retired", f"on {found.retired.when[:10]}: {found.retired.why}"))
    elif found.spent:
        rows.append(("SPENT", f"no further model may be scored on it: {_ways(budget)}"))
    elif kind.warn_at is not None and budget.share_used >= kind.warn_at:
        rows.append(("WARNING", f"{percent(budget.share_used)} of the budget is used"))
    for title, content in rows:
        text += wrapped(content, f"  {title:13}")
    return text + wrapped(budget.mode_statement, "  ")


def _ways(budget: Budget) -> str:
    """Return what to do where the budget is spent."""
    if budget.terms.max_uses is not None and budget.used >= budget.terms.max_uses:
        return "raise max_uses, or retire it and go on with new examples"
    larger = f"declare a larger epsilon (+-{percent_above(budget.roomy_epsilon)} would do for one more), or "
    return f"{larger}retire it and go on with new examples"


def _method(budget: Budget) -> str:
    """Return in words what the figure rests on."""
    method = "" if budget.method == budget.terms.bound else f" ({budget.method})"
    seen = "error rates and similarities are taken to be those seen on the test set"
    return f"{method}; {budget.note or seen}"


def as_json(found: Found) -> dict[str, Any]:
    """Return what is printed of one hold-out for a machine; null for what has no limit or is not declared."""
    budget, kind = found.budget, found.budget.terms
    known = kind.epsilon is not None
    return {
        "name": found.identity.name,
        "begun_as": found.begun_as,
        "digest": found.identity.digest,
        "ledger": found.ledger,
        "examples": budget.n,
        "models_used": budget.used,
        "models_of_related_holdouts": len(budget.elsewhere),
        "models_refused": len(budget.refused),
        "effective_models": budget.effective,
        "epsilon": kind.epsilon,
        "delta": kind.delta,
        "bound": kind.bound,
        "method": budget.method,
        "note": budget.note,
        "mode": kind.mode,
        "feedback": kind.feedback,
        "mode_statement": budget.mode_statement,
        "failure_probability": budget.failure_probability if known else None,
        "epsilon_guaranteed": budget.tolerance,
        "holds": budget.holds if known else None,
        "models_remaining": budget.remaining if known else None,
        "union_bound_ends_at": budget.union_end if known else None,
        "max_uses": kind.max_uses,
        "share_used": budget.share_used,
        "spent": found.spent,
        "retired": None if found.retired is None else found.retired.why,
    }


def _not_used(project: Project, names: list[str], found: list[Found], content: Content) -> Iterator[str]:
    """Yield a line for each hold-out that is declared and has no use on record."""
    on_record = {one.identity.name for one in found}
    for name in project.declared:
        if name not in on_record and (not names or name in names):
            note = f"; {content.notes[name]}" if name in content.notes else ""
            yield from wrapped(f"hold-out '{name}': no use is on record under this name{note}")
    if not project.declared and not found:
        yield "no hold-out is declared in the project, and none is on record"
