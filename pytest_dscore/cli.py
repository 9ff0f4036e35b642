"""The command ``dscore``: what can be asked of a project's gates outside of a pytest run."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from pytest_dscore.errors import DScoreError

#: Exit codes: all is well; something was found to be wrong; the question could not be answered.
FINE, WRONG, UNUSABLE = 0, 1, 2


class _Help(argparse.HelpFormatter):
    """Help within 80 columns, whatever the terminal."""

    def __init__(self, prog: str, **given: Any) -> None:
        super().__init__(prog, **{"width": 79, **given})


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors show no password."""

    def __init__(self, **given: Any) -> None:
        # Abbreviations would make every later option a change of what earlier command lines mean.
        settings: dict[str, Any] = {"formatter_class": _Help, "allow_abbrev": False, **given}
        super().__init__(**settings)

    def error(self, message: str) -> NoReturn:
        self.exit(UNUSABLE, _sentence(f"{message} (see {self.prog} --help)", self.prog))


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``dscore`` and return its exit code.

    Parameters
    ----------
    argv
        The arguments after the command's name; those of the process if None.

    Returns
    -------
    int
        0 if all is well; 1 if `verify` found something, a budget is spent or a reported gate failed; 2 if the
        arguments, the settings, the ledger or a file cannot be used, with one sentence on standard error.
    """
    from pytest_dscore.commands import add_protocol_commands
    from pytest_dscore.holdout.commands import add_commands
    from pytest_dscore.project import add_project_commands
    from pytest_dscore.report.command import add_to as add_report

    parser = _Parser(prog="dscore", description="Quality gates for ML teams, outside of a pytest run.")
    groups = parser.add_subparsers(metavar="GROUP", required=True)
    holdout = groups.add_parser("holdout", help="how often a test set may still be used")
    add_commands(holdout.add_subparsers(metavar="COMMAND", required=True))
    add_report(groups)
    add_project_commands(groups)
    protocol = groups.add_parser("protocol", help="how an error is estimated, and on which data")
    add_protocol_commands(protocol.add_subparsers(metavar="COMMAND", required=True))
    given = list(sys.argv[1:] if argv is None else argv)
    try:
        options = parser.parse_args(given)
    except SystemExit as stop:  # argparse has said why
        return stop.code if isinstance(stop.code, int) else UNUSABLE
    try:
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader (`| head`) has seen enough. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE
    except (DScoreError, OSError, UnicodeError) as error:
        sys.stderr.write(_sentence(_describe(error), "dscore"))
        return UNUSABLE
    except KeyboardInterrupt:
        return 130


def _describe(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def _sentence(message: str, prog: str) -> str:
    from pytest_dscore.holdout.ledger.urls import redact
    from pytest_dscore.report.text import wrapped

    return "\n".join(wrapped(redact(f"{prog}: error: {message}"))) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
