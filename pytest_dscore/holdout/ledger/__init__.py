"""The ledger of hold-out uses: every model ever scored on a hold-out, on record before its score is shown.

`open_ledger` opens one by its URL; `HoldoutIdentity.of` recognises a hold-out by its content; `Ledger.record` charges a
use. docs/holdout-ledger.md explains the guarantees and their limits.
"""

from __future__ import annotations

from pytest_dscore.holdout.ledger.backend import Backend, Entry, Listing
from pytest_dscore.holdout.ledger.base import Admit, Ledger, Recorded
from pytest_dscore.holdout.ledger.faults import (
    HoldoutRetired,
    LabelsChanged,
    LedgerBusy,
    LedgerDamaged,
    LedgerError,
    LedgerMissing,
    LedgerUnreachable,
    LostRace,
    UseRefused,
)
from pytest_dscore.holdout.ledger.identity import HoldoutIdentity, Overlap, changed_labels, overlap
from pytest_dscore.holdout.ledger.opening import open_ledger
from pytest_dscore.holdout.ledger.record import REFUSED, Declaration, Import, Record, Retirement, Use
from pytest_dscore.holdout.ledger.report import Finding, Report
from pytest_dscore.holdout.ledger.urls import redact

__all__ = [
    "REFUSED",
    "Admit",
    "Backend",
    "Declaration",
    "Entry",
    "Finding",
    "HoldoutIdentity",
    "HoldoutRetired",
    "Import",
    "LabelsChanged",
    "Ledger",
    "LedgerBusy",
    "LedgerDamaged",
    "LedgerError",
    "LedgerMissing",
    "LedgerUnreachable",
    "Listing",
    "LostRace",
    "Overlap",
    "Record",
    "Recorded",
    "Report",
    "Retirement",
    "Use",
    "UseRefused",
    "changed_labels",
    "open_ledger",
    "overlap",
    "redact",
]
