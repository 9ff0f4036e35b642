"""Two declarations of the same examples with a ledger each."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_dscore.holdout.ledger import HoldoutIdentity
from tests.gates.holdout_project import NAME, HoldoutProject, identity, inputs, labels
from tests.gates.project import message

SECOND = '[tool.dscore.holdouts.second]\ndata = "bench:{data}"\nepsilon = 0.2\nledger = "{ledger}"\n'
MORE = """

def part():
    return INPUTS[:40], LABELS[:40]


def other_task():
    return INPUTS, np.arange(N) // 10


def other_examples():
    return INPUTS + 1, LABELS
"""
APART = (
    "[tool.dscore.holdouts.{}] and [tool.dscore.holdouts.{}] have {} examples in common, labelled alike, and a "
    "ledger each ({} and {}), so that neither would see the other's uses: give both the same ledger"
)


def declare_second(bench: HoldoutProject, data: str = "data", ledger: str = "elsewhere") -> None:
    """Declare another hold-out, in another ledger."""
    bench.write("bench.py", (bench.path / "bench.py").read_text() + MORE)
    bench.declare(more=SECOND.format(data=data, ledger=ledger))


@pytest.mark.parametrize(("data", "common"), [("data", 100), ("part", 40)])
def test_the_second_is_not_begun(
    bench: HoldoutProject, capsys: pytest.CaptureFixture[str], data: str, common: int
) -> None:
    declare_second(bench, data)
    code, _, err = bench.command(capsys, "begin", "second")
    assert code == 2
    places = (bench.path / "elsewhere", bench.path / ".dscore/ledger")
    # Lines are folded, long paths within them too.
    assert "".join(APART.format("second", NAME, common, *places).split()) in "".join(err.split())
    assert not (bench.path / "elsewhere").exists()


@pytest.mark.parametrize("data", ["other_task", "other_examples"])
def test_another_task_and_other_examples_are_begun(
    bench: HoldoutProject, capsys: pytest.CaptureFixture[str], data: str
) -> None:
    declare_second(bench, data)
    code, out, _ = bench.command(capsys, "begin")
    assert (code, "begins in" in out) == (0, True)
    bench.user("holdout.evaluate(bench.model(7))")
    bench.run().assert_outcomes(passed=3)


def test_neither_is_used_where_both_were_begun(bench: HoldoutProject) -> None:
    declare_second(bench)
    bench.ledger("elsewhere").begin(identity("second"))
    bench.user("holdout.evaluate(bench.model(7))")
    bench.run().assert_outcomes(failed=3)
    text = message(bench.cases()["test_candidate"])
    assert APART.format(NAME, "second", 100, bench.path / ".dscore/ledger", bench.path / "elsewhere") in text
    assert bench.uses() == ()


@pytest.mark.parametrize("ledger", ["./.dscore/ledger", ".dscore/../.dscore/ledger"])
def test_one_place_written_in_two_ways_is_one_ledger(bench: HoldoutProject, ledger: str) -> None:
    declare_second(bench, "part", ledger)
    bench.ledger().begin(HoldoutIdentity.of(inputs()[:40], labels()[:40], name="second"))
    bench.user("holdout.evaluate(bench.model(7))")
    bench.run().assert_outcomes(passed=3)


def test_a_second_ledger_that_cannot_be_reached_is_told_by_its_own_gate(bench: HoldoutProject) -> None:
    declare_second(bench, ledger="git:refs/dscore/ledger")
    bench.user("holdout.evaluate(bench.model(7))")
    bench.run().assert_outcomes(passed=2, failed=1)


def test_begin_reads_the_settings_once(
    bench: HoldoutProject, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    original = Path.read_text

    def counted(self: Path, *args: str, **kwargs: str) -> str:
        if self.name == "pyproject.toml":
            read.append(self)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", counted)
    assert bench.command(capsys, "begin")[0] == 0
    assert len(read) == 1
