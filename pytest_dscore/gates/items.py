"""Declared models as collected tests: one item per gate, in a file node for pyproject.toml."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_dscore.settings import ModelSettings, key_line

if TYPE_CHECKING:
    from pytest_dscore.gates.session import GateSession


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
        for name, settings in self.gates.settings.models.items():
            for gate, threshold in settings.thresholds().items():
                label = f"dscore[{name}-{gate}]"
                # The id is given whole: pytest >= 9.2 splits off brackets when it reads one from its cache.
                item: GateItem = GateItem.from_parent(self, name=label, nodeid=f"{self.nodeid}::{label}")
                item.declare(self.gates, name, settings, gate, threshold)
                yield item


class GateItem(pytest.Item):
    """One threshold of one declared model."""

    gates: GateSession
    model: str
    settings: ModelSettings
    thresholds: dict[str, float]

    def declare(self, gates: GateSession, model: str, settings: ModelSettings, gate: str, threshold: float) -> None:
        """Say what the item judges."""
        self.gates, self.model, self.settings, self.thresholds = gates, model, settings, {gate: threshold}
        self.line = key_line(gates.settings.root, model, gate)
        self.add_marker(pytest.mark.dscore)
        gates.announce(self, model, self.thresholds)

    def runtest(self) -> None:
        self.gates.enforce(self, self.model, self.settings, self.thresholds)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        return self.path, self.line, self.name


def is_project_file(path: Path, root: Path) -> bool:
    """Whether a path given to pytest is the pyproject.toml whose gates are meant."""
    return path == root / "pyproject.toml"


def location(item: pytest.Item) -> str:
    """``path:line`` of a test, relative to pytest's rootdir."""
    path, line, _ = item.location
    return f"{path}:{line + 1}" if line is not None else str(path)


def without(properties: list[tuple[str, Any]], names: set[str]) -> list[tuple[str, Any]]:
    """Properties but those of the given names: a rerun of an item must not pile them up."""
    return [entry for entry in properties if entry[0] not in names]
