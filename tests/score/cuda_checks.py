"""On a machine with CUDA: the same hits as on the CPU, and the model goes home afterwards."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pytest_dscore.score import d_score
from tests.score.nets import NETS, problem

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")


@pytest.mark.parametrize("operator", ["delete", "invert", "noise", "shuffle"])
@pytest.mark.parametrize("net", NETS)
def test_hits_are_those_of_the_cpu(net: str, operator: str) -> None:
    model, images, labels = problem(lambda: NETS[net](1))
    expected = d_score(model, images, labels, operator=operator, bootstrap=0, device="cpu").hits
    result = d_score(model, images, labels, operator=operator, bootstrap=0, device="cuda")
    assert result.device.startswith("cuda")
    assert np.array_equal(result.hits, expected)
    assert {parameter.device.type for parameter in model.parameters()} == {"cpu"}


@pytest.mark.parametrize("home", ["cpu", "cuda"])
def test_auto_scores_on_the_accelerator_and_leaves_the_model_where_it_was(home: str) -> None:
    model, images, labels = problem(lambda: NETS["plain"](1))
    model.to(home)
    assert d_score(model, images, labels, bootstrap=0).device.startswith("cuda")
    assert {parameter.device.type for parameter in model.parameters()} == {home}


def test_the_random_state_of_the_accelerator_is_restored() -> None:
    model, images, labels = problem(lambda: NETS["plain"](1))
    torch.cuda.manual_seed(5)
    expected = torch.rand(3, device="cuda").tolist()
    torch.cuda.manual_seed(5)
    d_score(model, images, labels, operator="noise", bootstrap=0)
    assert torch.rand(3, device="cuda").tolist() == expected
