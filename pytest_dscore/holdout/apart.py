"""Two declarations of the same examples with a ledger each: neither would see the other's uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pytest_dscore.errors import DScoreError, SettingsError
from pytest_dscore.holdout.ledger import HoldoutIdentity, Ledger, changed_labels, overlap


def refuse_second_ledger(
    name: str, identity: HoldoutIdentity, urls: Mapping[str, str], opened: Callable[[str], Ledger]
) -> None:
    """Refuse a hold-out whose examples another declaration has on record in another ledger.

    Other labels for the same examples are another task, which needs a ledger of its own.

    Parameters
    ----------
    name
        Of the hold-out.
    identity
        Made from its data.
    urls
        Ledger of each declared hold-out, by name.
    opened
        Returns the ledger at a URL.

    Raises
    ------
    SettingsError
        It names both declarations.
    """
    own = opened(urls[name])
    for other, url in urls.items():
        if url == urls[name]:
            continue
        common, where = _common(other, identity, own, url, opened)
        if common:
            raise SettingsError(
                f"[tool.dscore.holdouts.{name}] and [tool.dscore.holdouts.{other}] have {common:,} examples in common, "
                f"labelled alike, and a ledger each ({own.where} and {where}), so that neither would see the other's "
                "uses: give both the same ledger"
            )


def _common(
    other: str, identity: HoldoutIdentity, own: Ledger, url: str, opened: Callable[[str], Ledger]
) -> tuple[int, str]:
    """Return how many examples another declaration has on record elsewhere, and where."""
    try:
        ledger = opened(url)
        known = [one for one in ledger.holdouts() if one.name == other]
        same = not known or ledger.heads() == own.heads()  # one place, written in two ways
    except DScoreError:  # of either ledger, which its own gate tells
        return 0, ""
    alike = [] if same else [one for one in known if not changed_labels(identity, one)]
    found = (overlap(identity, one) for one in alike)
    return max((one.common for one in found if one.related), default=0), ledger.where
