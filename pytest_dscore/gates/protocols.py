"""The gate of protocols: declared ones, marked tests, and the ``nested_cv`` and ``leak_probe`` fixtures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from pytest_dscore.errors import DScoreError, SettingsError
from pytest_dscore.gates.items import DeclaredGate, GateItem, Property, refuse_two_marks
from pytest_dscore.gates.progress import progress_bar
from pytest_dscore.gates.recording import Recorder, fail
from pytest_dscore.gates.workers import threads_here
from pytest_dscore.names import GATE_FIXTURES
from pytest_dscore.requested import requests
from pytest_dscore.settings import ProtocolMark, ProtocolSettings, Settings, protocol_mark
from pytest_dscore.verdict import Verdict

if TYPE_CHECKING:
    from pytest_dscore.gates.protocol_data import LoadedProtocol
    from pytest_dscore.gates.protocol_use import LeakProbe, NestedCV
    from pytest_dscore.gates.scoring import ProgressBar

#: How often a test has had something judged by each fixture.
_USES = pytest.StashKey[dict[str, int]]()
#: What a test that judged nothing has to call.
_CALLS = {
    "nested_cv": "nested_cv(estimator, param_grid, X, y)",
    "leak_probe": "leak_probe(protocol, X, y, splits) or leak_probe.data(X_train, X_test)",
}
_T = TypeVar("_T")


class ProtocolGates:
    """Judges the errors of protocols, and whether they leak.

    Parameters
    ----------
    config
        pytest's.
    settings
        The project's.
    recorder
        Where verdicts go.
    """

    def __init__(self, config: pytest.Config, settings: Settings, recorder: Recorder) -> None:
        self.config = config
        self.settings = settings
        self.recorder = recorder
        self.threads = threads_here(config)
        self._made: dict[tuple[str, str], Any] = {}
        self._shared_names: set[str] = set()

    @property
    def header(self) -> str:
        """What the head of the run says."""
        names = ", ".join(self.settings.protocols)
        return f"protocol{'s' if len(self.settings.protocols) > 1 else ''} {names}" if names else ""

    def note_names(self, items: Iterable[pytest.Item]) -> None:
        """Note which names several tests share, so that their reports are not taken for one."""
        tests = (item.name for item in items if any(requests(item, fixture) for fixture in GATE_FIXTURES))
        self._shared_names = {name for name, count in Counter(tests).items() if count > 1}

    def subject(self, item: pytest.Item) -> str:
        """What reports call the protocol of a test that gives it no name: the test's, or its id."""
        return item.nodeid if item.name in self._shared_names else item.name

    def declared(self) -> Iterator[DeclaredGate]:
        """One gate for each threshold, for the probe and for the manifest of each declared protocol."""
        for name, settings in self.settings.protocols.items():
            for gate, key in _gates_of(settings):
                yield _declared(self, name, settings, gate, key)

    def place(self, verdict: Verdict) -> int:
        """Where a verdict stands among those of a declared protocol; 0 for other subjects."""
        settings = self.settings.protocols.get(verdict.subject)
        gates = [gate for gate, _ in _gates_of(settings)] if settings else []
        return gates.index(verdict.gate) if verdict.gate in gates else 0

    def judge(self, item: pytest.Item, name: str, gate: str) -> None:
        """Judge one gate of a declared protocol, and fail the item where it is not met."""
        from pytest_dscore.gates.protocol_declared import verdict_on
        from pytest_dscore.gates.protocol_judge import cannot_judge

        try:
            verdict = verdict_on(self, name, gate)
        except DScoreError as error:
            threshold = self.settings.protocols[name].thresholds().get(gate)
            verdict = cannot_judge(name, gate, error, threshold)
        self.judged(item, verdict)

    def before_body(self, item: pytest.Item) -> None:
        """Refuse a marked test that could judge nothing."""
        if isinstance(item, GateItem):
            return
        if item.get_closest_marker("nested_cv") is None:
            if any(requests(item, fixture) for fixture in GATE_FIXTURES):
                self.recorder.announce(item, known(self.subject(item), None))
            return
        mark = self.mark(item)
        self.recorder.announce(item, known(mark.name or self.subject(item), mark.max_error))
        if not requests(item, "nested_cv"):
            fail(
                item, ["@pytest.mark.nested_cv is on a test without the nested_cv fixture, so nothing would be judged"]
            )

    def after_body(self, item: pytest.Item) -> None:
        """Fail a test that passed without having judged anything by a fixture that it asked for."""
        uses = item.stash.get(_USES, {})
        for fixture in GATE_FIXTURES:
            if (requests(item, fixture) or fixture in uses) and not uses.get(fixture):
                what = f"the test passed without calling {fixture}, so nothing was judged"
                fail(item, [f"protocol '{self.subject(item)}': {what}: call {_CALLS[fixture]}"])

    def nested_cv(self, item: pytest.Item) -> NestedCV:
        """The value of the ``nested_cv`` fixture."""
        from pytest_dscore.gates.protocol_use import NestedCV

        self._begin(item, "nested_cv")
        return NestedCV(self, item)

    def leak_probe(self, item: pytest.Item) -> LeakProbe:
        """The value of the ``leak_probe`` fixture."""
        from pytest_dscore.gates.protocol_use import LeakProbe

        self._begin(item, "leak_probe")
        return LeakProbe(self, item)

    def _begin(self, item: pytest.Item, fixture: str) -> None:
        """Count the uses of a fixture from 0: a rerun of a test makes its fixtures anew."""
        item.stash.setdefault(_USES, {})[fixture] = 0

    def judged(self, item: pytest.Item, verdict: Verdict, fixture: str = "") -> None:
        """Record a verdict, count the use of a fixture, and fail the test where it is none to pass with."""
        from pytest_dscore.report.protocol_lines import failure_lines

        if fixture:
            item.stash[_USES][fixture] += 1
        self.recorder.record(item, [verdict])
        if verdict.failed:
            fail(item, [verdict.reason, *failure_lines(verdict)])

    # Parts

    def mark(self, item: pytest.Item) -> ProtocolMark:
        """What a test's mark says, checked; the defaults where it has none."""
        marker = item.get_closest_marker("nested_cv")
        if marker is None:
            return protocol_mark({})
        try:
            refuse_two_marks(item, "nested_cv")
            if marker.args:
                raise SettingsError(f"@pytest.mark.nested_cv takes keywords only: write max_error={marker.args[0]!r}")
            return protocol_mark(marker.kwargs)
        except SettingsError as error:
            fail(item, [str(error)])

    def loaded(self, name: str) -> LoadedProtocol:
        """A declared protocol, loaded once."""
        from pytest_dscore.gates.protocol_data import load_protocol

        return self.once(name, "loaded", lambda: load_protocol(self.settings.protocols[name]))

    def once(self, name: str, part: str, make: Callable[[], _T]) -> _T:
        """What `make` returns (or the error that it raises), made once for all gates of a declared protocol."""
        key = (name, part)
        if key not in self._made:
            try:
                with self.running("it"):
                    self._made[key] = make()
            except DScoreError as error:
                self._made[key] = error
        found = self._made[key]
        if isinstance(found, DScoreError):
            raise found
        result: _T = found
        return result

    def running(self, what: str) -> AbstractContextManager[None]:
        """A context for somebody's code, called `what` in messages (see `users_code`)."""
        from pytest_dscore.gates.protocol_data import users_code

        return users_code(what, self.settings.root, self.threads)

    def jobs(self, asked: int) -> int:
        """How many folds to run at a time: one in a worker of xdist, as the others use the machine too."""
        return asked if self.threads is None else 1

    def bar(self, what: str) -> ProgressBar:
        """A progress bar, where there is a terminal."""
        return progress_bar(self.config, what)


def _gates_of(settings: ProtocolSettings) -> Sequence[tuple[str, str]]:
    """Names of gates, each with the key that asks for it."""
    gates = [(gate, gate) for gate in settings.thresholds()]
    gates += [("leaks", "probe")] if settings.probe else []
    return gates + ([("manifest", "manifest")] if settings.manifest else [])


def _declared(gates: ProtocolGates, name: str, settings: ProtocolSettings, gate: str, key: str) -> DeclaredGate:
    threshold = settings.thresholds().get(gate)
    return DeclaredGate(
        name,
        gate,
        f"protocols.{name}",
        key,
        tuple(known(name, threshold, gate)),
        lambda item: gates.judge(item, name, gate),
    )


def known(name: str, threshold: float | None, gate: str = "max_error") -> list[Property]:
    """Properties that are known before anything is judged."""
    found: list[Property] = [("dscore.protocol", name)]
    return found if threshold is None else [*found, (f"dscore.protocol.threshold.{gate}", threshold)]
