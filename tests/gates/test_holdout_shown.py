"""What must show in a run: which model each row is, every refusal, a use that failed, and data that moved."""

from __future__ import annotations

import re

import pytest

from tests.gates.holdout_project import HEAD, MARK, NAME, HoldoutProject, within_terminal
from tests.gates.project import message, output, section

GATE = f"dscore[{NAME}-budget]"


def rows(result: pytest.RunResult) -> list[str]:
    """The rows of the table of uses, without the name of the hold-out, on one line each."""
    lines = section(result)
    start = next(number for number, line in enumerate(lines) if line.startswith("hold-out  "))
    found: list[str] = []
    for line in lines[start + 1 : lines.index("", start)]:
        if line.startswith(NAME):
            found.append(" ".join(line.split()[1:]))
        else:
            found[-1] += line.strip()
    return found


# Which model, which test


def test_each_row_names_its_model(bench: HoldoutProject) -> None:
    result, _ = bench.candidate(
        "for number, name in enumerate(['svc', 'forest', 'a-name-of-a-model-that-does-not-fit-into-its-column']):\n"
        "    holdout.record(outcomes=bench.outcomes(7, number), name=name)"
    )
    names = [use.model for use in bench.uses()]
    assert [row.partition("pass ")[2] for row in rows(result)] == [re.sub("@(.{10}).*", r"@\1", name) for name in names]
    assert within_terminal(result)
    assert "pass     svc@" in output(result)


def test_hidden_answers_are_named_without_their_digest(bench: HoldoutProject) -> None:
    bench.declare('mode = "adaptive"', 'feedback = "pass-fail"', "min_accuracy = 0.8")
    result, _ = bench.candidate("holdout.record(outcomes=bench.outcomes(7), name='svc')")
    assert [row.rpartition(") ")[2] for row in rows(result)][1:] == ["svc, test_candidate"]
    [use] = bench.uses()
    assert use.model.partition("@")[2][:10] not in "".join(section(result))


def test_every_refused_use_is_a_row(bench: HoldoutProject) -> None:
    bench.declare("max_uses = 1")
    bench.record(9)
    bench.test(
        f"{HEAD}@pytest.mark.parametrize('wrong', [7, 8])\n{MARK}def test_two(holdout, wrong):\n"
        f"    holdout.evaluate(bench.model(wrong))\n\n{MARK}def test_third(holdout):\n"
        "    holdout.evaluate(bench.model(12))\n"
    )
    result = bench.run()
    result.assert_outcomes(failed=3, passed=1)
    assert rows(result) == [f"- - - ERROR {name}" for name in ("test_two[7]", "test_two[8]", "test_third")] + [
        "- - - pass the budget"
    ]


# A use that failed fails its test


CAUGHT = {
    "skip": "pytest.skip('not today')",
    "xfail": "pytest.xfail('not today')",
    "unittest": "raise unittest.SkipTest('not today')",
    "pass": "pass",
}


@pytest.mark.parametrize("then", CAUGHT.values(), ids=CAUGHT)
@pytest.mark.parametrize("phase", ["call", "setup", "teardown"])
def test_a_refusal_that_the_test_catches_fails_it_all_the_same(bench: HoldoutProject, phase: str, then: str) -> None:
    bench.declare("max_uses = 1")
    bench.record(9)
    caught = f"    try:\n        holdout.evaluate(bench.model(7))\n    except BaseException:\n        {then}\n"
    bodies = {
        "call": f"{MARK}def test_candidate(holdout):\n{caught}",
        "setup": f"@pytest.fixture\ndef scored(holdout):\n{caught}\n{MARK}def test_candidate(scored):\n    pass\n",
        "teardown": (
            f"@pytest.fixture\ndef scored(holdout):\n    yield\n{caught}\n"
            f"{MARK}def test_candidate(holdout, scored):\n    holdout.record(outcomes=bench.outcomes(9))\n"
        ),
    }
    bench.test(f"{HEAD}import unittest\n{bodies[phase]}")
    result = bench.run("test_user.py", "-k", "test_", junit=False)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    outcomes = result.parseoutcomes()
    assert outcomes.get("failed" if phase == "call" else "errors") == 1
    assert not {"skipped", "xfailed"} & outcomes.keys()
    assert "max_uses = 1, 1 are used, and this model would exceed it" in " ".join(output(result).split())
    assert len(bench.uses()) == 1


def test_a_test_may_skip_itself_where_nothing_failed(bench: HoldoutProject) -> None:
    result, _ = bench.candidate("holdout.evaluate(bench.model(7))\npytest.skip('enough')")
    result.assert_outcomes(skipped=1)


# Data that moved

MOVED = "\nINPUTS, LABELS = INPUTS.copy(), LABELS.copy()\n"
CHANGES = {
    "labels": ("LABELS[[3, 70]] = (LABELS[[3, 70]] + 1) % 3", "the labels of 2 examples differ from those on record"),
    "part": (
        "INPUTS, LABELS, N = INPUTS[10:], LABELS[10:], 90\nLABELS[[3, 70]] = (LABELS[[3, 70]] + 1) % 3",
        f"the labels of 2 examples differ from those on record for '{NAME}' (rows 3, 70)",
    ),
    "some of both": (
        "INPUTS[:5] += 1\nLABELS[[3, 70]] = (LABELS[[3, 70]] + 1) % 3",
        f"the labels of 1 examples differ from those on record for '{NAME}' (rows 70)",
    ),
}


@pytest.mark.parametrize(("change", "reason"), CHANGES.values(), ids=CHANGES)
def test_labels_that_changed_fail_the_budget(bench: HoldoutProject, change: str, reason: str) -> None:
    bench.record(7, 9)
    bench.write("bench.py", f"{(bench.path / 'bench.py').read_text()}{MOVED}{change}\n")
    bench.run().assert_outcomes(failed=1)
    assert reason in message(bench.cases()[GATE])


ALLOWED = {
    "part": ("INPUTS, LABELS = INPUTS[10:], LABELS[10:]", "90 of the 100 examples of", "10 gone, 0 added"),
    "more": (
        "INPUTS, LABELS = np.concatenate([INPUTS, INPUTS[:7] + 1]), np.arange(107) % 3",
        "100 of the 100 examples of",
        "0 gone, 7 added",
    ),
}


@pytest.mark.parametrize(("change", "kept", "counts"), ALLOWED.values(), ids=ALLOWED)
def test_examples_that_came_or_went_are_counted(bench: HoldoutProject, change: str, kept: str, counts: str) -> None:
    bench.record(7, 9)
    bench.write("bench.py", f"{(bench.path / 'bench.py').read_text()}{MOVED}{change}\n")
    result = bench.run()
    result.assert_outcomes(passed=1)
    said = f"{kept} '{NAME}' are among them, {counts}. That is allowed and charges the same budget, as no label"
    assert said in " ".join(" ".join(section(result)).split())


SHUFFLED = """

def data():
    order = np.random.default_rng().permutation(N)
    return INPUTS[order], LABELS[order]


def answers(inputs):
    return (inputs[:, 0] > 0.5) + 0
"""


def test_data_in_another_order_are_the_same_and_so_is_the_model(bench: HoldoutProject) -> None:
    bench.write("bench.py", f"{(bench.path / 'bench.py').read_text()}{SHUFFLED}")
    bench.declare(epsilon=0.45)
    bench.user("use = holdout.evaluate(bench.answers)\nprint('new', use.is_new, use.accuracy)")
    told = []
    for _ in range(3):
        result = bench.run("-s")
        result.assert_outcomes(passed=2)
        told.append(next(line.split("new ")[1] for line in result.outlines if "new True" in line or "new F" in line))
        assert "WARNING" not in output(result)
    first = told[0].split()
    assert [line.split() for line in told] == [first, ["False", first[1]], ["False", first[1]]]
    assert len(bench.uses()) == 1


def test_a_digest_of_answers_is_of_one_order(bench: HoldoutProject) -> None:
    bench.write("bench.py", f"{(bench.path / 'bench.py').read_text()}{SHUFFLED}")
    models = []
    for ledger in ("one", "two"):
        bench.declare(f'ledger = "{ledger}"', epsilon=0.45)
        bench.begin(ledger)
        bench.candidate("holdout.evaluate(bench.answers)")
        models += [use.model for use in bench.ledger(ledger).uses()]
    assert models[0] == models[1]
