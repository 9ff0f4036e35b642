"""Marked tests and fixtures: errors judged, leaks that fail, and nothing that passes without a judgement."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from junitparser import JUnitXml

from pytest_dscore.protocol import nested_cv
from tests.gates.project import Project, load_module, message, output, properties, section
from tests.gates.protocol_project import MARKED, declare


@pytest.fixture
def empty(project: Project) -> Project:
    """No declared gate."""
    declare(project)
    return project


def flat(lines: list[str]) -> str:
    """Lines as one."""
    return " ".join(" ".join(lines).split())


def test_every_figure_is_in_junit(empty: Project) -> None:
    empty.test(MARKED)
    result = empty.run()
    result.assert_outcomes(passed=1)
    found = properties(empty.cases()["test_error"])
    module = load_module(empty.path / "exp.py")
    X, y = module.data()
    direct = nested_cv(module.build(), module.GRID, X, y, outer=3, inner=2, repeats=2)
    assert found["dscore.protocol"] == "test_error"
    assert found["dscore.protocol.verdict.max_error"] == "pass"
    assert float(found["dscore.protocol.threshold.max_error"]) == 0.5
    figures = {"error": direct.error} | {f"error_{name}": direct.intervals[name] for name in ("naive", "corrected")}
    for name, figure in figures.items():
        for part, value in (("", figure.value), (".lower", figure.lower), (".upper", figure.upper)):
            assert float(found[f"dscore.protocol.{name}{part}"]) == value
    assert "dscore.protocol.error_nested" not in found
    assert json.loads(found["dscore.protocol.fold_errors"]) == direct.fold_errors.tolist()
    assert json.loads(found["dscore.protocol.selected"]) == list(direct.selected)
    [instability] = json.loads(found["dscore.protocol.instability"])
    assert instability["name"] == "kneighborsclassifier__n_neighbors"
    assert sum(count for _, count in instability["counts"]) == 6
    assert instability["agreement"] == direct.stability[0].agreement
    assert "Nadeau and Bengio" in found["dscore.protocol.interval_assumes"]
    words = json.loads(found["dscore.protocol.intervals"])
    assert set(words) == {"naive", "corrected"}
    assert "as if they were independent" in words["naive"]
    settings = ("interval", "scoring", "repeats", "seed", "outer_folds")
    assert [found[f"dscore.protocol.{key}"] for key in settings] == ["corrected", "accuracy", "2", "0", "6"]


def test_the_interval_of_bates_where_it_is_asked_for(empty: Project) -> None:
    empty.test(MARKED.replace("repeats=2", "interval='nested', nested_repeats=1").replace("== 6", "== 3"))
    empty.run().assert_outcomes(passed=1)
    found = properties(empty.cases()["test_error"])
    assert found["dscore.protocol.error_nested.upper"] == found["dscore.protocol.error.upper"]
    assert "Bates" in json.loads(found["dscore.protocol.intervals"])["nested"]
    assert "Bates" in found["dscore.protocol.interval_assumes"]


def test_too_large_an_error_fails_with_all_in_the_first_line(empty: Project) -> None:
    empty.test(MARKED.replace("max_error=0.5", "max_error=0.001"))
    result = empty.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    text = message(empty.cases()["test_error"])
    first, *rest = text.splitlines()
    assert first.startswith("protocol 'test_error': error 0.")
    assert first.endswith("] exceeds max_error = 0.001")
    assert any(line.startswith("errors of the outer folds: 0.") for line in rest)
    assert any(line.startswith("kneighborsclassifier__n_neighbors: ") for line in rest)
    assert rest[-1] == "test_user.py:6"
    assert properties(empty.cases()["test_error"])["dscore.protocol.verdict.max_error"] == "fail"


def test_the_whole_interval_is_judged(empty: Project) -> None:
    module = load_module_of(empty)
    X, y = module.data()
    error = nested_cv(module.build(), module.GRID, X, y, outer=3, inner=2, repeats=2).error
    for limit, verdict in (
        (error.upper, "pass"),
        (math.nextafter(error.upper, 0), "inconclusive"),
        (error.lower, "inconclusive"),
        (math.nextafter(error.lower, 0), "fail"),
    ):
        if limit < 0:
            continue
        empty.test(MARKED.replace("max_error=0.5", f"max_error={limit!r}"))
        empty.run()
        [case] = empty.cases().values()
        assert properties(case)["dscore.protocol.verdict.max_error"] == verdict


@pytest.mark.parametrize(("keyword", "passes"), [("", False), (", inconclusive='pass'", True)])
def test_what_cannot_be_decided_fails_unless_told_otherwise(empty: Project, keyword: str, passes: bool) -> None:
    module = load_module_of(empty)
    X, y = module.data()
    error = nested_cv(module.build(), module.GRID, X, y, outer=3, inner=2, repeats=2).error
    empty.test(MARKED.replace("max_error=0.5", f"max_error={(error.value + error.upper) / 2!r}{keyword}"))
    result = empty.run()
    result.assert_outcomes(passed=passes, failed=not passes)
    assert any("inconclusive (<= " in line for line in section(result))


def load_module_of(project: Project) -> Any:
    """The user's module."""
    return load_module(project.path / "exp.py")


def test_without_a_threshold_it_only_reports(empty: Project) -> None:
    bare = "from exp import *\ndef test_bare(nested_cv):\n    nested_cv(build(), GRID, *data(), outer=3)\n"
    empty.test(MARKED.replace("max_error=0.5, ", "") + bare)
    result = empty.run()
    result.assert_outcomes(passed=2)
    assert sum(line.rstrip().endswith("  -") for line in section(result)) == 2
    assert not any(name.startswith("dscore.protocol.verdict") for name in properties(empty.cases()["test_error"]))


def test_the_call_replaces_the_mark_s_keywords_and_a_name_is_reported(empty: Project) -> None:
    empty.test(
        MARKED.replace("repeats=2", "repeats=2, name='pipeline'")
        .replace("*data())", "*data(), outer=4, repeats=1)")
        .replace("== 6", "== 4")
    )
    result = empty.run()
    result.assert_outcomes(passed=1)
    assert properties(empty.cases()["test_error"])["dscore.protocol"] == "pipeline"
    assert any(line.startswith("pipeline  error ") for line in section(result))


def test_splitters_scorers_and_groups(empty: Project) -> None:
    empty.test(
        "from exp import *\n"
        "@pytest.mark.nested_cv(max_error=0.6, outer=GroupKFold(3), inner=GroupKFold(2), scoring='roc_auc')\n"
        "def test_error(nested_cv):\n"
        "    X, y, groups = grouped()\n"
        "    nested_cv(build(), GRID, X, y, groups=groups)\n"
    )
    empty.run().assert_outcomes(passed=1)
    assert properties(empty.cases()["test_error"])["dscore.protocol.scoring"] == "roc_auc"


def test_the_terminal_says_what_won_and_what_it_rests_on(empty: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    empty.test(
        "from exp import *\n"
        "@pytest.mark.nested_cv(max_error=0.99, outer=5, inner=2)\n"
        "def test_noise(nested_cv):\n"
        "    nested_cv(build(), {'kneighborsclassifier__n_neighbors': [1, 2, 3, 5, 8]}, *noise())\n"
        "def test_clean(leak_probe):\n"
        "    leak_probe(clean, *data(), 4)\n"
    )
    result = empty.run()
    result.assert_outcomes(passed=2)
    lines = section(result)
    assert max(map(len, lines)) <= 80
    assert all(line.isascii() for line in lines)
    text = flat(lines)
    assert "kneighborsclassifier__n_neighbors: " in text
    assert " of 5 folds, " in text
    assert ": the folds disagree, over a factor of " in text
    assert "Cawley and Talbot 2010" in text
    assert "95 % interval of the error (corrected): Nadeau and Bengio" in text
    assert "A threshold is judged by the whole interval" in text
    assert "no leak found (10 runs of the protocol)" in text
    assert "The probe runs the protocol on changed test rows" in text
    assert "poisoned" not in text


def test_folds_that_agree(empty: Project) -> None:
    empty.test(MARKED.replace("GRID", "{'kneighborsclassifier__n_neighbors': [3]}"))
    text = flat(section(empty.run()))
    assert "kneighborsclassifier__n_neighbors: 3 in all 6 folds" in text
    assert "disagree" not in text


def test_one_fold_has_no_interval(empty: Project) -> None:
    empty.test(
        "from exp import *\n@pytest.mark.nested_cv(max_error=0.9, outer=[(range(40), range(40, 60))])\n"
        "def test_one(nested_cv):\n    nested_cv(build(), None, *data())\n"
    )
    result = empty.run()
    result.assert_outcomes(failed=1)
    assert "nan" not in " ".join(section(result))
    assert "one fold has no spread, so there is no interval to hold against max_error = 0.9" in message(
        empty.cases()["test_one"]
    )


PROBES = {
    "clean": ("clean, *data(), 4", ""),
    "an estimator": ("build(), *data(), 4", ""),
    "a search object": ("search(), *data(), 4", ""),
    "scaler": ("leaky, *data(), 4", "preprocessing leak in split 0"),
    "selection": ("chosen_on_all, *noise(), 4", "leak in split 0"),
    "overlap": ("clean, *data(), [(np.arange(40), np.arange(35, 60))]", "overlap leak in split 0"),
    "groups": ("clean, *data(), SPLITTER, groups=np.arange(60) // 3", "groups leak in split 0"),
    "time": ("clean, *data(), 4, time=np.arange(60)", "time leak in split 0"),
}


@pytest.mark.parametrize(("arguments", "part"), PROBES.values(), ids=PROBES)
def test_a_leak_fails_and_what_is_clean_passes(empty: Project, arguments: str, part: str) -> None:
    empty.test(
        "from exp import *\n"
        f"def test_probe(leak_probe):\n    found = leak_probe({arguments})\n    assert found.passed and found.runs\n"
    )
    result = empty.run()
    found = properties(empty.cases()["test_probe"])
    assert int(found["dscore.protocol.runs"]) >= 6
    if not part:
        result.assert_outcomes(passed=1)
        assert found["dscore.protocol.verdict.leaks"] == "pass"
        assert json.loads(found["dscore.protocol.leaks"]) == []
        return
    result.assert_outcomes(failed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    first, second, *_ = message(empty.cases()["test_probe"]).splitlines()
    assert first.startswith("protocol 'test_probe' leaks: ")
    assert part in first
    assert second.startswith("Fix: ")
    assert " runs of the protocol" in first
    assert "flatter" in first
    assert found["dscore.protocol.verdict.leaks"] == "fail"
    assert json.loads(found["dscore.protocol.leaks"])[0]["fix"]


def test_how_much_a_leak_flatters_is_a_figure(empty: Project) -> None:
    empty.test("from exp import *\ndef test_probe(leak_probe):\n    leak_probe(chosen_on_all, *noise(), 4)\n")
    empty.run().assert_outcomes(failed=1)
    found = properties(empty.cases()["test_probe"])
    assert float(found["dscore.protocol.flattery"]) > 5
    assert "flatters the error by" in message(empty.cases()["test_probe"])


@pytest.mark.parametrize("protocol", ["unseeded", "Restless()"])
def test_what_cannot_be_told_never_passes(empty: Project, protocol: str) -> None:
    empty.test(f"from exp import *\ndef test_probe(leak_probe):\n    leak_probe({protocol}, *data(), 4)\n")
    result = empty.run()
    result.assert_outcomes(failed=1)
    text = message(empty.cases()["test_probe"])
    assert text.startswith("protocol 'test_probe': cannot tell whether it leaks: the protocol disagrees with itself")
    assert "fix the seed" in text
    assert properties(empty.cases()["test_probe"])["dscore.protocol.verdict.leaks"] == "error"


DATA = {
    "clean": ("X[:40], X[40:]", ""),
    "copies": ("X[:40], X[38:]", "duplicates leak in the data: 2 of 22 test rows are exact copies"),
    "near copies": ("X[:40], X[38:] + 1e-9", "near copies of training rows"),
    "groups": ("X[:40], X[40:], groups=(np.arange(40), np.arange(39, 59))", "groups leak in the data"),
    "time": ("X[:40], X[40:], time=(np.arange(40) + 5, np.arange(40, 60))", "time leak in the data"),
    "lengths": ("X[:40], X[40:], groups=(np.arange(3), np.arange(20))", "cannot be judged: groups has 3 + 20 entries"),
}


@pytest.mark.parametrize(("arguments", "part"), DATA.values(), ids=DATA)
def test_data_alone(empty: Project, arguments: str, part: str) -> None:
    empty.test(f"from exp import *\ndef test_data(leak_probe):\n    X, y = data()\n    leak_probe.data({arguments})\n")
    result = empty.run()
    result.assert_outcomes(**{"failed" if part else "passed": 1})
    if part:
        assert part in message(empty.cases()["test_data"])


def test_several_leaks_are_all_named(empty: Project) -> None:
    both = "X[:40], X[38:], groups=(np.arange(40), np.arange(38, 60))"
    empty.test(f"from exp import *\ndef test_data(leak_probe):\n    X, y = data()\n    leak_probe.data({both})\n")
    result = empty.run()
    result.assert_outcomes(failed=1)
    text = message(empty.cases()["test_data"])
    assert "(1 more below)" in text.splitlines()[0]
    assert text.splitlines()[1].startswith("Fix: drop the copies")
    assert "also: groups leak in the data" in output(result)
    assert "also: groups leak" in flat(section(result))


NOTHING = {
    "mark without the fixture": ("@pytest.mark.nested_cv(max_error=0.5)\ndef test_it():\n    pass", "without the nest"),
    "mark, never called": (
        "@pytest.mark.nested_cv(max_error=0.5)\ndef test_it(nested_cv):\n    pass",
        "passed without calling nested_cv, so nothing was judged: call nested_cv(estimator, param_grid, X, y)",
    ),
    "no mark, never called": ("def test_it(nested_cv):\n    pass", "passed without calling nested_cv"),
    "probe, never called": ("def test_it(leak_probe):\n    pass", "call leak_probe(protocol, X, y, splits) or"),
    "through another fixture": (
        "@pytest.fixture\ndef probe(leak_probe):\n    return leak_probe\ndef test_it(probe):\n    pass",
        "passed without calling leak_probe",
    ),
    "one of two": (
        "from exp import *\ndef test_it(leak_probe, nested_cv):\n    nested_cv(build(), None, *data(), outer=3)",
        "passed without calling leak_probe",
    ),
}


@pytest.mark.parametrize(("text", "part"), NOTHING.values(), ids=NOTHING)
def test_a_test_that_judges_nothing_fails(empty: Project, text: str, part: str) -> None:
    empty.test(text + "\n")
    result = empty.run()
    result.assert_outcomes(failed=1)
    assert part in message(empty.cases()["test_it"])


def test_a_failing_body_keeps_its_own_message(empty: Project) -> None:
    empty.test("def test_it(leak_probe):\n    assert 1 == 2\n")
    empty.run().assert_outcomes(failed=1)
    assert "assert 1 == 2" in message(empty.cases()["test_it"])


def test_a_fixture_of_the_project_s_own_is_left_alone(empty: Project) -> None:
    empty.test(
        "@pytest.fixture\ndef leak_probe():\n    return 3\ndef test_it(leak_probe):\n    assert leak_probe == 3\n"
    )
    empty.test(MARKED, "test_gate.py")
    empty.run().assert_outcomes(passed=2)
    empty.run("test_user.py", dscore=False).assert_outcomes(passed=1)


def test_without_the_option_gates_are_skipped_before_their_set_up(empty: Project) -> None:
    empty.test(
        "@pytest.fixture\ndef dear():\n    raise AssertionError('set up')\n"
        "def test_probe(dear, leak_probe):\n    pass\n"
        "def test_bare(dear, nested_cv):\n    pass\n"
        "@pytest.mark.nested_cv\ndef test_marked(dear):\n    pass\n"
        "def test_other():\n    pass\n"
    )
    empty.run(dscore=False).assert_outcomes(skipped=3, passed=1)


def test_a_fixture_alone_is_a_gate(empty: Project) -> None:
    empty.test("def test_other():\n    pass\n")
    result = empty.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "no hold-out and no protocol" in flat(output(result).splitlines())
    empty.test("from exp import *\ndef test_probe(leak_probe):\n    leak_probe(clean, *data(), 4)\n")
    empty.run().assert_outcomes(passed=1)


@pytest.mark.parametrize("first", ["clean", "leaky"])
def test_a_rerun_begins_anew(empty: Project, first: str) -> None:
    """As pytest-rerunfailures does it: the same item is run again."""
    empty.write(
        "conftest.py",
        "import pytest\nfrom _pytest.runner import runtestprotocol\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_runtest_protocol(item, nextitem):\n"
        "    runtestprotocol(item, nextitem=nextitem, log=False)\n"
        "    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)\n"
        "    for report in runtestprotocol(item, nextitem=nextitem, log=False):\n"
        "        item.ihook.pytest_runtest_logreport(report=report)\n"
        "    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)\n"
        "    return True\n",
    )
    empty.test(
        "from exp import *\nruns = []\n"
        "def test_probe(leak_probe):\n"
        "    runs.append(1)\n"
        f"    if len(runs) == 1:\n        leak_probe({first}, *data(), 4)\n"
    )
    empty.run().assert_outcomes(failed=1)
    assert "without calling leak_probe" in message(empty.cases()["test_probe"])


def test_random_generators_are_left_as_they_were(empty: Project) -> None:
    empty.test(
        "from exp import *\nimport random\n"
        "def draws(X, y, train, test, seed):\n"
        "    random.random(), np.random.random()\n"
        "    return clean(X, y, train, test, seed)\n"
        "def test_probe(leak_probe):\n"
        "    random.seed(1), np.random.seed(1)\n"
        "    leak_probe(draws, *data(), 4)\n"
        "    found = random.random(), np.random.random()\n"
        "    random.seed(1), np.random.seed(1)\n"
        "    assert found == (random.random(), np.random.random())\n"
    )
    empty.run().assert_outcomes(passed=1)


def test_an_error_that_is_no_number_fails() -> None:
    from dataclasses import replace

    from pytest_dscore.figure import Figure
    from pytest_dscore.gates.protocol_judge import error_verdict

    X = np.random.default_rng(0).normal(size=(30, 2))
    found = nested_cv(lambda X, y, train, test, seed: y[test], None, X, np.arange(30) % 2, outer=3)
    assert error_verdict("it", found, "corrected", 0.0).outcome == "pass"
    for value in (math.nan, math.inf, -math.inf):
        broken = replace(found, error=Figure(value, value, value))
        assert error_verdict("it", broken, "corrected", 0.5).outcome == "fail"


@pytest.mark.parametrize(
    "body",
    [
        "    try:\n        leak_probe(leaky, *data(), 4)\n    except BaseException:\n        pass\n",
        "    with pytest.raises(pytest.fail.Exception):\n        leak_probe(leaky, *data(), 4)\n",
    ],
    ids=["broad except", "pytest.raises"],
)
def test_a_failure_that_the_test_catches_is_one(empty: Project, body: str) -> None:
    empty.test(f"from exp import *\ndef test_it(leak_probe):\n{body}")
    empty.run().assert_outcomes(failed=1)


def test_tests_of_one_name_in_two_files_are_two_protocols(empty: Project) -> None:
    text = "from exp import *\n@pytest.mark.nested_cv(max_error=0.99, outer=3, inner=2)\ndef test_error(nested_cv):\n"
    empty.test(f"{text}    nested_cv(build(), None, *data())\n", "test_one.py")
    empty.test(f"{text}    nested_cv(build(), None, *noise())\n", "test_two.py")
    result = empty.run()
    result.assert_outcomes(passed=2)
    suites = JUnitXml.fromfile(str(empty.path / "report.xml"))
    subjects = {properties(case)["dscore.protocol"] for suite in suites for case in suite}
    assert subjects == {"test_one.py::test_error", "test_two.py::test_error"}
    assert {line.split()[0] for line in section(result) if "::" in line} == subjects
