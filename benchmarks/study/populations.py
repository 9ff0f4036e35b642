"""Which networks the study trains."""

from __future__ import annotations

from benchmarks.study.measured import Recipe
from benchmarks.study.work import Task

#: Test examples and networks for how stable the score is.
STABILITY_EXAMPLES = 10_000

#: Architecture, augmentation, epochs, training images: from hardly trained to as well as such networks get here.
_MIXED = """
strided    none      1  6000
batchnorm  none      1  8000
wide       rhf       1 10000
dense      shift     2  6000
separable  crop      1 10000
plain      rr        1 12000
residual   rhf       1 10000
strided    crop      2 12000
plain      none      2 10000
dense      none      3 12000
separable  none      2 14000
batchnorm  dscore-.3 2 16000
wide       affine    3 12000
residual   none      2 14000
plain      rhf       3 14000
strided    rhf       4 16000
dense      rhf+crop  4 14000
separable  affine    3 18000
batchnorm  rhf       3 16000
wide       none      3 18000
residual   erase     3 14000
plain      crop      4 16000
strided    erase     4 18000
dense      light     5 16000
batchnorm  affine    4 16000
separable  rhf+crop  4 18000
plain      dscore-.5 4 18000
residual   shift     3 18000
wide       rhf+crop  4 18000
plain      rhf+erase 5 18000
batchnorm  rr        5 18000
separable  rhf       6 18000
residual   rhf+crop  5 18000
residual   rhf       6 18000
"""

#: Of `_MIXED`, by line, those whose stability is measured: of several architectures, from worst to best.
_STABLE = (0, 5, 15, 21, 25, 31)

#: Test examples of the smallest run.
SMALLEST_EXAMPLES = 60

#: The peak learning rates, epochs and training images among which strangers might choose for the one architecture.
_RATES = ("0.4", "0.7", "1", "1.4", "2")
_LENGTHS = ((2, 12000), (3, 12000), (3, 16000), (4, 14000), (3, 18000))


def populations(*, mnist: bool = False) -> dict[str, list[Task]]:
    """Networks by population: ``mixed`` of everything, ``uniform`` of one architecture, both on CIFAR-10.

    Parameters
    ----------
    mnist
        Also ``mixed-mnist``, 24 networks.
    """
    found = {"mixed": mixed("cifar10"), "uniform": uniform()}
    if mnist:
        found["mixed-mnist"] = mixed("mnist", share=0.5)[:24]
    return found


def mixed(dataset: str, share: float = 1.0) -> list[Task]:
    """Networks about as mixed as users' are, hardly trained ones first.

    Parameters
    ----------
    dataset
        A name known to `data.load`.
    share
        How many of the training images to use, of the numbers for CIFAR-10.
    """
    lines = [line.split() for line in _MIXED.split("\n") if line]
    return [
        Task(Recipe(dataset, architecture, augmentation, int(epochs), seed, round(int(examples) * share)))
        for seed, (architecture, augmentation, epochs, examples) in enumerate(lines)
    ]


def uniform() -> list[Task]:
    """Thirty networks of one architecture, as thirty strangers would train it."""
    tasks = []
    for stranger in range(30):
        rate = _RATES[stranger % len(_RATES)]
        epochs, examples = _LENGTHS[(stranger + stranger // 5) % len(_LENGTHS)]
        augmentation = "rhf" if stranger % 2 else "none"
        tasks.append(Task(Recipe("cifar10", f"plain@{rate}", augmentation, epochs, 100 + stranger, examples)))
    return tasks


def stable(examples: int = STABILITY_EXAMPLES) -> list[Task]:
    """Of `mixed`, some to be measured on more examples and with further seeds."""
    tasks = mixed("cifar10")
    return [Task(tasks[line].recipe, ("everything", "seeds"), examples) for line in _STABLE]


def smallest() -> dict[str, list[Task]]:
    """A tiny population on the digits, to see that everything runs."""
    kinds = (("plain", "none"), ("strided", "rhf"), ("batchnorm@0.5", "shift"), ("plain", "crop"))
    tasks = [
        Task(Recipe("digits", architecture, augmentation, 2 + seed, seed, 640), examples=SMALLEST_EXAMPLES)
        for seed, (architecture, augmentation) in enumerate(kinds)
    ]
    return {"mixed": tasks}
