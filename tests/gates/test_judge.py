"""A failing gate: its message, and all figures as JUnit properties."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_dscore.gates.judge import judge
from pytest_dscore.gates.store import Measured
from pytest_dscore.report.terminal import grids
from pytest_dscore.score.engine import Hits
from pytest_dscore.score.formulas import Form
from pytest_dscore.verdict import Verdict
from tests.gates.project import FAILING, MODEL, PASSING, Project, failed, message, output, properties, section
from tests.score.hitting import result_of

NUMBER = r"\d\.\d{3}"
FIGURE = rf"{NUMBER} \[{NUMBER}, {NUMBER}\]"
FIRST_LINE = re.compile(
    rf"D-Score {FIGURE} < 0\.990 for model 'tiny' \(n=3\): accuracy falls most when the object is "
    r"((upper|middle|lower) )?(left|right|centre|middle) \(a=\d\.\d\d against \d\.\d\d\)"
)
FIGURES = ("score", "v_robust", "v_fitness", "accuracy", "v_robust_relative")
GRIDS = ("f", "f_lower", "f_upper", "f_tilde", "a", "a_lower", "a_upper", "a_tilde")
SETTINGS = ("n", "operator", "form", "pad", "fill", "bf16", "bootstrap", "confidence", "seed", "device")
FACTS = (
    *("examples", "classes", "cached", "g", "augmentation_probability", "no_deletion_hurts", "helpful_regions"),
    *("skipped_layers", "layers", "remarks", "model_fingerprint", "data_fingerprint", "versions"),
)
NAMES = {
    *("dscore.model", "dscore.threshold.min_score", "dscore.verdict.min_score"),
    *(f"dscore.{name}{end}" for name in FIGURES for end in ("", ".lower", ".upper")),
    *(f"dscore.{name}" for name in (*GRIDS, *SETTINGS, *FACTS)),
}


def only_case(project: Project) -> Any:
    """The test case of the only gate."""
    return project.cases()["dscore[tiny-min_score]"]


@pytest.mark.parametrize("family", ["xunit1", "xunit2"])
def test_the_message_says_it_all_in_its_first_line(project: Project, family: str) -> None:
    project.settings(own=FAILING)
    result = project.run("-o", f"junit_family={family}")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(failed=1)
    lines = message(only_case(project)).splitlines()
    assert FIRST_LINE.fullmatch(lines[0])
    assert lines[0] in result.outlines
    assert f"FAILED pyproject.toml::dscore[tiny-min_score] - {lines[0]}" in result.outlines
    text = str(only_case(project).result[0].text)
    assert text.splitlines()[0] == lines[0]
    assert re.fullmatch(r"pyproject\.toml:\d+", text.rstrip().splitlines()[-1])
    assert "raise" not in text
    assert set(properties(only_case(project))) >= NAMES


def test_the_message_names_the_region_and_its_figures(project: Project) -> None:
    project.settings(own=FAILING)
    project.run()
    direct = project.direct()
    row, col = divmod(int(direct.a.argmin()), 3)
    name = f"{('upper', 'middle', 'lower')[row]} {('left', 'middle', 'right')[col]}".replace("middle middle", "centre")
    where = f"{name} (a={direct.a.min():.2f} against {direct.accuracy.value:.2f})"
    assert message(only_case(project)).splitlines()[0].endswith(where)


@pytest.mark.parametrize(
    ("gate", "pattern"),
    [
        ("max_v_robust = 0.1", rf"v_robust {FIGURE} > 0\.100 for model 'tiny' \(n=3\): accuracy falls most when .*"),
        (
            "min_accuracy = 1.0",
            rf"accuracy {FIGURE} < 1\.000 for model 'tiny' \(n=3\): inconclusive, its interval contains the limit; "
            r"about \d+ more examples? like these would settle it",
        ),
        (
            "min_v_fitness = 0.999",
            rf"v_fitness {FIGURE} < 0\.999 for model 'tiny' \(n=3\): the clean accuracy itself is only 0\.950",
        ),
    ],
)
def test_every_gate_has_its_message(project: Project, gate: str, pattern: str) -> None:
    project.settings(own=gate)
    project.run().assert_outcomes(failed=1)
    [case] = project.cases().values()
    assert re.fullmatch(pattern, message(case).splitlines()[0])


@pytest.mark.parametrize(
    ("gate", "end", "passes", "next_to_it"),
    [
        ("min_score", "lower", True, 1.0),
        ("max_v_robust", "upper", True, 0.0),
        ("min_score", "upper", False, 1.0),
        ("max_v_robust", "lower", False, 0.0),
    ],
)
def test_the_ends_of_the_interval_decide(
    project: Project, gate: str, end: str, passes: bool, next_to_it: float
) -> None:
    figure = getattr(project.direct(), {"min_score": "score", "max_v_robust": "v_robust"}[gate])
    limit = getattr(figure, end)
    name = f"dscore[tiny-{gate}]"
    project.settings(own=f"{gate} = {limit!r}")
    project.run()
    assert properties(project.cases()[name])[f"dscore.verdict.{gate}"] == ("pass" if passes else "inconclusive")
    project.settings(own=f"{gate} = {math.nextafter(limit, next_to_it)!r}")
    project.run()
    assert properties(project.cases()[name])[f"dscore.verdict.{gate}"] == ("inconclusive" if passes else "fail")


@pytest.mark.parametrize(("keyword", "failed"), [("", 1), ('inconclusive = "pass"', 0)])
def test_what_cannot_be_decided_fails_unless_told_otherwise(project: Project, keyword: str, failed: int) -> None:
    score = project.direct().score.value
    project.settings(own=f"min_score = {score - 0.01!r}\n{keyword}")
    result = project.run("-rA")
    result.assert_outcomes(failed=failed, passed=1 - failed)
    assert "inconclusive, its interval contains the limit; about" in " ".join(output(result).split())
    case = properties(only_case(project))
    assert case["dscore.verdict.min_score"] == "inconclusive"
    assert json.loads(case["dscore.more_examples"])["min_score"] > 0


def test_close_figures_are_shown_apart(project: Project) -> None:
    score = project.direct().score.value
    project.settings(own=f"min_score = {score + 1e-5!r}")
    project.run()
    value, limit = re.findall(r"D-Score (\S+) \[.*?\] < (\S+) for", message(only_case(project)))[0]
    assert float(value) < float(limit)


def same(text: str, expected: Any) -> bool:
    """Whether a property's text is a value, in full precision."""
    return bool(json.loads(text) == (expected.tolist() if hasattr(expected, "tolist") else expected))


@pytest.mark.parametrize(
    ("common", "arguments"),
    [
        ("", {}),
        ("n = 2\nseed = 7\nconfidence = 0.8\nform = 'ratio'", {"n": 2, "seed": 7, "confidence": 0.8, "form": "ratio"}),
        (
            "operator = 'noise'\npad = [2, 6]\nfill = [0.5]\nbatch_size = 7",
            {"operator": "noise", "pad": (2, 6), "fill": [0.5], "batch_size": 7},
        ),
    ],
)
@pytest.mark.parametrize("own", [PASSING, FAILING], ids=["pass", "fail"])
def test_properties_are_complete_and_equal_d_score(
    project: Project, common: str, arguments: dict[str, Any], own: str
) -> None:
    project.settings(common, own)
    project.run()
    found, direct = properties(only_case(project)), project.direct(**arguments)
    assert set(found) >= NAMES
    assert len(only_case(project)._elem.findall("properties/property")) == len(found), "a property occurs twice"
    for name in FIGURES:
        figure = getattr(direct, name)
        assert same(found[f"dscore.{name}"], figure.value)
        assert same(found[f"dscore.{name}.lower"], figure.lower)
        assert same(found[f"dscore.{name}.upper"], figure.upper)
    for name in (*GRIDS, "n", "seed", "confidence", "g", "examples", "classes"):
        assert same(found[f"dscore.{name}"], getattr(direct, name))
    assert same(found["dscore.pad"], list(direct.padding))
    assert same(found["dscore.fill"], list(direct.fill))
    assert found["dscore.operator"] == direct.operator
    assert found["dscore.verdict.min_score"] == (
        "pass" if direct.score.value >= float(own.rsplit(maxsplit=1)[-1]) else "fail"
    )
    assert float(found["dscore.threshold.min_score"]) == float(own.rsplit(maxsplit=1)[-1])
    assert found["dscore.model"] == "tiny"
    assert json.loads(found["dscore.cached"]) is False
    assert set(json.loads(found["dscore.versions"])) >= {"torch", "torchvision", "numpy", "interpolation"}


def test_every_property_is_a_built_in_type_on_the_report(project: Project) -> None:
    project.write(
        "conftest.py",
        "def pytest_runtest_logreport(report):\n"
        "    for name, value in report.user_properties:\n"
        "        assert type(name) is str, name\n"
        "        assert type(value) in (str, int, float), (name, value)\n",
    )
    project.test("@pytest.mark.dscore(min_score=0.01)\ndef test_user(dscore):\n    pass")
    project.run().assert_outcomes(passed=2)


BROKEN = {"dscore.model": "tiny", "dscore.threshold.min_score": "0.01"}


def test_properties_known_at_collection_are_there_when_scoring_fails(project: Project) -> None:
    project.replace("net.py", "return Net()", "raise RuntimeError('no net today')")
    failed(project.run(), project, "no net today")
    assert BROKEN.items() <= properties(only_case(project)).items()
    assert properties(only_case(project))["dscore.verdict.min_score"] == "error"


def test_properties_known_at_collection_are_there_when_the_test_never_ran(project: Project) -> None:
    project.write("conftest.py", "def pytest_runtest_setup(item):\n    raise RuntimeError('no setup')")
    project.run("--tb=short").assert_outcomes(errors=1)
    assert BROKEN.items() <= properties(only_case(project)).items()


def test_properties_can_be_switched_off_and_the_table_stays(project: Project) -> None:
    project.settings("junit_properties = false", FAILING)
    project.test("@pytest.mark.dscore(min_score=0.01)\ndef test_user(dscore):\n    pass")
    result = project.run()
    result.assert_outcomes(failed=1, passed=1)
    assert all(not properties(case) for case in project.cases().values())
    assert any("D-Score" in line and ">= 0.990   FAIL" in line for line in section(result))


def test_own_properties_of_the_user_stay(project: Project) -> None:
    project.test(
        "@pytest.mark.dscore(min_score=0.01)\ndef test_user(dscore, request):\n"
        "    request.node.user_properties.append(('mine', 1))"
    )
    project.run()
    found = properties(project.cases()["test_user"])
    assert found["mine"] == "1"
    assert set(found) >= NAMES | {"mine"}


def test_the_table_has_every_model_once(project: Project) -> None:
    more = MODEL.format(name="second", own=f"n = 2\n{FAILING}\nmax_v_robust = 9.0")
    project.settings(own=PASSING, more=more)
    lines = section(project.run())
    text = "\n".join(lines)
    assert text.count("tiny (n=3, delete)") == text.count("second (n=2, delete)") == 1
    assert text.count("a, accuracy with the object there") == 2
    direct = {3: project.direct(), 2: project.direct(n=2)}
    for n, name in ((3, "tiny"), (2, "second")):
        start = next(number for number, line in enumerate(lines) if line.startswith(f"{name} (n={n}, delete)"))
        for offset, figure in enumerate(("score", "v_robust", "v_fitness", "accuracy")):
            assert f"{getattr(direct[n], figure):.3f}".split()[0] in lines[start + offset]
        grid = lines.index(next(line for line in lines if line.startswith(f"{name}: n={n}, delete, pad")))
        for row in range(n):
            for value in (*direct[n].f_tilde[row], *direct[n].a[row]):
                assert f"{value:.3f}" in lines[grid + 2 + row]


def test_a_threshold_that_cannot_fail_is_pointed_out(project: Project) -> None:
    project.settings(own="max_v_robust = 9.0")
    result = project.run("-rA")
    result.assert_outcomes(passed=1)
    assert "this gate cannot fail" in " ".join(output(result).split())


CONSTANT = """
import torch
from torch import nn

class Constant(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3)

    def forward(self, images):
        return self.conv(images).mean((2, 3)) * 0 + torch.tensor([1.0, 0.0, 0.0])

def build():
    return Constant()

def data():
    return torch.rand(30, 1, 12, 12, generator=torch.Generator().manual_seed(0)), torch.arange(30) % CLASSES
"""


def constant(project: Project, gate: str, classes: int) -> str:
    """Gate a model that always answers class 0 on labels of so many classes, and return what pytest printed."""
    project.write("constant.py", CONSTANT.replace("CLASSES", str(classes)))
    table = (
        '[tool.dscore]\nbootstrap = 100\n[tool.dscore.models.tiny]\nfactory = "constant:build"\ndata = "constant:data"'
    )
    project.write("pyproject.toml", f"{table}\n{gate}\n")
    result = project.run()
    result.assert_outcomes(failed=1)
    return output(result)


@pytest.mark.parametrize("gate", ["max_v_robust = 1.0", "min_score = 0.1", "min_accuracy = 0.1"])
def test_a_model_that_always_answers_alike_fails_every_gate(project: Project, gate: str) -> None:
    assert "the model predicts the same class for every image, so robustness says nothing" in constant(project, gate, 3)


def verdicts(hits: NDArray[np.bool_], form: Form, thresholds: dict[str, float]) -> list[Verdict]:
    """Judge a result made from given hits of ten classes."""
    nobody = Measured(Hits(hits, 10, {}, (), "cpu"), (0, 0), (0.0,), "", "")
    return judge("tiny", result_of(hits, 10, form=form, replicates=100), nobody, thresholds, {})


def test_an_infinite_ratio_is_no_proof() -> None:
    [verdict] = verdicts(np.ones((9, 30), bool), "ratio", {"min_score": 5.0})
    assert verdict.outcome == "fail"
    assert verdict.reason.endswith("v_robust is 0, so the ratio says nothing: use another form, or more examples")


@pytest.mark.parametrize(("examples", "few"), [(299, True), (300, False)])
def test_a_small_test_set_is_warned_of(examples: int, few: bool) -> None:
    hits = np.ones((9, examples), bool)
    hits[:, ::5] = False
    [verdict] = verdicts(hits, "mean", {"min_score": 0.5})
    assert verdict.outcome == "pass"
    warned = [remark for remark in verdict.facts["remarks"] if remark.startswith(f"WARNING: {examples} test examples")]
    assert len(warned) == few
    assert any("299 test examples are few" in line for line in grids(verdict)) == few


def test_what_costs_most_is_named_of_both_experiments() -> None:
    hits = np.ones((9, 400), bool)
    hits[2, :300] = False
    [verdict] = verdicts(hits, "mean", {"min_score": 0.95})
    assert verdict.reason.endswith(
        "accuracy falls most when upper right of every conv layer's output is mutated (delete: f=0.25 against 1.00)"
    )
    hits[1, :299] = False
    hits[7, :310] = False
    [verdict] = verdicts(hits, "mean", {"min_score": 0.95})
    assert verdict.reason.startswith("D-Score 0.716 [")  # 1 - (300 + 299 + 310) / 3200
    assert verdict.reason.endswith("accuracy falls most when the object is lower left (a=0.23 against 1.00)")


def test_fitness_lost_by_attention_that_is_elsewhere_than_the_features() -> None:
    # Features in one of four regions, attention on all alike: 1 - (0.75^2 + 3 * 0.25^2) / 2 = 0.625.
    hits = np.ones((9, 400), bool)
    hits[2, :300] = False
    [verdict] = verdicts(hits, "bounded", {"min_v_fitness": 0.9})
    assert verdict.outcome == "fail"
    assert verdict.reason.startswith("v_fitness 0.625 [")
    assert verdict.reason.endswith("features and attention differ most in region upper right (f~=1.00, a~=0.25)")


def test_a_model_no_better_than_chance_fails_a_gate_that_it_would_pass() -> None:
    hits = np.zeros((9, 30), bool)
    hits[:, :3] = True
    [verdict] = verdicts(hits, "bounded", {"max_v_robust": 1.0})
    assert verdict.outcome == "fail"
    assert "v_robust 0.000" in verdict.reason
    assert "the clean accuracy 0.10 is no better than chance (1 in 10)" in verdict.reason


def test_the_short_summary_is_one_line_in_ci(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    project.settings(own=FAILING)
    result = project.run()
    lines = result.outlines
    start = next(number for number, line in enumerate(lines) if "short test summary info" in line)
    assert [line[:6] for line in lines[start + 1 :] if line.strip()] == ["FAILED", "======"]
    assert "against" in lines[start + 1]
