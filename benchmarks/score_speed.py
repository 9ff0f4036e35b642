"""Speed and memory of the D-Score, ``python -m benchmarks.score_speed``.

Three ways to the same 2 n^2 + 1 passes, on the same tensors, in one process:

A. plain ``model(x)`` passes in inference mode, nothing else: the least that any way must cost;
B. the straightforward way: a deep copy with forward hooks for every mutant, and a DataLoader over a Dataset that pads
   and resizes image by image for every region;
C. `d_score`, from the tensors to the intervals.

The machine may be shared, so the three are not run one after the other: after every forward pass of C, A and B do one
of theirs, and each way's time is the sum of its own slices. A slowdown of the machine that lasts longer than a few
passes then hits all three alike. ``--whole`` runs them one after the other instead.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import platform
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
from torchvision.transforms.v2 import functional as transforms  # type: ignore[import-untyped]

from benchmarks.score_cases import CASES, Case
from benchmarks.score_memory import Memory, measure_memory
from pytest_dscore.score import d_score
from pytest_dscore.score.engine import Progress

N = 3
GOAL_PLAIN = 1.05
GOAL_STRAIGHTFORWARD = 0.5
_MEMORY_RUNS = ((500, 64), (2000, 64), (2000, 16))


@dataclass
class Stopwatch:
    """Wall time and the process's CPU time (all threads) of one way, in seconds."""

    wall: float = 0.0
    cpu: float = 0.0

    def __enter__(self) -> Stopwatch:
        self.wall -= time.perf_counter()
        self.cpu -= time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.wall += time.perf_counter()
        self.cpu += time.process_time()


@dataclass(frozen=True)
class Repetition:
    """One run of the three ways."""

    plain: Stopwatch
    straightforward: Stopwatch
    ours: Stopwatch
    different_hits: int


@dataclass(frozen=True)
class Spread:
    """Median and extremes of a ratio over the repetitions."""

    median: float
    least: float
    most: float


@dataclass(frozen=True)
class Summary:
    """All repetitions of one case.

    Parameters
    ----------
    wall_to_plain, cpu_to_plain
        C / A.
    wall_to_straightforward, cpu_to_straightforward
        C / B.
    wall_floor, cpu_floor
        A / B: what C / B would be if C cost nothing but plain forward passes.
    different_hits
        Most hits, of (2 n^2 + 1) N, in which B and C differed.
    """

    name: str
    source: str
    images: int
    batch_size: int
    wall_to_plain: Spread
    cpu_to_plain: Spread
    wall_to_straightforward: Spread
    cpu_to_straightforward: Spread
    wall_floor: Spread
    cpu_floor: Spread
    different_hits: int
    repetitions: tuple[Repetition, ...] = field(repr=False)


def plain_passes(case: Case) -> Iterator[int]:
    """Way A; yields the number of images after every forward pass."""
    for start in range(0, len(case.images), case.batch_size):
        batch = case.images[start : start + case.batch_size]
        for _ in range(2 * N**2 + 1):
            with torch.inference_mode():
                case.model(batch)
            yield len(batch)


class Moved(Dataset[tuple[Tensor, Tensor]]):
    """Images padded toward one region and resized back one by one, as a transform does it.

    Parameters
    ----------
    case
        Images, labels and the empty value.
    row, col
        The region.
    """

    def __init__(self, case: Case, row: int, col: int) -> None:
        self._case = case
        self._size = list(case.images.shape[2:])
        height, width = (round(side / N) for side in self._size)
        left, up = round(width * col / (N - 1)), round(height * row / (N - 1))
        self._padding = [left, up, width - left, height - up]

    def __len__(self) -> int:
        return len(self._case.labels)

    def __getitem__(self, row: int) -> tuple[Tensor, Tensor]:
        padded = transforms.pad(self._case.images[row], self._padding, fill=list(self._case.fill))
        return transforms.resize(padded, self._size, antialias=True), self._case.labels[row]


def straightforward(case: Case, hits: NDArray[np.bool_]) -> Iterator[int]:
    """Way B; fills `hits` and yields the number of images after every forward pass."""
    data = TensorDataset(case.images, case.labels)
    regions = [(row, col) for row in range(N) for col in range(N)]
    yield from _one_pass(case.model, data, case.batch_size, hits[0])
    for index, (row, col) in enumerate(regions):
        yield from _one_pass(_mutant(case.model, row, col), data, case.batch_size, hits[1 + index])
    for index, (row, col) in enumerate(regions):
        yield from _one_pass(case.model, Moved(case, row, col), case.batch_size, hits[1 + N**2 + index])


def _mutant(model: nn.Module, row: int, col: int) -> nn.Module:
    def delete(module: nn.Module, arguments: Any, output: Tensor) -> Tensor:
        height, width = output.shape[2:]
        if min(height, width) >= N:
            rows = slice(row * height // N, (row + 1) * height // N)
            output[:, :, rows, col * width // N : (col + 1) * width // N] = 0
        return output

    mutant = copy.deepcopy(model)
    for layer in mutant.modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(delete)
    return mutant


def _one_pass(model: nn.Module, data: Dataset[Any], batch_size: int, row: NDArray[np.bool_]) -> Iterator[int]:
    start = 0
    for images, labels in DataLoader(data, batch_size=batch_size):
        with torch.inference_mode():
            right = model(images).argmax(dim=1) == labels
        row[start : start + len(right)] = right.numpy()
        start += len(right)
        yield len(right)


def ours(case: Case, progress: Progress | None) -> NDArray[np.bool_]:
    """Way C."""
    size = case.batch_size
    scored = d_score(
        case.model, case.images, case.labels, N, fill=case.fill, batch_size=size, device="cpu", progress=progress
    )
    return scored.hits


class Rival:
    """A way that is run a few passes at a time, on its own stopwatch.

    Parameters
    ----------
    passes
        Does one forward pass per step and yields its number of images.
    """

    def __init__(self, passes: Iterator[int]) -> None:
        self.watch = Stopwatch()
        self._passes = passes
        self._done = 0

    def catch_up(self, done: float) -> None:
        """Go on until `done` images have passed through the model, or to the end."""
        with self.watch:
            while self._done < done and (images := next(self._passes, 0)):
                self._done += images


def repetition(case: Case, whole: bool) -> Repetition:
    """Run the three ways once: pass by pass in turn, or one after the other if `whole`."""
    # A and B have a model of their own, as C's carries hooks while it is scored.
    twin = Case(**{**vars(case), "model": copy.deepcopy(case.model)})
    hits = np.zeros((2 * N**2 + 1, len(case.images)), dtype=np.bool_)
    a, b, c = Rival(plain_passes(twin)), Rival(straightforward(twin, hits)), Stopwatch()

    def others_turn(done: int, total: int) -> None:
        c.__exit__()
        with torch.inference_mode(mode=False):
            a.catch_up(done)
            b.catch_up(done)
        c.__enter__()

    with c:
        mine = ours(case, None if whole else others_turn)
    a.catch_up(math.inf)
    b.catch_up(math.inf)
    return Repetition(a.watch, b.watch, c, int((mine != hits).sum()))


def summarise(case: Case, repetitions: Sequence[Repetition]) -> Summary:
    """Ratios per repetition, then their median and extremes."""

    def spread(ratios: Iterable[float]) -> Spread:
        values = list(ratios)
        return Spread(statistics.median(values), min(values), max(values))

    return Summary(
        case.name,
        case.source,
        len(case.images),
        case.batch_size,
        spread(r.ours.wall / r.plain.wall for r in repetitions),
        spread(r.ours.cpu / r.plain.cpu for r in repetitions),
        spread(r.ours.wall / r.straightforward.wall for r in repetitions),
        spread(r.ours.cpu / r.straightforward.cpu for r in repetitions),
        spread(r.plain.wall / r.straightforward.wall for r in repetitions),
        spread(r.plain.cpu / r.straightforward.cpu for r in repetitions),
        max(r.different_hits for r in repetitions),
        tuple(repetitions),
    )


def run_case(name: str, repeats: int, quick: bool, whole: bool) -> Summary:
    """Measure one case, with a line of progress per repetition."""
    make, count, few = CASES[name]
    case = make(few if quick else count)
    with torch.inference_mode():
        case.model(case.images[: case.batch_size])  # one pass to warm up
    repetitions = []
    for index in range(repeats):
        done = repetition(case, whole)
        repetitions.append(done)
        times = " ".join(f"{w} {t.wall:.2f} s" for w, t in zip("ABC", _times(done), strict=True))
        print(f"  {name} {index + 1}/{repeats}: {times}", flush=True)
    return summarise(case, repetitions)


def _times(done: Repetition) -> tuple[Stopwatch, Stopwatch, Stopwatch]:
    return done.plain, done.straightforward, done.ours


def run_memory(quick: bool) -> list[Memory]:
    """Peak memory for N and 4 N images, and for 4 N with a quarter of the batch size."""
    found = []
    for count, batch_size in _MEMORY_RUNS:
        images = count // 4 if quick else count
        print(f"  memory: {images} images in batches of {batch_size}", flush=True)
        found.append(measure_memory(images, batch_size))
    return found


def speed_table(summaries: Sequence[Summary]) -> str:
    """Ratios as lines of text: median [least, most]."""
    lines = [f"{'case':<10}{'images':>6}  {'':<5}{'A s':>7}{'B s':>7}{'C s':>7}  {'C/A':<21}{'C/B':<21}{'A/B':<6}"]
    for s in summaries:
        for clock in ("wall", "cpu"):
            ways = zip(*map(_times, s.repetitions), strict=True)
            seconds = [statistics.median(getattr(watch, clock) for watch in way) for way in ways]
            to_plain, to_straight = getattr(s, f"{clock}_to_plain"), getattr(s, f"{clock}_to_straightforward")
            lead = f"{s.name:<10}{s.images:>6}" if clock == "wall" else " " * 16
            numbers = "".join(f"{value:7.2f}" for value in seconds)
            floor = getattr(s, f"{clock}_floor").median
            lines.append(f"{lead}  {clock:<5}{numbers}  {_show(to_plain):<21}{_show(to_straight):<21}{floor:.3f}")
    worst = max(s.different_hits for s in summaries)
    return "\n".join([*lines, f"hits in which B and C differ: {worst}"])


def _show(ratio: Spread) -> str:
    return f"{ratio.median:.3f} [{ratio.least:.3f}, {ratio.most:.3f}]"


def verdicts(summaries: Sequence[Summary]) -> str:
    """Which goals were met, by the median of the CPU times."""
    lines = [_verdict(f"{s.name}: C/A", s.cpu_to_plain.median, GOAL_PLAIN) for s in summaries]
    small = [s for s in summaries if s.name != "resnet18"]
    lines += [_verdict(f"{s.name}: C/B", s.cpu_to_straightforward.median, GOAL_STRAIGHTFORWARD) for s in small]
    return "\n".join(lines)


def _verdict(what: str, ratio: float, goal: float) -> str:
    return f"{what} {ratio:.3f}, goal {goal}: {'met' if ratio <= goal else 'MISSED'}"


def memory_table(memories: Sequence[Memory]) -> str:
    """Peak memory as lines of text, MiB above what the process had before."""
    lines = [f"{'images':>7}{'batch':>7}{'data':>10}{'own memory':>13}{'with file pages':>18}   (peaks, MiB)"]
    for m in memories:
        own = "unknown" if m.anonymous is None else f"{m.anonymous / 2**20:.1f}"
        lines.append(f"{m.images:>7}{m.batch_size:>7}{m.data / 2**20:>10.1f}{own:>13}{m.resident / 2**20:>18.1f}")
    return "\n".join(lines)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.score_speed", description="Speed and memory of d_score")
    parser.add_argument("--cases", nargs="+", choices=[*CASES, "memory"], default=[*CASES, "memory"])
    parser.add_argument("--repeats", type=int, help="repetitions of every case (default 5, quick 1)")
    parser.add_argument(
        "--threads", type=int, default=1, help="threads of torch (default 1: least disturbed by others)"
    )
    parser.add_argument("--quick", action="store_true", help="few images: does it run, under 30 seconds")
    parser.add_argument("--whole", action="store_true", help="time the ways one after the other, not pass by pass")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parsed = parser.parse_args(argv)
    if parsed.repeats is None:
        parsed.repeats = 1 if parsed.quick else 5
    if parsed.repeats < 1 or parsed.threads < 1:
        parser.error("--repeats and --threads must be at least 1")
    return parsed


def main(argv: Sequence[str] | None = None) -> None:
    """Run the cases, print the tables, write the JSON."""
    arguments = _arguments(argv)
    torch.set_num_threads(arguments.threads)
    setting = f"torch {torch.__version__}, {platform.machine()} CPU, {arguments.threads} threads, n = {N}"
    print(setting, flush=True)
    summaries = [
        run_case(name, arguments.repeats, arguments.quick, arguments.whole) for name in CASES if name in arguments.cases
    ]
    memories = run_memory(arguments.quick) if "memory" in arguments.cases else []
    if summaries:
        print(f"\n{speed_table(summaries)}\n\n{verdicts(summaries)}")
    if memories:
        print(f"\n{memory_table(memories)}")
    if arguments.json is not None:
        everything = {
            "setting": setting,
            "speed": [asdict(s) for s in summaries],
            "memory": [asdict(m) for m in memories],
        }
        arguments.json.write_text(json.dumps(everything, indent=2) + "\n")


if __name__ == "__main__":
    main()
