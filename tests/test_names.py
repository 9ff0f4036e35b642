"""Names, and what importing the package loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pytest_dscore
from pytest_dscore.names import OPERATOR_NAMES, unknown_name
from pytest_dscore.score import OPERATORS


def test_operator_names_are_those_of_the_functions() -> None:
    assert tuple(OPERATORS) == OPERATOR_NAMES


def test_the_nearest_name_comes_first() -> None:
    sentence = unknown_name("key", "min_scroe", ["n", "min_score", "max_v_robust"])
    assert sentence == "key 'min_scroe' does not exist; did you mean 'min_score'? Valid: max_v_robust, min_score, n"


def test_a_name_like_no_other_gets_no_suggestion() -> None:
    assert unknown_name("key", "zzz", ["n"]) == "key 'zzz' does not exist. Valid: n"


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = "import sys, pytest_dscore; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "numpy", "scipy", "pydantic", "rich", "pytest"} & set(loaded)


@pytest.mark.parametrize("name", [name for name in pytest_dscore.__all__ if name != "__version__"])
def test_public_names_load_on_demand(name: str) -> None:
    assert getattr(pytest_dscore, name).__name__ == name


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'dscore_it'"):
        pytest_dscore.dscore_it  # noqa: B018


def test_a_figure_is_not_compared_whole() -> None:
    with pytest.raises(TypeError, match=r"compare its \.value, \.lower or \.upper"):
        assert pytest_dscore.Figure(0.5, 0.4, 0.6) > 0.3


def test_tab_completion_shows_the_public_names() -> None:
    assert set(pytest_dscore.__all__) <= set(dir(pytest_dscore))
