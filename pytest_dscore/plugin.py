"""The pytest plugin: options, markers and fixtures; everything heavy is imported only with ``--dscore``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_dscore.names import MARKERS
from pytest_dscore.requested import is_gate

if TYPE_CHECKING:
    from pytest_dscore.gates.holdout_use import Holdout
    from pytest_dscore.gates.protocol_use import LeakProbe, NestedCV
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
    group.addoption(
        "--dscore-update-baseline",
        action="store_true",
        default=False,
        help="record the scores of this run in .dscore/baseline.json, which max_drop compares later runs with",
    )


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks that others may implement."""
    from pytest_dscore import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and the gate itself where it is asked for."""
    for line in MARKERS.values():
        config.addinivalue_line("markers", line)
    if config.getoption("dscore_update_baseline") and not config.getoption("dscore"):
        raise pytest.UsageError("--dscore-update-baseline records nothing without --dscore: give both")
    if config.getoption("dscore"):
        from pytest_dscore.gates.session import GateSession

        config.pluginmanager.register(GateSession(config), SESSION)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip gates where they are not asked for."""
    if config.getoption("dscore"):
        return
    for item in items:
        if is_gate(item):
            item.add_marker(pytest.mark.skip(reason=SKIPPED))


@pytest.fixture
def dscore(request: pytest.FixtureRequest) -> DScore:
    """The D-Score of the model named by ``@pytest.mark.dscore(model=...)``: every f_i and a_i, v_robust, intervals."""
    return _session(request).scores.result_for(request.node)


@pytest.fixture
def holdout(request: pytest.FixtureRequest) -> Holdout:
    """The hold-out named by ``@pytest.mark.holdout(NAME)``: evaluate models on it, each charged before it is scored."""
    return _session(request).holdouts.fixture(request.node)


@pytest.fixture
def nested_cv(request: pytest.FixtureRequest) -> NestedCV:
    """Nested cross-validation with the settings of ``@pytest.mark.nested_cv(...)``, judged by its ``max_error``."""
    return _session(request).protocols.nested_cv(request.node)


@pytest.fixture
def leak_probe(request: pytest.FixtureRequest) -> LeakProbe:
    """Probes an evaluation protocol, or a split of data, for leaks: each fails the test."""
    return _session(request).protocols.leak_probe(request.node)


def _session(request: pytest.FixtureRequest) -> GateSession:
    session: GateSession | None = request.config.pluginmanager.get_plugin(SESSION)
    if session is None:
        pytest.skip(SKIPPED)
    return session
