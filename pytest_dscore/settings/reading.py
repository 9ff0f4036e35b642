"""Reading ``[tool.dscore]`` and turning what is wrong with it into one sentence that names table and key."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import ErrorDetails

from pytest_dscore.errors import SettingsError
from pytest_dscore.figure import MOST_CONFIDENCE
from pytest_dscore.names import unknown_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Share = Annotated[float, Field(gt=0, le=1)]
Confidence = Annotated[float, Field(gt=0, le=MOST_CONFIDENCE)]
OpenShare = Annotated[float, Field(gt=0, lt=1)]
Reference = Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$")]
#: Keys whose values are not repeated in messages: a database's URL has a password.
_MAY_HOLD_SECRETS = ("ledger",)
#: What to write for a `Confidence`.
CONFIDENCE = f"give a number above 0 and up to {MOST_CONFIDENCE}, such as 0.95"
_Model = TypeVar("_Model", bound=BaseModel)


def read_table(root: Path, *, required: bool = True) -> dict[str, Any]:
    """Return ``[tool.dscore]`` of ``root / "pyproject.toml"``; empty where there is none and none is required.

    Raises
    ------
    SettingsError
        The file or the table is missing, or it is not TOML.
    """
    path = root / "pyproject.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if not required:
            return {}
        raise SettingsError(
            f"--dscore reads [tool.dscore] of pyproject.toml in pytest's rootdir, and {path} does not exist: create "
            "it or pass --rootdir"
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from error
    tool = document.get("tool", {})
    table = tool.get("dscore") if isinstance(tool, dict) else None
    if isinstance(table, dict):
        return dict(table)
    if required:
        raise SettingsError(f"{path} has no table [tool.dscore], so there is nothing to gate: add one (see the README)")
    return {}


def named_tables(tables: Any, kind: str, content: str) -> dict[str, dict[str, Any]]:
    """Return the tables ``[tool.dscore.KIND.NAME]``, none where there is no such table.

    Parameters
    ----------
    tables
        What stands under the key `kind`; None where it is absent.
    kind
        Plural, as in pyproject.toml.
    content
        The keys each must have, for the message.

    Raises
    ------
    SettingsError
        It is no table of tables, or a name cannot be part of a test's name.
    """
    if tables is None:
        return {}
    if not isinstance(tables, dict):
        raise SettingsError(f"[tool.dscore.{kind}] must hold a table for each of them, with {content}")
    for name, own in tables.items():
        where = f"[tool.dscore.{kind}.{name}]"
        if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
            raise SettingsError(
                f"{where} the name may hold letters, digits and . _ - only, as it becomes part of a test's name"
            )
        if not isinstance(own, dict):
            raise SettingsError(f"{where} must be a table with {content}")
    return tables


def validated(
    kind: type[_Model], values: Mapping[str, Any], where: str, expected: Mapping[str, str], also: tuple[str, ...] = ()
) -> _Model:
    """Return checked settings.

    Parameters
    ----------
    kind
        What to check against.
    values
        As read.
    where
        The table, for messages.
    expected
        For some keys, what to write there.
    also
        Keys that are read elsewhere, for suggestions.

    Raises
    ------
    SettingsError
        With a sentence for each fault.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        names = (*kind.model_fields, *also)
        sentences = [_sentence(fault, where, names, expected) for fault in error.errors()]
        raise SettingsError("; ".join(dict.fromkeys(sentences))) from None


def _sentence(error: ErrorDetails, where: str, names: Iterable[str], expected: Mapping[str, str]) -> str:
    key = str(error["loc"][0]) if error["loc"] else ""
    kind, given = error["type"], error["input"]
    if kind == "extra_forbidden":
        return f"{where} {unknown_name('key', key, names)}"
    if kind == "missing":
        return f"{where} {key} is missing: {expected.get(key, 'set it')}"
    if kind == "value_error":
        reason = str(error["msg"]).removeprefix("Value error, ")
        return f"{where} {f'{key} = {given!r} ' if key else ''}{reason}"
    advice = expected.get(key, str(error["msg"][:1]).lower() + str(error["msg"][1:]))
    value = "" if key in _MAY_HOLD_SECRETS else f" = {given!r}"
    return f"{where} {key}{value} cannot be used: {advice}"


def key_line(root: Path, table: str, key: str) -> int | None:
    """Line (from 0) of a key in pyproject.toml; None where it is not found.

    Parameters
    ----------
    root
        Where pyproject.toml lies.
    table
        Below ``tool.dscore``, such as ``models.digits``: looked at before ``tool.dscore`` itself.
    key
        The key; where neither table has it, the table's head is meant.
    """
    try:
        lines = (root / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    found: dict[str, int] = {}
    current = ""
    for number, line in enumerate(lines):
        if header := re.match(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(#.*)?$", line):
            current = re.sub(r"[\s\"']", "", header[1])
            found.setdefault(current, number)
        elif entry := re.match(r"\s*([A-Za-z0-9_-]+)\s*=", line):
            found.setdefault(f"{current}:{entry[1]}", number)
    own, common = f"tool.dscore.{table}", "tool.dscore"
    return next((found[place] for place in (f"{own}:{key}", f"{common}:{key}", own, common) if place in found), None)
