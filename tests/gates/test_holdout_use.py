"""The ``holdout`` fixture: models scored on a hold-out, what is shown of each, and what never is."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from pytest_dscore.holdout.ledger import HoldoutIdentity
from tests.gates.holdout_project import NAME, HoldoutProject, N, identity, inputs, labels, outcomes
from tests.gates.project import message, output, properties

SEVEN = "use = holdout.evaluate(bench.model(7))\n"


def test_the_accuracy_is_the_share_of_right_answers(bench: HoldoutProject) -> None:
    result, text = bench.candidate(
        f"{SEVEN}assert use.accuracy == 0.93\n"
        "assert (use.interval.value, use.interval.lower, use.interval.upper) == (0.93, 0.93 - 0.2, 1.0)\n"
        "assert use.interval.confidence == 0.95\n"
        "assert (use.holdout, use.is_new, use.models_used, use.improved) == ('digits-test', True, 1, None)\n"
        "assert use.effective_models == 1\n"
        "assert use.message.startswith(\"hold-out 'digits-test': 1 model used (1 effective), \")"
    )
    assert not text
    result.assert_outcomes(passed=1)


def test_what_is_on_record_of_a_use(bench: HoldoutProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_RUN_ID", "4711")
    bench.candidate(SEVEN)
    [use] = bench.uses()
    assert identity().unpack(use.outcomes).tolist() == outcomes(7).tolist()
    assert use.model.startswith("model.<locals>.<lambda>@")
    assert (use.n, use.wrong, use.commit) == (N, 7, None)
    assert use.ran_by == "GITHUB_RUN_ID=4711"
    assert use.verdict == "exact; accuracy shown"
    assert re.match(r"\d{4}-\d\d-\d\dT", use.when)


def test_the_commit_is_on_record(bench: HoldoutProject) -> None:
    git = ("git", "-c", "user.name=me", "-c", "user.email=me@example.org")
    bench.pytester.run(*git, "init", "-q", "-b", "main")
    bench.pytester.run(*git, "commit", "-q", "--allow-empty", "-m", "first")
    head = bench.pytester.run(*git, "rev-parse", "HEAD").outlines[0]
    bench.candidate(SEVEN)
    assert [use.commit for use in bench.uses()] == [head]


MODULE = """
import torch

class Net(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(float(scale)))
        self.drop = torch.nn.Dropout(0.9)

    def forward(self, batch):
        return self.drop(batch[:, :3] * self.scale)

class Binary(Net):
    def forward(self, batch):
        return super().forward(batch)[:, 0] - 0.5
"""

KINDS = {
    "torch module": (
        f"{MODULE}model = Net(2).train()\nuse = holdout.evaluate(model, batch_size=7)\nassert model.training",
        lambda rows: rows[:, :3].argmax(1),
    ),
    "one logit": (f"{MODULE}use = holdout.evaluate(Binary(1))", lambda rows: rows[:, 0] > 0.5),
    "estimator": (
        "from sklearn.dummy import DummyClassifier\n"
        "use = holdout.evaluate(DummyClassifier(strategy='constant', constant=2).fit([[0], [1]], [1, 2]))",
        lambda rows: [2] * N,
    ),
    "function": ("use = holdout.evaluate(lambda rows: (rows[:, 0] > 0.5) + 0)", lambda rows: rows[:, 0] > 0.5),
}


@pytest.mark.parametrize(("code", "answers"), KINDS.values(), ids=KINDS)
def test_every_kind_of_model(bench: HoldoutProject, code: str, answers: Callable[[Any], Any]) -> None:
    right = sum(int(answer) == label for answer, label in zip(answers(inputs()), labels(), strict=True))
    assert 20 < right < 50
    bench.declare(epsilon=0.4)
    result, text = bench.candidate(f"{code}\nassert use.accuracy == {right} / {N}")
    assert not text
    result.assert_outcomes(passed=1)
    assert [use.wrong for use in bench.uses()] == [N - right]


NO_MODELS = {
    "class": ("holdout.evaluate(bench.Model)", "a type makes no predictions: give a torch module, an estimator"),
    "text": ("holdout.evaluate('weights.pt')", "a str makes no predictions"),
    "raises": ("holdout.evaluate(bench.broken)", "the model raised KeyError: 'layer' ("),
    "too few": ("holdout.evaluate(lambda rows: rows[:9, 0])", "the model made 9 predictions for 100 examples"),
    "scores": ("holdout.evaluate(lambda rows: rows)", "the model returned an array of shape (100, 4)"),
    "nan": ("holdout.evaluate(lambda rows: rows[:, 0] / 0)", "the model returned NaN or infinity for example 0"),
    "text labels": ("holdout.evaluate(lambda rows: ['cat'] * 100)", "none could ever be right"),
    "unlike lengths": ("holdout.evaluate(lambda rows: [[1], [1, 2]])", "the model returned rows that differ in length"),
    "property": ("holdout.evaluate(bench.Lazy())", "predict of the Lazy raised KeyError: 'weights' ("),
    "dates": (
        "holdout.record(predictions=bench.LABELS.astype('M8[D]'))",
        "is values of type datetime64[D]: give labels",
    ),
    "spans": ("holdout.record(predictions=bench.LABELS.astype('m8[s]'))", "values of type timedelta64[s]"),
    "complex": ("holdout.evaluate(lambda rows: rows[:, 0] * 1j)", "the model returned values of type complex128"),
    "records": (
        "holdout.evaluate(lambda rows: numpy.zeros(100, [('label', int)]))",
        "the model returned values of type [('label', '<i8')]: give labels",
    ),
    "masked": (
        "holdout.evaluate(lambda rows: numpy.ma.array(bench.LABELS, mask=bench.outcomes(3)))",
        "the model returned a masked array that lacks values",
    ),
    "masked outcomes": (
        "holdout.record(outcomes=numpy.ma.array(bench.outcomes(5), mask=bench.outcomes(3)))",
        "outcomes is a masked array that lacks values",
    ),
    "true or false": (
        "holdout.record(predictions=bench.outcomes(7))",
        "predictions= holds True and False where the labels are numbers such as 2",
    ),
    "no array": ("holdout.record(predictions=bench.Lazy())", "predictions= is a Lazy that makes no array: KeyError"),
    "no outcome": ("holdout.record()", "holdout.record takes predictions=... or outcomes=..., one of the two"),
    "both": ("holdout.record(predictions=[1] * 100, outcomes=[1] * 100)", "one of the two"),
    "only labels": ("holdout.record(labels=bench.LABELS)", "one of the two"),
    "predictions": ("holdout.record(predictions=[1, 2])", "predictions= holds 2 predictions for 100 examples"),
    "ragged": ("holdout.record(predictions=[[1], [1, 2]])", "predictions= is rows that differ in length"),
    "missing": ("holdout.record(predictions=[None] * 100)", "predictions= is labels that are missing (None or NaN)"),
    "not binary": (
        "holdout.record(outcomes=[0] * 50 + [2] + [0] * 49)",
        "outcomes must hold only 0 (right) and 1 (wrong), but example 50 is 2",
    ),
    "outcomes": ("holdout.record(outcomes=[0] * 99)", "one outcome for each of the 100 examples, not shape (99,)"),
    "outcomes of text": ("holdout.record(outcomes=['0'] * 100)", "not values of type <U1"),
    "outcomes ragged": ("holdout.record(outcomes=[[0], [0, 1]])", "outcomes= holds rows that differ in length"),
    "nan outcomes": ("holdout.record(outcomes=[float('nan')] * 100)", "but example 0 is nan"),
    "other labels": (
        "found = bench.LABELS.copy()\nfound[[3, 70]] += 1\nholdout.record(predictions=found, labels=found)",
        "labels= differs from the hold-out's own labels in 2 rows (3, 70): give predictions in the order",
    ),
    "re-ordered": (
        "holdout.record(predictions=bench.LABELS, labels=bench.LABELS[::-1])",
        "labels= differs from the hold-out's own labels in ",
    ),
    "label text": ("holdout.record(predictions=bench.LABELS, labels=['cat'] * 100)", "own labels in 100 rows (0, 1, 2"),
    "fewer labels": ("holdout.record(predictions=[1], labels=[1])", "labels= holds 1 labels, the hold-out has 100"),
}


@pytest.mark.parametrize(("code", "part"), NO_MODELS.values(), ids=NO_MODELS)
def test_what_cannot_be_scored_is_no_use(bench: HoldoutProject, code: str, part: str) -> None:
    more = (
        "\nclass Model:\n    pass\n\ndef broken(inputs):\n    raise KeyError('layer')\n"
        "\nclass Lazy:\n    @property\n    def predict(self):\n        raise KeyError('weights')\n"
        "    def __array__(self, *arguments, **more):\n        raise KeyError('rows')\n"
    )
    bench.write("bench.py", (bench.path / "bench.py").read_text() + more)
    result, text = bench.candidate(
        "import numpy\nwith numpy.errstate(divide='ignore'):\n    " + code.replace("\n", "\n    ")
    )
    result.assert_outcomes(failed=1)
    assert text.startswith(f"hold-out '{NAME}': ")
    assert part in text.splitlines()[0]
    assert re.fullmatch(r"test_user\.py:\d+", text.splitlines()[-1])
    assert bench.uses() == ()


RECORDED = {
    "predictions": "holdout.record(predictions=bench.model(7)(None))",
    "list": "holdout.record(predictions=bench.model(7)(None).tolist())",
    "with labels": "holdout.record(predictions=bench.model(7)(None), labels=holdout.labels)",
    "tensor": "import torch\nuse = holdout.record(predictions=torch.tensor(bench.model(7)(0)))",
    "series": "import pandas\nuse = holdout.record(predictions=pandas.Series(bench.model(7)(0)))",
    "outcomes": "holdout.record(outcomes=bench.outcomes(7))",
    "ones": "holdout.record(outcomes=[1] * 7 + [0] * 93, labels=bench.LABELS)",
    "floats": "holdout.record(outcomes=bench.outcomes(7).astype(float), name='mine')",
    "tensor of outcomes": "import torch\nuse = holdout.record(outcomes=torch.tensor(bench.outcomes(7)))",
}


@pytest.mark.parametrize("code", RECORDED.values(), ids=RECORDED)
def test_predictions_and_outcomes_that_the_test_made(bench: HoldoutProject, code: str) -> None:
    code = code if "use = " in code else f"use = {code}"
    result, text = bench.candidate(f"{code}\nassert use.accuracy == 0.93")
    assert not text
    result.assert_outcomes(passed=1)
    [use] = bench.uses()
    assert identity().unpack(use.outcomes).tolist() == outcomes(7).tolist()
    assert use.model.startswith("mine@" if "mine" in code else "predictions@")


def test_inputs_and_labels_can_be_had(bench: HoldoutProject) -> None:
    code = f"assert (holdout.inputs == bench.INPUTS).all()\nassert holdout.labels.shape == (100,)\n{SEVEN}"
    bench.candidate(code)[0].assert_outcomes(passed=1)


# What a data function may return

RETURNED = {
    "list": "[INPUTS, LABELS]",
    "tensors": "torch.tensor(INPUTS), torch.tensor(LABELS)",
    "dataset": "torch.utils.data.TensorDataset(torch.tensor(INPUTS), torch.tensor(LABELS))",
    "own dataset": "Rows()",
    "pandas": "pandas.DataFrame(INPUTS, columns=list('abcd')), pandas.Series(LABELS, name='label')",
    "column of labels": "INPUTS, LABELS[:, None]",
    "text labels": "INPUTS, np.array(['cat', 'dog', 'eel'])[LABELS]",
}

ROWS = """
import pandas, torch

class Rows:
    def __len__(self):
        return N
    def __getitem__(self, row):
        return INPUTS[row], LABELS[row]

def data():
    return {}
"""


@pytest.mark.parametrize(("name", "returned"), RETURNED.items(), ids=RETURNED)
def test_the_same_data_in_another_form(bench: HoldoutProject, name: str, returned: str) -> None:
    bench.record(7)
    bench.write("bench.py", (bench.path / "bench.py").read_text() + ROWS.format(returned))
    answers = "np.array(['cat', 'dog', 'eel'])[bench.model(7)(0)]" if name == "text labels" else "bench.model(7)(0)"
    result, text = bench.candidate(
        f"import numpy as np\nuse = holdout.evaluate(lambda rows: {answers})\n"
        "assert use.accuracy == 0.93\nassert not use.is_new\nassert len(holdout.inputs) == 100"
    )
    assert not text
    result.assert_outcomes(passed=1)


def test_a_model_gets_the_data_as_they_were_returned(bench: HoldoutProject) -> None:
    bench.write("bench.py", (bench.path / "bench.py").read_text() + ROWS.format(RETURNED["pandas"]))
    code = "use = holdout.evaluate(lambda frame: (frame['a'] > 2) + bench.LABELS)\nassert use.accuracy == 1"
    bench.candidate(code)[0].assert_outcomes(passed=1)


UNUSABLE = {
    "raises": ("1 / 0", "data 'bench:data' raised ZeroDivisionError: division by zero ("),
    "three": ("1, 2, 3", "data 'bench:data': it returned 3 values: return the pair (inputs, labels) or a Dataset"),
    "array": ("INPUTS", "row 0 of the Dataset is a ndarray: each row must be an (input, label) pair"),
    "none": ("None", "it returned a NoneType: return the pair"),
    "table": ("pandas.DataFrame(INPUTS)", "it returned a DataFrame: return the pair"),
    "generator": ("(row for row in INPUTS)", "it returned a generator: return the pair"),
    "empty": ("INPUTS[:0], LABELS[:0]", "it returned no example"),
    "lengths": ("INPUTS, LABELS[:9]", "there are 100 examples and 9 labels"),
    "missing labels": ("INPUTS, LABELS / 0", "the labels are NaN or infinity for example 0"),
    "one-hot": ("INPUTS, np.eye(3)[LABELS]", "the labels are an array of shape (100, 3)"),
    "rows": ("Broken()", "the Dataset raised RuntimeError on row 0: no file"),
}


@pytest.mark.parametrize(("returned", "part"), UNUSABLE.values(), ids=UNUSABLE)
def test_data_that_cannot_be_used(bench: HoldoutProject, returned: str, part: str) -> None:
    more = ROWS + "\nclass Broken(Rows):\n    def __getitem__(self, row):\n        raise RuntimeError('no file')\n"
    bench.write("bench.py", (bench.path / "bench.py").read_text() + more.replace("return {}", f"return {returned}"))
    bench.user(SEVEN)
    result = bench.run("-W", "ignore:::bench")
    result.assert_outcomes(failed=2)
    for name in ("test_candidate", f"dscore[{NAME}-budget]"):
        text = message(bench.cases()[name])
        assert text.startswith(f"hold-out '{NAME}': data 'bench:data'")
        assert part in text
    assert bench.uses() == ()


def test_the_data_are_loaded_once_and_random_states_kept(bench: HoldoutProject) -> None:
    source = (bench.path / "bench.py").read_text()
    bench.write(
        "bench.py",
        source.replace(
            "def data():", "def data():\n    Path(f'call-{np.random.random()}').touch()\n    np.random.seed(1)"
        ),
    )
    bench.user(
        "import numpy as np\nnp.random.seed(0)\nheld = np.random.get_state()[1].tolist()\n"
        f"{SEVEN}assert np.random.get_state()[1].tolist() == held"
    )
    bench.run().assert_outcomes(passed=2)
    assert len(list(bench.path.glob("call-*"))) == 1


# The same again


def test_the_same_model_is_charged_once(bench: HoldoutProject) -> None:
    code = (
        "first = holdout.evaluate(bench.model(7))\nassert first.is_new\n"
        "again = holdout.record(predictions=bench.model(7)(0))\n"
        "assert (again.is_new, again.models_used, again.accuracy) == (False, 1, 0.93)\n"
        "other = holdout.evaluate(bench.model(7, start=50))\n"
        "assert (other.is_new, other.models_used) == (True, 2)"
    )
    bench.candidate(code)[0].assert_outcomes(passed=1)
    assert len(bench.uses()) == 2
    bench.candidate(SEVEN + "assert (use.is_new, use.models_used) == (False, 2)")[0].assert_outcomes(passed=1)
    assert len(bench.uses()) == 2


def test_a_torch_module_that_answers_otherwise_is_shown_its_first_answer(bench: HoldoutProject) -> None:
    bench.declare(epsilon=0.4)
    source = (
        "\nimport torch\n\nclass Fickle(torch.nn.Module):\n    chosen = [0, 1, 2]\n"
        "    def forward(self, batch):\n        return batch[:, self.chosen]\n"
    )
    bench.write("bench.py", (bench.path / "bench.py").read_text() + source)
    result, text = bench.candidate(
        "first = holdout.evaluate(bench.Fickle())\nbench.Fickle.chosen = [1, 2, 0]\n"
        "again = holdout.evaluate(bench.Fickle())\n"
        "assert (again.is_new, again.accuracy) == (False, first.accuracy)"
    )
    assert not text
    rows, right = inputs(), (inputs()[:, :3].argmax(1) == labels())
    other = rows[:, [1, 2, 0]].argmax(1) == labels()
    assert (right != other).any()
    assert "the model answers otherwise than when it was recorded" in " ".join(line.strip() for line in result.outlines)
    assert len(bench.uses()) == 1


def test_another_module_is_another_use(bench: HoldoutProject) -> None:
    bench.declare(epsilon=0.4)
    code = f"{MODULE}assert holdout.evaluate(Net(1)).is_new\nassert holdout.evaluate(Net(-1)).is_new"
    bench.candidate(code)[0].assert_outcomes(passed=1)


# Refusals

LEAK = (
    "print('before')\n"
    "try:\n"
    "    use = holdout.evaluate(bench.model(27))\n"
    "    print('accuracy', use.accuracy)\n"
    "except Exception as error:\n"
    "    print('gone on', error)\n"
    "Path('went_on').touch()"
)


def test_a_refused_use_shows_no_score_and_is_not_swallowed(bench: HoldoutProject) -> None:
    bench.declare("max_uses = 1")
    bench.record(7)
    result, text = bench.candidate(LEAK, "-l", "-rA", "--tb=long")
    result.assert_outcomes(failed=1)
    assert text.splitlines()[0] == (
        f"hold-out '{NAME}': refused, no score is shown. max_uses = 1, 1 are used, and this model would exceed it: "
        "retire it (`dscore holdout retire`) and go on with new examples"
    )
    printed = bench.printed(result)
    assert "before" in printed
    for shown in ("gone on", "accuracy 0", "0.73", "0.27", "27"):
        assert shown not in re.sub(
            r"model\(27\)|pytest-\d+|popen-gw\d+|pid=\d+|\d\.\d\ds|time=\S+|timestamp=\S+", "", printed
        )
    assert not (bench.path / "went_on").exists()
    assert "dscore.holdout.accuracy" not in properties(bench.cases()["test_candidate"])
    assert len(bench.uses()) == 1


@pytest.mark.parametrize("catch", ["except BaseException:", "except pytest.fail.Exception:"])
def test_a_refusal_that_is_caught_fails_the_test_all_the_same(bench: HoldoutProject, catch: str) -> None:
    bench.declare("max_uses = 1")
    bench.record(7)
    result, text = bench.candidate(LEAK.replace("except Exception as error:", catch).replace(", error", ""))
    result.assert_outcomes(failed=1)
    assert "refused, no score is shown" in text
    assert (bench.path / "went_on").exists()


@pytest.mark.parametrize("earlier", [(), (7, 7)], ids=["first", "later"])
def test_what_is_printed_of_a_refusal_does_not_depend_on_the_score(
    bench: HoldoutProject, earlier: tuple[int, ...]
) -> None:
    bench.declare('bound = "union"', epsilon=0.03)
    bench.record(*earlier)
    printed = []
    shutil.copytree(bench.path / ".dscore", bench.path / "before")
    for wrong in (15, 35, 60):
        shutil.rmtree(bench.path / ".dscore")
        shutil.copytree(bench.path / "before", bench.path / ".dscore")
        result, text = bench.candidate(f"answers = bench.model({wrong})\nholdout.evaluate(answers)")
        assert "refused, no score is shown" in text
        lines = [re.sub(r"in \d+\.\d\ds|pytest-\d+|=", "", line) for line in result.outlines]
        printed.append(([line for line in lines if "rootdir" not in line], properties(bench.cases()["test_candidate"])))
    assert printed[0] == printed[1] == printed[2]
    # With models on record that are too many already it is refused unseen; the first one was refused for its answers.
    assert [use.refused for use in bench.uses()] == ([False] * len(earlier) or [True])


def test_a_refusal_leaves_nothing_in_the_users_hands(bench: HoldoutProject) -> None:
    bench.declare("max_uses = 1")
    bench.record(7)
    bench.user(
        "try:\n    holdout.evaluate(bench.model(27))\nexcept BaseException as error:\n"
        "    Path('error').write_text(repr(error) + repr(error.__cause__) + repr(error.__context__))\n"
        "    Path('end').touch()"
    )
    bench.run()
    for number in ("27", "73", "0.7"):
        assert number not in (bench.path / "error").read_text()


# Feedback

PASS_FAIL = ('mode = "adaptive"', 'feedback = "pass-fail"', "min_accuracy = 0.8")
LADDER = ('mode = "adaptive"', 'feedback = "ladder"')


@pytest.mark.parametrize(("wrong", "outcome"), [(20, "passed"), (21, "failed")])
def test_min_accuracy_is_compared_exactly(bench: HoldoutProject, wrong: int, outcome: str) -> None:
    bench.declare("min_accuracy = 0.8")
    result, text = bench.candidate(f"holdout.evaluate(bench.model({wrong}))")
    result.assert_outcomes(**{outcome: 1})
    if outcome == "failed":
        assert text.startswith(f"hold-out '{NAME}': accuracy 0.790 [0.590, 0.990] is below min_accuracy = 0.8")
    assert [use.wrong for use in bench.uses()] == [wrong]


@pytest.mark.parametrize(("wrong", "outcome"), [(20, "passed"), (21, "failed")])
def test_pass_fail_tells_one_bit(bench: HoldoutProject, wrong: int, outcome: str) -> None:
    bench.declare(*PASS_FAIL)
    result, text = bench.candidate(f"answers = bench.model({wrong})\nuse = holdout.evaluate(answers)\nprint(use)")
    result.assert_outcomes(**{outcome: 1})
    if outcome == "failed":
        assert text.startswith(f"hold-out '{NAME}': the accuracy (not shown: pass-fail) is below min_accuracy = 0.8")
    found = properties(bench.cases()["test_candidate"])
    assert not [name for name in found if name.startswith("dscore.holdout.accuracy")]
    assert found["dscore.holdout.verdict.min_accuracy"] == {"passed": "pass", "failed": "fail"}[outcome]
    assert not re.search(r"0\.[78]\d\d", bench.printed(result).replace("time=", ""))
    assert [use.verdict for use in bench.uses()] == [f"pass-fail; {outcome} min_accuracy 0.8"]


@pytest.mark.parametrize("asked", ["use.accuracy", "use.interval", "use.interval.lower"])
def test_pass_fail_hides_the_accuracy_from_the_test(bench: HoldoutProject, asked: str) -> None:
    bench.declare(*PASS_FAIL)
    result, text = bench.candidate(f"{SEVEN}try:\n    print({asked})\nexcept Exception:\n    pass")
    result.assert_outcomes(failed=1)
    assert text.splitlines()[0] == f"Failed: hold-out '{NAME}': feedback = 'pass-fail' does not show accuracies"


def test_pass_fail_at_another_threshold_would_be_one_more_answer(bench: HoldoutProject) -> None:
    bench.declare(*PASS_FAIL)
    bench.candidate(SEVEN)[0].assert_outcomes(passed=1)
    bench.declare(*PASS_FAIL[:2], "min_accuracy = 0.94")
    result, text = bench.candidate(SEVEN)
    result.assert_outcomes(failed=1)
    assert "on record with what was shown then (pass-fail; passed min_accuracy 0.8)" in text


def test_the_ladder_shows_what_beats_the_best_by_a_step(bench: HoldoutProject) -> None:
    bench.declare(*LADDER, "delta = 0.5")
    # In steps of 0.2: 0.50 is shown as 0.6, as ties go up; 0.42 is not below 0.4; 0.39 is, and is shown as 0.4; 0.20 is
    # not below 0.2; 0.19 is, and is shown as 0.2; none is below 0.
    expected = [(50, 0.4), (42, None), (39, 0.6), (20, None), (19, 0.8), (0, None)]
    for number, (wrong, shown) in enumerate(expected):
        asked = "use.improved" if shown is None else "use.accuracy"
        _, text = bench.candidate(
            f"use = holdout.evaluate(bench.model({wrong}, {7 * number}))\n"
            f"assert use.improved is {shown is not None}\nPath('shown').write_text(repr({asked}))"
        )
        assert not text
        read = (bench.path / "shown").read_text()
        assert read == "False" if shown is None else float(read) == pytest.approx(shown)
    assert [use.verdict for use in bench.uses()] == [
        "ladder; best error 3/5, improved",
        "ladder; best error 3/5, not improved",
        "ladder; best error 2/5, improved",
        "ladder; best error 2/5, not improved",
        "ladder; best error 1/5, improved",
        "ladder; best error 1/5, not improved",
    ]
    assert [use.wrong for use in bench.uses()] == [wrong for wrong, _ in expected]


def test_the_ladder_hides_an_accuracy_that_is_no_step_better(bench: HoldoutProject) -> None:
    bench.declare(*LADDER)
    bench.candidate("holdout.evaluate(bench.model(12))")[0].assert_outcomes(passed=1)
    result, text = bench.candidate(
        "answers = bench.model(5)\nuse = holdout.evaluate(answers)\nprint(use, use.accuracy)"
    )
    result.assert_outcomes(failed=1)
    assert text.splitlines()[0] == (
        f"Failed: hold-out '{NAME}': it did not beat the best so far (0.800) by a whole step, so its accuracy is not "
        "shown: ask use.improved"
    )
    assert not re.search(r"0\.95|0\.8[1-9]", bench.printed(result).replace("time=", ""))
    assert not [name for name in properties(bench.cases()["test_candidate"]) if name.startswith("dscore.holdout.acc")]


def test_a_score_of_the_ladder_holds_within_its_interval(bench: HoldoutProject) -> None:
    bench.declare(*LADDER)
    bench.candidate(
        "use = holdout.evaluate(bench.model(44))\n"
        "assert (round(use.interval.lower, 9), round(use.interval.upper, 9)) == (0.3, 0.9)"
    )[0].assert_outcomes(passed=1)


@pytest.mark.parametrize("lines", [PASS_FAIL, LADDER], ids=["pass-fail", "ladder"])
def test_poorer_feedback_after_exact_scores_is_refused(bench: HoldoutProject, lines: tuple[str, ...]) -> None:
    bench.record(9)
    bench.declare(*lines)
    result, text = bench.candidate(SEVEN)
    result.assert_outcomes(failed=1)
    assert "1 of 1 uses on record showed other feedback than" in text
    result, text = bench.candidate("holdout.evaluate(bench.model(9))")
    result.assert_outcomes(failed=1)
    assert "on record with what was shown then (exact; accuracy shown)" in text
    assert "0.91" not in bench.printed(result)


# Known by content

CONTENT = {
    "re-ordered": "order = np.random.default_rng(5).permutation(N)\n    return INPUTS[order], LABELS[order]",
    "subset": "return INPUTS[:60], LABELS[:60]",
    "superset": "return np.concatenate([INPUTS, INPUTS + 5]), np.concatenate([LABELS, LABELS])",
    "labels": "return INPUTS, np.array(['cat', 'dog', 'eel'])[LABELS]",
}


@pytest.mark.parametrize("changed", CONTENT.values(), ids=CONTENT)
def test_another_name_and_form_charges_the_same_budget(bench: HoldoutProject, changed: str) -> None:
    bench.declare("max_uses = 1")
    bench.record(7)
    bench.write("other.py", f"from bench import *\n\ndef data():\n    {changed}\n")
    settings = (bench.path / "pyproject.toml").read_text()
    bench.write("pyproject.toml", settings.replace("bench:data", "other:data").replace(NAME, "fresh"))
    bench.test(
        "@pytest.mark.holdout('fresh')\ndef test_candidate(holdout):\n"
        "    holdout.evaluate(lambda rows: holdout.labels)\n"
    )
    result = bench.run("test_user.py::test_candidate")
    result.assert_outcomes(failed=1)
    assert message(bench.cases()["test_candidate"]).startswith(
        "hold-out 'fresh': refused, no score is shown. max_uses = 1, 1 are used"
    )


def test_other_examples_under_the_old_name_are_no_fresh_start(bench: HoldoutProject) -> None:
    bench.write("bench.py", (bench.path / "bench.py").read_text().replace("return INPUTS,", "return INPUTS + 1,"))
    result, text = bench.candidate(SEVEN)
    result.assert_outcomes(failed=1)
    assert "has no record of these 100 examples" in text


def test_changed_labels_are_refused(bench: HoldoutProject) -> None:
    bench.write(
        "bench.py",
        (bench.path / "bench.py").read_text().replace("% 3\n\n\ndef data", "% 3\nLABELS[[3, 70]] = 0, 0\n\n\ndef data"),
    )
    assert HoldoutIdentity.of(inputs(), labels()).labels == identity().labels
    result, text = bench.candidate(SEVEN)
    result.assert_outcomes(failed=1)
    assert f"hold-out '{NAME}': the labels of 1 examples differ from those on record for '{NAME}' (rows 70)" in text


def test_a_retired_holdout_is_refused(bench: HoldoutProject) -> None:
    bench.record(7)
    bench.ledger().retire(identity(), "overused")
    bench.user(SEVEN)
    result = bench.run()
    result.assert_outcomes(failed=2)
    assert "was retired on" in output(result)
    assert "0.93" not in bench.printed(result)
