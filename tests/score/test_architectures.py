"""Networks of other people, and every form of output that they may return."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torchvision import models  # type: ignore[import-untyped]

from pytest_dscore.errors import DScoreError
from pytest_dscore.score import d_score
from tests.score import naive
from tests.score.nets import problem, quick

BIG = {
    "resnet18": models.resnet18,
    "mobilenet_v3_small": models.mobilenet_v3_small,
    "convnext_tiny": models.convnext_tiny,
    "densenet121": models.densenet121,
}


@pytest.mark.parametrize("name", BIG)
def test_torchvisions_networks_equal_the_slow_way_and_stay_as_they_were(name: str) -> None:
    # Single precision, as depthwise convolutions are slow in double.
    model, images, labels = problem(lambda: BIG[name](num_classes=5), (3, 40, 40), count=4, dtype=torch.float32)
    model.train()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    result = d_score(model, images, labels, n=2, bootstrap=0)
    after = model.state_dict()
    assert all(torch.equal(after[key], value) for key, value in before.items())
    assert all(module.training for module in model.modules())
    assert result.classes == 5
    assert np.array_equal(result.hits, naive.hits(model, images, labels, 2))


def test_squeeze_and_excitation_is_skipped_and_named() -> None:
    model, images, _ = problem(lambda: models.mobilenet_v3_small(num_classes=5), (3, 64, 64), count=2)
    result = d_score(model, images, torch.tensor([0, 1]), n=2, bootstrap=0)
    assert "features.1.block.1.fc1" in result.skipped_layers
    assert result.maps["features.1.block.1.fc1"] == (1, 1)
    assert result.maps["features.0.0"] == (32, 32)


class Returning(nn.Module):
    """A network whose output goes through a function."""

    def __init__(self, base: nn.Module, form: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.base, self.form = base, form

    def forward(self, x: Tensor) -> Any:
        return self.form(self.base(x))


class Named(NamedTuple):
    extra: Tensor
    logits: Tensor


class Output(OrderedDict[str, Tensor]):
    """As in transformers: a mapping whose entries are attributes too."""

    @property
    def logits(self) -> Tensor:
        return self["logits"]


FORMS: dict[str, Callable[[Tensor], Any]] = {
    "tuple": lambda x: (x, -x),
    "list": lambda x: [x],
    "dict with logits": lambda x: {"aux": -x, "logits": x},
    "dict with one tensor": lambda x: {"out": x, "loss": None},
    "attribute": lambda x: SimpleNamespace(logits=x, hidden=-x),
    "named tuple": lambda x: Named(-x, x),
    "model output": lambda x: Output(hidden=-x, logits=x),
    "(N, c, 1, 1)": lambda x: x[:, :, None, None],
    "(N, c, 1)": lambda x: x[:, :, None],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_output_gives_the_same_hits(form: str) -> None:
    model, images, labels = quick()
    expected = d_score(model, images, labels, n=2, bootstrap=0)
    result = d_score(Returning(model, FORMS[form]), images, labels, n=2, bootstrap=0)
    assert np.array_equal(result.hits, expected.hits)
    assert result.classes == 3
    assert 0 < expected.hits.mean() < 1


@pytest.mark.parametrize("form", [lambda x: x, lambda x: x[:, 0], lambda x: {"logits": x[:, 0]}])
@pytest.mark.parametrize("batch_size", [1, 5, 256])
def test_one_logit_decides_at_zero(form: Callable[[Tensor], Any], batch_size: int) -> None:
    model, images, _ = quick(classes=1)
    with torch.no_grad():
        logit = model(images)[:, 0]
        labels = (logit > 0).long()
        labels[:2] = 1 - labels[:2]
    result = d_score(Returning(model, form), images, labels, n=2, bootstrap=0, batch_size=batch_size)
    assert result.classes == 2
    assert result.hits[0].tolist() == [False, False] + [True] * 10
    # The same as the two-logit head (0, logit).
    two = Returning(model, lambda x: torch.cat([torch.zeros_like(x), x], dim=1))
    assert np.array_equal(result.hits, d_score(two, images, labels, n=2, bootstrap=0).hits)


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        (lambda x: None, "the model returned a NoneType: expected logits as a tensor, first in a tuple"),
        (lambda x: "logits", "the model returned a str: expected"),
        (lambda x: (), "the model returned a tuple: expected"),
        (lambda x: ("a", x), "the model returned a tuple: expected"),
        (lambda x: {"a": x, "b": x}, r"the model returned a dict with the keys \['a', 'b'\]: expected"),
        (lambda x: {"logits": 3}, r"the model returned a dict with the keys \['logits'\]: expected"),
        (lambda x: {}, r"the model returned a dict with the keys \[\]: expected"),
        (lambda x: SimpleNamespace(scores=x), "the model returned a SimpleNamespace: expected"),
        (lambda x: x.sum(), r"a tensor of shape \(\) for \d images: expected \(\d, classes\)"),
        (lambda x: x[:-1], r"a tensor of shape \(\d, 3\) for \d images"),
        (lambda x: x[0], r"a tensor of shape \(3,\) for \d images"),
        (lambda x: x[:, :, None, None].expand(-1, -1, 2, 2), r"a tensor of shape \(\d, 3, 2, 2\) for \d images"),
    ],
)
def test_other_outputs_are_refused_with_what_was_expected(form: Callable[[Tensor], Any], sentence: str) -> None:
    model, images, labels = quick()
    with pytest.raises(DScoreError, match=sentence):
        d_score(Returning(model, form), images, labels, n=2, bootstrap=0)


def test_no_logit_at_all_is_refused() -> None:
    model, images, labels = quick()
    with pytest.raises(DScoreError, match=r"\(\d, 0\)"):
        d_score(Returning(model, lambda x: x[:, :0]), images, labels, n=2, bootstrap=0)
