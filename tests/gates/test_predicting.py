"""Whatever a user calls a model: its predictions, how they are compared, and what makes two of them the same."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
import torch
from sklearn.dummy import DummyClassifier  # type: ignore[import-untyped]
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
from torch import Tensor, nn

from pytest_dscore.errors import DScoreError
from pytest_dscore.gates.predicting import answers_key, as_labels, model_key, predict, wrong_where

INPUTS = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0], [-1.0, 0.5], [0.25, 0.0]], dtype=np.float32)
#: Column of the largest entry of each row, counted by hand.
LARGEST = [0, 1, 0, 1, 0]


class Rows(nn.Module):
    """Its logits are its inputs; keeps the sizes of its batches and what mode it ran in."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.drop = nn.Dropout(0.9)
        self.seen: list[tuple[int, bool]] = []

    def forward(self, batch: Tensor) -> Tensor:
        self.seen.append((len(batch), self.training))
        logits: Tensor = self.drop(batch * self.scale)
        return logits


class OneLogit(nn.Module):
    """A binary head: the first input is the logit."""

    def forward(self, batch: Tensor) -> Tensor:
        return batch[:, :1]


class Text(nn.Module):
    """Returns no logits."""

    def forward(self, batch: Tensor) -> str:
        return "no logits"


class Broken(nn.Module):
    """Raises."""

    def forward(self, batch: Tensor) -> Tensor:
        raise KeyError("layer")


class Nan(nn.Module):
    """NaN for all inputs from the third on."""

    def forward(self, batch: Tensor) -> Tensor:
        return torch.where(batch > 2, torch.nan, batch)


class Estimator:
    """Has ``predict`` and can be called, with another answer."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def predict(self, inputs: Any) -> Any:
        return self.answer

    def __call__(self, inputs: Any) -> Any:
        raise AssertionError("predict comes first")


def test_a_torch_module_answers_in_eval_mode_and_is_left_in_train_mode() -> None:
    model = Rows().train()
    model.drop.eval()
    assert predict(model, INPUTS, batch_size=2).tolist() == LARGEST
    assert model.seen == [(2, False), (2, False), (1, False)]
    assert (model.training, model.drop.training) == (True, False)


def test_a_torch_module_that_raises_is_left_in_train_mode_too() -> None:
    model = Broken().train()
    with pytest.raises(DScoreError, match=r"the model raised KeyError: 'layer' \(.*test_predicting\.py:\d+\)"):
        predict(model, INPUTS, 2)
    assert model.training


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor, list, lambda rows: [torch.tensor(row) for row in rows]])
def test_a_torch_module_takes_inputs_of_every_kind(kind: Callable[[Any], Any]) -> None:
    assert predict(Rows(), kind(INPUTS), 2).tolist() == LARGEST


def test_one_logit_above_zero_is_class_1() -> None:
    assert predict(OneLogit(), INPUTS, 2).tolist() == [1, 0, 1, 0, 1]


def test_inputs_that_make_no_tensor() -> None:
    with pytest.raises(DScoreError, match=r"do not make one tensor .*: predict yourself and give predictions"):
        predict(Rows(), ["a", "b"], 2)


def test_a_nan_among_the_logits_is_no_prediction() -> None:
    with pytest.raises(DScoreError, match="logits are NaN for example 2 and those after it"):
        predict(Nan(), INPUTS, 2)


def test_a_torch_module_that_returns_no_logits() -> None:
    with pytest.raises(DScoreError, match="the model returned a str"):
        predict(Text(), INPUTS, 2)


def test_an_estimator_of_scikit_learn() -> None:
    fitted = LogisticRegression().fit(INPUTS, LARGEST)
    assert predict(fitted, INPUTS, 2).tolist() == LARGEST


def test_an_estimator_gets_all_inputs_as_they_are() -> None:
    frame = pd.DataFrame(INPUTS, columns=["first", "second"])
    assert predict(lambda table: table["second"] > table["first"], frame, 2).tolist() == [bool(c) for c in LARGEST]


def test_predict_comes_before_a_call() -> None:
    assert predict(Estimator([1, 2]), INPUTS, 2).tolist() == [1, 2]


@pytest.mark.parametrize("answer", [[0, 1], (0, 1), np.array([[0], [1]]), torch.tensor([0, 1]), pd.Series([0, 1])])
def test_a_function_may_return_labels_of_every_kind(answer: Any) -> None:
    assert predict(lambda inputs: answer, INPUTS, 2).tolist() == [0, 1]


@pytest.mark.parametrize("model", [Estimator, Rows, LogisticRegression])
def test_a_class_is_no_model(model: Any) -> None:
    with pytest.raises(DScoreError, match=r"a (type|ABCMeta) makes no predictions: give a torch module, an estimator"):
        predict(model, INPUTS, 2)


@pytest.mark.parametrize("model", ["weights.pt", 3, None, {"predict": 1}, Rows().state_dict()])
def test_something_else_is_no_model(model: Any) -> None:
    with pytest.raises(DScoreError, match=rf"a {type(model).__name__} makes no predictions"):
        predict(model, INPUTS, 2)


def test_an_exception_of_a_function_names_its_line() -> None:
    def model(inputs: Any) -> Any:
        raise RuntimeError("no weights")

    with pytest.raises(DScoreError, match=r"the model raised RuntimeError: no weights \(.*test_predicting\.py:\d+\)"):
        predict(model, INPUTS, 2)


def test_an_estimator_that_was_not_fitted() -> None:
    with pytest.raises(DScoreError, match="the model raised NotFittedError"):
        predict(DummyClassifier(), INPUTS, 2)


UNUSABLE = {
    "scores": (np.zeros((3, 2)), r"an array of shape \(3, 2\): one label per example is needed, not scores"),
    "one value": (1, r"an array of shape \(\)"),
    "iterator": (iter([1, 2]), r"an array of shape \(\)"),
    "nan": ([0.0, 1.0, np.nan], "NaN or infinity for example 2, which is no label"),
    "infinity": (torch.tensor([0.0, -torch.inf]), "NaN or infinity for example 1, which is no label"),
    "none": (["a", None], r"labels that are missing \(None or NaN\)"),
    "nan among text": (pd.Series(["a", np.nan], dtype=object), "labels that are missing"),
    "missing in pandas": (pd.Series([1, pd.NA], dtype="Int64"), "NaN or infinity for example 1, which is no label"),
    "missing text in pandas": (pd.Series(["a", pd.NA], dtype="string"), "labels that are missing"),
    "missing object in pandas": (pd.Series(["a", pd.NA], dtype=object), "labels that are missing"),
    "ragged": ([[1], [1, 2]], "rows that differ in length"),
}


@pytest.mark.parametrize(("values", "part"), UNUSABLE.values(), ids=UNUSABLE)
def test_what_are_no_labels(values: Any, part: str) -> None:
    with pytest.raises(DScoreError, match=f"^it holds {part}"):
        as_labels(values, "it holds")


def test_wrong_is_where_prediction_and_label_differ() -> None:
    predicted, labels = np.array([0, 1, 2, 2]), np.array([0, 2, 2, 0])
    assert wrong_where(predicted, labels, "it made").tolist() == [False, True, False, True]


def test_text_is_compared_whatever_its_type() -> None:
    predicted = as_labels(pd.Series(["cat", "dog"]), "")
    assert wrong_where(predicted, np.array(["cat", "cat"]), "").tolist() == [False, True]


def test_whole_floats_equal_integers() -> None:
    assert wrong_where(np.array([1.0, 0.0]), np.array([1, 1]), "").tolist() == [False, True]


@pytest.mark.parametrize("count", [0, 3, 5])
def test_a_prediction_for_each_example(count: int) -> None:
    with pytest.raises(DScoreError, match=rf"the model made {count} predictions for 4 examples: give one for each"):
        wrong_where(np.zeros(count), np.zeros(4), "the model made")


@pytest.mark.parametrize(("predicted", "labels"), [(["cat"], [1]), ([1], ["cat"]), (["1"], [1])])
def test_predictions_of_another_kind_than_the_labels(predicted: list[Any], labels: list[Any]) -> None:
    with pytest.raises(DScoreError, match="none could ever be right, so give predictions of the labels' own kind"):
        wrong_where(np.array(predicted), np.array(labels), "the model made")


def test_a_torch_module_is_known_by_its_weights(tmp_path: Path) -> None:
    one, same, other = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)
    same.load_state_dict(one.state_dict())
    answers = np.zeros(5, dtype=bool)
    keys = [model_key(model, answers, tmp_path) for model in (one, same, other)]
    assert keys[0] == keys[1] != keys[2]
    assert keys[0] == model_key(one.train(), ~answers, tmp_path), "mode and answers do not belong to a module"


@pytest.mark.parametrize("model", [np.sign, Estimator(0), LogisticRegression(), functools.partial(np.sign)])
def test_anything_else_is_known_by_its_answers(model: Any, tmp_path: Path) -> None:
    answers, others = np.array([True, False, True]), np.array([True, True, True])
    assert model_key(model, answers, tmp_path) == model_key(model, answers, tmp_path)
    assert model_key(model, answers, tmp_path) != model_key(model, others, tmp_path)


def test_the_key_names_a_function_and_an_estimator(tmp_path: Path) -> None:
    answers = np.array([True, False])
    assert model_key(answers_key, answers, tmp_path).startswith("answers_key@")
    assert model_key(Estimator(0), answers, tmp_path).startswith("Estimator@")
    assert answers_key("mine", answers).startswith("mine@")
