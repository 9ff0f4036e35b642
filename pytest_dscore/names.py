"""Names a user can write, and sentences for those that do not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

#: The built-in mutation operators, here so that settings can be checked without importing torch.
OPERATOR_NAMES = ("delete", "invert", "noise", "shuffle")


def unknown_name(what: str, given: object, valid: Iterable[str]) -> str:
    """A sentence that names the nearest valid name first, then all of them.

    Examples
    --------
    >>> unknown_name("operator", "delte", ["delete", "invert"])
    "operator 'delte' does not exist; did you mean 'delete'? Valid: delete, invert"
    """
    names = sorted(valid)
    near = difflib.get_close_matches(str(given), names, n=1, cutoff=0.5)
    hint = f"; did you mean '{near[0]}'?" if near else "."
    return f"{what} {str(given)!r} does not exist{hint} Valid: {', '.join(names)}"


#: The markers of gates and what `pytest --markers` says of them.
MARKERS = {
    "dscore": "dscore(model=NAME, min_score=..., n=..., ...): gate a declared model by its D-Score; needs --dscore",
    "holdout": "holdout(NAME): score models on a declared hold-out, within its budget; needs --dscore",
    "nested_cv": "nested_cv(max_error=..., outer=10, inner=5, ...): gate a nested cross-validation; needs --dscore",
}
#: Fixtures that make a test a gate without any marker.
GATE_FIXTURES = ("nested_cv", "leak_probe")
