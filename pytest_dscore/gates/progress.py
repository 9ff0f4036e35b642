"""A progress bar on long work: only on a terminal, gone when the work is done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_dscore.gates.scoring import ProgressBar
    from pytest_dscore.score.engine import Progress

#: Work shorter than this shows no bar, in seconds.
_PATIENCE = 1.0


def progress_bar(config: pytest.Config, what: str) -> ProgressBar:
    """A context manager per subject; it gives None where output is no terminal (a pipe, a CI log, an xdist worker).

    Parameters
    ----------
    config
        pytest's.
    what
        What stands before the subject's name.
    """
    reporter: pytest.TerminalReporter | None = config.pluginmanager.get_plugin("terminalreporter")

    @contextmanager
    def no_bar(name: str) -> Iterator[None]:
        yield None

    if reporter is None or hasattr(config, "workerinput") or not reporter.isatty:
        return no_bar
    return lambda name: _bar(config, f"{what} {name}")


def _bar(config: pytest.Config, title: str) -> AbstractContextManager[Progress]:
    from rich import progress as display
    from rich.console import Console

    @contextmanager
    def bar() -> Iterator[Progress]:
        capture = config.pluginmanager.get_plugin("capturemanager")
        began = time.monotonic()
        if capture is not None:
            capture.suspend_global_capture(in_=False)
        # Only now is standard output the terminal, and rich looks at it once.
        columns = (
            display.TextColumn("{task.description}"),
            display.BarColumn(bar_width=None),
            display.TaskProgressColumn(),
            display.TimeRemainingColumn(),
        )
        live = display.Progress(*columns, console=Console(), transient=True, redirect_stdout=False, expand=True)
        task = live.add_task(title, total=None)
        shown = False

        def progress(done: int, total: int) -> None:
            nonlocal shown
            live.update(task, completed=done, total=total)
            if not shown and time.monotonic() - began > _PATIENCE:
                shown = True
                # The bar takes a line of its own and is wiped; pytest's line of dots must not go with it.
                live.console.line()
                live.start()

        try:
            yield progress
        finally:
            if shown:
                live.stop()
            if capture is not None:
                capture.resume_global_capture()

    return bar()
