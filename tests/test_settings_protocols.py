"""``[tool.dscore.protocols]`` and the keywords of ``@pytest.mark.nested_cv`` as values."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_dscore.errors import SettingsError
from pytest_dscore.settings import ProtocolSettings, load_settings, protocol_mark

BASE = "[tool.dscore.protocols.svm]\nestimator = 'a:b'\ndata = 'c:d'\n"


def read(tmp_path: Path, own: str) -> ProtocolSettings:
    (tmp_path / "pyproject.toml").write_text(BASE + own, encoding="utf-8")
    return load_settings(tmp_path, ()).protocols["svm"]


def test_defaults(tmp_path: Path) -> None:
    found = read(tmp_path, "")
    assert (found.splits, found.inner, found.repeats, found.seed, found.n_jobs) == (10, 5, 1, 0, 1)
    assert (found.scoring, found.interval, found.confidence, found.nested_repeats) == (
        "accuracy",
        "corrected",
        0.95,
        10,
    )
    assert (found.experiment, found.param_grid, found.manifest, found.probe) == (None, None, None, True)
    assert found.thresholds() == {}


def test_thresholds_come_in_the_order_of_the_tests(tmp_path: Path) -> None:
    found = read(tmp_path, "max_bias = 2\nmax_error = 0\nparam_grid = { C = [1, 2] }")
    assert list(found.thresholds().items()) == [("max_error", 0.0), ("max_bias", 2.0)]
    assert {type(value) for value in found.thresholds().values()} == {float}


@pytest.mark.parametrize(
    "own",
    [
        "splits = 'a:b'",
        "param_grid = 'a:b'",
        "param_grid = [{ C = [1] }, { g = ['x'] }]",
        "n_jobs = -1",
        "max_error = 0",
    ],
)
def test_accepted_forms(tmp_path: Path, own: str) -> None:
    read(tmp_path, own)


def test_an_error_may_exceed_1_where_its_scorer_has_no_bound(tmp_path: Path) -> None:
    assert read(tmp_path, "scoring = 'neg_mean_squared_error'\nmax_error = 20").max_error == 20
    for scoring in ("accuracy", "f1_macro", "roc_auc_ovr", "precision", "average_precision"):
        with pytest.raises(SettingsError, match="max_error = 1 can never fail"):
            read(tmp_path, f"scoring = '{scoring}'\nmax_error = 1")


def test_a_mark_gives_the_defaults_of_the_call() -> None:
    found = protocol_mark({"max_error": 0.2, "outer": 3, "name": "it"}).arguments()
    assert found == {
        "outer": 3,
        "inner": 5,
        "scoring": "accuracy",
        "repeats": 1,
        "seed": 0,
        "interval": "corrected",
        "confidence": 0.95,
        "nested_repeats": 10,
        "n_jobs": 1,
    }


def test_the_arguments_are_those_of_the_library() -> None:
    import inspect

    from pytest_dscore.protocol import nested_cv

    known = inspect.signature(nested_cv).parameters
    assert set(protocol_mark({}).arguments()) == set(known) - {
        "estimator",
        "param_grid",
        "X",
        "y",
        "groups",
        "progress",
    }
    for name, value in protocol_mark({}).arguments().items():
        assert known[name].default == value
