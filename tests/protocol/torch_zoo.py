"""Training loops in torch, clean and leaking, each the way it is met in practice; none sets a seed."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,no-any-return,type-arg"
from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

Array = np.ndarray[Any, Any]


def rings(seed: int, n: int = 90) -> tuple[Array, Array]:
    """Two columns of different scale, a curved border, and a fifth of the labels wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = ((X**2).sum(axis=1) > 1.4) ^ (rng.random(n) < 0.2)
    return X * [1.0, 5.0], y.astype(int)


def pictures(seed: int) -> tuple[Array, Array]:
    """Images of 6 x 6 in single precision; the class is a brighter corner."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([0, 1], 40))
    X = rng.random((80, 1, 6, 6)).astype(np.float32)
    X[:, :, :3, :3] += 0.5 * y[:, None, None, None]
    return X, y


class Mlp(nn.Module):
    """A small perceptron."""

    def __init__(self, inputs: int = 2) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, 12), nn.ReLU(), nn.Linear(12, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Cnn(nn.Module):
    """One convolution with batch normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)


def scaled(X: Array, rows: Any) -> torch.Tensor:
    """X less the mean of some rows, by their standard deviation."""
    return torch.tensor((X - X[rows].mean(axis=0)) / (X[rows].std(axis=0) + 1e-9), dtype=torch.float32)


def fit(
    model: nn.Module, Z: torch.Tensor, y: Any, epochs: int = 8, after: Callable[[nn.Module], bool] = lambda model: False
) -> nn.Module:
    """Train in shuffled mini-batches; `after` each epoch says whether to stop."""
    batches = DataLoader(TensorDataset(Z, torch.as_tensor(y)), batch_size=16, shuffle=True)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(epochs):
        model.train()
        for inputs, labels in batches:
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimiser.step()
        if after(model):
            break
    return model


def guess(model: nn.Module, Z: torch.Tensor) -> Array:
    """Predicted classes."""
    model.eval()
    with torch.no_grad():
        return model(Z).argmax(dim=1).numpy()


def loss_on(model: nn.Module, Z: torch.Tensor, y: Any) -> float:
    """Cross entropy. Gradients are on, as in many a loop that forgets no_grad."""
    model.eval()
    return float(nn.functional.cross_entropy(model(Z), torch.as_tensor(y)).detach())


class Best:
    """Keeps the weights of the epoch with the lowest score, and stops after `patience` worse ones."""

    def __init__(self, score: Callable[[nn.Module], float], patience: int = 99) -> None:
        self.score, self.patience = score, patience
        self.lowest, self.waited = np.inf, 0
        self.weights: dict[str, Any] = {}

    def __call__(self, model: nn.Module) -> bool:
        score = self.score(model)
        self.waited += 1
        if score < self.lowest:
            self.lowest, self.waited, self.weights = score, 0, copy.deepcopy(model.state_dict())
        return self.waited > self.patience


# --- leaks --------------------------------------------------------------------------------------------------------


def stops_on_test_loss(X, y, train, test, seed):
    Z, model = scaled(X, train), Mlp()
    best = Best(lambda m: loss_on(m, Z[test], y[test]), patience=3)
    fit(model, Z[train], y[train], 25, best).load_state_dict(best.weights)
    return guess(model, Z[test])


def best_epoch_on_test(X, y, train, test, seed):
    Z, model = scaled(X, train), Mlp()
    best = Best(lambda m: float(np.mean(guess(m, Z[test]) != y[test])))
    fit(model, Z[train], y[train], 20, best).load_state_dict(best.weights)
    return guess(model, Z[test])


def scales_by_all(X, y, train, test, seed):
    Z = scaled(X, np.arange(len(X)))
    return guess(fit(Mlp(), Z[train], y[train]), Z[test])


def scales_images_by_test(X, y, train, test, seed):
    Z = torch.tensor((X - X[test].mean()) / X[test].std())
    return guess(fit(Cnn(), Z[train], y[train]), Z[test])


def trains_on_everything(X, y, train, test, seed):
    Z = torch.tensor(X, dtype=torch.float32)
    return guess(fit(Mlp(), Z, y), Z[test])


def trains_on_test_too(X, y, train, test, seed):
    Z, rows = scaled(X, train), np.r_[train, test]
    return guess(fit(Mlp(), Z[rows], y[rows]), Z[test])


def pseudo_labels(X, y, train, test, seed):
    Z = scaled(X, train)
    first = guess(fit(Mlp(), Z[train], y[train]), Z[test])
    rows, labels = np.r_[train, test], np.r_[y[train], first]
    model = fit(Mlp(), Z[rows], labels)
    with torch.no_grad():
        return model(Z[test]).softmax(dim=1).numpy()  # scores: classes would often hide so weak a flow


def forgets_eval(X, y, train, test, seed):
    Z = torch.tensor(X)
    model = fit(Cnn(), Z[train], y[train])
    model.train()
    with torch.no_grad():
        return model(Z[test]).argmax(dim=1).numpy()


def autoencoder_on_all(X, y, train, test, seed):
    Z = scaled(X, train)
    squeeze, widen = nn.Linear(2, 1), nn.Linear(1, 2)
    optimiser = torch.optim.Adam([*squeeze.parameters(), *widen.parameters()], lr=0.1)
    for _ in range(40):
        optimiser.zero_grad()
        nn.functional.mse_loss(widen(squeeze(Z)), Z).backward()
        optimiser.step()
    codes = torch.cat([squeeze(Z).detach(), Z[:, :1]], dim=1)
    return guess(fit(Mlp(), codes[train], y[train]), codes[test])


LEAKS: dict[str, tuple[Any, Any, str]] = {
    "early stopping on the test loss": (stops_on_test_loss, rings, "early-stopping"),
    "best epoch by test accuracy": (best_epoch_on_test, rings, "early-stopping"),
    "scaled by all rows": (scales_by_all, rings, "preprocessing"),
    "images scaled by the test mean": (scales_images_by_test, pictures, "preprocessing"),
    "trained on everything": (trains_on_everything, rings, "overlap"),
    "test rows among the batches": (trains_on_test_too, rings, "overlap"),
    "pseudo-labels": (pseudo_labels, rings, "overlap"),
    "batch statistics of the test rows": (forgets_eval, pictures, "preprocessing"),
    "autoencoder on all rows": (autoencoder_on_all, rings, "preprocessing"),
}


# --- clean --------------------------------------------------------------------------------------------------------


def plain(X, y, train, test, seed):
    Z = scaled(X, train)
    return guess(fit(Mlp(), Z[train], y[train]), Z[test])


def stops_on_own_validation(X, y, train, test, seed):
    order = np.random.default_rng(seed).permutation(train)
    held, used = order[: len(order) // 4], order[len(order) // 4 :]
    Z, model = scaled(X, used), Mlp()
    best = Best(lambda m: loss_on(m, Z[held], y[held]), patience=3)
    fit(model, Z[used], y[used], 25, best).load_state_dict(best.weights)
    return guess(model, Z[test])


def logs_test_error(X, y, train, test, seed):
    Z, model, errors = scaled(X, train), Mlp(), []

    def log(model: nn.Module) -> bool:
        errors.append(float(np.mean(guess(model, Z[test]) != y[test])))
        return False

    return guess(fit(model, Z[train], y[train], after=log), Z[test])


def images_with_batch_norm(X, y, train, test, seed):
    Z = torch.tensor((X - X[train].mean()) / X[train].std())
    return guess(fit(Cnn(), Z[train], y[train]), Z[test])


CLEAN: dict[str, tuple[Any, Any]] = {
    "plain": (plain, rings),
    "own validation part": (stops_on_own_validation, rings),
    "logs the test error": (logs_test_error, rings),
    "batch normalisation": (images_with_batch_norm, pictures),
}
