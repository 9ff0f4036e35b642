"""pytest-xdist: every threshold enforced, every figure reported, each model scored once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gates.project import FAILING, MODEL, PASSING, Project, message, output, properties, refused, section

USER_TESTS = """
import numpy as np

@pytest.mark.dscore(model="tiny", min_score=np.float64(0.99), max_v_robust=np.float64(9.0))
def test_fails():
    open("ran", "w")

@pytest.mark.dscore(model="tiny", n=2, min_score=0.01)
def test_holds(dscore):
    assert dscore.n == 2

@pytest.mark.dscore(model="second", confidence=0.5)
def test_reads(dscore):
    assert dscore.n == 2

@pytest.mark.parametrize("number", range(4))
def test_other(number):
    pass
"""


@pytest.fixture
def scratch(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory for temporary files of the run."""
    directory = tmp_path_factory.mktemp("scratch")
    monkeypatch.setenv("TMPDIR", str(directory))
    return directory


@pytest.fixture
def two(project: Project) -> Project:
    """A slow model, a quick one that is ready before it, and one that cannot be scored."""
    project.replace("net.py", 'log("build")', 'log("tiny")')
    net = (project.path / "net.py").read_text()
    project.write("quick.py", net.replace('log("tiny")', 'log("second")'))
    slow = net.replace('log("forward")', 'log("forward"); import time; time.sleep(0.05)')
    project.write("net.py", slow)
    second = MODEL.format(name="second", own=f"n = 2\n{PASSING}\nmax_v_robust = 0.001").replace(
        "net:build", "quick:build"
    )
    nan = net.replace("torch.relu(self.conv(images))", "self.conv(images) * float('nan')").replace(
        'log("forward")', "pass"
    )
    project.write("nan.py", nan.replace('log("tiny")', "pass"))
    broken = MODEL.format(name="broken", own=f"{PASSING}\nmax_v_robust = 9.0").replace("net:build", "nan:build")
    project.settings(own=f"{FAILING}\nmax_v_robust = 9.0", more=second + broken)
    return project


def test_two_workers_report_what_one_process_reports(two: Project, scratch: Path) -> None:
    two.test(USER_TESTS)
    spread = two.run("-n", "2", "-p", "no:cacheprovider", subprocess=True)
    cases = {name: (properties(case), bool(case.result)) for name, case in two.cases().items()}
    failure = message(two.cases()["dscore[tiny-min_score]"])
    assert spread.ret == pytest.ExitCode.TESTS_FAILED
    spread.assert_outcomes(failed=5, passed=8)
    assert two.count("second") == 1
    passes = two.count("forward")
    assert not (two.path / "ran").exists()
    assert list(scratch.iterdir()) == []
    for name in ("dscore[broken-min_score]", "dscore[broken-max_v_robust]"):
        assert "NaN" in message(two.cases()[name])
        assert [value for key, value in cases[name][0].items() if key.startswith("dscore.verdict")] == ["error"]
    assert sum("ERROR" in line for line in section(spread)) == 2

    serial = two.run("-p", "no:cacheprovider")
    assert two.count("forward") == 2 * passes, "a model was scored more than once"
    assert serial.ret == pytest.ExitCode.TESTS_FAILED
    assert {name: (properties(case), bool(case.result)) for name, case in two.cases().items()} == cases
    assert message(two.cases()["dscore[tiny-min_score]"]).splitlines() == failure.splitlines()
    assert sorted(section(spread)) == sorted(section(serial))
    assert section(spread) == section(serial), "the order of the table depends on which worker is ready first"


def test_workers_read_what_a_serial_run_has_kept(project: Project, scratch: Path) -> None:
    project.settings(own=f"{PASSING}\nmax_v_robust = 9.0\nmin_accuracy = 0.5")
    project.run().assert_outcomes(passed=3)
    passes = project.count("forward")
    assert passes > 0
    result = project.run("-n", "2", "--dist", "loadscope", subprocess=True)
    result.assert_outcomes(passed=3)
    assert project.count("forward") == passes
    assert any(line.endswith("classes, cached") for line in section(result))
    assert {properties(case)["dscore.cached"] for case in project.cases().values()} == {"true"}
    assert list(scratch.iterdir()) == []


def test_a_settings_error_is_a_usage_error(project: Project, scratch: Path) -> None:
    project.settings("n = 1")
    refused(project.run("-n", "2", subprocess=True), "[tool.dscore] n = 1 cannot be used")
    assert list(scratch.iterdir()) == []


def test_a_crashed_worker_loses_no_verdict(project: Project, scratch: Path) -> None:
    project.settings(own=f"min_accuracy = 1.0\n{FAILING}\nmax_v_robust = 9.0")
    project.test(
        "@pytest.mark.dscore(min_score=0.01)\ndef test_holds():\n    pass\n"
        "def test_crash():\n    os._exit(1)\n"
        "@pytest.mark.dscore(max_v_robust=0.001)\ndef test_fails():\n    pass\n"
    )
    result = project.run("-n", "2", subprocess=True)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    # Two gates, test_fails, and the crash.
    result.assert_outcomes(failed=4, passed=2)
    assert "crashed while running 'test_user.py::test_crash'" in output(result)
    table = "\n".join(section(result))
    for threshold in (
        ">= 0.990   FAIL",
        ">= 1.000   inconclusive",
        "<= 9.000   pass",
        "<= 0.001   FAIL",
        ">= 0.010   pass",
    ):
        assert threshold in table
    for name in ("dscore[tiny-min_score]", "dscore[tiny-min_accuracy]", "dscore[tiny-max_v_robust]", "test_fails"):
        assert "dscore.score" in properties(project.cases()[name])
    assert list(scratch.iterdir()) == []


def test_without_the_option_marked_tests_are_skipped(project: Project) -> None:
    project.test(
        "@pytest.mark.dscore(min_score=0.99)\ndef test_marked():\n    pass\ndef test_fixture(dscore):\n    pass"
    )
    project.run("-n", "2", subprocess=True, dscore=False).assert_outcomes(skipped=2)


def test_a_serial_run_leaves_no_temporary_files(project: Project, scratch: Path) -> None:
    project.run().assert_outcomes(passed=1)
    assert list(scratch.iterdir()) == []
