"""The bundled project, end to end: the robust model passes its gate, the fragile one fails it."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from junitparser import JUnitXml, Properties, TestCase
from safetensors.torch import load_file

# In the outer process, as in tests/gates/conftest.py.
import pytest_dscore.gates.judge
import pytest_dscore.gates.scoring
import pytest_dscore.gates.session
import pytest_dscore.report.terminal  # noqa: F401
from fixtures import digits
from pytest_dscore import d_score

REPOSITORY = Path(__file__).resolve().parents[2]
FIGURES = ("score", "v_robust", "v_fitness", "accuracy", "v_robust_relative")


@pytest.fixture
def bundled(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A copy of the repository's project, and nothing of it imported."""
    shutil.copy(REPOSITORY / "pyproject.toml", pytester.path)
    shutil.copytree(REPOSITORY / "fixtures", pytester.path / "fixtures", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(REPOSITORY / ".dscore", pytester.path / ".dscore")
    monkeypatch.setenv("COLUMNS", "200")
    for name in [name for name in sys.modules if name.partition(".")[0] == "fixtures"]:
        monkeypatch.delitem(sys.modules, name)
    return pytester


def run(bundled: pytest.Pytester, *args: str) -> pytest.RunResult:
    """`make gate`, whose arguments these are."""
    options = ("-p", "no:hypothesispytest", "--dscore", "--junitxml=report.xml")
    return bundled.runpytest_inprocess(*options, *args)


def cases(bundled: pytest.Pytester) -> dict[str, TestCase]:
    """Test cases by name."""
    return {case.name: case for suite in JUnitXml.fromfile(str(bundled.path / "report.xml")) for case in suite}


def properties(case: TestCase) -> dict[str, str]:
    """The JUnit properties of a test case."""
    found = case.child(Properties)  # type: ignore[no-untyped-call]
    return {entry.name: entry.value for entry in found or ()}


def direct(model: torch.nn.Module, weights: str, **arguments: Any) -> Any:
    """The score without pytest."""
    model.load_state_dict(load_file(REPOSITORY / "fixtures" / weights))
    return d_score(model, *digits.holdout(), **arguments)


def same(found: dict[str, str], result: Any) -> None:
    """Assert that properties are the figures of a result."""
    for name in FIGURES:
        figure = getattr(result, name)
        ends = {"": figure.value, ".lower": figure.lower, ".upper": figure.upper}
        for end, value in ends.items():
            assert float(found[f"dscore.{name}{end}"]) == value
    for name in ("f", "f_tilde", "a", "a_tilde"):
        assert json.loads(found[f"dscore.{name}"]) == getattr(result, name).tolist()


def test_the_robust_model_passes(bundled: pytest.Pytester) -> None:
    result = run(bundled, "pyproject.toml", "fixtures")
    assert result.ret == pytest.ExitCode.OK
    found = cases(bundled)
    gates = ["dscore[digits-min_score]", "dscore[digits-max_v_robust]"]
    others = {"dscore[digits-test-budget]", "dscore[digits-svm-max_error]", "dscore[digits-svm-leaks]"}
    assert set(found) == {*gates, *others, "test_digits", "test_no_corner_is_blind", "test_noisy_quarters"}
    robust = direct(digits.build_model(), "digits.safetensors")
    assert robust.score.value > 0.8
    for name in (*gates, "test_digits"):
        same(properties(found[name]), robust)
    noisy = direct(digits.build_model(), "digits.safetensors", n=2, operator="noise")
    same(properties(found["test_noisy_quarters"]), noisy)
    text = "\n".join(result.outlines)
    assert re.search(r"digits \(n=3, delete\) +D-Score +0\.\d{3}  \[0\.\d{3}, 0\.\d{3}\]  >= 0\.700   pass", text)
    assert "digits: n=3, delete, pad 9x9 px, 602 examples, 10 classes, scored on " in text

    again = run(bundled, "pyproject.toml", "fixtures")
    assert again.ret == pytest.ExitCode.OK
    scores = [case for name, case in cases(bundled).items() if name not in others]
    assert {properties(case)["dscore.cached"] for case in scores} == {"true"}


def test_the_fragile_model_fails_and_says_where(bundled: pytest.Pytester) -> None:
    settings = bundled.path / "pyproject.toml"
    text = settings.read_text(encoding="utf-8")
    text = text.replace('"fixtures.digits:build_model"', '"fixtures.digits:build_fragile_model"')
    text = text.replace('"fixtures/digits.safetensors"', '"fixtures/digits_fragile.safetensors"')
    # Its D-Score alone is of interest; the hold-out's budget would refuse it.
    text = re.sub(
        r"\[tool\.dscore\.(holdouts|protocols)\..*?(?=\n\[tool\.(dscore|pytest)|\Z)", "", text, flags=re.DOTALL
    )
    settings.write_text(text, encoding="utf-8")
    result = run(bundled, "pyproject.toml", "fixtures")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    # Its two gates and the threshold in the marker fail, and both of the user's other tests see it as well.
    result.assert_outcomes(failed=5)
    fragile = direct(digits.build_fragile_model(), "digits_fragile.safetensors")
    found = cases(bundled)
    row, col = divmod(int(fragile.a.argmin()), 3)
    place = f"{('upper', '', 'lower')[row]} {('left', '', 'right')[col]}".strip() or "centre"
    expected = (
        f"D-Score {fragile.score} < 0.700 for model 'digits' (n=3): accuracy falls most when the object is {place} "
        f"(a={fragile.a.min():.2f} against {fragile.accuracy.value:.2f})"
    )
    for name in ("dscore[digits-min_score]", "test_digits"):
        [failure] = found[name].result
        assert str(failure.message).splitlines()[0] == expected
        same(properties(found[name]), fragile)
    [failure] = found["dscore[digits-min_score]"].result
    number = text.splitlines().index("min_score = 0.70") + 1
    assert str(failure.text).rstrip().splitlines()[-1] == f"pyproject.toml:{number}"


def test_without_the_option_nothing_is_gated(bundled: pytest.Pytester) -> None:
    result = bundled.runpytest_inprocess("-p", "no:hypothesispytest", "fixtures")
    result.assert_outcomes(skipped=3)
