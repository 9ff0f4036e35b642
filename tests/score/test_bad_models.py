"""Models and arguments that cannot be scored: one sentence that says what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from pytest_dscore.errors import DScoreError, SettingsError
from pytest_dscore.score import d_score
from tests.score.nets import quick

MODEL, IMAGES, LABELS = quick()


def with_layer(layer: nn.Module, *, after: int = 1) -> nn.Module:
    """The small network with one more layer."""
    layers = list(quick()[0].children())
    return nn.Sequential(*layers[:after], layer, *layers[after:])


def score(model: Any = MODEL, **settings: Any) -> Any:
    return d_score(model, IMAGES, LABELS, **{"n": 2, "bootstrap": 0, **settings})


class Apply(nn.Module):
    """A layer that is a function."""

    def __init__(self, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


class Stubborn(nn.BatchNorm2d):
    """Stays in training mode."""

    def train(self, mode: bool = True) -> Any:
        return super().train(True)


class Functional(nn.Module):
    """Has a convolution and calls it as a function only."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.head = nn.Conv2d(1, 3, 3), nn.Linear(108, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.conv2d(x, self.convolution.weight, self.convolution.bias)
        return torch.as_tensor(self.head(x.flatten(1)))


def unlucky(x: Tensor) -> Tensor:
    raise ValueError("sizes of maps do not fit")


MODELS: dict[str, tuple[Any, str]] = {
    "not a module": (lambda x: x, "the model is a function: give a torch.nn.Module"),
    "a class": (nn.Conv2d, "the model is a type: give a torch.nn.Module"),
    "no convolution": (nn.Sequential(nn.Flatten(), nn.Linear(64, 3)), r"\(Sequential\) has no nn.Conv2d layer"),
    "functional": (Functional(), "none of the model's 1 nn.Conv2d layers ran as a module"),
    "batch norm in training mode": (with_layer(Stubborn(3)), "batch-norm layer '1' stays in training mode after"),
    "batch norm without statistics": (
        with_layer(nn.BatchNorm2d(3, track_running_stats=False)),
        "batch-norm layer '1' keeps no running statistics",
    ),
    "dropout that never stops": (
        with_layer(Apply(lambda x: functional.dropout(x, 0.5, training=True))),
        "other logits for the same images a second time",
    ),
    "random augmentation": (
        with_layer(Apply(lambda x: x + torch.randn_like(x)), after=0),
        "other logits for the same images a second time",
    ),
    "NaN": (with_layer(Apply(lambda x: x * float("nan")), after=4), "logits are NaN on the unchanged data"),
    "one NaN": (
        with_layer(Apply(lambda x: torch.where(torch.arange(x.numel()).view(x.shape) == 5, torch.nan, x)), after=4),
        "logits are NaN on the unchanged data",
    ),
    # A mutant has whole cells of zeros before the activation; the clean network has none.
    "NaN for mutants": (
        with_layer(Apply(lambda x: x / x.abs().amin(dim=(1, 2, 3), keepdim=True).sign())),
        "logits are NaN when the upper left region is mutated",
    ),
    # A shifted image has rows of zeros.
    "NaN for shifts": (
        with_layer(Apply(lambda x: x * (x / x).mean(dim=(1, 2, 3), keepdim=True)), after=0),
        "logits are NaN when the object is upper left",
    ),
    "raises": (with_layer(Apply(unlucky)), r"raised ValueError on a batch of shape \(\d, 1, 8, 8\): sizes of maps"),
    "wrong channels": (nn.Conv2d(3, 3, 8), r"the model raised RuntimeError on a batch of shape \(\d, 1, 8, 8\)"),
    "feature maps": (nn.Conv2d(1, 3, 3), r"a tensor of shape \(\d, 3, 6, 6\) for \d images: expected \(\d, classes\)"),
    "one probability": (
        nn.Sequential(nn.Conv2d(1, 1, 7), nn.AvgPool2d(2), nn.Flatten(), nn.Sigmoid()),
        r"looks like a probability: return the logit|label 2 of row 2",
    ),
    "statistics of the batch": (
        with_layer(Apply(lambda x: x - x.mean(0)), after=0),
        "depend on the other images in the batch",
    ),
    "on the meta device": (quick()[0].to("meta"), "weights without values"),
    "lazy": (nn.Sequential(nn.LazyConv2d(3, 3), nn.Flatten()), "weights without values"),
    "maps of one pixel": (
        nn.Sequential(nn.Conv2d(1, 3, 8), nn.Flatten()),
        "no feature map of the model is larger than one pixel",
    ),
    "too few outputs": (
        nn.Sequential(nn.Conv2d(1, 2, 7), nn.AvgPool2d(2)),
        r"label 2 of row 2 is out of range.*2 classes",
    ),
    "one output": (nn.Sequential(nn.Conv2d(1, 1, 7), nn.AvgPool2d(2)), r"label 2 of row 2 is out of range.*2 classes"),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_that_are_refused(name: str) -> None:
    model, sentence = MODELS[name]
    with pytest.raises(DScoreError, match=sentence):
        score(model)


def test_a_grid_finer_than_every_map_names_the_finest_that_fits() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 2, stride=2), nn.Conv2d(2, 3, 2, stride=2), nn.Flatten(), nn.Linear(12, 3))
    sentence = r"n = 5 is larger than every feature map \(the largest is 4 x 4\): set n <= 4"
    with pytest.raises(DScoreError, match=sentence):
        score(model, n=5)
    assert score(model, n=4).skipped_layers == ("1",)


def test_the_largest_map_is_the_one_with_the_largest_short_side() -> None:
    flat, square = nn.Conv2d(1, 1, (7, 1)), nn.Conv2d(1, 1, (1, 2), stride=(1, 3))
    model = nn.Sequential(flat, nn.Upsample((3, 8)), square, nn.Flatten(), nn.Linear(9, 3))
    # Maps 2 x 8 and 3 x 3.
    with pytest.raises(DScoreError, match=r"the largest is 3 x 3\): set n <= 3"):
        score(model, n=4)


def test_a_grid_finer_than_the_images_names_the_finest_that_fits() -> None:
    with pytest.raises(SettingsError, match=r"n = 9 is larger than the images \(8 x 8 pixels\): set n <= 8"):
        score(n=9)


ARGUMENTS = [
    ({"n": 1}, "n = 1 must be a whole number >= 2"),
    ({"n": 2.5}, "n = 2.5 must be a whole number >= 2"),
    ({"n": True}, "n = True must be a whole number"),
    ({"n": "3"}, "n = '3' must be a whole number"),
    ({"batch_size": 0}, "batch_size = 0 must be a whole number >= 1"),
    ({"batch_size": 1.0}, "batch_size = 1.0 must be a whole number"),
    ({"bootstrap": -1}, "bootstrap = -1 must be a whole number >= 0"),
    ({"seed": -1}, "seed = -1 must be a whole number >= 0"),
    ({"bootstrap": 10**9}, "bootstrap = 1000000000 must be a whole number <= 100,000"),
    ({"confidence": 1}, "confidence = 1 must lie between 0 and 0.999999, such as 0.95"),
    ({"confidence": 0.9999999999999999}, "confidence = 0.9999999999999999 must lie"),
    ({"confidence": 0.0}, "confidence = 0.0 must lie"),
    ({"confidence": 95}, "confidence = 95 must lie"),
    ({"confidence": float("nan")}, "confidence = nan must lie"),
    ({"confidence": "0.95"}, "confidence = '0.95' must"),
    ({"confidence": None}, "confidence = None must"),
    ({"operator": "delte"}, "operator 'delte' does not exist; did you mean 'delete'"),
    ({"operator": "shufle"}, "did you mean 'shuffle'"),
    ({"operator": "zebra"}, "operator 'zebra' does not exist. Valid: delete, invert, noise, shuffle"),
    ({"form": "bound"}, "form 'bound' does not exist; did you mean 'bounded'"),
    ({"pad": -1}, "pad = -1 must be a number of pixels >= 0"),
    ({"pad": (3, -1)}, r"pad = \(3, -1\) must be"),
    ({"pad": (3,)}, r"pad = \(3,\) must be"),
    ({"pad": (1, 2, 3)}, "or a pair"),
    ({"pad": (1.5, 2)}, r"pad = \(1.5, 2\) must be"),
    ({"pad": True}, "pad = True must be"),
    ({"pad": 2.5}, "pad = 2.5 must be"),
    ({"fill": [0.0, 1.0]}, r"fill has 2 values, but the images have 1 channel\(s\): give 1$"),
    ({"fill": []}, "fill has 0 values"),
    ({"fill": float("nan")}, "fill = .* must be finite numbers"),
    ({"fill": [float("inf")]}, "fill = .* must be finite numbers"),
    ({"fill": "black"}, "fill"),
    ({"fill": ["black"]}, "fill"),
    ({"fill": [None]}, "fill"),
    ({"device": "gpu"}, r'device = "gpu" is not available here .* set device = "auto"'),
    ({"device": "cuda:99"}, r'device = "cuda:99" is not available here'),
    ({"device": None}, "device"),
]


@pytest.mark.parametrize(("settings", "sentence"), ARGUMENTS, ids=[str(settings) for settings, _ in ARGUMENTS])
def test_arguments_that_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SettingsError, match=sentence):
        score(**settings)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_cuda_asked_for_and_absent() -> None:
    with pytest.raises(
        SettingsError, match=r'device = "cuda" is not available here \(there is: cpu\): set device = "auto"'
    ):
        score(device="cuda")


@pytest.mark.parametrize(
    ("settings", "same"),
    [
        ({"fill": np.float32(1.5)}, {"fill": 1.5}),
        ({"fill": np.array([1.5])}, {"fill": 1.5}),
        ({"fill": torch.tensor([1.5])}, {"fill": 1.5}),
        ({"pad": np.int64(3)}, {"pad": 3}),
        ({"pad": [3, 3]}, {"pad": 3}),
        ({"n": np.int64(3)}, {"n": 3}),
        ({"device": torch.device("cpu")}, {"device": "cpu"}),
        ({"device": "auto"}, {}),
    ],
    ids=str,
)
def test_other_ways_to_say_the_same(settings: dict[str, Any], same: dict[str, Any]) -> None:
    assert np.array_equal(score(**settings).hits, score(**same).hits)


def test_bf16_runs_and_is_recorded() -> None:
    seen: list[torch.dtype] = []

    def note(x: Tensor) -> Tensor:
        seen.append(x.dtype)
        return x

    model = with_layer(Apply(note))
    result = score(model, bf16=True)
    assert result.bf16
    assert set(seen) == {torch.bfloat16}
    assert result.hits.shape == (9, 12)
    assert not score(model).bf16
    assert seen[-1] == torch.float32


def test_infinite_logits_are_predictions() -> None:
    assert score(with_layer(Apply(lambda x: x * float("1e39")), after=4)).hits.shape == (9, 12)


def test_bad_input_leaves_no_hook_behind() -> None:
    for model, _ in MODELS.values():
        if isinstance(model, nn.Module):
            with pytest.raises(DScoreError):
                score(model)
            assert not any(module._forward_hooks for module in model.modules())


class Moody(nn.Module):
    """Answers otherwise from its 13th call on (the passes of n = 2 are 9, the check before them 3)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3)
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return torch.as_tensor(self.conv(x).mean((2, 3)) * (1 if self.calls < 13 else -1))


class Own(nn.Module):
    """Changes its own weight at each call, too little to be seen in the logits."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.conv.weight.mul_(1.0)
        return torch.as_tensor(self.conv(x).mean((2, 3)))


@pytest.mark.parametrize(
    ("model", "sentence"), [(Moody(), "logits after the passes"), (Own(), "its own weight 'conv.weight'")]
)
def test_models_with_a_will_of_their_own_are_refused(model: nn.Module, sentence: str) -> None:
    with pytest.raises(DScoreError, match=sentence):
        d_score(model, torch.randn(9, 1, 8, 8), torch.arange(9) % 3, n=2, bootstrap=0)


def test_a_probability_is_no_logit() -> None:
    model = nn.Sequential(nn.Conv2d(1, 1, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Sigmoid())
    with pytest.raises(DScoreError, match="looks like a probability: return the logit"):
        d_score(model, torch.randn(9, 1, 8, 8), torch.arange(9) % 2, n=2, bootstrap=0)


def test_layers_that_never_run_as_modules_are_named() -> None:
    class Aside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.head = nn.Conv2d(1, 4, 3), nn.Conv2d(4, 3, 3)

        def forward(self, x: Tensor) -> Tensor:
            return torch.as_tensor(self.head(self.conv.forward(x)).mean((2, 3)))

    result = d_score(Aside(), torch.randn(9, 1, 8, 8), torch.arange(9) % 3, n=2, bootstrap=0)
    assert result.unused_layers == ("conv",)
    assert set(result.maps) == {"head"}
