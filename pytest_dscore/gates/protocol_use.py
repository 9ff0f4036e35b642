"""The ``nested_cv`` and ``leak_probe`` fixtures: the library's functions, each call of which is judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_dscore.errors import DScoreError
from pytest_dscore.gates.protocol_judge import cannot_judge, data_verdict, error_verdict, leak_verdict
from pytest_dscore.names import unknown_name
from pytest_dscore.protocol import LeakVerdict, NestedResult, check_data, nested_cv, probe_leaks
from pytest_dscore.settings import ProtocolMark

if TYPE_CHECKING:
    from pytest_dscore.gates.protocols import ProtocolGates


class NestedCV:
    """Nested cross-validation within a test; made by the ``nested_cv`` fixture."""

    def __init__(self, gates: ProtocolGates, item: pytest.Item) -> None:
        self._gates = gates
        self._item = item

    @property
    def settings(self) -> ProtocolMark:
        """The keywords of the test's mark, with their defaults."""
        # Not at set-up: what is wrong with the mark fails the test, where an error of its set-up would be reported.
        return self._gates.mark(self._item)

    def __call__(
        self, estimator: Any, param_grid: Any, X: Any, y: Any, *, groups: Any = None, name: str = "", **keywords: Any
    ) -> NestedResult:
        """Estimate the error, and fail the test where it exceeds the mark's ``max_error``.

        Parameters
        ----------
        estimator, param_grid, X, y, groups
            As in `pytest_dscore.protocol.nested_cv`.
        name
            What reports call the protocol; the mark's ``name`` or the test's if empty.
        **keywords
            Further ones of `pytest_dscore.protocol.nested_cv`, in place of the mark's.
        """
        __tracebackhide__ = True
        settings = self.settings
        subject, threshold = name or settings.name or self._gates.subject(self._item), settings.max_error
        try:
            arguments = self._arguments(settings.arguments(), keywords)
            what = f"nested_cv(...) of {type(estimator).__name__}"
            with self._gates.bar("error of")(subject) as progress, self._gates.running(what):
                result = nested_cv(estimator, param_grid, X, y, groups=groups, progress=progress, **arguments)
            tolerated = settings.inconclusive == "pass"
            verdict = error_verdict(subject, result, arguments["interval"], threshold, tolerated=tolerated)
        except DScoreError as error:
            gate = "" if threshold is None else "max_error"
            verdict = cannot_judge(subject, gate, error, threshold)
        self._gates.judged(self._item, verdict, "nested_cv")
        return result

    def _arguments(self, defaults: dict[str, Any], keywords: dict[str, Any]) -> dict[str, Any]:
        for key in keywords:
            if key in ("max_error", "inconclusive"):
                raise DScoreError(f"{key} belongs in the mark: write @pytest.mark.nested_cv({key}=...)")
            if key not in defaults:
                raise DScoreError(f"nested_cv(...): {unknown_name('keyword', key, (*defaults, 'groups', 'name'))}")
        arguments = defaults | keywords
        return arguments | {"n_jobs": self._gates.jobs(arguments["n_jobs"])}


class LeakProbe:
    """Looks for leaks within a test; made by the ``leak_probe`` fixture."""

    def __init__(self, gates: ProtocolGates, item: pytest.Item) -> None:
        self._gates = gates
        self._item = item

    def __call__(
        self,
        protocol: Any,
        X: Any,
        y: Any,
        splits: Any,
        seed: int = 0,
        *,
        groups: Any = None,
        time: Any = None,
        max_runs: int = 10,
        name: str = "",
    ) -> LeakVerdict:
        """Probe a protocol, and fail the test where it leaks or where that cannot be told.

        Parameters
        ----------
        protocol, X, y, splits, seed, groups, time, max_runs
            As in `pytest_dscore.protocol.probe_leaks`.
        name
            What reports call the protocol; the test's name if empty.
        """
        __tracebackhide__ = True
        subject = name or self._gates.subject(self._item)
        try:
            with self._gates.bar("leaks of")(subject) as progress, self._gates.running("the protocol"):
                found = probe_leaks(
                    protocol, X, y, splits, seed, groups=groups, time=time, max_runs=max_runs, progress=progress
                )
            verdict = leak_verdict(subject, found)
        except DScoreError as error:
            verdict = cannot_judge(subject, "leaks", error)
        self._gates.judged(self._item, verdict, "leak_probe")
        return found

    def data(
        self, X_train: Any, X_test: Any, *, groups: Any = None, time: Any = None, near: bool = True, name: str = ""
    ) -> None:
        """Look at a split of data alone, and fail the test where rows, groups or times leak.

        Parameters
        ----------
        X_train, X_test, groups, time, near
            As in `pytest_dscore.protocol.check_data`.
        name
            What reports call the protocol; the test's name if empty.
        """
        __tracebackhide__ = True
        subject = name or self._gates.subject(self._item)
        try:
            with self._gates.running("looking at the data"):
                leaks = check_data(X_train, X_test, groups, time, near=near)
            verdict = data_verdict(subject, leaks)
        except DScoreError as error:
            verdict = cannot_judge(subject, "leaks", error)
        self._gates.judged(self._item, verdict, "leak_probe")
