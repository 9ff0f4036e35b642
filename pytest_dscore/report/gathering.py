"""From test cases to a report: gates of one score are brought together, runs are told apart, values are checked."""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pytest_dscore.errors import DScoreError
from pytest_dscore.figure import Figure
from pytest_dscore.report.contents import (
    Exhibit,
    Gate,
    Grid,
    HoldoutState,
    Origin,
    Picture,
    Report,
    Sample,
    Score,
    Subject,
    Word,
)
from pytest_dscore.report.junit_files import Case, read_cases

_KINDS = ("model", "holdout", "protocol")
_SETTINGS = ("n", "operator", "form", "pad", "fill", "seed", "confidence", "bootstrap", "bf16", "model_fingerprint")
_LARGEST_PICTURE = 512
_LONGEST_REASON = 600
_S = TypeVar("_S", bound=Subject)


class _Facts(BaseModel):
    """What reports use of the properties; others are kept as they are."""

    model_config = ConfigDict(extra="allow", coerce_numbers_to_str=True)


class _ScoreFacts(_Facts):
    n: int = Field(0, ge=0, le=1000)
    operator: str = "?"
    form: str = "bounded"
    pad: list[int] = []
    fill: list[float] = []
    examples: int = 0
    classes: int = 0
    confidence: float = Field(0.95, gt=0, lt=1)
    g: float | None = None
    remarks: list[str] = []
    no_deletion_hurts: bool = False
    helpful_regions: list[str] = []
    holdout_charges: list[str] = []
    model_fingerprint: str = ""
    data_fingerprint: str = ""
    versions: dict[str, str] = {}
    f: Grid | None = None
    f_lower: Grid | None = None
    f_upper: Grid | None = None
    f_tilde: Grid | None = None
    a: Grid | None = None
    a_lower: Grid | None = None
    a_upper: Grid | None = None
    a_tilde: Grid | None = None
    more_examples: dict[str, int | None] = {}
    change: dict[str, dict[str, float | None]] = {}
    baseline: dict[str, Any] = {}


class _HoldoutFacts(_Facts):
    sentence: str = ""
    examples: int = 0
    models_used: int | None = Field(None, ge=0)
    models_remaining: int | str = ""
    share_used: float = 0.0
    epsilon: float | None = None
    delta: float | None = None
    remarks: list[str] = []
    assumption: str = ""


class _ProtocolFacts(_Facts):
    confidence: float = Field(0.95, gt=0, lt=1)
    leaks: list[dict[str, Any]] = []
    moved: list[str] = []
    selected: list[Any] = []
    interval_assumes: str = ""
    bias_assumes: str = ""
    fold_errors: Any = None


_FACTS: dict[str, type[_Facts]] = {"model": _ScoreFacts, "holdout": _HoldoutFacts, "protocol": _ProtocolFacts}
_NUMBER: TypeAdapter[float] = TypeAdapter(float)


def gather(paths: Sequence[Path]) -> Report:
    """Read JUnit files into one report.

    Parameters
    ----------
    paths
        In the order in which they are shown.

    Raises
    ------
    DScoreError
        A file cannot be used, a property's value is none that this package writes, or there is no gate in all of them.
    """
    distinct = list(dict.fromkeys(path.resolve() for path in paths))
    if len(distinct) < len(paths):
        raise DScoreError("a file is given twice: its gates would be counted twice")
    cases = [case for path in paths for case in read_cases(path)]
    kinds: dict[str, list[Case]] = {kind: [] for kind in _KINDS}
    for case in cases:
        for kind in _KINDS:
            if kind in case.properties:
                kinds[kind].append(case)
    if not any(kinds.values()):
        raise DScoreError(
            f"{' and '.join(map(str, paths))} hold{'s' if len(paths) == 1 else ''} no gate of pytest-dscore: was it "
            "written by `pytest --dscore --junitxml=FILE`, without `junit_properties = false`?"
        )
    scores = [_score(group) for group in _groups(kinds["model"], "model", _setting)]
    holdouts = [_holdout(group) for group in _groups(kinds["holdout"], "holdout")]
    protocols = [_subject(Subject, "protocol", group) for group in _groups(kinds["protocol"], "protocol")]
    shown = (*scores, *holdouts, *protocols)
    return Report(tuple(scores), tuple(holdouts), tuple(protocols), _labels(shown), tuple(_repeated(cases)))


def _repeated(cases: Iterable[Case]) -> list[str]:
    counts: dict[tuple[Origin, str], int] = {}
    for case in cases:
        counts[case.origin, case.test] = counts.get((case.origin, case.test), 0) + 1
    return [
        f"{origin.file} has the test {test} {count} times; each is shown and counted"
        for (origin, test), count in counts.items()
        if count > 1
    ]


def _labels(subjects: Sequence[Subject]) -> dict[Origin, str]:
    """What differs between runs, for each of them."""
    origins = list(dict.fromkeys(subject.origin for subject in subjects))
    parts = {origin: (origin.file, origin.suite, origin.hostname) for origin in origins}
    differing = [i for i in range(3) if len({part[i] for part in parts.values()}) > 1]
    labels = {origin: ", ".join(part[i] for i in differing if part[i]) for origin, part in parts.items()}
    if len(set(labels.values())) < len(origins):
        labels = {o: f"{label}, suite {o.position}".removeprefix(", ") for o, label in labels.items()}
    return labels


def _setting(case: Case) -> tuple[str, ...]:
    return tuple(case.properties.get(name, "") for name in _SETTINGS)


def _groups(
    cases: Iterable[Case], kind: str, more: Callable[[Case], tuple[str, ...]] = lambda case: ()
) -> list[list[Case]]:
    """Cases on one subject in one run; the gates that could not be judged have no settings, and go with any others."""
    groups: dict[tuple[Any, ...], list[Case]] = {}
    for case in cases:
        key = (case.origin, case.properties[kind], *more(case))
        groups.setdefault(key, []).append(case)
    return list(groups.values())


def _score(cases: list[Case]) -> Score:
    score = _subject(Score, "model", cases)
    facts = score.facts
    for name in ("f", "f_lower", "f_upper", "f_tilde", "a", "a_lower", "a_upper", "a_tilde"):
        grid: Grid | None = facts[name]
        if grid is not None and {len(grid), *map(len, grid)} != {score.n}:
            raise _bad(cases[0], name, f"is no grid of n x n = {score.n} x {score.n} numbers")
    carrier = next((case for case in cases if "exhibit" in case.properties), None)
    exhibit = None if carrier is None else _exhibit(carrier)
    return Score(score.name, score.origin, score.gates, score.figures, facts, exhibit)


def _holdout(cases: list[Case]) -> HoldoutState:
    states = [_subject(HoldoutState, "holdout", [case]) for case in cases]
    known = [state for state in states if state.facts["models_used"] is not None]
    last = max(known, key=lambda state: state.facts["models_used"], default=states[-1])
    gates = tuple(gate for state in states for gate in state.gates)
    uses = tuple(sorted({(state.facts["models_used"], state.facts["share_used"]) for state in known}))
    return HoldoutState(last.name, last.origin, gates, last.figures, last.facts, uses)


def _subject(make: type[_S], kind: str, cases: list[Case]) -> _S:
    prefix = "" if kind == "model" else f"{kind}."
    names: dict[str, str] = {}
    for case in cases:
        names |= {key.removeprefix(prefix): text for key, text in case.properties.items() if key.startswith(prefix)}
    figures = _figures(cases[0], names)
    values = {
        key: _value(text) for key, text in names.items() if key not in figures and "." not in key and key not in _KINDS
    }
    values.pop("exhibit", None)
    try:
        facts = _FACTS[kind].model_validate(values).model_dump()
    except ValidationError as error:
        raise _bad(cases[0], str(error.errors()[0]["loc"][0]), "is not what pytest-dscore writes there") from None
    gates = tuple(gate for case in cases for gate in _gates(case, prefix))
    return make(cases[0].properties[kind], cases[0].origin, gates, figures, facts)


def _figures(case: Case, names: Mapping[str, str]) -> dict[str, Figure]:
    """Every property that has a ``.lower`` and an ``.upper`` beside it."""
    confidence = names.get("confidence", "0.95")
    found = {}
    for name in names:
        if f"{name}.lower" in names and f"{name}.upper" in names:
            value, lower, upper = (_number(case, key, names) for key in (name, f"{name}.lower", f"{name}.upper"))
            better = not name.startswith(("v_robust", "drop.", "error", "bias"))
            level = _number(case, "confidence", {"confidence": confidence})
            found[name] = Figure(value, lower, upper, better, level)
    return found


def _number(case: Case, name: str, names: Mapping[str, str]) -> float:
    try:
        return _NUMBER.validate_python(names[name])
    except ValidationError:
        raise _bad(case, name, f"= {names[name][:40]!r} is no number") from None


def _bad(case: Case, name: str, what: str) -> DScoreError:
    return DScoreError(f"{case.origin.file}: of the test {case.test} the property dscore.{name} {what}")


def _value(text: str) -> Any:
    """A property's value: JSON where it is that, else text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _gates(case: Case, prefix: str) -> list[Gate]:
    """The gates that a test case judges."""
    thresholds, words = (
        {key.removeprefix(start): text for key, text in case.properties.items() if key.startswith(start)}
        for start in (f"{prefix}threshold.", f"{prefix}verdict.")
    )
    broken = case.state != "passed"
    names = list(dict.fromkeys([*words, *thresholds]))
    outcomes = {name: _word(case, name, words.get(name)) for name in names}
    reasons = _reasons(case, outcomes)
    gates = []
    for name in names:
        failed = outcomes[name] in ("fail", "error") or (outcomes[name] == "inconclusive" and name in reasons)
        limit = _number(case, f"{prefix}threshold.{name}", {f"{prefix}threshold.{name}": thresholds.get(name, "nan")})
        reason = _clipped(reasons.get(name, ""))
        threshold = None if math.isnan(limit) else limit
        gates.append(Gate(name, outcomes[name], failed, reason, threshold, case.test, case.place))
    if not names or (broken and not any(gate.failed for gate in gates)):
        # No threshold, or all were met and then the test's own body failed.
        word: Word = "error" if case.state in ("error", "skipped") else "fail" if broken else "pass"
        first = case.message[0] if case.message else ""
        said = f"skipped, so nothing was judged: {first}" if case.state == "skipped" else first
        gates.append(Gate("", word, broken, _clipped(said), None, case.test, case.place))
    return gates


def _word(case: Case, name: str, text: str | None) -> Word:
    """A verdict as the file says; a threshold without one was not judged, which is no pass."""
    if text in ("pass", "fail", "inconclusive"):
        return text  # type: ignore[return-value]
    if text in ("error", None):
        return "error"
    raise _bad(case, f"verdict.{name}", f"= {text[:40]!r} is none of pass, fail, inconclusive and error")


def _reasons(case: Case, outcomes: Mapping[str, Word]) -> dict[str, str]:
    """A line for each gate that failed the test: they lead its message, in the gates' order."""
    if case.state == "passed":
        return {name: "" for name, word in outcomes.items() if word in ("fail", "error")}
    certain = [name for name, word in outcomes.items() if word in ("fail", "error")]
    undecided = [name for name, word in outcomes.items() if word == "inconclusive"]
    leading = _leading(case.message)
    # An inconclusive gate may have been let pass; it was not where the message has a line for it.
    names = (
        certain if certain and len(leading) <= len(certain) else [n for n in outcomes if n in (*certain, *undecided)]
    )
    if not leading:
        return dict.fromkeys(names, "it was not judged, and the file does not say why")
    if case.state == "skipped":
        return dict.fromkeys(names, f"skipped, so it was not judged: {leading[0]}")
    return {name: leading[min(i, len(leading) - 1)] for i, name in enumerate(names)}


def _leading(message: tuple[str, ...]) -> list[str]:
    """The lines of a failure before its tables: one for each failed gate."""
    lines: list[str] = []
    for line in message:
        if lines and (line.startswith("figures with ") or _is_place(line)):
            break
        lines.append(line.strip())
    return lines


def _is_place(line: str) -> bool:
    head, _, number = line.rpartition(":")
    return bool(head) and " " not in head and number.isdigit()


def _clipped(text: str) -> str:
    return text if len(text) <= _LONGEST_REASON else f"{text[: _LONGEST_REASON - 3]}..."


def _exhibit(case: Case) -> Exhibit:
    try:
        found = json.loads(case.properties["exhibit"])
        samples = tuple(
            Sample(int(one["row"]), int(one["label"]), int(one["prediction"]), _picture(one["image"]))
            for one in found["examples"]
        )
        row, col = (int(place) for place in found["region"])
        withheld = str(found.get("withheld", ""))
        return Exhibit(_picture(found["mean"]), (row, col), int(found["failing"]), samples, withheld)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, struct.error):
        raise _bad(case, "exhibit", "holds no pictures as pytest-dscore writes them") from None


def _picture(text: str) -> Picture:
    png = base64.b64decode(text, validate=True)
    if png[:8] != b"\x89PNG\r\n\x1a\n" or png[12:16] != b"IHDR":
        raise ValueError("no PNG")
    width, height = struct.unpack(">II", png[16:24])
    if not 0 < width <= _LARGEST_PICTURE or not 0 < height <= _LARGEST_PICTURE:
        raise ValueError("too large")
    return Picture(png, width, height)
