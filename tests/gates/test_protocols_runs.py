"""Protocols in every kind of pytest run: xdist, no cache, a terminal, and without --dscore."""

from __future__ import annotations

import pytest

from pytest_dscore.gates.workers import worker_threads
from tests.gates.project import Project, message, output, properties, section
from tests.gates.protocol_project import MARKED, declare
from tests.gates.test_progress import on_a_terminal

PIPELINE = 'estimator = "exp:build"\ndata = "exp:data"\nsplits = 3\ninner = 2\n'
GRID = "param_grid = { kneighborsclassifier__n_neighbors = [1, 5] }\n"
LEAKY = 'experiment = "exp:leaky"\ndata = "exp:data"\nsplits = 3\nmax_error = 0.9\n'

USER_TESTS = """
def test_leaks(leak_probe):
    leak_probe(leaky, *data(), 3)

def test_clean(leak_probe):
    leak_probe(clean, *data(), 3)

def test_never_called(leak_probe):
    pass

def test_one_job(nested_cv):
    assert nested_cv(build(), None, *data(), outer=3, n_jobs=2).error.value < 1
"""


def test_two_workers_report_what_one_process_reports(project: Project) -> None:
    declare(project, f"{PIPELINE}{GRID}max_error = 0.001\nmax_bias = 50.0\nn_jobs = 2", LEAKY)
    project.test(MARKED + USER_TESTS)
    spread = project.run("-n", "2", "-p", "no:cacheprovider", "--strict-markers", subprocess=True)
    found = {name: (properties(case), bool(case.result)) for name, case in project.cases().items()}
    texts = {name: message(case) for name, case in project.cases().items() if case.result}
    assert spread.ret == pytest.ExitCode.TESTS_FAILED
    spread.assert_outcomes(failed=4, passed=6)
    serial = project.run("-p", "no:cacheprovider", "--strict-markers")
    serial.assert_outcomes(failed=4, passed=6)
    assert {name: (properties(case), bool(case.result)) for name, case in project.cases().items()} == found
    assert {name: message(case) for name, case in project.cases().items() if case.result} == texts
    assert section(spread) == section(serial)


def test_a_worker_runs_one_fold_at_a_time_with_few_threads(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    # More than each of two workers may have, on a machine of any size.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(variable, str(worker_threads(2) + 1))
    declare(project)
    project.write(
        "seen.py",
        "import joblib\nfrom threadpoolctl import threadpool_info\nfrom exp import *\n"
        "def experiment(X, y, train, test, seed):\n"
        "    log('threads' + str(max([pool['num_threads'] for pool in threadpool_info()], default=1)))\n"
        "    log('process' + str(__import__('os').getpid()))\n"
        "    return clean(X, y, train, test, seed)\n",
    )
    project.test(
        "import os\nfrom seen import *\n"
        "def test_it(nested_cv):\n    log('process' + str(os.getpid()))\n"
        "    nested_cv(experiment, None, *data(), outer=3, n_jobs=2)\n"
        "def test_other():\n    pass\n"
    )
    project.run("-n", "2", subprocess=True).assert_outcomes(passed=2)
    words = (project.path / "log").read_text().split()
    assert len({word for word in words if word.startswith("process")}) == 1
    assert all(int(word.removeprefix("threads")) <= worker_threads(2) for word in words if word.startswith("threads"))


HEAVY = ("torch", "numpy", "scipy", "sklearn", "pydantic", "rich", "pytest_dscore.gates", "pytest_dscore.protocol")
REPORT = f"""
import sys

def pytest_unconfigure():
    print("LOADED", [name for name in {HEAVY!r} if name in sys.modules])
"""


def test_without_the_option_nothing_heavy_is_imported(project: Project) -> None:
    declare(project, LEAKY)
    project.write("conftest.py", REPORT)
    project.test(
        "@pytest.mark.nested_cv(max_error=0.2)\ndef test_marked(nested_cv):\n    pass\n"
        "def test_probe(leak_probe):\n    pass\n"
    )
    result = project.run("--strict-markers", "-rs", subprocess=True, dscore=False)
    result.assert_outcomes(skipped=2)
    assert "LOADED []" in result.outlines
    assert output(result).count("D-Score gate: runs with pytest --dscore") == 2


def test_with_it_a_protocol_needs_no_torch(project: Project) -> None:
    declare(project, LEAKY)
    project.write("conftest.py", REPORT.replace(repr(HEAVY), repr(("torch", "sklearn"))))
    result = project.run(subprocess=True)
    result.assert_outcomes(passed=1, failed=1)
    assert "LOADED ['sklearn']" in result.outlines


def test_markers_lists_the_marker(project: Project) -> None:
    text = output(project.run("--markers", dscore=False))
    assert "@pytest.mark.nested_cv(max_error=..." in text
    fixtures = output(project.run("--fixtures", dscore=False))
    assert "leak_probe" in fixtures
    assert "Probes an evaluation protocol" in fixtures


def test_a_bar_on_a_terminal(project: Project) -> None:
    declare(project, f"{PIPELINE.replace(':build', ':slow')}max_error = 0.9")
    code = (
        "class Slow(Restless):\n    def fit(self, X, y):\n        import time; time.sleep(0.6)\n        return self\n"
    )
    code += "    def predict(self, X):\n        return np.ones(len(X), dtype=int)\ndef slow():\n    return Slow()\n"
    project.write("exp.py", (project.path / "exp.py").read_text() + code)
    exit_code, text = on_a_terminal(project)
    assert exit_code == 0
    assert "error of one" in text
    assert "leaks of one" in text
    assert "2 passed" in text
