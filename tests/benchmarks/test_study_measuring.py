"""Hits of the study against a loop that shares no code with it, and the transforms that the score does not use."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks.study import measuring, unseen
from benchmarks.study.measured import Measured
from benchmarks.study.measuring import Wanted
from pytest_dscore.score import OPERATORS, d_score
from pytest_dscore.score.shifts import shifts
from tests.benchmarks.tiny import RECIPE, digits, trained, untrained
from tests.score import naive


def measure(wanted: Wanted, start: int = 0, stop: int | None = None) -> Measured:
    return measuring.measure(trained(), RECIPE, digits(), wanted, start, stop)


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("operator", ["delete", "invert"])
def test_hits_are_those_of_a_naive_loop(n: int, operator: str) -> None:
    data = digits()
    pad = round(28 / n)
    found = measure(Wanted(((n, operator, 0),), ((n, pad),)))
    wanted = naive.hits(trained(), data.test_images, data.test_labels, n, operator)
    assert 0.3 < found.clean.mean() < 1.0
    assert np.array_equal(found.clean, wanted[0])
    assert np.array_equal(found.mutants[n, operator, 0], wanted[1 : n * n + 1])
    assert np.array_equal(found.shifts[n, pad], wanted[n * n + 1 :])
    assert len({row.tobytes() for row in wanted}) > n


@pytest.mark.parametrize("architecture", ["plain", "residual", "separable"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_hits_are_those_of_d_score(architecture: str, operator: str) -> None:
    data = digits()
    model = trained() if architecture == "plain" else untrained(architecture)
    result = d_score(
        model, data.test_images, data.test_labels, n=3, operator=operator, pad=6, bootstrap=0, seed=4, device="cpu"
    )
    found = measuring.measure(model, RECIPE, data, Wanted(((3, operator, 4),), ((3, 6),)))
    assert np.array_equal(
        np.vstack([found.clean[None], found.mutants[3, operator, 4], found.shifts[3, 6]]), result.hits
    )


def test_pieces_put_together_are_the_whole() -> None:
    wanted = Wanted(((2, "noise", 1),), ((2, 14),), ("crop-0.80", "rotate-15-25"))
    whole = measure(wanted)
    parts = measuring.joined([measure(wanted, 0, 23), measure(wanted, 23, 60)])
    assert np.array_equal(parts.labels, whole.labels)
    assert np.array_equal(parts.clean, whole.clean)
    assert np.array_equal(parts.mutants[2, "noise", 1], whole.mutants[2, "noise", 1])
    assert np.array_equal(parts.shifts[2, 14], whole.shifts[2, 14])
    assert all(np.array_equal(parts.unseen[name], whole.unseen[name]) for name in wanted.unseen)


def test_merging_keeps_all_passes() -> None:
    one, other = measure(Wanted(((2, "delete", 0),))), measure(Wanted((), ((2, 14),), ("crop-0.80",)))
    both = measuring.merged(one, other)
    assert (set(both.mutants), set(both.shifts), set(both.unseen)) == ({(2, "delete", 0)}, {(2, 14)}, {"crop-0.80"})


def test_everything_is_what_the_analysis_expects() -> None:
    wanted = measuring.everything(32)
    assert set(wanted.mutants) == {(n, operator, 0) for n in (2, 3, 4) for operator in OPERATORS}
    for n in (2, 3, 4):
        pads = [pad for grid, pad in wanted.shifts if grid == n]
        assert round(32 / n) in pads
        assert len(set(pads)) == 3
    families = [name.partition("-")[0] for name in wanted.unseen]
    assert {name: families.count(name) for name in families} == {
        "translate": 4,
        "rescale": 4,
        "rotate": 4,
        "crop": 4,
    }
    assert len(measuring.further_seeds(32).mutants) == 8


def test_measuring_leaves_the_network_as_it_was() -> None:
    before = {key: value.clone() for key, value in trained().state_dict().items()}
    measure(measuring.table_only(28))
    assert all(torch.equal(before[key], value) for key, value in trained().state_dict().items())
    assert not any(module._forward_hooks for module in trained().modules())


@pytest.mark.parametrize("name", unseen.UNSEEN)
def test_unseen_images_depend_on_the_index_alone(name: str) -> None:
    images = digits().test_images
    whole = unseen.transform(name, images)
    torch.manual_seed(99)
    np.random.seed(99)
    assert torch.equal(unseen.transform(name, images), whole)
    assert torch.allclose(unseen.transform(name, images[40:], 40), whole[40:], atol=1e-6)
    assert float(whole.min()) >= 0
    assert float(whole.max()) <= 1 + 1e-5


@pytest.mark.parametrize("name", unseen.UNSEEN)
def test_no_unseen_image_is_a_shift_of_the_score(name: str) -> None:
    images = digits().test_images
    changed = unseen.transform(name, images)
    # Of continuous amounts one can come near by chance; the same it never is.
    assert float((changed - images).abs().amax((1, 2, 3)).min()) > 1e-3
    for n, pad in measuring.everything(28).shifts:
        for shifted in shifts(images, n, (pad, pad), torch.zeros(1)):
            apart = (changed - shifted).abs().amax((1, 2, 3))
            assert float(apart.min()) > 1e-3, (n, pad)
            assert float(apart.mean()) > 0.1, (n, pad)


def test_a_translation_moves_and_resizes_nothing() -> None:
    spot = torch.zeros(200, 1, 28, 28)
    spot[:, :, 13:15, 13:15] = 1
    moved = unseen.transform("translate-0.24", spot)
    # Bilinear sampling keeps the sum of what stays inside.
    assert torch.allclose(moved.sum((1, 2, 3)), torch.full((200,), 4.0), atol=1e-3)
    place = torch.arange(28) - 13.5
    across, down = ((moved.sum(axis)[:, 0] * place).sum(1) / 4 for axis in (2, 3))
    distance = (across**2 + down**2).sqrt() / 28
    assert 0.16 < float(distance.min()) < float(distance.max()) < 0.24
    assert float(across.mean().abs()) < 1


def test_crops_stay_inside_the_image() -> None:
    assert float(unseen.transform("crop-0.55", torch.ones(50, 1, 32, 32))[:, :, 1:-1, 1:-1].min()) > 0.99


def test_a_further_seed_gives_other_hits() -> None:
    found = measure(Wanted(((2, "noise", 0), (2, "noise", 1))))
    assert not np.array_equal(found.mutants[2, "noise", 0], found.mutants[2, "noise", 1])
