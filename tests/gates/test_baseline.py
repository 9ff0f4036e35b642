"""Baselines: recorded, compared example by example, and refused where they are of something else."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.gates.project import PASSING, Project, message, output, properties

DROP = "max_drop = 0.02"
UPDATE = "--dscore-update-baseline"
GATE = "dscore[tiny-max_drop.score]"


def worsen(project: Project, factor: float = 0.0) -> None:
    """Damp the weights of one class."""
    from safetensors.torch import load_file, save_file

    path = project.path / "weights.safetensors"
    state = load_file(path)
    state["head.weight"][2] *= factor
    state["head.bias"][2] = -100.0
    save_file(state, path)


@pytest.fixture
def recorded(project: Project) -> Project:
    """A project with a baseline of its model."""
    project.settings(own=DROP)
    project.run(UPDATE).assert_outcomes(passed=5)
    return project


def baseline(project: Project) -> Any:
    return json.loads((project.path / ".dscore/baseline.json").read_text())


def test_nothing_is_written_unless_asked(project: Project) -> None:
    project.run()
    assert not (project.path / ".dscore").exists()


@pytest.mark.parametrize("ci", ["", "true"])
def test_a_missing_baseline_fails_and_says_how_to_record_one(
    project: Project, monkeypatch: pytest.MonkeyPatch, ci: str
) -> None:
    monkeypatch.setenv("CI", ci)
    project.settings(own=f"{PASSING}\n{DROP}")
    result = project.run()
    result.assert_outcomes(passed=1, failed=5)
    text = message(project.cases()[GATE])
    assert text.startswith(
        "there is no baseline of model 'tiny' in .dscore/baseline.json: record one with `pytest --dscore"
    )
    assert properties(project.cases()[GATE])["dscore.verdict.max_drop.score"] == "error"
    assert not (project.path / ".dscore").exists()


def test_what_is_recorded(recorded: Project) -> None:
    [entry] = baseline(recorded)["models"]["tiny"]
    direct = recorded.direct()
    assert entry["figures"] == {
        name: getattr(direct, name).value for name in ("score", "v_robust", "v_fitness", "accuracy")
    }
    assert entry["conditions"]["n"] == 3
    assert (recorded.path / ".dscore" / entry["hits"]).stat().st_size < 100_000
    assert not list((recorded.path / ".dscore").glob("*.tmp"))


def test_the_same_model_has_not_dropped(recorded: Project) -> None:
    result = recorded.run()
    result.assert_outcomes(passed=5)
    found = properties(recorded.cases()[GATE])
    assert json.loads(found["dscore.change"])["score"] == {"value": 0.0, "lower": 0.0, "upper": 0.0}
    assert json.loads(found["dscore.baseline"])["figures"]["score"] == pytest.approx(recorded.direct().score.value)
    text = output(result)
    assert re.search(r"drop of D-Score +0\.000 +\[0\.000, 0\.000\] +<= 0\.020 +pass", text)
    assert re.search(r"rise of v_robust +0\.000", text)


def test_a_worse_model_fails_and_the_message_says_where(recorded: Project) -> None:
    earlier = recorded.direct()
    worsen(recorded)
    result = recorded.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    line = message(recorded.cases()["dscore[tiny-max_drop.accuracy]"]).splitlines()[0]
    assert re.fullmatch(r"drop of accuracy 0\.\d{3} \[0\.\d{3}, 0\.\d{3}\] > 0\.020 for model 'tiny' \(n=3\)", line)
    before, now = baseline(recorded)["models"]["tiny"][0]["figures"]["accuracy"], recorded.direct().accuracy.value
    assert float(line.split()[3]) == pytest.approx(before - now, abs=5e-4)
    where = message(recorded.cases()["dscore[tiny-max_drop.v_fitness]"]).splitlines()[0]
    found = re.search(r"accuracy fell most (?:with|where) .* \((f|a)=(\d\.\d\d), it was (\d\.\d\d)\)$", where)
    assert found
    # By hand: the largest fall of any mutant or shift.
    hits, name = recorded.direct().hits.mean(axis=1), found[1]
    then = earlier.hits.mean(axis=1)
    worst = int((then - hits)[1:].argmax()) + 1
    assert name == ("f" if worst <= 9 else "a")
    assert float(found[2]) == pytest.approx(hits[worst], abs=0.006)
    assert float(found[3]) == pytest.approx(then[worst], abs=0.006)


def test_each_figure_points_at_the_line_of_max_drop(recorded: Project) -> None:
    worsen(recorded)
    recorded.run()
    lines = (recorded.path / "pyproject.toml").read_text().splitlines()
    [failure] = recorded.cases()["dscore[tiny-max_drop.accuracy]"].result
    last = str(failure.text).rstrip().splitlines()[-1]
    assert lines[int(last.rpartition(":")[2]) - 1] == DROP


def slightly_worse(project: Project) -> None:
    """Lower one class's bias until the first example is lost; one of 40 cannot be told from noise."""
    from safetensors.torch import load_file, save_file

    path = project.path / "weights.safetensors"
    before = project.direct().accuracy.value
    while project.direct().accuracy.value == before:
        state = load_file(path)
        state["head.bias"][2] -= 0.001
        save_file(state, path)


@pytest.mark.parametrize("strict", [False, True])
def test_noise_is_no_drop_unless_strict(project: Project, strict: bool) -> None:
    keyword = "strict = true" if strict else ""
    project.settings(own=f"max_drop = {{ accuracy = 0.0 }}\n{keyword}")
    project.run(UPDATE).assert_outcomes(passed=1)
    before = project.direct().accuracy.value
    slightly_worse(project)
    assert 0 < before - project.direct().accuracy.value <= 0.05
    result = project.run("-rA")
    result.assert_outcomes(passed=not strict, failed=strict)
    found = properties(project.cases()["dscore[tiny-max_drop.accuracy]"])
    assert found["dscore.verdict.max_drop.accuracy"] == ("fail" if strict else "inconclusive")
    if not strict:
        assert re.search(r"about \d+ more examples? like these would settle it", " ".join(output(result).split()))


def test_a_table_chooses_figures(project: Project) -> None:
    project.settings(own="max_drop = { worst_region = 0.1, v_robust = 0.5 }")
    project.run(UPDATE).assert_outcomes(passed=2)
    assert set(project.cases()) == {"dscore[tiny-max_drop.worst_region]", "dscore[tiny-max_drop.v_robust]"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("n = 2", "n was 3 and is 2"),
        ('operator = "invert"', "operator was delete and is invert"),
        ("pad = 2", "pad was [4, 4] and is [2, 2]"),
        ('form = "ratio"', "form was mean and is ratio"),
        ("fill = 0.5", "fill was [0.0] and is [0.5]"),
    ],
)
def test_other_settings_are_not_compared(recorded: Project, change: str, says: str) -> None:
    recorded.settings(own=f"{DROP}\n{change}")
    recorded.run().assert_outcomes(failed=5)
    text = message(recorded.cases()[GATE])
    assert "the baseline of model 'tiny' was made otherwise, so no drop can be judged: " in text
    assert says in text


def test_other_data_are_not_compared(recorded: Project) -> None:
    recorded.replace("net.py", 'return kept["images"], kept["labels"]', 'return kept["images"][1:], kept["labels"][1:]')
    recorded.run().assert_outcomes(failed=5)
    text = message(recorded.cases()[GATE])
    assert "the data are others" in text
    assert "examples was 40 and is 39" in text


def test_two_settings_side_by_side_keep_a_baseline_each(recorded: Project) -> None:
    recorded.settings(own=f"{DROP}\nn = 2")
    recorded.run(UPDATE).assert_outcomes(passed=5)
    assert len(baseline(recorded)["models"]["tiny"]) == 2
    recorded.run().assert_outcomes(passed=5)
    recorded.settings(own=DROP)
    recorded.run().assert_outcomes(passed=5)


DAMAGE = {
    "cut short": (lambda text: text[:-30], "is cut short or no JSON"),
    "empty": (lambda text: "", "is cut short or no JSON"),
    "foreign": (lambda text: '{"a": 1}', "is no baseline of pytest-dscore"),
    "newer": (lambda text: text.replace('"schema": 1', '"schema": 2'), "has schema 2, this pytest-dscore knows 1"),
    "edited": (lambda text: text.replace('"hits":', '"hit":'), "was edited"),
    "out of its place": (lambda text: text.replace('"baseline/', '"../'), "was edited"),
}


@pytest.mark.parametrize(("edit", "says"), DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("update", [False, True])
def test_a_damaged_baseline_is_neither_used_nor_overwritten(
    recorded: Project, edit: Any, says: str, update: bool
) -> None:
    path = recorded.path / ".dscore/baseline.json"
    path.write_text(edit(path.read_text()))
    before = path.read_bytes()
    recorded.run(*([UPDATE] if update else [])).assert_outcomes(failed=5)
    assert says in message(recorded.cases()[GATE])
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", ["is missing", "is damaged, or of another model,"])
def test_hits_that_are_gone(recorded: Project, damage: str) -> None:
    [path] = (recorded.path / ".dscore/baseline").iterdir()
    path.unlink() if damage == "is missing" else path.write_bytes(b"PK")
    recorded.run().assert_outcomes(failed=5)
    assert f"the hits of the baseline of model 'tiny', {damage}" in message(recorded.cases()[GATE])


def test_hits_of_another_model_are_not_compared(recorded: Project) -> None:
    worsen(recorded)
    other = "max_drop = 0.02\nn = 3"
    recorded.settings(own=other, name="other")
    recorded.run(UPDATE)
    good, bad = sorted(
        (recorded.path / ".dscore/baseline").iterdir(), key=lambda path: not path.name.startswith("tiny")
    )
    good.write_bytes(bad.read_bytes())
    recorded.settings(own=DROP)
    recorded.run().assert_outcomes(failed=5)
    assert "is damaged, or of another model," in message(recorded.cases()[GATE])


def test_of_another_model(recorded: Project) -> None:
    recorded.settings(own=DROP, name="other")
    recorded.run().assert_outcomes(failed=5)
    assert "there is no baseline of model 'other'" in message(recorded.cases()["dscore[other-max_drop.score]"])


def test_a_read_only_place_fails_the_update(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    (project.path / ".dscore").write_text("in the way")
    project.settings(own=DROP)
    project.run(UPDATE).assert_outcomes(failed=5)
    assert "the baseline cannot be written to .dscore/baseline.json" in message(project.cases()[GATE])


def test_workers_record_and_compare(project: Project) -> None:
    project.settings(
        own=DROP,
        more='[tool.dscore.models.second]\nfactory = "net:build"\nweights = "weights.safetensors"\ndata = "net:data"\n'
        + DROP,
    )
    project.run(UPDATE, "-n", "2", subprocess=True).assert_outcomes(passed=10)
    assert set(baseline(project)["models"]) == {"tiny", "second"}
    project.run("-n", "2", subprocess=True).assert_outcomes(passed=10)


def test_a_marked_test_can_ask_for_no_drop(recorded: Project) -> None:
    recorded.test(
        "@pytest.mark.dscore(model='tiny', max_drop={'accuracy': 0.0})\ndef test_it(dscore):\n"
        "    assert dscore.accuracy.value > 0.5\n"
    )
    recorded.run("test_user.py::test_it").assert_outcomes(passed=1)
    worsen(recorded)
    recorded.run("test_user.py::test_it").assert_outcomes(failed=1)
    assert message(recorded.cases()["test_it"]).startswith("drop of accuracy")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("max_drop = -0.1", "max_drop = -0.1 cannot be used: give a number >= 0"),
        ("max_drop = nan", "cannot be used: give a number >= 0"),
        ("max_drop = { acuracy = 0.1 }", "cannot be used: give a number >= 0 for all figures, or a table"),
        ('inconclusive = "maybe"', 'give "fail" or "pass"'),
    ],
)
def test_unusable_settings(project: Project, line: str, says: str) -> None:
    project.settings(own=f"{PASSING}\n{line}")
    result = project.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert says in output(result)


def test_the_file_can_be_read_by_people(recorded: Project) -> None:
    text = Path(recorded.path / ".dscore/baseline.json").read_text()
    assert text.endswith("}\n")
    assert '\n        "commit": null,\n' in text
