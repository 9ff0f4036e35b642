"""Runs git: never asks, never hangs, never shows a password."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_dscore.holdout.ledger.faults import LedgerError, LedgerUnreachable
from pytest_dscore.holdout.ledger.urls import redact

# Set inside git hooks, and then they point at the hook's repository and index instead of where we were told to look.
_OF_A_HOOK = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_PREFIX",
    "GIT_NAMESPACE",
)
_SETTINGS = ("core.fsync=all", "gc.auto=0", "maintenance.auto=false", "core.quotePath=false")


@dataclass(frozen=True)
class Said:
    """What a git command answered.

    Parameters
    ----------
    code
        Exit status.
    out
        What it printed.
    error
        What it complained about, without passwords.
    """

    code: int
    out: bytes
    error: str

    @property
    def text(self) -> str:
        """Return the output as text, without surrounding blanks."""
        return self.out.decode(errors="surrogateescape").strip()


class Git:
    """Git in one repository.

    Parameters
    ----------
    root
        A directory in the repository.
    timeout
        Seconds after which a command is stopped.
    """

    def __init__(self, root: Path, timeout: float) -> None:
        self._root = root
        self._timeout = timeout
        self._environment = {key: value for key, value in os.environ.items() if key not in _OF_A_HOOK}
        self._environment |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}

    def ask(self, *arguments: str, data: bytes | None = None) -> Said:
        """Run a command and return what it said, whether it succeeded or not.

        Raises
        ------
        LedgerError
            Git is not there.
        LedgerUnreachable
            It did not end in time.
        """
        command = ["git", "-C", str(self._root), *(word for setting in _SETTINGS for word in ("-c", setting))]
        try:
            # A session of its own: no terminal to ask for a password on, and its helpers can be stopped with it.
            process = subprocess.Popen(
                [*command, *arguments],
                stdin=subprocess.PIPE if data is not None else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._environment,
                start_new_session=True,
            )
        except OSError:
            raise LedgerError("a ledger in git needs git, which is not installed") from None
        with process:
            try:
                out, error = process.communicate(data, self._timeout)
            except subprocess.TimeoutExpired:
                raise LedgerUnreachable(
                    f"git {arguments[0]} gave no answer within {self._timeout:g} s: check the remote and the network"
                ) from None
            finally:
                if process.returncode is None:
                    _stop(process)
        return Said(process.returncode, out, redact(error.decode(errors="replace").strip()))

    def tell(self, *arguments: str, data: bytes | None = None) -> Said:
        """Run a command that has to succeed.

        Raises
        ------
        LedgerError
            It did not; the message is git's.
        """
        said = self.ask(*arguments, data=data)
        if said.code:
            raise LedgerError(f"git {arguments[0]} failed in {self._root}: {one_line(said.error)}")
        return said


def one_line(text: str) -> str:
    """Join what git said into one line."""
    return "; ".join(line.strip() for line in text.splitlines() if line.strip()) or "it gave no reason"


def split_records(out: bytes) -> Sequence[str]:
    """Split what a command with -z printed."""
    return [part for part in out.decode(errors="surrogateescape").split("\0") if part]


def _stop(process: subprocess.Popen[bytes]) -> None:
    if os.name == "posix":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
