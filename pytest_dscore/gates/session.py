"""The plugin object of a ``--dscore`` run: settings, collection, enforcement, the terminal, xdist."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_dscore.errors import DScoreError, SettingsError
from pytest_dscore.gates.items import GateItem, ProjectFile, is_project_file, location, without
from pytest_dscore.gates.progress import progress_bar
from pytest_dscore.names import OPERATOR_NAMES
from pytest_dscore.settings import ModelSettings, load_settings, marker_settings
from pytest_dscore.verdict import Verdict

if TYPE_CHECKING:
    from pytest_dscore.gates.scoring import Scorer
    from pytest_dscore.score import DScore
    from pytest_dscore.score.operators import Operator

_VERDICTS = pytest.StashKey[list[Verdict]]()
#: Set where a test was failed by the gate rather than by its own body.
_REFUSED = pytest.StashKey[bool]()
_SHARED = "dscore_shared"


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
            self._operators = _hooked_operators(config)
            self.settings = load_settings(config.rootpath, self._operator_names())
        except SettingsError as error:
            raise pytest.UsageError(f"pytest-dscore: {error}") from None
        self._verdicts: list[Verdict] = []
        self._judged: set[str] = set()
        self._scorer: Scorer | None = None
        self._own_directory: str | None = None
        if config.pluginmanager.hasplugin("xdist"):
            config.pluginmanager.register(_Distribution(self), "dscore-xdist")

    # Collection

    def pytest_report_header(self) -> str:
        models = ", ".join(self.settings.models)
        reading = self._cache() and not self.config.getoption("dscore_no_cache")
        return f"dscore: gating {models} (cache {'on' if reading else 'off'})"

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

    # Judging

    def result_for(self, item: pytest.Item) -> DScore:
        """The result behind the `dscore` fixture."""
        marker = item.get_closest_marker("dscore")
        if marker is None:
            fail(item, ["the dscore fixture needs @pytest.mark.dscore(model=...) on the test, which names the model"])
        name, settings = self._marked(item, marker)
        try:
            result, _ = self.scorer.score(name, settings)
        except DScoreError as error:
            self._refuse(item, name, settings.thresholds(), error)
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """Judge a marked test's thresholds before its body runs."""
        marker = item.get_closest_marker("dscore")
        if marker is None or isinstance(item, GateItem):
            return
        name, settings = self._marked(item, marker)
        if not settings.thresholds() and "dscore" not in getattr(item, "fixturenames", ()):
            sentence = "@pytest.mark.dscore names no threshold and the test does not use the dscore fixture"
            fail(item, [f"{sentence}, so it would always pass: add min_score = ... or the fixture"])
        self.announce(item, name, settings.thresholds())
        self.enforce(item, name, settings, settings.thresholds())

    def enforce(self, item: pytest.Item, name: str, settings: ModelSettings, thresholds: Mapping[str, float]) -> None:
        """Score, record the verdicts with the item, and fail the test where one is not met."""
        from pytest_dscore.gates.judge import judge
        from pytest_dscore.gates.scoring import versions
        from pytest_dscore.report.terminal import details

        try:
            result, measured = self.scorer.score(name, settings)
        except DScoreError as error:
            self._refuse(item, name, thresholds, error)
        verdicts = judge(name, result, measured, thresholds, versions())
        self._record(item, verdicts)
        failed = [verdict for verdict in verdicts if verdict.outcome != "pass" and verdict.gate]
        if failed:
            lines = [verdict.reason for verdict in failed] + details(failed[0])
            fail(item, lines)

    def announce(self, item: pytest.Item, name: str, thresholds: Mapping[str, float]) -> None:
        """Set the properties that are known before scoring, so that JUnit has them whatever happens."""
        known = [("dscore.model", name), *((f"dscore.threshold.{gate}", limit) for gate, limit in thresholds.items())]
        self._set_properties(item, known)

    def _marked(self, item: pytest.Item, marker: pytest.Mark) -> tuple[str, ModelSettings]:
        try:
            if any(sum(mark.name == "dscore" for mark in node.own_markers) > 1 for node in item.listchain()):
                raise SettingsError(
                    "@pytest.mark.dscore stands more than once on this test, its class (or a base class) or its "
                    "module, and only one could hold: leave one, or write two tests"
                )
            if marker.args:
                raise SettingsError(f"@pytest.mark.dscore takes keywords only: write model={marker.args[0]!r}")
            return marker_settings(marker.kwargs, self.settings, self._operator_names())
        except SettingsError as error:
            fail(item, [str(error)])

    def _refuse(self, item: pytest.Item, name: str, thresholds: Mapping[str, float], error: DScoreError) -> NoReturn:
        from pytest_dscore.gates.judge import cannot_judge

        verdicts = cannot_judge(name, thresholds, error)
        self._record(item, verdicts)
        fail(item, [verdicts[0].reason])

    def _record(self, item: pytest.Item, verdicts: list[Verdict]) -> None:
        from pytest_dscore.gates.judge import properties

        item.stash[_VERDICTS] = verdicts
        self._set_properties(item, properties(verdicts))

    def _set_properties(self, item: pytest.Item, found: list[tuple[str, Any]]) -> None:
        if self.settings.junit_properties:
            item.user_properties[:] = [*without(item.user_properties, {name for name, _ in found}), *found]

    # Reporting: verdicts travel on the report, which xdist carries to the controller even if the worker dies later.

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.when != "teardown" and (verdicts := item.stash.get(_VERDICTS, None)):
            report.dscore = [verdict.to_json() for verdict in verdicts]  # type: ignore[attr-defined]
            del item.stash[_VERDICTS]
        crash = getattr(report.longrepr, "reprcrash", None)
        if crash is not None and item.stash.get(_REFUSED, False):
            # JUnit readers show little more than the start of the message.
            crash.message = crash.message.removeprefix("Failed: ")
            path, line, _ = item.location
            crash.path, crash.lineno = path, (line or 0) + 1
        return report

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        verdicts = [Verdict.from_json(data) for data in getattr(report, "dscore", ())]
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
            order = {name: place for place, name in enumerate(self.settings.models)}
            lines += summary(sorted(self._verdicts, key=lambda verdict: order[verdict.subject]), width=80)
        if lines and not self.config.option.collectonly:
            terminalreporter.write_sep("=", "D-Score")
            for line in lines:
                terminalreporter.write_line(line)

    def _unjudged(self) -> list[str]:
        """Say so where declared gates did not run: deselected by the user, or dropped by somebody's conftest.py."""
        declared = sum(len(model.thresholds()) for model in self.settings.models.values())
        missing = declared - len(self._judged)
        return [f"{missing} of {declared} declared gates did not run.", ""] if missing else []

    def pytest_unconfigure(self) -> None:
        if self._own_directory is not None:
            shutil.rmtree(self._own_directory, ignore_errors=True)

    # Parts

    @property
    def scorer(self) -> Scorer:
        """Made on first use: it imports torch."""
        if self._scorer is None:
            from pytest_dscore.gates.scoring import Scorer, worker_threads
            from pytest_dscore.gates.store import Cache

            worker: dict[str, Any] = getattr(self.config, "workerinput", {})
            shared = Path(worker[_SHARED]) if _SHARED in worker else None
            threads = worker_threads(int(worker["workercount"])) if worker else None
            self._scorer = Scorer(
                self.settings.root,
                Cache(self._cache_directory(), read=not self.config.getoption("dscore_no_cache")),
                shared,
                threads,
                self._operators,
                progress_bar(self.config),
            )
        return self._scorer

    def shared_directory(self) -> str:
        """The directory that this run's xdist workers share, made on first use and removed at the end."""
        if self._own_directory is None:
            self._own_directory = tempfile.mkdtemp(prefix="pytest-dscore-")
        return self._own_directory

    def _cache(self) -> pytest.Cache | None:
        return getattr(self.config, "cache", None)

    def _cache_directory(self) -> Path | None:
        cache = self._cache()
        try:
            return cache.mkdir("dscore") if cache else None
        except OSError:
            # A cache that cannot be written must not fail a gate.
            return None

    def _operator_names(self) -> tuple[str, ...]:
        return (*OPERATOR_NAMES, *self._operators)


def fail(item: pytest.Item, lines: list[str]) -> NoReturn:
    """Fail a test with these lines and its place, without a traceback of ours."""
    item.stash[_REFUSED] = True
    raise pytest.fail.Exception("\n".join([*lines, location(item)]), pytrace=False) from None


class _Distribution:
    """Hooks of pytest-xdist, registered only where it is there."""

    def __init__(self, gates: GateSession) -> None:
        self._gates = gates

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker where this run's results are shared."""
        node.workerinput[_SHARED] = self._gates.shared_directory()


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
