"""The marker and the fixture in users' own tests."""

from __future__ import annotations

import re

import pytest

from tests.gates.project import MODEL, PASSING, Project, message, output, properties, section


@pytest.fixture
def user(project: Project) -> Project:
    """A project with two models, whose own gates are kept out of the way."""
    project.settings(own=PASSING, more=MODEL.format(name="second", own=f"n = 2\n{PASSING}"))
    return project


def outcome(project: Project, code: str, *args: str, **kwargs: bool) -> tuple[pytest.RunResult, str]:
    """Run one user's test; the result and the message of its failure, empty where it passed."""
    project.test(code)
    result = project.run("-m", "dscore or not dscore", "-k", "test_user", *args, **kwargs)
    case = project.cases()["test_user"]
    return result, message(case) if case.result else ""


def test_a_threshold_is_enforced_before_the_body(user: Project) -> None:
    code = "@pytest.mark.dscore(model='tiny', min_score=0.99)\ndef test_user():\n    open('ran', 'w')"
    result, text = outcome(user, code)
    result.assert_outcomes(failed=1, deselected=2)
    assert re.match(r"D-Score 0\.\d{3} \[.*\] < 0\.990 for model 'tiny' \(n=3\): accuracy falls most", text)
    assert not (user.path / "ran").exists()
    assert properties(user.cases()["test_user"])["dscore.verdict.min_score"] == "fail"


def test_a_failure_points_at_the_users_test(user: Project) -> None:
    outcome(user, "@pytest.mark.dscore(model='tiny', min_score=0.99)\ndef test_user():\n    pass")
    [failure] = user.cases()["test_user"].result
    assert re.fullmatch(r"test_user\.py:[34]", str(failure.text).rstrip().splitlines()[-1])


def test_the_body_runs_where_the_threshold_is_met(user: Project) -> None:
    code = "@pytest.mark.dscore(model='tiny', min_score=0.01)\ndef test_user():\n    assert False, 'body'"
    result, text = outcome(user, code)
    result.assert_outcomes(failed=1, deselected=2)
    assert text.startswith("AssertionError: body")


def test_all_failing_thresholds_are_named(user: Project) -> None:
    code = "@pytest.mark.dscore(model='tiny', min_score=0.99, min_accuracy=1.0)\ndef test_user():\n    pass"
    _, text = outcome(user, code)
    first, second = text.splitlines()[:2]
    assert first.startswith("D-Score 0.")
    assert second.startswith("accuracy 0.9")


def test_overrides_replace_the_models_settings(user: Project) -> None:
    code = (
        "@pytest.mark.dscore(model='tiny', min_score=0.01, n=2, operator='invert', confidence=0.5, pad=(2, 2), "
        "fill=[0.5])\n"
        "def test_user(dscore):\n"
        "    assert (dscore.n, dscore.operator, dscore.confidence) == (2, 'invert', 0.5)\n"
        "    assert dscore.padding == (2, 2) and dscore.fill == (0.5,)\n"
        "    assert dscore.f.shape == (2, 2)\n"
    )
    outcome(user, code)[0].assert_outcomes(passed=1, deselected=2)


def test_the_models_own_settings_hold_without_overrides(user: Project) -> None:
    code = "@pytest.mark.dscore(model='second')\ndef test_user(dscore):\n    assert dscore.n == 2"
    outcome(user, code)[0].assert_outcomes(passed=1, deselected=2)


def test_the_models_thresholds_are_not_inherited(user: Project) -> None:
    user.settings(own="min_score = 0.99")
    code = "@pytest.mark.dscore\ndef test_user(dscore):\n    pass"
    outcome(user, code)[0].assert_outcomes(passed=1, deselected=1)


def test_the_fixture_is_the_result_of_d_score(user: Project) -> None:
    direct = user.direct()
    code = (
        "@pytest.mark.dscore(model='tiny')\ndef test_user(dscore):\n"
        f"    assert dscore.score.value == {direct.score.value!r}\n"
        f"    assert dscore.v_robust.upper == {direct.v_robust.upper!r}\n"
        f"    assert dscore.a.tolist() == {direct.a.tolist()!r}\n"
        "    assert dscore.hits.shape == (19, 40)\n"
    )
    outcome(user, code)[0].assert_outcomes(passed=1, deselected=2)


def test_a_test_without_threshold_is_in_the_table_and_in_junit(user: Project) -> None:
    result, _ = outcome(user, "@pytest.mark.dscore(model='tiny')\ndef test_user(dscore):\n    pass")
    assert any(line.startswith("tiny (n=3, delete)  D-Score") for line in section(result))
    found = properties(user.cases()["test_user"])
    assert float(found["dscore.score"]) == user.direct().score.value
    assert not any(name.startswith("dscore.threshold") for name in found)


REFUSED = {
    "unknown key": ("min_scor=0.5", ["@pytest.mark.dscore key 'min_scor' does not exist", "did you mean 'min_score'?"]),
    "unknown model": ("model='tny', min_score=0.5", ["model 'tny' does not exist", "did you mean 'tiny'?"]),
    "no model": ("min_score=0.5", ["say which with model = ...", "tiny, second"]),
    "positional": ("'tiny'", ["keywords only", "model='tiny'"]),
    "no threshold": ("model='tiny'", ["no threshold", "min_score"]),
    "text": ("model='tiny', min_score='0.5'", ["min_score = '0.5' cannot be used", "give a number"]),
    "above 1": ("model='tiny', min_score=1.5", ["min_score = 1.5 can never be met"]),
    "nan": ("model='tiny', min_score=float('nan')", ["min_score = nan", "number"]),
    "inf": ("model='tiny', max_v_robust=float('inf')", ["max_v_robust = inf", "finite"]),
    "gate of none": ("model='tiny', min_score=None", ["min_score = None sets no threshold"]),
    "none": ("model='tiny', n=None, min_score=0.5", ["n = None cannot be used", "whole number >= 2"]),
    "operator": ("model='tiny', operator='delte', min_score=0.5", ["operator 'delte' does not", "mean 'delete'?"]),
    "device": ("model='tiny', device='cuda:99', min_score=0.01", ['device = "cuda:99" is not available']),
    "grid": ("model='tiny', n=13, min_score=0.01", ["n = 13 is larger than", "set n <= 12"]),
    "no text": ("model=3, min_score=0.5", ["model = 3 cannot be used"]),
}


@pytest.mark.parametrize("fixture", ["", "dscore"], ids=["plain", "fixture"])
@pytest.mark.parametrize(("arguments", "parts"), REFUSED.values(), ids=REFUSED)
def test_an_unusable_marker_fails_its_test(user: Project, arguments: str, parts: list[str], fixture: str) -> None:
    if fixture and arguments == "model='tiny'":
        arguments, parts = "model='tiny', nn=3", ["key 'nn' does not exist"]
    code = f"@pytest.mark.dscore({arguments})\ndef test_user({fixture}):\n    open('ran', 'w')"
    result, text = outcome(user, code)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    for part in parts:
        assert part in text
    assert not (user.path / "ran").exists()


def test_the_fixture_without_a_marker_says_what_is_missing(user: Project) -> None:
    result, text = outcome(user, "def test_user(dscore):\n    pass")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "needs @pytest.mark.dscore(model=...)" in text


def test_a_ratio_score_may_have_a_threshold_above_1(user: Project) -> None:
    """The model's own form decides whether a threshold of the marker can be met."""
    user.settings(own="form = 'ratio'\nmin_score = 0.01")
    _, text = outcome(user, "@pytest.mark.dscore(min_score=1.5)\ndef test_user():\n    pass")
    assert "can never be met" not in text
    assert text.startswith("D-Score 0.")


@pytest.mark.parametrize(
    "arguments",
    [
        "min_score=np.float64(0.01)",
        "min_score=np.float32(0.01)",
        "min_accuracy=np.float16(0.5), n=np.int64(2)",
        "min_score=np.float64(0.01), seed=np.int32(1), pad=np.int64(2)",
    ],
)
def test_numpy_scalars_are_numbers(user: Project, arguments: str) -> None:
    code = f"import numpy as np\n@pytest.mark.dscore(model='tiny', {arguments})\ndef test_user():\n    pass"
    result, text = outcome(user, code)
    assert text == ""
    result.assert_outcomes(passed=1, deselected=2)


def test_parametrised_tests_have_a_marker_each(user: Project) -> None:
    user.test(
        "@pytest.mark.parametrize('wanted', [\n"
        "    pytest.param(3, marks=pytest.mark.dscore(model='tiny', min_score=0.01)),\n"
        "    pytest.param(2, marks=pytest.mark.dscore(model='second', min_score=0.01)),\n"
        "    pytest.param(3, marks=pytest.mark.dscore(model='tiny', min_score=0.99)),\n"
        "])\n"
        "def test_user(dscore, wanted):\n    assert dscore.n == wanted"
    )
    user.run("-k", "test_user").assert_outcomes(passed=2, failed=1, deselected=2)


def test_class_and_module_marks_and_the_closest_one_wins(user: Project) -> None:
    user.test(
        "pytestmark = pytest.mark.dscore(model='tiny', min_score=0.99)\n"
        "def test_module():\n    pass\n"
        "@pytest.mark.dscore(model='second', min_score=0.01)\n"
        "class TestClass:\n"
        "    def test_class(self, dscore):\n        assert dscore.n == 2\n"
        "    @pytest.mark.dscore(model='tiny', min_score=0.01)\n"
        "    def test_method(self, dscore):\n        assert dscore.n == 3\n"
    )
    user.run("test_user.py", "-k", "test_").assert_outcomes(passed=2, failed=1, deselected=2)
    assert "D-Score 0." in message(user.cases()["test_module"])


def test_a_second_mark_on_one_test_is_not_dropped_in_silence(user: Project) -> None:
    code = (
        "@pytest.mark.dscore(model='tiny', min_score=0.01)\n"
        "@pytest.mark.dscore(model='second', min_score=0.99)\n"
        "def test_user():\n    pass"
    )
    assert outcome(user, code)[0].ret == pytest.ExitCode.TESTS_FAILED
    code = code.replace("0.01", "0.5").replace("0.99", "0.01").replace("0.5", "0.99")
    assert outcome(user, code)[0].ret == pytest.ExitCode.TESTS_FAILED


def test_a_test_in_a_unittest_class_is_gated(user: Project) -> None:
    user.test(
        "import unittest\nclass TestCase(unittest.TestCase):\n"
        "    @pytest.mark.dscore(model='tiny', min_score=0.99)\n    def test_user(self):\n        open('ran', 'w')"
    )
    user.run("-k", "test_user").assert_outcomes(failed=1, deselected=2)
    assert not (user.path / "ran").exists()


def test_skipped_and_expected_failures_stay_what_they_are(user: Project) -> None:
    user.test(
        "@pytest.mark.skip\n@pytest.mark.dscore(model='tiny', min_score=0.99)\ndef test_skip():\n    pass\n"
        "@pytest.mark.xfail\n@pytest.mark.dscore(model='tiny', min_score=0.99)\ndef test_xfail():\n    pass\n"
    )
    result = user.run("-k", "test_skip or test_xfail")
    result.assert_outcomes(skipped=1, xfailed=1, deselected=2)
    assert "D-Score" in output(result)


def test_items_and_tests_share_one_measurement(user: Project) -> None:
    user.settings(own="min_score = 0.01\nmax_v_robust = 3.0")
    user.test(
        "@pytest.mark.dscore(min_score=0.2)\ndef test_a(dscore):\n    pass\n"
        "@pytest.mark.dscore(confidence=0.5)\ndef test_b(dscore):\n    pass\n"
    )
    user.run("--dscore-no-cache").assert_outcomes(passed=4)
    assert user.count("build") == 1
    before = user.count("forward")
    user.test("def test_other():\n    pass")
    user.run("--dscore-no-cache")
    assert user.count("forward") == 2 * before


STACKED = {
    "module": "pytestmark = [pytest.mark.dscore(model='tiny', min_score=k) for k in (0.01, 0.99)]\n"
    "def test_user():\n    pass",
    "class": "@pytest.mark.dscore(model='tiny', min_score=0.99)\n@pytest.mark.dscore(model='tiny', min_score=0.01)\n"
    "class TestIt:\n    def test_user(self):\n        pass",
    "base": "@pytest.mark.dscore(model='tiny', min_score=0.01)\nclass Base:\n    pass\n"
    "@pytest.mark.dscore(model='tiny', min_score=0.99)\nclass TestIt(Base):\n    def test_user(self):\n        pass",
}


@pytest.mark.parametrize("code", STACKED.values(), ids=STACKED)
def test_marks_of_one_level_do_not_hide_each_other(user: Project, code: str) -> None:
    result, text = outcome(user, code)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "stands more than once" in text
