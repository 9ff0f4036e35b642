"""What a D-Score costs a hold-out: it asks 2 n^2 + 1 questions of its data."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pytest_dscore.errors import DScoreError
from pytest_dscore.gates.holdout_judge import remarks
from pytest_dscore.gates.store import Measured
from pytest_dscore.holdout.analyse import analyse
from pytest_dscore.holdout.charging import Charged, charge, coupling_explained, feedback_of
from pytest_dscore.holdout.ledger import HoldoutIdentity, Use, overlap
from pytest_dscore.holdout.terms import Terms
from pytest_dscore.holdout.wording import sentence
from pytest_dscore.score.examples import load_examples
from pytest_dscore.settings import ModelSettings

if TYPE_CHECKING:
    from pytest_dscore.gates.holdouts import HoldoutGates

_RECIPE = {"n", "operator", "pad", "fill", "seed", "bf16"}


def charge_for(
    gates: HoldoutGates,
    name: str,
    model: str,
    settings: ModelSettings,
    measured: Measured,
    done: dict[tuple[str, str, str], str],
) -> str:
    """Charge one hold-out for one model's D-Score, unless they have no examples in common.

    Parameters
    ----------
    gates
        Has the data and the ledger.
    name
        Of the hold-out.
    model, settings
        The model as declared.
    measured
        Its outcomes.
    done
        Sentences of what was charged in this run already.

    Returns
    -------
    str
        A sentence on what it cost; empty where nothing was to be charged.

    Raises
    ------
    DScoreError
        The budget does not allow it, or its feedback forbids exact scores.
    """
    data = gates.data(name, settings.data)
    identity = data.identity
    if not overlap(identity, gates.data(name).identity).related:
        return ""
    recipe = hashlib.sha256(settings.model_dump_json(include=_RECIPE).encode()).hexdigest()[:16]
    key = (name, identity.digest, f"{measured.model_fingerprint} {measured.data_fingerprint} {recipe}")
    if key not in done:
        if load_examples(data.inputs, data.labels).fingerprint() != measured.data_fingerprint:
            raise DScoreError(
                f"hold-out '{name}': '{settings.data}' returned other examples, or the same in another order, than "
                "when the model was scored: it must return the same each time; seed it"
            )
        done[key] = _charge(gates, name, model, identity, measured, recipe)
    return done[key]


def _charge(
    gates: HoldoutGates, name: str, model: str, identity: HoldoutIdentity, measured: Measured, recipe: str
) -> str:
    declared, terms = gates.settings.holdouts[name], gates.terms(name)
    if feedback_of(terms) != "exact":
        raise DScoreError(
            f"its data are those of hold-out '{name}', whose feedback is '{terms.feedback}', and a D-Score shows exact "
            "accuracies: score it on other data"
        )
    wrong = ~measured.hits.hits
    rows = wrong if declared.charge == "all" else wrong[:1]
    commit, ran_by = gates.origin
    uses = [
        Use.of(identity, row, model=_key(measured, recipe, number, identity.ordered(row)), commit=commit, ran_by=ran_by)
        for number, row in enumerate(rows)
    ]
    charged = charge(
        gates.ledger(name), identity, terms, uses, lambda existing, new: f"D-Score of '{model}' shown", gates.cache
    )
    with coupling_explained():
        return _sentence(charged, terms, rows, len(wrong), gates.place(name))


def _key(measured: Measured, recipe: str, number: int, wrong: NDArray[np.bool_]) -> str:
    """What identifies one outcome vector of a D-Score; the first is the unchanged model on the unchanged data.

    The outcomes are part of it: a model that answers otherwise with the same weights and code (another device, what its
    ``forward`` reads) shows other figures, which are other uses.
    """
    digest = hashlib.sha256(wrong.tobytes()).hexdigest()[:16]
    return f"{measured.model_fingerprint}#{recipe}-{number}@{digest}"


def _sentence(charged: Charged, terms: Terms, rows: NDArray[np.bool_], asked: int, place: str) -> str:
    state = sentence(charged.budget, terms.name)
    warned = "".join(f" {remark}." for remark in remarks(charged.budget, charged.new, place))
    if len(rows) < asked:
        return (
            f"{state}. Charged for the clean accuracy only (charge = 'clean'): the other {asked - 1} accuracies behind "
            f"this score are not counted, so nothing is guaranteed for them.{warned}"
        )
    assert terms.epsilon is not None
    distinct = np.unique(rows, axis=0)
    alone = analyse(distinct, epsilon=terms.epsilon, delta=terms.delta).effective_models
    return (
        f"{state}. The {asked} accuracies behind this score are {len(distinct)} different answers ({charged.new} new "
        f"on record), and count as {alone:.1f} independent models.{warned}"
    )
