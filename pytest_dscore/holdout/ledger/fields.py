"""Which fields each kind of record has, and what may stand in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise, starmap
from operator import lt
from typing import Any, TypeAlias

_NAME = re.compile(r"[0-9a-f]{64}")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_WHEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")

Check: TypeAlias = Callable[[Any], bool]


def _text(value: Any) -> bool:
    # A lone surrogate cannot be printed or written to a file.
    return type(value) is str and not _SURROGATE.search(value)


def _some_text(value: Any) -> bool:
    return _text(value) and bool(value.strip())


def _digest(value: Any) -> bool:
    return type(value) is str and _NAME.fullmatch(value) is not None


def _names(value: Any) -> bool:
    return type(value) is list and all(map(_digest, value)) and (len(value) < 2 or all(starmap(lt, pairwise(value))))


def _when(value: Any) -> bool:
    return type(value) is str and _WHEN.fullmatch(value) is not None


def _hex(value: Any) -> bool:
    # The digits themselves are checked where they are decoded, once.
    return type(value) is str and len(value) % 2 == 0


def _count(value: Any) -> bool:
    return type(value) is int and value >= 1


_COMMON: dict[str, tuple[Check, str]] = {
    "when": (_when, "a UTC time like 2026-01-31T12:00:00.000000Z"),
    "parents": (_names, "a sorted list of record names"),
}
_REASON: dict[str, tuple[Check, str]] = {
    "why": (_some_text, "a reason"),
    "ran_by": (_text, "text"),
}
#: Kind of record -> field -> (its check, what it must be).
KINDS: dict[str, dict[str, tuple[Check, str]]] = {
    "use": {
        "holdout": (_digest, "a SHA-256"),
        "n": (_count, "a whole number of at least 1"),
        "outcomes": (_hex, "hexadecimal digits"),
        "model": (_some_text, "a fingerprint"),
        "commit": (lambda value: value is None or _text(value), "a commit or null"),
        "ran_by": (_text, "text"),
        "verdict": (_text, "text"),
        **_COMMON,
    },
    "holdout": {
        "name": (_text, "text"),
        "n": (_count, "a whole number of at least 1"),
        "digest": (_digest, "a SHA-256"),
        "labels": (_digest, "a SHA-256"),
        "fingerprints": (_hex, "hexadecimal digits"),
        "codes": (_hex, "hexadecimal digits"),
        "sample_bits": (lambda value: type(value) is int and 0 <= value < 64, "a whole number from 0 to 63"),
        **_COMMON,
    },
    "retire": {"holdout": (_digest, "a SHA-256"), **_REASON, **_COMMON},
    "import": {"records": (_names, "a sorted list of record names"), **_REASON, **_COMMON},
}


def fields_fault(kind: str, body: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the fields of a record of that kind; None where nothing is."""
    expected = KINDS[kind]
    if body.keys() - {"kind"} != expected.keys():
        odd = sorted((body.keys() - {"kind"}) ^ expected.keys())
        return f"the fields {', '.join(odd)} are missing or unknown"
    for key, (check, what) in expected.items():
        if not check(body[key]):
            return f"{key} must be {what}, not {str(body[key])[:80]!r}"
    if "outcomes" in expected and (reason := _packing_fault(body["outcomes"], body["n"])):
        return reason
    return None


def _packing_fault(outcomes: str, n: int) -> str | None:
    if len(outcomes) != 2 * ((n + 7) // 8):
        return f"outcomes hold {len(outcomes) // 2} bytes, but {n} examples take {(n + 7) // 8}"
    if n % 8 and bytes.fromhex(outcomes[-2:])[0] & ((1 << (8 - n % 8)) - 1):
        return f"outcomes have bits set beyond the last of {n} examples"
    return None
