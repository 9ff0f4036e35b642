"""Speed, memory and crash safety of the hold-out ledger, ``python -m benchmarks.holdout_ledger``.

``--cases speed``: a ledger in a directory with 10,000 models on 50,000 examples, whose costs were kept when they were
recorded. A fresh process opens it and records one more, admitted by `running_budget`: the new model's similarity to
every earlier one, what it costs, the bound on all of them, what remains. Beside it the straightforward version: one
NumPy file of booleans, loaded, compared with ``==`` and written back, without any bound. Each runs in a process of its
own, whose peak memory is its own. *Kept anew* is what it takes where no costs were kept.

``--cases kill``: 8 processes record 1,000 uses each and are killed at random moments; afterwards `verify` must pass and
every acknowledged use must be there. For each backend; git takes minutes for a tenth of that, so ``--git-uses`` is
smaller.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pytest_dscore.holdout.budget import Budget
from pytest_dscore.holdout.ledger import HoldoutIdentity, Use, UseRefused, open_ledger
from pytest_dscore.holdout.running import FEW, RunningBudget, running_budget
from pytest_dscore.holdout.terms import Terms
from pytest_dscore.holdout.wording import sentence
from tests.holdout.ledger import workers
from tests.holdout.ledger.places import DirectoryPlace, GitPlace, Place, SqlPlace
from tests.holdout.ledger.postgres import Server, binaries

GOAL_SECONDS, GOAL_MEGABYTES = 1.0, 500.0
BACKENDS = ("directory", "sqlite", "postgresql", "git")
TERMS = Terms("benchmark", epsilon=0.01, known=True)
_BATCH = 500


@dataclass(frozen=True)
class Measured:
    """One way of recording the next model, in a process of its own.

    Parameters
    ----------
    cold, warm
        Seconds of wall time for the first model that a process records, reading included, and for the next.
    cold_cpu
        Seconds of CPU time of the first.
    megabytes
        Peak memory of the process, the interpreter and its libraries included.
    similarity
        To one of the earlier models, to see that both compute the same.
    """

    cold: float
    cold_cpu: float
    warm: float
    megabytes: float
    similarity: float


@dataclass(frozen=True)
class Killed:
    """What was left after processes were killed."""

    backend: str
    processes: int
    uses_each: int
    acknowledged: int
    recorded: int
    missing: int
    sound: bool
    seconds: float


def data(n: int) -> HoldoutIdentity:
    """The hold-out."""
    return HoldoutIdentity.of(np.arange(n), np.arange(n) % 10, name="benchmark")


def answers(model: int, n: int) -> NDArray[np.bool_]:
    """A model's outcomes: those of a common model, 15 % of them drawn anew."""
    rng = np.random.default_rng([1, model])
    wrong = np.random.default_rng(0).random(n) < 0.244
    return np.where(rng.random(n) < 0.15, rng.random(n) < 0.244, wrong)


def build(folder: Path, models: int, n: int) -> None:
    """Fill the ledger and the straightforward file."""
    holdout = data(n)
    ledger = open_ledger(folder / "ledger")
    for start in range(0, models, _BATCH):
        batch = range(start, min(start + _BATCH, models))
        ledger.record_all([Use.of(holdout, answers(m, n), model=f"model {m}") for m in batch], holdout)
    np.save(folder / "matrix.npy", np.stack([answers(m, n) for m in range(models)]))


def keep(folder: Path, models: int, n: int) -> float:
    """Compute the costs of all models and keep them; return the similarity of the last one to the anchor."""
    return _similarity(budget(folder, open_ledger(folder / "ledger", must_exist=True).uses(data(n))))


def budget(folder: Path, uses: Sequence[Use]) -> Budget:
    """The budget by which a use is admitted."""
    return running_budget(TERMS, uses, cache=folder / "costs")


def _similarity(judged: Budget) -> float:
    if not isinstance(judged, RunningBudget) or judged.costs is None:
        raise SystemExit(f"the full analysis was made: there are at most {FEW} models, or more than the budget allows")
    return float(judged.costs.agree_anchor[-1] / judged.n)


def ours(folder: Path, models: int, n: int) -> float:
    """Open the ledger, record one more model with its verdict, and return its similarity to the anchor."""
    holdout = data(n)
    judged: list[Budget] = []

    def admit(existing: Sequence[Use], new: Sequence[Use]) -> str:
        judged.append(budget(folder, [*existing, *new]))
        if not judged[-1].holds:
            raise UseRefused("the budget is used up")
        return sentence(judged[-1], "benchmark")

    ledger = _LEDGERS.setdefault(folder, open_ledger(folder / "ledger", must_exist=True))
    ledger.record(Use.of(holdout, answers(models, n), model=f"model {models}"), holdout, admit)
    return _similarity(judged[0])


_LEDGERS: dict[Path, Any] = {}


def anchor(folder: Path) -> int:
    """The model that the costs kept are about, by the file that they are kept in."""
    with np.load(next((folder / "costs").glob("*.npz"))) as archive:
        return int(json.loads(archive["bound_to"].tobytes())["anchor"])


def straightforward(folder: Path, models: int, n: int) -> float:
    """The same with one file of booleans."""
    matrix = np.load(folder / "matrix.npy")
    new = answers(models, n)
    similarity = (matrix == new).mean(axis=1)
    np.save(folder / "matrix.npy", np.concatenate([matrix, new[None]]))
    return float(similarity[anchor(folder)])


def _measure(way: Callable[[Path, int, int], float], folder: Path, models: int, n: int) -> Measured:
    data(n)
    wall, cpu = time.perf_counter(), time.process_time()
    similarity = way(folder, models, n)
    cold, cold_cpu = time.perf_counter() - wall, time.process_time() - cpu
    wall = time.perf_counter()
    way(folder, models + 1, n)
    warm = time.perf_counter() - wall
    return Measured(cold, cold_cpu, warm, _peak_megabytes(), similarity)


def _peak_megabytes() -> float:
    """Peak resident memory of this process alone; what getrusage says includes the parent before the exec."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 1000


def measure(way: Callable[[Path, int, int], float], folder: Path, models: int, n: int) -> Measured:
    """Measure one way in a fresh process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as fresh:
        return fresh.submit(_measure, way, folder, models, n).result()


def run_speed(models: int, n: int) -> dict[str, Measured]:
    """Both ways on the same models."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build(folder, models, n)
        return {
            "kept anew": measure(keep, folder, models, n),
            "ledger": measure(ours, folder, models, n),
            "straightforward": measure(straightforward, folder, models, n),
        }


def run_kill(backend: str, uses: int, seconds: float) -> Killed:
    """Kill 8 processes while they record."""
    server = None
    with tempfile.TemporaryDirectory() as name:
        place: Place
        if backend == "postgresql":
            programs = binaries()
            if programs is None:
                raise SystemExit("postgresql: no server here, apt-get install postgresql")
            server = Server(programs)
            place = SqlPlace(Path(name), server.url())
        else:
            place = {"directory": DirectoryPlace, "git": GitPlace, "sqlite": SqlPlace}[backend](Path(name))
        try:
            start = time.perf_counter()
            acknowledged = set(workers.run(workers.jobs(place, 8, uses), kill_after=seconds))
            took = time.perf_counter() - start
            acknowledged = {line for line in acknowledged if not line.startswith("!")}
            recorded = {use.model for use in place.open(must_exist=True).uses()}
            sound = place.open().verify().ok
        finally:
            if server is not None:
                server.remove()
    missing = len(acknowledged - recorded)
    return Killed(backend, 8, uses, len(acknowledged), len(recorded), missing, sound, took)


def speed_table(measured: dict[str, Measured], models: int, n: int) -> str:
    """The speed case as lines of text."""
    lines = [
        f"{models:,} models on {n:,} examples{'':8}first, s{'':4}CPU, s{'':4}next, s{'':4}peak, MB{'':3}similarity"
    ]
    lines += [
        f"{name:<40}{m.cold:>9.2f}{m.cold_cpu:>10.2f}{m.warm:>10.2f}{m.megabytes:>12.0f}{m.similarity:>13.4f}"
        for name, m in measured.items()
    ]
    mine = measured["ledger"]
    goals = {
        f"first under {GOAL_SECONDS:g} s": mine.cold < GOAL_SECONDS,
        f"its CPU time under {GOAL_SECONDS:g} s (what a busy machine leaves comparable)": mine.cold_cpu < GOAL_SECONDS,
        f"peak under {GOAL_MEGABYTES:g} MB": mine.megabytes < GOAL_MEGABYTES,
    }
    return "\n".join([*lines, *(f"goal: {goal}: {'met' if met else 'MISSED'}" for goal, met in goals.items())])


def kill_table(killed: Sequence[Killed]) -> str:
    """The kill case as lines of text."""
    lines = [f"{'backend':<12}{'uses each':>10}{'acknowledged':>14}{'recorded':>10}{'missing':>9}  verify   seconds"]
    lines += [
        f"{k.backend:<12}{k.uses_each:>10}{k.acknowledged:>14}{k.recorded:>10}{k.missing:>9}"
        f"  {'passes' if k.sound else 'FAILS':<7}{k.seconds:>9.1f}"
        for k in killed
    ]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the cases, print the tables, write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.holdout_ledger", description="The hold-out ledger")
    parser.add_argument("--cases", nargs="+", choices=["speed", "kill"], default=["speed", "kill"])
    parser.add_argument("--models", type=int, default=10_000)
    parser.add_argument("--examples", type=int, default=50_000)
    parser.add_argument("--backends", nargs="+", choices=BACKENDS, default=list(BACKENDS))
    parser.add_argument("--uses", type=int, default=1000, help="uses that each of the 8 processes would record")
    parser.add_argument("--git-uses", type=int, default=25)
    parser.add_argument("--seconds", type=float, default=60.0, help="time until the last process is killed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    arguments = parser.parse_args(argv)
    everything: dict[str, Any] = {}
    if "speed" in arguments.cases:
        measured = run_speed(arguments.models, arguments.examples)
        print(speed_table(measured, arguments.models, arguments.examples), flush=True)
        everything["speed"] = {name: asdict(m) for name, m in measured.items()}
    if "kill" in arguments.cases:
        killed = [
            run_kill(backend, arguments.git_uses if backend == "git" else arguments.uses, arguments.seconds)
            for backend in arguments.backends
        ]
        print(kill_table(killed), flush=True)
        everything["kill"] = [asdict(k) for k in killed]
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(everything, indent=2) + "\n")


if __name__ == "__main__":
    main()
