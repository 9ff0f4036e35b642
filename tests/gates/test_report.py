"""From a real run to a report: what the gates write, ``dscore report`` reads, whichever way pytest was run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pytest_dscore.cli import main
from pytest_dscore.gates.store import Measured, load, save
from pytest_dscore.report.contents import Place, Report
from pytest_dscore.report.gathering import gather
from pytest_dscore.score.engine import Hits
from pytest_dscore.score.exhibit import Example, Exhibit
from tests.gates.holdout_project import HoldoutProject
from tests.gates.project import FAILING, PASSING, Project, properties

BOTH = f"{FAILING}\nmax_v_robust = 0.001"
USER = "@pytest.mark.dscore(min_score=0.99)\ndef test_mine():\n    pass\n"
PNG = b"\x89PNG\r\n\x1a\n"


def read(project: Project) -> Report:
    """The report of the last run."""
    return gather([project.path / "report.xml"])


def line_of(project: Project, text: str) -> int:
    """The line of pyproject.toml that begins so, from 1."""
    lines = (project.path / "pyproject.toml").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.startswith(text))


@pytest.mark.parametrize("family", ["xunit1", "xunit2"])
def test_failures_are_annotated_where_they_stand(
    family: str, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.settings(own=BOTH)
    project.test(USER)
    project.run("-o", f"junit_family={family}")
    failures = {(gate.test.rpartition("::")[2], gate.name): gate for _, gate in read(project).failures}
    assert {key: gate.place for key, gate in failures.items()} == {
        ("dscore[tiny-min_score]", "min_score"): Place("pyproject.toml", line_of(project, "min_score")),
        ("dscore[tiny-max_v_robust]", "max_v_robust"): Place("pyproject.toml", line_of(project, "max_v_robust")),
        ("test_mine", "min_score"): Place("test_user.py", 3),
    }
    for gate in failures.values():
        assert gate.reason.startswith("D-Score 0." if gate.name == "min_score" else "v_robust ")
        assert "for model 'tiny'" in gate.reason
    capsys.readouterr()
    assert main(["report", str(project.path / "report.xml"), "--format", "github"]) == 1
    assert f"::error file=pyproject.toml,line={line_of(project, 'min_score')},title=tiny" in capsys.readouterr().out


def test_xunit1_places_what_passed_too(project: Project) -> None:
    project.run("-o", "junit_family=xunit1")
    [(_, gate)] = read(project).gates
    assert gate.place == Place("pyproject.toml", line_of(project, "min_score"))


@pytest.mark.slow
def test_workers_of_xdist_leave_the_same_report(project: Project) -> None:
    project.settings(own=BOTH)
    project.test(USER)
    project.run()
    serial = read(project)
    project.run("-n", "2", "--dscore-no-cache", subprocess=True)
    spread = read(project)
    assert {gate for _, gate in spread.gates} == {gate for _, gate in serial.gates}
    assert len(spread.scores) == len(serial.scores) == 1
    assert spread.scores[0].figures == serial.scores[0].figures
    assert spread.scores[0].exhibit == serial.scores[0].exhibit is not None


def test_two_gates_of_a_marked_test_have_their_own_reasons(project: Project) -> None:
    project.settings(own="min_score = 0.01")
    project.test("@pytest.mark.dscore(min_score=0.99, max_v_robust=0.001)\ndef test_mine():\n    pass\n")
    project.run()
    reasons = {gate.name: gate.reason.partition(" ")[0] for _, gate in read(project).failures}
    assert reasons == {"min_score": "D-Score", "max_v_robust": "v_robust"}


def test_a_body_that_fails_after_its_gate_passed(project: Project) -> None:
    project.test("@pytest.mark.dscore(min_score=0.01)\ndef test_mine(dscore):\n    assert dscore.n == 4\n")
    project.run()
    [(_, gate)] = read(project).failures
    assert (gate.name, gate.outcome, gate.place) == ("", "fail", Place("test_user.py", 5))
    assert "assert 3 == 4" in gate.reason


def test_a_model_that_cannot_be_scored(project: Project) -> None:
    project.settings(own=BOTH)
    (project.path / "weights.safetensors").write_bytes(b"no weights")
    project.run()
    report = read(project)
    assert [(gate.name, gate.outcome) for _, gate in report.failures] == [
        ("min_score", "error"),
        ("max_v_robust", "error"),
    ]
    assert all("model 'tiny' cannot be scored" in gate.reason for _, gate in report.failures)
    assert not report.scores[0].measured


def test_a_holdout_is_read(bench: HoldoutProject) -> None:
    bench.record(10, 12)
    bench.run()
    [state] = read(bench).holdouts
    assert (state.name, state.facts["models_used"], len(state.uses)) == ("digits-test", 2, 1)
    assert state.facts["sentence"].startswith("hold-out 'digits-test': 2 models used")


# Pictures


def exhibits(project: Project) -> dict[str, dict[str, object]]:
    """The property of every test that has it."""
    found = {name: properties(case).get("dscore.exhibit") for name, case in project.cases().items()}
    return {name: json.loads(text) for name, text in found.items() if text is not None}


def test_one_test_for_each_score_carries_the_pictures(project: Project) -> None:
    project.settings(own=BOTH)
    project.test(USER + "@pytest.mark.dscore(n=2)\ndef test_other(dscore):\n    pass\n")
    project.run()
    assert set(exhibits(project)) == {"dscore[tiny-min_score]", "test_mine", "test_other"}
    for name, one in exhibits(project).items():
        assert set(one) == {"region", "failing", "mean", "examples"}, name
        assert len(json.dumps(one)) < 60_000


def test_the_examples_are_those_that_the_hits_say(project: Project) -> None:
    project.run()
    [shown] = exhibits(project).values()
    result = project.direct()
    row, col = result.worst_region
    lost = np.flatnonzero(result.hits[0] & ~result.hits[10 + 3 * row + col])
    assert shown["region"] == [row, col]
    assert shown["failing"] == len(lost)
    assert {one["row"] for one in shown["examples"]} <= set(lost.tolist())  # type: ignore[attr-defined]


def test_pictures_are_kept_with_the_hits(project: Project) -> None:
    project.run()
    first, passes = exhibits(project), project.count("forward")
    project.run()
    assert project.count("forward") == passes
    assert exhibits(project) == first != {}


def test_no_properties_no_pictures(project: Project) -> None:
    project.settings("junit_properties = false", PASSING)
    project.run()
    assert "dscore.exhibit" not in (project.path / "report.xml").read_text()


def test_examples_of_a_declared_holdout_are_withheld(bench: HoldoutProject) -> None:
    bench.write(
        "pyproject.toml",
        "[tool.dscore]\nmin_score = 0.01\nbootstrap = 100\n[tool.dscore.models.tiny]\nfactory = 'net:build'\n"
        "weights = 'weights.safetensors'\ndata = 'net:data'\n"
        "[tool.dscore.holdouts.secret]\ndata = 'net:data'\nepsilon = 0.4\n",
    )
    assert main(["holdout", "begin", "--root", str(bench.path)]) == 0
    bench.run()
    [shown] = exhibits(bench).values()
    assert shown["examples"] == []
    assert "declared hold-out" in str(shown["withheld"])
    [score] = read(bench).scores
    assert score.exhibit is not None
    assert score.exhibit.withheld
    assert score.exhibit.failing > 0


def test_pictures_that_cannot_be_made_change_no_verdict(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    from pytest_dscore.gates import scoring

    def broken(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(scoring, "make_exhibit", broken)
    project.run().assert_outcomes(passed=1)
    assert exhibits(project) == {}


# Pictures on disk

HITS = Hits(np.eye(9, dtype=bool), 3, {"conv": (4, 4)}, (), "cpu")
SHOWN = Exhibit(PNG, (0, 1), 2, (Example(3, 1, 2, PNG),))
MEASURED = Measured(HITS, (1, 1), (0.0,), "m", "d", exhibit=SHOWN)


def test_pictures_are_saved_only_where_that_is_asked_for(tmp_path: Path) -> None:
    save(tmp_path / "cache.npz", MEASURED, pictures=True)
    save(tmp_path / "committed.npz", MEASURED)
    kept, committed = load(tmp_path / "cache.npz"), load(tmp_path / "committed.npz")
    assert kept is not None
    assert committed is not None
    assert kept.exhibit == SHOWN
    assert committed.exhibit is None
    assert np.array_equal(kept.hits.hits, HITS.hits)
    assert np.array_equal(committed.hits.hits, HITS.hits)


def test_a_file_without_pictures_from_before_there_were_any_loads(tmp_path: Path) -> None:
    save(tmp_path / "old.npz", replace(MEASURED, exhibit=None), pictures=True)
    with np.load(tmp_path / "old.npz") as stored:
        assert set(stored.files) == {"meta", "hits"}
        assert set(json.loads(str(stored["meta"]))) == {
            *("padding", "fill", "model_fingerprint", "data_fingerprint", "remarks", "cached"),
            *("hits", "format", "shape", "sha256"),
        }
    assert load(tmp_path / "old.npz") is not None


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"region": [0, 1], "mean": "!", "failing": 1, "examples": []}'])
def test_damaged_pictures_are_measured_anew(text: str, tmp_path: Path) -> None:
    save(tmp_path / "cache.npz", MEASURED, pictures=True)
    with np.load(tmp_path / "cache.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    np.savez_compressed(tmp_path / "cache.npz", **{**arrays, "exhibit": np.array(text)})
    assert load(tmp_path / "cache.npz") is None


@pytest.mark.parametrize(
    "test",
    [
        "@pytest.mark.dscore(min_scor=0.9)\ndef test_mine():\n    pass\n",
        "@pytest.mark.holdout('nowhere')\ndef test_mine(holdout):\n    pass\n",
        "@pytest.mark.nested_cv(max_eror=0.9)\ndef test_mine(nested_cv):\n    pass\n",
        "def test_mine(holdout):\n    pass\n",
    ],
    ids=["misspelt threshold", "misspelt name", "misspelt keyword", "no mark"],
)
def test_a_gate_that_could_not_be_judged_is_not_overlooked(
    test: str, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.settings(own=PASSING)
    project.test(test)
    assert project.run().ret == pytest.ExitCode.TESTS_FAILED
    assert main(["report", str(project.path / "report.xml")]) == 1
    assert "test" in capsys.readouterr().out
    assert len(list(read(project).failures)) == 1
