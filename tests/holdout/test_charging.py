"""Charging a hold-out: who is admitted, what is refused, and what a refusal tells.

The numbers are made by hand: SciPy's binomial for each model's own probability, sums and counts for the rest.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pytest_dscore.holdout.charging import Charged, budget_on_record, charge
from pytest_dscore.holdout.ledger import (
    HoldoutIdentity,
    HoldoutRetired,
    LabelsChanged,
    LedgerDamaged,
    LedgerMissing,
    LostRace,
    Use,
    UseRefused,
    open_ledger,
)
from pytest_dscore.holdout.terms import Terms
from tests.gates.holdout_project import N, admitted, identity, inputs, labels, outcomes, overfits

UNION = Terms("digits-test", epsilon=0.1, bound="union", known=True)
#: Of a model that answers 20 of 100 examples wrongly: off by 10 examples or more.
EACH = overfits(20, 0.1)


@pytest.fixture
def root() -> Iterator[Path]:
    """In memory where the system offers that, with a ledger that is begun."""
    memory = "/dev/shm"
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        open_ledger("ledger", root=name).begin(identity())
        yield Path(name)


def use(wrong: int, start: int = 0, of: HoldoutIdentity | None = None, model: str = "") -> Use:
    """A model that answers `wrong` examples wrongly, from number `start` on."""
    holdout = of or identity()
    return Use.of(holdout, outcomes(wrong, start)[: holdout.n], model=model or f"model {wrong} {start}")


def charged(root: Path, terms: Terms, *uses: Use, of: HoldoutIdentity | None = None) -> Charged:
    """Charge with a ledger opened anew, as another run would."""
    return charge(open_ledger("ledger", root=root), of or identity(), terms, uses, lambda existing, new: "shown")


def admissions(root: Path, terms: Terms, wrong: Sequence[int]) -> int:
    """How many of these models are admitted, one after another, until the first is refused."""
    for number, count in enumerate(wrong):
        try:
            charged(root, terms, use(count, 3 * number, model=str(number)))
        except UseRefused:
            return number
    return len(wrong)


def recorded(root: Path) -> int:
    """Uses on record."""
    return len(open_ledger("ledger", root=root).uses())


def test_the_probability_by_hand() -> None:
    # 0 and 6 or more of 6 throws of a fair coin, by counting.
    assert overfits(3, 0.5, n=6) == pytest.approx(2 / 64)
    assert overfits(3, 1 / 3, n=6) == pytest.approx((1 + 6 + 6 + 1) / 64)


@pytest.mark.parametrize(
    ("wrong", "delta", "seen"),
    [([20] * 30, 0.05, 0), ([20] * 30, 0.2, 0), ([20, 5, 30, 10] * 6, 0.2, 0), ([0] + [1] * 7 + [50] * 3, 0.1, 1)],
    ids=["two", "eleven", "mixed", "cheap ones first"],
)
def test_exactly_the_model_that_breaks_the_union_bound_is_refused(
    root: Path, wrong: list[int], delta: float, seen: int
) -> None:
    each = [overfits(count, 0.1) for count in wrong]
    allowed = admitted(wrong, 0.1, delta)
    # Where not even one more like those so far fits, the next is refused unseen, were it ever so cheap.
    while sum(each[: allowed - 1]) * allowed / (allowed - 1) > delta:
        allowed -= 1
    assert 0 < allowed < len(wrong)
    assert admissions(root, replace(UNION, delta=delta), wrong) == allowed
    assert [use.refused for use in open_ledger("ledger", root=root).uses()] == [False] * allowed + [True] * seen


def test_what_remains_is_what_is_admitted(root: Path) -> None:
    terms, allowed = replace(UNION, delta=0.1), admitted([20] * 20, 0.1, 0.1)
    for number in range(allowed):
        budget = charged(root, terms, use(20, 5 * number)).budget
        assert (budget.used, budget.limit) == (number + 1, allowed - number - 1)
        assert budget.failure_probability == pytest.approx((number + 1) * EACH)
        assert budget.union_end == allowed
    with pytest.raises(UseRefused):
        charged(root, terms, use(20, 99))


ADAPTIVE: dict[str, Callable[[int], int]] = {
    "exact": lambda k: (N + 1) ** (k - 1),
    "pass-fail": lambda k: 2**k - 1,
    # A Ladder of steps of 0.2 shows one of six values.
    "ladder": lambda k: math.comb(k + 6, 7) if k > 1 else 1,
}


@pytest.mark.parametrize("feedback", ADAPTIVE)
def test_adaptive_use_counts_the_models_that_could_have_been_asked(root: Path, feedback: Any) -> None:
    terms = replace(UNION, epsilon=0.2, mode="adaptive", feedback=feedback)
    # Hidden scores are stood for by the worst case, 50 of 100 wrong.
    each, count = overfits(20 if feedback == "exact" else 50, 0.2), ADAPTIVE[feedback]
    allowed = next(k for k in range(1, 100) if count(k + 1) * each > 0.05)
    assert allowed >= 3
    assert admissions(root, terms, [20] * 100) == allowed


def test_max_uses_ends_it_before_the_bound_does(root: Path) -> None:
    terms = replace(UNION, epsilon=0.2, max_uses=2)
    assert admissions(root, terms, [20] * 5) == 2
    with pytest.raises(UseRefused, match=r"max_uses = 2, 2 are used, and this model would exceed it: retire it"):
        charged(root, terms, use(20, 99))
    with pytest.raises(UseRefused, match=r"max_uses = 3, 2 are used, and these 2 queries would exceed it"):
        charged(root, replace(terms, max_uses=3), use(20, 98), use(20, 99))


def test_several_uses_are_charged_all_or_none(root: Path) -> None:
    terms = replace(UNION, delta=3.5 * EACH)
    charged(root, terms, use(20))
    with pytest.raises(UseRefused, match=r"There is no room for these 3 queries; .* 2 more before"):
        charged(root, terms, use(20, 5), use(20, 10), use(20, 15))
    assert recorded(root) == 1
    assert charged(root, terms, use(20, 5), use(20, 10)).new == 2


def test_the_same_model_and_the_same_answers_are_free_when_all_is_spent(root: Path) -> None:
    terms = replace(UNION, max_uses=1)
    charged(root, terms, use(20, model="mine"))
    again = charged(root, terms, use(20, model="mine"))
    renamed = charged(root, terms, use(20, model="somebody's"))
    assert (again.new, renamed.new, recorded(root)) == (0, 0, 1)
    assert renamed.recorded[0].use.model == "mine"


def test_the_same_model_with_other_answers_is_shown_what_is_on_record(root: Path) -> None:
    charged(root, UNION, use(20, model="mine"))
    again = charged(root, UNION, use(3, model="mine"))
    assert (again.new, again.recorded[0].use.wrong, again.budget.used) == (0, 20, 1)


def test_the_record_says_what_was_shown(root: Path) -> None:
    charged(root, UNION, use(20))
    charged(root, replace(UNION, epsilon=0.4, mode="adaptive", feedback="exact"), use(20, 5))
    [first, second] = open_ledger("ledger", root=root).uses()
    assert (first.verdict, second.verdict) == ("exact; shown", "exact; shown")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", first.when)


def test_a_refusal_says_what_is_used_and_what_remains(root: Path) -> None:
    terms, allowed = replace(UNION, delta=0.2), admitted([20] * 30, 0.1, 0.2)
    admissions(root, terms, [20] * allowed)
    with pytest.raises(UseRefused) as refusal:
        charged(root, terms, use(20, 99))
    assert re.fullmatch(
        r"hold-out 'digits-test': refused, no score is shown\. There is no room for this model; "
        rf"hold-out 'digits-test': {allowed} models used \(\d+ effective\), 0 more before \+-10 % no longer holds; "
        rf"the plain union bound would end at {allowed}: declare a larger epsilon \(\+-10\.01 % would do for one "
        r"more\), or retire it "
        r"\(`dscore holdout retire`\) and go on with new examples",
        str(refusal.value),
    )


ALL_BOUNDS = ["union", "similarity", "best", "empirical", "naive-bayes", "bootstrap", "theorem-2"]


def said_of(root: Path, terms: Terms, use: Use) -> str:
    """What a refusal says, and the state of the hold-out afterwards."""
    with pytest.raises(UseRefused) as refusal:
        charged(root, terms, use)
    budget = budget_on_record(open_ledger("ledger", root=root), identity(), terms)
    assert budget is not None
    figures = (budget.used, budget.limit, budget.failure_probability, budget.committed, budget.tolerance)
    return f"{refusal.value} {figures} {budget.effective} {budget.union_end} {budget.method} {budget.note}"


@pytest.mark.parametrize("bound", ALL_BOUNDS)
@pytest.mark.parametrize("earlier", [0, 2])
def test_a_refusal_is_the_same_whatever_the_score(root: Path, bound: str, earlier: int) -> None:
    lenient, strict = replace(UNION, epsilon=0.4), replace(UNION, epsilon=0.03, bound=bound)
    for number in range(earlier):
        charged(root, lenient, use(20, 5 * number))
    said = set()
    for wrong in (15, 35, 60):
        other = root / str(wrong)
        shutil.copytree(root / "ledger", other / "ledger")
        said.add(said_of(other, strict, use(wrong, 50, model="refused")))
    assert len(said) == 1
    assert recorded(root) == earlier


@pytest.mark.parametrize("bound", ["union", "best"])
def test_a_refusal_for_the_outcomes_is_the_same_whatever_they_are(root: Path, bound: str) -> None:
    terms = replace(UNION, bound=bound)
    charged(root, terms, use(1), use(1, 5), use(1, 50))
    said = set()
    for wrong in (45, 50, 55):
        other = root / str(wrong)
        shutil.copytree(root / "ledger", other / "ledger")
        said.add(said_of(other, terms, use(wrong, 20)))
        assert [one.refused for one in open_ledger("ledger", root=other).uses()] == [False, False, False, True]
    assert len(said) == 1


def refused_once(root: Path) -> Terms:
    """Terms under which one cheap model was shown, and a dear one refused though more cheap ones would have fitted."""
    terms = replace(UNION, delta=0.03)
    charged(root, terms, use(5))
    with pytest.raises(UseRefused, match=r"on record as refused, .* lucky one\. Declare a larger epsilon \(\+-1\d\."):
        charged(root, terms, use(40, 50, model="dear"))
    return terms


def test_a_model_refused_for_its_outcomes_is_on_record_and_ends_it(root: Path) -> None:
    terms = refused_once(root)
    first, second = open_ledger("ledger", root=root).uses()
    assert (first.refused, second.refused, second.verdict) == (False, True, "refused; nothing shown")
    budget = budget_on_record(open_ledger("ledger", root=root), identity(), terms)
    assert budget is not None
    # What was shown still holds; nothing else is admitted, for the refused one costs as much as one of 50 %.
    assert budget.holds
    assert budget.failure_probability == pytest.approx(overfits(5, 0.1))
    assert budget.committed == pytest.approx(overfits(5, 0.1) + overfits(50, 0.1))
    assert (budget.used, budget.limit) == (2, 0)
    for lucky in (use(0), use(5, 1), use(6, 60)):
        with pytest.raises(
            UseRefused, match=r"no room for this model; .* 2 models used \(2 effective; 1 of them refused"
        ):
            charged(root, terms, lucky)
    assert recorded(root) == 2


def test_a_larger_epsilon_opens_it_again_for_the_refused_model_too(root: Path) -> None:
    terms = refused_once(root)
    with pytest.raises(UseRefused, match=r"On \d{4}-\d\d-\d\d this model was refused"):
        charged(root, terms, use(40, 50, model="dear"))
    budget = budget_on_record(open_ledger("ledger", root=root), identity(), terms)
    assert budget is not None
    assert 0.1 < budget.roomy_epsilon < 0.2
    with pytest.raises(UseRefused):
        charged(root, replace(terms, epsilon=budget.roomy_epsilon - 0.0101), use(40, 50, model="dear"))
    enough = replace(terms, epsilon=budget.roomy_epsilon)
    shown = charged(root, enough, use(40, 50, model="dear"))
    assert (shown.new, shown.recorded[0].use.wrong, shown.budget.admits) == (1, 40, True)
    assert charged(root, replace(terms, epsilon=0.25), use(5, 60)).new == 1


def test_a_refused_model_that_is_shown_later_counts_as_shown(root: Path) -> None:
    terms = refused_once(root)
    charged(root, replace(terms, epsilon=0.25), use(40, 50, model="dear"))
    assert [one.verdict for one in open_ledger("ledger", root=root).uses()] == ["exact; shown", "exact; shown"]
    budget = budget_on_record(open_ledger("ledger", root=root), identity(), terms)
    assert budget is not None
    assert (budget.used, len(budget.refused), budget.holds) == (2, 0, False)
    assert budget.failure_probability == pytest.approx(overfits(5, 0.1) + overfits(40, 0.1))
    poorer = replace(terms, epsilon=0.25, mode="adaptive", feedback="pass-fail")
    with pytest.raises(UseRefused, match="2 of 2 uses on record showed other feedback"):
        charged(root, poorer, use(3))


def test_a_refused_model_of_a_part_is_not_judged_by_the_whole(root: Path) -> None:
    part = HoldoutIdentity.of(inputs()[:30], labels()[:30], name="part")
    terms = replace(UNION, epsilon=0.12)
    charged(root, terms, use(20))
    for _ in range(2):  # on all examples it would be within the budget
        with pytest.raises(UseRefused):
            charged(root, terms, Use.of(part, np.arange(30) < 9, model="on the part"), of=part)
    budget = budget_on_record(open_ledger("ledger", root=root), part, terms)
    assert budget is not None
    assert (budget.n, budget.limit, budget.holds, budget.admits) == (30, 0, True, False)


@pytest.mark.parametrize("first", ["shown", "refused"])
def test_shown_in_one_branch_and_refused_in_another_is_shown(root: Path, first: str) -> None:
    lines = {}
    for branch, terms in (("shown", replace(UNION, epsilon=0.25)), ("refused", replace(UNION, delta=0.03))):
        own = root / branch
        shutil.copytree(root / "ledger", own / "ledger")
        with contextlib.suppress(UseRefused):
            charged(own, terms, use(40, 50, model="dear"))
        lines[branch] = open_ledger("ledger", root=own).export_lines()
    merged = open_ledger("ledger", root=root)
    for branch in (first, *({"shown", "refused"} - {first})):
        merged.import_lines(lines[branch], "merged")
    assert [one.refused for one in merged.uses()] == [False]
    assert merged.verify().ok


def test_a_use_that_another_job_had_refused_meanwhile_is_not_shown(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The first job is admitted, loses the race, and finds that another filled the ledger and was refused this model.
    terms, ours = replace(UNION, delta=0.055), use(40, 50, model="ours")
    ledger = open_ledger("ledger", root=root)
    monkeypatch.setattr(ledger._backend, "attempts", lambda: iter(range(3)))
    monkeypatch.setattr(ledger._backend, "exclusive", contextlib.nullcontext)
    append = ledger._backend.append
    raced: list[bool] = []

    def slow(entries: Any) -> None:
        if not raced:
            raced.append(True)
            charged(root, terms, use(15, 5, model="theirs"))
            with pytest.raises(UseRefused):
                charged(root, terms, ours)
            raise LostRace
        append(entries)

    monkeypatch.setattr(ledger._backend, "append", slow)
    with pytest.raises(UseRefused, match="this model was refused"):
        charge(ledger, identity(), terms, [ours], lambda existing, new: "shown")
    assert [one.refused for one in open_ledger("ledger", root=root).uses()] == [False, True]


@pytest.mark.parametrize("bound", ALL_BOUNDS)
def test_the_first_model_of_all_may_be_refused_for_its_outcomes(root: Path, bound: str) -> None:
    terms = replace(UNION, epsilon=0.05, bound=bound)
    said_of(root, terms, use(30))
    budget = budget_on_record(open_ledger("ledger", root=root), identity(), terms)
    assert budget is not None
    assert (budget.used, budget.shown, budget.holds, budget.limit) == (1, 0, True, 0)
    assert budget.committed == pytest.approx(overfits(50, 0.05))
    with pytest.raises(UseRefused, match="no room"):
        charged(root, terms, use(0))
    assert charged(root, replace(terms, epsilon=0.3), use(0)).budget.failure_probability < 0.03


def test_who_tries_until_one_is_admitted_gets_no_lucky_one(root: Path) -> None:
    # Fixed models, each in truth wrong on 10 %: only one that looks 5 points better is within this budget, as one in 17
    # does. Of 40 tries all but one in ten would find one.
    terms, truth, runs = replace(UNION, epsilon=0.05), 0.1, 12
    random, lucky = np.random.default_rng(3), 0
    for run in range(runs):
        own = root / str(run)
        shutil.copytree(root / "ledger", own / "ledger")
        for number in range(40):
            wrong = random.random(N) < truth
            with contextlib.suppress(UseRefused):
                charged(own, terms, Use.of(identity(), wrong, model=f"try {number}"))
                lucky += bool(truth - wrong.mean() >= 0.05 - 1e-9)
    assert lucky <= 3


def test_stricter_settings_than_at_admission_leave_nothing(root: Path) -> None:
    charged(root, replace(UNION, epsilon=0.2), use(20), use(20, 5), use(20, 10))
    strict = replace(UNION, delta=2.5 * EACH)
    budget = budget_on_record(open_ledger("ledger", root=root), identity(), strict)
    assert budget is not None
    assert (budget.used, budget.holds, budget.limit, budget.union_end) == (3, False, 0, 2)
    with pytest.raises(UseRefused, match=r"\+-10 % no longer holds, only \+-\d+\.\d\d % does"):
        charged(root, strict, use(1))


ORDER = np.random.default_rng(1).permutation(N)


def superset() -> HoldoutIdentity:
    more = np.concatenate([inputs(), np.random.default_rng(9).random((50, 4))])
    return HoldoutIdentity.of(more, np.concatenate([labels(), np.zeros(50, int)]), name="digits-test")


SAME = {
    "renamed": identity("other-name"),
    "re-ordered": HoldoutIdentity.of(inputs()[ORDER], labels()[ORDER], name="digits-test"),
    "labels as text": HoldoutIdentity.of(inputs(), np.array(["cat", "dog", "eel"])[labels()]),
    "labels permuted": HoldoutIdentity.of(inputs(), (labels() + 1) % 3),
    "other type": HoldoutIdentity.of(inputs().astype(np.float32).tolist(), labels().astype(np.uint8)),
}


@pytest.mark.parametrize("same", SAME.values(), ids=SAME)
def test_the_same_examples_are_the_same_holdout(root: Path, same: HoldoutIdentity) -> None:
    terms = replace(UNION, max_uses=1)
    charged(root, terms, use(20, model="mine"))
    hard = {row.tobytes() for row in inputs()[:20].astype(np.float32)}
    rows = ORDER if same is SAME["re-ordered"] else np.arange(N)
    wrong = np.array([row.tobytes() in hard for row in inputs()[rows].astype(np.float32)])
    assert charged(root, terms, Use.of(same, wrong, model="the same answers"), of=same).new == 0
    with pytest.raises(UseRefused, match="max_uses = 1, 1 are used"):
        charged(root, terms, use(50, of=same), of=same)


@pytest.mark.parametrize("of", [HoldoutIdentity.of(inputs()[:30], labels()[:30]), superset()], ids=["part", "more"])
def test_a_part_or_more_of_the_examples_charges_the_same_budget(root: Path, of: HoldoutIdentity) -> None:
    charged(root, replace(UNION, max_uses=2), use(20))
    shared = Use.of(of, np.arange(of.n) < 5, model="on the other")
    assert charged(root, replace(UNION, epsilon=0.4, max_uses=2), shared, of=of).budget.used == 2
    for one in (of, identity()):
        with pytest.raises(UseRefused, match="max_uses = 2, 2 are used"):
            charged(root, replace(UNION, epsilon=0.4, max_uses=2), Use.of(one, np.arange(one.n) < 9, model="9"), of=one)


def test_uses_of_a_part_cost_the_union_price(root: Path) -> None:
    part = HoldoutIdentity.of(inputs()[:50], labels()[:50], name="half")
    terms = replace(UNION, epsilon=0.2)
    charged(root, terms, Use.of(part, np.arange(50) < 10, model="on the half"), of=part)
    budget = charged(root, terms, use(20)).budget
    # Both have an error rate of 0.2, and the budget is that of the hundred.
    assert budget.failure_probability == pytest.approx(2 * overfits(20, 0.2), rel=1e-9)


def test_changed_labels_are_refused_and_the_rows_named(root: Path) -> None:
    changed = labels().copy()
    changed[[3, 70]] = (changed[[3, 70]] + 1) % 3
    of = HoldoutIdentity.of(inputs(), changed, name="digits-test")
    with pytest.raises(LabelsChanged, match=r"labels of 2 examples differ .* \(rows 3, 70\)"):
        charged(root, UNION, use(20, of=of), of=of)
    with pytest.raises(LabelsChanged):
        budget_on_record(open_ledger("ledger", root=root), of, UNION)
    assert recorded(root) == 0


def test_a_retired_holdout_and_its_parts_are_refused(root: Path) -> None:
    charged(root, UNION, use(20))
    open_ledger("ledger", root=root).retire(identity(), "labels were corrected")
    part = HoldoutIdentity.of(inputs()[:50], labels()[:50], name="half")
    for of in (identity(), part):
        with pytest.raises(HoldoutRetired, match="labels were corrected"):
            charged(root, UNION, use(20, of=of), of=of)
        with pytest.raises(HoldoutRetired):
            budget_on_record(open_ledger("ledger", root=root), of, UNION)


def test_without_a_ledger_nothing_begins(root: Path) -> None:
    ledger = open_ledger("elsewhere", root=root)
    advice = r"elsewhere holds no record\. .* `dscore holdout begin digits-test`"
    with pytest.raises(LedgerMissing, match=advice):
        charge(ledger, identity(), UNION, [use(20)], lambda existing, new: "shown")
    with pytest.raises(LedgerMissing, match=advice):
        budget_on_record(ledger, identity(), UNION)
    assert not ledger.begun


def test_examples_that_the_ledger_does_not_know_are_refused(root: Path) -> None:
    other = HoldoutIdentity.of(inputs() + 1, labels(), name="digits-test")
    with pytest.raises(LedgerMissing, match="has no record of these 100 examples"):
        charged(root, UNION, use(20, of=other), of=other)


def test_a_record_that_is_gone_stops_everything(root: Path) -> None:
    charged(root, UNION, use(20))
    charged(root, UNION, use(20, 5))
    for file in (root / "ledger").rglob("*.json*"):
        if '"kind":"holdout"' in file.read_text().replace(" ", ""):
            file.unlink()
    with pytest.raises(LedgerDamaged):
        charged(root, UNION, use(20, 10))


@pytest.mark.parametrize("feedback", ["pass-fail", "ladder"])
def test_feedback_that_was_richer_before_is_refused(root: Path, feedback: Any) -> None:
    terms = replace(UNION, epsilon=0.2)
    charged(root, terms, use(20))
    poorer = replace(terms, mode="adaptive", feedback=feedback)
    with pytest.raises(UseRefused, match=rf"1 of 1 uses on record showed other feedback than '{feedback}'"):
        charged(root, poorer, use(20, 5))
    assert charged(root, replace(poorer, feedback="exact"), use(20, 5)).new == 1


def test_poorer_feedback_before_may_become_exact(root: Path) -> None:
    poorer = replace(UNION, epsilon=0.2, mode="adaptive", feedback="pass-fail")
    charged(root, poorer, use(20))
    assert charged(root, replace(poorer, feedback="exact"), use(20, 5)).new == 1


def _several(root: Path, worker: int) -> int:
    """What one of the processes does: five models of its own; how many were admitted."""
    terms = replace(UNION, delta=7.5 * EACH)
    count = 0
    for number in range(5):
        try:
            charged(root, terms, use(20, 5 * worker + number, model=f"{worker}/{number}"))
            count += 1
        except UseRefused:
            pass
    return count


def test_processes_at_once_overspend_nothing_and_lose_nothing(root: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with ProcessPoolExecutor(3, mp_context=context) as pool:
        counts = list(pool.map(_several, [root] * 3, range(3)))
    assert sum(counts) == 7
    assert recorded(root) == 7
    assert open_ledger("ledger", root=root).verify().ok
