"""``dscore holdout status``."""

from __future__ import annotations

import json
import math
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from pytest_dscore.holdout import (
    Analysis,
    analyse,
    failure_probability,
    max_models,
    pack,
    similarity_matrix,
    tolerance,
)
from pytest_dscore.holdout.forecast import models_by_anchor
from tests.cli import examples
from tests.cli.conftest import Run


def analysed(models: int = examples.MODELS, **more: Any) -> Analysis:
    return analyse(examples.outcomes(models), **({"epsilon": 0.04, "delta": 0.05} | more))


def tails(models: int = examples.MODELS, epsilon: float = 0.04) -> list[float]:
    """Each model's own probability of overfitting."""
    return [
        failure_probability(k=1, n=examples.N, epsilon=epsilon, error=Fraction(int(wrong), examples.N), bound="union")
        for wrong in examples.outcomes(models).sum(axis=1)
    ]


@pytest.fixture
def adaptive(root: Path) -> Path:
    examples.declare(root, f'{examples.SETTINGS}mode = "adaptive"\nfeedback = "pass-fail"\nmin_accuracy = 0.5\n')
    examples.record(root)
    return root


@pytest.mark.usefixtures("project")
def test_the_sentence_is_that_of_the_issue(dscore: Run) -> None:
    found = analysed()
    end = 12 + math.floor((0.05 - math.fsum(tails())) / (math.fsum(tails()) / 12))
    more = math.floor(models_by_anchor(pack(examples.outcomes()), found.similarity, 40, 0.05)) - 12
    cost = (found.failure_probability - math.fsum(tails()) / 12) / 11
    assert more > (0.05 - found.failure_probability) / cost  # what the average so far would allow
    result = dscore("status")
    assert result.code == 0
    assert result.flat.startswith(
        f"hold-out 'digits-test': 12 models used ({found.effective_models:.0f} effective), {more:,} more at this "
        f"similarity before +-4 % no longer holds; the plain union bound would end at {end:,}"
    )
    assert f"+-{math.ceil(found.tolerance * 1e4) / 100:.2f} % with probability 95 %" in result.flat
    assert "taken to be those seen on the test set" in result.flat
    assert "Non-adaptive: this holds if" in result.flat


@pytest.mark.usefixtures("project")
def test_the_json_is_what_the_library_says(dscore: Run) -> None:
    (printed,) = json.loads(dscore("status", "--json").out)
    found = analysed()
    assert printed["failure_probability"] == found.failure_probability
    assert printed["epsilon_guaranteed"] == found.tolerance
    assert printed["effective_models"] == pytest.approx(found.effective_models)
    assert printed["method"] == found.method
    assert (printed["models_used"], printed["examples"], printed["spent"]) == (12, examples.N, False)
    assert printed["digest"] == examples.identity().digest


@pytest.mark.parametrize("bound", ["union", "similarity", "empirical", "naive-bayes", "theorem-2", "bootstrap"])
def test_every_bound(root: Path, dscore: Run, bound: str) -> None:
    examples.declare(root, f'{examples.SETTINGS}bound = "{bound}"\n')
    examples.record(root)
    (printed,) = json.loads(dscore("status", "--json").out)
    found = analysed(bound=bound)
    assert printed["failure_probability"] == pytest.approx(found.failure_probability, rel=1e-12)
    assert printed["epsilon_guaranteed"] == found.tolerance
    assert printed["models_remaining"] >= 0
    assert (f"by bound     {bound}" in dscore("status").out) is True


def test_the_forecast_by_the_union_bound_is_exact(root: Path, dscore: Run) -> None:
    examples.declare(root, f'{examples.SETTINGS}bound = "union"\n')
    examples.record(root)
    (printed,) = json.loads(dscore("status", "--json").out)
    assert printed["models_used"] + printed["models_remaining"] == printed["union_bound_ends_at"]


@pytest.mark.parametrize(("epsilon", "models"), [(0.033, 12), (0.033, 24), (0.03, 6)])
def test_the_forecast_is_near_to_what_comes(root: Path, dscore: Run, epsilon: float, models: int) -> None:
    examples.declare(root)
    examples.record(root, models=models)
    (printed,) = json.loads(dscore("status", "--epsilon", str(epsilon), "--json").out)
    promised = models + printed["models_remaining"]
    assert printed["union_bound_ends_at"] < promised
    assert analysed(round(promised / 1.5), epsilon=epsilon).holds
    assert not analysed(round(promised * 1.5), epsilon=epsilon).holds


def test_the_forecast_of_models_all_alike_is_the_planned_budget() -> None:
    n, wrong, flips, k = 2000, 400, 10, 12
    outcomes = np.zeros((k, n), dtype=bool)
    outcomes[:, :wrong] = True
    for i, row in enumerate(outcomes):  # every model differs from the common answer on examples of its own
        row[i * flips : (i + 1) * flips] = False
        row[wrong + i * flips : wrong + (i + 1) * flips] = True
    similarity = similarity_matrix(outcomes)
    assert np.unique(similarity).tolist() == [1 - 4 * flips / n, 1.0]
    planned = max_models(n=n, error=0.2, epsilon=0.03, delta=0.05, bound="similarity", similarity=1 - 4 * flips / n)
    assert 0.7 * planned < models_by_anchor(pack(outcomes), similarity, 60, 0.05) <= planned + 1
    assert math.isinf(models_by_anchor(pack(outcomes), similarity, 500, 0.05))  # no tail reaches as far


@pytest.mark.usefixtures("adaptive")
def test_adaptive_use_of_hidden_scores_counts_what_could_have_been_asked_at_worst(dscore: Run) -> None:
    # Binary tree of 12 rounds: 2^12 - 1 nodes, each a model of error rate 1/2 unlike the others.
    tail = float(stats.binom(examples.N, 0.5).sf(539) + stats.binom(examples.N, 0.5).cdf(460))
    total = max_models(
        n=examples.N, epsilon=0.04, delta=0.05, error=0.5, mode="adaptive", feedback="pass-fail", bound="union"
    )
    result = dscore("status")
    (printed,) = json.loads(dscore("status", "--json").out)
    assert printed["failure_probability"] == pytest.approx(min(1.0, (2**12 - 1) * tail))
    assert printed["models_remaining"] == max(0, total - 12)
    assert printed["effective_models"] == 12
    assert result.code == (total <= 12)
    assert "only whether each model passed" in result.flat
    assert "scores are hidden, so error rates of 50 %" in result.flat


def test_adaptive_use_of_exact_scores_goes_by_those_seen(root: Path, dscore: Run) -> None:
    examples.declare(root, f'{examples.SETTINGS}mode = "adaptive"\n'.replace("0.04", "0.2"))
    examples.record(root)
    (printed,) = json.loads(dscore("status", "--json").out)
    found = analyse(examples.outcomes(), epsilon=0.2, delta=0.05, mode="adaptive", feedback="exact")
    assert printed["failure_probability"] == found.failure_probability


def test_one_model_alone_is_no_reason_to_promise_any_number(root: Path, dscore: Run) -> None:
    for extra in ("", 'mode = "adaptive"\nfeedback = "pass-fail"\nmin_accuracy = 0.5\n', 'bound = "naive-bayes"\n'):
        examples.declare(root, examples.SETTINGS + extra)
        examples.record(root, models=1)
        result = dscore("status")
        assert "1 model used (1 effective)" in result.flat
        assert "any number" not in result.flat
        (printed,) = json.loads(dscore("status", "--json").out)
        assert printed["models_remaining"] <= printed["union_bound_ends_at"]


@pytest.mark.usefixtures("project")
def test_a_budget_that_is_spent_gives_1(dscore: Run) -> None:
    found = analysed(epsilon=0.015)
    assert not found.holds
    result = dscore("status", "--epsilon", "0.015")
    assert result.code == 1
    assert f"+-1.5 % no longer holds, only +-{math.ceil(found.tolerance * 1e4) / 100:.2f} % does" in result.flat
    end = int(np.searchsorted(np.cumsum(tails(epsilon=0.015)), 0.05, side="right"))
    assert f"the plain union bound would have ended at {end}" in result.flat
    assert "SPENT" in result.out
    assert dscore("status", "--epsilon", "0.015", "--json").code == 1


@pytest.mark.parametrize(
    ("most", "code", "says"), [(12, 1, "12, 0 left"), (13, 0, "13, 1 left"), (11, 1, "11, 0 left")]
)
def test_max_uses_is_a_limit_besides(root: Path, dscore: Run, most: int, code: int, says: str) -> None:
    examples.declare(root, f"{examples.SETTINGS}max_uses = {most}\nwarn_at = 0.8\n")
    examples.record(root)
    result = dscore("status")
    assert result.code == code
    assert says in result.flat
    assert ("WARNING 92.31 % of the budget is used" in result.flat) is (code == 0)


def test_a_hold_out_that_shares_examples_is_charged(project: Path, dscore: Run) -> None:
    part = examples.identity("part", 400)
    examples.record(project, holdout=part, models=2)
    result = dscore("status", "digits-test")
    (printed,) = json.loads(dscore("status", "digits-test", "--json").out)
    assert "14 models used" in result.flat
    assert "2 of these models were scored on hold-outs that share examples with it" in result.flat
    rates = [Fraction(int(row[:400].sum()), 400) for row in examples.outcomes(2)]
    rest = [failure_probability(k=1, n=examples.N, epsilon=0.04, error=rate, bound="union") for rate in rates]
    assert printed["failure_probability"] == pytest.approx(analysed().failure_probability + sum(rest), rel=1e-12)
    nearest = max(rates)
    expected = max(
        analysed(delta=0.05 * 12 / 14).tolerance,
        tolerance(k=2, n=examples.N, delta=0.05 * 2 / 14, error=nearest, bound="union"),
    )
    assert printed["epsilon_guaranteed"] == expected


def test_a_hold_out_that_is_not_declared(root: Path, dscore: Run) -> None:
    examples.record(root)
    result = dscore("status")
    assert result.code == 0
    assert f"+-{math.ceil(analysed().tolerance * 1e4) / 100:.2f} % still holds; no epsilon is declared" in result.flat
    assert "more at this similarity" in dscore("status", "--epsilon", "0.04").flat


def test_nothing_at_all(dscore: Run) -> None:
    result = dscore("status")
    assert (result.code, result.out) == (0, "no hold-out is declared in the project, and none is on record\n")
    assert dscore("status", "--json").out == "[]\n"


def test_a_declared_hold_out_without_a_use(project: Path, dscore: Run) -> None:
    settings = examples.SETTINGS.replace("digits-test", "renamed")
    examples.declare(project, settings)  # of other data
    for arguments in ((), ("renamed",)):
        assert dscore("status", *arguments).flat.endswith("hold-out 'renamed': no use is on record under this name")
    examples.declare(project, settings.replace("fixtures.digits:holdout", "nowhere:data"))
    for arguments in ((), ("renamed",)):
        said = dscore("status", *arguments).flat
        assert "no use is on record under this name; whether its data are under another is not known: data" in said
        assert "nowhere" in said


RENAMED = """
import numpy as np

def data():
    print("loading")
    return np.random.default_rng(1).random((1000, 4))[:{n}], np.arange({n}) % 10
"""


def declare_renamed(root: Path) -> None:
    """Settings that call the hold-out otherwise."""
    settings = examples.SETTINGS.replace("digits-test", "renamed")
    examples.declare(root, settings.replace("fixtures.digits:holdout", "renamed_data:data"))


@pytest.mark.parametrize("arguments", [(), ("renamed",)])
def test_a_renamed_hold_out_is_known_by_its_examples(
    project: Path, dscore: Run, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    named = dscore("status").out
    (project / "renamed_data.py").write_text(RENAMED.format(n=examples.N))
    monkeypatch.delitem(sys.modules, "renamed_data", raising=False)
    settings = examples.SETTINGS.replace("digits-test", "renamed").replace(
        "fixtures.digits:holdout", "renamed_data:data"
    )
    examples.declare(project, settings)
    result = dscore("status", *arguments)
    assert result.out.startswith("hold-out 'renamed': 12 models used (")
    told = "begun as 'digits-test': the examples on record under that name are the same, and so is the budget"
    assert told in result.flat
    without = result.flat.replace(f" {told}", "").replace("'renamed'", "'digits-test'")
    assert without == " ".join(named.split())
    (printed,) = json.loads(dscore("status", "--json", *arguments).out)
    assert (printed["name"], printed["begun_as"], printed["models_used"]) == ("renamed", "digits-test", 12)
    history = dscore("history", *arguments)
    assert history.flat.count("passed") == 12
    assert ", begun as 'digits-test'" in history.flat


def test_a_part_of_the_examples_under_another_name(project: Path, dscore: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "renamed_data.py").write_text(RENAMED.format(n=400))
    monkeypatch.delitem(sys.modules, "renamed_data", raising=False)
    settings = examples.SETTINGS.replace("digits-test", "renamed").replace(
        "fixtures.digits:holdout", "renamed_data:data"
    )
    examples.declare(project, settings)
    said = dscore("status", "renamed").flat
    assert said.endswith("under this name; it shares examples, and so the budget: 400 with 'digits-test'")


@pytest.mark.usefixtures("project")
def test_names_and_digests_choose(dscore: Run) -> None:
    assert "'digits-test'" in dscore("status", examples.identity().digest[:8]).out
    assert "there is no hold-out 'digit-test'" in dscore("status", "digit-test").sentence


def test_a_retired_hold_out_is_not_spent(project: Path, dscore: Run) -> None:
    assert dscore("retire", "digits-test", "--why", "labels corrected").code == 0
    result = dscore("status", "--epsilon", "0.015")
    assert result.code == 0
    assert "labels corrected" in result.flat
    assert project.is_dir()


def test_sqlite_tells_the_same(project: Path, dscore: Run) -> None:
    examples.record(project, "sqlite:///uses.db")
    one, other = dscore("status"), dscore("status", "--ledger", "sqlite:///uses.db")
    assert other.code == 0
    assert other.flat.replace("sqlite:///uses.db", ".dscore/ledger") == one.flat


def test_several_ledgers(root: Path, dscore: Run) -> None:
    second = examples.SETTINGS.replace("digits-test", "other") + 'ledger = "sqlite:///other.db"\n'
    examples.declare(root, examples.SETTINGS + second)
    examples.record(root)
    examples.record(root, "sqlite:///other.db", holdout=examples.identity("other", seed=2), models=3)
    result = dscore("status")
    assert "hold-out 'digits-test': 12 models used" in result.flat
    assert "hold-out 'other': 3 models used" in result.flat
    assert "the project keeps 2 ledgers: say which with --ledger" in dscore("export").sentence


def test_a_name_on_record_cannot_drive_the_terminal(root: Path, dscore: Run) -> None:
    examples.record(root, holdout=examples.identity("\x1b[31mröt\n"), models=1)
    result = dscore("status")
    assert "hold-out '\\x1b[31mr\\xf6t\\n'" in result.flat
    assert "\x1b" not in dscore("history").out


@pytest.mark.usefixtures("project")
def test_a_tolerance_that_no_score_can_miss_has_no_end(dscore: Run) -> None:
    result = dscore("status", "--epsilon", "0.95")
    assert "any number more at this similarity before +-95 % no longer holds" in result.flat
    assert "the plain union bound would have no end" in result.flat
    (printed,) = json.loads(dscore("status", "--epsilon", "0.95", "--json").out)
    assert (printed["models_remaining"], printed["union_bound_ends_at"], printed["spent"]) == (None, None, False)
