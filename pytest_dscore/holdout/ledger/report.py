"""What `Ledger.verify` found."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_dscore.holdout.ledger.faults import Fault


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a ledger.

    Parameters
    ----------
    fault
        ``"missing"``: a record that should be there is not. ``"edited"``: content changed, cut short or emptied.
        ``"foreign"``: not a record of a ledger. ``"broken link"``: a record that names what the ledger lacks.
        ``"rolled back"``: a record known from elsewhere (a base, an earlier fetch) that is gone.
    record
        Name of the record, or of the file where it has no name.
    where
        File or row.
    reason
        What is wrong and what to do, in a sentence.
    """

    fault: Fault
    record: str
    where: str
    reason: str

    def __str__(self) -> str:
        return f"{self.fault}: {self.reason}"


@dataclass(frozen=True)
class Report:
    """The state of a ledger.

    Parameters
    ----------
    where
        The ledger, without passwords.
    records, uses
        How many sound records and how many distinct uses there are.
    heads
        Names of the records that no other names as its parent. Keep them elsewhere and pass them as ``base`` next time:
        taking away the newest records breaks no link, so only this shows it.
    findings
        Everything that is wrong.
    """

    where: str
    records: int
    uses: int
    heads: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def __str__(self) -> str:
        state = "nothing is missing or changed" if self.ok else f"{len(self.findings)} findings"
        head = f"{self.where}: {self.records} records, {self.uses} uses, {state}"
        return "\n".join([head, *(f"  {finding}" for finding in self.findings)])
