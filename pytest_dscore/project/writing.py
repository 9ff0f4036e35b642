"""Writes new files, and adds to pyproject.toml; what is there stays, byte for byte."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from pytest_dscore.errors import SettingsError
from pytest_dscore.project.pyproject import parsed
from pytest_dscore.writing import write_whole


def create(path: Path, text: str) -> bool:
    """Write a file that does not exist; False where it does.

    Raises
    ------
    OSError
        It cannot be written; nothing is left of it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        file = path.open("x", encoding="utf-8", newline="\n")
    except FileExistsError:
        return False
    try:
        with file:
            file.write(text)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return True


def appended(content: bytes, text: str, path: Path) -> bytes:
    """Return a TOML file with `text` at its end, with the line ends that it has.

    Raises
    ------
    SettingsError
        It would not be TOML, or not say the same as before.
    """
    newline = "\r\n" if b"\r\n" in content else "\n"
    gap = "" if not content else "\n" if content.endswith(b"\n") else "\n\n"
    new = content + (gap + text).replace("\n", newline).encode("utf-8")
    before = parsed(content, path)
    try:
        after = parsed(new, path)
    except SettingsError:
        # Such as `tool = {}` in braces, which nothing can be added to.
        raise SettingsError(f"{path} cannot take a table at its end: add [tool.dscore] yourself") from None
    tool = after.get("tool")
    if isinstance(tool, dict):
        tool.pop("dscore", None)
        if not tool and "tool" not in before:
            del after["tool"]
    if before != after:
        raise SettingsError(f"{path} would not say the same with a table at its end: add [tool.dscore] yourself")
    return new


def replace(path: Path, old: bytes, new: bytes) -> None:
    """Replace a file's content whole or not at all, where it still is what was read.

    Raises
    ------
    SettingsError
        The file is read-only, or was changed in between.
    OSError
        It cannot be written.
    """
    path = path.resolve()
    if not os.access(path, os.W_OK):
        raise SettingsError(f"{path} is read-only, so nothing was written")

    def before(written: Path) -> None:
        shutil.copymode(path, written)
        if path.read_bytes() != old:
            raise SettingsError(f"{path} was changed by somebody else meanwhile, so nothing was written: run it again")

    write_whole(path, new, before)
