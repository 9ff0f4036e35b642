"""Finished pieces of work in a file of JSON lines: each is written once, at once, and survives a kill."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

#: Change it when the same piece of work would give another result: older lines are then not used.
VERSION = 1
RESULTS = "results.jsonl"

Key = tuple[str, str, int, str]


class StoreError(Exception):
    """The file cannot be used."""


class Store:
    """Results by (table, set, index, fingerprint of the data).

    Parameters
    ----------
    path
        The file. A last line that a kill cut off is not read.

    Raises
    ------
    StoreError
        A line is not one of ours.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._found: dict[Key, dict[str, Any]] = {}
        text = path.read_bytes() if path.exists() else b""
        whole = text[: text.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), 1):
            self._read(line, number)
        self._whole = len(whole)

    def _read(self, line: bytes, number: int) -> None:
        try:
            record = json.loads(line)
            key = (record["table"], record["set"], record["index"], record["data"])
            current = record["version"] == VERSION
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"{self.path}, line {number} is no result of this benchmark: move the file away."
            ) from error
        if current:
            self._found[key] = record

    def repair(self) -> None:
        """Drop what a kill left of a last line, so that lines can be added."""
        if self.path.exists():
            os.truncate(self.path, self._whole)

    def __contains__(self, key: Key) -> bool:
        return key in self._found

    def __getitem__(self, key: Key) -> dict[str, Any]:
        return self._found[key]

    def get(self, key: Key) -> dict[str, Any] | None:
        """The result, or None."""
        return self._found.get(key)

    def hours(self) -> float:
        """Wall time that the results took, all together."""
        return float(sum(record["seconds"] for record in self._found.values())) / 3600

    def add(self, key: Key, seconds: float, result: dict[str, Any]) -> None:
        """Append one result; it is on the disk when this returns."""
        table, name, index, data = key
        head = {"version": VERSION, "table": table, "set": name, "index": index, "data": data}
        record = head | {"seconds": round(seconds, 3)} | result
        line = json.dumps(record, allow_nan=False) + "\n"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, line.encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self._found[key] = record


@contextmanager
def open_store(folder: Path) -> Iterator[Store]:
    """The store of a folder, to add to: for one process at a time.

    Raises
    ------
    StoreError
        Another process has it, or the file is not ours.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / "lock", timeout=0):
            store = Store(folder / RESULTS)
            store.repair()
            yield store
    except Timeout as error:
        raise StoreError(f"another process works in {folder}: wait for it, or pass another --out.") from error
