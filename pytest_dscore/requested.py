"""Which tests ask for a gate by a fixture alone; imports nothing, as it is called in every pytest run."""

from __future__ import annotations

import pytest

from pytest_dscore.names import GATE_FIXTURES, MARKERS


def is_gate(item: pytest.Item) -> bool:
    """Whether a test is marked as a gate, or uses a fixture that makes it one."""
    return any(item.get_closest_marker(name) for name in MARKERS) or any(requests(item, name) for name in GATE_FIXTURES)


def requests(item: pytest.Item, fixture: str) -> bool:
    """Whether a test uses a fixture of this plugin, not one of the same name that the project defines itself."""
    known = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    definitions = known.get(fixture, ())
    return bool(definitions) and getattr(definitions[-1].func, "__module__", "") == "pytest_dscore.plugin"
