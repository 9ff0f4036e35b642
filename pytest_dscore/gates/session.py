"""The plugin object of a ``--dscore`` run: settings, collection, the order of judging, the terminal, xdist."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_dscore.errors import SettingsError
from pytest_dscore.gates.holdouts import HoldoutGates
from pytest_dscore.gates.items import DeclaredGate, GateItem, ProjectFile, is_project_file
from pytest_dscore.gates.protocols import ProtocolGates
from pytest_dscore.gates.recording import Recorder
from pytest_dscore.gates.scores import SHARED, ScoreGates
from pytest_dscore.names import OPERATOR_NAMES
from pytest_dscore.requested import is_gate
from pytest_dscore.settings import load_settings
from pytest_dscore.verdict import Verdict

if TYPE_CHECKING:
    from pytest_dscore.score.operators import Operator


_NOTHING = (
    "[tool.dscore] declares no model, no hold-out and no protocol, and no collected test is a gate, so there is "
    "nothing to gate: add a table [tool.dscore.models.NAME] with factory, weights and data, "
    "[tool.dscore.holdouts.NAME] with data and epsilon, or [tool.dscore.protocols.NAME] with data and experiment or "
    "estimator"
)


class Gates(Protocol):
    """What the session asks of each kind of gate."""

    @property
    def header(self) -> str:
        """What the head of the run says, empty where nothing is declared."""

    def declared(self) -> Iterator[DeclaredGate]:
        """The gates that pyproject.toml declares."""

    def before_body(self, item: pytest.Item) -> None:
        """Judge a marked test, or see to it that it can be judged, before its body runs."""

    def after_body(self, item: pytest.Item) -> None:
        """Fail a marked test that passed without anything having been judged."""


class GateSession:
    """Registered with pytest only where ``--dscore`` is given.

    Raises
    ------
    pytest.UsageError
        The settings cannot be used (exit code 4), before anything is collected.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        try:
            operators = _hooked_operators(config)
            self.settings = load_settings(config.rootpath, (*OPERATOR_NAMES, *operators))
        except SettingsError as error:
            raise pytest.UsageError(f"pytest-dscore: {error}") from None
        self.recorder = Recorder(self.settings.junit_properties)
        self.holdouts = HoldoutGates(config, self.settings, self.recorder)
        self.scores = ScoreGates(config, self.settings, self.recorder, operators, self.holdouts)
        self.protocols = ProtocolGates(config, self.settings, self.recorder)
        self._gates: tuple[Gates, ...] = (self.scores, self.holdouts, self.protocols)
        self._verdicts: list[Verdict] = []
        self._judged: set[str] = set()
        self._own_directory: str | None = None
        config.pluginmanager.register(self.recorder, "dscore-recorder")
        if config.pluginmanager.hasplugin("xdist"):
            config.pluginmanager.register(_Distribution(self), "dscore-xdist")

    # Collection

    def declared(self) -> Iterator[DeclaredGate]:
        """Every gate that pyproject.toml declares."""
        for gates in self._gates:
            yield from gates.declared()

    def pytest_report_header(self) -> str:
        reading = getattr(self.config, "cache", None) and not self.config.getoption("dscore_no_cache")
        named = "; ".join(gates.header for gates in self._gates if gates.header) or "marked tests only"
        return f"dscore: gating {named} (cache {'on' if reading else 'off'})"

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        if is_project_file(file_path, self.settings.root):
            return ProjectFile.build(parent, self)
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Append the declared gates, before -k, -m, --deselect and --lf choose among all items.

        Not where single tests are asked for by their ids, or the gates themselves by their file.
        """
        asked_by_id = bool(self.config.args) and all("::" in argument for argument in self.config.args)
        if not asked_by_id and not any(isinstance(item, GateItem) for item in items):
            items.extend(session.genitems(ProjectFile.build(session, self)))
        self.protocols.note_names(items)
        # Budgets last: what they say is then the state after all that this run charged.
        items.sort(key=lambda item: isinstance(item, GateItem) and item.declared.gate == "budget")
        if not any(map(is_gate, items)) and next(self.declared(), None) is None:
            raise pytest.UsageError(f"pytest-dscore: {_NOTHING}")

    # Judging

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        for gates in self._gates:
            gates.before_body(item)
        result = yield
        for gates in self._gates:
            gates.after_body(item)
        return result

    # Reporting

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        verdicts = [replace(Verdict.from_json(data), test=report.nodeid) for data in getattr(report, "dscore", ())]
        self._verdicts += verdicts
        if verdicts and report.nodeid.startswith("pyproject.toml::"):
            self._judged.add(report.nodeid)
        crash = getattr(report.longrepr, "reprcrash", None)
        if verdicts and crash is not None:
            # JUnit has taken the whole message by now; the short summary repeats all of it in CI, and wants one line.
            crash.message = crash.message.partition("\n")[0]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        from pytest_dscore.report.terminal import summary

        lines = self._unjudged()
        if self._verdicts:
            # In the order of a serial run, whichever xdist worker was ready first.
            lines += summary(sorted(self._verdicts, key=self._place), width=80)
        if lines and not self.config.option.collectonly:
            terminalreporter.write_sep("=", "D-Score")
            for line in lines:
                terminalreporter.write_line(line)

    def _place(self, verdict: Verdict) -> tuple[int, str]:
        """Declared subjects in their order, then the tests that stand for themselves, by name."""
        names = (*self.settings.models, *self.settings.holdouts, *self.settings.protocols)
        if verdict.subject not in names:
            return len(names), verdict.subject
        return names.index(verdict.subject), str(self.protocols.place(verdict))

    def _unjudged(self) -> list[str]:
        """Say so where declared gates did not run: deselected by the user, or dropped by somebody's conftest.py."""
        declared = sum(1 for _ in self.declared())
        missing = declared - len(self._judged)
        return [f"{missing} of {declared} declared gates did not run.", ""] if missing else []

    def pytest_unconfigure(self) -> None:
        if self._own_directory is not None:
            shutil.rmtree(self._own_directory, ignore_errors=True)

    def shared_directory(self) -> str:
        """The directory that this run's xdist workers share, made on first use and removed at the end."""
        if self._own_directory is None:
            self._own_directory = tempfile.mkdtemp(prefix="pytest-dscore-")
        return self._own_directory


class _Distribution:
    """Hooks of pytest-xdist, registered only where it is there."""

    def __init__(self, gates: GateSession) -> None:
        self._gates = gates

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker where this run's results are shared."""
        node.workerinput[SHARED] = self._gates.shared_directory()


def _hooked_operators(config: pytest.Config) -> dict[str, Operator]:
    found: dict[str, Operator] = {}
    for mapping in config.hook.pytest_dscore_operators():
        if not isinstance(mapping, Mapping) or not all(isinstance(name, str) for name in mapping):
            raise SettingsError("a pytest_dscore_operators hook must return a mapping of names to functions")
        for name, operator in mapping.items():
            if name in OPERATOR_NAMES or name in found:
                raise SettingsError(
                    f"operator '{name}' of a pytest_dscore_operators hook exists already: choose another name"
                )
            if not callable(operator):
                raise SettingsError(f"operator '{name}' of a pytest_dscore_operators hook is no function")
            found[name] = operator
    return found
