"""Hold-outs in the terminal: what was shown of each use, what is left, and what that rests on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_dscore.report.text import model_name, percent, shortened, table, wrapped
from pytest_dscore.verdict import Verdict


def holdout_lines(verdicts: Iterable[Verdict]) -> list[str]:
    """Return a table of all uses, then the state of each hold-out after the last of them.

    Parameters
    ----------
    verdicts
        Of hold-outs only, in the order of the tests.
    """
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(verdict.subject, []).append(verdict)
    rows = [row for name, group in groups.items() for row in _rows(name, group)]
    lines = table(_HEAD, rows, narrowest=12) if rows else []
    for name, group in groups.items():
        lines += ["", *_state(name, group)]
    return lines


def _rows(name: str, group: Sequence[Verdict]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    seen: set[tuple[object, ...]] = set()
    for verdict in group:
        # The same use in several tests is one row; one that was refused has no name yet, and is as many as there are.
        facts = verdict.facts
        use = (facts.get("model_fingerprint"), facts.get("new"), verdict.gate, verdict.threshold, verdict.outcome)
        if use in seen and use[0] is not None:
            continue
        seen.add(use)
        figure = verdict.figures.get("accuracy")
        shown = f"{figure.value:.3f}" if figure else "-"
        interval = f"[{figure.lower:.3f}, {figure.upper:.3f}]" if figure else "-"
        limit = "" if verdict.gate == "budget" else f" (>= {verdict.threshold:g})"
        outcome = f"{_LABELS[verdict.outcome]}{limit}"
        rows.append((shortened(name), _use(verdict), shown, interval, outcome, _who(verdict)))
    return rows


def _use(verdict: Verdict) -> str:
    if "new" not in verdict.facts:
        return "-"
    return "new" if verdict.facts["new"] else "on record"


def _who(verdict: Verdict) -> str:
    """The model as the ledger names it; the test, where nothing was put on record."""
    file, _, test = verdict.test.partition("::")
    if model := str(verdict.facts.get("model_fingerprint", "")):
        hidden = verdict.facts["feedback"] != "exact"
        return f"{model_name(model, hidden=True)}, {test}" if hidden else model_name(model)
    return "the budget" if file == "pyproject.toml" else test


_HEAD = ("hold-out", "use", "accuracy", "all hold within", "verdict", "model or test")
_LABELS = {"pass": "pass", "fail": "FAIL", "error": "ERROR", "report": "-"}


def _state(name: str, group: Sequence[Verdict]) -> list[str]:
    errors = [verdict.reason for verdict in group if verdict.outcome == "error"]
    judged = [verdict for verdict in group if "models_used" in verdict.facts]
    lines = [line for reason in dict.fromkeys(errors) for line in wrapped(reason)]
    if not judged:
        begun = [verdict.reason for verdict in group if verdict.outcome == "pass"]
        return lines + [line for reason in begun[-1:] for line in wrapped(reason)]
    last = max(judged, key=lambda verdict: verdict.facts["models_used"])
    facts = last.facts
    lines += wrapped(str(facts["sentence"]))
    noted = (remark for verdict in judged for remark in verdict.facts["remarks"])
    for remark in dict.fromkeys(noted):
        lines += wrapped(remark, "  ")
    method = "" if facts["method"] == facts["bound"] else f" ({facts['method']})"
    rests = facts["note"] or "error rates and similarities are taken to be those seen on the test set"
    guarantee = f"all within +-{percent(facts['epsilon'])} with probability {percent(1 - facts['delta'])}"
    lines += wrapped(f"{guarantee}, by bound {facts['bound']}{method}; {rests}.", "  ")
    return lines + wrapped(str(facts["assumption"]), "  ")
