"""`d_score`: the method as one function call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from torch import nn

from pytest_dscore.errors import DScoreError, SettingsError
from pytest_dscore.figure import MOST_CONFIDENCE, MOST_RESAMPLES
from pytest_dscore.names import unknown_name
from pytest_dscore.score.engine import Plan, Progress, measure
from pytest_dscore.score.examples import Examples, load_examples
from pytest_dscore.score.formulas import Form
from pytest_dscore.score.guard import random_states_kept
from pytest_dscore.score.operators import OPERATORS, Operator
from pytest_dscore.score.result import DScore, Recipe, summarise
from pytest_dscore.score.shifts import fill_remarks, fill_values, total_padding

FORMS = ("mean", "bounded", "ratio")


def d_score(
    model: nn.Module,
    images: Any,
    labels: Any = None,
    n: int = 3,
    operator: str | Operator = "delete",
    form: Form = "mean",
    pad: int | Sequence[int] | None = None,
    fill: float | Sequence[float] | None = None,
    batch_size: int = 256,
    device: str = "auto",
    bootstrap: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
    *,
    bf16: bool = False,
    progress: Progress | None = None,
) -> DScore:
    """Score the robustness of a convolutional image classifier.

    Parameters
    ----------
    model
        Any module with ``nn.Conv2d`` layers. It is left as it was: mode, hooks, weights, gradients, device.
    images : Tensor or array (N, C, H, W), or a map-style Dataset of (image, label) pairs
        In the model's input space.
    labels : (N,) whole numbers from 0
        Left out where a Dataset gives them.
    n
        The grid, >= 2: n x n regions.
    operator
        ``delete`` (the paper's), ``invert``, ``noise``, ``shuffle``, or a function like those in `score.operators`.
    form
        ``mean``, see `score.formulas.mean_score`, or ``bounded`` or ``ratio``, see `score.formulas.score`. The first is
        this project's own, the others are reconstructions.
    pad
        Pixels by which images are padded in all; None for one region's size; a pair for (vertical, horizontal).
    fill
        The empty value in the model's input space, one or one per channel; 0 where None. For normalised images that is
        ``black_level(mean, std)``.
    batch_size
        Images per forward pass; sets the peak memory.
    device
        ``auto``, ``cpu``, ``cuda``, ...
    bootstrap
        Resamples for the intervals; 0 for none (both ends ``nan``).
    confidence
        Nominal coverage of the intervals, in (0, 1).
    seed
        Of the bootstrap and of ``noise`` and ``shuffle``.
    bf16
        Run the forward passes under bfloat16 autocast.
    progress
        Called with (image passes done, image passes in all).

    Returns
    -------
    DScore

    Raises
    ------
    SettingsError
        An argument is out of range.
    DScoreError
        Data or model cannot be scored; the message says what to do.

    References
    ----------
    Zhang et al. 2023, D-Score: A White-Box Diagnosis Score for CNNs Based on Mutation Operators, arXiv 2304.00697. What
    the paper prints and what is reconstructed: `score.formulas`.
    """
    _check_model(model)
    _check_numbers(n=n, batch_size=batch_size, bootstrap=bootstrap, confidence=confidence, seed=seed)
    if form not in FORMS:
        raise SettingsError(unknown_name("form", form, FORMS))
    # A Dataset may draw from the global generators.
    with random_states_kept():
        examples = load_examples(images, labels)
    plan = make_plan(examples, n, operator, pad, fill, batch_size, seed, bf16)
    measured = measure(model, examples, plan, device, progress)
    name = operator if isinstance(operator, str) else getattr(operator, "__name__", type(operator).__name__)
    fill_of_channels = tuple(float(value) for value in plan.fill)
    remarks = fill_remarks(fill, examples.images)
    recipe = Recipe(n, name, form, plan.padding, fill_of_channels, bf16, bootstrap, confidence, seed, remarks)
    return summarise(measured, recipe)


def make_plan(
    examples: Examples,
    n: int,
    operator: str | Operator,
    pad: int | Sequence[int] | None,
    fill: float | Sequence[float] | None,
    batch_size: int,
    seed: int,
    bf16: bool,
    operators: Mapping[str, Operator] = OPERATORS,
) -> Plan:
    """Resolve settings against the data: pixels of padding, value of every channel, the operator's function."""
    channels, height, width = examples.images.shape[1:]
    if n > min(height, width):
        raise SettingsError(
            f"n = {n} is larger than the images ({height} x {width} pixels): set n <= {min(height, width)}"
        )
    if isinstance(operator, str):
        if operator not in operators:
            raise SettingsError(unknown_name("operator", operator, operators))
        operator = operators[operator]
    return Plan(n, operator, total_padding(height, width, n, pad), fill_values(fill, channels), batch_size, seed, bf16)


def _check_model(model: Any) -> None:
    if not isinstance(model, nn.Module):
        raise DScoreError(f"the model is a {type(model).__name__}: give a torch.nn.Module")


def _check_numbers(*, n: int, batch_size: int, bootstrap: int, confidence: float, seed: int) -> None:
    for name, value, least in (
        ("n", n, 2),
        ("batch_size", batch_size, 1),
        ("bootstrap", bootstrap, 0),
        ("seed", seed, 0),
    ):
        if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
            raise SettingsError(f"{name} = {value!r} must be a whole number >= {least}")
    if bootstrap > MOST_RESAMPLES:
        raise SettingsError(f"bootstrap = {bootstrap!r} must be a whole number <= {MOST_RESAMPLES:,}")
    if not (isinstance(confidence, Real) and 0 < confidence <= MOST_CONFIDENCE):
        raise SettingsError(f"confidence = {confidence!r} must lie between 0 and {MOST_CONFIDENCE}, such as 0.95")
