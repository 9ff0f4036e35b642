"""Run jobs through joblib, in order whatever finishes first, and say how far they are."""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from joblib import Parallel, delayed, parallel_config

from ..errors import SettingsError

Progress = Callable[[int, int], None]
T = TypeVar("T")


class Tally:
    """Counts what is done, over several batches of jobs, and tells it.

    Parameters
    ----------
    progress
        Called with (done, total) after each job, in the caller's thread; None to tell nobody.
    total
        Jobs in all; may be raised while they run.

    Raises
    ------
    SettingsError
        `progress` cannot be called.
    """

    def __init__(self, progress: Progress | None, total: int) -> None:
        if progress is not None and not callable(progress):
            raise SettingsError(f"progress={progress!r} must be a callable (done, total), or None.")
        self.progress = progress
        self.done = 0
        self.total = total

    def add(self, jobs: int = 1) -> None:
        """Note that so many more jobs are done."""
        self.done += jobs
        if self.progress is not None:
            self.progress(self.done, self.total)


def run_jobs(jobs: Sequence[Callable[[], T]], n_jobs: int | None, tally: Tally | None = None) -> list[T]:
    """Results of the jobs, in the order of the jobs.

    Parameters
    ----------
    jobs
        Callables without arguments. Not callables with arguments: joblib's dask backend sends large arguments to one
        worker beforehand, and they are gone when it dies; a job that carries its data can be run again elsewhere.
    n_jobs
        How many at a time, through joblib; None: what ``joblib.parallel_config`` says.
    tally
        Told of each job that is done; of all at once by backends that hand back nothing before the end
        (``multiprocessing``).
    """
    tasks = [delayed(partial(_one_level, i, job))() for i, job in enumerate(jobs)]
    if tally is None or tally.progress is None:
        return [result for _, result in Parallel(n_jobs=n_jobs)(tasks)]
    try:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    except ValueError:
        results = [result for _, result in Parallel(n_jobs=n_jobs)(tasks)]
        tally.add(len(results))
        return results
    found: dict[int, T] = {}
    finished = parallel(tasks)
    try:
        for i, result in finished:
            found[i] = result
            tally.add()
    finally:
        # Where a job or the callable raised, nothing goes on running; that joblib cut it short is then no news.
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"\d+ tasks ")
            finished.close()
    return [found[i] for i in range(len(jobs))]


def _one_level(number: int, job: Callable[[], T]) -> tuple[int, T]:
    with _no_further_dask():
        return number, job()


@contextmanager
def _no_further_dask() -> Iterator[None]:
    """Keep a job that runs on a dask worker from spreading its own inner search over the cluster.

    The folds fill the cluster already, and what an inner search leaves on other workers is lost with them.
    """
    distributed: Any = sys.modules.get("distributed")
    try:
        if distributed is not None:
            distributed.get_worker()
    except ValueError:
        distributed = None
    if distributed is None:
        yield
        return
    with parallel_config(backend="threading", n_jobs=1):
        yield
