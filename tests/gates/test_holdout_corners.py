"""What nearly went wrong once: hidden scores that figures told, and corners of data, names and answers."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest

from pytest_dscore.errors import DScoreError
from pytest_dscore.gates.predicting import wrong_where
from pytest_dscore.holdout.ledger import HoldoutIdentity
from tests.gates.holdout_project import HEAD, NAME, HoldoutProject, N, labels, within_terminal
from tests.gates.project import properties, section

PASS_FAIL = ('mode = "adaptive"', 'feedback = "pass-fail"', "min_accuracy = 0.8")


@pytest.mark.parametrize("where", ["junit", "terminal", "use", "status"])
def test_pass_fail_tells_the_same_of_two_models_that_pass(
    bench: HoldoutProject, capsys: pytest.CaptureFixture[str], where: str
) -> None:
    """5 and 10 of 100 wrong, both pass: nothing printed may differ."""
    told: list[object] = []
    for wrong in (5, 10):
        bench.declare(*PASS_FAIL, f'ledger = "ledger-{wrong}"')
        bench.begin(f"ledger-{wrong}")
        result, _ = bench.candidate(f"use = holdout.evaluate(bench.model({wrong}))\nPath('use').write_text(repr(use))")
        if where == "junit":
            found = properties(bench.cases()["test_candidate"])
            told.append({k: v for k, v in found.items() if k.split(".")[-1] not in ("ledger", "model_fingerprint")})
        elif where == "terminal":
            told.append(section(result))
        elif where == "use":
            told.append((bench.path / "use").read_text())
        else:
            _, state = bench.status(capsys)
            told.append({k: v for k, v in state.items() if k not in ("ledger", "digest")})
    assert told[0] == told[1]


def test_the_failure_probability_of_pass_fail_tells_the_number_of_wrong_answers(bench: HoldoutProject) -> None:
    """An attack: from the JUnit property alone, the exact accuracy of a model that passed."""
    from scipy import stats

    bench.declare(*PASS_FAIL)
    bench.candidate("holdout.evaluate(bench.model(13))")
    shown = float(properties(bench.cases()["test_candidate"])["dscore.holdout.failure_probability"])
    guess = [
        wrong
        for wrong in range(N + 1)
        if np.isclose(
            stats.binom(N, wrong / N).sf(wrong + 19) + stats.binom(N, wrong / N).cdf(wrong - 20),
            shown,
            rtol=1e-6,
            atol=0,
        )
    ]
    assert 13 not in guess, "the number of wrong answers is known but for its complement, which did not pass"


def test_the_ladder_tells_nothing_of_a_model_that_is_not_better(bench: HoldoutProject) -> None:
    told = []
    for wrong in (20, 30):
        bench.declare('mode = "adaptive"', 'feedback = "ladder"', f'ledger = "ledger-{wrong}"')
        bench.begin(f"ledger-{wrong}")
        result, _ = bench.candidate(
            "holdout.evaluate(bench.model(8))\n"
            f"use = holdout.evaluate(bench.model({wrong}, 50))\nassert not use.improved"
        )
        told.append(section(result))
    assert told[0] == told[1]


def test_a_module_changed_in_a_private_attribute_is_another_model(bench: HoldoutProject) -> None:
    bench.declare(epsilon=0.45)
    bench.write(
        "bench.py",
        (bench.path / "bench.py").read_text() + "\nimport torch\n\nclass Net(torch.nn.Module):\n"
        "    def __init__(self, columns):\n        super().__init__()\n        self._columns = columns\n"
        "    def forward(self, batch):\n        return batch[:, self._columns]\n",
    )
    _, text = bench.candidate(
        "import torch\nfirst = holdout.evaluate(bench.Net([0, 1, 2]))\nother = bench.Net([1, 2, 0])\n"
        "use = holdout.evaluate(other)\n"
        "right = (other(torch.tensor(bench.INPUTS)).argmax(1).numpy() == bench.LABELS).mean()\n"
        "assert right != first.accuracy\nassert use.is_new\nassert use.accuracy == right"
    )
    assert not text


def test_a_long_name_fits_a_terminal(bench: HoldoutProject) -> None:
    name = "a-hold-out-with-a-name-of-more-than-sixty-characters-as-people-write-them"
    bench.declare()
    bench.write("pyproject.toml", (bench.path / "pyproject.toml").read_text().replace(NAME, name))
    bench.test(f"{HEAD}@pytest.mark.holdout\ndef test_user(holdout):\n    holdout.evaluate(bench.model(7))\n")
    assert within_terminal(bench.run())


def test_two_models_of_the_same_accuracy_are_two_rows(bench: HoldoutProject) -> None:
    result, _ = bench.candidate("for start in (0, 50):\n    holdout.evaluate(bench.model(7, start))")
    assert sum(bool(re.match(rf"{NAME} +new ", line)) for line in section(result)) == 2


def test_a_table_with_text_is_a_holdout() -> None:
    frame = pd.DataFrame({"size": np.arange(N) * 1.5, "colour": ["red", "blue"] * (N // 2)})
    assert HoldoutIdentity.of(frame, labels()).n == N


def test_an_empty_array_is_refused_by_the_ledger_with_a_sentence() -> None:
    with pytest.raises(DScoreError, match="no example"):
        HoldoutIdentity.of(np.empty((0, 4)), np.empty(0))


def test_integers_in_an_object_column_are_integers() -> None:
    found = wrong_where(np.array([1, 2], dtype=object), np.array([1, 1]), "the model made")
    assert found.tolist() == [False, True]


def test_bytes_never_equal_text() -> None:
    with pytest.raises(DScoreError):
        wrong_where(np.array([b"cat"]), np.array(["cat"]), "the model made")


def test_probabilities_are_no_labels() -> None:
    with pytest.raises(DScoreError):
        wrong_where(np.array([0.93, 0.2]), np.array([1, 0]), "the model made")


def test_a_ladder_never_shows_an_accuracy_below_zero(bench: HoldoutProject) -> None:
    bench.declare('mode = "adaptive"', 'feedback = "ladder"', "delta = 0.5", epsilon=0.36)
    _, text = bench.candidate("use = holdout.evaluate(bench.model(99))\nassert use.accuracy >= 0")
    assert not text


@pytest.mark.parametrize(
    "before", [PASS_FAIL, ('mode = "adaptive"', 'feedback = "ladder"')], ids=["pass-fail", "ladder"]
)
def test_scores_hidden_once_stay_hidden_when_the_settings_change(
    bench: HoldoutProject, capsys: pytest.CaptureFixture[str], before: tuple[str, ...]
) -> None:
    bench.declare(*before)
    bench.candidate("holdout.evaluate(bench.model(13))")
    bench.declare()
    _, text = bench.candidate("print(holdout.evaluate(bench.model(13)).accuracy)")
    assert "is on record with what was shown then" in text
    found = properties(bench.cases()["test_candidate"])
    assert "dscore.holdout.accuracy" not in found
    _, state = bench.status(capsys)
    assert state["method"] == "union"
    assert "scores are hidden" in state["note"]


def test_a_module_with_a_name_is_known_by_its_weights(bench: HoldoutProject) -> None:
    bench.declare(epsilon=0.45)
    bench.write(
        "bench.py",
        (bench.path / "bench.py").read_text() + "\nimport torch\n\nFLIP = 0\nclass Moody(torch.nn.Module):\n"
        "    def forward(self, batch):\n        return batch[:, [FLIP, 1 - FLIP, 2]]\n",
    )
    _, text = bench.candidate(
        "first = holdout.evaluate(bench.Moody(), name='one')\nbench.FLIP = 1\n"
        "again = holdout.evaluate(bench.Moody(), name='two')\n"
        "assert not again.is_new\nassert again.accuracy == first.accuracy"
    )
    assert not text


def test_changed_examples_are_pointed_out(bench: HoldoutProject) -> None:
    bench.declare()
    bench.candidate("holdout.evaluate(bench.model(7))")
    source = (bench.path / "bench.py").read_text()
    bench.write("bench.py", f"{source}\nINPUTS = INPUTS.copy()\nINPUTS[:5] += 1\n")
    result = bench.run("-k", "budget")
    text = " ".join(" ".join(section(result)).split())
    assert f": 95 of the 100 examples of '{NAME}' are among them, 5 gone, 5 added. That is allowed and charges" in text


MOODY = """
import functools
import numpy as np
import torch

class Table(torch.nn.Module):
    def __init__(self, kind, order):
        super().__init__()
        if kind == "array":
            self.order = np.array(order)
        elif kind == "object":
            self.order = Order(order)
        elif kind == "partial":
            self.order = functools.partial(list, order)
        elif kind == "list of modules":
            self.order = [torch.nn.Linear(1, 3)]
            self.order[0].weight.data[:, 0] = torch.tensor(order, dtype=torch.float32)
        else:
            self.order = order
            hook = lambda module, inputs, output: output[:, list(order)]
            self.register_forward_hook(hook)
        self.kind = kind

    def forward(self, batch):
        if self.kind == "hook":
            return batch
        order = {
            "array": lambda: self.order.tolist(),
            "object": lambda: self.order.value,
            "partial": lambda: self.order(),
            "list of modules": lambda: [int(x) for x in self.order[0].weight[:, 0]],
        }[self.kind]()
        return batch[:, order]

class Order:
    def __init__(self, value):
        self.value = value
"""


@pytest.mark.parametrize("kind", ["array", "object", "partial", "list of modules", "hook"])
def test_whatever_decides_a_module_s_answers_makes_it_another_model(bench: HoldoutProject, kind: str) -> None:
    bench.declare(epsilon=0.45)
    bench.write("moody.py", MOODY)
    _, text = bench.candidate(
        f"from moody import Table\nfirst = holdout.evaluate(Table({kind!r}, [0, 1, 2]))\n"
        f"second = holdout.evaluate(Table({kind!r}, [1, 2, 0]))\n"
        "assert second.is_new\nassert second.accuracy != first.accuracy"
    )
    assert not text


def test_a_model_that_works_in_place_does_not_change_the_holdout(bench: HoldoutProject) -> None:
    bench.declare(epsilon=0.45)
    _, text = bench.candidate(
        "def spoil(inputs):\n    inputs *= 0\n    return holdout.labels * 0\n"
        "holdout.evaluate(spoil)\nassert (holdout.inputs == bench.INPUTS).all()\n"
        "holdout.labels[:] = 7\nassert (holdout.labels == bench.LABELS).all()"
    )
    assert not text
