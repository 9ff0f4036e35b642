"""Verdicts as JUnit properties of a test case, named ``dscore.*``."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pytest_dscore.gates.items import Property
from pytest_dscore.verdict import Verdict


def properties(verdicts: Sequence[Verdict]) -> list[Property]:
    """Every figure, interval, grid, setting and fingerprint of verdicts on one subject.

    Those on a model are named ``dscore.NAME``, those on a hold-out or a protocol ``dscore.KIND.NAME``. Grids and lists
    are JSON.
    """
    first = verdicts[0]
    prefix = "dscore" if first.kind == "model" else f"dscore.{first.kind}"
    found: list[Property] = [(f"dscore.{first.kind}", first.subject)]
    for verdict in verdicts:
        if verdict.gate:
            if verdict.threshold is not None:
                found.append((f"{prefix}.threshold.{verdict.gate}", verdict.threshold))
            found.append((f"{prefix}.verdict.{verdict.gate}", verdict.outcome))
    for name, figure in first.figures.items():
        found += [
            (f"{prefix}.{name}", figure.value),
            (f"{prefix}.{name}.lower", figure.lower),
            (f"{prefix}.{name}.upper", figure.upper),
        ]
    for name, value in first.facts.items():
        plain = isinstance(value, (str, int, float)) and not isinstance(value, bool)
        found.append((f"{prefix}.{name}", value if plain else json.dumps(value)))
    return found
