"""Find the benchmark data; tests that need it skip loudly where it is absent."""

# mypy: disable-error-code="import-untyped,misc,untyped-decorator,no-any-return,type-arg,no-untyped-def,no-untyped-call"
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "raetsch"


def load(name: str) -> dict[str, Any]:
    """Load one set: X, t (-1/+1), train and test sizes of the published realisations."""
    path = FOLDER / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"benchmark data {path} is absent: this comparison with the paper did not run")
    with np.load(path) as archive:
        return {key: archive[key] for key in archive.files}
