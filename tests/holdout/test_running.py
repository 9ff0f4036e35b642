"""The budget of a long ledger: the same answers as from scratch, whatever is kept, and never a refusal of its own."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pytest_dscore.holdout import GrowingTree, analyse, failure_probability, kept_costs, similarity
from pytest_dscore.holdout.budget import Budget, outcomes_of
from pytest_dscore.holdout.costs import Costing, Costs
from pytest_dscore.holdout.coupling import JointTail, couple
from pytest_dscore.holdout.ledger import HoldoutIdentity, Use
from pytest_dscore.holdout.running import FEW, METHOD, RunningBudget, running_budget
from pytest_dscore.holdout.terms import Terms
from tests.holdout.truth import event_rate

N, K, EPSILON = 400, FEW + 12, 0.08
TERMS = Terms("page", epsilon=EPSILON, known=True)


@cache
def holdout(n: int = N, name: str = "page") -> HoldoutIdentity:
    return HoldoutIdentity.of(np.random.default_rng(5).random((n, 3)), np.arange(n) % 10, name=name)


@cache
def outcomes(seed: int = 0, flips: float = 0.03, k: int = K + 8, n: int = N) -> NDArray[np.bool_]:
    """Models that fail on much the same examples, each also like the one before it."""
    rng = np.random.default_rng(seed)
    matrix = np.empty((k, n), dtype=bool)
    hard = newest = rng.random(n) < 0.15
    for row in matrix:
        newest = np.where(rng.random(n) < 0.5, newest, hard) ^ (rng.random(n) < flips)
        row[:] = newest
    return matrix


@cache
def uses(matrix_seed: int = 0, flips: float = 0.03) -> tuple[Use, ...]:
    return tuple(Use.of(holdout(), row, model=f"m{i}") for i, row in enumerate(outcomes(matrix_seed, flips)))


def running(terms: Terms, own: Sequence[Use], *more: Any, **named: Any) -> RunningBudget:
    made = running_budget(terms, own, *more, **named)
    assert isinstance(made, RunningBudget)
    return made


def costs_of(budget: RunningBudget) -> Costs:
    assert budget.costs is not None
    return budget.costs


def same(one: Costs, other: Costs) -> bool:
    return all(
        np.allclose(getattr(one, field.name), getattr(other, field.name), rtol=1e-11, atol=0) for field in fields(Costs)
    )


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The models whose rows of the similarity matrix are computed."""
    seen: list[tuple[int, int]] = []
    plain = similarity.agreements

    def counted(packed: Any, start: int, stop: int) -> Any:
        seen.append((start, stop))
        return plain(packed, start, stop)

    monkeypatch.setattr("pytest_dscore.holdout.costs.agreements", counted)
    return seen


# The bound


def test_it_is_the_bound_that_the_page_derives() -> None:
    """Each model's smaller term, by one joint tail at a time, with the tree of `GrowingTree`."""
    budget, matrix = running(TERMS, uses()[:K]), outcomes()[:K]
    assert budget.costing is not None
    tree = GrowingTree(N, EPSILON)
    for i, row in enumerate(matrix):
        tree.add(int(row.sum()), (matrix[:i] == row).mean(axis=1))
    anchor, m = budget.costing.anchor, tree.deviation
    assert anchor.model == int(np.argmax([(matrix[:FEW] == row).mean() for row in matrix[:FEW]]))

    def term(model: int, other: int, side: int, offset: int) -> float:
        count, held = int(matrix[model].sum()), int(matrix[other].sum())
        coupling = couple(
            Fraction(held, N), Fraction(count, N), Fraction(int((matrix[model] == matrix[other]).sum()), N)
        )
        assert coupling is not None
        joint = JointTail(N, coupling)
        if side == 0:
            return math.exp(joint.log_probability("lower", held + offset - 1, "upper", count + m))
        return math.exp(joint.log_probability("upper", held - offset + 1, "lower", count - m))

    costs, sums = costs_of(budget), np.zeros((2, 1 + anchor.offsets.size))
    for side in (0, 1):
        for model in {0, 1, anchor.model, *range(2, K, 11)}:
            alone, parent = math.exp(costs.alone[model, side]), tree.parents[model]
            hung = min(alone, term(model, parent, side, m)) if model else alone
            assert math.exp(costs.tree[model, side]) == pytest.approx(hung, rel=1e-9)
            for column, offset in enumerate(anchor.offsets.tolist()):
                held = 0.0 if model == anchor.model else min(alone, term(model, anchor.model, side, offset))
                assert math.exp(costs.anchored[model, side, column]) == pytest.approx(held, rel=1e-9)
        hangs, holds = np.exp(costs.tree[:, side, None]), np.exp(costs.anchored[:, side])
        sums[side, :1], sums[side, 1:] = hangs.sum(), np.exp(anchor.logs[side]) + np.minimum(hangs, holds).sum(axis=0)
    assert budget.failure_probability == pytest.approx(sums.min(axis=1).sum(), rel=1e-9)
    assert sums[:, 0].sum() == pytest.approx(tree.failure_probability, rel=1e-9)
    assert budget.failure_probability < sums[:, 0].sum() < sum(budget._tails)


@pytest.mark.parametrize("flips", [0.003, 0.03, 0.2])
def test_it_is_not_below_the_truth_of_test_sets_drawn_from_the_matrix(flips: float) -> None:
    terms = replace(TERMS, epsilon=0.055 if flips < 0.1 else 0.075, delta=0.9)
    matrix, rng = outcomes(1, flips)[:K], np.random.default_rng(3)
    draws = rng.multinomial(N, np.full(N, 1 / N), size=4_000) @ matrix.T.astype(np.int64)
    assert terms.epsilon is not None
    truth, error = event_rate(draws, N, matrix.mean(axis=1), terms.epsilon)
    assert truth > 0.01
    assert running(terms, uses(1, flips)[:K]).failure_probability >= truth - error


@pytest.mark.parametrize(
    ("flips", "epsilon"), [(0.0005, 0.06), (0.0005, 0.1), (0.003, 0.06), (0.03, 0.08), (0.03, 0.1), (0.1, 0.1)]
)
def test_it_is_near_the_full_analysis(flips: float, epsilon: float) -> None:
    """Below it where trees and anchors together are better than either, above it where F is not quite the best."""
    terms = replace(TERMS, epsilon=epsilon)
    quick, full = running(terms, uses(2, flips)[:K]), Budget(terms, uses(2, flips)[:K])
    assert 0.8 * full.failure_probability < quick.failure_probability < 1.5 * full.failure_probability
    assert quick.failure_probability <= sum(quick._tails) * (1 + 1e-9)
    assert quick.union_end == full.union_end
    assert quick.tolerance == pytest.approx(full.tolerance, rel=0.07)
    assert quick.remaining is not None
    assert full.remaining is not None
    # Of models this alike there may be 10^25, by both.
    assert math.log(quick.remaining) == pytest.approx(math.log(full.remaining), rel=0.1)


def test_effective_is_how_many_would_cost_the_same_at_the_union_price() -> None:
    budget = running(TERMS, uses()[:K])
    assert budget.effective == pytest.approx(budget.failure_probability / (sum(budget._tails) / K), rel=1e-9)
    assert 1 < budget.effective < K
    assert (budget.method, budget.note) == (METHOD, "")
    assert "union price" in budget.effective_note


def test_the_tolerance_is_where_the_bound_ends() -> None:
    budget = running(TERMS, uses()[:K])
    assert budget.costing is not None
    m = math.ceil(N * Fraction(repr(budget.tolerance)))
    assert math.exp(budget.costing.log_bound_at(costs_of(budget), m)) <= TERMS.delta
    assert math.exp(budget.costing.log_bound_at(costs_of(budget), m - 1)) > TERMS.delta
    assert budget.tolerance < analyse(outcomes()[:K], epsilon=EPSILON, delta=0.05).union_tolerance
    at_declared = math.exp(budget.costing.log_bound_at(costs_of(budget), budget.costing.deviation))
    assert at_declared == pytest.approx(budget.failure_probability, rel=0.05)


def test_models_that_never_overfit_cost_nothing() -> None:
    budget = running(replace(TERMS, epsilon=0.97), uses()[:K])
    assert (budget.failure_probability, budget.effective, budget.remaining) == (0.0, 1.0, None)
    assert budget.limit is None
    assert budget.share_used == 0.0


# When it serves


@pytest.mark.parametrize(
    ("change", "k"),
    [
        ({}, FEW),
        ({"epsilon": None}, K),
        ({"mode": "adaptive", "feedback": "pass-fail", "epsilon": 0.6}, K),
        *(({"bound": bound}, K) for bound in ("naive-bayes", "bootstrap", "theorem-2", "similarity")),
    ],
)
def test_otherwise_it_is_the_full_budget(change: dict[str, Any], k: int) -> None:
    made = running_budget(replace(TERMS, **change), uses()[:k])
    assert type(made) is Budget
    assert made == Budget(replace(TERMS, **change), uses()[:k])


def test_where_it_would_refuse_the_full_analysis_is_asked() -> None:
    own, terms = uses(4, 0.03)[:K], replace(TERMS, epsilon=0.1)
    least = Budget(terms, own).failure_probability
    costing = Costing(outcomes_of(own), 40, least)
    quick = math.exp(costing.log_bound(costing.extended(costing.none())))
    between = replace(terms, delta=least * 1.0005)
    assert least < between.delta < quick
    made = running_budget(between, own)
    assert type(made) is Budget
    assert made.holds
    below = running_budget(replace(terms, delta=least * 0.999), own)
    assert type(below) is Budget
    assert not below.holds
    assert running(replace(terms, delta=quick * 1.02), own).holds


def test_that_no_model_is_left_is_also_the_full_analysis_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunningBudget, "remaining", 0)
    assert type(running_budget(TERMS, uses()[:K])) is Budget


def test_max_uses_is_a_limit_besides() -> None:
    free = running(TERMS, uses()[:K])
    assert free.remaining is not None
    assert free.limit == free.remaining > 3
    close = running(replace(TERMS, max_uses=K + 3), uses()[:K])
    assert (close.limit, close.share_used) == (3, K / (K + 3))
    assert running(replace(TERMS, max_uses=K), uses()[:K]).limit == 0


def test_union_adds_up_tails_and_looks_at_no_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = replace(TERMS, bound="union", delta=0.3)
    full = Budget(terms, uses()[:K])
    want = full.failure_probability, full.tolerance, full.union_end, full.remaining
    monkeypatch.setattr(Budget, "analysis", property(lambda _: pytest.fail("the full analysis was asked")))
    quick = running(terms, uses()[:K])
    assert (quick.tolerance, quick.union_end, quick.remaining) == want[1:]
    assert quick.failure_probability == pytest.approx(want[0], rel=1e-9)
    assert (quick.effective, quick.method) == (K, "union")


def test_uses_elsewhere_are_charged_at_the_union_price() -> None:
    part = holdout(150, "part")
    others = [Use.of(part, row[:150], model=f"other {i}") for i, row in enumerate(outcomes(4)[:9])]
    alone, both = running(TERMS, uses()[:K]), running(TERMS, uses()[:K], others)
    prices = [
        failure_probability(k=1, n=N, epsilon=EPSILON, error=Fraction(use.wrong, 150), bound="union") for use in others
    ]
    assert both.failure_probability == pytest.approx(alone.failure_probability + sum(prices), rel=1e-12)
    assert both.used == K + 9
    assert both.effective == pytest.approx(alone.effective + 9)
    assert both.union_end == Budget(TERMS, uses()[:K], tuple(others)).union_end
    assert both.tolerance == pytest.approx(Budget(TERMS, uses()[:K], tuple(others)).tolerance, rel=0.05)
    assert alone.remaining is not None
    assert both.remaining is not None
    assert both.remaining < alone.remaining


def test_the_budget_on_the_way() -> None:
    part = holdout(150, "part")
    others = tuple(Use.of(part, row[:150], model=f"other {i}") for i, row in enumerate(outcomes(4)[:3]))
    whole = running(TERMS, uses()[:K], others)
    earlier = whole.until(K - 5)
    assert isinstance(earlier, RunningBudget)
    assert earlier.failure_probability == pytest.approx(running(TERMS, uses()[: K - 5]).failure_probability, rel=1e-11)
    assert whole.until(K + 1).used == K + 1
    assert type(whole.until(FEW)) is Budget
    assert whole.until(FEW).own == uses()[:FEW]
    assert running(replace(TERMS, bound="union"), uses()[:K]).until(K - 1).effective == K - 1


# What is kept


def test_what_is_kept_goes_on_with_the_new_row_alone(tmp_path: Path, rows: list[tuple[int, int]]) -> None:
    running(TERMS, uses()[: K - 2], cache=tmp_path / "new")
    rows.clear()
    one = running(TERMS, uses()[: K - 1], cache=tmp_path / "new")
    two = running(TERMS, uses()[:K], cache=tmp_path / "new")
    again = running(TERMS, uses()[:K], cache=tmp_path / "new")
    assert rows == [(K - 2, K - 1), (K - 1, K)]
    fresh = running(TERMS, uses()[:K])
    assert same(costs_of(two), costs_of(fresh))
    assert same(costs_of(again), costs_of(fresh))
    assert costs_of(one).k == K - 1
    assert two.failure_probability == pytest.approx(fresh.failure_probability, rel=1e-12)
    assert [path.suffix for path in (tmp_path / "new").iterdir()] == [".npz"]  # and nothing left beside it


def test_fewer_uses_than_are_kept_use_the_first_of_them(tmp_path: Path, rows: list[tuple[int, int]]) -> None:
    """A use that was refused is in the file and not in the ledger."""
    running(TERMS, uses()[:K], cache=tmp_path)
    rows.clear()
    fewer = running(TERMS, uses()[: K - 3], cache=tmp_path)
    other = running(TERMS, (*uses()[: K - 3], uses()[K + 1]), cache=tmp_path)
    assert rows == [(K - 3, K - 2)]
    assert same(costs_of(fewer), costs_of(running(TERMS, uses()[: K - 3])))
    assert same(costs_of(other), costs_of(running(TERMS, (*uses()[: K - 3], uses()[K + 1]))))


@pytest.mark.parametrize(("place", "start"), [(FEW + 4, FEW + 4), (FEW, FEW), (FEW - 1, 0), (0, 0)])
def test_another_order_keeps_what_comes_before(
    tmp_path: Path, rows: list[tuple[int, int]], place: int, start: int
) -> None:
    running(TERMS, uses()[:K], cache=tmp_path)
    rows.clear()
    merged = [*uses()[:place], uses()[K], *uses()[place:K]]
    got = running(TERMS, merged, cache=tmp_path)
    assert rows == [(start, K + 1)]
    assert same(costs_of(got), costs_of(running(TERMS, merged)))


def resaved(raw: bytes, change: Any, honest: bool = True) -> bytes:
    """The file with its arrays changed, and the checksum that fits them."""
    with np.load(io.BytesIO(raw)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    checksum = arrays.pop("checksum")
    change(arrays)
    if honest:
        checksum = np.frombuffer(kept_costs._checksum(arrays), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, checksum=checksum, **arrays)
    return buffer.getvalue()


def cheaper(arrays: dict[str, Any]) -> None:
    arrays["tree"] = arrays["tree"] - 1
    arrays["anchored"] = arrays["anchored"] - 1


def one_cost(value: float) -> Callable[[dict[str, Any]], None]:
    """Change that of a model which is not among those whose costs are computed again."""

    def change(arrays: dict[str, Any]) -> None:
        costing = running(TERMS, uses()[:K]).costing
        assert costing is not None
        checked = kept_costs.Kept(None, uses()[:K], costing)._sample(K)
        model = next(i for i in range(K) if i not in checked)
        arrays["tree"] = np.where((np.arange(K) == model)[:, None], value, arrays["tree"])

    return change


def half_cheaper(arrays: dict[str, Any]) -> None:
    arrays["anchored"] = np.where(np.arange(len(arrays["anchored"]))[:, None, None] % 2, -50.0, arrays["anchored"])


def one_parent_later(arrays: dict[str, Any]) -> None:
    arrays["parent"] = np.where(np.arange(len(arrays["parent"])) == 150, 151, arrays["parent"])


def set_to(name: str, value: Any) -> Any:
    return lambda arrays: arrays.update({name: value(arrays[name])})


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda raw: b"",
    "cut short": lambda raw: raw[: len(raw) // 2],
    "one bit": lambda raw: raw[: len(raw) // 2] + bytes([raw[len(raw) // 2] ^ 1]) + raw[len(raw) // 2 + 1 :],
    "foreign": lambda raw: b"this is no archive",
    "edited": lambda raw: resaved(raw, cheaper, honest=False),
    "one cost edited": lambda raw: resaved(raw, one_cost(-99.0), honest=False),
    "one cost not a number": lambda raw: resaved(raw, one_cost(math.nan)),
    "one cost above 1": lambda raw: resaved(raw, one_cost(1.0)),
    "edited with its checksum": lambda raw: resaved(raw, cheaper),
    "every other one edited": lambda raw: resaved(raw, half_cheaper),
    "wrong counts": lambda raw: resaved(raw, set_to("wrong", lambda x: x * 0)),
    "own tails": lambda raw: resaved(raw, set_to("alone", lambda x: x - 2)),
    "agreements": lambda raw: resaved(raw, set_to("agree", lambda x: x + 1)),
    "later parents": lambda raw: resaved(raw, set_to("parent", lambda x: x + 10**6)),
    "one later parent": lambda raw: resaved(raw, one_parent_later),
    "parents before the first": lambda raw: resaved(raw, set_to("parent", lambda x: x - 10**6)),
    "not a number": lambda raw: resaved(raw, set_to("tree", lambda x: x * np.nan)),
    "above 1": lambda raw: resaved(raw, set_to("tree", lambda x: -x)),
    "another type": lambda raw: resaved(raw, set_to("tree", lambda x: x.astype(np.float32))),
    "another shape": lambda raw: resaved(raw, set_to("anchored", lambda x: x[:, :, :2])),
    "too few": lambda raw: resaved(raw, set_to("tree", lambda x: x[:-1])),
    "keys of another length": lambda raw: resaved(raw, set_to("keys", lambda x: x[:, :16])),
    "no keys": lambda raw: resaved(raw, lambda arrays: arrays.pop("keys")),
    "no binding": lambda raw: resaved(raw, lambda arrays: arrays.pop("bound_to")),
    "an array missing": lambda raw: resaved(raw, lambda arrays: arrays.pop("tree")),
    "an array too many": lambda raw: resaved(raw, set_to("keys", lambda x: x))[:-1],
    "objects": lambda raw: resaved(raw, set_to("tree", lambda x: x.astype(object)), honest=False),
    "another version": lambda raw: resaved(
        raw, set_to("bound_to", lambda x: np.frombuffer(x.tobytes().replace(b'"format": 1', b'"format": 0'), np.uint8))
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_file_that_is_not_right_is_computed_anew(tmp_path: Path, rows: list[tuple[int, int]], kind: str) -> None:
    want = running(TERMS, uses()[:K], cache=tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(DAMAGE[kind](whole))
    rows.clear()
    got = running(TERMS, uses()[:K], cache=tmp_path)
    assert rows == [(0, K)]
    assert got.failure_probability == want.failure_probability
    assert path.read_bytes() == whole


def test_a_file_that_was_saved_again_as_it_is_serves(tmp_path: Path, rows: list[tuple[int, int]]) -> None:
    running(TERMS, uses()[:K], cache=tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_bytes(resaved(path.read_bytes(), lambda arrays: None))
    rows.clear()
    running(TERMS, uses()[:K], cache=tmp_path)
    assert rows == []


@pytest.mark.parametrize("change", [{"epsilon": 0.09}, {"delta": 0.01}])
def test_other_terms_have_a_file_of_their_own(
    tmp_path: Path, rows: list[tuple[int, int]], change: dict[str, float]
) -> None:
    running(TERMS, uses()[:K], cache=tmp_path)
    (first,) = tmp_path.iterdir()
    changed = replace(TERMS, **change)  # type: ignore[arg-type]
    want = running(changed, uses()[:K], cache=tmp_path)
    (second,) = set(tmp_path.iterdir()) - {first}
    second.write_bytes(first.read_bytes())
    rows.clear()
    assert running(changed, uses()[:K], cache=tmp_path).failure_probability == want.failure_probability
    assert rows == [(0, K)]


def test_the_file_of_another_hold_out_is_no_use(tmp_path: Path, rows: list[tuple[int, int]]) -> None:
    running(TERMS, uses()[:K], cache=tmp_path)
    (first,) = tmp_path.iterdir()
    other = HoldoutIdentity.of(np.random.default_rng(6).random((N, 3)), np.arange(N) % 10, name="other")
    own = [Use.of(other, row, model=f"m{i}") for i, row in enumerate(outcomes()[:K])]
    running(TERMS, own, cache=tmp_path)
    (second,) = set(tmp_path.iterdir()) - {first}
    second.write_bytes(first.read_bytes())
    rows.clear()
    running(TERMS, own, cache=tmp_path)
    assert rows == [(0, K)]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    want = running(TERMS, uses()[:K]).failure_probability
    assert running(TERMS, uses()[:K], cache=tmp_path / "file").failure_probability == want
    assert running(TERMS, uses()[:K], cache=tmp_path / "file" / "below").failure_probability == want
