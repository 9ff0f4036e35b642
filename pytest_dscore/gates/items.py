"""Declared gates as collected tests: one item for each, in a file node for pyproject.toml."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dscore.errors import SettingsError
from pytest_dscore.settings import key_line

if TYPE_CHECKING:
    from pytest_dscore.gates.session import GateSession

#: A JUnit property; its value must be a built-in type, as NumPy's kill a run under xdist.
Property = tuple[str, str | int | float]


@dataclass(frozen=True)
class DeclaredGate:
    """One gate that pyproject.toml declares.

    Parameters
    ----------
    subject, gate
        Together the test's name: ``dscore[SUBJECT-GATE]``.
    table
        Where it is declared, below ``tool.dscore``, such as ``models.digits``.
    key
        The key there.
    known
        Properties that are known before it is judged, so that JUnit has them whatever happens.
    judge
        Called with the item; fails it where the gate is not met.
    """

    subject: str
    gate: str
    table: str
    key: str
    known: tuple[Property, ...]
    judge: Callable[[pytest.Item], None]


class ProjectFile(pytest.File):
    """``pyproject.toml`` as a collector of gates."""

    gates: GateSession

    @classmethod
    def build(cls, parent: pytest.Collector, gates: GateSession) -> ProjectFile:
        """The collector of this run's settings."""
        node: ProjectFile = cls.from_parent(parent, path=gates.settings.root / "pyproject.toml")
        node.gates = gates
        return node

    def collect(self) -> Iterator[pytest.Item]:
        for declared in self.gates.declared():
            label = f"dscore[{declared.subject}-{declared.gate}]"
            # The id is given whole: pytest >= 9.2 splits off brackets when it reads one from its cache.
            item: GateItem = GateItem.from_parent(self, name=label, nodeid=f"{self.nodeid}::{label}")
            item.declare(declared, self.gates)
            yield item


class GateItem(pytest.Item):
    """One declared gate."""

    declared: DeclaredGate

    def declare(self, declared: DeclaredGate, gates: GateSession) -> None:
        """Say what the item judges."""
        self.declared = declared
        self.line = key_line(gates.settings.root, declared.table, declared.key)
        self.add_marker(pytest.mark.dscore)
        gates.recorder.announce(self, declared.known)

    def runtest(self) -> None:
        self.declared.judge(self)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        return self.path, self.line, self.name


def is_project_file(path: Path, root: Path) -> bool:
    """Whether a path given to pytest is the pyproject.toml whose gates are meant."""
    return path == root / "pyproject.toml"


def location(item: pytest.Item) -> str:
    """``path:line`` of a test, relative to pytest's rootdir."""
    path, line, _ = item.location
    return f"{path}:{line + 1}" if line is not None else str(path)


def refuse_two_marks(item: pytest.Item, name: str) -> None:
    """Raise `SettingsError` where a marker stands twice at one place, as only one of the two could hold."""
    if any(sum(mark.name == name for mark in node.own_markers) > 1 for node in item.listchain()):
        raise SettingsError(
            f"@pytest.mark.{name} stands more than once on this test, its class (or a base class) or its module, and "
            "only one could hold: leave one, or write two tests"
        )


def without(properties: Iterable[tuple[str, Any]], names: set[str]) -> list[tuple[str, Any]]:
    """Properties but those of the given names: a rerun of an item must not pile them up."""
    return [entry for entry in properties if entry[0] not in names]
