"""Which files of a project are looked at: no environments, no hidden folders, no tests, and not without end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

#: Python files read at most, and entries of folders seen at most: a folder of images must not keep us for hours.
MOST_SOURCES, MOST_ENTRIES = 2_000, 100_000
#: Larger sources are generated, and no place for a model.
LARGEST_SOURCE = 1_000_000
WEIGHTS = (".safetensors", ".pt", ".pth")

_NOT_THEIRS = {"node_modules", "site-packages", "dist-packages", "__pycache__", "__pypackages__", "build", "dist"}
_TESTS = {"test", "tests", "testing"}
_NO_MODULES = {"conftest.py", "setup.py", "noxfile.py", "fabfile.py", "tasks.py"}


@dataclass(frozen=True)
class Files:
    """What there is to look at, as paths below the root with ``/``.

    Parameters
    ----------
    sources
        Python files.
    weights
        Files whose names end as those of weights do.
    remarks
        Sentences on what was left out.
    """

    sources: tuple[str, ...]
    weights: tuple[str, ...]
    remarks: tuple[str, ...]


def files_below(root: Path, most_sources: int = MOST_SOURCES, most_entries: int = MOST_ENTRIES) -> Files:
    """Find them in the order of their names, those near the root first."""
    sources: list[str] = []
    weights: list[str] = []
    remarks: list[str] = []
    for number, path in enumerate(_walk(root, remarks)):
        if number >= most_entries or len(sources) >= most_sources:
            remarks.append(
                f"the search ended after {len(sources):,} Python files and {number:,} others: name what lies further "
                "down yourself"
            )
            break
        name = path.rpartition("/")[2]
        if name.endswith(".py") and not _is_no_module(name):
            sources.append(path)
        elif name.lower().endswith(WEIGHTS):
            weights.append(path)
    return Files(tuple(sources), tuple(weights), tuple(remarks))


def _walk(root: Path, remarks: list[str]) -> Iterator[str]:
    """Yield every file, level by level; links are not followed, as they may lead out or round in circles."""
    waiting = [""]
    while waiting:
        below: list[str] = []
        for folder in waiting:
            try:
                with os.scandir(root / folder) as found:
                    entries = sorted(found, key=lambda entry: entry.name)
            except OSError as error:
                remarks.append(f"{folder or root} cannot be read ({error.strerror})")
                continue
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_dir(follow_symlinks=False):
                    if not _is_skipped(entry):
                        below.append(path)
                elif entry.is_file() and _can_be_written(path):
                    yield path
        waiting = below


def _is_skipped(entry: os.DirEntry[str]) -> bool:
    name = entry.name
    if name.startswith(".") or name in _NOT_THEIRS or name in _TESTS or name.endswith(".egg-info"):
        return True
    return any(os.path.exists(os.path.join(entry.path, mark)) for mark in ("pyvenv.cfg", "conda-meta"))


def _is_no_module(name: str) -> bool:
    return name in _NO_MODULES or name.startswith(("test_", ".")) or name.endswith("_test.py")


def _can_be_written(path: str) -> bool:
    """Whether the name can stand in a TOML file: some file systems allow bytes that are no text."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def module_name(path: str, src_layout: bool) -> str | None:
    """Return what a file is imported as, from the root or from ``src``; None where its path is no module's."""
    parts = list(PurePosixPath(path).with_suffix("").parts)
    if src_layout and parts[0] == "src":
        del parts[0]
    if parts and parts[-1] == "__init__":
        del parts[-1]
    return ".".join(parts) if parts and all(part.isidentifier() for part in parts) else None
