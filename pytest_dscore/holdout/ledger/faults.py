"""What can go wrong with a ledger, one exception each, all of the family `DScoreError`."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pytest_dscore.errors import DScoreError

Fault: TypeAlias = Literal["missing", "edited", "foreign", "broken link", "rolled back"]


class LedgerError(DScoreError):
    """The ledger cannot be read or written; nothing was recorded unless the message says otherwise."""


class LedgerMissing(LedgerError):
    """A ledger that is said to exist is not there. It is never begun anew on its own."""


class LedgerDamaged(LedgerError):
    """A record is missing, edited, cut short or foreign; `Ledger.verify` names every one.

    Parameters
    ----------
    message
        What is wrong, where, and what to do.
    fault
        The kind of fault, as `Finding.fault`.
    """

    def __init__(self, message: str, fault: Fault = "edited") -> None:
        super().__init__(message)
        self.fault: Fault = fault


class LedgerBusy(LedgerError):
    """Others wrote without a pause until the time was up."""


class LedgerUnreachable(LedgerError):
    """The server or the git remote does not answer."""


class UseRefused(DScoreError):
    """A use was not admitted, so nothing was recorded and no score may be shown."""


class HoldoutRetired(UseRefused):
    """The hold-out, or one that shares examples with it, was retired."""


class LabelsChanged(UseRefused):
    """The labels of known examples differ from those that the earlier models were scored on."""


class LostRace(Exception):
    """Another process wrote in between; the ledger looks again and retries. Never leaves the package."""
