"""The README and the pages under docs/ are run: what they show is what happens."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shutil
import sys
from pathlib import Path

import pytest

from pytest_dscore.gates.judge import FEW_EXAMPLES
from pytest_dscore.names import OPERATOR_NAMES
from pytest_dscore.settings import GATES, HoldoutSettings, ModelSettings, load_settings

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
HOLDOUTS = (ROOT / "docs/holdout-gates.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs/dscore.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """Fenced code blocks of one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """The bundled project with the README's settings."""
    shutil.copytree(ROOT / "fixtures", pytester.path / "fixtures", ignore=shutil.ignore_patterns("__pycache__"))
    (pytester.path / "pyproject.toml").write_text(blocks(README, "toml")[0], encoding="utf-8")
    return pytester


def settings_of(project: pytest.Pytester) -> ModelSettings:
    return load_settings(project.path, OPERATOR_NAMES).models["digits"]


def test_the_readme_shows_what_make_gate_prints(pytester: pytest.Pytester) -> None:
    for name in ("fixtures", ".dscore"):
        shutil.copytree(ROOT / name, pytester.path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", pytester.path)
    result = pytester.runpytest_subprocess("--dscore", "pyproject.toml", "fixtures")
    result.assert_outcomes(passed=8)
    shown = blocks(README, "text")[0].strip().splitlines()
    printed = result.stdout.lines
    start = next(number for number, line in enumerate(printed) if "= D-Score =" in line)
    assert printed[start : start + len(shown)] == shown
    assert max(map(len, shown)) <= 80


def test_the_readme_s_protocol_tests_pass(project: pytest.Pytester) -> None:
    project.makepyfile(test_readme=blocks(README, "python")[2])
    project.runpytest_subprocess("--dscore", "test_readme.py", "--deselect", "pyproject.toml").assert_outcomes(
        passed=2, deselected=2
    )


def test_the_readme_shows_the_real_failure(project: pytest.Pytester) -> None:
    file = project.path / "pyproject.toml"
    fragile = file.read_text(encoding="utf-8").replace("build_model", "build_fragile_model")
    file.write_text(fragile.replace("digits.safetensors", "digits_fragile.safetensors"), encoding="utf-8")
    result = project.runpytest_subprocess("--dscore", "pyproject.toml")
    result.assert_outcomes(failed=2)
    assert blocks(README, "text")[1].strip() in result.stdout.lines


def test_the_readme_s_marked_test_passes(project: pytest.Pytester) -> None:
    project.makepyfile(test_readme=blocks(README, "python")[0])
    project.runpytest_subprocess("--dscore", "test_readme.py", "-m", "dscore").assert_outcomes(passed=3)


def test_the_readme_s_notebook_example_prints_what_it_says(project: pytest.Pytester) -> None:
    code = blocks(README, "python")[1]
    printed = io.StringIO()
    project.syspathinsert(project.path)
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.parse(code), "README.md", "exec"), {})
    promised = re.findall(r"print\(.*\)  # (.*)", code)
    assert printed.getvalue().splitlines() == promised


def test_the_readme_lists_every_setting_with_its_default(project: pytest.Pytester) -> None:
    table = README.split("### Settings")[1].split("All but the last row")[0]
    assert set(ModelSettings.model_fields) <= set(re.findall(r"`(\w+)`", table))
    settings = settings_of(project)
    assert (settings.n, settings.bootstrap, settings.confidence, settings.seed) == (3, 1000, 0.95, 0)
    assert set(settings.thresholds()) <= set(GATES)


def test_the_page_s_own_operator_works(project: pytest.Pytester) -> None:
    project.makeconftest(blocks(PAGE, "python")[0])
    file = project.path / "pyproject.toml"
    file.write_text(
        file.read_text(encoding="utf-8").replace("[tool.dscore]", '[tool.dscore]\noperator = "halve"'), encoding="utf-8"
    )
    result = project.runpytest_subprocess("--dscore", "pyproject.toml")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["digits: n=3, halve, *"])


def test_the_page_on_holdouts_shows_what_happens(pytester: pytest.Pytester) -> None:
    shutil.copytree(ROOT / "fixtures", pytester.path / "fixtures", ignore=shutil.ignore_patterns("test_*", "__pyc*"))
    (pytester.path / "pyproject.toml").write_text(blocks(HOLDOUTS, "toml")[0], encoding="utf-8")
    pytester.makepyfile(test_svc=blocks(HOLDOUTS, "python")[0])
    command, said = blocks(HOLDOUTS, "console")[0].splitlines()[:2]
    assert command == "$ dscore holdout begin"
    assert pytester.run(sys.executable, "-m", "pytest_dscore.cli", "holdout", "begin").outlines == [said]
    first = pytester.runpytest_subprocess("--dscore", "-s")
    first.assert_outcomes(passed=2)
    shown = blocks(HOLDOUTS, "text")[0].strip().splitlines()
    start = first.outlines.index(shown[0])
    assert first.outlines[start : start + len(shown)] == shown
    promised = re.findall(r"print\(.*\)  # (.*)", HOLDOUTS)
    assert [line.removeprefix("test_svc.py ") for line in first.outlines if promised[0] in line] == promised
    again = pytester.runpytest_subprocess("--dscore")
    row = "digits-test  on record  0.982     [0.962, 1.000]   pass     svc@"
    assert any(line.startswith(row) for line in again.outlines)


def test_the_page_on_holdouts_lists_every_setting() -> None:
    table = HOLDOUTS.split("## Settings")[1].split("##")[0]
    assert set(HoldoutSettings.model_fields) <= set(re.findall(r"`(\w+)`", table))


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), ROOT / "fixtures/README.md"]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_settings_that_the_page_on_thresholds_proposes_are_valid(tmp_path: Path) -> None:
    text = blocks((ROOT / "docs/thresholds.md").read_text(encoding="utf-8"), "toml")[0]
    model = '[tool.dscore.models.digits]\nfactory = "net:build"\ndata = "net:data"\n'
    (tmp_path / "pyproject.toml").write_text(text + model, encoding="utf-8")
    [found] = load_settings(tmp_path, OPERATOR_NAMES).models.values()
    assert (found.min_accuracy, found.min_score, found.form) == (0.9, 0.8, "mean")
    assert found.max_drop == {"score": 0.02, "accuracy": 0.01}


def test_the_figures_on_validity_are_those_of_the_study() -> None:
    study = " ".join((ROOT / "docs/study.md").read_text(encoding="utf-8").split())
    section = PAGE.split("## What is known about its validity")[1].split("\n## ")[0]
    figures = re.findall(r"[+-]?\d\.\d\d \[[+-]?\d\.\d\d, [+-]?\d\.\d\d\]", " ".join(section.split()))
    assert len(figures) == 17
    assert [figure for figure in figures if figure not in study] == []
    assert f"minimum for a gate: {FEW_EXAMPLES} test examples" in study
