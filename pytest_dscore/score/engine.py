"""The engine: which examples the model, its n^2 mutants and the n^2 shifted data sets get right, block by block.

`hit_blocks` yields one block of examples at a time with all 2 n^2 + 1 passes done, so a caller may stop early, merge
partial results or resume; everything above works on hits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pytest_dscore.errors import DScoreError, first_line
from pytest_dscore.score.examples import Examples
from pytest_dscore.score.guard import borrowed, unwrap
from pytest_dscore.score.mutants import Mutator
from pytest_dscore.score.operators import Operator
from pytest_dscore.score.outputs import predictions, read_logits
from pytest_dscore.score.regions import place_name, region_name, regions
from pytest_dscore.score.shifts import Padding, shift, shifts

Progress = Callable[[int, int], None]

#: Examples that the identity check runs through the model a second and a third time.
_CHECKED_EXAMPLES = 4


@dataclass(frozen=True)
class Plan:
    """What is to be run; together with weights and data it determines every hit.

    Parameters
    ----------
    n
        The grid.
    operator
        Mutation operator.
    padding
        Pixels added in all, (vertical, horizontal).
    fill : Tensor, (C,)
        Empty value of every channel.
    batch_size
        Examples per forward pass.
    seed
        Base of the operators' seeds.
    bf16
        Run the forward passes under bfloat16 autocast.
    """

    n: int
    operator: Operator
    padding: tuple[int, int]
    fill: Tensor
    batch_size: int
    seed: int
    bf16: bool


@dataclass(frozen=True)
class Block:
    """Examples start..stop and whether each pass got them right."""

    start: int
    stop: int
    hits: NDArray[np.bool_]


@dataclass(frozen=True)
class Hits:
    """All passes over all examples.

    Parameters
    ----------
    hits : (2 n^2 + 1, N) bool
        Row 0 the unchanged model on the unchanged data, then the n^2 mutants, then the n^2 shifts, regions in reading
        order.
    classes
        Number of classes the model tells apart.
    maps : dict of str to (height, width)
        Output map of every convolutional layer that ran.
    skipped
        Layers whose map is smaller than n x n and was left alone.
    device
        Where the passes ran.
    unused
        Convolutional layers that never ran as modules, and so were never mutated.
    predicted_classes
        How many different classes the unchanged model predicts on the unchanged data; 0 where it was not counted.
    """

    hits: NDArray[np.bool_]
    classes: int
    maps: dict[str, tuple[int, int]]
    skipped: tuple[str, ...]
    device: str
    unused: tuple[str, ...] = ()
    predicted_classes: int = 0


@dataclass
class Session:
    """A model ready to be run: hooks in place, evaluation mode, device chosen."""

    model: nn.Module
    mutator: Mutator
    plan: Plan
    device: torch.device
    classes: int = 0
    predicted: set[int] = field(default_factory=set)
    looks_like_probabilities: bool = True
    clean: Tensor = field(default_factory=lambda: torch.empty(0))
    _dtype: torch.dtype = field(init=False)

    def __post_init__(self) -> None:
        floats = (p.dtype for p in self.model.parameters() if p.is_floating_point())
        self._dtype = next(floats, torch.float32)

    def logits(self, images: Tensor, region: tuple[int, int] | None = None) -> Tensor:
        """One forward pass (B, c), of the mutant for `region` where given; the model may write to `images`."""
        self.mutator.region = region
        try:
            with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.plan.bf16):
                output = self.model(images.to(self._dtype))
        except (DScoreError, KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # pytest.skip() in a forward pass must not skip the gate.
            raise DScoreError(_explain_failure(error, images)) from error
        finally:
            self.mutator.region = None
        return read_logits(output, len(images))

    def hits(self, images: Tensor, labels: Tensor, situation: str, region: tuple[int, int] | None = None) -> Tensor:
        """Which examples one pass gets right, (B,) bool."""
        return predictions(self.logits(images, region), situation) == labels

    def clean_hits(self, images: Tensor, labels: Tensor) -> Tensor:
        """The same for the unchanged model on the unchanged data, noting what it predicts."""
        logits = self.logits(images)
        predicted = predictions(logits, "on the unchanged data")
        self.predicted |= set(predicted.tolist())
        single = logits.shape[1] == 1 and bool(((logits >= 0) & (logits <= 1)).all())
        self.looks_like_probabilities = self.looks_like_probabilities and single
        return predicted == labels


def measure(model: nn.Module, examples: Examples, plan: Plan, device: str, progress: Progress | None = None) -> Hits:
    """Run all passes over all examples; see `hit_blocks` for the parts and the errors."""
    model = unwrap(model)
    passes = 2 * plan.n**2 + 1
    hits = np.zeros((passes, len(examples)), dtype=np.bool_)
    with borrowed(model, device) as place, Mutator(model, plan.n, plan.operator, plan.seed) as mutator:
        session = Session(model, mutator, plan, place)
        for block in hit_blocks(session, examples, progress):
            hits[:, block.start : block.stop] = block.hits
    return Hits(
        hits, session.classes, mutator.maps, mutator.skipped, str(place), mutator.unused, len(session.predicted)
    )


def hit_blocks(session: Session, examples: Examples, progress: Progress | None = None) -> Iterator[Block]:
    """Yield the hits of one batch of examples at a time, all 2 n^2 + 1 passes each.

    Parameters
    ----------
    progress
        Called with (image passes done, image passes in all).

    Raises
    ------
    DScoreError
        The model raises, gives no logits, gives NaN, is not deterministic, has nothing to mask, or has fewer outputs
        than the labels need.
    """
    size = session.plan.batch_size
    passes = 2 * session.plan.n**2 + 1
    for start in range(0, len(examples), size):
        stop = min(start + size, len(examples))
        # Not inference_mode: a constant that a model makes and keeps during a pass must stay usable in training.
        with torch.no_grad():
            images = _batch(examples, start, stop, session.device)
            labels = examples.labels[start:stop].to(session.device)
            if start == 0:
                _check_identity(session, images)
                _check_batch(session, images)
                _check_labels(session, examples.labels)
            rows = []
            for row in _passes(session, images, labels):
                rows.append(row)
                if progress is not None:
                    progress(start * passes + len(rows) * len(images), len(examples) * passes)
            block = torch.stack(rows).cpu().numpy()
        yield Block(start, stop, block)
    with torch.no_grad():
        _check_again(session, _batch(examples, 0, len(session.clean), session.device))
    _check_outputs(session)


def _batch(examples: Examples, start: int, stop: int, device: torch.device) -> Tensor:
    images = examples.images[start:stop].to(device)
    # Resizing is not there for 16-bit floats on every device.
    return images.float() if images.dtype in (torch.float16, torch.bfloat16) else images


def _passes(session: Session, images: Tensor, labels: Tensor) -> Iterator[Tensor]:
    plan = session.plan
    fill = plan.fill.to(images)
    yield session.clean_hits(images.clone(), labels)
    for row, col in regions(plan.n):
        yield session.hits(
            images.clone(), labels, f"when the {region_name(row, col, plan.n)} region is mutated", (row, col)
        )
    moved = shifts(images, plan.n, plan.padding, fill)
    for (row, col), shifted in zip(regions(plan.n), moved, strict=True):
        yield session.hits(shifted, labels, f"when the object is {place_name(row, col, plan.n)}")


def _check_identity(session: Session, images: Tensor) -> None:
    """Before scoring: no mutation and no shift must give exactly the clean predictions."""
    few = images[:_CHECKED_EXAMPLES]
    if not torch.equal(shift(few, Padding(0, 0, 0, 0), session.plan.fill.to(few)), few):
        raise DScoreError("resizing images without a shift changes them on this device: score on the CPU")
    clean = session.clean = session.logits(few.clone())
    session.mutator.require_a_map()
    # A mutant whose operator does nothing takes every step of a real one.
    operator, session.mutator.operator = session.mutator.operator, _do_nothing
    again = session.logits(few.clone(), (0, 0))
    session.mutator.operator = operator
    session.classes = max(2, clean.shape[1])
    same = torch.equal(predictions(clean, "on the unchanged data"), predictions(again, "on the unchanged data"))
    if not (same and _close(again, clean)):
        raise DScoreError(
            "the model gives other logits for the same images a second time: "
            "make its evaluation mode deterministic (dropout called with training=True? random augmentation inside?)"
        )


def _check_batch(session: Session, images: Tensor) -> None:
    """Before scoring: an example's logits must not depend on its batch."""
    if not _close(session.logits(images[:2].clone()), session.clean[:2]):
        raise DScoreError(
            "the model's logits of an image depend on the other images in the batch, so its score would depend on "
            "batch_size: use statistics of the training data, such as nn.BatchNorm2d in evaluation mode"
        )


def _check_again(session: Session, few: Tensor) -> None:
    """After scoring: the model must still answer as it did before."""
    if not _close(session.logits(few.clone()), session.clean):
        raise DScoreError(
            "the model gives other logits after the passes than before them: make its evaluation mode free of state "
            "(a counter, a running mean or a hidden state that forward changes?)"
        )


def _check_outputs(session: Session) -> None:
    """After scoring: a single output must be a logit."""
    if session.looks_like_probabilities:
        raise DScoreError(
            "the model's single output lies between 0 and 1 for every image, so it looks like a probability: return "
            "the logit (the value before the sigmoid), which is above 0 for class 1"
        )


def _close(logits: Tensor, others: Tensor) -> bool:
    # Infinite logits, by which some models rule classes out, are equal to themselves.
    return torch.allclose(logits, others, rtol=1e-3, atol=1e-4)


def _check_labels(session: Session, labels: Tensor) -> None:
    worst = int(labels.argmax())
    if int(labels[worst]) >= session.classes:
        raise DScoreError(
            f"label {int(labels[worst])} of row {worst} is out of range: the model tells {session.classes} classes "
            f"apart (0 to {session.classes - 1})"
        )


def _do_nothing(cell: Tensor, output: Tensor, seed: int) -> None:
    """The operator of the identity check."""


def _explain_failure(error: BaseException, images: Tensor) -> str:
    what = f"the model raised {type(error).__name__} on a batch of shape {tuple(images.shape)}: {first_line(error)}"
    if isinstance(error, (torch.cuda.OutOfMemoryError, MemoryError)):
        return f"{what}; lower batch_size"
    return what
