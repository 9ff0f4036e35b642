"""``dscore holdout history``: every use on record, as a table and as a picture."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_dscore.errors import DScoreError
from pytest_dscore.holdout.budget import outcomes_of
from pytest_dscore.holdout.commands import status
from pytest_dscore.holdout.commands._burning import burn_down
from pytest_dscore.holdout.commands._content import by_content
from pytest_dscore.holdout.commands._ledgers import Project, add_ledger_options, project_of
from pytest_dscore.holdout.ledger import Import, Use
from pytest_dscore.holdout.planning import CouplingWarning
from pytest_dscore.holdout.similarity import similarity_matrix
from pytest_dscore.holdout.terms import Terms
from pytest_dscore.holdout.wording import refused_note
from pytest_dscore.report.holdout_plots import plot_history
from pytest_dscore.report.text import model_name, percent, plain, table, without_answers, wrapped


def add_to(commands: Any) -> None:
    """Add the sub-command."""
    parser = commands.add_parser("history", help="every use on record; --plot draws the budget burning down")
    parser.add_argument("names", nargs="*", metavar="NAME", help="hold-outs, by name or digest; default: all")
    parser.add_argument("--plot", metavar="FILE", help="draw one hold-out's budget and similarities (.png, .svg, .pdf)")
    parser.add_argument("--epsilon", type=float, help="for --plot, in place of the project's")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_ledger_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the uses of each hold-out, and draw one if asked."""
    project = project_of(options, epsilon=options.epsilon)
    content = by_content(project, options.names)
    found = list(status.find(project, options.names, content, epsilon=options.epsilon))
    imports = [one for url in project.urls() for one in project.open(url).history() if isinstance(one, Import)]
    if options.plot:
        _plot(project, found, Path(options.plot))
    if options.json:
        print(json.dumps([_as_json(one) for one in found], indent=2))
        return 0
    text = [line for one in found for line in [*_lines(one), ""]] or ["no use is on record"]
    text += [] if options.names else _import_lines(imports)
    print("\n".join(text).rstrip())
    if options.plot:
        print("\n".join(["", *wrapped(f"drawn: {options.plot}")]))
    return 0


def _lines(found: status.Found) -> list[str]:
    budget, identity = found.budget, found.identity
    shown = budget.terms.scores_shown and not budget.hidden
    head = ["#", "when", "model", "commit", *(["error"] if shown else []), "verdict"]
    rows = []
    for number, use in enumerate(budget.uses, 1):
        # What may be seen of another hold-out is for its own settings to say; of a refused model nothing is.
        seen = shown and number <= len(budget.own)
        error = [percent(use.wrong / use.n) if seen else "-"] if shown else []
        name = model_name(use.model, hidden=not seen)
        rows.append([str(number), _minute(use.when), name, _short(use.commit or "-", 8), *error, use.verdict])
    begun = f", begun as '{found.begun_as}'" if found.begun_as != identity.name else ""
    text = wrapped(
        f"hold-out '{identity.name}': {budget.n:,} examples, {identity.digest[:12]} of {found.ledger}{begun}"
    )
    text += table(head, rows, right=(0, 4) if shown else (0,), narrowest=14, folded=2)
    if budget.elsewhere:
        first = len(budget.own) + 1
        text += wrapped(f"From {first} on: uses of hold-outs that share examples with it, at the union price.")
    if budget.refused:
        text += wrapped(f"{refused_note(budget)}.")
    if not shown:
        text += wrapped(f"Scores are not repeated here: {_why_hidden(budget.terms)}.")
    if found.retired is not None:
        by = f" by {found.retired.ran_by}" if found.retired.ran_by else ""
        text += wrapped(f"retired on {_minute(found.retired.when)}{by}: {found.retired.why}")
    return text


def _why_hidden(declared: Terms) -> str:
    if not declared.known:
        return "the project does not declare this hold-out, so it is not known what its users may see"
    if declared.scores_shown:
        return "some were recorded with another feedback, which hid them"
    return f"with feedback '{declared.feedback}' the budget is counted for what was shown, and a score is more"


def _import_lines(imports: Sequence[Import]) -> list[str]:
    text = []
    for one in imports:
        by = f" by {one.ran_by}" if one.ran_by else ""
        text += wrapped(f"imported on {_minute(one.when)}{by}: {len(one.records):,} records, {one.why}")
    return text


def _as_json(found: status.Found) -> dict[str, Any]:
    budget = found.budget
    shown = budget.terms.scores_shown and not budget.hidden

    def line(number: int, use: Use) -> dict[str, Any]:
        known = shown and number < len(budget.own)
        return {
            "when": use.when,
            "model": without_answers(use.model) if budget.hidden or use.refused else use.model,
            "commit": use.commit,
            "ran_by": use.ran_by,
            "error": use.wrong / use.n if known else None,
            "verdict": use.verdict,
            "holdout": use.holdout,
            "record": use.name,
        }

    return {
        "name": found.identity.name,
        "digest": found.identity.digest,
        "ledger": found.ledger,
        "examples": budget.n,
        "uses": [line(number, use) for number, use in enumerate(budget.uses)],
        "retired": None if found.retired is None else {"when": found.retired.when, "why": found.retired.why},
    }


def _plot(project: Project, found: Sequence[status.Found], path: Path) -> None:
    """Draw the one hold-out that was found."""
    if len(found) != 1:
        listed = ", ".join(f"'{plain(one.identity.name)}' {one.identity.digest[:12]}" for one in found) or "none"
        raise DScoreError(f"--plot draws one hold-out: say which (on record: {listed})")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CouplingWarning)
        budget = status.quick(project, found[0]).budget
        if not budget.own:
            raise DScoreError(f"hold-out '{found[0].identity.name}': every use of it was refused, so none can be drawn")
        if budget.hidden:
            raise DScoreError(
                f"hold-out '{found[0].identity.name}': its scores are hidden, and a picture of how alike the models "
                "are would tell them: see `dscore holdout status`"
            )
        plot_history(burn_down(budget), similarity_matrix(outcomes_of(budget.own)), path)


def _minute(when: str) -> str:
    return when[:16].replace("T", " ")


def _short(text: str, most: int) -> str:
    text = plain(text)
    return text if len(text) <= most else f"{text[: most - 2]}.."
