"""A user's project with a hold-out of 100 examples and models that answer a chosen number of them wrongly."""

from __future__ import annotations

import itertools
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from pytest_dscore.cli import main
from pytest_dscore.holdout.ledger import HoldoutIdentity, Ledger, Use, open_ledger
from tests.gates.project import Project, output

N = 100
NAME = "digits-test"
#: Variables by which a CI run is recognised.
CI_RUNS = ("GITHUB_RUN_ID", "CI_JOB_ID", "BUILD_TAG", "BUILDKITE_BUILD_ID", "CIRCLE_WORKFLOW_ID")

BENCH = """
from pathlib import Path

import numpy as np

N = 100
INPUTS = np.random.default_rng(0).random((N, 4))
LABELS = np.arange(N) % 3


def data():
    return INPUTS, LABELS


def outcomes(wrong, start=0):
    found = np.zeros(N, dtype=bool)
    found[(start + np.arange(wrong)) % N] = True
    return found


def model(wrong, start=0):
    # Right but for `wrong` examples from number `start` on.
    return lambda inputs: (LABELS + outcomes(wrong, start)) % 3
"""

HEAD = "import bench\nfrom pathlib import Path\n"
MARK = f"@pytest.mark.holdout('{NAME}')\n"


def inputs() -> NDArray[np.float64]:
    """The inputs that `BENCH` makes."""
    return np.random.default_rng(0).random((N, 4))


def labels() -> NDArray[np.int64]:
    """The labels that `BENCH` makes."""
    return np.arange(N) % 3


def outcomes(wrong: int, start: int = 0) -> NDArray[np.bool_]:
    """Where `bench.model` is wrong."""
    found = np.zeros(N, dtype=bool)
    found[(start + np.arange(wrong)) % N] = True
    return found


def identity(name: str = NAME) -> HoldoutIdentity:
    """What the ledger knows the hold-out by."""
    return HoldoutIdentity.of(inputs(), labels(), name=name)


def overfits(wrong: int, epsilon: float, n: int = N) -> float:
    """Probability that a model of this error rate is off by epsilon or more, from SciPy's binomial."""
    errors = stats.binom(n, wrong / n)
    upper, lower = round(wrong + n * epsilon, 9), round(wrong - n * epsilon, 9)
    return float(errors.sf(math.ceil(upper) - 1) + errors.cdf(math.floor(lower)))


class HoldoutProject(Project):
    """Its pyproject.toml declares one hold-out and no model, its ledger is begun."""

    def __init__(self, pytester: pytest.Pytester, template: Path) -> None:
        super().__init__(pytester, template)
        self.write("bench.py", BENCH)
        self.declare()
        self.begin()

    def declare(self, *lines: str, epsilon: float = 0.2, common: str = "", more: str = "") -> None:
        """Write pyproject.toml with these keys of the hold-out; `more` is further text."""
        own = "\n".join([f'data = "bench:data"\nepsilon = {epsilon}', *lines])
        self.write("pyproject.toml", f"[tool.dscore]\n{common}\n[tool.dscore.holdouts.{NAME}]\n{own}\n{more}")

    def ledger(self, url: str = ".dscore/ledger") -> Ledger:
        """The ledger, opened anew."""
        return open_ledger(url, root=self.path)

    def begin(self, url: str = ".dscore/ledger") -> None:
        """Begin the ledger."""
        self.ledger(url).begin(identity())

    def record(self, *wrong: int, verdict: str = "exact; accuracy shown", name: str = "earlier") -> None:
        """Put models with so many wrong answers on record; equal ones are wrong elsewhere."""
        self.ledger().record_all(
            [Use.of(identity(), outcomes(count, 7 * i), model=f"{name}-{i}") for i, count in enumerate(wrong)],
            identity(),
            lambda existing, new: verdict,
        )

    def uses(self) -> tuple[Use, ...]:
        """What is on record."""
        return self.ledger().uses()

    def user(self, code: str, head: str = HEAD + MARK) -> None:
        """Write the user's only test, ``test_candidate(holdout)``, from the lines of its body."""
        body = "\n    ".join(code.splitlines())
        self.test(f"{head}def test_candidate(holdout):\n    {body}\n")

    def candidate(self, code: str, *args: str, **kwargs: Any) -> tuple[pytest.RunResult, str]:
        """Run that one test without the declared gates; the result and what JUnit says of its failure, if it failed."""
        self.user(code)
        result = self.run("test_user.py::test_candidate", *args, **kwargs)
        found = self.cases()["test_candidate"].result
        return result, str(found[0].message) if found else ""

    def printed(self, result: pytest.RunResult) -> str:
        """All that a run left to read: what it printed and its JUnit file."""
        return output(result) + (self.path / "report.xml").read_text()

    def command(self, capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
        """Run ``dscore holdout ...`` in the project: exit code, standard output and error on one line each."""
        capsys.readouterr()
        before = set(sys.modules)
        try:
            code = main(["holdout", *args, "--root", str(self.path)])
        finally:
            for name in set(sys.modules) - before:
                if str(self.path) in str(getattr(sys.modules[name], "__file__", "")):
                    del sys.modules[name]
        out, err = capsys.readouterr()
        return code, out if "--json" in args else " ".join(out.split()), " ".join(err.split())

    def status(self, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
        """What ``dscore holdout status --json`` says of the hold-out, with its exit code."""
        code, out, _ = self.command(capsys, "status", "--json")
        [found] = json.loads(out)
        return code, found


def admitted(wrong: list[int], epsilon: float, delta: float) -> int:
    """How many of these models, in this order, the exact union bound allows; hand-made from SciPy's binomial."""
    spent = itertools.accumulate(overfits(count, epsilon) for count in wrong)
    return sum(1 for total in spent if total <= delta)


def within_terminal(result: pytest.RunResult) -> bool:
    """Whether every line of the D-Score section is ASCII of at most 80 columns."""
    lines = list(result.outlines)
    start = next(number for number, line in enumerate(lines) if line.strip("=") == " D-Score ")
    end = next(number for number, line in enumerate(lines) if number > start and line.startswith("==="))
    return all(len(line) <= 80 and line.isascii() for line in lines[start + 1 : end])
