"""``dscore holdout verify``, ``export``, ``import`` and ``retire``: the ledger itself."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pytest_dscore.errors import DScoreError
from pytest_dscore.holdout.commands._ledgers import add_ledger_options, one_matching, project_of
from pytest_dscore.holdout.ledger import Finding, Report
from pytest_dscore.holdout.provenance import ran_by
from pytest_dscore.report.text import wrapped
from pytest_dscore.writing import write_whole

_RECORDS = re.compile(r"[0-9a-f]{64}(,[0-9a-f]{64})*")
#: The name of a record, or of its file in a ledger.
_NAME = re.compile(r"([0-9a-f]{2}/[a-z]+-[0-9a-f]{16}-)?[0-9a-f]{64}")
#: Of more findings that are alike only so many names are shown.
_FEW = 3


def add_to(commands: Any) -> None:
    """Add the sub-commands."""
    verify = commands.add_parser("verify", help="name whatever is missing from a ledger or was changed")
    verify.add_argument(
        "--base", metavar="REF", help="a git revision, or record names with commas between: all must still be there"
    )
    verify.add_argument("--json", action="store_true", help="print JSON")
    verify.set_defaults(run=run_verify)

    export = commands.add_parser("export", help="write a ledger as JSON lines")
    export.add_argument("--output", metavar="FILE", help="default: standard output")
    export.set_defaults(run=run_export)

    taken = commands.add_parser("import", help="take over the records of an export")
    taken.add_argument("file", metavar="FILE", help="as export wrote it; - for standard input")
    taken.set_defaults(run=run_import)

    retire = commands.add_parser("retire", help="end a hold-out: no model is scored on it any more")
    retire.add_argument("name", metavar="NAME", help="its name or the beginning of its digest")
    retire.set_defaults(run=run_retire)

    for parser in (taken, retire):
        parser.add_argument("--why", required=True, metavar="TEXT", help="the reason, which is put on record")
    for parser in (verify, export, taken, retire):
        add_ledger_options(parser)


def run_verify(options: argparse.Namespace) -> int:
    """Verify every ledger of the project; return 1 if anything is wrong with one."""
    project = project_of(options)
    given: str | None = options.base
    base = given.split(",") if given is not None and _RECORDS.fullmatch(given) else given
    if isinstance(base, list) and len(project.urls()) > 1:
        raise DScoreError("record names belong to one ledger, and the project keeps several: say which with --ledger")
    reports = [_begun(project.open(url, must_exist=False).verify(base)) for url in project.urls()]
    if options.json:
        print(json.dumps([_as_json(report) for report in reports], indent=2))
    else:
        print("\n".join(line for report in reports for line in _report_lines(report)))
    return int(not all(report.ok for report in reports))


def _begun(report: Report) -> Report:
    """Return the report, in which a ledger without any record is a finding: nothing would be missed in it."""
    if report.records or report.findings:
        return report
    reason = f"{report.where} holds no record: restore it, or mend the URL; `dscore holdout begin` begins one"
    return replace(report, findings=(Finding("missing", "", report.where, reason),))


def _report_lines(report: Report) -> list[str]:
    state = "nothing is missing or changed" if report.ok else _counted(len(report.findings), "finding")
    counts = f"{_counted(report.records, 'record')}, {_counted(report.uses, 'use')}"
    text = wrapped(f"{report.where}: {counts}, {state}")
    for group in _alike(report.findings):
        for said in map(str, group) if len(group) <= _FEW else [_all_in_one(group)]:
            text += wrapped(said, "  ", "    ")
    return text + [f"  head {head}" for head in report.heads]


def _alike(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Return findings in groups that differ in names of records alone."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.fault, _NAME.sub("", finding.reason)), []).append(finding)
    return list(groups.values())


def _all_in_one(group: Sequence[Finding]) -> str:
    names = ", ".join(finding.record[:12] for finding in group[:_FEW])
    more = f"{names} and {len(group) - _FEW:,} more; --json lists all"
    return f"{group[0].fault}: {len(group):,} records ({more}), each like the first: {group[0].reason}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _as_json(report: Report) -> dict[str, Any]:
    return {
        "ledger": report.where,
        "ok": report.ok,
        "records": report.records,
        "uses": report.uses,
        "heads": list(report.heads),
        "findings": [asdict(finding) for finding in report.findings],
    }


def run_export(options: argparse.Namespace) -> int:
    """Write the export to standard output or a file."""
    ledger = project_of(options).only()
    lines = ledger.export_lines()
    text = "".join(f"{line}\n" for line in lines)
    if options.output is None:
        sys.stdout.write(text)
        return 0
    path = Path(options.output)
    if path.exists() and not (path.is_file() or path.is_dir()):  # such as /dev/null, which must not be replaced
        path.write_bytes(text.encode("ascii"))
    else:
        write_whole(path, text.encode("ascii"))  # what was there may be the only other copy
    print("\n".join(wrapped(f"{_counted(len(lines) - 1, 'record')} of {ledger.where} written to {options.output}")))
    return 0


def run_import(options: argparse.Namespace) -> int:
    """Take over the records of a file."""
    ledger = project_of(options).only(must_exist=False)
    if options.file == "-":
        content = sys.stdin.read()
    else:
        try:
            content = Path(options.file).read_text(encoding="ascii")
        except UnicodeDecodeError:
            raise DScoreError(f"{options.file} is not an export of a ledger: it is not plain ASCII") from None
    taken = ledger.import_lines(content.splitlines(), options.why, ran_by())
    what = f"{_counted(taken, 'record')} taken over into" if taken else "nothing new for"
    print("\n".join(wrapped(f"{what} {ledger.where}")))
    return 0


def run_retire(options: argparse.Namespace) -> int:
    """Put the end of a hold-out on record."""
    ledger = project_of(options).only(options.name)
    identity = one_matching(ledger, options.name)
    ledger.retire(identity, options.why, ran_by())
    also = ", ".join(f"'{other.name}'" for other in ledger.related(identity) if other.digest != identity.digest)
    more = f"; neither are those that share examples with it ({also})" if also else ""
    print(
        "\n".join(
            wrapped(f"hold-out '{identity.name}' {identity.digest[:12]} is retired and takes no use any more{more}")
        )
    )
    return 0
