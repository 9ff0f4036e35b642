"""What `DScoreAugment` costs a batch beside one resize of the same canvas, ``python -m benchmarks.augment_speed``.

The augmentation must pad, each image elsewhere, and resize back once; the resize alone is what nobody can do without.
The ratio of the two is printed for images of several sizes, measured alternately in one run.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torchvision.transforms.v2 import functional  # type: ignore[import-untyped]

from pytest_dscore import DScoreAugment

GOAL = 1.20
SIZES = ((256, 1, 28), (256, 3, 32), (128, 3, 96), (64, 3, 224))


def seconds(work: Callable[[], object]) -> float:
    """CPU time of one call, all threads together: a machine that does other work besides changes it least."""
    start = time.process_time()
    work()
    return time.process_time() - start


def ratio(batch: int, channels: int, size: int, p: float, rounds: int) -> tuple[float, float]:
    """Median milliseconds of a resize, and the median ratio of the augmentation to it."""
    images = torch.rand(batch, channels, size, size)
    side = size + round(p * size)
    canvas = torch.rand(batch, channels, side, side)
    augment = DScoreAugment(p)
    # Every image is padded, as a batch of which only some are would be cheaper.
    augment.p = 1.0
    params = augment.make_params([images]) | {"total": (side - size, side - size)}
    params |= {
        "up": [u % (side - size + 1) for u in params["up"]],
        "left": [x % (side - size + 1) for x in params["left"]],
    }
    pairs = []
    for _ in range(rounds):
        alone = seconds(lambda: functional.resize(canvas, [size, size], antialias=True))
        pairs.append((alone, seconds(lambda: augment.transform(images, params))))
    pairs = pairs[1:]
    return statistics.median(a for a, _ in pairs) * 1e3, statistics.median(b / a for a, b in pairs)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--p", type=float, default=0.3)
    given = parser.parse_args()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, p = {given.p}, goal <= {GOAL}")
    for batch, channels, size in SIZES:
        alone, times = ratio(batch, channels, size, given.p, given.rounds)
        print(f"{batch:4} x {channels} x {size:3} x {size:3}: resize {alone:7.2f} ms, augmentation {times:.2f} x")


if __name__ == "__main__":
    main()
