"""Pictures that go with a score: what the data look like on average, and examples that a shift turned wrong.

They explain figures to a person and take part in none.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from pytest_dscore.score.engine import Hits, Plan, Session
from pytest_dscore.score.examples import Examples
from pytest_dscore.score.guard import borrowed, unwrap
from pytest_dscore.score.mutants import Mutator
from pytest_dscore.score.outputs import predictions
from pytest_dscore.score.shifts import padding_toward, shift

#: Characters of `Exhibit.to_json` at most: it goes into a JUnit file.
LARGEST = 60_000
#: Side of a thumbnail in pixels and colours (None: all), from the best to what fits in any case.
_QUALITIES = ((64, None), (64, 64), (48, 32), (24, 16))
_MEAN_TO_THUMBNAIL = 1.5
_MOST_EXAMPLES = 8
#: Images that the mean is taken over; more would not look otherwise.
_AVERAGED = 2_000

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Example:
    """One image that is classified right as it is and wrong when moved.

    Parameters
    ----------
    row
        Its place in the data, from 0.
    label, prediction
        The true class, and what the model says of the moved image.
    image
        PNG of the moved image.
    """

    row: int
    label: int
    prediction: int
    image: bytes


@dataclass(frozen=True)
class Exhibit:
    """The pictures of one score.

    Parameters
    ----------
    mean
        PNG of the mean of the images.
    region
        (row, column) toward which moving the object costs most accuracy.
    failing
        How many images are right as they are and wrong when moved there.
    examples
        Up to eight of them.
    """

    mean: bytes
    region: tuple[int, int]
    failing: int
    examples: tuple[Example, ...]

    def to_json(self) -> str:
        """As text in ASCII; the pictures in base64."""
        return json.dumps(
            {
                "region": list(self.region),
                "failing": self.failing,
                "mean": _text(self.mean),
                "examples": [{**vars(one), "image": _text(one.image)} for one in self.examples],
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Exhibit:
        """The inverse of `to_json`; KeyError, TypeError or ValueError where it is not that."""
        found = json.loads(text)
        row, col = (int(place) for place in found["region"])
        examples = tuple(Example(**{**one, "image": _png(one["image"])}) for one in found["examples"])
        return cls(_png(found["mean"]), (row, col), int(found["failing"]), examples)


def make_exhibit(model: nn.Module, examples: Examples, plan: Plan, device: str, measured: Hits) -> Exhibit:
    """Draw the pictures; one forward pass over a few images.

    Parameters
    ----------
    model, examples, plan, device
        As they were measured.
    measured
        What came of it.

    Raises
    ------
    DScoreError
        The model can no longer be run.
    """
    count = plan.n**2
    worst = int(measured.hits[count + 1 :].sum(axis=1).argmin())
    row, col = divmod(worst, plan.n)
    lost = np.flatnonzero(measured.hits[0] & ~measured.hits[count + 1 + worst])
    rows = _spread(lost, _MOST_EXAMPLES)
    mean = _mean(examples.images)
    moved, predicted = _moved(unwrap(model), examples.images[rows], plan, device, (row, col))
    chosen = list(zip(rows.tolist(), examples.labels[rows].tolist(), predicted, moved, strict=True))
    for side, colours in _QUALITIES:
        shown = tuple(
            Example(at, label, answer, _thumbnail(image, side, colours))
            for at, label, answer, image in chosen
            if label != answer  # alone in its batch, an image on the border between two classes may fall otherwise
        )
        mean_png = _thumbnail(mean, round(side * _MEAN_TO_THUMBNAIL), colours)
        exhibit = Exhibit(mean_png, (row, col), len(lost), shown)
        if len(exhibit.to_json()) <= LARGEST:
            break
    return exhibit


def _moved(
    model: nn.Module, images: Tensor, plan: Plan, device: str, region: tuple[int, int]
) -> tuple[Iterator[Tensor], list[int]]:
    """Images as the model saw them with the object moved toward `region`, and what it answers."""
    if len(images) == 0:
        return iter(()), []
    with borrowed(model, device) as place, torch.no_grad():
        images = images.to(place)
        images = images.float() if images.dtype in (torch.float16, torch.bfloat16) else images
        moved = shift(images, padding_toward(*region, plan.n, plan.padding), plan.fill.to(images))
        # The mutator is not entered: no layer is hooked.
        session = Session(model, Mutator(model, plan.n, plan.operator, plan.seed), plan, place)
        predicted = predictions(session.logits(moved.clone()), "when the object is moved")
    return iter(moved.cpu()), predicted.tolist()


def _mean(images: Tensor) -> Tensor:
    """The mean image, (C, H, W)."""
    rows = _spread(np.arange(len(images)), _AVERAGED)
    total = torch.zeros(images.shape[1:], dtype=torch.float64)
    for row in rows.tolist():
        total += images[row].detach().cpu()
    return total / len(rows)


def _spread(values: NDArray[np.int64], most: int) -> NDArray[np.int64]:
    """At most so many of the values, spread evenly over all of them: data are often sorted by class."""
    if len(values) <= most:
        return values
    chosen: NDArray[np.int64] = values[np.linspace(0, len(values) - 1, most).round().astype(np.int64)]
    return chosen


def _thumbnail(image: Tensor, side: int, colours: int | None) -> bytes:
    """PNG of an image (C, H, W) whose longer side has at most so many pixels."""
    picture = Image.fromarray(_displayed(image))
    picture.thumbnail((side, side))
    if colours is not None:
        picture = picture.quantize(colours)
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return file.getvalue()


def _displayed(image: Tensor) -> Bytes:
    """Grey (H, W), or (H, W, 3) for three channels, stretched to the range of this image: a model's input may be any.

    The darkest and the brightest half percent are clipped, unless nothing were left.
    """
    values: NDArray[np.float64] = image.detach().double().cpu().numpy()
    values = values.transpose(1, 2, 0) if len(values) == 3 else values.mean(axis=0)
    low, high = np.percentile(values, [0.5, 99.5])
    if high <= low:
        low, high = values.min(), values.max()
    scaled = (values - low) / (high - low) if high > low else np.zeros_like(values)
    return np.ascontiguousarray((scaled.clip(0, 1) * 255).round().astype(np.uint8))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _png(text: Any) -> bytes:
    return base64.b64decode(text, validate=True)
