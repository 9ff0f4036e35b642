"""The gate of hold-outs: declared budgets, marked tests, the ``holdout`` fixture, and what a D-Score costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dscore.errors import DScoreError, SettingsError
from pytest_dscore.gates.items import DeclaredGate, GateItem, Property, refuse_two_marks
from pytest_dscore.gates.recording import Recorder, fail
from pytest_dscore.names import unknown_name
from pytest_dscore.settings import HoldoutSettings, ModelSettings, Settings
from pytest_dscore.verdict import Verdict

if TYPE_CHECKING:
    from pytest_dscore.gates.holdout_data import HoldoutData
    from pytest_dscore.gates.holdout_use import Holdout
    from pytest_dscore.gates.store import Measured
    from pytest_dscore.holdout.ledger import Ledger

#: Whether a test has had anything judged on its hold-out.
_USED = pytest.StashKey[bool]()


class HoldoutGates:
    """Judges the budgets of hold-outs and hands out scores on them.

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
        self._data: dict[tuple[str, str], HoldoutData | DScoreError] = {}
        self._ledgers: dict[str, Ledger] = {}
        self._checked: set[str] = set()
        self._charged: dict[tuple[str, str, str], str] = {}

    @property
    def header(self) -> str:
        """What the head of the run says."""
        names = ", ".join(self.settings.holdouts)
        return f"hold-out{'s' if len(self.settings.holdouts) > 1 else ''} {names}" if names else ""

    def declared(self) -> Iterator[DeclaredGate]:
        """One gate for each declared hold-out: that its budget still holds."""
        for name, settings in self.settings.holdouts.items():
            yield _declared(self, name, settings)

    def judge_budget(self, item: pytest.Item, name: str) -> None:
        """Fail the item where the ledger is not whole, the data changed, or the budget is overspent."""
        from pytest_dscore.gates.holdout_judge import budget_verdict, cannot_judge
        from pytest_dscore.holdout.charging import budget_on_record, coupling_explained

        try:
            with coupling_explained():
                budget = budget_on_record(self.ledger(name), self.data(name).identity, self.terms(name), self.cache)
                changed = self.changed(name)
                verdict = budget_verdict(name, budget, self.terms(name), self.place(name), changed)
        except DScoreError as error:
            verdict = cannot_judge(name, "budget", error)
        self.recorder.record(item, [verdict])
        if verdict.outcome != "pass":
            fail(item, [verdict.reason])

    def before_body(self, item: pytest.Item) -> None:
        """Refuse a marked test that could judge nothing."""
        marker = item.get_closest_marker("holdout")
        if marker is None or isinstance(item, GateItem):
            return
        name = self._named(item, marker)
        self.recorder.announce(item, known(name, self.settings.holdouts[name]))
        if "holdout" not in getattr(item, "fixturenames", ()):
            fail(item, ["@pytest.mark.holdout is on a test without the holdout fixture, so nothing would be judged"])

    def after_body(self, item: pytest.Item) -> None:
        """Fail a test that passed without having evaluated anything."""
        marker = item.get_closest_marker("holdout")
        if marker is None or isinstance(item, GateItem):
            return
        if not item.stash.get(_USED, False):
            name = self._named(item, marker)
            what = "the test passed without evaluating anything on it"
            fail(item, [f"hold-out '{name}': {what}: call holdout.evaluate(model) or holdout.record(...)"])

    def fixture(self, item: pytest.Item) -> Holdout:
        """The value of the ``holdout`` fixture."""
        from pytest_dscore.gates.holdout_use import Holdout

        # A rerun of the item begins anew.
        item.stash[_USED] = False
        marker = item.get_closest_marker("holdout")
        if marker is None:
            fail(item, ['the holdout fixture needs @pytest.mark.holdout("NAME") on the test, which names the hold-out'])
        return Holdout(self, item, self._named(item, marker))

    def judged(self, item: pytest.Item, verdicts: Sequence[Verdict]) -> None:
        """Record what a use came to, and fail the test where it did not pass."""
        failed = [verdict.reason for verdict in verdicts if verdict.outcome not in ("pass", "report")]
        item.stash[_USED] = True
        self.recorder.record(item, verdicts)
        if failed:
            fail(item, failed)

    def charge_score(self, model: str, settings: ModelSettings, measured: Measured) -> tuple[str, ...]:
        """Charge the hold-outs whose examples a D-Score was made on, before any of its figures is shown.

        Returns
        -------
        tuple of str
            A sentence for each hold-out charged.

        Raises
        ------
        DScoreError
            A budget does not allow it, or a ledger cannot be used; nothing may be shown.
        """
        if not self.settings.holdouts:
            return ()
        from pytest_dscore.gates.holdout_score import charge_for

        return tuple(
            sentence
            for name in self.settings.holdouts
            if (sentence := charge_for(self, name, model, settings, measured, self._charged))
        )

    # Parts

    def data(self, name: str, reference: str | None = None) -> HoldoutData:
        """The examples of a hold-out, or those of another data function under its name; loaded once."""
        from pytest_dscore.gates.holdout_data import load_holdout

        key = (name, reference or self.settings.holdouts[name].data)
        if key not in self._data:
            try:
                self._data[key] = load_holdout(*key, self.settings.root)
            except DScoreError as error:
                self._data[key] = error
        found = self._data[key]
        if isinstance(found, DScoreError):
            raise found
        return found

    def ledger(self, name: str) -> Ledger:
        """The ledger of a hold-out, unless another declaration keeps the uses of its examples elsewhere.

        Raises
        ------
        DScoreError
            One does, or the ledger cannot be opened, or the data not be loaded.
        """
        from pytest_dscore.holdout.apart import refuse_second_ledger

        if name not in self._checked:
            urls = {key: one.ledger for key, one in self.settings.holdouts.items()}
            refuse_second_ledger(name, self.data(name).identity, urls, self._open)
            self._checked.add(name)
        return self._open(self.settings.holdouts[name].ledger)

    def _open(self, url: str) -> Ledger:
        """The ledger at a URL, opened once."""
        from pytest_dscore.holdout.ledger import open_ledger

        if url not in self._ledgers:
            self._ledgers[url] = open_ledger(url, root=self.settings.root)
        return self._ledgers[url]

    def changed(self, name: str) -> list[str]:
        """A remark where a hold-out's examples are not those on record, but share some with them."""
        from pytest_dscore.gates.holdout_judge import other_examples

        identity = self.data(name).identity
        ledger = self.ledger(name)
        related = ledger.related(identity)
        if not related or any(found.digest == identity.digest for found in related):
            return []
        sizes = {one.digest: one.n for one in ledger.holdouts()}
        return [other_examples(identity.n, [(found, sizes[found.digest]) for found in related])]

    def terms(self, name: str) -> Any:
        """The terms of a hold-out."""
        from pytest_dscore.holdout.terms import Terms

        return Terms.of(name, self.settings.holdouts[name])

    def place(self, name: str) -> str:
        """Where the ledger lies, without passwords, as the project writes it."""
        from pytest_dscore.holdout.ledger import redact

        return redact(self.settings.holdouts[name].ledger)

    @cached_property
    def cache(self) -> Path | None:
        """Where what many models cost is kept from run to run."""
        from pytest_dscore.gates.scores import cache_directory

        return cache_directory(self.config)

    @cached_property
    def origin(self) -> tuple[str | None, str]:
        """The commit, and what ran it."""
        from pytest_dscore.holdout.provenance import git_commit, ran_by

        return git_commit(self.settings.root), ran_by()

    def _named(self, item: pytest.Item, marker: pytest.Mark) -> str:
        try:
            refuse_two_marks(item, "holdout")
            return _name_of(marker, self.settings.holdouts)
        except SettingsError as error:
            fail(item, [str(error)])


def _name_of(marker: pytest.Mark, declared: dict[str, HoldoutSettings]) -> str:
    if marker.kwargs or len(marker.args) > 1 or not all(isinstance(name, str) for name in marker.args):
        raise SettingsError('@pytest.mark.holdout takes the name of a hold-out: write @pytest.mark.holdout("NAME")')
    if not declared:
        raise SettingsError("no hold-out is declared in pyproject.toml: add a table [tool.dscore.holdouts.NAME]")
    if not marker.args and len(declared) > 1:
        raise SettingsError(f"several hold-outs are declared ({', '.join(declared)}): say which in the marker")
    name: str = marker.args[0] if marker.args else next(iter(declared))
    if name not in declared:
        raise SettingsError(unknown_name("hold-out", name, declared))
    return name


def _declared(gates: HoldoutGates, name: str, settings: HoldoutSettings) -> DeclaredGate:
    return DeclaredGate(
        name,
        "budget",
        f"holdouts.{name}",
        "epsilon",
        tuple(known(name, settings)),
        lambda item: gates.judge_budget(item, name),
    )


def known(name: str, settings: HoldoutSettings) -> list[Property]:
    """Properties that are known before anything is judged."""
    found: list[Property] = [("dscore.holdout", name), ("dscore.holdout.threshold.budget", settings.epsilon)]
    if settings.min_accuracy is not None:
        found.append(("dscore.holdout.threshold.min_accuracy", settings.min_accuracy))
    return found
