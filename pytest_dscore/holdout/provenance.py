"""What goes on record as the origin of a use: who or what ran it, and at which commit."""

from __future__ import annotations

import getpass
import os
import platform
import subprocess
from pathlib import Path

_CI_RUNS = ("GITHUB_RUN_ID", "CI_JOB_ID", "BUILD_TAG", "BUILDKITE_BUILD_ID", "CIRCLE_WORKFLOW_ID")


def ran_by() -> str:
    """Return what goes on record as the one who did it: the CI run, or a person at a machine."""
    for name in _CI_RUNS:
        if os.environ.get(name):
            return f"{name}={os.environ[name]}"
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container's user need not have a name
        user = "unknown"
    return f"{user}@{platform.node()}"


def in_ci() -> bool:
    """Whether this runs in continuous integration, on a machine that is probably thrown away afterwards."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false") or any(os.environ.get(n) for n in _CI_RUNS)


def in_a_directory(url: str) -> bool:
    """Whether a ledger's URL means a directory, neither a git ref nor a database."""
    return "://" not in url and not url.startswith("git:")


def committed_files(root: Path, place: str) -> int:
    """Return how many files the commit checked out at `root` has below a directory; 0 where there is no such thing."""
    found = _git(root, "ls-tree", "-r", "--name-only", "HEAD", "--", place)
    return len(found.splitlines()) if found and in_a_directory(place) else 0


def git_commit(root: Path) -> str | None:
    """Return the commit that is checked out at `root`; None where there is none, or no git."""
    return (_git(root, "rev-parse", "--verify", "-q", "HEAD") or "").strip() or None


def _git(root: Path, *arguments: str) -> str | None:
    try:
        found = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout if found.returncode == 0 else None
