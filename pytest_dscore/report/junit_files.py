"""JUnit files from anywhere, read with suspicion: into test cases that carry ``dscore.*`` properties.

A file may come from a pull request of a stranger, and it may be huge. So it is read piece by piece, entities and
document types are refused where they begin, and size and depth are limited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar
from xml.etree import ElementTree
from xml.parsers import expat

from junitparser import (
    Attr,
    Error,
    Failure,
    JUnitXml,
    Properties,
    Skipped,
    TestCase,
    TestSuite,
)
from junitparser.junitparser import Element

from pytest_dscore.errors import DScoreError
from pytest_dscore.report.contents import Origin, Place

#: Bytes of a file at most. Only test cases of gates are held in memory.
LARGEST = 1_000_000_000
_DEEPEST = 50
_PIECE = 1 << 20
_PREFIX = "dscore."
#: The elements whose text is read.
_RESULTS = ("error", "failure", "skipped")
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
    document = _Document.fromroot(_Reader(path).root())
    found = []
    for position, suite in enumerate(_suites(document), 1):
        origin = Origin(
            str(path), suite.name or "", suite.hostname or "", position, timestamp=(suite.timestamp or "")[:40]
        )
        found += [case for one in _children(suite, _Case) if (case := _case(one, origin)) is not None]
    return found


class _Reader:
    """Reads a file piece by piece into a tree without what reports do not need.

    Parameters
    ----------
    path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._builder = ElementTree.TreeBuilder()
        self._open: list[str] = []
        self._begun = False
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.EntityDeclHandler = self._refuse
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._data

    def root(self) -> Any:
        """The root element, ``testsuites`` or ``testsuite``; DScoreError where there is none."""
        size, blank = 0, True
        with self._path.open("rb") as file:
            try:
                while piece := file.read(_PIECE):
                    size += len(piece)
                    blank = blank and not piece.strip()
                    if size > LARGEST:
                        raise DScoreError(self._too_large())
                    self._parser.Parse(piece, False)
                self._parser.Parse(b"", True)
            except (expat.ExpatError, LookupError, ValueError) as error:
                if blank:
                    raise DScoreError(
                        f"{self._path} is empty: did the run that should write it begin at all?"
                    ) from None
                raise DScoreError(f"{self._path} {self._unreadable(error)}") from None
        return self._builder.close()

    def _too_large(self) -> str:
        return (
            f"{self._path} has {self._path.stat().st_size / 1e6:,.0f} MB, and {LARGEST // 1_000_000:,} MB are read at "
            "most: write a JUnit file of the gates alone, such as with "
            "`pytest --dscore pyproject.toml --junitxml=gates.xml`"
        )

    def _unreadable(self, error: Exception) -> str:
        ends_early = (expat.errors.XML_ERROR_NO_ELEMENTS, expat.errors.XML_ERROR_UNCLOSED_TOKEN)
        if self._open and getattr(error, "code", 0) in [expat.errors.codes[text] for text in ends_early]:
            return "is cut short: the run that wrote it was probably killed"
        return f"is not XML ({error})"

    def _refuse(self, *_: object) -> NoReturn:
        raise DScoreError(f"{self._path} declares a document type or entities, which no JUnit file needs: not read")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if not self._begun and name not in ("testsuites", "testsuite"):
            raise DScoreError(f"{self._path} is no JUnit file: it begins with <{name[:40]}> instead of <testsuites>")
        self._begun = True
        self._open.append(name)
        if len(self._open) > _DEEPEST:
            raise DScoreError(f"{self._path} has more than {_DEEPEST} elements inside each other: it is no JUnit file")
        self._builder.start(name, attributes)

    def _end(self, name: str) -> None:
        self._open.pop()
        element = self._builder.end(name)
        if name == "testcase" and not any(
            str(entry.get("name")).startswith(_PREFIX) for entry in element.iterfind("properties/property")
        ):
            element.clear()  # a test that is no gate: there may be many thousands, with all that they printed

    def _data(self, text: str) -> None:
        if self._open and self._open[-1] in _RESULTS:
            self._builder.data(text)


def _children(element: Element, kind: type[_E]) -> Iterator[_E]:
    """The elements of one kind directly inside another."""
    yield from element.iterchildren(kind)  # type: ignore[no-untyped-call]


def _suites(document: Element) -> Iterator[_Suite]:
    """All suites, those inside others too."""
    for suite in _children(document, _Suite):
        yield suite
        yield from _suites(suite)


def _case(case: _Case, origin: Origin) -> Case | None:
    properties = {
        str(entry.name).removeprefix(_PREFIX): str(entry.value or "")
        for holder in _children(case, Properties)
        for entry in holder
        if str(entry.name).startswith(_PREFIX)
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
