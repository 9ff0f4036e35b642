"""Replaces files in one step."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def write_whole(path: Path, content: bytes, before: Callable[[Path], None] | None = None) -> None:
    """Write a file whole or not at all; another process sees what was there, or all of the new.

    A new file can be read by its owner alone, as what is written may be as private as the data it is made of.

    Parameters
    ----------
    path
        In a directory that exists.
    content
        What to write.
    before
        Called with the new file, complete beside the old one, before it takes that one's place; may raise.

    Raises
    ------
    OSError
        It cannot be written; what was there before is still there.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if before is not None:
            before(Path(name))
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
