"""Bad input to the gate of protocols: one sentence that says what, where, and what to do."""

from __future__ import annotations

import pytest

from tests.gates.project import Project, failed, message, properties, refused
from tests.gates.protocol_project import declare

PIPELINE = 'estimator = "exp:build"\ndata = "exp:data"\nsplits = 3\ninner = 2\n'
GRID = "param_grid = { kneighborsclassifier__n_neighbors = [1, 5] }\n"
CLEAN = 'experiment = "exp:clean"\ndata = "exp:data"\nsplits = 3\n'
NOTHING_CALLED = "in exp the name 'XX' does not exist"


@pytest.fixture
def empty(project: Project) -> Project:
    """No declared gate."""
    declare(project)
    return project


MARKS = {
    "misspelt": ("max_eror=0.2", "key 'max_eror' does not exist; did you mean 'max_error'?"),
    "outer": ("outer=1", "outer = 1 cannot be used: give a number of folds >= 2 or a splitter"),
    "inner": ("inner='five'", "inner = 'five' cannot be used: give a number of folds >= 2 or a splitter"),
    "repeats": ("repeats=0", "repeats = 0 cannot be used: give a whole number >= 1"),
    "seed": ("seed=-1", "seed = -1 cannot be used"),
    "interval": ("interval='bates'", 'interval = \'bates\' cannot be used: give "naive", "corrected" or "nested"'),
    "confidence": ("confidence=95", "confidence = 95 cannot be used: give a number above 0 and up to 0.999999"),
    "scoring": ("scoring=3", "scoring = 3 cannot be used: give the name of a scorer"),
    "jobs": ("n_jobs=0", "n_jobs = 0 cannot be used"),
    "percent": ("max_error=20", "max_error = 20 can never fail: with scoring = 'accuracy' an error is a share"),
    "NaN": ("max_error=float('nan')", "max_error = nan"),
    "infinite": ("max_error=float('inf')", "max_error = inf must be a finite number"),
    "negative": ("max_error=-0.1", "max_error = -0.1 cannot be used"),
    "text": ("max_error='0.2'", "max_error = '0.2' cannot be used: give a number >= 0"),
    "none": ("max_error=None", "max_error = None sets no threshold"),
    "positional": ("0.2", "takes keywords only: write max_error=0.2"),
}


@pytest.mark.parametrize(("keywords", "part"), MARKS.values(), ids=MARKS)
def test_a_mark(empty: Project, keywords: str, part: str) -> None:
    empty.test(f"@pytest.mark.nested_cv({keywords})\ndef test_it(nested_cv):\n    raise AssertionError('ran')\n")
    result = empty.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    [text] = [case.result[0].message for case in empty.cases().values()]
    assert text.startswith("@pytest.mark.nested_cv ")
    assert part in text


def test_a_mark_that_stands_twice(empty: Project) -> None:
    empty.test("@pytest.mark.nested_cv\n@pytest.mark.nested_cv(outer=3)\ndef test_it(nested_cv):\n    pass\n")
    empty.run()
    assert "stands more than once" in str(empty.cases()["test_it"].result[0].message)


def test_numpy_s_numbers_are_numbers(empty: Project) -> None:
    empty.test(
        "from exp import *\n@pytest.mark.nested_cv(max_error=np.float64(0.99), outer=np.int64(3), seed=np.int32(1))\n"
        "def test_it(nested_cv):\n    nested_cv(build(), None, *data(), outer=np.int64(4))\n"
    )
    empty.run().assert_outcomes(passed=1)


CALLS = {
    "keyword": ("build(), GRID, X, y, outr=3", "nested_cv(...): keyword 'outr' does not exist; did you mean 'outer'?"),
    "threshold": ("build(), GRID, X, y, max_error=0.9", "max_error belongs in the mark"),
    "empty grid": ("build(), {}, X, y", "param_grid is empty"),
    "misspelt grid": ("build(), {'kneighborsclassifier__n_neigbors': [1]}, X, y", "did you mean"),
    "grid of a number": ("build(), {'kneighborsclassifier__n_neighbors': 3}, X, y", "pass a list of values"),
    "two searches": ("search(), GRID, X, y", "GridSearchCV searches already"),
    "groups": ("build(), GRID, X, y, groups=[1, 2]", "groups has shape (2,) but X has 60 rows: pass one group per row"),
    "labels": ("build(), GRID, X, y[:-1]", "y has 59 labels but X has 60 rows"),
    "NaN": (
        "build(), None, np.where(X > 1, np.nan, X), y",
        "X holds NaN in column(s) 0, 1, 2 and the estimator does not accept it: put an imputer into the pipeline",
    ),
    "overlap": (
        "build(), None, X, y, outer=[(np.arange(40), np.arange(39, 60))]",
        "1 row(s) are in both the training and the test part (first: 39)",
    ),
    "NaN score": ("build(), None, X, y, scoring=lambda *_: float('nan')", "returned NaN in outer fold 0"),
    "scorer": ("build(), None, X, y, scoring='acuracy'", "scoring='acuracy' is not a scorer"),
    "too few": ("too_few, None, X, y", "got predictions of shape (19,) for 20 test rows: return one per test row"),
    "class": ("DecisionTreeClassifier, None, X, y", "is neither an estimator nor a function"),
    "raises": ("lambda *_: 1 / 0, None, X, y", "raised ZeroDivisionError: division by zero ("),
    "skips": ("lambda *_: pytest.skip('later'), None, X, y", "raised Skipped: later ("),
    "exits": ("lambda *_: __import__('sys').exit(0), None, X, y", "raised SystemExit: 0 ("),
    "interval": ("build(), None, X, y, interval='bates'", "interval='bates' is unknown"),
    "no partition": (
        "build(), None, X, y, interval='nested', outer=[(np.arange(40), np.arange(40, 60))]",
        "the 'nested' interval needs K-fold cross-validation",
    ),
}


@pytest.mark.parametrize(("arguments", "part"), CALLS.values(), ids=CALLS)
def test_a_call(empty: Project, arguments: str, part: str) -> None:
    empty.test(
        "from exp import *\n@pytest.mark.nested_cv(max_error=0.9, outer=3, inner=2)\n"
        f"def test_it(nested_cv):\n    X, y = data()\n    nested_cv({arguments})\n    raise AssertionError('went on')\n"
    )
    result = empty.run()
    failed(result, empty, "protocol 'test_it' cannot be judged: ", part, name="test_it")
    assert len(message(empty.cases()["test_it"]).splitlines()) == 2, "more than a sentence and the place"
    assert properties(empty.cases()["test_it"])["dscore.protocol.verdict.max_error"] == "error"


PROBES = {
    "no protocol": ("3, X, y, 4", "3 is neither a function nor an estimator"),
    "too few": ("too_few, X, y, 4", "the protocol returned predictions of shape"),
    "raises": ("lambda *_: 1 / 0, X, y, 4", "the protocol raised ZeroDivisionError: division by zero ("),
    "groups": ("clean, X, y, 4, groups=[1]", "groups has shape (1,) but X has 60 rows"),
    "time": ("clean, X, y, 4, time=[1]", "time has 1 entries but X has 60 rows"),
    "runs": ("clean, X, y, 4, max_runs=2", "max_runs=2 must be an integer of at least 6"),
    "no splits": ("clean, X, y, []", "yields no split"),
    "NaN": ("build(), np.where(X > 1, np.nan, X), y, 4", "put an imputer into the pipeline"),
}


@pytest.mark.parametrize(("arguments", "part"), PROBES.values(), ids=PROBES)
def test_a_probe(empty: Project, arguments: str, part: str) -> None:
    empty.test(f"from exp import *\ndef test_it(leak_probe):\n    X, y = data()\n    leak_probe({arguments})\n")
    failed(empty.run(), empty, "protocol 'test_it' cannot be judged: ", part, name="test_it")
    assert properties(empty.cases()["test_it"])["dscore.protocol.verdict.leaks"] == "error"


TABLES = {
    "misspelt": ("expriment = 'a:b'\ndata = 'a:b'", "key 'expriment' does not exist; did you mean 'experiment'?"),
    "grid": (PIPELINE + "grid = { a = [1] }", "key 'grid' does not exist; did you mean 'param_grid'?"),
    "neither": ("data = 'a:b'", "needs one of the two: experiment = "),
    "both": (PIPELINE + "experiment = 'exp:clean'", "needs one of the two: experiment = "),
    "no data": ("estimator = 'exp:build'", "data is missing: give "),
    "splits": (PIPELINE.replace("splits = 3", "splits = 1"), "splits = 1 cannot be used: give a number of folds >= 2"),
    "splits as text": (PIPELINE.replace("splits = 3", "splits = 'three'"), "splits = 'three' cannot be used"),
    "inner": (PIPELINE.replace("inner = 2", "inner = 1"), "inner = 1 cannot be used"),
    "empty grid": (PIPELINE + "param_grid = {}", "cannot be used: give {NAME = [values, ...]}"),
    "grid of a number": (PIPELINE + "param_grid = { a = 3 }", "a must be a list of values"),
    "grid as text": (PIPELINE + "param_grid = 'GRID'", "cannot be used: give {NAME = [values, ...]}"),
    "percent": (PIPELINE + "max_error = 20", "max_error = 20 can never fail"),
    "no bias": (CLEAN + "max_bias = 1", "nothing is chosen here: add param_grid, or leave max_bias out"),
    "bias": (PIPELINE + GRID + "max_bias = -1", "max_bias = -1 cannot be used: give a number of percentage points"),
    "nothing": (CLEAN + "probe = false", "has nothing to judge: set one of max_error, max_bias, manifest"),
    "manifest": (CLEAN + "manifest = 3", "manifest = 3 cannot be used: give the path of a file"),
    "probe": (CLEAN + "probe = 'no'", "probe = 'no' cannot be used: give true or false"),
}


@pytest.mark.parametrize(("own", "part"), TABLES.values(), ids=TABLES)
def test_a_table(empty: Project, own: str, part: str) -> None:
    declare(empty, own)
    refused(empty.run(), "pytest-dscore: [tool.dscore.protocols.one] ", part)


def test_names_are_unique_among_all_kinds(project: Project) -> None:
    declare(project, CLEAN)
    model = "[tool.dscore.models.one]\nfactory = 'net:build'\ndata = 'net:data'\nmin_score = 0.1\n"
    holdout = "[tool.dscore.holdouts.one]\ndata = 'net:data'\nepsilon = 0.1\n"
    text = (project.path / "pyproject.toml").read_text()
    project.write("pyproject.toml", text + model)
    refused(project.run(), "a model and a protocol are both called 'one'")
    project.write("pyproject.toml", text + holdout)
    refused(project.run(), "a hold-out and a protocol are both called 'one'")


REFERENCES = {
    "module": (CLEAN.replace("exp:clean", "exq:clean"), "", "experiment 'exq:clean': importing exq raised ModuleNot"),
    "experiment": (CLEAN.replace(":clean", ":XX"), "", f"experiment 'exp:XX': {NOTHING_CALLED}"),
    "estimator": (PIPELINE.replace(":build", ":XX"), "", f"estimator 'exp:XX': {NOTHING_CALLED}"),
    "data": (CLEAN.replace(":data", ":XX"), "", f"data 'exp:XX': {NOTHING_CALLED}"),
    "splits": (CLEAN.replace("splits = 3", "splits = 'exp:XX'"), "", f"splits 'exp:XX': {NOTHING_CALLED}"),
    "grid": (PIPELINE + "param_grid = 'exp:XX'", "", f"param_grid 'exp:XX': {NOTHING_CALLED}"),
    "data raise": (
        CLEAN.replace(":data", ":X"),
        "def X():\n    raise KeyError('k')",
        "data 'exp:X' raised KeyError: 'k'",
    ),
    "data skip": (CLEAN.replace(":data", ":X"), "def X():\n    import pytest; pytest.skip('no')", "raised Skipped: no"),
    "one value": (
        CLEAN.replace(":data", ":X"),
        "def X():\n    return 3",
        "returned a int: return (X, y) or (X, y, gro",
    ),
    "four values": (
        CLEAN.replace(":data", ":X"),
        "def X():\n    return 1, 2, 3, 4",
        "returned 4 values: return (X, y)",
    ),
    "lengths": (
        CLEAN.replace(":data", ":X"),
        "def X():\n    return np.zeros((3, 2)), [0, 1]",
        "data 'exp:X': y has 2 labels but X has 3 rows",
    ),
    "groups": (
        CLEAN.replace(":data", ":X"),
        "def X():\n    return (*data(), [1, 2])",
        "data 'exp:X': groups has shape (2,) but X has 60 rows",
    ),
    "a function as estimator": (
        PIPELINE.replace(":build", ":X"),
        "def X():\n    return clean",
        "estimator 'exp:X' returned a function: return an estimator or a search object; for a function (X, y, train, t",
    ),
    "a class as estimator": (PIPELINE.replace(":build", ":X"), "def X():\n    return Restless", "returned a type"),
    "an estimator as experiment": (CLEAN.replace(":clean", ":X"), "X = build()", "experiment 'exp:X' is a Pipeline"),
    "a builder as experiment": (
        CLEAN.replace(":clean", ":build"),
        "",
        "experiment 'exp:build' cannot be called with (X, y, train, test, seed)",
    ),
    "a number as splits": (CLEAN.replace("splits = 3", "splits = 'exp:X'"), "X = 2.5", "splits 'exp:X' is a float"),
    "misspelt grid": (PIPELINE + "param_grid = { kneighbors = [1] }", "", "estimator 'exp:build': param_grid names"),
    "scorer": (CLEAN + "scoring = 'acuracy'", "", "scoring='acuracy' is not a scorer that scikit-learn knows; did you"),
    "too few": (CLEAN.replace(":clean", ":too_few"), "", "the protocol returned predictions of shape ("),
    "restless": (
        CLEAN.replace(":clean", ":unseeded"),
        "",
        "cannot tell whether it leaks: the protocol disagrees with i",
    ),
    "NaN": (
        PIPELINE.replace(":data", ":X"),
        "def X():\n    X, y = data()\n    X[3, 1] = np.nan\n    return X, y",
        "X holds NaN in column(s) 1 and the estimator does not accept it",
    ),
    "overlap": (
        CLEAN.replace("splits = 3", "splits = 'exp:X'"),
        "X = [(np.arange(40), np.arange(39, 60))]",
        "leaks: overlap leak in split 0",
    ),
}


@pytest.mark.parametrize(("own", "code", "part"), REFERENCES.values(), ids=REFERENCES)
def test_what_a_table_refers_to(empty: Project, own: str, code: str, part: str) -> None:
    declare(empty, own)
    empty.write("exp.py", (empty.path / "exp.py").read_text() + "\n" + code + "\n")
    failed(empty.run(), empty, "protocol 'one'", part, name="dscore[one-leaks]")


def test_a_bias_where_nothing_is_chosen(empty: Project) -> None:
    declare(empty, PIPELINE + "max_bias = 1.0")
    failed(empty.run(), empty, "nothing is selected, so there is no bias to measure", name="dscore[one-max_bias]")
    found = properties(empty.cases()["dscore[one-max_bias]"])
    assert (found["dscore.protocol.verdict.max_bias"], found["dscore.protocol.threshold.max_bias"]) == ("error", "1.0")


def test_each_gate_of_a_broken_protocol_says_so(empty: Project) -> None:
    declare(empty, CLEAN.replace(":data", ":XX") + "max_error = 0.5", CLEAN)
    result = empty.run()
    result.assert_outcomes(failed=2, passed=1)
    for gate in ("max_error", "leaks"):
        assert NOTHING_CALLED in message(empty.cases()[f"dscore[one-{gate}]"])
