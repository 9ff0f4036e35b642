"""The page's last section: how the networks were trained and measured, from the code itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from benchmarks.study import networks, page, training, unseen
from benchmarks.study.data import VALIDATION
from benchmarks.study.work import Task


def report(populations: Mapping[str, Sequence[Task]]) -> str:
    """Write the section.

    Parameters
    ----------
    populations
        Networks by the name of their population.

    Returns
    -------
    str
        Markdown.
    """
    return page.section(
        "How the networks were made",
        page.wrapped(_TRAINING),
        page.table(
            ("architecture", "layers", "optimiser", "peak rate", "weights, 32 x 32"), map(_architecture, _NAMES)
        ),
        page.wrapped(_MIX),
        page.table(("population", "networks", "architectures", "augmentations", "epochs", "images"), _mix(populations)),
        page.wrapped(_unseen()),
    )


_NAMES = tuple(networks.ARCHITECTURES)
_TRAINING = f"""Batches of {training.BATCH}, a one-cycle schedule up to the peak rate below, cross-entropy, pixels in
[0, 1] that the network normalises itself; every augmentation draws anew for every image. The first images of the
training set in one fixed random order are used; {VALIDATION:,} others (digits: 195) choose p. Runs are seeded and
repeat bit by bit on one machine."""
_MIX = """*crop*: padded by an eighth of the size and cut out anywhere; *shift*: up to 15 % of the size; *affine*: 15
degrees, 25 % of scale and 10 % of shift; *erase*: a black rectangle in half of the images; *light*: 40 % brighter or
darker; *rhf*, *rvf*, *rr*: horizontal flip, vertical flip, rotation by up to 15 degrees; *dscore-p*:
`DScoreAugment(p)`; names joined by + follow one another. *NAME@x* has x times the peak rate."""


def _architecture(name: str) -> list[str]:
    found = networks.ARCHITECTURES[name]
    weights = sum(weight.numel() for weight in networks.build(name, 3, 32, 10).parameters())
    layers = " ".join((found.layers.__doc__ or "").split()).rstrip(".")
    return [name, layers, found.optimiser, f"{found.rate:g}", f"{weights:,}"]


def _mix(populations: Mapping[str, Sequence[Task]]) -> Iterable[list[str]]:
    for name, tasks in populations.items():
        recipes = [task.recipe for task in tasks]
        kinds = (
            sorted({getattr(recipe, field) for recipe in recipes})
            for field in ("architecture", "augmentation", "epochs", "examples")
        )
        architectures, augmentations, epochs, examples = kinds
        lengths = [f"{values[0]:,} to {values[-1]:,}" for values in (epochs, examples)]
        yield [name, str(len(recipes)), ", ".join(architectures), ", ".join(augmentations), *lengths]


def _unseen() -> str:
    return (
        f"Unseen transforms ({len(unseen.UNSEEN)}): {', '.join(unseen.UNSEEN)}. *translate-m*: by m - 0.08 to m of the "
        "size in any direction, black where nothing is, nothing resized; *rescale-a-b*: by a factor from a to b about "
        "the centre; *rotate-a-b*: by a to b degrees either way; *crop-s*: a square of s of the sides, from anywhere, "
        "enlarged to the old size. Amounts are drawn for each test example by its index, the same for every network. "
        "Their kinds are akin to the score's shifts, and no colour, noise or blur is among them: of those the study "
        "says nothing."
    )
