"""The manifest: what it notices of data and splits that moved, what it declares, and files that it refuses."""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

import hashlib
import itertools
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit
from sklearn.tree import DecisionTreeClassifier

from pytest_dscore.errors import DScoreError
from pytest_dscore.protocol import Manifest, compare_protocols, load_manifest, make_manifest, write_manifest
from pytest_dscore.protocol.manifest import MOST_BYTES, fingerprint

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 4)).astype(np.float32)
Y = np.arange(30) % 2
GROUPS = np.arange(30) // 3
SPLITS = KFold(3)
NAMES: dict[str, Any] = {"name": "digits", "experiment": "project.train:run", "data": "project.data:load"}


@pytest.fixture
def manifest() -> Manifest:
    return make_manifest(X, Y, SPLITS, GROUPS, **NAMES)


@pytest.fixture
def file(manifest: Manifest, tmp_path: Path) -> Path:
    path = tmp_path / "protocol.yaml"
    write_manifest(path, manifest)
    return path


def test_written_and_read_it_is_the_same(manifest: Manifest, file: Path) -> None:
    assert load_manifest(file) == manifest
    assert load_manifest(str(file)).check(X, Y, SPLITS, GROUPS) == ()
    plain = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert list(plain) == list(Manifest.model_fields)
    assert plain["version"] == 1
    assert plain["rows"] == 30
    assert plain["splits"][0]["test"]["rows"] == 10
    assert os.listdir(file.parent) == ["protocol.yaml"]


def test_fingerprints_by_hand() -> None:
    """Double precision bytes of each row, hashed, and the hashes with their number hashed again."""
    rows = [hashlib.blake2b(np.asarray(row, np.float64).tobytes(), digest_size=16).digest() for row in X]
    expected = hashlib.blake2b(b"30:" + b"".join(rows), digest_size=16).hexdigest()
    assert fingerprint(X) == f"blake2b:{expected}"


def changed(array: Any, row: Any, value: Any) -> Any:
    new = array.copy()
    new[row] = value
    return new


def shifted(part: int, row: int) -> list[tuple[Any, Any]]:
    folds = [list(fold) for fold in SPLITS.split(X)]
    folds[1][part] = changed(folds[1][part], 0, row)
    return [(train, test) for train, test in folds]


FOLDS = list(SPLITS.split(X))
SHORT = [(train[1:] if i == 2 else train, test) for i, (train, test) in enumerate(FOLDS)]
MOVED: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "nothing": ({}, ()),
    "splits as lists": ({"splits": [(a.tolist(), b.tolist()) for a, b in FOLDS]}, ()),
    "splits as a generator": ({"splits": iter(FOLDS)}, ()),
    "order within a part": ({"splits": [(a[::-1], b) for a, b in FOLDS]}, ()),
    "a value": ({"X": changed(X, (3, 1), 9.0)}, ("the features",)),
    "two rows swapped": ({"X": X[[1, 0, *range(2, 30)]]}, ("the features",)),
    "two columns swapped": ({"X": X[:, [1, 0, 2, 3]]}, ("the features",)),
    "a label": ({"y": changed(Y, 5, 0)}, ("the labels",)),
    "a group": ({"groups": changed(GROUPS, 5, 7)}, ("the groups",)),
    "no groups": ({"groups": None}, ("the groups (the manifest has some, now there are none)",)),
    "a test row": ({"splits": shifted(1, 0)}, ("the test part of split 1 (as many rows, but other ones)",)),
    "a training row": ({"splits": shifted(0, 15)}, ("the train part of split 1 (as many rows, but other ones)",)),
    "fewer rows": ({"splits": SHORT}, ("the train part of split 2 (20 rows in the manifest, 19 now)",)),
    "fewer splits": ({"splits": FOLDS[:2]}, ("the number of splits (3 in the manifest, 2 now)",)),
    "all of it": (
        {"X": X[:29], "y": Y[:29], "groups": GROUPS[:29], "splits": [(range(20), range(20, 29))]},
        (
            "the number of rows (30 in the manifest, 29 now)",
            "the features",
            "the labels",
            "the groups",
            "the number of splits (3 in the manifest, 1 now)",
            "the train part of split 0 (as many rows, but other ones)",
            "the test part of split 0 (10 rows in the manifest, 9 now)",
        ),
    ),
}


@pytest.mark.parametrize("name", MOVED)
def test_what_moved_is_named(manifest: Manifest, name: str) -> None:
    change, expected = MOVED[name]
    call: dict[str, Any] = {"X": X, "y": Y, "splits": SPLITS, "groups": GROUPS} | change
    assert manifest.check(**call) == expected


def test_groups_that_were_not_there(manifest: Manifest) -> None:
    without = make_manifest(X, Y, SPLITS, **NAMES)
    assert without.fingerprints.groups is None
    assert without.check(X, Y, SPLITS, GROUPS) == ("the groups (the manifest has none, now there are some)",)


@pytest.mark.parametrize("kind", ["double", "lists", "torch", "half", "pandas", "polars", "sparse", "fortran"])
def test_the_same_numbers_in_another_container_have_not_moved(kind: str) -> None:
    data: Any = np.round(X.astype(np.float64) * 8) / 8  # exact in every precision
    exact = make_manifest(data, Y, SPLITS, **NAMES)
    labels: Any = Y.astype(np.int32)
    if kind == "lists":
        data, labels = data.tolist(), Y.tolist()
    elif kind == "torch":
        data, labels = torch.tensor(data, requires_grad=True), torch.tensor(Y)
    elif kind == "half":
        data, labels = torch.tensor(data, dtype=torch.bfloat16), Y.astype(float)
    elif kind in ("pandas", "polars"):
        frames = pytest.importorskip(kind, reason=f"{kind} is not installed: its frames were not tried")
        data, labels = frames.DataFrame({f"c{i}": data[:, i] for i in range(4)}), frames.Series(Y)
    elif kind == "sparse":
        data = sparse.csc_array(data)
    elif kind == "fortran":
        data = np.asfortranarray(data)
    assert exact.check(data, labels, SPLITS) == ()
    assert exact.check(data, labels[::-1] if kind == "lists" else 1 - labels, SPLITS) == ("the labels",)


def test_texts_images_missing_values_and_long_keys() -> None:
    assert fingerprint(np.array(["a", "b"])) == fingerprint(np.array(["a", "b"], dtype=object))
    assert fingerprint(np.array(["a", "b"])) != fingerprint(np.array(["a", "c"]))
    assert fingerprint(np.zeros((2, 3, 3))) == fingerprint(np.zeros((2, 9)))
    assert fingerprint(np.array([np.nan, -0.0])) == fingerprint(np.array([-np.nan, 0.0]))
    assert fingerprint(np.array([2**53, 1])) != fingerprint(np.array([2**53 + 1, 1]))
    assert fingerprint(np.array([2**64 - 1, 1], dtype=np.uint64)) != fingerprint(np.array([2.0**64, 1]))
    assert fingerprint(np.array([True, False])) == fingerprint(np.array([1, 0]))
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: mixed frames were not tried")
    frame = pandas.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    other = pandas.DataFrame({"a": [1, 2], "b": ["x", "z"]})
    assert fingerprint(frame) == fingerprint(frame.copy()) != fingerprint(other)


@pytest.mark.parametrize("splits", [5, StratifiedKFold(3, shuffle=True, random_state=1), TimeSeriesSplit(3)])
def test_splitters_and_numbers_of_folds(splits: Any) -> None:
    manifest = make_manifest(X, Y, splits, seed=4, **NAMES)
    assert manifest.check(X, Y, splits) == ()
    other = KFold(4)
    assert manifest.check(X, Y, other) != ()
    grouped = make_manifest(X, Y, GroupKFold(3), GROUPS, **NAMES)
    assert grouped.check(X, Y, GroupKFold(3), GROUPS) == ()


def test_another_seed_is_another_split() -> None:
    one, two = (make_manifest(X, Y, 3, seed=seed, **NAMES) for seed in (0, 1))
    assert one.splits != two.splits


def test_declared_shortcuts_are_leaks_and_name_their_bias() -> None:
    data, labels = make_classification(80, 5, flip_y=0.3, random_state=0)
    tree = DecisionTreeClassifier(random_state=0)
    compared = compare_protocols(tree, {"max_depth": [1, 2, 4, 8]}, data, labels, outer=4, inner=3)
    for selection in ("internal", "none"):
        assert make_manifest(data, labels, 4, selection=selection, **NAMES).leaks(compared) == ()
    for selection in ("external", "median"):
        declared = make_manifest(data, labels, 4, selection=selection, **NAMES)
        (leak,) = declared.leaks(compared)
        assert leak.kind == "selection"
        assert leak.flattery == compared.bias[selection].mean
        assert f"{compared.bias[selection].mean:.3f} +- {compared.bias[selection].se:.3f} points" in leak.evidence
        assert f"selection: {selection}" in leak.where
        (unmeasured,) = declared.leaks()
        assert "bias was not measured" in unmeasured.evidence
        assert np.isnan(unmeasured.flattery)


def test_writing_never_overwrites_unless_told(manifest: Manifest, file: Path) -> None:
    before = file.read_bytes()
    other = make_manifest(X, 1 - Y, SPLITS, GROUPS, **NAMES)
    with pytest.raises(DScoreError, match=r"exists already: pass overwrite=True to replace it\.$"):
        write_manifest(file, other)
    assert file.read_bytes() == before
    write_manifest(file, other, overwrite=True)
    assert load_manifest(file) == other
    assert os.listdir(file.parent) == ["protocol.yaml"]
    with pytest.raises(DScoreError, match=r"cannot be written \(No such file or directory\)"):
        write_manifest(file.parent / "nowhere" / "protocol.yaml", manifest)


def test_a_write_that_fails_leaves_what_was_there(
    manifest: Manifest, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = file.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DScoreError, match="No space left on device"):
        write_manifest(file, manifest, overwrite=True)
    assert file.read_bytes() == before
    assert os.listdir(file.parent) == ["protocol.yaml"]


def test_a_file_system_without_links(manifest: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    path = tmp_path / "protocol.yaml"
    write_manifest(path, manifest)
    assert load_manifest(path) == manifest
    with pytest.raises(DScoreError):
        write_manifest(path, manifest)


def bomb() -> str:
    levels = "abcdefghi"
    lines = ["a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]" for old, new in itertools.pairwise(levels)]
    return "\n".join(lines)


BAD_TEXTS: dict[str, tuple[str, str]] = {
    "empty": ("", "is empty: write it with write_manifest"),
    "a comment": ("# nothing\n", "is empty"),
    "a list": ("- 1\n- 2\n", "line 1: a manifest is a mapping"),
    "a word": ("hello", "line 1: a manifest is a mapping"),
    "a set": ("!!set {version}", "holds a set: a manifest is a mapping"),
    "tabs": ("version: 1\nfingerprints:\n\tfeatures: 1\n", "line 3: this is not YAML"),
    "unclosed": ("version: [1\nname: x\n", "line 2: this is not YAML"),
    "two documents": ("version: 1\n---\nversion: 1\n", "line 2: .*another document"),
    "anchor": ("name: &a x\nversion: 1\n", r"line 1: anchors and aliases"),
    "bomb": (bomb(), "line 1: anchors and aliases"),
    "merge": ("<<: {version: 1}\n", "line 1: a key must be a plain word"),
    "number as key": ("version: 1\n2: 3\n", "line 2: a key must be a plain word"),
    "list as key": ("? [a, b]\n: 1\n", "line 1: a key must be a plain word"),
    "python": (
        "version: 1\nname: !!python/object/apply:os.system ['true']\n",
        "line 2: this is not YAML.*python/object",
    ),
    "python at the top": ("!!python/object:builtins.object {}\n", "line 1: this is not YAML"),
    "deep": ("a: " + "[" * 50 + "]" * 50, "line 1: this is nested too deeply"),
    "abyss": ("a: " + "[" * 50_000 + "]" * 50_000, "line 1: this is (nested too deeply|not YAML)"),
    "NUL": ("version: \0", "is not YAML"),
    "no such number": ("version: !!int abc\n", "is not YAML"),
}


def assert_one_sentence(message: str) -> None:
    assert "\n" not in message
    assert re.search(r"[.?]$", message), message
    assert not message.endswith("..")


@pytest.mark.parametrize("name", BAD_TEXTS)
def test_text_that_is_no_manifest(name: str, tmp_path: Path) -> None:
    text, words = BAD_TEXTS[name]
    path = tmp_path / "protocol.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DScoreError, match=words) as caught:
        load_manifest(path)
    assert str(caught.value).startswith(str(path))
    assert_one_sentence(str(caught.value))


BAD_FIELDS: dict[str, tuple[str, str, str]] = {
    "missing": ("seed: 0\n", "", "line 2: seed is missing: give a whole number >= 0"),
    "unknown": ("seed: 0\n", "seed: 0\nsead: 1\n", "line 7: key 'sead' does not exist; did you mean 'seed'"),
    "text for a number": (
        "rows: 30\nfinger",
        "rows: many\nfinger",
        "line 9: rows = 'many' cannot be used: give a whole",
    ),
    "negative": ("seed: 0", "seed: -1", "line 6: seed = -1 cannot be used"),
    "fraction": ("seed: 0", "seed: 0.5", "line 6: seed = 0.5 cannot be used"),
    "truth for a number": ("seed: 0", "seed: yes", "line 6: seed = True cannot be used"),
    "truth for the version": ("version: 1", "version: true", "line 2: version = True cannot be used: give 1"),
    "date": ("name: digits", "name: 2026-01-01", "line 3: name = .* cannot be used: give a name"),
    "reference": ("project.train:run", "project/train.py", "line 4: experiment = .*module:callable"),
    "selection": ("selection: internal", "selection: extern", 'line 8: selection = .*"external"'),
    "newer": ("version: 1", "version: 2", "line 2: version 2 was written by a newer pytest-dscore"),
    "older": ("version: 1", "version: 0", "line 2: version = 0 cannot be used: give 1"),
    "twice": ("seed: 0\n", "seed: 0\nseed: 1\n", r"line 7: seed stands there twice \(first in line 6\)"),
    "twice inside": ("    rows: 20\n", "    rows: 20\n    rows: 20\n", "rows stands there twice"),
    "fingerprint": ("blake2b:", "md5:", r"line 11: fingerprints.features = .*write it anew"),
    "inner field": ("    rows: 20\n", "    rows: 0\n", r"line 16: splits\[0\].train.rows = 0 cannot be used"),
    "inner key": (
        "    rows: 20\n",
        "    rows: 20\n    row: 20\n",
        "line 17: key 'row' does not exist; did you mean 'rows'",
    ),
}


@pytest.mark.parametrize("name", BAD_FIELDS)
def test_fields_that_cannot_be_used(name: str, file: Path) -> None:
    old, new, words = BAD_FIELDS[name]
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DScoreError, match=words) as caught:
        load_manifest(file)
    assert str(caught.value).startswith(str(file))
    assert_one_sentence(str(caught.value))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DScoreError, match=r"does not exist: write it with write_manifest\.$"):
        load_manifest(tmp_path / "protocol.yaml")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DScoreError, match="pipe is a pipe or a device: name a file"):
        load_manifest(tmp_path / "pipe")
    with pytest.raises(DScoreError, match=r"cannot be read \(Is a directory\)"):
        load_manifest(tmp_path)
    huge = tmp_path / "huge.yaml"
    with huge.open("wb") as file:
        file.truncate(10 * 2**30)  # sparse: ten GiB by name only
    assert MOST_BYTES < 10 * 2**30
    with pytest.raises(DScoreError, match="larger than 4 MiB"):
        load_manifest(huge)
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("version: 1\nname: Grösse\n".encode("latin-1"))
    with pytest.raises(DScoreError, match="line 2: this is not UTF-8"):
        load_manifest(latin)


def test_several_mistakes_are_counted(file: Path) -> None:
    text = file.read_text(encoding="utf-8").replace("seed: 0\n", "").replace("rows: 30", "rows: 0")
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DScoreError, match=r"seed is missing.*\(1 more to mend after that\)\.$"):
        load_manifest(file)


BAD_CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "experiment": ({"experiment": "run"}, "the manifest: experiment = 'run' cannot be used"),
    "selection": ({"selection": "best"}, "selection = 'best' cannot be used"),
    "seed": ({"seed": -1}, "seed = -1"),
    "seed twice": ({"seed": True}, "seed = True"),
    "unseeded": ({"splits": KFold(3, shuffle=True)}, "KFold gives other splits every time.* set its random_state"),
    "no rows": ({"X": X[:0], "y": Y[:0]}, "X has no rows"),
    "lengths": ({"y": Y[:3]}, "y has 3 labels but X has 30 rows"),
    "no splits": ({"splits": []}, "no split"),
}


@pytest.mark.parametrize("name", BAD_CALLS)
def test_a_manifest_that_cannot_be_made(name: str) -> None:
    change, words = BAD_CALLS[name]
    call: dict[str, Any] = {"X": X, "y": Y, "splits": SPLITS} | NAMES | change
    with pytest.raises(DScoreError, match=words) as caught:
        make_manifest(**call)
    assert_one_sentence(str(caught.value))


def test_too_many_splits_to_be_read_again(tmp_path: Path) -> None:
    manifest = make_manifest(X, Y, SPLITS, **NAMES)
    many = manifest.model_copy(update={"splits": manifest.splits * 9000})
    with pytest.raises(DScoreError, match="larger than 4 MiB with 27000 splits"):
        write_manifest(tmp_path / "protocol.yaml", many)
    assert os.listdir(tmp_path) == []
