"""The pictures of a score as a JUnit property of one test, so that a file does not hold them once for every gate."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import pytest

from pytest_dscore.gates.items import GateItem, Property

if TYPE_CHECKING:
    from pytest_dscore.gates.store import Measured

_WITHHELD = (
    "the data are a declared hold-out: which of its examples are wrong would say more than its budget was charged for"
)


def exhibit_properties(
    item: pytest.Item,
    measured: Measured,
    judged: Collection[str],
    declared: Mapping[str, float],
    charges: Collection[str],
) -> list[Property]:
    """Return ``dscore.exhibit`` where this test is the one to carry it: a marked one, or a model's first declared gate.

    Parameters
    ----------
    item
        The test.
    measured
        With the pictures, or without.
    judged
        The gates that this test judges.
    declared
        The gates of the model, in their order.
    charges
        What the score cost declared hold-outs; the examples are withheld where it cost any.
    """
    if measured.exhibit is None or (isinstance(item, GateItem) and next(iter(declared), None) not in judged):
        return []
    shown = json.loads(measured.exhibit.to_json())
    if charges:
        shown |= {"examples": [], "withheld": _WITHHELD}
    return [("dscore.exhibit", json.dumps(shown))]
