"""What the processes of the concurrency tests do, and how they are started and killed."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np

from pytest_dscore.holdout.ledger import HoldoutIdentity, LedgerBusy, Use, UseRefused, open_ledger
from tests.holdout.ledger.examples import holdout
from tests.holdout.ledger.places import Place

# The processes are forked off a small one that has imported everything: pytest's own has threads, and a fresh
# interpreter for each would take longer than the test.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([__name__, "pytest_dscore.holdout.ledger.directory"])


@dataclass(frozen=True)
class Job:
    """What one process does.

    Parameters
    ----------
    url, root
        Where the ledger is.
    worker
        Number of the process; its models are its own.
    count
        Uses to record.
    acknowledged
        File to which the model of every recorded use is written, after it was recorded.
    budget
        Uses after which the admission refuses.
    timeout
        Patience with the others, in seconds.
    """

    url: str
    root: Path
    worker: int
    count: int
    acknowledged: Path
    budget: int = 10**9
    timeout: float = 60.0


def unlike(worker: int, number: int, of: HoldoutIdentity) -> Use:
    """A use that is no other process's."""
    wrong = np.random.default_rng([worker, number]).random(of.n) < 0.3
    return Use.of(of, wrong, model=f"{worker}/{number}", ran_by=f"process {worker}")


def work(job: Job) -> None:
    """Record, and write down what was recorded."""
    data = holdout()

    def admit(existing: Sequence[Use], new: Sequence[Use]) -> str:
        if len(existing) + len(new) > job.budget:
            raise UseRefused("the budget is used up")
        return f"{len(existing)} before"

    ledger = open_ledger(job.url, root=job.root, timeout=job.timeout)
    file = os.open(job.acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for number in range(job.count):
        use = unlike(job.worker, number, data)
        try:
            recorded = ledger.record(use, data, admit)
        except UseRefused:
            continue
        except LedgerBusy as busy:
            os.write(file, f"! {busy}\n".encode())
            continue
        assert recorded.is_new
        assert recorded.use.model == use.model
        os.write(file, f"{use.model}\n".encode())


def jobs(place: Place, processes: int, count: int, budget: int = 10**9) -> list[Job]:
    """One job for each process."""
    made = []
    for worker in range(processes):
        url, root = place.address(worker)
        made.append(Job(url, root, worker, count, place.path / f"acknowledged-{worker}", budget))
    return made


def run(jobs: Sequence[Job], kill_after: float | None = None) -> list[str]:
    """Run the jobs at once, each in a process, and return the models whose uses were acknowledged.

    Parameters
    ----------
    jobs
        What to do.
    kill_after
        Kill each process at a random moment: when it has recorded so and so many, or at the latest so many seconds
        after the first use; None lets them finish.
    """
    processes = [_CONTEXT.Process(target=work, args=(job,)) for job in jobs]
    for process in processes:
        process.start()
    if kill_after is not None:
        _kill_at_random(dict(zip(processes, jobs, strict=True)), kill_after)
    for process in processes:
        process.join()
    codes = [process.exitcode for process in processes]
    for process in processes:
        process.close()
    if kill_after is None:
        assert codes == [0] * len(codes)
    else:
        assert -signal.SIGKILL in codes, "every process was done before it could be killed"
    return [model for job in jobs for model in _acknowledged(job)]


def _acknowledged(job: Job) -> list[str]:
    return job.acknowledged.read_text().splitlines() if job.acknowledged.exists() else []


def _kill_at_random(waiting: dict[BaseProcess, Job], until: float) -> None:
    jobs = list(waiting.values())
    while not any(map(_acknowledged, jobs)):
        time.sleep(0.001)
        assert any(process.is_alive() for process in waiting), "no process recorded anything"
    start = time.monotonic()
    uses = {job.worker: random.randint(1, max(1, job.count // 2)) for job in jobs}
    moments = {job.worker: start + random.uniform(0, until) for job in jobs}
    while waiting:
        for process, job in list(waiting.items()):
            if len(_acknowledged(job)) >= uses[job.worker] or time.monotonic() > moments[job.worker]:
                time.sleep(random.uniform(0, 0.004))  # not always just after a use
                process.kill()
                del waiting[process]
        time.sleep(0.001)
