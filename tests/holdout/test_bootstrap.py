"""The multiplier bootstrap: against the multipliers themselves, and effective numbers of models that are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from pytest_dscore.errors import SettingsError
from pytest_dscore.holdout import analyse, multiplier_bootstrap, pack, similarity_matrix
from pytest_dscore.holdout.multiplier_bootstrap import BootstrapResult, bootstrap


def test_drawing_from_the_covariance_is_applying_multipliers_to_the_data() -> None:
    rng = np.random.default_rng(0)
    base = rng.random(300) < 0.3
    matrix = base ^ (rng.random((8, 300)) < 0.1)
    packed = pack(matrix)
    ours = bootstrap(packed, similarity_matrix(packed), draws=8_000).maxima
    multipliers = rng.standard_normal((8_000, 300))
    plain = np.abs(multipliers @ (matrix - matrix.mean(axis=1, keepdims=True)).T / 300).max(axis=1)
    assert stats.ks_2samp(ours, plain).pvalue > 1e-3


def test_very_many_models_go_through_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.random.default_rng(1).random((20, 100)) < 0.3
    packed = pack(matrix)
    factored = bootstrap(packed, similarity_matrix(packed), draws=6_000)
    monkeypatch.setattr(multiplier_bootstrap, "_FACTOR_LIMIT", 1)
    direct = bootstrap(packed, similarity_matrix(packed), draws=6_000, seed=1)
    assert stats.ks_2samp(factored.maxima, direct.maxima).pvalue > 1e-3


def test_one_model_is_one_normal() -> None:
    matrix = np.arange(400)[None, :] < 100
    result = bootstrap(pack(matrix), similarity_matrix(matrix), draws=40_000)
    sigma = math.sqrt(0.25 * 0.75 / 400)
    assert result.tolerance(0.05) == pytest.approx(1.96 * sigma, rel=0.02)
    assert result.probability(2 * sigma) == pytest.approx(0.0455, abs=0.004)
    assert result.effective_models(0.05) == 1.0


def test_effective_models_of_copies_and_of_strangers() -> None:
    rng = np.random.default_rng(2)
    row = rng.random(2_000) < 0.3
    copies = analyse(np.stack([row] * 12), epsilon=0.05, delta=0.05)
    assert copies.effective_models == pytest.approx(1.0, abs=0.08)
    strangers = analyse(rng.random((12, 2_000)) < 0.3, epsilon=0.05, delta=0.05, draws=40_000)
    # independent: 1 - (1 - a)^12 = 0.05, and union counts 0.05 / a = 11.7
    assert strangers.effective_models == pytest.approx(0.05 / (1 - 0.95 ** (1 / 12)), rel=0.08)


def test_the_true_event_is_about_as_likely_as_the_bootstrap_says() -> None:
    rng = np.random.default_rng(3)
    n, k = 600, 10
    base = rng.random(n) < 0.3
    matrix = base ^ (rng.random((k, n)) < 0.1)
    result = analyse(matrix, epsilon=0.04, delta=0.05, bound="bootstrap")
    again = rng.multinomial(n, np.full(n, 1 / n), size=8_000) @ matrix.T.astype(np.int64) / n
    truth = (np.abs(again - matrix.mean(axis=1)).max(axis=1) >= 0.04).mean()
    assert result.failure_probability == pytest.approx(truth, abs=0.02)
    assert "asymptotic" in result.note


def test_order_statistics_by_hand() -> None:
    result = BootstrapResult(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0]))
    assert result.tolerance(0.2) == 4.0
    assert result.tolerance(0.4) == 3.0
    assert result.probability(3.0) == 3 / 5
    assert result.probability(5.0) == 1 / 5
    with pytest.raises(SettingsError, match="needs at least 10 bootstrap draws, not 4"):
        result.tolerance(0.1)


def test_models_that_never_fail() -> None:
    result = analyse(np.zeros((3, 50), dtype=bool), epsilon=0.05, delta=0.05, bound="bootstrap")
    assert result.effective_models == 1.0
    assert result.failure_probability < 1e-3


def test_the_same_seed_is_the_same_result() -> None:
    matrix = np.random.default_rng(4).random((5, 80)) < 0.4
    first, second, other = (
        analyse(matrix, epsilon=0.1, delta=0.05, bound="bootstrap", seed=s).tolerance for s in (1, 1, 2)
    )
    assert first == second != other
