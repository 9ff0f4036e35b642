"""What a D-Score costs the hold-out that it is made on: 2 n^2 + 1 questions."""

from __future__ import annotations

import json
import re
import shutil
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load

from pytest_dscore.holdout.ledger import HoldoutIdentity, Use, open_ledger
from tests.gates.holdout_project import overfits
from tests.gates.project import FAILING, PASSING, Project, message, output, properties, section

NAME = "images"
GATE = "dscore[tiny-min_score]"
BUDGET = f"dscore[{NAME}-budget]"


class Charged(Project):
    """A project whose model is scored on the 40 examples of a declared hold-out; the ledger is begun."""

    def __init__(self, pytester: pytest.Pytester, template: Any) -> None:
        super().__init__(pytester, template)
        self.declare()
        open_ledger(".dscore/ledger", root=self.path).begin(self.identity())

    def declare(self, *lines: str, epsilon: float = 0.3, own: str = PASSING, data: str = "net:data") -> None:
        """Write pyproject.toml with these keys of the hold-out."""
        keys = "\n".join([f'data = "{data}"\nepsilon = {epsilon}', *lines])
        self.settings(own=own, more=f"[tool.dscore.holdouts.{NAME}]\n{keys}\n")

    def examples(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Images and labels."""
        kept = load((self.path / "data.safetensors").read_bytes())
        return kept["images"], kept["labels"]

    def identity(self) -> HoldoutIdentity:
        """What the ledger knows the hold-out by."""
        return HoldoutIdentity.of(*self.examples(), name=NAME)

    def uses(self) -> tuple[Use, ...]:
        """What is on record."""
        return open_ledger(".dscore/ledger", root=self.path).uses()

    def wrong(self, **arguments: Any) -> NDArray[np.bool_]:
        """The distinct outcome vectors of the model's D-Score, made without pytest."""
        hits: NDArray[np.bool_] = self.direct(**arguments).hits
        return np.unique(~hits, axis=0)

    def on_record(self) -> NDArray[np.bool_]:
        """The outcome vectors on record, in the same order."""
        return np.unique([self.identity().unpack(use.outcomes) for use in self.uses()], axis=0)


@pytest.fixture
def charged(project: Project, pytester: pytest.Pytester) -> Charged:
    del project  # sets the environment
    return Charged(pytester, pytester.path)


def text_of(result: pytest.RunResult) -> str:
    """The D-Score section on one line."""
    return " ".join(" ".join(section(result)).split())


def test_every_question_is_on_record(charged: Charged) -> None:
    result = charged.run()
    result.assert_outcomes(passed=2)
    expected = charged.wrong(n=3)
    assert np.array_equal(charged.on_record(), expected)
    count = len(expected)
    assert len(charged.uses()) == count <= 19
    # The labels of two examples are wrong on purpose.
    assert charged.uses()[0].wrong == 2
    assert {use.verdict for use in charged.uses()} == {"exact; D-Score of 'tiny' shown"}
    assert len({use.model for use in charged.uses()}) == count
    [sentence] = json.loads(properties(charged.cases()[GATE])["dscore.holdout_charges"])
    assert re.fullmatch(
        rf"hold-out '{NAME}': {count} models used \(\d+ effective\), .*\. The 19 accuracies behind this score are "
        rf"{count} different answers \({count} new on record\), and count as \d+\.\d independent models\.",
        sentence,
    )
    assert sentence in text_of(result)
    assert all(len(line) <= 80 for line in section(result))


def test_the_budget_is_charged_by_the_union_bound_of_all_of_them(charged: Charged) -> None:
    charged.declare('bound = "union"')
    charged.run().assert_outcomes(passed=2)
    spent = sum(overfits(int(wrong), 0.3, n=40) for wrong in charged.wrong(n=3).sum(axis=1))
    found = properties(charged.cases()[BUDGET])
    assert float(found["dscore.holdout.failure_probability"]) == pytest.approx(spent)


def test_a_second_run_is_no_new_use(charged: Charged) -> None:
    charged.run().assert_outcomes(passed=2)
    before = charged.uses()
    for args in ((), ("--dscore-no-cache",), ("-p", "no:cacheprovider")):
        result = charged.run(*args)
        result.assert_outcomes(passed=2)
        assert "(0 new on record)" in text_of(result)
    assert charged.uses() == before


def test_several_gates_of_a_model_are_one_charge(charged: Charged) -> None:
    charged.declare(own=f"{PASSING}\nmax_v_robust = 9.0")
    charged.test(
        "@pytest.mark.dscore(min_score=0.01)\ndef test_user(dscore):\n    assert dscore.accuracy.value == 0.95\n"
    )
    result = charged.run()
    result.assert_outcomes(passed=4)
    assert len(charged.uses()) == len(charged.wrong(n=3))


def test_another_n_asks_other_questions(charged: Charged) -> None:
    charged.test("@pytest.mark.dscore(n=2)\ndef test_user(dscore):\n    assert dscore.n == 2\n")
    charged.run("-k", "test_user").assert_outcomes(passed=1, deselected=2)
    assert np.array_equal(charged.on_record(), charged.wrong(n=2))
    charged.run().assert_outcomes(passed=3)
    both = np.unique(np.concatenate([charged.wrong(n=2), charged.wrong(n=3)]), axis=0)
    assert np.array_equal(charged.on_record(), both)


def test_charge_clean_counts_the_clean_accuracy_only_and_says_so(charged: Charged) -> None:
    charged.declare('charge = "clean"')
    result = charged.run()
    result.assert_outcomes(passed=2)
    assert [use.wrong for use in charged.uses()] == [2]
    assert (
        "Charged for the clean accuracy only (charge = 'clean'): the other 18 accuracies behind this score are not "
        "counted, so nothing is guaranteed for them."
    ) in text_of(result)


def test_the_model_on_the_holdout_is_the_model_of_the_d_score(charged: Charged) -> None:
    charged.run().assert_outcomes(passed=2)
    before = len(charged.uses())
    charged.test(
        "import net\nfrom safetensors.torch import load_file\n"
        f"@pytest.mark.holdout('{NAME}')\ndef test_user(holdout):\n"
        "    model = net.Net()\n    model.load_state_dict(load_file('weights.safetensors'))\n"
        "    use = holdout.evaluate(model)\n    assert (use.is_new, use.accuracy) == (False, 0.95)\n"
    )
    charged.run("-k", "test_user").assert_outcomes(passed=1, deselected=2)
    assert len(charged.uses()) == before


FIGURES = r"0\.\d{3} \[|a=0\.|\d\.\d{3}\*|dscore\.(score|accuracy|v_robust)\b"


@pytest.mark.parametrize("own", [PASSING, FAILING])
def test_a_refused_d_score_shows_no_figure(charged: Charged, own: str) -> None:
    charged.declare(epsilon=0.05, own=own)
    charged.test(
        "@pytest.mark.dscore(min_score=0.01)\ndef test_marked():\n    pass\n"
        "@pytest.mark.dscore\ndef test_fixture(dscore):\n    print(dscore)\n"
    )
    result = charged.run("-rA", "-l")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=1, failed=2, errors=1)
    for name in (GATE, "test_marked", "test_fixture"):
        text = message(charged.cases()[name])
        assert f"model 'tiny' cannot be scored: hold-out '{NAME}': refused, no score is shown. " in text
        assert not re.search(FIGURES, " ".join(properties(charged.cases()[name])))
    assert not re.search(FIGURES, output(result) + (charged.path / "report.xml").read_text())
    # It was refused for what its answers cost, which tells a little of them: so they count.
    assert len(charged.uses()) == len(charged.wrong(n=3))
    assert all(use.refused for use in charged.uses())
    assert "models were refused, which tells a little of their score" in text_of(result)


def test_a_refused_d_score_is_shown_once_epsilon_allows_it(charged: Charged) -> None:
    charged.declare(epsilon=0.05)
    charged.run().assert_outcomes(passed=1, failed=1)
    again = message((charged.run(), charged.cases())[1][GATE])
    enough = re.search(r"On \d{4}-\d\d-\d\d \d+ of these queries were refused; .* \(\+-(\d+\.\d\d) % would do\)", again)
    assert enough
    charged.declare(epsilon=round(float(enough[1]) / 100, 4))
    charged.run().assert_outcomes(passed=2)
    # They were shown, and count as shown from now on: with the old epsilon the budget no longer holds.
    assert len(charged.uses()) == len(charged.wrong(n=3))
    assert not any(use.refused for use in charged.uses())
    charged.declare(epsilon=0.05)
    charged.run().assert_outcomes(failed=1, passed=1)
    assert "+-5 % no longer holds" in message(charged.cases()[BUDGET])


def test_other_answers_of_the_same_weights_and_code_are_other_uses(
    charged: Charged, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (charged.path / "net.py").read_text()
    charged.write(
        "net.py", "import os\n" + source.replace("self.head(", "float(os.environ.get('SIGN', '1')) * self.head(")
    )
    charged.declare(epsilon=0.9)
    charged.run("--dscore-no-cache").assert_outcomes(passed=2)
    before = len(charged.uses())
    monkeypatch.setenv("SIGN", "-1")
    result = charged.run("--dscore-no-cache")
    assert "(0 new on record)" not in text_of(result)
    assert len(charged.uses()) > before


def test_a_refused_d_score_is_not_kept_for_somebody_to_read(charged: Charged) -> None:
    charged.declare("max_uses = 2")
    charged.run()
    assert not list((charged.path / ".pytest_cache/d/dscore").rglob("*.npz"))
    charged.declare()
    charged.run()
    assert list((charged.path / ".pytest_cache/d/dscore").rglob("*.npz"))


def test_a_refusal_does_not_depend_on_the_score(charged: Charged) -> None:
    charged.declare(epsilon=0.05)
    said = set()
    shutil.copytree(charged.path / ".dscore", charged.path / "begun")
    for model in ("self.head(", "-self.head("):
        shutil.rmtree(charged.path / ".dscore")
        shutil.copytree(charged.path / "begun", charged.path / ".dscore")
        charged.write("net.py", (charged.path / "net.py").read_text().replace("return self.head(", f"return {model}"))
        charged.run()
        text = message(charged.cases()[GATE])
        assert "refused, no score is shown" in text
        # How many of the answers are different is no score.
        said.add(re.sub(r"these \d+ queries|\+-[\d.]+ % would do|pyproject.*", "", text))
    assert len(said) == 1


def test_one_question_too_many_refuses_all(charged: Charged) -> None:
    questions = len(charged.wrong(n=3))
    charged.declare(f"max_uses = {questions - 1}")
    charged.run().assert_outcomes(failed=1, passed=1)
    assert f"max_uses = {questions - 1}, 0 are used, and these {questions} queries would exceed it" in message(
        charged.cases()[GATE]
    )
    assert charged.uses() == ()
    charged.declare(f"max_uses = {questions}")
    charged.run().assert_outcomes(passed=2)
    assert properties(charged.cases()[BUDGET])["dscore.holdout.models_remaining"] == "0"


@pytest.mark.parametrize("charge", ["all", "clean"])
def test_data_in_another_order_each_time_are_refused(charged: Charged, charge: str) -> None:
    charged.write(
        "held.py",
        "import itertools\nimport torch\nimport net\n\ncount = itertools.count()\n\n\ndef data():\n"
        "    images, labels = net.data()\n    order = torch.roll(torch.arange(len(labels)), next(count))\n"
        "    return images[order], labels[order]\n",
    )
    path = charged.path / "pyproject.toml"
    charged.declare(f'charge = "{charge}"', data="held:data")
    path.write_text(path.read_text().replace('data = "net:data"', 'data = "held:data"'))
    charged.run().assert_outcomes(failed=1, passed=1)
    assert "returned other examples, or the same in another order, than when the model was scored" in message(
        charged.cases()[GATE]
    )
    assert charged.uses() == ()


CONTENT = {
    "re-ordered": "torch.flip(images, (0,)), torch.flip(labels, (0,))",
    "flat": "images.reshape(40, -1).numpy().astype('float64'), ['abc'[label] for label in labels]",
    "subset": "images[5:9], labels[5:9]",
    "superset": "torch.cat([images, images + 9]), torch.cat([labels, labels])",
}


@pytest.mark.parametrize("returned", CONTENT.values(), ids=CONTENT)
def test_the_holdout_is_recognised_by_content(charged: Charged, returned: str) -> None:
    charged.write(
        "held.py", f"import torch\nimport net\n\ndef data():\n    images, labels = net.data()\n    return {returned}\n"
    )
    charged.declare("max_uses = 5", epsilon=0.9, data="held:data")
    charged.run().assert_outcomes(failed=1, passed=1)
    assert "max_uses = 5, 0 are used, and these" in message(charged.cases()[GATE])
    charged.declare(epsilon=0.9, data="held:data")
    charged.run()
    assert properties(charged.cases()[GATE])["dscore.verdict.min_score"] == "pass"
    assert len(charged.uses()) == len(charged.wrong(n=3))


def test_other_data_are_not_charged(charged: Charged) -> None:
    charged.write(
        "held.py", "import net\n\ndef data():\n    images, labels = net.data()\n    return images + 9, labels\n"
    )
    charged.declare("max_uses = 1", data="held:data")
    images, labels = charged.examples()
    open_ledger(".dscore/ledger", root=charged.path).begin(HoldoutIdentity.of(images + 9, labels))
    result = charged.run()
    result.assert_outcomes(passed=2)
    assert "accuracies behind this score" not in text_of(result)
    assert charged.uses() == ()


@pytest.mark.parametrize("feedback", ["pass-fail", "ladder"])
def test_poorer_feedback_allows_no_d_score(charged: Charged, feedback: str) -> None:
    needed = ["min_accuracy = 0.5"] if feedback == "pass-fail" else []
    charged.declare('mode = "adaptive"', f'feedback = "{feedback}"', *needed, epsilon=0.5)
    result = charged.run()
    result.assert_outcomes(failed=1, passed=1)
    assert (
        f"its data are those of hold-out '{NAME}', whose feedback is '{feedback}', and a D-Score shows exact accuracies"
    ) in message(charged.cases()[GATE])
    assert not re.search(FIGURES, output(result))
    assert charged.uses() == ()


def test_without_its_ledger_there_is_no_d_score(charged: Charged) -> None:
    charged.declare('ledger = "elsewhere"')
    result = charged.run()
    result.assert_outcomes(failed=2)
    assert f"model 'tiny' cannot be scored: hold-out '{NAME}': " in message(charged.cases()[GATE])
    assert "elsewhere holds no record" in message(charged.cases()[GATE])
    assert not re.search(FIGURES, output(result))


def test_a_holdout_whose_data_cannot_be_loaded_stops_the_d_score(charged: Charged) -> None:
    charged.declare(data="net:nothing")
    charged.run().assert_outcomes(failed=2)
    assert "data 'net:nothing': in net the name 'nothing' does not exist" in message(charged.cases()[GATE])


def test_two_workers_charge_once(charged: Charged) -> None:
    charged.declare(own=f"{PASSING}\nmax_v_robust = 9.0")
    charged.run("-n", "2", subprocess=True).assert_outcomes(passed=3)
    assert np.array_equal(charged.on_record(), charged.wrong(n=3))


@pytest.mark.parametrize(("used", "warned"), [(50, False), (25, True)])
def test_warn_at_is_said_of_a_d_score(charged: Charged, used: int, warned: bool) -> None:
    charged.declare(f"max_uses = {used}", "warn_at = 0.5")
    result = charged.run()
    result.assert_outcomes(passed=2)
    assert ("WARNING: " in properties(charged.cases()[GATE])["dscore.holdout_charges"]) is warned
