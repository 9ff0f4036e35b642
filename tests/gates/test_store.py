"""Hits kept in pytest's cache directory: used where nothing changed, measured anew otherwise, never trusted blindly."""

from __future__ import annotations

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

from pytest_dscore.gates.store import Measured, load, save
from pytest_dscore.score.engine import Hits
from tests.gates.project import FAILING, PASSING, Project, output, properties, section


def measured_anew(project: Project, *args: str) -> bool:
    """Run the gates; whether the model made forward passes. Report and property must agree."""
    before = project.count("forward")
    result = project.run(*args)
    assert result.ret in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    anew = project.count("forward") > before
    heads = [line for line in section(result) if "examples," in line]
    assert all(line.endswith("scored on cpu" if anew else ", cached") for line in heads)
    assert {properties(case)["dscore.cached"] for case in project.cases().values()} == {str(not anew).lower()}
    return anew


def kept(project: Project) -> Path:
    """The only cache file."""
    [path] = (project.path / ".pytest_cache" / "d" / "dscore").glob("*.npz")
    return path


@pytest.fixture
def scored(project: Project) -> Project:
    """A project that has been scored once."""
    assert measured_anew(project)
    return project


def test_an_unchanged_model_costs_no_forward_pass(scored: Project) -> None:
    first = {**properties(scored.cases()["dscore[tiny-min_score]"])}
    assert not measured_anew(scored)
    second = {**properties(scored.cases()["dscore[tiny-min_score]"])}
    assert first.pop("dscore.cached") == "false"
    assert second.pop("dscore.cached") == "true"
    assert first == second


def change_weights(project: Project) -> None:
    """A tiny change of one weight."""
    path = project.path / "weights.safetensors"
    weights = load_file(path)
    weights["conv.bias"][0] += 1e-6
    save_file(weights, path)


def change_images(project: Project) -> None:
    """One pixel of one image."""
    path = project.path / "data.safetensors"
    data = load_file(path)
    data["images"][3, 0, 5, 5] += 1e-3
    save_file(data, path)


def change_labels(project: Project) -> None:
    """One label."""
    path = project.path / "data.safetensors"
    data = load_file(path)
    data["labels"][3] = (data["labels"][3] + 1) % 3
    save_file(data, path)


CHANGES: dict[str, Callable[[Project], object]] = {
    "weights": change_weights,
    "images": change_images,
    "labels": change_labels,
    "code of the factory's module": lambda p: p.replace("net.py", "images)), 2)", "images)) * 1.0, 2)"),
    "n": lambda p: p.settings("n = 2", PASSING),
    "operator": lambda p: p.settings("operator = 'invert'", PASSING),
    "seed": lambda p: p.settings("seed = 1", PASSING),
    "fill": lambda p: p.settings("fill = 0.5", PASSING),
    "pad": lambda p: p.settings("pad = 2", PASSING),
    "bf16": lambda p: p.settings("bf16 = true", PASSING),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_that_matters_is_measured_anew(scored: Project, change: Callable[[Project], object]) -> None:
    change(scored)
    assert measured_anew(scored)
    assert not measured_anew(scored)


def test_code_beside_the_factory_that_the_model_is_made_of_counts(project: Project) -> None:
    net = (project.path / "net.py").read_text()
    project.write("layers.py", net)
    project.write("net.py", "from layers import Net, data\n\ndef build():\n    return Net()\n")
    assert measured_anew(project)
    project.replace("layers.py", "images)), 2)", "images)) * 1.0, 2)")
    assert measured_anew(project)


@pytest.mark.parametrize(
    ("common", "own"),
    [
        ("", FAILING),
        ("", "max_v_robust = 0.1\nmin_accuracy = 0.1"),
        ("form = 'ratio'", "min_score = 0.01"),
        ("confidence = 0.5", PASSING),
        ("", f"{PASSING}\nbootstrap = 200"),
        ("junit_properties = true", PASSING),
    ],
)
def test_thresholds_form_and_intervals_need_no_new_pass(scored: Project, common: str, own: str) -> None:
    if "bootstrap" in own:
        scored.write("pyproject.toml", (scored.path / "pyproject.toml").read_text().replace("= 100", "= 200"))
    else:
        scored.settings(common, own)
    assert not measured_anew(scored)


def test_a_cached_gate_still_fails(scored: Project) -> None:
    scored.settings(own=FAILING)
    assert not measured_anew(scored)
    scored.run().assert_outcomes(failed=1)


def test_the_option_measures_anew_and_replaces_what_was_kept(project: Project) -> None:
    assert measured_anew(project, "--dscore-no-cache")
    assert not measured_anew(project)
    [kept] = (project.path / ".pytest_cache" / "d" / "dscore").glob("*.npz")
    before = kept.stat().st_mtime_ns
    assert measured_anew(project, "--dscore-no-cache")
    assert kept.stat().st_mtime_ns > before
    assert not measured_anew(project)


def test_without_pytests_cache(project: Project) -> None:
    assert measured_anew(project, "-p", "no:cacheprovider")
    assert measured_anew(project, "-p", "no:cacheprovider")
    assert not (project.path / ".pytest_cache").exists()


def test_clearing_pytests_cache_clears_it(scored: Project) -> None:
    assert measured_anew(scored, "--cache-clear")


class TouchesAFile:
    """A pickle of this writes the file ``touched`` when it is loaded."""

    def __reduce__(self) -> tuple[object, ...]:
        return (open, ("touched", "w"))


def npz(**arrays: object) -> bytes:
    """An .npz file, pickles allowed."""
    buffer = io.BytesIO()
    np.savez(buffer, **{name: np.asarray(value) for name, value in arrays.items()})  # type: ignore[arg-type]
    return buffer.getvalue()


def with_meta(content: bytes, **changes: object) -> bytes:
    """A cache file with other entries in its header."""
    with np.load(io.BytesIO(content)) as stored:
        meta = {**json.loads(str(stored["meta"])), **changes}
        return npz(meta=json.dumps(meta), hits=stored["hits"])


def all_hits(content: bytes) -> bytes:
    """A cache file that claims a perfect model."""
    with np.load(io.BytesIO(content)) as stored:
        return npz(meta=stored["meta"], hits=np.full_like(stored["hits"], 255))


def deflated_garbage(content: bytes) -> bytes:
    """Every member's compressed bytes damaged, the directory of the archive intact."""
    damaged = bytearray(content)
    for entry in zipfile.ZipFile(io.BytesIO(content)).infolist():
        start = (
            entry.header_offset
            + 30
            + len(entry.filename)
            + int.from_bytes(content[entry.header_offset + 28 : entry.header_offset + 30], "little")
        )
        damaged[start : start + 12] = b"\xff" * 12
    return bytes(damaged)


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "truncated": lambda content: content[: len(content) // 2],
    "last byte": lambda content: content[:-1],
    "garbage": lambda content: b"not an archive" * 50,
    "deflated garbage": deflated_garbage,
    "other version": lambda content: with_meta(content, format=999),
    "no version": lambda content: npz(meta=json.dumps({"shape": [19, 40]}), hits=[[1]]),
    "header is no mapping": lambda content: npz(meta=json.dumps("text"), hits=[[1]]),
    "header is a list": lambda content: npz(meta=json.dumps([1]), hits=[[1]]),
    "header is no JSON": lambda content: npz(meta="{", hits=[[1]]),
    "other shape": lambda content: with_meta(content, shape=[19, 39]),
    "fewer rows": lambda content: with_meta(content, shape=[3, 40]),
    "unknown entry": lambda content: with_meta(content, more=1),
    "perfect hits": all_hits,
    "a pickle": lambda content: pickle.dumps(TouchesAFile()),
    "pickle inside": lambda content: npz(meta=np.array(TouchesAFile(), dtype=object), hits=[[1]]),
    "an npy file": lambda content: b"\x93NUMPY\x01\x00",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_bad_file_is_measured_anew(scored: Project, damage: Callable[[bytes], bytes]) -> None:
    scored.settings(own=FAILING)
    path = kept(scored)
    path.write_bytes(damage(path.read_bytes()))
    assert measured_anew(scored)
    assert not (scored.path / "touched").exists()
    scored.run().assert_outcomes(failed=1)
    assert not measured_anew(scored)


def test_no_flipped_bit_gives_other_hits(tmp_path: Path) -> None:
    hits = np.random.default_rng(0).random((19, 40)) < 0.5
    measured = Measured(Hits(hits, 3, {"conv": (12, 12)}, (), "cpu"), (4, 4), (0.0,), "model", "data")
    path = tmp_path / "kept.npz"
    save(path, measured)
    content = path.read_bytes()
    assert load(path) is not None
    for position in range(len(content)):
        for bit in (1, 128):
            damaged = bytearray(content)
            damaged[position] ^= bit
            path.write_bytes(damaged)
            found = load(path)
            if found is not None:
                assert np.array_equal(found.hits.hits, hits), f"byte {position}"
                assert (found.hits.classes, found.padding, found.fill) == (3, (4, 4), (0.0,)), f"byte {position}"


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    hits = Hits(np.eye(9, 13, dtype=np.bool_), 5, {"a.b": (3, 4), "c": (1, 1)}, ("c",), "cpu")
    measured = Measured(hits, (2, 3), (0.5, -1.0, 2.0), "model", "data", remarks=("look here",))
    save(tmp_path / "new" / "kept.npz", measured)
    found = load(tmp_path / "new" / "kept.npz")
    assert found is not None
    assert np.array_equal(found.hits.hits, hits.hits)
    assert found.hits.hits.dtype == np.bool_
    assert (found.hits.maps, found.hits.skipped, found.hits.classes) == (hits.maps, hits.skipped, 5)
    assert (found.padding, found.fill, found.cached, found.remarks) == ((2, 3), (0.5, -1.0, 2.0), False, ("look here",))
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["kept.npz"]


@pytest.mark.parametrize("where", ["blocked/cache", "/proc/nothing/cache"])
def test_a_cache_directory_that_cannot_be_written_costs_only_time(project: Project, where: str) -> None:
    """The superuser may write anywhere, so the directory lies below a file instead of being read-only."""
    project.write("blocked", "a file")
    options = ("-o", f"cache_dir={where}", "-W", "ignore::pytest.PytestCacheWarning")
    project.run(*options).assert_outcomes(passed=1)
    project.settings(own=FAILING)
    result = project.run(*options)
    result.assert_outcomes(failed=1)
    assert "D-Score 0." in output(result)


def test_a_full_disk_costs_only_time(project: Project) -> None:
    project.write(
        "conftest.py",
        "import errno, os\n\ndef full(source, target):\n    raise OSError(errno.ENOSPC, 'No space left on device')\n\n"
        "def pytest_runtest_call(item):\n    os.replace = full\n\n"
        "replace = os.replace\n\ndef pytest_runtest_teardown(item):\n    os.replace = replace\n",
    )
    assert measured_anew(project)
    assert list((project.path / ".pytest_cache" / "d" / "dscore").iterdir()) == []
    assert measured_anew(project)


@pytest.mark.parametrize(
    "how",
    [
        "import helper",
        "from helper import K",
        "from pkg import helper",
        "from pkg.helper import K",
        "import pkg.helper",
    ],
)
def test_a_module_that_the_factory_s_module_imports_is_part_of_the_content(project: Project, how: str) -> None:
    (project.path / "pkg").mkdir()
    for place in ("helper.py", "pkg/__init__.py", "pkg/helper.py"):
        project.write(place, "K = 1.0\n")
    project.write("net.py", (project.path / "net.py").read_text() + f"\n{how}\n")
    assert measured_anew(project)
    assert not measured_anew(project)
    project.write("pkg/helper.py" if "pkg" in how else "helper.py", "K = -1.0\n")
    assert measured_anew(project)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("model.gain = 1.0", "model.gain = -1.0"),
        ("model.mean = torch.zeros(2)", "model.mean = torch.ones(2)"),
        ("model.names = ['a']", "model.names = ['b']"),
    ],
)
def test_plain_attributes_are_part_of_the_content(project: Project, before: str, after: str) -> None:
    def change(line: str) -> None:
        (project.path / "line.txt").write_text(line)

    line = "exec((HERE / 'line.txt').read_text(), {'model': model, 'torch': torch})"
    code = f"def build():\n    model = Net()\n    {line}\n    return model"
    project.write("net.py", (project.path / "net.py").read_text() + f"\n{code}\n")
    change(before)
    assert measured_anew(project)
    assert not measured_anew(project)
    change(after)
    assert measured_anew(project)


def test_a_base_class_from_elsewhere_is_part_of_the_content(project: Project) -> None:
    project.write("base.py", "from torch import nn\n\nclass Base(nn.Module):\n    sign = 1\n")
    code = "from base import Base\nNet.__bases__ = (Base,)\n"
    project.write("net.py", (project.path / "net.py").read_text() + f"\n{code}\n")
    assert measured_anew(project)
    assert not measured_anew(project)
    project.write("base.py", "from torch import nn\n\nclass Base(nn.Module):\n    sign = -1\n")
    assert measured_anew(project)
