"""The engine against the slow way (`naive`): exactly the same hits for every region, operator and kind of network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pytest_dscore.score import d_score
from tests.score import naive
from tests.score.nets import NETS, head, plain, problem


def measured(model: nn.Module, images: Tensor, labels: Tensor, **settings: Any) -> Any:
    return d_score(model, images, labels, bootstrap=0, device="cpu", **settings).hits


def assert_telling(expected: Any, n: int) -> None:
    """The expectation can only catch a mistake where regions differ."""
    assert len(np.unique(expected[1 : n * n + 1], axis=0)) >= n
    assert len(np.unique(expected[n * n + 1 :], axis=0)) >= n


@pytest.mark.parametrize("operator", ["delete", "invert"])
@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("net", NETS)
def test_every_hit_equals_the_slow_way(net: str, n: int, operator: str) -> None:
    model, images, labels = problem(lambda: NETS[net](1))
    expected = naive.hits(model, images, labels, n, operator)
    got = measured(model, images, labels, n=n, operator=operator)
    assert got.shape == (2 * n * n + 1, len(images))
    assert got.dtype == bool
    assert np.array_equal(got, expected)
    assert_telling(expected, n)


@pytest.mark.parametrize("pad", [None, 5, (3, 8), (0, 7), 40])
@pytest.mark.parametrize(
    ("shape", "fill"), [((1, 20, 31), None), ((1, 31, 20), [0.7]), ((3, 20, 31), [-2.0, 0.5, 3.0]), ((3, 17, 17), None)]
)
def test_shapes_channels_pads_and_fills(shape: tuple[int, int, int], fill: Any, pad: Any) -> None:
    model, images, labels = problem(lambda: plain(shape[0]), shape)
    pads = (pad, pad) if isinstance(pad, int) else pad
    expected = naive.hits(model, images, labels, 3, pads=pads, fill=fill)
    assert np.array_equal(measured(model, images, labels, n=3, pad=pad, fill=fill), expected)


def test_one_fill_serves_all_channels() -> None:
    model, images, labels = problem(lambda: plain(3), (3, 16, 16))
    expected = naive.hits(model, images, labels, 2, fill=[2.5, 2.5, 2.5])
    assert np.array_equal(measured(model, images, labels, n=2, fill=2.5), expected)
    assert not np.array_equal(measured(model, images, labels, n=2), expected)


@pytest.mark.parametrize("operator", ["delete", "invert", "noise", "shuffle"])
@pytest.mark.parametrize("batch_size", [1, 5, 23, 24])
def test_batch_size_changes_nothing(operator: str, batch_size: int) -> None:
    model, images, labels = problem(plain)
    whole = measured(model, images, labels, operator=operator)
    assert np.array_equal(measured(model, images, labels, operator=operator, batch_size=batch_size), whole)


@pytest.mark.parametrize("operator", ["noise", "shuffle"])
def test_random_operators_follow_the_seed(operator: str) -> None:
    model, images, labels = problem(plain, count=30)
    first = measured(model, images, labels, operator=operator, seed=5)
    torch.manual_seed(99)
    assert np.array_equal(measured(model, images, labels, operator=operator, seed=5), first)
    other = measured(model, images, labels, operator=operator, seed=6)
    assert not np.array_equal(other[1:10], first[1:10])
    assert np.array_equal(other[10:], first[10:])


@pytest.mark.parametrize("operator", ["delete", "invert", "noise", "shuffle"])
def test_order_of_examples_changes_nothing_but_the_order(operator: str) -> None:
    model, images, labels = problem(plain)
    order = torch.randperm(len(images))
    whole = measured(model, images, labels, operator=operator)
    assert np.array_equal(measured(model, images[order], labels[order], operator=operator), whole[:, order.numpy()])


def test_layers_with_too_small_a_map_are_left_alone_and_named() -> None:
    def build() -> nn.Module:
        small = nn.Conv2d(4, 4, 1, stride=4)
        return nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), small, nn.ReLU(), *head(4, 2))

    model, images, labels = problem(build, (1, 8, 12))
    result = d_score(model, images, labels, n=3, bootstrap=0)
    assert result.maps == {"0": (8, 12), "2": (2, 3)}
    assert result.skipped_layers == ("2",)
    assert np.array_equal(result.hits, naive.hits(model, images, labels, 3))
    assert d_score(model, images, labels, n=2, bootstrap=0).skipped_layers == ()


class Twice(nn.Module):
    """One layer used on two sizes of map."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 4, 1)
        self.layer = nn.Conv2d(4, 4, 3, padding=1)
        self.head = nn.Sequential(*head(4, 2))

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.layer(self.stem(x)))
        return torch.as_tensor(self.head(self.layer(nn.functional.max_pool2d(x, 5))))


@pytest.mark.parametrize(("n", "skipped"), [(2, ()), (3, ("layer",))])
def test_a_layer_called_twice_is_mutated_wherever_its_map_is_large_enough(n: int, skipped: tuple[str, ...]) -> None:
    model, images, labels = problem(Twice, (1, 12, 12))
    result = d_score(model, images, labels, n=n, bootstrap=0)
    assert np.array_equal(result.hits, naive.hits(model, images, labels, n))
    assert result.maps["layer"] == (2, 2)
    assert result.skipped_layers == skipped


class Passing(nn.Conv2d):
    """A subclass that returns its own input, which must not be written to."""

    def forward(self, input: Tensor) -> Tensor:
        return input


class Doubled(nn.Conv2d):
    def forward(self, input: Tensor) -> Tensor:
        return 2 * super().forward(input)


class WithSubclasses(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Doubled(1, 4, 3), Passing(4, 4, 3)
        self.head = nn.Sequential(*head(4))

    def forward(self, x: Tensor) -> Tensor:
        # Two different functions of the same cell, so that the mutants of the two layers do not cancel out.
        x = self.first(x).sin() + 1.0
        return torch.as_tensor(self.head(self.second(x) * 2.0 - x.square()))


@pytest.mark.parametrize("operator", ["delete", "invert"])
def test_subclasses_of_conv2d_are_convolutions(operator: str) -> None:
    model, images, labels = problem(WithSubclasses)
    expected = naive.hits(model, images, labels, 3, operator)
    assert np.array_equal(measured(model, images, labels, operator=operator), expected)
    assert_telling(expected, 3)


def test_one_module_under_two_names_is_one_layer() -> None:
    def build() -> nn.Module:
        same = nn.Conv2d(4, 4, 3, padding=1)
        return nn.Sequential(nn.Conv2d(1, 4, 3), same, nn.ReLU(), same, *head(4))

    model, images, labels = problem(build)
    assert np.array_equal(
        measured(model, images, labels, operator="invert"), naive.hits(model, images, labels, 3, "invert")
    )


@pytest.mark.parametrize("wrap", [torch.compile, nn.DataParallel, lambda m: nn.DataParallel(nn.DataParallel(m))])
def test_wrappers_are_taken_off(wrap: Any) -> None:
    model, images, labels = problem(plain)
    expected = naive.hits(model, images, labels, 3)
    result = d_score(wrap(model), images, labels, bootstrap=0)
    assert np.array_equal(result.hits, expected)
    assert list(result.maps) == ["0", "3"]


@pytest.mark.filterwarnings("ignore:Guards may run slower on Python 3.13.0")
def test_a_model_compiled_in_place_and_already_run_is_mutated() -> None:
    model, images, labels = problem(plain)
    expected = naive.hits(model, images, labels, 3)
    model.compile(backend="eager")
    model(images)
    assert np.array_equal(measured(model, images, labels), expected)


def test_a_model_may_write_to_its_input() -> None:
    """`naive` gives every pass fresh images; an engine that hands out the user's own tensor does not."""
    model, images, labels = problem(lambda: nn.Sequential(nn.ReLU(inplace=True), *plain().children()))
    images = images - 0.8
    before = images.clone()
    expected = naive.hits(model, images.clone(), labels, 3)
    images = before.clone()
    result = measured(model, images, labels)
    assert torch.equal(images, before)
    assert np.array_equal(result, expected)


class Centred(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.sub_(0.5).div_(0.25)


def test_a_model_may_normalise_its_input_in_place() -> None:
    model, images, labels = problem(lambda: nn.Sequential(Centred(), *plain().children()))
    images = images.clone()
    before = images.clone()
    measured(model, images, labels)
    assert torch.equal(images, before)


def test_progress_counts_every_image_pass_up_to_all_of_them() -> None:
    model, images, labels = problem(plain)
    calls: list[tuple[int, int]] = []
    measured(model, images, labels, batch_size=5, n=2, progress=lambda done, total: calls.append((done, total)))
    assert {total for _, total in calls} == {24 * 9}
    done = [count for count, _ in calls]
    assert done == sorted(set(done))
    assert done[-1] == 24 * 9
