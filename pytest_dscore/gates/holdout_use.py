"""The ``holdout`` fixture: scores on a hold-out, each charged before it is shown."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_dscore.errors import DScoreError
from pytest_dscore.figure import Figure
from pytest_dscore.gates.holdout_judge import Answer, answer_of, cannot_judge, shown_of, use_verdicts
from pytest_dscore.gates.predicting import answers_key, as_labels, model_key, predict, wrong_where
from pytest_dscore.holdout.charging import Charged, charge, coupling_explained
from pytest_dscore.holdout.checks import outcome_vector
from pytest_dscore.holdout.ledger import Use

if TYPE_CHECKING:
    from pytest_dscore.gates.holdouts import HoldoutGates


@dataclass(frozen=True)
class HoldoutUse:
    """A model's use of a hold-out that is on record.

    Parameters
    ----------
    holdout
        Name of the hold-out.
    is_new
        Whether it was charged now; False for a model, or answers, that were on record already.
    message
        One sentence on what is used and what remains.
    models_used
        Models charged so far, this one included.
    effective_models
        The number of independent models that would cost as much.
    models_remaining
        How many more models like these there may be; None where there is no limit.
    improved
        With ``feedback = "ladder"``: whether it beat the best so far by a step. None otherwise.
    """

    holdout: str
    is_new: bool
    message: str
    models_used: int
    effective_models: float
    models_remaining: int | None
    improved: bool | None = None
    _answer: Answer = field(default=Answer(), repr=False)

    @property
    def accuracy(self) -> float:
        """Share of examples that the model got right, in [0, 1], as on record.

        Not there where the hold-out's feedback hides it: the test then fails.
        """
        __tracebackhide__ = True
        return self.interval.value

    @property
    def interval(self) -> Figure:
        """The accuracy with its simultaneous interval.

        It is value +- epsilon: with probability 1 - delta the true accuracies of *all* models that are ever admitted to
        this hold-out lie within theirs (Mania et al. 2019), under the assumptions of its bound and mode.
        """
        __tracebackhide__ = True
        if self._answer.figure is None:
            raise pytest.fail.Exception(f"hold-out '{self.holdout}': {self._answer.hidden}", pytrace=False)
        return self._answer.figure


class Holdout:
    """Scores models on one hold-out; made by the ``holdout`` fixture.

    A use is on record before its score is shown. One that the budget does not allow fails the test and shows none.

    Attributes
    ----------
    name
        Of the hold-out.
    """

    def __init__(self, gates: HoldoutGates, item: pytest.Item, name: str) -> None:
        self._gates = gates
        self._item = item
        self.name = name

    @property
    def inputs(self) -> Any:
        """The inputs, as the hold-out's data function returned them; a copy."""
        try:
            return copy.deepcopy(self._gates.data(self.name).inputs)
        except DScoreError as error:
            self._refuse(error)

    @property
    def labels(self) -> NDArray[Any]:
        """The labels, shape (n,); a copy."""
        try:
            return self._gates.data(self.name).labels.copy()
        except DScoreError as error:
            self._refuse(error)

    def evaluate(self, model: Any, *, name: str = "", batch_size: int = 256) -> HoldoutUse:
        """Score a model.

        Parameters
        ----------
        model
            A torch module that returns logits, an estimator with ``predict``, or a function of the inputs that returns
            labels.
        name
            What to call it on record, where it is no torch module; identifies nothing.
        batch_size
            Examples that a torch module sees at a time.
        """
        __tracebackhide__ = True
        try:
            data = self._gates.data(self.name)
            wrong = wrong_where(predict(model, data.inputs, batch_size), data.labels, "the model made")
            key = model_key(model, data.identity.ordered(wrong), self._gates.settings.root, name)
            return self._charge(wrong, key)
        except DScoreError as error:
            self._refuse(error)

    def record(
        self, *, predictions: Any = None, labels: Any = None, outcomes: Any = None, name: str = "predictions"
    ) -> HoldoutUse:
        """Score predictions, or outcomes, that the test made itself.

        Parameters
        ----------
        predictions
            Predicted labels, shape (n,), in the order of the hold-out's data.
        labels
            What they are to be compared with; must be the hold-out's own, whose order they confirm.
        outcomes
            In place of predictions: shape (n,), 1 or True where the model is wrong.
        name
            What to call the model on record; identifies nothing.
        """
        __tracebackhide__ = True
        try:
            data = self._gates.data(self.name)
            wrong = _outcomes(data.labels, predictions, labels, outcomes)
            return self._charge(wrong, answers_key(name, data.identity.ordered(wrong)))
        except DScoreError as error:
            self._refuse(error)

    def _charge(self, wrong: NDArray[np.bool_], key: str) -> HoldoutUse:
        __tracebackhide__ = True
        gates, name = self._gates, self.name
        settings, terms = gates.settings.holdouts[name], gates.terms(name)
        identity = gates.data(name).identity
        commit, ran_by = gates.origin
        use = Use.of(identity, wrong, model=key, commit=commit, ran_by=ran_by)
        charged = charge(gates.ledger(name), identity, terms, [use], shown_of(settings), gates.cache)
        answer = answer_of(settings, charged.recorded[0].use)
        with coupling_explained():
            verdicts = use_verdicts(name, settings, charged, answer, _differing(charged, use), gates.place(name))
            found = _use_of(name, charged, answer, verdicts[0].facts["sentence"])
        gates.judged(self._item, verdicts)
        return found

    def _refuse(self, error: DScoreError) -> NoReturn:
        __tracebackhide__ = True
        self._gates.judged(self._item, [cannot_judge(self.name, "budget", error)])
        raise AssertionError("a verdict of error fails the test")


def _use_of(name: str, charged: Charged, answer: Answer, message: str) -> HoldoutUse:
    budget = charged.budget
    return HoldoutUse(
        name,
        charged.recorded[0].is_new,
        message,
        budget.used,
        budget.effective,
        budget.limit,
        answer.improved,
        answer,
    )


def _differing(charged: Charged, use: Use) -> int:
    """Return on how many examples the answers now differ from those on record for the same model."""
    kept = int.from_bytes(charged.recorded[0].use.outcomes, "big")
    return (kept ^ int.from_bytes(use.outcomes, "big")).bit_count()


def _outcomes(own: NDArray[Any], predictions: Any, labels: Any, outcomes: Any) -> NDArray[np.bool_]:
    if (predictions is None) == (outcomes is None):
        raise DScoreError("holdout.record takes predictions=... or outcomes=..., one of the two")
    if labels is not None:
        given = as_labels(labels, "labels= is")
        if len(given) != len(own):
            raise DScoreError(f"labels= holds {len(given):,} labels, the hold-out has {len(own):,} examples")
        changed = np.flatnonzero(given != own)
        if len(changed):
            rows = ", ".join(map(str, changed[:10])) + (", ..." if len(changed) > 10 else "")
            raise DScoreError(
                f"labels= differs from the hold-out's own labels in {len(changed):,} rows ({rows}): give predictions "
                "in the order of the hold-out's data, see holdout.inputs and holdout.labels"
            )
    if outcomes is not None:
        values = outcomes.detach().cpu().numpy() if hasattr(outcomes, "detach") else outcomes
        try:
            return outcome_vector(values, len(own))
        except ValueError as error:
            raise DScoreError("outcomes= holds rows that differ in length: give one 0 or 1 per example") from error
    return wrong_where(as_labels(predictions, "predictions= is"), own, "predictions= holds")
