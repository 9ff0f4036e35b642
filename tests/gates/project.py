"""A tiny user's project: a seeded CNN, 40 images of 12 x 12 pixels, labels taken from the CNN's own predictions."""

from __future__ import annotations

import functools
import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from joblib.externals.loky import reusable_executor  # type: ignore[import-untyped]
from junitparser import JUnitXml, Properties, TestCase
from safetensors.torch import save

NET = """
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import nn

HERE = Path(__file__).parent


def log(word):
    with (HERE / "log").open("a") as file:
        file.write(word + "\\n")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.head = nn.Linear(144, 3)

    def forward(self, images):
        log("forward")
        return self.head(nn.functional.max_pool2d(torch.relu(self.conv(images)), 2).flatten(1))


def build():
    log("build")
    return Net()


def data():
    kept = load_file(HERE / "data.safetensors")
    return kept["images"], kept["labels"]
"""

MODEL = """
[tool.dscore.models.{name}]
factory = "net:build"
weights = "weights.safetensors"
data = "net:data"
{own}
"""

PASSING, FAILING = "min_score = 0.01", "min_score = 0.99"


def load_module(path: Path) -> ModuleType:
    """Import a file under a name of its own, so that the inner run imports it anew."""
    spec = importlib.util.spec_from_file_location(f"outer_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.lru_cache
def _files(root: Path) -> dict[str, bytes]:
    """Weights and data: accuracy 0.95, three classes of about the same size."""
    source = root / "net.py"
    source.write_text(NET)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        net = load_module(source).Net()
        images = torch.rand(40, 1, 12, 12)
    with torch.no_grad():
        net.head.bias -= net(images).mean(0)
        labels = net(images).argmax(1)
    labels[:2] = (labels[:2] + 1) % 3
    return {
        "weights.safetensors": save(net.state_dict()),
        "data.safetensors": save({"images": images, "labels": labels}),
    }


class Project:
    """The project's files in pytester's directory, and runs of pytest in it."""

    def __init__(self, pytester: pytest.Pytester, template: Path) -> None:
        self.pytester = pytester
        self.path = pytester.path
        for name, content in _files(template).items():
            (self.path / name).write_bytes(content)
        self.write("net.py", NET)
        self.settings(own=PASSING)

    def write(self, name: str, text: str) -> Path:
        """Write a text file."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def settings(self, common: str = "", own: str = "", name: str = "tiny", more: str = "") -> None:
        """Write pyproject.toml: keys of the common table, of the model `name`, and further text."""
        text = f"[tool.dscore]\nbootstrap = 100\n{common}\n{MODEL.format(name=name, own=own)}{more}"
        self.write("pyproject.toml", text)

    def replace(self, name: str, old: str, new: str) -> None:
        """Change one place in a file."""
        text = (self.path / name).read_text()
        assert text.count(old) == 1
        self.write(name, text.replace(old, new))

    def test(self, text: str, name: str = "test_user.py") -> None:
        """Write a user's test module."""
        self.write(name, "import os\nimport pytest\n" + text)

    def run(self, *args: str, subprocess: bool = False, dscore: bool = True, junit: bool = True) -> pytest.RunResult:
        """Run pytest with warnings as errors. Whatever happens, there is no traceback of ours."""
        first = ["-p", "no:hypothesispytest", "-W", "error", *(["--dscore"] if dscore else [])]
        first += ["--junitxml=report.xml"] if junit else []
        run = self.pytester.runpytest_subprocess if subprocess else self.pytester.runpytest_inprocess
        result = run(*first, *args)
        _end_workers()
        text = output(result)
        assert "INTERNALERROR" not in text
        assert "Traceback (most recent call last)" not in text
        assert not re.search(r"pytest_dscore/\S+\.py:\d+: ", text), "a test ended in a traceback into the package"
        return result

    def count(self, word: str) -> int:
        """How often the model's forward pass or factory has been called so far."""
        log = self.path / "log"
        return log.read_text().split().count(word) if log.exists() else 0

    def cases(self) -> dict[str, TestCase]:
        """The last run's JUnit test cases by name."""
        return {case.name: case for suite in JUnitXml.fromfile(str(self.path / "report.xml")) for case in suite}

    def direct(self, **arguments: Any) -> Any:
        """`d_score` called on the same model and data, without pytest."""
        from safetensors.torch import load_file

        from pytest_dscore import d_score

        module = load_module(self.path / "net.py")
        model = module.Net()
        model.load_state_dict(load_file(self.path / "weights.safetensors"))
        return d_score(model, *module.data(), **{"bootstrap": 100, **arguments})


def _end_workers() -> None:
    """End joblib's processes of an inner run: their manager is gone with it, and a later test would wait for ever."""
    if (executor := reusable_executor._executor) is not None:
        executor.shutdown(wait=True, kill_workers=True)


def output(result: pytest.RunResult) -> str:
    """All that a run printed."""
    return "\n".join([*result.outlines, *result.errlines])


def properties(case: TestCase) -> dict[str, str]:
    """The JUnit properties of a test case."""
    found = case.child(Properties)  # type: ignore[no-untyped-call]
    return {entry.name: entry.value for entry in found or ()}


def message(case: TestCase) -> str:
    """The message attribute of a test case's only failure or error."""
    [result] = case.result
    return str(result.message)


def section(result: pytest.RunResult) -> list[str]:
    """The lines of the D-Score section of the terminal."""
    lines = list(result.outlines)
    start = next(number for number, line in enumerate(lines) if re.fullmatch(r"=+ D-Score =+", line))
    end = next((number for number, line in enumerate(lines) if number > start and line.startswith("===")), len(lines))
    return lines[start + 1 : end]


def refused(result: pytest.RunResult, *parts: str) -> None:
    """Assert exit code 4 with one message that has all parts."""
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    text = output(result)
    for part in parts:
        assert part in text
    assert "passed" not in text


def failed(result: pytest.RunResult, project: Project, *parts: str, name: str = "dscore[tiny-min_score]") -> None:
    """Assert that the gate failed as a test, with one message that has all parts."""
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    text = message(project.cases()[name])
    for part in parts:
        assert part in text
