"""How records are laid out as files, in a directory and in a git ref alike.

``3f/use-81c0f0a4b1d2e3f4-3f9a....json``: a folder for the first two digits of the record's name, so that no folder
grows long and a git commit rewrites little; what kind it is; the first digits of its key, for a use the digest of
hold-out and prediction; and its name, the SHA-256 of its content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pytest_dscore.holdout.ledger.backend import Entry, Listing
from pytest_dscore.holdout.ledger.faults import LedgerDamaged
from pytest_dscore.holdout.ledger.report import Finding

_FILE = re.compile(r"([0-9a-f]{2})/(use|holdout|retire|import)-[0-9a-f]{16}-(\1[0-9a-f]{62})\.json")


def path_of(entry: Entry) -> str:
    """Return the path of a record inside the ledger."""
    return f"{entry.name[:2]}/{entry.record.kind}-{entry.record.key[:16]}-{entry.name}.json"


def record_name(path: str) -> str | None:
    """Return the name of the record at a path inside the ledger; None where no record can be called so."""
    match = _FILE.fullmatch(path)
    return match[3] if match else None


def is_ours(path: str) -> bool:
    """Whether a path that is no record may lie in a ledger: its own settings, and what begins with a dot."""
    return path.rsplit("/", 1)[-1].startswith(".")


def listing_of(paths: Iterable[str], where: str) -> Listing:
    """Tell records from foreign files by their paths inside the ledger."""
    names: dict[str, str] = {}
    foreign = []
    for path in paths:
        name = record_name(path)
        if name is not None:
            names[name] = path
        elif not is_ours(path):
            reason = f"{where}/{path} is foreign: no record of a ledger is called so; move it out of the ledger"
            foreign.append(Finding("foreign", path, f"{where}/{path}", reason))
    return Listing({name: f"{where}/{path}" for name, path in names.items()}, tuple(foreign))


def content_of(entry: Entry) -> bytes:
    """Return what the file of a record holds."""
    return entry.line.encode() + b"\n"


def line_in(content: bytes, where: str) -> bytes | LedgerDamaged:
    """Return the line that a file holds, or what is wrong with the file as a whole."""
    if not content:
        return LedgerDamaged(f"{where} is empty (0 bytes): restore it from version control or a backup")
    if content.endswith(b"\r\n"):
        return LedgerDamaged(
            f"{where} had its line end changed, by git's autocrlf for instance: keep the ledger's .gitattributes and "
            "check it out again"
        )
    if not content.endswith(b"\n") and not content.endswith(b"}"):
        return LedgerDamaged(f"{where} was cut short: restore it from version control or a backup")
    if not content.endswith(b"\n"):
        return LedgerDamaged(f"{where} was edited, its line end is gone: restore it from version control or a backup")
    return content[:-1]
