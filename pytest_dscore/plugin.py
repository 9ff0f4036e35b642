"""The pytest plugin: options, the marker and the fixture; everything heavy is imported only with ``--dscore``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_dscore.gates.session import GateSession
    from pytest_dscore.score import DScore

MARKER = "dscore(model=NAME, min_score=..., n=..., ...): gate a declared model by its D-Score; needs --dscore"
SKIPPED = "D-Score gate: runs with pytest --dscore"
SESSION = "dscore-session"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the command line options."""
    group = parser.getgroup("dscore", "quality gate for machine learning (pytest-dscore)")
    group.addoption(
        "--dscore",
        action="store_true",
        default=False,
        help="score the models declared in [tool.dscore] of pyproject.toml; each threshold is a test",
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
    """Register the marker, and the gate itself where it is asked for."""
    config.addinivalue_line("markers", MARKER)
    if config.getoption("dscore"):
        from pytest_dscore.gates.session import GateSession

        config.pluginmanager.register(GateSession(config), SESSION)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip marked tests where the gate is not asked for."""
    if config.getoption("dscore"):
        return
    for item in items:
        if item.get_closest_marker("dscore"):
            item.add_marker(pytest.mark.skip(reason=SKIPPED))


@pytest.fixture
def dscore(request: pytest.FixtureRequest) -> DScore:
    """The D-Score of the model named by ``@pytest.mark.dscore(model=...)``: every f_i and a_i, v_robust, intervals."""
    session: GateSession | None = request.config.pluginmanager.get_plugin(SESSION)
    if session is None:
        pytest.skip(SKIPPED)
    return session.result_for(request.node)
