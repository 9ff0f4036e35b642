"""``dscore holdout`` on a hold-out of which a use was refused for its outcomes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from pytest_dscore.holdout.charging import charge
from pytest_dscore.holdout.ledger import Use, UseRefused, open_ledger
from pytest_dscore.holdout.terms import Terms
from tests.cli import examples
from tests.cli.conftest import Run

#: An error rate of 50 % is too much for it at the epsilon of the settings, whatever went before.
TERMS = Terms("digits-test", epsilon=0.04, delta=0.008, bound="union", known=True)


def refuse(root: Path, wrong: int) -> None:
    """Have a model refused that is wrong on so many examples."""
    identity = examples.identity()
    use = Use.of(identity, np.arange(examples.N) < wrong, model="refused-model")
    with pytest.raises(UseRefused, match="on record as refused"):
        charge(open_ledger(".dscore/ledger", root=root), identity, TERMS, [use], lambda existing, new: "shown")


@pytest.fixture
def refused(root: Path) -> Path:
    """A project in which two models were shown and a third refused."""
    examples.declare(root, examples.SETTINGS + "delta = 0.008\n")
    examples.record(root, models=2)
    refuse(root, examples.N // 2)
    return root


@pytest.mark.usefixtures("refused")
def test_status(dscore: Run) -> None:
    result = dscore("status")
    assert result.code == 1
    assert "3 models used (" in result.flat
    assert "1 of them refused), 0 more before +-4 % no longer holds" in result.flat
    assert "1 model was refused, which tells a little of its score" in result.flat
    assert "SPENT no further model may be scored on it: declare a larger epsilon (+-4." in result.flat
    (printed,) = json.loads(dscore("status", "--json").out)
    assert (printed["models_used"], printed["models_refused"], printed["holds"], printed["spent"]) == (3, 1, True, True)


@pytest.mark.usefixtures("refused")
def test_history_shows_the_refused_use_without_its_error(dscore: Run) -> None:
    result = dscore("history")
    assert result.code == 0
    row = next(line for line in result.out.splitlines() if "refused-model" in line)
    assert "%" not in row
    assert row.split()[0] == "3"
    assert "refused; nothing shown" in result.flat
    (printed,) = json.loads(dscore("history", "--json").out)
    assert [use["error"] is None for use in printed["uses"]] == [False, False, True]
    assert "0.5" not in json.dumps(printed["uses"][2]["error"])


@pytest.mark.usefixtures("refused")
def test_history_draws_it(root: Path, dscore: Run) -> None:
    assert dscore("history", "--plot", str(root / "plot.svg")).code == 0
    assert (root / "plot.svg").stat().st_size > 1000


def test_what_is_printed_does_not_depend_on_the_outcomes(root: Path, dscore: Run) -> None:
    printed = set()
    for wrong in (0.45, 0.5, 0.55):
        examples.declare(root, examples.SETTINGS + "delta = 0.008\n")
        examples.record(root, models=2)
        refuse(root, int(wrong * examples.N))
        found = [json.loads(dscore(command, "--json").out) for command in ("status", "history")]
        found[1][0]["uses"] = [(use["model"], use["error"], use["verdict"]) for use in found[1][0]["uses"]]
        printed.add(json.dumps(found))
        for file in sorted((root / ".dscore").rglob("*"), reverse=True):
            file.unlink() if file.is_file() else file.rmdir()
    assert len(printed) == 1


def test_a_hold_out_all_of_whose_uses_were_refused(root: Path, dscore: Run) -> None:
    examples.declare(root, examples.SETTINGS + "delta = 0.008\n")
    open_ledger(".dscore/ledger", root=root).begin(examples.identity())
    refuse(root, examples.N // 2)
    result = dscore("status")
    assert result.code == 1
    assert "1 model used (1 effective; 1 of them refused), 0 more before +-4 % no longer holds" in result.flat
    assert dscore("history").code == 0
    assert "every use of it was refused" in dscore("history", "--plot", str(root / "plot.svg")).sentence


@pytest.mark.usefixtures("refused")
def test_the_epsilon_that_is_named_leaves_room_for_one_more(root: Path, dscore: Run) -> None:
    said = re.search(r"declare a larger epsilon \(\+-(\d+\.\d\d) % would do for one more\)", dscore("status").flat)
    assert said
    enough = float(said[1]) / 100
    for epsilon, room in ((enough, True), (enough - 0.0001, False)):
        examples.declare(root, examples.SETTINGS.replace("0.04", f"{epsilon:.4f}") + "delta = 0.008\n")
        (printed,) = json.loads(dscore("status", "--json").out)
        assert (printed["models_remaining"] > 0) is room


def test_hidden_scores_are_not_drawn_and_their_digests_not_shown(root: Path, dscore: Run) -> None:
    examples.declare(root, examples.SETTINGS + 'mode = "adaptive"\nfeedback = "pass-fail"\nmin_accuracy = 0.5\n')
    identity = examples.identity()
    ledger = open_ledger(".dscore/ledger", root=root)
    ledger.begin(identity)
    use = Use.of(identity, np.arange(examples.N) < 30, model="svc@0123456789abcdef")
    ledger.record_all([use], identity, lambda existing, new: "pass-fail; passed min_accuracy 0.5")
    assert "would tell them" in dscore("history", "--plot", str(root / "plot.svg")).sentence
    assert not (root / "plot.svg").exists()
    assert "0123456789abcdef" not in dscore("history", "--json").out
