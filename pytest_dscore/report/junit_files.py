"""JUnit files from anywhere, read with suspicion: into test cases that carry ``dscore.*`` properties.

A file may come from a pull request of a stranger. So entities and document types are refused before anything is parsed,
and size and depth are limited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeVar
from xml.parsers import expat

from junitparser import (
    Attr,
    Error,
    Failure,
    JUnitXml,
    JUnitXmlError,
    Properties,
    Skipped,
    TestCase,
    TestSuite,
)
from junitparser.junitparser import Element

from pytest_dscore.errors import DScoreError, first_line
from pytest_dscore.report.contents import Origin, Place

#: Bytes of a file at most: the whole of it is held in memory several times over.
LARGEST = 100_000_000
_DEEPEST = 50
_CHUNK = 1 << 20
#: The last line of a failure: ``path:line``, or with a traceback ``path:line: AssertionError``.
_PLACE = re.compile(r"(?P<file>(?:[A-Za-z]:)?[^\s:][^:\n]*\.\w+):(?P<line>[1-9]\d{0,8})(?:: \w+)?")

_E = TypeVar("_E", bound=Element)


class _Case(TestCase):
    file = Attr()
    line = Attr()


class _Suite(TestSuite):
    testcase = _Case


class _Document(JUnitXml):
    testsuite = _Suite


@dataclass(frozen=True)
class Case:
    """One test case with ``dscore.*`` properties.

    Parameters
    ----------
    test
        Its name with its class's.
    origin
        The run.
    properties
        By name, without the leading ``dscore.``; of several of one name the last.
    state
        What became of the test.
    message
        Lines of its failure, error or skip; empty where it passed.
    place
        Where it stands, None where the file does not say.
    """

    test: str
    origin: Origin
    properties: dict[str, str]
    state: str
    message: tuple[str, ...]
    place: Place | None


def read_cases(path: Path) -> list[Case]:
    """Return the test cases of a JUnit file that carry ``dscore.*`` properties, in their order.

    Raises
    ------
    DScoreError
        The file is no JUnit file, is cut short, too large or holds what no JUnit file needs.
    OSError
        It cannot be read.
    """
    with path.open("rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise DScoreError(
            f"{path} has {path.stat().st_size / 1e6:,.0f} MB, and {LARGEST // 1_000_000} MB are read at most: write a "
            "JUnit file of the gates alone, such as with `pytest --dscore pyproject.toml --junitxml=gates.xml`"
        )
    root = _check(path, content)
    if root not in ("testsuites", "testsuite"):
        raise DScoreError(f"{path} is no JUnit file: it begins with <{root[:40]}> instead of <testsuites>")
    try:
        document = _Document.fromstring(content)
    except (JUnitXmlError, SyntaxError) as error:  # such as a namespace, or what lxml does not take
        raise DScoreError(f"{path} is no JUnit file ({first_line(error)})") from None
    found = []
    for position, suite in enumerate(_suites(document), 1):
        origin = Origin(
            str(path), suite.name or "", suite.hostname or "", position, timestamp=(suite.timestamp or "")[:40]
        )
        found += [case for one in _children(suite, _Case) if (case := _case(one, origin)) is not None]
    return found


def _children(element: Element, kind: type[_E]) -> Iterator[_E]:
    """The elements of one kind directly inside another."""
    yield from element.iterchildren(kind)  # type: ignore[no-untyped-call]


def _suites(document: Element) -> Iterator[_Suite]:
    """All suites, those inside others too."""
    for suite in _children(document, _Suite):
        yield suite
        yield from _suites(suite)


def _check(path: Path, content: bytes) -> str:
    """Return the name of the root element of a harmless, well-formed document."""
    if not content.strip():
        raise DScoreError(f"{path} is empty: did the run that should write it begin at all?")
    parser = expat.ParserCreate()
    open_elements: list[str] = []
    roots: list[str] = []

    def refuse(*_: object) -> NoReturn:
        raise DScoreError(f"{path} declares a document type or entities, which no JUnit file needs: it is not read")

    def start(name: str, _: object) -> None:
        roots.extend([] if roots else [name])
        open_elements.append(name)
        if len(open_elements) > _DEEPEST:
            raise DScoreError(f"{path} has more than {_DEEPEST} elements inside each other: it is no JUnit file")

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: open_elements.pop()
    try:
        for begin in range(0, len(content), _CHUNK):
            parser.Parse(content[begin : begin + _CHUNK], False)
        parser.Parse(b"", True)
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise DScoreError(f"{path} {_unreadable(error, bool(open_elements))}") from None
    return roots[0]


def _unreadable(error: Exception, inside: bool) -> str:
    code = getattr(error, "code", 0)
    ends_early = (expat.errors.XML_ERROR_NO_ELEMENTS, expat.errors.XML_ERROR_UNCLOSED_TOKEN)
    if inside and code in [expat.errors.codes[text] for text in ends_early]:
        return "is cut short: the run that wrote it was probably killed"
    return f"is not XML ({error})"


def _case(case: _Case, origin: Origin) -> Case | None:
    properties = {
        str(entry.name).removeprefix("dscore."): str(entry.value or "")
        for holder in _children(case, Properties)
        for entry in holder
        if str(entry.name).startswith("dscore.")
    }
    if not properties:
        return None
    name = str(case.name or "(no name)")
    test = f"{case.classname}::{name}" if case.classname else name
    state, text = _result(case)
    lines = tuple(line for line in text.splitlines() if line.strip())
    return Case(test, origin, properties, state, lines, _place(case, lines))


def _result(case: _Case) -> tuple[str, str]:
    """The worst that JUnit says of a test, and its text: pytest shortens the message, the element holds all of it."""
    for kind, word in ((Error, "error"), (Failure, "failure"), (Skipped, "skipped")):
        for found in _children(case, kind):
            text, message = str(found.text or ""), str(found.message or "")
            return word, text if text.startswith(message.partition("\n")[0]) else f"{message}\n{text}"
    return "passed", ""


def _place(case: _Case, lines: tuple[str, ...]) -> Place | None:
    if lines and (found := _PLACE.fullmatch(lines[-1].strip())):
        return Place(found["file"], int(found["line"]))
    file, line = str(case.file or ""), str(case.line or "")
    if not file:
        return None
    # xunit1 counts lines from 0.
    return Place(file, int(line) + 1 if re.fullmatch(r"\d{1,9}", line) else None)
