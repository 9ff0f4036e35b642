"""Score-guided augmentation: train with the shifts that the D-Score found the model weak to.

Source: Zhang et al. 2023 as retold in the D-Score spec, item 7. That an image is padded to ``d = (1 + p) d_hat`` with
probability ``p = v_robust / g(n, c)`` and resized back is the paper's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from numbers import Real
from typing import Any

import torch
from torch import Tensor
from torchvision import tv_tensors  # type: ignore[import-untyped]
from torchvision.transforms import v2  # type: ignore[import-untyped]
from torchvision.transforms.v2 import functional  # type: ignore[import-untyped]

from pytest_dscore.errors import DScoreError, SettingsError
from pytest_dscore.score import formulas
from pytest_dscore.score.result import DScore

#: Size of the padded images that are made and resized in one step on a CPU; about what its second cache holds.
_CANVAS_BYTES = 2**20

#: Up to this many pixels a side two matrix products are faster than placing and resizing (benchmarks/augment_speed).
_LARGEST_MATRIX = 112


class DScoreAugment(v2.Transform):  # type: ignore[misc]
    """Pad an image to ``(1 + p)`` times its size with probability p, the object anywhere in it, and resize it back.

    ``d_left ~ U{0, ..., p d_hat}`` pixels go to the left and the rest of ``p d_hat`` to the right, up and down
    likewise, drawn anew for every image. Padding is black; masks are padded with 0, bounding boxes follow. Draws come
    from torch's global generator, as in every transform of torchvision, so `torch.manual_seed` and the seeds of
    DataLoader workers hold.

    Parameters
    ----------
    p
        In [0, 1]: probability and amount. 0 leaves every image untouched, 1 pads each to twice its size.
    fill
        Black in the images' own value space, one number or one per channel; see `black_level` for normalised images.

    Notes
    -----
    Takes what transforms v2 take: PIL images, tensors (..., C, H, W), and the tv_tensors Image, Video, Mask and
    BoundingBoxes. A batch (B, C, H, W) gets a padding of its own for each image and is resized in one call, on its
    device; masks of a batch are (B, ..., H, W). All frames of a video move alike.

    Raises
    ------
    SettingsError
        `p` outside [0, 1], or `fill` not finite.
    """

    def __init__(self, p: float, fill: float | Sequence[float] = 0.0) -> None:
        super().__init__()
        if not isinstance(p, (int, float)) or isinstance(p, bool) or not 0 <= p <= 1:
            raise SettingsError(f"p = {p!r} must be a number between 0 and 1: use from_score or from_v_robust")
        values = [float(value) for value in fill] if isinstance(fill, Sequence) else [float(fill)]
        if not values or not all(map(math.isfinite, values)):
            raise SettingsError(f"fill = {fill!r} must be finite, the value of black, one number or one per channel")
        self.p = float(p)
        self.fill = values

    @classmethod
    def from_v_robust(cls, v_robust: float, n: int, classes: int, fill: float | Sequence[float] = 0.0) -> DScoreAugment:
        """Return the augmentation for a model of this robustness index: ``p = v_robust / g(n, classes)``, at most 1.

        Parameters
        ----------
        v_robust
            At least 0.
        n
            The grid it was computed on.
        classes
            Classes that the model tells apart, at least 2.
        """
        if not isinstance(v_robust, Real) or not math.isfinite(v_robust) or v_robust < 0:
            raise SettingsError(
                f"v_robust = {v_robust!r} must be a finite number of at least 0; of a result, result.v_robust.value"
            )
        if n < 2 or classes < 2:
            raise SettingsError(f"n = {n!r} and classes = {classes!r} must both be at least 2")
        return cls(min(1.0, v_robust / formulas.g(n, classes)), fill)

    @classmethod
    def from_score(cls, result: DScore, fill: float | Sequence[float] | None = None) -> DScoreAugment:
        """Return the augmentation for a model that was scored; black is what it was scored with unless given.

        Give `fill` where the training images have another value space than those scored, for example before they are
        normalised.
        """
        if not hasattr(result, "augmentation_probability"):
            raise SettingsError(f"{result!r} is no result of d_score: use from_v_robust, or DScoreAugment(p)")
        return cls.from_v_robust(result.v_robust.value, result.n, result.classes, result.fill if fill is None else fill)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Draw the paddings for one sample or one batch."""
        image = next((one for one in flat_inputs if _is_image(one)), None)
        if image is None:
            raise DScoreError("DScoreAugment needs an image in the sample: a PIL image, a tensor or a tv_tensors.Image")
        height, width = functional.get_size(image)
        total = round(self.p * height), round(self.p * width)
        batch = _batch(image)
        count = 1 if batch is None else math.prod(batch)
        up, left = (torch.randint(0, pixels + 1, (count,)) for pixels in total)
        return {
            "size": (height, width),
            "total": total,
            "batch": batch,
            "applied": (torch.rand(count) < self.p).tolist(),
            "up": up.tolist(),
            "left": left.tolist(),
        }

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Pad and resize one input."""
        chosen = [i for i, applied in enumerate(params["applied"]) if applied]
        if not chosen or params["total"] == (0, 0):
            return inpt
        if params["batch"] is None:
            return self._one(inpt, params)
        if isinstance(inpt, (tv_tensors.BoundingBoxes, *_KEYPOINTS)) or not isinstance(inpt, Tensor):
            raise DScoreError(
                "DScoreAugment moves each image of a batch on its own and cannot tell to which one a "
                f"{type(inpt).__name__} belongs: apply it to single samples, before they are collated"
            )
        return self._many(inpt, params, chosen)

    def _one(self, inpt: Any, params: dict[str, Any]) -> Any:
        (vertical, horizontal), (up,), (left,) = params["total"], params["up"], params["left"]
        sides = [left, up, horizontal - left, vertical - up]
        padded = functional.pad(inpt, sides, fill=self._fill_for(inpt))
        return functional.resize(padded, list(params["size"]), antialias=True)

    def _fill_for(self, inpt: Any) -> Any:
        if isinstance(inpt, (tv_tensors.Mask, tv_tensors.BoundingBoxes)):
            return 0
        values = self.fill if len(self.fill) > 1 else self.fill[0]
        if isinstance(inpt, Tensor) or not isinstance(values, float):
            return values
        return int(values)  # a PIL image of whole numbers

    def _many(self, inpt: Tensor, params: dict[str, Any], chosen: list[int]) -> Tensor:
        """Move the chosen images of a batch, all in one resize for each direction."""
        batch, size = params["batch"], params["size"]
        if tuple(inpt.shape[: len(batch)]) != batch or tuple(inpt.shape[-2:]) != size:
            raise DScoreError(f"an input of shape {tuple(inpt.shape)} does not belong to a batch of {batch} images")
        plain = inpt.as_subclass(Tensor)
        flat = plain.reshape(-1, *plain.shape[len(batch) :])
        every = len(chosen) == len(flat)
        images = flat if every else flat[torch.tensor(chosen, device=flat.device)]
        black = flat.new_zeros(()) if isinstance(inpt, tv_tensors.Mask) else self._levels(flat)
        left, up = ([params[side][i] for i in chosen] for side in ("left", "up"))
        if _by_axis(inpt) and max(size) <= _LARGEST_MATRIX:
            images = _by_matrices(images, left, up, params["total"], black)
        else:
            images = _by_canvases(images, left, up, params["total"], black, inpt)
        if not every:
            some, images = images, flat.clone()
            images[torch.tensor(chosen, device=flat.device)] = some
        shaped = images.reshape(plain.shape)
        return tv_tensors.wrap(shaped, like=inpt) if isinstance(inpt, tv_tensors.TVTensor) else shaped

    def _levels(self, flat: Tensor) -> Tensor:
        channels = flat.shape[-3]
        if len(self.fill) not in (1, channels):
            raise DScoreError(f"fill has {len(self.fill)} values, but the images have {channels} channels")
        levels = torch.tensor(self.fill, device=flat.device).to(flat.dtype)
        return levels.expand(channels)[:, None, None]

    def extra_repr(self) -> str:
        """Return the parameters for repr."""
        return f"p={self.p:.4g}, fill={self.fill if len(self.fill) > 1 else self.fill[0]}"


def _by_matrices(images: Tensor, left: list[int], up: list[int], total: tuple[int, int], black: Tensor) -> Tensor:
    """Move small images by two matrix products each: padding and resizing is linear, along either axis.

    With black subtracted the padding is 0, so of the matrix that resizes the canvas only the columns count that the
    image lies under.
    """
    (height, width), (vertical, horizontal) = images.shape[-2:], total
    across = _resizing(width, horizontal, images).mT.contiguous()[torch.tensor(left, device=images.device)]
    down = _resizing(height, vertical, images)[torch.tensor(up, device=images.device)]
    level = black if bool(black.any()) else None
    parts = []
    for start, part in _chunks(images, total):
        rows = slice(start, start + len(part))
        flat = (part if level is None else part - level).reshape(len(part), -1, width)
        sideways = torch.bmm(flat, across[rows]).reshape(len(part), -1, height, width)
        moved = torch.matmul(down[rows, None], sideways).reshape(part.shape)
        parts.append(moved if level is None else moved + level)
    return torch.cat(parts) if len(parts) > 1 else parts[0]


def _resizing(length: int, pixels: int, like: Tensor) -> Tensor:
    """The matrices (pixels + 1, length, length) that resize an image at every offset on its canvas."""
    grown = length + pixels
    unit = torch.eye(grown, dtype=torch.float32, device=like.device)[None, None]
    small = functional.resize(unit, [grown, length], antialias=True)[0, 0].T
    matrices: Tensor = small.unfold(1, length, 1).permute(1, 0, 2).to(like.dtype).contiguous()
    return matrices


def _by_canvases(
    images: Tensor, left: list[int], up: list[int], total: tuple[int, int], black: Tensor, like: Tensor
) -> Tensor:
    """Move images by placing them on black canvases that are resized, along one axis and then the other."""
    size = (int(images.shape[-2]), int(images.shape[-1]))
    parts = []
    for start, part in _chunks(images, total):
        moved = part
        for axis, offsets, pixels in ((-1, left, total[1]), (-2, up, total[0])):
            moved = _placed(moved, offsets[start : start + len(part)], pixels, axis, black)
            if axis == -2 or _by_axis(like):
                moved = _resized(moved, size, like)
        parts.append(moved)
    return torch.cat(parts) if len(parts) > 1 else parts[0]


def _chunks(images: Tensor, total: tuple[int, int]) -> Iterator[tuple[int, Tensor]]:
    """Cut a batch on the CPU so that a part's canvas stays in the processor's cache; elsewhere leave it whole."""
    grown = [length + pixels for length, pixels in zip(images.shape[-2:], total, strict=True)]
    each = math.prod((*images.shape[1:-2], *grown)) * images.element_size()
    rows = max(1, _CANVAS_BYTES // each) if images.device.type == "cpu" else len(images)
    for start in range(0, len(images), rows):
        yield start, images[start : start + rows]


def _placed(images: Tensor, offsets: list[int], pixels: int, axis: int, black: Tensor) -> Tensor:
    """Put each image at its own offset along one axis of a black canvas that is larger by so many pixels."""
    shape = list(images.shape)
    length = shape[axis]
    shape[axis] += pixels
    canvas = images.new_empty(shape)
    canvas[:] = black
    for place, (image, offset) in enumerate(zip(images, offsets, strict=True)):
        canvas[place].narrow(axis, offset, length).copy_(image)
    return canvas


def _by_axis(inpt: Tensor) -> bool:
    """Whether a resize per axis gives the same as one for both, at less cost; not where each rounds, nor for masks."""
    return inpt.is_floating_point() and not isinstance(inpt, tv_tensors.Mask)


def _resized(images: Tensor, size: tuple[int, int], like: Tensor) -> Tensor:
    """Resize, in the way that suits the kind of input; along an axis that has the size already nothing is done."""
    kind = tv_tensors.wrap(images, like=like) if isinstance(like, tv_tensors.TVTensor) else images
    small: Tensor = functional.resize(kind, list(size), antialias=True)
    return small.as_subclass(Tensor)


_KEYPOINTS: tuple[type, ...] = tuple(
    kind for name in ("KeyPoints",) if (kind := getattr(tv_tensors, name, None)) is not None
)


def _is_image(inpt: Any) -> bool:
    if isinstance(inpt, tv_tensors.TVTensor):
        return isinstance(inpt, (tv_tensors.Image, tv_tensors.Video))
    return (isinstance(inpt, Tensor) and inpt.ndim >= 3) or hasattr(inpt, "convert")


def _batch(image: Any) -> tuple[int, ...] | None:
    """The leading dimensions over which images are independent; None for a single image or video."""
    if not isinstance(image, Tensor):
        return None
    own = 4 if isinstance(image, tv_tensors.Video) else 3
    return tuple(image.shape[: image.ndim - own]) if image.ndim > own else None
