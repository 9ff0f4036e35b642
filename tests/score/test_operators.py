"""What each operator does to a layer's output, seen by a module that sits behind the layer."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pytest_dscore.score import OPERATORS, d_score

N, CHANNELS, HEIGHT, WIDTH = 3, 16, 28, 20
#: Floors of i * 28 / 3 and of i * 20 / 3.
ROWS, COLUMNS = (0, 9, 18, 28), (0, 6, 13, 20)
CELLS = [(row, col) for row in range(N) for col in range(N)]


class Peek(nn.Module):
    """Keeps a copy of everything that passes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(x.clone())
        return x


def outputs(operator: Any, seed: int = 0, layers: int = 1, count: int = 6) -> list[tuple[Tensor, dict[Any, Tensor]]]:
    """For every layer, its clean output and its output in each region's mutant; all layers see the same input."""
    torch.manual_seed(0)
    peeks = [Peek() for _ in range(layers)]
    convolution = nn.Conv2d(1, CHANNELS, 3, padding=1)

    class Parallel(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Conv2d(1, CHANNELS, 3, padding=1) for _ in range(layers))
            for layer in self.layers:
                layer.load_state_dict(convolution.state_dict())

        def forward(self, x: Tensor) -> Tensor:
            for layer, peek in zip(self.layers, peeks, strict=True):
                peek(layer(x))
            return x.mean(dim=(2, 3)).expand(-1, 2)

    scale = torch.arange(1.0, count + 1)[:, None, None, None]
    images = scale * torch.randn(count, 1, HEIGHT, WIDTH)
    d_score(Parallel(), images, torch.arange(count) % 2, n=N, operator=operator, seed=seed, bootstrap=0)
    found = []
    for peek in peeks:
        # The last 19 passes but one are those of the one batch, between the identity check and the check of state.
        # By way of NumPy, as tensors made in inference mode cannot be written to.
        passes = [torch.tensor(seen.numpy()) for seen in peek.seen[-20:-1]]
        found.append((passes[0], dict(zip(CELLS, passes[1:10], strict=True))))
    return found


def inside(tensor: Tensor, row: int, col: int) -> Tensor:
    return tensor[..., ROWS[row] : ROWS[row + 1], COLUMNS[col] : COLUMNS[col + 1]]


@pytest.mark.parametrize("operator", OPERATORS)
def test_only_the_cell_is_touched(operator: str) -> None:
    clean, mutants = outputs(operator)[0]
    for (row, col), mutated in mutants.items():
        assert not torch.equal(inside(mutated, row, col), inside(clean, row, col))
        inside(mutated, row, col).copy_(inside(clean, row, col))
        assert torch.equal(mutated, clean)


def test_delete_sets_zero_and_invert_turns_the_sign() -> None:
    clean, deleted = outputs("delete")[0]
    _, inverted = outputs("invert")[0]
    for row, col in CELLS:
        assert inside(deleted[row, col], row, col).abs().max() == 0
        assert torch.equal(inside(inverted[row, col], row, col), -inside(clean, row, col))


def test_noise_has_the_standard_deviation_of_each_examples_layer() -> None:
    clean, mutants = outputs("noise")[0]
    deviations = clean.double().flatten(1).numpy().std(axis=1)
    assert deviations.max() > 4 * deviations.min()
    for (row, col), mutated in mutants.items():
        added = inside(mutated, row, col).double() - inside(clean, row, col).double()
        pattern = added / torch.tensor(deviations)[:, None, None, None]
        # One pattern for all examples, standard normal; 16 x 9 x 6 = 864 values at least: 5 sigma of the std is 0.12.
        assert torch.allclose(pattern, pattern[:1].expand_as(pattern), atol=1e-4)
        assert float(pattern[0].std()) == pytest.approx(1.0, abs=0.12)
        assert float(pattern[0].mean()) == pytest.approx(0.0, abs=0.17)
        # Channels and positions each have noise of their own.
        assert len(torch.unique(pattern[0].round(decimals=3))) > 500


def test_shuffle_moves_positions_and_keeps_every_value() -> None:
    clean, mutants = outputs("shuffle")[0]
    for (row, col), mutated in mutants.items():
        before, after = inside(clean, row, col).flatten(2), inside(mutated, row, col).flatten(2)
        assert torch.equal(after.sort(dim=2).values, before.sort(dim=2).values)
        # All channels of all examples move together: each position's column of values is found whole elsewhere.
        columns_before = {tuple(column.tolist()) for column in before.flatten(0, 1).T}
        columns_after = {tuple(column.tolist()) for column in after.flatten(0, 1).T}
        assert columns_after == columns_before


@pytest.mark.parametrize("operator", ["noise", "shuffle"])
def test_layers_and_seeds_differ_and_a_seed_repeats(operator: str) -> None:
    (_, first), (_, second) = outputs(operator, layers=2)
    again = outputs(operator, layers=2)[0][1]
    other = outputs(operator, seed=1, layers=2)[0][1]
    for cell in CELLS:
        assert torch.equal(first[cell], again[cell])
        assert not torch.equal(first[cell], second[cell])
        assert not torch.equal(first[cell], other[cell])


def test_noise_differs_among_regions() -> None:
    clean, mutants = outputs("noise")[0]
    # Two regions of one size, both 9 x 6.
    first = inside(mutants[0, 0], 0, 0) - inside(clean, 0, 0)
    second = inside(mutants[1, 0], 1, 0) - inside(clean, 1, 0)
    assert first.shape == second.shape
    assert float((first - second).abs().mean()) > 0.5 * float(clean.std())


def test_an_operator_of_the_users_own() -> None:
    def halve(cell: Tensor, output: Tensor, seed: int) -> None:
        assert output.shape == (6, CHANNELS, HEIGHT, WIDTH)
        cell.mul_(0.5)

    clean, mutants = outputs(halve)[0]
    for row, col in CELLS:
        assert torch.equal(inside(mutants[row, col], row, col), inside(clean, row, col) / 2)


def test_the_result_names_the_users_operator() -> None:
    def halve(cell: Tensor, output: Tensor, seed: int) -> None:
        cell.mul_(0.5)

    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(72, 2))
    result = d_score(model, torch.randn(4, 1, 8, 8), torch.arange(4) % 2, operator=halve, bootstrap=0)
    assert result.operator == "halve"
