"""A hold-out is known by what it holds."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pytest_dscore.errors import DScoreError
from pytest_dscore.holdout.ledger import Declaration, HoldoutIdentity, changed_labels, identity, overlap
from pytest_dscore.holdout.ledger.fingerprints import digests
from pytest_dscore.holdout.ledger.record import parse, to_line, utc_now
from tests.holdout.ledger.examples import holdout, images, outcomes

X, Y = images()


@pytest.mark.parametrize(
    "same",
    [
        pytest.param(X.astype(np.float32), id="float32"),
        pytest.param(X.astype(np.float64), id="float64"),
        pytest.param(X.astype(np.int64), id="int64"),
        pytest.param(X.astype(">i4"), id="the other byte order"),
        pytest.param(X.reshape(100, 1, 4, 4), id="a channel axis"),
        pytest.param(np.asfortranarray(X), id="the other memory order"),
        pytest.param(list(X), id="a list of arrays"),
        pytest.param(X.tolist(), id="nested lists"),
        pytest.param(torch.from_numpy(X), id="a tensor"),
        pytest.param(torch.from_numpy(X).float().requires_grad_(), id="a tensor with a gradient"),
        pytest.param([torch.from_numpy(x) for x in X], id="a list of tensors"),
        pytest.param(iter(X), id="an iterator"),
    ],
)
def test_the_same_values_have_the_same_fingerprints(same: Any) -> None:
    np.testing.assert_array_equal(digests(same, "inputs"), digests(X, "inputs"))


def test_other_values_have_other_fingerprints() -> None:
    assert len(set(digests(X, "inputs").tolist())) == 100
    changed = X.copy()
    changed[3, 0, 0] ^= 1
    assert np.flatnonzero(digests(changed, "inputs") != digests(X, "inputs")).tolist() == [3]


def test_large_identifiers_stay_apart() -> None:
    numbers = np.arange(2**40, 2**40 + 50)
    assert len(set(digests(numbers, "ids").tolist())) == 50
    assert len(set(digests(numbers.reshape(-1, 1), "ids").tolist())) == 50


def test_zeros_and_nans_are_one_of_each() -> None:
    assert len(set(digests(np.array([0.0, -0.0, np.nan, -np.nan]), "x").tolist())) == 2


def test_text_bytes_and_tables_have_fingerprints() -> None:
    mixed = ["é", "e\u0301", b"e", ["ab", "c"], ["a", "bc"], {"a": 1, "b": "x"}, {"b": "x", "a": 1}, None, (1, "x")]
    found = digests(mixed, "inputs").tolist()
    assert found[0] == found[1]  # the same letter, composed and not
    assert found[5] == found[6]
    assert len(set(found)) == 7
    table = np.array([["a", 1.5], ["b", 2.5], ["a", 1.5]], dtype=object)
    rows = digests(table, "inputs").tolist()
    assert rows[0] == rows[2] != rows[1]


@pytest.mark.parametrize(
    ("inputs", "labels", "message"),
    [
        ([], [], "inputs hold no example"),
        ([1, 2], [1], "there are 2 examples and 1 labels"),
        ([object()], [1], re.escape("inputs[0] is a object, which cannot be recognised by content")),
        ([[1, object()]], [1], re.escape("inputs[0] is a object")),
        (5, [1], "inputs must hold one entry per example, not int"),
        ("text", [1], "inputs must hold one entry per example, not str"),
    ],
)
def test_what_is_no_hold_out_is_refused(inputs: Any, labels: Any, message: str) -> None:
    with pytest.raises(DScoreError, match=message):
        HoldoutIdentity.of(inputs, labels)


@given(
    st.permutations(list(range(12))),
    st.permutations(list(range(4))),
    st.lists(st.integers(0, 3), min_size=12, max_size=12),
)
def test_order_and_label_writing_do_not_matter(order: list[int], classes: list[int], labels: list[int]) -> None:
    inputs = np.arange(12)
    names = [f"class {classes[label]}" for label in labels]
    plain = HoldoutIdentity.of(inputs, labels)
    moved = HoldoutIdentity.of(inputs[order], [names[row] for row in order])
    assert (plain.digest, plain.labels) == (moved.digest, moved.labels)
    assert plain == moved
    assert changed_labels(moved, plain) == ()
    wrong = np.arange(12) % 3 == 0
    assert plain.pack(wrong) == moved.pack(wrong[order])
    np.testing.assert_array_equal(moved.unpack(plain.pack(wrong)), wrong[order])


def test_the_share_of_common_examples() -> None:
    data = holdout()
    half = HoldoutIdentity.of(np.concatenate([X[:50], images(150, seed=4)[0]]), np.zeros(200))
    found = overlap(half, data)
    assert (found.common, found.share, found.exact, found.related) == (50, 0.5, True, True)
    assert overlap(data, half).common == 50
    assert not overlap(data, holdout(seed=2)).related


def test_examples_that_occur_twice_count_twice() -> None:
    twice = HoldoutIdentity.of([1, 1, 2, 3], [0, 0, 0, 0])
    assert overlap(HoldoutIdentity.of([1, 1, 1, 9], [0] * 4), twice).common == 2


def test_changed_labels_are_named_by_row_even_when_re_encoded_and_re_ordered() -> None:
    order = np.random.default_rng(2).permutation(100)
    labels = (Y + 2) % 5
    labels[[3, 77]] = (labels[[3, 77]] + 1) % 5
    changed = HoldoutIdentity.of(X[order], [f"c{label}" for label in labels[order]])
    rows = changed_labels(changed, holdout())
    assert sorted(order[row] for row in rows) == [3, 77]
    part = HoldoutIdentity.of(X[:10], labels[:10])
    assert list(changed_labels(part, holdout())) == [3]


def test_labels_that_were_merged_are_changed() -> None:
    merged = HoldoutIdentity.of(X, np.where(Y == 4, 3, Y))
    fewer = min((Y == 4).sum(), (Y == 3).sum())
    assert len(changed_labels(merged, holdout())) == fewer


def test_regression_targets_are_labels_too() -> None:
    targets = np.random.default_rng(0).normal(size=100)
    data = HoldoutIdentity.of(X, targets)
    assert data.labels == HoldoutIdentity.of(X, targets * 2).labels
    targets[5] = targets[6]
    assert list(changed_labels(HoldoutIdentity.of(X, targets), data)) in ([5], [6])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros(99), "one outcome for each of the 100 examples, not shape"),
        (np.zeros((100, 1)), "one outcome for each of the 100 examples, not shape"),
        (np.full(100, 2), r"must hold only 0 \(right\) and 1 \(wrong\), but example 0 is 2"),
        (np.r_[np.zeros(99), np.nan], "but example 99 is nan"),
        (["right"] * 100, "must hold 0"),
    ],
)
def test_outcomes_that_are_none_are_refused(given: Any, message: str) -> None:
    with pytest.raises(DScoreError, match=message):
        holdout().pack(given)


def test_an_identity_of_a_ledger_has_no_order() -> None:
    data = holdout()
    stored = HoldoutIdentity(data.name, data.n, data.digest, data.labels, data.fingerprints, data.codes)
    with pytest.raises(DScoreError, match=r"was read from a ledger, .* HoldoutIdentity.of"):
        stored.pack(outcomes(0))


@pytest.mark.parametrize(("classes", "width"), [(2, 1), (256, 1), (257, 2), (70_000, 4)])
def test_label_codes_take_no_more_room_than_they_need(classes: int, width: int) -> None:
    n = max(1000, classes)
    labels = np.arange(n) % classes
    data = HoldoutIdentity.of(np.arange(n), labels)
    assert len(data.codes) == width * n
    record = Declaration(data, utc_now())
    read_back = parse(to_line(record), "here")
    assert isinstance(read_back, Declaration)
    np.testing.assert_array_equal(read_back.identity.kept_codes(), data.kept_codes())
    assert len(set(data.kept_codes().tolist())) == classes


def test_large_hold_outs_keep_a_sample_of_their_fingerprints(monkeypatch: pytest.MonkeyPatch) -> None:
    small = HoldoutIdentity.of(np.arange(3000), np.zeros(3000))
    monkeypatch.setattr(identity, "KEPT", 1000)
    large = HoldoutIdentity.of(np.arange(10_000), np.arange(10_000) % 7)
    assert large.sample_bits == 4
    assert 500 < len(large.kept()) < 760
    for found in (overlap(small, large), overlap(large, small)):
        assert not found.exact
        assert 0.8 < found.share <= 1
        assert found.related
    labels = np.arange(10_000) % 7
    labels[::2] = (labels[::2] + 1) % 7
    changed = changed_labels(HoldoutIdentity.of(np.arange(10_000), labels), large)
    assert 150 < len(changed) < 450
