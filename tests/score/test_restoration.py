"""A model is left exactly as it was: after a score, and after one that fails in the middle."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from pytest_dscore.errors import DScoreError
from pytest_dscore.score import d_score


class Fails(nn.Module):
    """Passes `good` batches on and raises on the next."""

    def __init__(self, good: int) -> None:
        super().__init__()
        self.left = good

    def forward(self, x: Tensor) -> Tensor:
        self.left -= 1
        if self.left < 0:
            raise ValueError("the lights went out")
        return x


def network(good: int) -> Any:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.Sequential(nn.Dropout(0.5), nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4)),
        Fails(good),
        nn.Flatten(),
        nn.Linear(64, 3),
    )


IMAGES = torch.randn(10, 1, 8, 8, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(10) % 3


def use(model: nn.Module, good: int, **settings: Any) -> None:
    """Score, or fail after `good` passes: the identity check has two, each of the two batches nine."""

    def score() -> None:
        d_score(model, IMAGES, LABELS, n=2, bootstrap=10, batch_size=5, **settings)

    if good < 20:
        with pytest.raises(DScoreError, match=r"the model raised ValueError.*the lights went out"):
            score()
    else:
        score()


ENDINGS = pytest.mark.parametrize("good", [1000, 0, 1, 3, 8, 13], ids=lambda good: f"fails after {good}")


@ENDINGS
def test_the_mode_of_every_submodule(good: int) -> None:
    for frozen in range(6):
        model = network(good)
        model.train(frozen % 2 == 0)
        list(model.children())[frozen].eval()
        model[2][2].train()
        before = {name: module.training for name, module in model.named_modules()}
        assert set(before.values()) == {True, False}
        use(model, good)
        assert {name: module.training for name, module in model.named_modules()} == before


class Recorder:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, *arguments: Any) -> None:
        self.calls += 1


HOOKS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_state_dict_hooks",
)


@ENDINGS
def test_the_users_hooks_stay_and_ours_go(good: int) -> None:
    model, recorder = network(good), Recorder()
    model[0].register_forward_hook(recorder)
    model[2][1].register_forward_pre_hook(recorder)
    model.register_forward_hook(recorder)
    before = [(dict(getattr(module, kind))) for module in model.modules() for kind in HOOKS]
    use(model, good)
    assert [(dict(getattr(module, kind))) for module in model.modules() for kind in HOOKS] == before
    assert recorder.calls > 0
    recorder.calls = 0
    model[3].left = 1
    model(IMAGES)
    assert recorder.calls == 3


def bytes_of(model: nn.Module) -> dict[str, bytes]:
    return {name: value.detach().numpy().tobytes() for name, value in model.state_dict().items()}


@ENDINGS
@pytest.mark.parametrize("operator", ["delete", "invert", "noise", "shuffle"])
def test_weights_and_running_statistics_to_the_byte(good: int, operator: str) -> None:
    model = network(good)
    model.train()
    before, places = bytes_of(model), [value.data_ptr() for value in model.state_dict().values()]
    use(model, good, operator=operator)
    assert bytes_of(model) == before
    assert [value.data_ptr() for value in model.state_dict().values()] == places


@ENDINGS
def test_gradients_and_their_flags(good: int) -> None:
    model = network(1000)
    model(IMAGES).square().mean().backward()
    model[3].left = good
    model[0].weight.requires_grad_(False)
    flags = [parameter.requires_grad for parameter in model.parameters()]
    gradients = [parameter.grad for parameter in model.parameters()]
    copies = [None if gradient is None else gradient.clone() for gradient in gradients]
    use(model, good)
    assert [parameter.requires_grad for parameter in model.parameters()] == flags
    for parameter, gradient, value in zip(model.parameters(), gradients, copies, strict=True):
        assert parameter.grad is gradient
        assert gradient is None or (value is not None and torch.equal(gradient, value))
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()


class Rolls(nn.Module):
    """Draws from every global random generator and uses none of it."""

    def forward(self, x: Tensor) -> Tensor:
        torch.rand(3)
        np.random.rand(3)
        random.random()
        return x


@ENDINGS
def test_the_states_of_all_random_generators(good: int) -> None:
    model = nn.Sequential(Rolls(), network(good))
    torch.manual_seed(5)
    np.random.seed(5)
    random.seed(5)
    expected = torch.rand(3).tolist(), np.random.rand(3).tolist(), random.random()
    torch.manual_seed(5)
    np.random.seed(5)
    random.seed(5)
    use(model, good, operator="noise")
    assert (torch.rand(3).tolist(), np.random.rand(3).tolist(), random.random()) == expected


@ENDINGS
def test_device_threads_and_default_type(good: int) -> None:
    model, threads = network(good), torch.get_num_threads()
    use(model, good, device="cpu")
    assert {tensor.device for tensor in model.state_dict().values()} == {torch.device("cpu")}
    assert torch.get_num_threads() == threads
    assert torch.get_default_dtype() == torch.float32


def test_the_data() -> None:
    images, labels = IMAGES.clone().requires_grad_(), LABELS.clone()
    d_score(network(1000), images, labels, n=2, bootstrap=0)
    assert images.requires_grad
    assert images.grad is None
    assert torch.equal(images, IMAGES)
    assert torch.equal(labels, LABELS)


def test_a_failing_progress_function_and_operator_leave_the_model_too() -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    model = network(1000).train()
    before = bytes_of(model)
    with pytest.raises(KeyboardInterrupt):
        d_score(model, IMAGES, LABELS, n=2, progress=stop)
    assert all(module.training and not module._forward_hooks for module in model.modules())
    assert bytes_of(model) == before


def test_a_wrapper_keeps_its_mode() -> None:
    inner = network(1000).train()
    inner[0].eval()
    wrapper = nn.DataParallel(inner)
    wrapper.training = True
    d_score(wrapper, IMAGES, LABELS, n=2, bootstrap=0)
    assert wrapper.training
    assert not inner[0].training
    assert inner[1].training


class Merging(nn.Conv2d):
    """As in LoRA libraries: evaluation mode folds an addition into the weight, training mode takes it out again."""

    merged = False

    def train(self, mode: bool = True) -> Any:
        super().train(mode)
        if mode == self.merged:
            with torch.no_grad():
                self.weight.add_(-1.0 if mode else 1.0)
            self.merged = not mode
        return self


def test_a_layer_that_changes_its_weights_with_its_mode_changes_them_back() -> None:
    model: Any = nn.Sequential(Merging(1, 3, 3), nn.Flatten(), nn.Linear(108, 3)).train()
    before = model[0].weight.detach().clone()
    d_score(model, IMAGES, LABELS, n=2, bootstrap=0)
    assert torch.allclose(model[0].weight, before, atol=1e-6)


def test_such_a_layer_changes_back_in_a_model_of_mixed_modes() -> None:
    model: Any = nn.Sequential(Merging(1, 3, 3), nn.Flatten(), nn.Linear(108, 3)).eval()
    model[0].train()
    before = model[0].weight.detach().clone()
    d_score(model, IMAGES, LABELS, n=2, bootstrap=0)
    assert torch.allclose(model[0].weight, before, atol=1e-6)
    assert [module.training for module in model] == [True, False, False]


class Caching(nn.Module):
    """Makes a constant at its first call and keeps it."""

    kept: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.kept is None:
            self.kept = torch.linspace(0.5, 1.5, x.shape[-1])
        return x * self.kept


def test_a_model_that_keeps_a_constant_can_still_be_trained() -> None:
    model = nn.Sequential(nn.Conv2d(1, 3, 3), Caching(), nn.Flatten(), nn.Linear(108, 3))
    d_score(model, IMAGES, LABELS, n=2, bootstrap=0)
    model(IMAGES).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_the_same_call_twice_gives_the_same_result() -> None:
    model = network(1000)
    first, second = (d_score(model, IMAGES, LABELS, n=2) for _ in range(2))
    assert np.array_equal(first.hits, second.hits)
    assert (first.score, first.v_robust, first.v_fitness) == (second.score, second.v_robust, second.v_fitness)


def test_buffers_that_forward_changes_are_put_back() -> None:
    class Counting(nn.Module):
        steps: Tensor

        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(1, 3, 3)
            self.register_buffer("steps", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.steps += 1
            return torch.as_tensor(self.conv(x).mean((2, 3)))

    model = Counting()
    d_score(model, IMAGES, LABELS, n=2, bootstrap=0)
    assert model.steps.item() == 0
