"""The pytest plugin: options, markers and fixtures; everything heavy is imported only with ``--dscore``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_dscore.names import MARKERS

if TYPE_CHECKING:
    from pytest_dscore.gates.holdout_use import Holdout
    from pytest_dscore.gates.session import GateSession
    from pytest_dscore.score import DScore

SKIPPED = "D-Score gate: runs with pytest --dscore"
SESSION = "dscore-session"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the command line options."""
    group = parser.getgroup("dscore", "quality gate for machine learning (pytest-dscore)")
    group.addoption(
        "--dscore",
        action="store_true",
        default=False,
        help="judge what [tool.dscore] of pyproject.toml declares, and the marked tests; each threshold is a test",
    )
    group.addoption(
        "--dscore-no-cache",
        action="store_true",
        default=False,
        help="score anew, whatever results are kept in pytest's cache directory, and replace them",
    )


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that others may implement."""
    from pytest_dscore import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and the gate itself where it is asked for."""
    for line in MARKERS.values():
        config.addinivalue_line("markers", line)
    if config.getoption("dscore"):
        from pytest_dscore.gates.session import GateSession

        config.pluginmanager.register(GateSession(config), SESSION)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip marked tests where the gate is not asked for."""
    if config.getoption("dscore"):
        return
    for item in items:
        if any(item.get_closest_marker(name) for name in MARKERS):
            item.add_marker(pytest.mark.skip(reason=SKIPPED))


@pytest.fixture
def dscore(request: pytest.FixtureRequest) -> DScore:
    """The D-Score of the model named by ``@pytest.mark.dscore(model=...)``: every f_i and a_i, v_robust, intervals."""
    return _session(request).scores.result_for(request.node)


@pytest.fixture
def holdout(request: pytest.FixtureRequest) -> Holdout:
    """The hold-out named by ``@pytest.mark.holdout(NAME)``: evaluate models on it, each charged before it is scored."""
    return _session(request).holdouts.fixture(request.node)


def _session(request: pytest.FixtureRequest) -> GateSession:
    session: GateSession | None = request.config.pluginmanager.get_plugin(SESSION)
    if session is None:
        pytest.skip(SKIPPED)
    return session
