"""A report as one HTML page that asks nothing of the network: layout in templates/, pictures from `drawing`."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pytest_dscore import __version__
from pytest_dscore.figure import Figure
from pytest_dscore.report import drawing
from pytest_dscore.report.comparing import moment
from pytest_dscore.report.contents import Exhibit, Gate, HoldoutState, Report, Score, Subject
from pytest_dscore.report.escaping import one_line
from pytest_dscore.report.text import percent
from pytest_dscore.report.wording import (
    RECONSTRUCTION,
    assumptions,
    compared_figures,
    estimate,
    figure_of,
    flat,
    gate_title,
    label_of,
    name_in,
    number,
    outcome_word,
    place,
    reason,
    remarks,
    selected,
    signed,
    tolerance,
    trend,
)

_MOST_RUNS = 12
_MOST_REGIONS = 16
_MOST_SELECTED = 20
_NO_FIGURE = Figure(math.nan, math.nan, math.nan)

View = dict[str, Any]


def render(report: Report) -> str:
    """Return the page; failed subjects come first."""
    css = resources.files("pytest_dscore.report").joinpath("templates/report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    # Nothing may be loaded but pictures that are in the page, and no script runs, whatever got into it.
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    environment = Environment(
        loader=PackageLoader("pytest_dscore.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_displayed,
    )
    models = [_model(report, score, f"model-{i}") for i, score in enumerate(_failed_first(report.scores), 1)]
    befores = dict.fromkeys(score.before.what for score in report.scores if score.before and score.before.what)
    return environment.get_template("report.html.j2").render(
        report=report,
        css=Markup(css),
        policy=policy,
        version=__version__,
        runs=[{"file": one.origin.file, "moment": moment(one)} for one in _runs(report)],
        baseline=", ".join(befores),
        notes=report.notes,
        models=models,
        unpaired=any(view["unpaired"] for view in models),
        holdouts=[_holdout(report, one, f"holdout-{i}") for i, one in enumerate(_failed_first(report.holdouts), 1)],
        protocols=[_protocol(report, one, f"protocol-{i}") for i, one in enumerate(_failed_first(report.protocols), 1)],
        reconstruction=RECONSTRUCTION,
    )


def _displayed(value: Any) -> Any:
    """Text without control characters, such as those that turn its direction; markup as it is."""
    return one_line(value) if isinstance(value, str) and not isinstance(value, Markup) and value.strip() else value


def _failed_first(subjects: Sequence[Any]) -> list[Any]:
    return sorted(subjects, key=lambda subject: not subject.failed)


def _runs(report: Report) -> list[Subject]:
    return list({(one.origin.file, moment(one)): one for one in report.subjects()}.values())


def _subject(report: Report, subject: Subject, identifier: str) -> View:
    """What models, hold-outs and protocols have in common."""
    notable = [gate for gate in subject.gates if gate.outcome != "pass" or gate.failed]
    undecided = subject.outcome == "inconclusive" and not subject.failed
    return {
        "id": identifier,
        "name": name_in(report, subject),
        "outcome": subject.outcome,
        "said": "inconclusive, let pass" if undecided else subject.outcome,
        "reasons": [
            {"outcome": gate.outcome, "text": reason(subject, gate), "place": str(gate.place or "")} for gate in notable
        ],
        "remarks": remarks(report, subject),
    }


def _gate(gate: Gate) -> View:
    return {"title": gate_title(gate), "outcome": gate.outcome, "said": outcome_word(gate), "test": gate.test}


def _model(report: Report, score: Score, identifier: str) -> View:
    before = score.before
    figures = _figures(score)
    shown = {gate for row in figures for gate in row.pop("own")}
    view = _subject(report, score, identifier) | {
        "now": estimate(score.figures.get("score")),
        "then": estimate(before.figures.get("score") if before else None),
        "change": signed(before.changes.get("score") if before else None),
        "trend": trend(before.changes.get("score") if before else None),
        "unpaired": bool(before and before.changes and not before.paired),
        "about": _about(score),
        "figures": figures,
        "others": [_gate(gate) for gate in score.gates if gate not in shown],
        "maps": list(_maps(score)),
        "numbers": _numbers(score),
        "scored": _scored(score),
        "has_before": before is not None and before.a is not None,
        "clean": number(score.figures.get("accuracy", _NO_FIGURE).value),
    }
    return view | _chart(report, score) | _regions(score) | _samples(score.exhibit, score.n)


def _about(score: Score) -> str:
    if not score.measured:
        return ""
    facts = score.facts
    pad = " x ".join(map(str, facts["pad"]))
    return f"{facts['examples']:,} examples in {facts['classes']} classes, moved by up to {pad} pixels"


def _figures(score: Score) -> list[View]:
    before = score.before
    rows = []
    for name, now in compared_figures(score).items():
        gates = [gate for gate in score.gates if figure_of(gate) in (name, f"drop.{name}")]
        change = before.changes.get(name) if before else None
        rows.append(
            {
                "name": label_of(name),
                "now": estimate(now),
                "then": estimate(before.figures.get(name) if before else None),
                "change": signed(change),
                "trend": trend(change),
                "gates": list({gate_title(gate) + gate.outcome: _gate(gate) for gate in gates}.values()),
                "own": gates,
            }
        )
    return rows


def _chart(report: Report, score: Score) -> View:
    """The D-Score now on top, what it is compared with, then earlier ones, the newest first."""
    if not score.measured:
        return {"chart": [], "axis": "", "limits": [], "left_out": 0, "scale": drawing.Scale()}
    limits = sorted({gate.threshold for gate in score.gates if gate.name == "min_score" and gate.threshold is not None})
    runs = [("now", score.figures["score"]), *_earlier(report, score)]
    shown = runs[:_MOST_RUNS]
    scale = drawing.scale_of([figure for _, figure in shown], limits)
    rows = [
        {
            "name": name,
            "drawn": drawing.bar(figure, scale, limits, "then" if i else "now"),
            "said": estimate(figure),
            "current": not i,
        }
        for i, (name, figure) in enumerate(shown)
    ]
    left_out = len(runs) - len(shown)
    return {"chart": rows, "axis": drawing.axis(scale), "limits": limits, "left_out": left_out, "scale": scale}


def _earlier(report: Report, score: Score) -> Iterator[tuple[str, Figure]]:
    before = score.before
    if before is not None and before.paired and "score" in before.figures:
        yield before.what, before.figures["score"]
    for run in score.history[::-1]:
        yield _when(run, score.history, report.label(run)), run.figures["score"]


def _when(run: Score, among: Sequence[Score], label: str) -> str:
    """When a run was, with its label, or with its file where nothing else tells it from the others."""
    same = [other for other in among if moment(other) == moment(run)]
    more = label or (run.origin.file if len(same) > 1 or not moment(run) else "")
    return f"{moment(run)} {more}".strip()


def _maps(score: Score) -> Iterator[View]:
    mean = score.exhibit.mean if score.exhibit else None
    shares, there = flat(score.grid("f_tilde")), flat(score.grid("a"))
    if shares:
        most = 0.0 if score.facts["no_deletion_hurts"] else max(shares)
        yield {
            "title": "Where features lie (f~)",
            "drawn": drawing.heatmap(
                shares,
                [share / most if most > 0 else 0.0 for share in shares],
                _titles(score, "f_tilde"),
                mean,
                kind="f",
                summary=f"f~ of each region over the mean image; largest: {_extreme(shares, max, score.n)}",
            ),
            "legend": drawing.legend("f"),
            "low": "no share",
            "high": f"{most:.2f}" if most > 0 else "-",
            "explained": "Share of the accuracy that is lost when the region of every layer is masked.",
        }
    if there:
        clean = score.figures["accuracy"].value if "accuracy" in score.figures else max(there)
        yield {
            "title": "Accuracy with the object there (a)",
            "drawn": drawing.heatmap(
                there,
                [1 - value / clean if clean > 0 else 0.0 for value in there],
                _titles(score, "a"),
                mean,
                kind="a",
                summary=f"accuracy with the object moved to each region; smallest: {_extreme(there, min, score.n)}",
            ),
            "legend": drawing.legend("a"),
            "low": "nothing lost",
            "high": "all lost",
            "explained": "Accuracy on images that are padded so that the object comes to lie in the region.",
        }


def _titles(score: Score, name: str) -> list[str]:
    lower, upper = flat(score.grid(f"{name}_lower")), flat(score.grid(f"{name}_upper"))
    said = []
    for i, value in enumerate(flat(score.grid(name))):
        interval = f" [{lower[i]:.3f}, {upper[i]:.3f}]" if lower and upper else ""
        said.append(f"{place(i, score.n)}: {value:.3f}{interval}")
    return said


def _extreme(values: Sequence[float], choose: Any, n: int) -> str:
    found = choose(values)
    return f"{found:.3f} at {place(values.index(found), n)}"


def _regions(score: Score) -> View:
    values, lower, upper = (flat(score.grid(name)) for name in ("a", "a_lower", "a_upper"))
    before = flat(score.before.a) if score.before is not None else []
    worst_first = sorted(range(len(values)), key=lambda i: values[i])[:_MOST_REGIONS]
    scale = drawing.Scale()
    rows = []
    for i in worst_first:
        figure = Figure(values[i], lower[i] if lower else math.nan, upper[i] if upper else math.nan)
        then = Figure(before[i], math.nan, math.nan) if before else None
        rows.append(
            {
                "name": place(i, score.n),
                "drawn": drawing.bar(figure, scale, low=then),
                "said": f"{values[i]:.3f}" + (f", was {before[i]:.3f}" if before else ""),
            }
        )
    return {"regions": rows, "region_axis": drawing.axis(scale), "regions_left_out": len(values) - len(rows)}


def _samples(exhibit: Exhibit | None, n: int) -> View:
    if exhibit is None or (not exhibit.samples and not exhibit.withheld):
        return {"samples": [], "withheld": "", "region": "", "failing": 0}
    samples = [
        {
            "source": drawing.source(one.picture),
            "width": one.picture.width,
            "height": one.picture.height,
            "row": f"{one.row:,}",
            "label": one.label,
            "prediction": one.prediction,
        }
        for one in exhibit.samples
    ]
    where = place(exhibit.region[0] * n + exhibit.region[1], n) if n else ""
    return {"samples": samples, "withheld": exhibit.withheld, "region": where, "failing": f"{exhibit.failing:,}"}


def _numbers(score: Score) -> list[View]:
    shares, without, there = _titles(score, "f_tilde"), _titles(score, "f"), _titles(score, "a")
    before = flat(score.before.a) if score.before is not None else []

    def said(titles: Sequence[str], i: int) -> str:
        return titles[i].partition(": ")[2] if titles else "-"

    return [
        {
            "name": place(i, score.n),
            "share": said(shares, i),
            "without": said(without, i),
            "there": said(there, i),
            "before": number(before[i]) if before else "-",
        }
        for i in range(max(len(shares), len(there)))
    ]


def _scored(score: Score) -> list[str]:
    facts = score.facts
    lines = [f"Model {facts['model_fingerprint'][:16]}, data {facts['data_fingerprint'][:16]} (SHA-256)."]
    if facts["helpful_regions"]:
        lines.append(f"Mutating these regions raised the accuracy: {', '.join(facts['helpful_regions'])}.")
    lines += facts["holdout_charges"]
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    return [*lines, f"{versions}."] if versions else lines


def _holdout(report: Report, state: HoldoutState, identifier: str) -> View:
    share = state.facts["share_used"]
    used = state.facts["models_used"]
    return _subject(report, state, identifier) | {
        "sentence": state.facts["sentence"],
        "assumption": state.facts["assumption"],
        "tolerance": f"All hold within {tolerance(state)}",
        "drawn": drawing.burn_down(state.uses) if state.uses else "",
        "left": percent(max(0.0, 1 - share)),
        "used": "" if used is None else f"{used:,} model{'' if used == 1 else 's'}",
    }


def _protocol(report: Report, one: Subject, identifier: str) -> View:
    errors = {name: figure for name, figure in one.figures.items() if name.startswith("error")}
    biases = {name: figure for name, figure in one.figures.items() if name.startswith("bias")}
    limits = {gate.name: gate.threshold for gate in one.gates if gate.threshold is not None}
    charts = [
        _bars("Error", errors, [limit for name, limit in limits.items() if name == "max_error"]),
        _bars(
            "Bias: by how many percentage points a shortcut flatters the error",
            biases,
            [limit for name, limit in limits.items() if name == "max_bias"],
        ),
    ]
    view = _subject(report, one, identifier)
    view["remarks"] += [str(leak.get("line", "")) for leak in one.facts["leaks"]][1:]
    gates = list({gate_title(gate) + gate.outcome: _gate(gate) for gate in one.gates}.values())
    return view | {
        "charts": [chart for chart in charts if chart],
        "selected": selected(one)[:_MOST_SELECTED],
        "assumptions": assumptions(one),
        "gates": gates,
    }


def _bars(title: str, figures: Mapping[str, Figure], limits: Sequence[float]) -> View:
    if not figures:
        return {}
    scale = drawing.scale_of(list(figures.values()), limits)
    rows = [
        {"name": label_of(name), "drawn": drawing.bar(one, scale, limits), "said": estimate(one)}
        for name, one in figures.items()
    ]
    return {"title": title, "rows": rows, "axis": drawing.axis(scale), "scale": scale}
