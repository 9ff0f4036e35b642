"""DScoreAugment: what it draws, that it is the padding and resizing it says, and that boxes and masks follow."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import stats
from torch.utils.data import DataLoader
from torchvision import tv_tensors  # type: ignore[import-untyped]
from torchvision.transforms import v2  # type: ignore[import-untyped]

from pytest_dscore import DScoreAugment, DScoreError, SettingsError
from pytest_dscore.score.formulas import g
from tests.score.hitting import correlated_hits, result_of

IMAGE = torch.rand(3, 12, 20, generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def params(p: float, draws: int, height: int = 12, width: int = 20) -> dict[str, Any]:
    batch = torch.zeros(draws, 1, height, width)
    found: dict[str, Any] = DScoreAugment(p).make_params([batch])
    return found


def test_an_image_is_padded_as_often_as_p_says() -> None:
    applied = sum(params(0.3, 20_000)["applied"])
    assert stats.binomtest(applied, 20_000, 0.3).pvalue > 0.001


@pytest.mark.parametrize("side", ["left", "up"])
def test_where_the_object_goes_is_uniform(side: str) -> None:
    drawn = params(0.5, 20_000)[side]
    possible = {"left": 20, "up": 12}[side] // 2 + 1
    counts = np.bincount(drawn, minlength=possible)
    assert len(counts) == possible
    assert stats.chisquare(counts).pvalue > 0.001


def test_the_two_directions_are_drawn_independently() -> None:
    found = params(0.5, 20_000)
    assert abs(stats.spearmanr(found["left"], found["up"]).statistic) < 0.03


def test_the_amount_is_p_times_the_size() -> None:
    assert params(0.25, 1, 40, 80)["total"] == (10, 20)
    assert params(1.0, 1, 40, 80)["total"] == (40, 80)


def test_p_is_one_where_v_robust_is_its_worst_case() -> None:
    assert DScoreAugment.from_v_robust(g(3, 10), 3, 10).p == 1.0
    assert DScoreAugment.from_v_robust(2 * g(3, 10), 3, 10).p == 1.0
    assert DScoreAugment.from_v_robust(g(3, 10) / 4, 3, 10).p == pytest.approx(0.25)


def test_from_score_takes_everything_from_the_result() -> None:
    result = result_of(correlated_hits(100, 9, seed=3), classes=5)
    augment = DScoreAugment.from_score(result)
    assert augment.p == pytest.approx(result.v_robust.value / g(2, 5))
    assert augment.p == result.augmentation_probability
    assert augment.fill == [0.0]
    assert DScoreAugment.from_score(result, fill=(0.1, 0.2, 0.3)).fill == [0.1, 0.2, 0.3]


@pytest.mark.parametrize("image", [IMAGE, IMAGE[None].expand(4, -1, -1, -1), Image.new("L", (8, 8), 7)])
def test_p_zero_leaves_images_untouched(image: Any) -> None:
    assert DScoreAugment(0.0)(image) is image


def naive(image: torch.Tensor, p: float, left: int, up: int, fill: float) -> torch.Tensor:
    """The paper's steps with other functions: a canvas, then torchvision's functional resize."""
    height, width = image.shape[-2:]
    vertical, horizontal = round(p * height), round(p * width)
    canvas = torch.full((*image.shape[:-2], height + vertical, width + horizontal), fill)
    canvas[..., up : up + height, left : left + width] = image
    small: torch.Tensor = v2.functional.resize(canvas, [height, width], antialias=True)
    return small


@pytest.mark.parametrize("size", [(12, 20), (120, 130)], ids=["by matrices", "by canvases"])
def test_a_batch_is_what_each_image_alone_would_become(size: tuple[int, int]) -> None:
    images = torch.rand(16, 3, *size)
    augment = DScoreAugment(0.6, fill=0.25)
    torch.manual_seed(5)
    drawn = augment.make_params([images])
    torch.manual_seed(5)
    result = augment(images)
    assert 0 < sum(drawn["applied"]) < 16
    for i, image in enumerate(images):
        moved = naive(image, 0.6, drawn["left"][i], drawn["up"][i], 0.25)
        torch.testing.assert_close(result[i], moved if drawn["applied"][i] else image)


def test_each_image_of_a_batch_gets_a_padding_of_its_own() -> None:
    result = DScoreAugment(1.0)(IMAGE[None].expand(8, -1, -1, -1))
    assert len({tuple(image.flatten().tolist()) for image in result}) == 8
    assert IMAGE.max() > 0.9


def test_black_is_black_in_every_channel() -> None:
    levels = (-2.0, -1.5, -1.0)
    result = DScoreAugment(1.0, fill=levels)(torch.ones(64, 3, 16, 16))
    assert result.amin(dim=(0, 2, 3)).tolist() == pytest.approx(list(levels))


@pytest.mark.parametrize("kind", ["tensor", "image", "pil", "uint8", "video"])
def test_single_samples_of_every_kind(kind: str) -> None:
    made: Any = {
        "tensor": IMAGE,
        "image": tv_tensors.Image(IMAGE),
        "pil": Image.fromarray(np.full((12, 20), 255, np.uint8)),
        "uint8": torch.full((3, 12, 20), 255, dtype=torch.uint8),
        "video": tv_tensors.Video(IMAGE.expand(5, -1, -1, -1)),
    }[kind]
    result = DScoreAugment(1.0)(made)
    assert type(result) is type(made)
    if kind == "pil":
        assert (result.size, result.mode) == (made.size, made.mode)
        assert np.asarray(result).min() == 0
    else:
        assert (result.shape, result.dtype) == (made.shape, made.dtype)
        assert result.float().sum() < 0.5 * made.float().sum()


def test_all_frames_of_a_video_move_alike_and_videos_of_a_batch_do_not() -> None:
    videos = tv_tensors.Video(IMAGE.expand(6, 5, -1, -1, -1))
    result = DScoreAugment(1.0)(videos)
    assert isinstance(result, tv_tensors.Video)
    for video in result:
        assert all(torch.equal(frame, video[0]) for frame in video)
    assert len({tuple(video[0].flatten().tolist()) for video in result}) == 6


def test_boxes_and_masks_follow_the_object() -> None:
    image = torch.zeros(1, 40, 40)
    image[:, 10:20, 10:20] = 1.0
    mask = tv_tensors.Mask(image[0] > 0.5)
    box = tv_tensors.BoundingBoxes([[10, 10, 20, 20]], format="XYXY", canvas_size=(40, 40), dtype=torch.float32)
    for _ in range(10):
        moved, at, within = DScoreAugment(1.0)(tv_tensors.Image(image), box, mask)
        left, top, right, bottom = at[0].tolist()
        assert (right - left, bottom - top) == pytest.approx((5, 5))
        rows, columns = torch.nonzero(moved[0] > 0.5, as_tuple=True)
        assert abs((rows.float().mean() + 0.5).item() - (top + bottom) / 2) <= 0.51
        assert abs((columns.float().mean() + 0.5).item() - (left + right) / 2) <= 0.51
        rows, columns = torch.nonzero(within, as_tuple=True)
        assert abs((rows.float().mean() + 0.5).item() - (top + bottom) / 2) <= 1.0
        assert within.dtype == torch.bool


def test_masks_of_a_batch_follow_their_images() -> None:
    images = torch.zeros(8, 1, 40, 40)
    images[:, :, 10:20, 10:20] = 1.0
    moved, masks = DScoreAugment(1.0)(tv_tensors.Image(images), tv_tensors.Mask(images[:, 0] > 0.5))
    assert isinstance(masks, tv_tensors.Mask)
    for image, mask in zip(moved, masks, strict=True):
        overlap = ((image[0] > 0.5) & mask).sum() / mask.sum()
        assert overlap > 0.6


def test_boxes_of_a_batch_are_refused() -> None:
    boxes = tv_tensors.BoundingBoxes([[1, 1, 2, 2]], format="XYXY", canvas_size=(12, 20))
    with pytest.raises(DScoreError, match="cannot tell to which one a BoundingBoxes belongs"):
        DScoreAugment(1.0)(tv_tensors.Image(IMAGE.expand(4, -1, -1, -1)), boxes)


def test_labels_pass_through() -> None:
    _, label = DScoreAugment(1.0)(IMAGE, 7)
    assert label == 7
    _, labels = DScoreAugment(1.0)(IMAGE.expand(4, -1, -1, -1), torch.arange(4))
    assert labels.tolist() == [0, 1, 2, 3]


def test_it_works_within_compose_and_from_pickles() -> None:
    pipeline = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), DScoreAugment(0.5, fill=0.1)])
    again = pickle.loads(pickle.dumps(pipeline))  # noqa: S301 - our own bytes
    picture = Image.fromarray(np.arange(240, dtype=np.uint8).reshape(12, 20))
    torch.manual_seed(1)
    one = pipeline(picture)
    torch.manual_seed(1)
    assert torch.equal(one, again(picture))
    assert repr(again.transforms[2]) == "DScoreAugment(p=0.5, fill=0.1)"


class _Images(torch.utils.data.Dataset[torch.Tensor]):
    transform = DScoreAugment(1.0)

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        moved: torch.Tensor = self.transform(IMAGE)
        return moved


def test_workers_draw_differently_and_repeatably() -> None:
    def epoch() -> list[torch.Tensor]:
        torch.manual_seed(3)
        return list(DataLoader(_Images(), batch_size=None, num_workers=2))

    first = epoch()
    assert len({tuple(image.flatten().tolist()) for image in first}) == 8
    assert all(torch.equal(one, other) for one, other in zip(first, epoch(), strict=True))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: DScoreAugment(1.2), "p = 1.2 must be a number between 0 and 1"),
        (lambda: DScoreAugment(float("nan")), "must be a number between 0 and 1"),
        (lambda: DScoreAugment(True), "must be a number between 0 and 1"),
        (lambda: DScoreAugment(0.5, fill=float("inf")), "fill = inf must be finite"),
        (lambda: DScoreAugment.from_v_robust(-1.0, 3, 10), "v_robust = -1.0 must be a finite number"),
        (lambda: DScoreAugment.from_v_robust(1.0, 1, 10), "must both be at least 2"),
    ],
)
def test_unusable_arguments(make: Any, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        make()


def test_a_sample_without_an_image_and_a_fill_that_does_not_fit() -> None:
    with pytest.raises(DScoreError, match="needs an image in the sample"):
        DScoreAugment(1.0)(7)
    with pytest.raises(DScoreError, match="fill has 2 values, but the images have 3 channels"):
        DScoreAugment(1.0, fill=(0.0, 1.0))(IMAGE.expand(4, -1, -1, -1))
