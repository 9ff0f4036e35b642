"""Hold-outs in a run of pytest: markers, declared gates, ledgers that cannot be used, reruns, workers, reports."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from pytest_dscore.holdout.ledger import Use
from tests.gates.holdout_project import (
    HEAD,
    MARK,
    NAME,
    HoldoutProject,
    N,
    admitted,
    identity,
    overfits,
    within_terminal,
)
from tests.gates.project import message, output, properties, refused, section

SEVEN = "use = holdout.evaluate(bench.model(7))\n"
GATE = f"dscore[{NAME}-budget]"
OTHER = '[tool.dscore.holdouts.second]\ndata = "bench:data"\nepsilon = 0.2\n'

# Markers


def marked(bench: HoldoutProject, code: str, *args: str, **kwargs: Any) -> tuple[pytest.RunResult, str]:
    """Run a user's module without the declared gates; the result and the message of ``test_candidate``."""
    bench.test(HEAD + code)
    result = bench.run("test_user.py", "-k", "test_", *args, **kwargs)
    found = bench.cases()["test_candidate"].result
    return result, str(found[0].message) if found else ""


BODY = "def test_candidate(holdout):\n    holdout.evaluate(bench.model(7))\n"
WRONGLY_MARKED = {
    "no fixture": (
        f"{MARK}def test_candidate():\n    Path('ran').touch()\n",
        "@pytest.mark.holdout is on a test without the holdout fixture, so nothing would be judged",
    ),
    "no evaluation": (
        f"{MARK}def test_candidate(holdout):\n    assert len(holdout.inputs) == 100\n",
        f"hold-out '{NAME}': the test passed without evaluating anything on it: call holdout.evaluate(model) or",
    ),
    "no marker": (BODY, 'the holdout fixture needs @pytest.mark.holdout("NAME") on the test'),
    "unknown": (
        f"@pytest.mark.holdout('digit-test')\n{BODY}",
        f"hold-out 'digit-test' does not exist; did you mean '{NAME}'? Valid: {NAME}",
    ),
    "not a name": (f"@pytest.mark.holdout(3)\n{BODY}", 'write @pytest.mark.holdout("NAME")'),
    "keyword": (f"@pytest.mark.holdout(name='{NAME}')\n{BODY}", 'write @pytest.mark.holdout("NAME")'),
    "two names": (f"@pytest.mark.holdout('{NAME}', 'second')\n{BODY}", 'write @pytest.mark.holdout("NAME")'),
    "twice": (f"{MARK}{MARK}{BODY}", "@pytest.mark.holdout stands more than once on this test"),
}


@pytest.mark.parametrize(("code", "part"), WRONGLY_MARKED.values(), ids=WRONGLY_MARKED)
def test_a_marker_that_judges_nothing(bench: HoldoutProject, code: str, part: str) -> None:
    result, text = marked(bench, code)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert part in text
    assert bench.uses() == ()
    assert not (bench.path / "ran").exists()


def test_where_no_holdout_is_declared(bench: HoldoutProject) -> None:
    bench.settings(own="min_accuracy = 0.5")
    _, text = marked(bench, f"{MARK}{BODY}")
    assert "no hold-out is declared in pyproject.toml: add a table [tool.dscore.holdouts.NAME]" in text


@pytest.mark.parametrize("marker", ["@pytest.mark.holdout\n", "@pytest.mark.holdout()\n"])
def test_the_only_holdout_needs_no_name(bench: HoldoutProject, marker: str) -> None:
    result, text = marked(bench, marker + BODY)
    assert not text
    assert properties(bench.cases()["test_candidate"])["dscore.holdout"] == NAME
    bench.declare(more=OTHER)
    result, text = marked(bench, marker + BODY)
    assert f"several hold-outs are declared ({NAME}, second): say which in the marker" in text
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_the_nearest_marker_counts(bench: HoldoutProject) -> None:
    bench.declare(more=OTHER)
    code = f"pytestmark = pytest.mark.holdout('second')\n{BODY}{MARK}{BODY.replace('candidate', 'other')}"
    result, _ = marked(bench, code)
    result.assert_outcomes(passed=2, deselected=2)
    found = {name: properties(case)["dscore.holdout"] for name, case in bench.cases().items()}
    assert found == {"test_candidate": "second", "test_other": NAME}


def test_a_fixture_of_the_user_may_evaluate(bench: HoldoutProject) -> None:
    code = (
        "@pytest.fixture\ndef accuracy(holdout):\n    return holdout.evaluate(bench.model(7)).accuracy\n"
        f"{MARK}def test_candidate(accuracy):\n    assert accuracy == 0.93\n"
    )
    result, _ = marked(bench, code)
    result.assert_outcomes(passed=1, deselected=1)
    assert any(re.match(rf"{NAME} +new +0\.930 ", line) for line in section(result))
    assert "dscore.holdout.accuracy" in properties(bench.cases()["test_candidate"])


def test_a_refusal_in_a_fixture_of_the_user_is_an_error_of_the_test(bench: HoldoutProject) -> None:
    bench.declare("max_uses = 1")
    bench.record(9)
    code = (
        "@pytest.fixture\ndef accuracy(holdout):\n    return holdout.evaluate(bench.model(7)).accuracy\n"
        f"{MARK}def test_candidate(accuracy):\n    pass\n"
    )
    result, text = marked(bench, code)
    result.assert_outcomes(errors=1, deselected=1)
    assert "refused, no score is shown" in text
    assert "0.93" not in bench.printed(result)


def test_without_the_option_marked_tests_are_skipped_and_nothing_is_recorded(bench: HoldoutProject) -> None:
    bench.test(f"{HEAD}{MARK}{BODY}{BODY.replace('candidate', 'unmarked')}")
    result = bench.run("-rs", dscore=False)
    result.assert_outcomes(skipped=2)
    assert "runs with pytest --dscore" in output(result)
    assert bench.uses() == ()


@pytest.mark.parametrize("number", [0, 1])
def test_a_parametrised_test_is_a_use_for_each_model(bench: HoldoutProject, number: int) -> None:
    bench.declare(f"max_uses = {2 + number}")
    code = (
        "@pytest.mark.parametrize('wrong', [7, 8, 9])\n"
        f"{MARK}def test_candidate(holdout, wrong):\n    holdout.evaluate(bench.model(wrong))\n"
    )
    bench.test(HEAD + code)
    bench.run("test_user.py", "-k", "test_").assert_outcomes(passed=2 + number, failed=1 - number, deselected=1)
    assert [use.wrong for use in bench.uses()] == [7, 8, 9][: 2 + number]


def test_a_test_that_fails_by_itself_is_recorded_all_the_same(bench: HoldoutProject) -> None:
    result, text = bench.candidate(f"{SEVEN}assert use.accuracy > 0.95")
    result.assert_outcomes(failed=1)
    assert text.startswith("assert 0.93 > 0.95")
    assert [use.wrong for use in bench.uses()] == [7]
    found = properties(bench.cases()["test_candidate"])
    assert (found["dscore.holdout.verdict.budget"], found["dscore.holdout.accuracy"]) == ("pass", "0.93")


def test_an_expected_failure_is_recorded_all_the_same(bench: HoldoutProject) -> None:
    code = f"@pytest.mark.xfail(strict=True)\n{MARK}def test_candidate(holdout):\n"
    bench.test(f"{HEAD}{code}    assert holdout.evaluate(bench.model(7)).accuracy > 0.95\n")
    bench.run("test_user.py", "-k", "test_").assert_outcomes(xfailed=1, deselected=1)
    assert [use.wrong for use in bench.uses()] == [7]


def test_an_expected_failure_shows_no_score_of_a_refused_use(bench: HoldoutProject) -> None:
    bench.declare("max_uses = 1")
    bench.record(9)
    code = f"@pytest.mark.xfail(strict=True)\n{MARK}def test_candidate(holdout):\n"
    bench.test(f"{HEAD}{code}    assert holdout.evaluate(bench.model(7)).accuracy > 0.95\n")
    result = bench.run("test_user.py", "-rx", "-k", "test_")
    result.assert_outcomes(xfailed=1, deselected=1)
    assert "0.93" not in bench.printed(result)
    assert [use.wrong for use in bench.uses()] == [9]


# Running again


def test_a_second_run_is_no_new_use(bench: HoldoutProject) -> None:
    bench.user(SEVEN)
    for again in (False, True):
        result = bench.run()
        result.assert_outcomes(passed=2)
        found = properties(bench.cases()["test_candidate"])
        assert found["dscore.holdout.new"] == str(not again).lower()
        assert found["dscore.holdout.models_used"] == "1"
        assert any("on record" in line for line in section(result)) is again
    assert len(bench.uses()) == 1


def test_the_same_model_in_several_tests_is_one_use(bench: HoldoutProject) -> None:
    bench.test(f"{HEAD}{MARK}{BODY}{MARK}{BODY.replace('candidate', 'again')}")
    bench.run().assert_outcomes(passed=3)
    assert len(bench.uses()) == 1


def test_last_failed_runs_the_failed_test_as_no_new_use(bench: HoldoutProject) -> None:
    bench.test(f"{HEAD}{MARK}{BODY}{MARK}{BODY.replace('candidate', 'low').replace('7', '9')}    assert False\n")
    bench.run().assert_outcomes(passed=2, failed=1)
    bench.run("--lf").assert_outcomes(failed=1, deselected=0)
    assert [use.wrong for use in bench.uses()] == [7, 9]


def test_without_pytests_cache(bench: HoldoutProject) -> None:
    bench.user(SEVEN)
    for _ in range(2):
        bench.run("-p", "no:cacheprovider").assert_outcomes(passed=2)
    assert len(bench.uses()) == 1


def test_an_item_that_is_run_again_must_evaluate_again(bench: HoldoutProject) -> None:
    bench.write(
        "conftest.py",
        "from _pytest.runner import runtestprotocol\n\ndef pytest_runtest_protocol(item, nextitem):\n"
        "    for _ in range(2):\n"
        "        item._initrequest() if hasattr(item, '_initrequest') else None\n"
        "        for report in runtestprotocol(item, nextitem=nextitem, log=False):\n"
        "            item.ihook.pytest_runtest_logreport(report=report)\n    return True\n",
    )
    bench.user(
        "if not Path('first').exists():\n    Path('first').touch()\n"
        "    holdout.evaluate(bench.model(7))\n    assert False"
    )
    result = bench.run("test_user.py::test_candidate", junit=False)
    assert result.parseoutcomes()["failed"] == 2
    assert "passed without evaluating anything" in output(result)


def test_two_workers_record_what_one_process_records(bench: HoldoutProject) -> None:
    code = (
        "@pytest.mark.parametrize('wrong', [7, 8, 9, 7, 8, 9])\n"
        f"{MARK}def test_candidate(holdout, wrong):\n    assert holdout.evaluate(bench.model(wrong)).accuracy > 0.915\n"
    )
    bench.test(HEAD + code)
    result = bench.run("-n", "2", subprocess=True)
    result.assert_outcomes(passed=5, failed=2)
    assert sorted(use.wrong for use in bench.uses()) == [7, 8, 9]
    assert any(line.startswith(f"{NAME}  new        0.930") for line in section(result))
    assert bench.ledger().verify().ok
    for name, case in bench.cases().items():
        assert ("dscore.holdout.accuracy" in properties(case)) is name.startswith("test_candidate")
    bench.run().assert_outcomes(passed=5, failed=2)
    assert len(bench.uses()) == 3


def test_two_jobs_at_once_overspend_nothing(bench: HoldoutProject, capsys: pytest.CaptureFixture[str]) -> None:
    bench.declare("max_uses = 3")
    tests = (
        "@pytest.mark.parametrize('number', range(3))\n"
        f"{MARK}def test_candidate(holdout, number):\n"
        "    holdout.evaluate(bench.model(7, 30 * int(os.environ['JOB']) + number))\n"
    )
    bench.test(HEAD + tests)
    command = [sys.executable, "-m", "pytest", "-q", "--dscore", "-p", "no:hypothesispytest", "-p", "no:cacheprovider"]
    jobs = [
        subprocess.Popen(
            [*command, f"--junitxml=job{job}.xml"],
            cwd=bench.path,
            env={**os.environ, "JOB": str(job)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for job in range(2)
    ]
    printed = [job.communicate(timeout=120)[0] for job in jobs]
    uses = bench.uses()
    assert len(uses) == 3
    assert sum(text.count("max_uses = 3, 3 are used, and this model would exceed it") > 0 for text in printed) >= 1
    passed = [int(found[1]) if (found := re.search(r"(\d+) passed", text)) else 0 for text in printed]
    assert sum(passed) == 3 + 2, "three models and two declared gates"
    code, state = bench.status(capsys)
    assert (code, state["models_used"], state["spent"]) == (1, 3, True)
    assert bench.ledger().verify().ok


# The budget


def test_gate_and_status_refuse_the_same_model(bench: HoldoutProject, capsys: pytest.CaptureFixture[str]) -> None:
    delta, epsilon = 0.2, 0.1
    allowed = int(delta / overfits(20, epsilon))
    assert allowed == admitted([20] * 50, epsilon, delta) == 11
    bench.declare('bound = "union"', f"delta = {delta}", epsilon=epsilon)
    bench.record(*[20] * (allowed - 2))
    bench.test(
        f"{HEAD}@pytest.mark.parametrize('number', range(4))\n{MARK}def test_candidate(holdout, number):\n"
        "    holdout.evaluate(bench.model(20, 90 + number))\n"
    )
    for number in range(4):
        code, found = bench.status(capsys)
        used = min(allowed, allowed - 2 + number)
        assert (found["models_used"], found["models_remaining"]) == (used, allowed - used)
        assert found["failure_probability"] == pytest.approx(used * overfits(20, epsilon))
        assert found["union_bound_ends_at"] == allowed
        admits = not found["spent"]
        assert code == (0 if admits else 1)
        result = bench.run(f"test_user.py::test_candidate[{number}]")
        result.assert_outcomes(**{"passed" if admits else "failed": 1})
        assert len(bench.uses()) == min(allowed, used + 1)
    assert (f"There is no room for this model; hold-out '{NAME}': {allowed} models used") in message(
        bench.cases()["test_candidate[3]"]
    )


def test_a_budget_that_ends_in_the_middle_of_a_run(bench: HoldoutProject) -> None:
    bench.declare('bound = "union"', "delta = 0.05", epsilon=0.1)
    assert admitted([20] * 9, 0.1, 0.05) == 2
    bench.test(
        f"{HEAD}@pytest.mark.parametrize('start', [0, 10, 20, 10, 30])\n{MARK}def test_candidate(holdout, start):\n"
        "    use = holdout.evaluate(bench.model(20, start))\n    assert use.accuracy == 0.8\n"
    )
    result = bench.run("-p", "no:randomly")
    # The gate, the first two models, and the second once more.
    result.assert_outcomes(passed=4, failed=2)
    assert [use.wrong for use in bench.uses()] == [20, 20]
    table = [" ".join(line.split()[1:]) for line in section(result) if line.startswith(f"{NAME} ")]
    model = "model.<locals>.<lamb"
    assert table == [
        f"new 0.800 [0.700, 0.900] pass {model}",
        f"new 0.800 [0.700, 0.900] pass {model}",
        "- - - ERROR test_candidate[20]",
        f"on record 0.800 [0.700, 0.900] pass {model}",
        "- - - ERROR test_candidate[30]",
        "- - - pass the budget",
    ]


def test_a_declared_budget_is_a_test_of_its_own(bench: HoldoutProject) -> None:
    result = bench.run("-v")
    result.assert_outcomes(passed=1)
    assert "dscore: gating hold-out digits-test" in output(result)
    assert f"pyproject.toml::{GATE} PASSED" in output(result)
    text = " ".join(" ".join(section(result)).split())
    assert f"hold-out '{NAME}': begun in .dscore/ledger, no model is on record yet" in text


def test_an_overspent_budget_fails_its_gate(bench: HoldoutProject, capsys: pytest.CaptureFixture[str]) -> None:
    bench.record(20, 20, 20)
    bench.run().assert_outcomes(passed=1)
    bench.declare('bound = "union"', "delta = 0.05", epsilon=0.1)
    result = bench.run()
    result.assert_outcomes(failed=1)
    text = message(bench.cases()[GATE])
    assert text.startswith(f"hold-out '{NAME}': 3 models used (")
    assert "+-10 % no longer holds, only +-" in text
    assert "the plain union bound would have ended at 2: the settings are stricter than when" in text
    assert re.fullmatch(r"pyproject\.toml:\d+", text.splitlines()[-1])
    assert bench.status(capsys)[0] == 1
    # A model that is on record shows its score no longer as holding.
    bench.user("use = holdout.record(outcomes=bench.outcomes(20))")
    bench.run("test_user.py::test_candidate").assert_outcomes(failed=1)


def test_more_uses_than_max_uses_fail_the_gate(bench: HoldoutProject) -> None:
    bench.record(7, 8)
    bench.declare("max_uses = 1")
    bench.run().assert_outcomes(failed=1)
    assert "2 models used (2 effective), no more: max_uses = 1 is exceeded; the plain" in message(bench.cases()[GATE])


@pytest.mark.parametrize(("used", "warned"), [(3, False), (4, True), (5, True)])
def test_warn_at_is_a_share_of_the_budget(bench: HoldoutProject, used: int, warned: bool) -> None:
    bench.declare("max_uses = 5", "warn_at = 0.8")
    bench.record(*range(5, 5 + used))
    result = bench.run()
    result.assert_outcomes(passed=1)
    line = f"WARNING: {20 * used} % of the budget is used (warn_at = 80 %)"
    assert (line in " ".join(section(result))) is warned
    assert json.loads(properties(bench.cases()[GATE])["dscore.holdout.remarks"]) == ([line] if warned else [])


def test_retired_and_changed_data_fail_the_declared_gate(bench: HoldoutProject) -> None:
    bench.ledger().retire(identity(), "overused")
    bench.run().assert_outcomes(failed=1)
    assert "which was retired on" in message(bench.cases()[GATE])


# The ledger


def test_a_missing_ledger_is_an_error(bench: HoldoutProject, capsys: pytest.CaptureFixture[str]) -> None:
    bench.declare('ledger = "elsewhere"')
    bench.user(SEVEN)
    result = bench.run()
    result.assert_outcomes(failed=2)
    for name in (GATE, "test_candidate"):
        text = message(bench.cases()[name])
        assert text.startswith(f"hold-out '{NAME}': ")
        assert f"begin it with `dscore holdout begin {NAME}`" in text
    assert "0.93" not in bench.printed(result)
    assert not (bench.path / "elsewhere").exists()
    code, out, _ = bench.command(capsys, "begin")
    assert (code, f"hold-out '{NAME}' (100 examples, " in out, "begins in" in out) == (0, True, True)
    bench.run().assert_outcomes(passed=2)
    code, out, _ = bench.command(capsys, "begin", NAME)
    assert (code, "is on record in" in out) == (0, True)
    assert len(bench.ledger("elsewhere").uses()) == 1


def test_a_ledger_that_was_emptied_is_an_error(bench: HoldoutProject) -> None:
    bench.record(7)
    for file in (bench.path / ".dscore" / "ledger").rglob("*"):
        if file.is_file():
            file.unlink()
    result, text = bench.candidate(SEVEN)
    assert "holds no record. Where it was begun before, restore it" in text
    assert "0.93" not in bench.printed(result)


def damage(bench: HoldoutProject, how: str) -> None:
    """Cut short, edit or take away the record of the first use."""
    files = [file for file in (bench.path / ".dscore" / "ledger").rglob("*") if file.is_file()]
    [victim] = [file for file in files if '"earlier-0"' in file.read_text()]
    text = victim.read_text()
    victim.chmod(0o644)
    if how == "taken away":
        victim.unlink()
    else:
        victim.write_text(text[: len(text) // 2] if how == "cut short" else text.replace("earlier-0", "earlier-9"))


@pytest.mark.parametrize("how", ["cut short", "edited", "taken away"])
def test_a_damaged_ledger_admits_nothing(bench: HoldoutProject, how: str) -> None:
    bench.record(7, 8)
    damage(bench, how)
    bench.user("holdout.evaluate(bench.model(27))")
    result = bench.run()
    result.assert_outcomes(failed=2)
    for name in (GATE, "test_candidate"):
        assert message(bench.cases()[name]).startswith(f"hold-out '{NAME}': ")
    assert not re.search(r"0\.73|0\.27", bench.printed(result))


def test_a_password_is_never_printed(bench: HoldoutProject) -> None:
    pytest.importorskip("psycopg")
    bench.declare('ledger = "postgresql+psycopg://me:hunter2@127.0.0.1:9/db"')
    bench.user("holdout.evaluate(bench.model(27))")
    result = bench.run("-l", "--tb=long", "-rA")
    result.assert_outcomes(failed=2)
    printed = bench.printed(result)
    assert "hunter2" not in printed
    assert "me:***@127.0.0.1:9" in printed
    assert not re.search(r"0\.73|0\.27", printed)


@pytest.mark.parametrize("line", ["epsilon = 2", "epsilonn = 0.1", 'bound = "unoin"', 'feedback = "ladder"'])
def test_a_password_is_not_in_a_message_on_settings(bench: HoldoutProject, line: str) -> None:
    url = 'ledger = "postgresql+psycopg://me:hunter2@127.0.0.1:9/db"'
    text = f'[tool.dscore.holdouts.{NAME}]\ndata = "bench:data"\n{url}\n{line}\n'
    bench.write("pyproject.toml", text if line.startswith("epsilon =") else f"{text}epsilon = 0.1\n")
    result = bench.run(junit=False)
    refused(result, f"[tool.dscore.holdouts.{NAME}]")
    assert "hunter2" not in output(result)


def test_a_sqlite_ledger(bench: HoldoutProject) -> None:
    url = "sqlite:///kept.db"
    bench.declare(f'ledger = "{url}"')
    bench.begin(url)
    bench.user(SEVEN)
    for _ in range(2):
        bench.run().assert_outcomes(passed=2)
    assert [use.wrong for use in bench.ledger(url).uses()] == [7]
    assert bench.uses() == ()


def test_a_git_ledger(bench: HoldoutProject) -> None:
    url = "git:refs/dscore/ledger?remote=none"
    bench.pytester.run("git", "init", "-q", "-b", "main")
    bench.declare(f'ledger = "{url}"')
    bench.begin(url)
    bench.user(SEVEN)
    for _ in range(2):
        bench.run().assert_outcomes(passed=2)
    assert [use.wrong for use in bench.ledger(url).uses()] == [7]


CI = {
    "directory": ("", {"CI": "true"}, True),
    "run id": ("", {"GITHUB_RUN_ID": "1"}, True),
    "false": ("", {"CI": "false"}, False),
    "none": ("", {}, False),
    "git": ('ledger = "git:refs/dscore/ledger?remote=none"', {"CI": "true"}, False),
}


@pytest.mark.parametrize(("ledger", "variables", "warned"), CI.values(), ids=CI)
def test_a_directory_on_a_ci_machine_is_lost_with_it(
    bench: HoldoutProject, monkeypatch: pytest.MonkeyPatch, ledger: str, variables: dict[str, str], warned: bool
) -> None:
    if ledger:
        bench.pytester.run("git", "init", "-q", "-b", "main")
        bench.begin("git:refs/dscore/ledger?remote=none")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    bench.declare(ledger)
    bench.user(SEVEN)
    for new in (True, False):
        result = bench.run()
        result.assert_outcomes(passed=2)
        text = " ".join(" ".join(section(result)).split())
        assert ("WARNING: this use was recorded in .dscore/ledger on a CI machine" in text) is (warned and new)


# Reports

FACTS = {
    "dscore.holdout": NAME,
    "dscore.holdout.accuracy": "0.93",
    "dscore.holdout.accuracy.upper": "1.0",
    "dscore.holdout.threshold.budget": "0.2",
    "dscore.holdout.threshold.min_accuracy": "0.9",
    "dscore.holdout.verdict.budget": "pass",
    "dscore.holdout.verdict.min_accuracy": "pass",
    "dscore.holdout.examples": str(N),
    "dscore.holdout.models_used": "3",
    "dscore.holdout.models_of_related_holdouts": "0",
    "dscore.holdout.epsilon": "0.2",
    "dscore.holdout.delta": "0.05",
    "dscore.holdout.bound": "union",
    "dscore.holdout.mode": "non-adaptive",
    "dscore.holdout.feedback": "exact",
    "dscore.holdout.max_uses": "9",
    "dscore.holdout.models_remaining": "6",
    "dscore.holdout.new": "true",
    "dscore.holdout.ledger": ".dscore/ledger",
}


def test_junit_has_all_of_it(bench: HoldoutProject) -> None:
    bench.declare("min_accuracy = 0.9", "max_uses = 9", 'bound = "union"')
    bench.record(20, 30)
    bench.candidate(SEVEN)[0].assert_outcomes(passed=1)
    found = properties(bench.cases()["test_candidate"])
    assert {name: found.get(name) for name in FACTS} == FACTS
    assert float(found["dscore.holdout.accuracy.lower"]) == pytest.approx(0.73)
    assert float(found["dscore.holdout.failure_probability"]) == pytest.approx(
        overfits(7, 0.2) + overfits(20, 0.2) + overfits(30, 0.2), rel=1e-9
    )
    assert float(found["dscore.holdout.share_used"]) == pytest.approx(3 / 9)
    assert 1 <= float(found["dscore.holdout.effective_models"]) <= 3
    assert found["dscore.holdout.sentence"].startswith(f"hold-out '{NAME}': 3 models used (")
    assert found["dscore.holdout.assumption"].startswith("Non-adaptive: ")
    assert found["dscore.holdout.model_fingerprint"] == bench.uses()[-1].model
    assert json.loads(found["dscore.holdout.remarks"]) == []


def test_junit_can_stay_without_properties(bench: HoldoutProject) -> None:
    bench.declare(common="junit_properties = false")
    bench.user(SEVEN)
    bench.run().assert_outcomes(passed=2)
    assert not any(properties(case) for case in bench.cases().values())


def test_two_models_of_one_test_are_both_in_the_terminal(bench: HoldoutProject) -> None:
    result, _ = bench.candidate("for wrong in (7, 12):\n    holdout.evaluate(bench.model(wrong))")
    text = "\n".join(section(result))
    assert re.search(r"digits-test +new +0\.930 +\[0\.730, 1\.000\] +pass", text)
    assert re.search(r"digits-test +new +0\.880 +\[0\.680, 1\.000\] +pass", text)
    assert "2 models used" in text


LINES = {
    "plain": (),
    "everything": ("min_accuracy = 0.95", "max_uses = 3", "warn_at = 0.01", 'bound = "naive-bayes"'),
    "adaptive": ('mode = "adaptive"', 'feedback = "pass-fail"', "min_accuracy = 0.95"),
    "ladder": ('mode = "adaptive"', 'feedback = "ladder"'),
    "bootstrap": ('bound = "bootstrap"',),
    "theorem-2": ('bound = "theorem-2"',),
}


@pytest.mark.parametrize("lines", LINES.values(), ids=LINES)
def test_the_section_fits_a_terminal(
    bench: HoldoutProject, monkeypatch: pytest.MonkeyPatch, lines: tuple[str, ...]
) -> None:
    monkeypatch.setenv("CI", "1")
    bench.declare(*lines, epsilon=0.4)
    bench.user("for wrong in (7, 12, 17, 22):\n    holdout.evaluate(bench.model(wrong, 5 * wrong))")
    assert within_terminal(bench.run())


def test_the_assumptions_are_said(bench: HoldoutProject) -> None:
    bench.declare('bound = "union"')
    result, _ = bench.candidate(SEVEN)
    text = " ".join(" ".join(section(result)).split())
    assert "all within +-20 % with probability 95 %, by bound union; error rates and similarities are taken" in text
    assert "Non-adaptive: this holds if all the models were fixed before anyone saw a result" in text


def test_the_sentence_has_the_words_of_the_issue(bench: HoldoutProject) -> None:
    bench.declare('bound = "similarity"', "delta = 0.3", epsilon=0.1)
    rng = np.random.default_rng(0)
    hard = rng.permutation(N)[:20]
    rows = []
    for number in range(6):
        row = np.zeros(N, dtype=bool)
        row[hard] = True
        row[hard[number]] = False
        rows.append(Use.of(identity(), row, model=str(number)))
    bench.ledger().record_all(rows, identity(), lambda existing, new: "exact; accuracy shown")
    result = bench.run()
    text = " ".join(" ".join(section(result)).split())
    assert re.search(
        rf"hold-out '{NAME}': 6 models used \(\d effective\), [\d,]+ more at this similarity before \+-10 % no longer "
        r"holds; the plain union bound would (have ended|end) at [\d,]+",
        text,
    )


def test_several_holdouts_are_gated_in_the_order_of_the_settings(bench: HoldoutProject) -> None:
    bench.declare(more=OTHER)
    bench.record(7)
    result = bench.run("-v")
    result.assert_outcomes(passed=2)
    assert f"gating hold-outs {NAME}, second" in output(result)
    # Both are the same examples: the budget is one.
    used = {name: properties(case)["dscore.holdout.models_used"] for name, case in bench.cases().items()}
    assert used == {GATE: "1", "dscore[second-budget]": "1"}


def test_collecting_alone_charges_and_says_nothing(bench: HoldoutProject) -> None:
    bench.user(SEVEN)
    result = bench.run("--collect-only", "-q")
    assert "D-Score" not in output(result)
    assert bench.uses() == ()
