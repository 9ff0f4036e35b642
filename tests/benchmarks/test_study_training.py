"""Training in the study: the same bits each time, p from the un-augmented network, draws for every image."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torchvision.transforms import InterpolationMode  # type: ignore[import-untyped]
from torchvision.transforms.v2 import functional as v2  # type: ignore[import-untyped]

from benchmarks.study import networks, training
from benchmarks.study.measured import Recipe
from pytest_dscore.score import d_score, formulas
from tests.benchmarks.tiny import RECIPE, digits, trained

SHORT = Recipe("digits", "plain", "none", 1, 0, 256)


def same(one: nn.Module, other: nn.Module) -> bool:
    weights, others = one.state_dict(), other.state_dict()
    return all(torch.equal(weights[key], others[key]) for key in weights)


@pytest.mark.parametrize("augmentation", ["none", "rhf", "rr", "crop+erase", "dscore-0.4"])
def test_the_same_recipe_gives_the_same_weights(augmentation: str) -> None:
    recipe = replace(SHORT, augmentation=augmentation)
    first = training.train(recipe, digits()).model
    torch.manual_seed(123)
    assert same(first, training.train(recipe, digits()).model)
    assert not same(first, training.train(replace(recipe, seed=1), digits()).model)


def test_training_leaves_the_generator_as_it_was() -> None:
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    training.train(SHORT, digits())
    assert torch.equal(torch.rand(3), wanted)


@pytest.mark.parametrize("architecture", networks.ARCHITECTURES)
@pytest.mark.parametrize(("channels", "side"), [(1, 28), (3, 32)])
def test_every_map_of_every_architecture_can_be_cut_into_4_x_4(architecture: str, channels: int, side: int) -> None:
    torch.manual_seed(0)
    model = networks.build(architecture, channels, side, 10)
    images = torch.rand(4, channels, side, side)
    result = d_score(model, images, torch.arange(4), n=4, bootstrap=0, device="cpu")
    assert result.maps
    assert not result.skipped_layers
    assert not result.unused_layers
    assert result.classes == 10


@pytest.mark.parametrize("architecture", networks.ARCHITECTURES)
def test_every_architecture_is_trained(architecture: str) -> None:
    model = training.train(replace(SHORT, architecture=architecture, examples=128), digits()).model
    assert not model.training
    assert all(bool(torch.isfinite(weight).all()) for weight in model.parameters())


def test_training_teaches() -> None:
    with torch.no_grad():
        right = trained()(digits().test_images).argmax(1) == digits().test_labels
    assert float(right.double().mean()) > 0.4


def test_a_factor_changes_the_rate_alone() -> None:
    architecture, rate = networks.find("plain@0.5")
    assert (architecture, rate) == (networks.ARCHITECTURES["plain"], networks.ARCHITECTURES["plain"].rate / 2)


def test_p_is_that_of_the_network_without_augmentation() -> None:
    data = digits()
    recipe = replace(RECIPE, augmentation="ours")
    plain = training.train(replace(recipe, augmentation="none"), data).model
    result = d_score(plain, data.validation_images, data.validation_labels, n=3, bootstrap=0)
    wanted = result.v_robust.value / formulas.g(3, 10)
    found = training.train(recipe, data)
    assert 0 < wanted < 1
    assert found.p == pytest.approx(wanted, abs=1e-12)
    # And it was trained with that p.
    assert same(found.model, training.train(replace(recipe, augmentation=f"dscore-{found.p!r}"), data).model)
    assert training.train(replace(recipe, augmentation="rhf"), data).p is None


def test_a_given_network_is_scored_in_place_of_training_one() -> None:
    recipe = replace(SHORT, augmentation="ours")
    assert training.train(recipe, digits(), trained()).p == training.guided_probability(trained(), digits())


@pytest.mark.parametrize("name", [*training.AUGMENTATIONS, "dscore-0.5", "rhf+crop"])
def test_draws_are_made_for_every_image(name: str) -> None:
    torch.manual_seed(0)
    image = torch.rand(1, 3, 32, 32)
    changed = training.augmentation(name)(image.repeat(64, 1, 1, 1))
    kinds = {one.numpy().tobytes() for one in changed}
    assert changed.shape == (64, 3, 32, 32)
    assert float(changed.min()) >= 0
    assert float(changed.max()) <= 1
    expected = {"none": 1, "rhf": 2, "rvf": 2, "rhv": 4}
    assert len(kinds) == expected.get(name, len(kinds))
    assert name in expected or len(kinds) > 20


def test_flips_turn_half_of_the_images() -> None:
    torch.manual_seed(0)
    images = torch.rand(2000, 1, 4, 4)
    flipped = training.augmentation("rhf")(images)
    turned = (flipped == images.flip(-1)).all(-1).all(-1).flatten()
    kept = (flipped == images).all(-1).all(-1).flatten()
    assert bool((turned ^ kept).all())
    assert 900 < int(turned.sum()) < 1100


def test_crops_are_cut_from_the_padded_image() -> None:
    torch.manual_seed(0)
    image = torch.rand(1, 2, 16, 16)
    padded = v2.pad(image, [2, 2, 2, 2])[0]
    possible = {
        padded[:, up : up + 16, left : left + 16].contiguous().numpy().tobytes() for up in range(5) for left in range(5)
    }
    cut = {one.contiguous().numpy().tobytes() for one in training.augmentation("crop")(image.repeat(400, 1, 1, 1))}
    assert cut == possible


def test_moving_agrees_with_torchvision_image_by_image() -> None:
    torch.manual_seed(0)
    images = torch.rand(5, 3, 32, 32)
    angle = torch.tensor([10.0, -20.0, 33.0, 0.0, 5.0])
    scale = torch.tensor([1.0, 1.3, 0.8, 0.6, 1.0])
    offset = torch.tensor([[0.0, 0.0], [0.125, 0.0], [0.0, -0.25], [0.25, 0.125], [-0.5, 0.0]])
    found = training.moved(images, angle, scale, offset)
    for one, image, turn, size, (right, down) in zip(found, images, angle, scale, offset, strict=True):
        wanted: Tensor = v2.affine(
            image,
            angle=-float(turn),  # torchvision turns clockwise
            translate=[float(right * 32), float(down * 32)],
            scale=float(size),
            shear=[0.0, 0.0],
            interpolation=InterpolationMode.BILINEAR,
        )
        assert torch.allclose(one, wanted, atol=1e-5)


@pytest.mark.parametrize(("recipe", "what"), [("blur", "augmentation"), ("none", "architecture")])
def test_unknown_names_are_refused(recipe: str, what: str) -> None:
    wrong = replace(SHORT, augmentation=recipe, architecture="vgg" if what == "architecture" else "plain")
    with pytest.raises(ValueError, match=f"there is no {what}"):
        training.train(wrong, digits())
