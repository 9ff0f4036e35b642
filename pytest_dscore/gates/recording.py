"""What a gate found, put where it lasts: on the item for JUnit, on its report for the terminal and for xdist."""

from __future__ import annotations

import unittest
from collections.abc import Generator, Iterable, Sequence
from typing import NoReturn

import pytest

from pytest_dscore.gates.items import Property, location, without
from pytest_dscore.verdict import Verdict

_VERDICTS = pytest.StashKey[list[Verdict]]()
#: Set where a test was failed by the gate rather than by its own body.
_REFUSED = pytest.StashKey[bool]()
#: What the gate failed a test for, until the phase in which it did is reported.
_FAILED = pytest.StashKey[list[str]]()


class Recorder:
    """Puts verdicts and properties on items, and verdicts on their reports.

    Parameters
    ----------
    junit_properties
        False where JUnit must stay without properties, as some readers reject them.
    """

    def __init__(self, junit_properties: bool) -> None:
        self._junit_properties = junit_properties

    def announce(self, item: pytest.Item, known: Iterable[Property]) -> None:
        """Set properties; each replaces the one of the same name."""
        found = list(known)
        if self._junit_properties:
            item.user_properties[:] = [*without(item.user_properties, {name for name, _ in found}), *found]

    def record(self, item: pytest.Item, verdicts: Sequence[Verdict]) -> None:
        """Keep the verdicts of one judgement, beside those of earlier ones of the same test."""
        from pytest_dscore.gates.junit import properties

        item.stash.setdefault(_VERDICTS, []).extend(verdicts)
        self.announce(item, properties(verdicts))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        _let_failures_stand(item, call, report)
        if report.when != "teardown" and (verdicts := item.stash.get(_VERDICTS, None)):
            # On the report, which xdist carries to the controller even if the worker dies later.
            report.dscore = [verdict.to_json() for verdict in verdicts]  # type: ignore[attr-defined]
            del item.stash[_VERDICTS]
        crash = getattr(report.longrepr, "reprcrash", None)
        if crash is not None and item.stash.get(_REFUSED, False):
            # JUnit readers show little more than the start of the message.
            crash.message = crash.message.removeprefix("Failed: ")
            path, line, _ = item.location
            crash.path, crash.lineno = path, (line or 0) + 1
        return report


#: By marker and fixture: what a test that could not be judged at all is about.
_KINDS = {
    "dscore": ("dscore.model", "dscore"),
    "holdout": ("dscore.holdout", "dscore.holdout"),
    "nested_cv": ("dscore.protocol", "dscore.protocol"),
    "leak_probe": ("dscore.protocol", "dscore.protocol"),
}


def _announce_unjudged(item: pytest.Item) -> None:
    """Tell readers of JUnit that a test is a gate although its marker cannot be used: it must not be overlooked."""
    recorder: Recorder | None = item.config.pluginmanager.get_plugin("dscore-recorder")
    asked = getattr(item, "fixturenames", ())
    for name, (subject, prefix) in _KINDS.items():
        if recorder is not None and (item.get_closest_marker(name) or name in asked):
            recorder.announce(item, [(subject, item.name), (f"{prefix}.verdict.settings", "error")])
            return


def fail(item: pytest.Item, lines: Sequence[str]) -> NoReturn:
    """Fail a test with these lines and its place, without a traceback of ours."""
    item.stash[_REFUSED] = True
    item.stash.setdefault(_FAILED, []).extend(lines)
    if not any(name.startswith("dscore.") for name, _ in item.user_properties):
        _announce_unjudged(item)
    raise _failure(item, lines) from None


def _failure(item: pytest.Item, lines: Sequence[str]) -> BaseException:
    return pytest.fail.Exception("\n".join([*lines, location(item)]), pytrace=False)


def _let_failures_stand(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Make a phase a failure in which a test's own code caught what the gate failed it for, to pass or skip itself.

    Without that a run could pass although a use of a hold-out was refused. What ended otherwise failed by itself.
    """
    lines = item.stash.get(_FAILED, [])
    item.stash[_FAILED] = []
    silent = call.excinfo is None or isinstance(call.excinfo.value, _SILENT)
    if lines and silent and not report.failed:
        with pytest.raises(pytest.fail.Exception) as caught:
            raise _failure(item, lines)
        report.outcome, report.longrepr = "failed", item.repr_failure(caught)
        vars(report).pop("wasxfail", None)  # else it would be counted as an expected failure


_SILENT = (pytest.skip.Exception, pytest.xfail.Exception, unittest.SkipTest)
