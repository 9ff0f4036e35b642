"""Doing a list of tasks, in one process or several, with a bar that says how many remain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import joblib  # type: ignore[import-untyped]
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from benchmarks.study import work
from benchmarks.study.keep import Store
from benchmarks.study.work import Result, Task


def run(
    title: str, tasks: Sequence[Task], store: Store, folder: Path | None, jobs: int, console: Console
) -> list[Result]:
    """Train and measure what the store lacks, then read all of it.

    Parameters
    ----------
    title
        Shown before the bar.
    tasks
        What is wanted.
    store
        Where results are kept: a run that was stopped goes on from there.
    folder
        Of the data sets, see `data.load`.
    jobs
        Processes; each uses one thread.
    console
        Where the bar goes; on anything but a terminal a line is printed for each network.

    Returns
    -------
    list of Result
        In the order of the tasks.
    """
    missing = [task for task in tasks if work.result(task, store, folder) is None]
    console.print(f"{title}: {len(tasks) - len(missing)} of {len(tasks)} networks were kept, {len(missing)} remain")
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task(title, total=len(missing))
        for number, line in enumerate(_done(missing, store, folder, jobs), 1):
            progress.update(bar, advance=1)
            if not console.is_terminal:
                console.print(f"{title}: {number} of {len(missing)}, {line}", soft_wrap=True)
    found = [work.result(task, store, folder) for task in tasks]
    assert all(found), "a task that was done has left no result"
    return [result for result in found if result is not None]


def _done(tasks: Sequence[Task], store: Store, folder: Path | None, jobs: int) -> Iterable[str]:
    if jobs == 1:
        return (_one(task, store, folder) for task in tasks)
    parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
    return parallel(joblib.delayed(_one)(task, store, folder) for task in tasks)  # type: ignore[no-any-return]


def _one(task: Task, store: Store, folder: Path | None) -> str:
    """Do one task and say what came of it."""
    torch.set_num_threads(1)
    work.do(task, store, folder)
    result = work.result(task, store, folder)
    assert result is not None
    recipe = task.recipe
    what = f"{recipe.dataset} {recipe.architecture} {recipe.augmentation} seed {recipe.seed}"
    return f"{what}: accuracy {result.measured.clean.mean():.3f}"
