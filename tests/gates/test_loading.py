"""Factories and weights: what cannot be loaded fails its gate with one sentence; code in a file never runs."""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.gates.project import FAILING, MODEL, PASSING, Project, failed, message, output

TWO_GATES = f"{PASSING}\nmax_v_robust = 9.0"


def declare(project: Project, **places: str) -> None:
    """Replace factory, weights or data of the model."""
    for key, value in places.items():
        default = {"factory": "net:build", "weights": "weights.safetensors", "data": "net:data"}[key]
        project.replace("pyproject.toml", f'{key} = "{default}"', f'{key} = "{value}"')


FACTORIES = {
    "module": ("nett:build", "", ["factory 'nett:build'", "importing nett raised ModuleNotFoundError", "rootdir"]),
    "package": ("a.b:build", "", ["factory 'a.b:build'", "ModuleNotFoundError"]),
    "attribute": ("net:biuld", "", ["factory 'net:biuld'", "name 'biuld' does not exist", "did you mean 'build'?"]),
    "nested": ("net:Net.biuld", "", ["factory 'net:Net.biuld'", "name 'biuld' does not exist"]),
    "not callable": ("net:X", "X = 3", ["factory 'net:X' is a int", "callable without arguments"]),
    "import": ("bad:build", "", ["factory 'bad:build'", "importing bad raised ValueError: at import", "bad.py:1)"]),
    "syntax": ("syntax:build", "", ["factory 'syntax:build'", "importing syntax raised SyntaxError"]),
    "exit": ("exits:build", "", ["factory 'exits:build'", "importing exits raised SystemExit"]),
    "raises": ("net:X", "def X():\n    raise KeyError('k')", ["factory 'net:X' raised KeyError: 'k'", "net.py:"]),
    "exits": ("net:X", "def X():\n    raise SystemExit(0)", ["factory 'net:X' raised SystemExit"]),
    "arguments": ("net:X", "def X(classes):\n    pass", ["factory 'net:X' raised TypeError", "classes"]),
    "none": ("net:X", "def X():\n    pass", ["factory 'net:X' returned a NoneType", "torch.nn.Module"]),
    "class": ("net:X", "def X():\n    return Net", ["factory 'net:X' returned a type", "torch.nn.Module"]),
    "state dict": ("net:X", "def X():\n    return Net().state_dict()", ["returned a OrderedDict", "torch.nn.Module"]),
}


@pytest.mark.parametrize(("factory", "code", "parts"), FACTORIES.values(), ids=FACTORIES)
def test_a_factory_that_cannot_be_used(project: Project, factory: str, code: str, parts: list[str]) -> None:
    project.settings(own=TWO_GATES)
    project.write("bad.py", "raise ValueError('at import')")
    project.write("syntax.py", "def build(:")
    project.write("exits.py", "import sys\nsys.exit(0)")
    project.write("net.py", (project.path / "net.py").read_text() + "\n" + code + "\n")
    declare(project, factory=factory)
    result = project.run()
    result.assert_outcomes(failed=2)
    failed(result, project, "model 'tiny' cannot be scored: ", *parts)
    failed(result, project, *parts, name="dscore[tiny-max_v_robust]")


def test_the_class_itself_is_a_factory(project: Project) -> None:
    declare(project, factory="net:Net")
    project.run().assert_outcomes(passed=1)


def test_a_factory_in_a_package(project: Project) -> None:
    net = (project.path / "net.py").read_text()
    project.write("my/pack/net.py", net.replace("Path(__file__).parent", "Path(__file__).parent.parent.parent"))
    declare(project, factory="my.pack.net:build", data="my.pack.net:data")
    project.run().assert_outcomes(passed=1)


def test_other_models_are_still_judged(project: Project) -> None:
    project.settings(own=PASSING, more=MODEL.format(name="broken", own=PASSING).replace("net:build", "nett:build"))
    project.run().assert_outcomes(passed=1, failed=1)


def weights(project: Project) -> dict[str, torch.Tensor]:
    """The model's weights."""
    return load_file(project.path / "weights.safetensors")


def reshaped(project: Project) -> dict[str, torch.Tensor]:
    """Weights of a model with another number of channels."""
    return {**weights(project), "conv.weight": torch.zeros(5, 1, 3, 3)}


def renamed(project: Project) -> dict[str, torch.Tensor]:
    """Weights of another model."""
    return {f"other.{name}": value for name, value in weights(project).items()}


STATES: dict[str, tuple[Callable[[Project], dict[str, torch.Tensor]], list[str]]] = {
    "shape": (reshaped, ["weights 'w.safetensors' do not fit", "(Net)", "conv.weight"]),
    "names": (renamed, ["weights 'w.safetensors' do not fit", "conv.weight", "other.conv"]),
    "fewer": (lambda p: {"conv.weight": weights(p)["conv.weight"]}, ["do not fit", "conv.bias"]),
    "more": (lambda p: {**weights(p), "extra": torch.zeros(1)}, ["do not fit", "extra"]),
    "none": (lambda p: {}, ["do not fit", "conv.weight"]),
}


@pytest.mark.parametrize(("state", "parts"), STATES.values(), ids=STATES)
def test_weights_that_do_not_fit(project: Project, state: Callable[[Project], Any], parts: list[str]) -> None:
    save_file(state(project), project.path / "w.safetensors")
    declare(project, weights="w.safetensors")
    failed(project.run(), project, *parts)


class TouchesAFile:
    """A pickle of this writes the file ``touched`` when it is loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, ("touched", "w"))


def legacy(path: Path, content: object) -> None:
    """Write the format that torch used before 1.6."""
    torch.save(content, path, _use_new_zipfile_serialization=False)


def halved(path: Path) -> None:
    """Cut a file in two."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def halved_torch(path: Path) -> None:
    """Write half a torch file."""
    torch.save(torch.zeros(99), path)
    halved(path)


def tensors_with_code() -> dict[str, Any]:
    """A state dict with a stowaway."""
    return {"conv.weight": torch.zeros(4, 1, 3, 3), "extra": TouchesAFile()}


BAD_FILES: dict[str, tuple[str, Callable[[Path], object], list[str]]] = {
    "missing": ("w.safetensors", lambda path: None, ["do not exist", "relative to pyproject.toml"]),
    "a directory": ("w.safetensors", lambda path: path.mkdir(), ["do not exist"]),
    "suffix": ("w.bin", lambda path: path.write_bytes(b"1"), ["end in '.bin'", ".safetensors, .pt or .pth"]),
    "truncated": ("weights.safetensors", halved, ["truncated", "write them anew"]),
    "zero bytes": ("w.safetensors", lambda path: path.write_bytes(b""), ["truncated", "write them anew"]),
    "text": ("w.safetensors", lambda path: path.write_text("version https://git-lfs"), ["truncated or no safetensors"]),
    "code in .pt": ("w.pt", lambda path: torch.save(TouchesAFile(), path), ["refused", "run code", "save_file("]),
    "code in a dict": ("w.pth", lambda path: torch.save(tensors_with_code(), path), ["refused", "run code"]),
    "legacy code": ("w.pt", lambda path: legacy(path, tensors_with_code()), ["refused", "run code", "save_file("]),
    "plain pickle": ("w.pt", lambda path: path.write_bytes(pickle.dumps(TouchesAFile())), ["refused", "run code"]),
    "whole model": ("w.pt", lambda path: torch.save(torch.nn.ReLU(), path), ["refused", "save_file("]),
    "zero bytes .pt": ("w.pt", lambda path: path.write_bytes(b""), ["truncated", "write them anew"]),
    "text in .pt": ("w.pt", lambda path: path.write_text("version https://git-lfs"), ["w.pt"]),
    "truncated .pt": ("w.pt", halved_torch, ["w.pt", "write them anew"]),
    "a tensor": ("w.pt", lambda path: torch.save(torch.zeros(3), path), ["no state dict", "model.state_dict()"]),
    "a list": ("w.pt", lambda path: torch.save([torch.zeros(3)], path), ["no state dict"]),
    "numbers": ("w.pt", lambda path: torch.save({"epoch": 3}, path), ["no state dict"]),
    "other keys": ("w.pt", lambda path: torch.save({0: torch.zeros(3)}, path), ["w.pt"]),
}


@pytest.mark.parametrize(("name", "make", "parts"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_weights_file(project: Project, name: str, make: Callable[[Path], object], parts: list[str]) -> None:
    make(project.path / name)
    if name != "weights.safetensors":
        declare(project, weights=name)
    failed(project.run(), project, "model 'tiny' cannot be scored: weights", *parts)
    assert not (project.path / "touched").exists(), "code in the weights file ran"


def test_the_pickles_would_have_run(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.path)
    torch.save(tensors_with_code(), "w.pt")
    torch.load("w.pt", weights_only=False)["extra"].close()
    assert (project.path / "touched").exists()


@pytest.mark.parametrize("step", [1, 7])
def test_a_torch_file_cut_anywhere_is_no_traceback(tmp_path: Path, step: int) -> None:
    from pytest_dscore.errors import DScoreError
    from pytest_dscore.gates.loading import read_weights

    path = tmp_path / "w.pt"
    state = {"conv.weight": torch.arange(40.0), "conv.bias": torch.zeros(2)}
    torch.save(state, path) if step == 7 else legacy(path, state)
    content = path.read_bytes()
    for size in range(0, len(content) - 1, step):
        path.write_bytes(content[:size])
        with pytest.raises(DScoreError):
            read_weights(path)
    for position in range(0, len(content), step):
        path.write_bytes(content[:position] + bytes([content[position] ^ 255]) + content[position + 1 :])
        # A weight or a name may have changed; anything else is a refusal.
        with contextlib.suppress(DScoreError):
            read_weights(path)


GOOD_FILES: dict[str, Callable[[dict[str, torch.Tensor]], object]] = {
    "state dict": lambda state: state,
    "checkpoint": lambda state: {"state_dict": state, "epoch": 3},
    "other checkpoint": lambda state: {"model_state_dict": state, "loss": 0.5},
    "data parallel": lambda state: {f"module.{name}": value for name, value in state.items()},
    "compiled": lambda state: {f"_orig_mod.{name}": value for name, value in state.items()},
    "parallel checkpoint": lambda state: {"state_dict": {f"module.{name}": value for name, value in state.items()}},
}


@pytest.mark.parametrize("suffix", ["pt", "pth"])
@pytest.mark.parametrize("wrap", GOOD_FILES.values(), ids=GOOD_FILES)
def test_torch_files_give_the_same_score(project: Project, wrap: Callable[[Any], object], suffix: str) -> None:
    direct = project.direct().score
    score, limit = direct.value, direct.lower
    torch.save(wrap(weights(project)), project.path / f"w.{suffix}")
    project.settings(own=f"min_score = {limit!r}\nmax_v_robust = 0.001")
    declare(project, weights=f"w.{suffix}")
    project.run().assert_outcomes(passed=1, failed=1)
    assert f"D-Score              {score:.3f}" in message(project.cases()["dscore[tiny-max_v_robust]"])


def test_without_weights_the_factory_brings_its_own(project: Project) -> None:
    project.settings(own=FAILING)
    project.replace("pyproject.toml", 'weights = "weights.safetensors"\n', "")
    project.replace("net.py", "return Net()", "torch.manual_seed(0); return Net()")
    result = project.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "D-Score 0." in output(result)
