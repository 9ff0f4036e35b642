"""The terminal's section: what it says, and that it fits 80 columns of ASCII."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pytest_dscore.figure import Figure
from pytest_dscore.report.terminal import details, grids, summary
from pytest_dscore.verdict import Verdict


def figures(score: float = 0.412) -> dict[str, Figure]:
    """Five figures."""
    return {
        "score": Figure(score, score - 0.017, score + 0.018),
        "v_robust": Figure(1.25, 1.125, 1.5, larger_is_better=False),
        "v_fitness": Figure(0.5, 0.25, 0.75),
        "accuracy": Figure(0.975, 0.95, 1.0),
        "v_robust_relative": Figure(1.375, 1.25, 1.625, larger_is_better=False),
    }


def facts(n: int = 3, **changes: Any) -> dict[str, Any]:
    """Everything a verdict carries, with f~ largest lower left and a smallest upper right."""
    f_tilde = [[0.125] * n for _ in range(n)]
    a = [[0.75] * n for _ in range(n)]
    f_tilde[-1][0], a[0][-1] = 0.5, 0.25
    return {
        **{"n": n, "operator": "delete", "form": "mean", "pad": [9, 9], "fill": [0.0], "bf16": False},
        **{"examples": 602, "classes": 10, "device": "cpu", "bootstrap": 1000, "confidence": 0.95, "seed": 0},
        **{"cached": False, "g": 4.5, "augmentation_probability": 0.2, "no_deletion_hurts": False},
        **{"helpful_regions": [], "skipped_layers": [], "unused_layers": [], "layers": 4, "remarks": []},
        **{"model_fingerprint": "m", "data_fingerprint": "d", "versions": {}},
        **{"f_tilde": f_tilde, "a": a, "f": a, "f_lower": a, "f_upper": a, "a_lower": a, "a_upper": a, "a_tilde": a},
        **changes,
    }


def verdict(subject: str = "digits", gate: str = "min_score", threshold: float | None = 0.7, **changes: Any) -> Verdict:
    """A failed gate of the D-Score."""
    made = Verdict(subject, gate, "fail", "reason", threshold, "score", figures(), facts())
    return replace(made, **changes)


ROBUST: dict[str, Any] = {"gate": "max_v_robust", "figure": "v_robust", "outcome": "pass", "threshold": 2.0}


def error(subject: str = "digits", gate: str = "min_score") -> Verdict:
    """A gate that could not be judged."""
    return Verdict(subject, gate, "error", "model cannot be scored", 0.7, "score")


def fits(lines: list[str]) -> list[str]:
    """Assert that lines fit a terminal of 80 columns without Unicode."""
    for line in lines:
        assert len(line) <= 80, line
        assert line.isascii(), line
        assert "\n" not in line
    return lines


def test_the_whole_section() -> None:
    lines = fits(summary([verdict(), verdict(**ROBUST)]))
    assert lines[:12] == [
        "model                 figure     value  interval        threshold  verdict",
        "digits (n=3, delete)  D-Score    0.412  [0.395, 0.430]  >= 0.700   FAIL",
        "                      v_robust   1.250  [1.125, 1.500]  <= 2.000   pass",
        "                      v_fitness  0.500  [0.250, 0.750]",
        "                      accuracy   0.975  [0.950, 1.000]",
        "",
        "digits: n=3, delete, pad 9x9 px, 602 examples, 10 classes, scored on cpu",
        "  f~, where features lie (* most)    a, accuracy with the object there (* least)",
        "  0.125  0.125  0.125                0.750  0.750  0.250*",
        "  0.125  0.125  0.125                0.750  0.750  0.750",
        "  0.500* 0.125  0.125                0.750  0.750  0.750",
        "",
    ]
    assert any("reconstruction" in line for line in lines[12:])


def test_the_body_of_a_failure() -> None:
    lines = fits(details(verdict()))
    assert lines[:6] == [
        "figures with 95 % intervals:",
        "  D-Score              0.412 [0.395, 0.430]",
        "  v_robust             1.250 [1.125, 1.500]",
        "  v_fitness            0.500 [0.250, 0.750]",
        "  accuracy             0.975 [0.950, 1.000]",
        "  v_robust_relative    1.375 [1.250, 1.625]",
    ]
    assert lines[6:11] == grids(verdict())
    assert details(error()) == []


def test_a_cached_score_says_so() -> None:
    assert grids(verdict(facts=facts(cached=True)))[0].endswith("10 classes, cached")
    assert grids(verdict(facts=facts(device="cuda:0")))[0].endswith("scored on cuda:0")


@pytest.mark.parametrize("n", range(2, 14))
def test_every_grid_fits_and_is_whole(n: int) -> None:
    lines = fits(summary([verdict(facts=facts(n))]))
    fits(details(verdict(facts=facts(n))))
    text = "\n".join(lines[lines.index("") :])
    decimals = 3 if n <= 11 else 2
    assert text.count(f"{0.5:.{decimals}f}*") == 1
    assert text.count(f"{0.25:.{decimals}f}*") == 1
    assert text.count(f"{0.125:.{decimals}f}") == n * n - 1
    assert text.count(f"{0.75:.{decimals}f}") == n * n - 1


@pytest.mark.parametrize("n", [14, 15, 16, 40])
def test_a_grid_too_large_for_a_terminal_says_where_to_look(n: int) -> None:
    lines = fits(summary([verdict(facts=facts(n))]))
    assert any(f"{n} x {n}" in line and "JUnit" in line for line in lines)
    fits(details(verdict(facts=facts(n))))


def test_equal_values_have_no_extreme() -> None:
    even = [[0.25, 0.25], [0.25, 0.25]]
    assert "0*" not in "".join(grids(verdict(facts=facts(2, f_tilde=even, a=even))))


LONG = "a_very_long_model_name-" * 5
NAMES = ["x" * 200, LONG, "[red]alarm[/red]", "[/]", "[bold", "a]b[c", "\\[x]", "v1.2_final-3"]


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_shown_whole_and_fits(name: str) -> None:
    for lines in (
        summary([verdict(name), error(name, "min_accuracy")]),
        details(verdict(name)),
        summary([error(name)]),
    ):
        fits(lines)
    column = summary([error(name)], width=80)[1:]
    shown = "".join(line.split("  ")[0].strip() for line in column[: column.index("")])
    assert name in shown
    text = "\n".join(summary([verdict(name)]))
    for figure in ("0.412", "[0.395, 0.430]", ">= 0.700", "FAIL", "[0.950, 1.000]"):
        assert figure in text


@pytest.mark.parametrize("width", [60, 72, 80, 120])
def test_figures_are_never_cut(width: int) -> None:
    lines = summary([verdict(LONG), verdict(LONG, **ROBUST)], width)
    table = lines[: lines.index("")]
    assert all(len(line) <= width for line in table)
    text = "\n".join(table)
    for figure in ("0.412", "[0.395, 0.430]", ">= 0.700", "<= 2.000", "FAIL", "pass"):
        assert figure in text


@pytest.mark.parametrize("value", [12.5, 1234.5, 1234567.0, float("inf")])
def test_large_ratios_fit_and_are_whole(value: float) -> None:
    large = {**figures(), "score": Figure(value, value, value)}
    made = verdict(threshold=1000000.0, figures=large, facts=facts(form="ratio"))
    lines = fits(summary([made]))
    fits(details(made))
    assert f"[{value:.3f}, {value:.3f}]" in "\n".join(lines)


REMARKS: dict[str, dict[str, Any]] = {
    "helpful": {"helpful_regions": [f"row {row}, column {col}" for row in range(6) for col in range(6)]},
    "skipped": {"skipped_layers": [f"features.denseblock4.denselayer{i}.conv1" for i in range(9)], "layers": 120},
    "one skipped": {"skipped_layers": ["backbone." * 12 + "conv"]},
    "remarks": {"remarks": ["pixels go down to -12345.67 but fill is not set: is 0 really black? (README: fill)"]},
    "uniform": {"no_deletion_hurts": True},
    "operator": {"operator": "my_own_operator_with_a_name_that_goes_on_and_on_and_on"},
    "sizes": {"pad": [1000, 1000], "examples": 10**9, "classes": 21841, "device": "cuda:7"},
}


@pytest.mark.parametrize("changes", REMARKS.values(), ids=REMARKS)
def test_every_remark_fits(changes: dict[str, Any]) -> None:
    fits(summary([verdict(facts=facts(6, **changes))]))
    fits(details(verdict(facts=facts(6, **changes))))


def test_remarks_say_what_was_found() -> None:
    changes: dict[str, Any] = {
        "helpful_regions": ["upper right", "centre"],
        "no_deletion_hurts": True,
        "remarks": ["look here"],
    }
    changes |= {"unused_layers": ["aux"], "skipped_layers": ["a", "b", "c", "d", "e"], "layers": 7}
    text = " ".join("\n".join(grids(verdict(facts=facts(**changes)))).split())
    for part in (
        "upper right; centre",
        "f~ is uniform",
        "look here",
        "1 conv layers never ran as modules and were not masked: 'aux'",
        "5 of 7 conv layers",
        "'a', 'b', 'c' and 2 more",
    ):
        assert part in text


def test_an_error_is_a_row_of_its_own() -> None:
    lines = fits(summary([error(), error(gate="min_accuracy"), verdict("other")]))
    rows = [line.split() for line in lines[1:3]]
    assert rows[0] == ["digits", "D-Score", ">=", "0.700", "ERROR"]
    assert rows[1][-1] == "ERROR"
    assert lines[3].startswith("other (n=3, delete)")


def test_only_errors_leave_no_grid() -> None:
    assert not any("f~, where" in line for line in summary([error()]))


def test_several_models_have_a_block_each_in_their_order() -> None:
    names = ["one", "two", "three"]
    lines = fits(summary([verdict(name) for name in names]))
    assert [line.split(" ")[0] for line in lines if "(n=3, delete)" in line] == names
    assert [line.split(":")[0] for line in lines if ": n=3, " in line] == names


def test_the_same_gate_judged_twice_is_one_row() -> None:
    once = summary([verdict(), verdict(**ROBUST)])
    assert summary([verdict(), verdict(), verdict(**ROBUST), verdict()]) == once
    assert summary([error(), error()]) == summary([error()])


def test_gates_of_one_score_are_brought_together() -> None:
    apart = summary([verdict(), verdict("other"), verdict(**ROBUST)])
    assert apart == summary([verdict(), verdict(**ROBUST), verdict("other")])


def test_two_thresholds_of_one_figure_are_two_rows() -> None:
    lines = summary([verdict(), verdict(threshold=0.1, outcome="pass")])
    assert lines[1].endswith(">= 0.700   FAIL")
    assert lines[2].split() == [">=", "0.100", "pass"]


@pytest.mark.parametrize(
    "changes",
    [
        *({"n": 2}, {"operator": "noise"}, {"form": "ratio"}, {"pad": [1, 1]}, {"fill": [0.5]}, {"seed": 1}),
        *({"confidence": 0.5}, {"bootstrap": 100}, {"bf16": True}, {"model_fingerprint": "x"}),
    ],
    ids=str,
)
def test_other_settings_are_another_score(changes: dict[str, Any]) -> None:
    n = changes.get("n", 3)
    lines = summary([verdict(), verdict(facts=facts(**{"n": n, **changes}))])
    assert sum("D-Score" in line for line in lines) >= 2
    assert sum("f~, where" in line for line in lines) == 2


def test_a_score_without_threshold_is_reported() -> None:
    made = verdict(gate="", threshold=None, outcome="report", figure="")
    lines = fits(summary([made]))
    assert lines[1] == "digits (n=3, delete)  D-Score    0.412  [0.395, 0.430]"
    assert "FAIL" not in "\n".join(lines)


def test_a_verdict_crosses_process_borders() -> None:
    for made in (verdict(), error(), verdict(figures={"score": Figure(float("inf"), 0.0, float("inf"))})):
        assert Verdict.from_json(made.to_json()) == made
