"""``dscore report``: what the gates found, read from JUnit files, for people, bots and machines."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pytest_dscore.errors import DScoreError
from pytest_dscore.report.contents import Report

#: Where a step of GitHub Actions leaves its summary.
SUMMARY = "GITHUB_STEP_SUMMARY"
_FORMATS = ("markdown", "html", "json", "github")


def add_to(groups: Any) -> None:
    """Add the command."""
    parser = groups.add_parser(
        "report",
        help="what the gates found, from JUnit files",
        description="Reads what `pytest --dscore --junitxml=FILE` wrote. Exit code 1 if a gate failed.",
    )
    parser.add_argument("files", nargs="+", metavar="REPORT.xml", help="JUnit files, such as one of each matrix job")
    parser.add_argument("--baseline", metavar="OTHER.xml", help="JUnit file of the code to compare with")
    parser.add_argument("--format", choices=_FORMATS, default="markdown", help="default: markdown")
    parser.add_argument("--output", metavar="FILE", help="where to write; default: standard output")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the report; 1 if a gate failed."""
    from pytest_dscore.report.comparing import compare
    from pytest_dscore.report.gathering import gather

    paths = [Path(name) for name in options.files]
    baseline = Path(options.baseline) if options.baseline is not None else None
    output = Path(options.output) if options.output is not None else None
    _refuse_confusion(paths, baseline, output)
    report = compare(gather(paths), gather([baseline]) if baseline is not None else None)
    text = _renderer(options.format)(report)
    if output is None:
        _print(text)
    else:
        _write(output, text)
    _summarise(report)
    return 1 if report.failures else 0


def _refuse_confusion(paths: Sequence[Path], baseline: Path | None, output: Path | None) -> None:
    if baseline is not None and baseline.resolve() in [path.resolve() for path in paths]:
        raise DScoreError(f"{baseline} is the report and its own baseline: nothing would have changed")
    for path in (*paths, baseline):
        if output is not None and path is not None and output.resolve() == path.resolve():
            raise DScoreError(f"--output {output} would replace a file that is read: choose another name")


def _renderer(name: str) -> Callable[[Report], str]:
    if name == "html":
        from pytest_dscore.report import html

        return html.render
    if name == "json":
        from pytest_dscore.report import machine

        return machine.render
    if name == "github":
        from pytest_dscore.report import github

        return github.render
    from pytest_dscore.report import markdown

    return markdown.render


def _print(text: str) -> None:
    """Print what may hold letters that standard output cannot take."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _write(path: Path, text: str) -> None:
    """Write the whole file or leave what was there."""
    path = path.resolve()
    if path.is_dir() or not path.parent.is_dir():
        raise DScoreError(
            f"--output {path} cannot be written: "
            + ("it is a directory" if path.is_dir() else "its directory does not exist")
        )
    if path.exists() and not path.is_file():  # such as /dev/null, which must not be replaced
        path.write_text(text, encoding="utf-8", newline="\n")
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8", newline="\n")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _summarise(report: Report) -> None:
    """Append the report to the step's summary in GitHub Actions; where that fails, the verdict still stands."""
    from pytest_dscore.report import markdown

    place = os.environ.get(SUMMARY)
    if not place:
        return
    try:
        with open(place, "a", encoding="utf-8", newline="\n") as file:
            file.write(markdown.render(report))
    except OSError as error:
        sys.stderr.write(f"dscore: the step summary cannot be written to ${SUMMARY} ({error.strerror})\n")
