"""The gate of D-Scores: declared models, marked tests and the ``dscore`` fixture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_dscore.errors import DScoreError, SettingsError
from pytest_dscore.gates.exhibits import exhibit_properties
from pytest_dscore.gates.items import DeclaredGate, GateItem, Property, refuse_two_marks
from pytest_dscore.gates.progress import progress_bar
from pytest_dscore.gates.recording import Recorder, fail
from pytest_dscore.gates.workers import threads_here
from pytest_dscore.names import OPERATOR_NAMES
from pytest_dscore.settings import ModelSettings, Settings, marker_settings

if TYPE_CHECKING:
    from pytest_dscore.gates.holdouts import HoldoutGates
    from pytest_dscore.gates.judge import Comparison
    from pytest_dscore.gates.scoring import Scorer
    from pytest_dscore.gates.store import Measured
    from pytest_dscore.score import DScore
    from pytest_dscore.score.operators import Operator

#: Key of xdist's worker input under which a worker finds the directory that the run's workers share.
SHARED = "dscore_shared"


class ScoreGates:
    """Scores models and judges them.

    Parameters
    ----------
    config
        pytest's.
    settings
        The project's.
    recorder
        Where verdicts go.
    operators
        Mutation operators of other plugins.
    holdouts
        Charges the hold-outs that a model is scored on.
    """

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        recorder: Recorder,
        operators: Mapping[str, Operator],
        holdouts: HoldoutGates,
    ) -> None:
        self._config = config
        self._settings = settings
        self._recorder = recorder
        self._operators = operators
        self._holdouts = holdouts
        self._scorer: Scorer | None = None

    @property
    def header(self) -> str:
        """What the head of the run says."""
        return ", ".join(self._settings.models)

    def declared(self) -> Iterator[DeclaredGate]:
        """The gates of the declared models."""
        for name, settings in self._settings.models.items():
            for gate, threshold in settings.thresholds().items():
                yield _declared(self, name, settings, gate, threshold)

    def result_for(self, item: pytest.Item) -> DScore:
        """The result behind the `dscore` fixture."""
        marker = item.get_closest_marker("dscore")
        if marker is None:
            fail(item, ["the dscore fixture needs @pytest.mark.dscore(model=...) on the test, which names the model"])
        name, settings = self._marked(item, marker)
        try:
            result, measured = self.scorer.score(name, settings)
            self._charge(name, settings, measured)
        except DScoreError as error:
            self._refuse(item, name, settings.thresholds(), error)
        return result

    def before_body(self, item: pytest.Item) -> None:
        """Judge a marked test's thresholds before its body runs."""
        marker = item.get_closest_marker("dscore")
        if marker is None or isinstance(item, GateItem):
            return
        name, settings = self._marked(item, marker)
        if not settings.thresholds() and "dscore" not in getattr(item, "fixturenames", ()):
            sentence = "@pytest.mark.dscore names no threshold and the test does not use the dscore fixture"
            fail(item, [f"{sentence}, so it would always pass: add min_score = ... or the fixture"])
        self._recorder.announce(item, _known(name, settings.thresholds()))
        self.enforce(item, name, settings, settings.thresholds())

    def after_body(self, item: pytest.Item) -> None:
        """Nothing: the thresholds were judged before."""

    def enforce(self, item: pytest.Item, name: str, settings: ModelSettings, thresholds: Mapping[str, float]) -> None:
        """Score, record the verdicts with the item, and fail the test where one is not met."""
        from pytest_dscore.gates.judge import Policy, judge
        from pytest_dscore.gates.scoring import versions
        from pytest_dscore.report.terminal import details

        try:
            result, measured = self.scorer.score(name, settings)
            charges = self._charge(name, settings, measured)
            comparison = self._compare(name, settings, result, measured)
        except DScoreError as error:
            self._refuse(item, name, thresholds, error)
        policy = Policy(settings.inconclusive, settings.strict)
        verdicts = judge(
            name, result, measured, thresholds, versions(), charges=charges, comparison=comparison, policy=policy
        )
        self._recorder.record(item, verdicts)
        self._recorder.announce(item, exhibit_properties(item, measured, thresholds, settings.thresholds(), charges))
        failed = [verdict for verdict in verdicts if verdict.failed]
        if failed:
            lines = [verdict.reason for verdict in failed] + details(failed[0])
            fail(item, lines)

    def _charge(self, name: str, settings: ModelSettings, measured: Measured) -> tuple[str, ...]:
        """Charge the hold-outs that a score was made on; where one refuses, the score is not kept either."""
        try:
            return self._holdouts.charge_score(name, settings, measured)
        except DScoreError:
            self.scorer.forget(name, settings)
            raise

    def _compare(self, name: str, settings: ModelSettings, result: DScore, measured: Measured) -> Comparison:
        """Compare with the baseline where a drop is judged; record the score as the new one where that is asked for."""
        from pytest_dscore.gates.baseline import Baselines
        from pytest_dscore.gates.judge import Comparison
        from pytest_dscore.gates.scoring import versions
        from pytest_dscore.holdout.provenance import git_commit
        from pytest_dscore.score.change import changes

        baselines = Baselines(self._settings.root)
        if self._config.getoption("dscore_update_baseline"):
            baselines.record(name, settings, result, measured, versions(), git_commit(self._settings.root))
            return Comparison(recorded=True)
        if settings.max_drop is None:
            return Comparison()
        try:
            found = baselines.find(name, settings, measured, versions())
        except DScoreError as error:
            return Comparison(problem=str(error))
        then = found.measured.hits
        return Comparison(found, changes(result.hits, then.hits, result, result.classes, then.classes))

    def _marked(self, item: pytest.Item, marker: pytest.Mark) -> tuple[str, ModelSettings]:
        try:
            refuse_two_marks(item, "dscore")
            if marker.args:
                raise SettingsError(f"@pytest.mark.dscore takes keywords only: write model={marker.args[0]!r}")
            return marker_settings(marker.kwargs, self._settings.models, (*OPERATOR_NAMES, *self._operators))
        except SettingsError as error:
            fail(item, [str(error)])

    def _refuse(self, item: pytest.Item, name: str, thresholds: Mapping[str, float], error: DScoreError) -> NoReturn:
        from pytest_dscore.gates.judge import cannot_judge

        verdicts = cannot_judge(name, thresholds, error)
        self._recorder.record(item, verdicts)
        fail(item, [verdicts[0].reason])

    @property
    def scorer(self) -> Scorer:
        """Made on first use: it imports torch."""
        if self._scorer is None:
            from pytest_dscore.gates.scoring import Scorer
            from pytest_dscore.gates.store import Cache

            worker: dict[str, Any] = getattr(self._config, "workerinput", {})
            shared = Path(worker[SHARED]) if SHARED in worker else None
            self._scorer = Scorer(
                self._settings.root,
                Cache(cache_directory(self._config), read=not self._config.getoption("dscore_no_cache")),
                shared,
                threads_here(self._config),
                self._operators,
                progress_bar(self._config, "D-Score of"),
            )
        return self._scorer


def _declared(gates: ScoreGates, name: str, settings: ModelSettings, gate: str, threshold: float) -> DeclaredGate:
    thresholds = {gate: threshold}
    known = tuple(_known(name, thresholds))
    return DeclaredGate(
        name,
        gate,
        f"models.{name}",
        gate.partition(".")[0],
        known,
        lambda item: gates.enforce(item, name, settings, thresholds),
    )


def _known(name: str, thresholds: Mapping[str, float]) -> list[Property]:
    return [("dscore.model", name), *((f"dscore.threshold.{gate}", limit) for gate, limit in thresholds.items())]


def cache_directory(config: pytest.Config) -> Path | None:
    """Where results are kept from run to run; None where pytest's cache is off or cannot be written."""
    cache: pytest.Cache | None = getattr(config, "cache", None)
    try:
        return cache.mkdir("dscore") if cache else None
    except OSError:
        # A cache that cannot be written must not fail a gate.
        return None
