"""Several processes at once, and processes that are killed.

``DSCORE_LEDGER_USES=1000`` lets each of the eight record as many; benchmarks/holdout_ledger.py does the same.
"""

from __future__ import annotations

import os

import pytest

from tests.holdout.ledger import workers
from tests.holdout.ledger.examples import holdout, use
from tests.holdout.ledger.places import Place

USES = int(os.environ.get("DSCORE_LEDGER_USES", "0"))


@pytest.mark.parametrize("processes", [2, 8])
def test_no_use_is_lost(place: Place, processes: int) -> None:
    acknowledged = workers.run(workers.jobs(place, processes, place.uses_each))
    assert len(acknowledged) == processes * place.uses_each
    found = place.open(must_exist=True).uses()
    assert sorted(u.model for u in found) == sorted(acknowledged)
    # Nobody was admitted on a count that was out of date.
    assert [u.verdict for u in found] == [f"{before} before" for before in range(len(found))]
    assert place.open().verify().ok
    assert len(place.open().heads()) == 1


@pytest.mark.parametrize("processes", [2, 8])
def test_no_budget_is_overspent(place: Place, processes: int) -> None:
    budget = processes * place.uses_each // 2 + 1
    acknowledged = workers.run(workers.jobs(place, processes, place.uses_each, budget))
    assert len(acknowledged) == budget
    assert sorted(u.model for u in place.open().uses()) == sorted(acknowledged)


def test_killed_processes_lose_nothing_that_was_acknowledged(place: Place) -> None:
    data = holdout()
    count = USES or 25
    acknowledged = workers.run(workers.jobs(place, 8, count), kill_after=place.kill_after * count / 25)
    report = place.open().verify()
    assert report.ok, str(report)
    recorded = {u.model for u in place.open(must_exist=True).uses()}
    assert set(acknowledged) <= recorded
    # What a killed process had begun does not stand in the way of the next.
    assert place.open().record(use(0, data), data).is_new
