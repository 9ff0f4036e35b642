"""``dscore holdout history`` and the pictures."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from PIL import Image

from pytest_dscore.holdout import analyse, max_models
from pytest_dscore.holdout.budget import Budget
from pytest_dscore.holdout.commands import plot
from pytest_dscore.holdout.commands._burning import burn_down
from pytest_dscore.holdout.commands._project import load_holdouts
from pytest_dscore.holdout.ledger import Use, open_ledger
from pytest_dscore.holdout.terms import Terms
from pytest_dscore.report.holdout_plots import plot_history
from tests.cli import examples
from tests.cli.conftest import Run


def budget(models: int, root: Path) -> Budget:
    """The budget of the project's hold-out after some uses."""
    uses = open_ledger(".dscore/ledger", root=root).uses(examples.identity())
    return Budget(load_holdouts(root)["digits-test"], uses[:models])


@pytest.mark.usefixtures("project")
def test_every_use_is_listed_with_its_score(dscore: Run) -> None:
    result = dscore("history")
    assert result.code == 0
    lines = [line.split() for line in result.out.splitlines() if "passed" in line]
    assert [line[0] for line in lines] == [str(i) for i in range(1, 13)]
    wrong = examples.outcomes().sum(axis=1)
    by_model = {f"digits-test-{i}": f"{100 * int(w) / examples.N:.4g}" for i, w in enumerate(wrong)}
    assert [line[5] for line in lines] == [by_model[line[3]] for line in lines]
    assert {line[4] for line in lines} == {"012345.."}


def test_long_names_are_told_apart_and_nothing_is_cut(root: Path, dscore: Run) -> None:
    holdout = examples.identity()
    names = [f"a-model-of-the-vision-team-with-a-long-name-{i}@{'0123456789abcdef'}" for i in range(3)]
    names += ["ab" * 32, f"{'cd' * 32}#{'ef' * 8}-17"]
    uses = [Use.of(holdout, row, model=name) for row, name in zip(examples.outcomes(5), names, strict=True)]
    open_ledger(".dscore/ledger", root=root).record_all(uses, holdout, lambda existing, new: "exact; accuracy shown")
    examples.declare(root)
    lines = dscore("history").out.splitlines()
    found: list[str] = []
    for line in lines[2:]:
        if line[:2].strip():
            found.append("")
        found[-1] += line[lines[1].index("model") :][:20].strip()
    shown = [name[:-6] for name in names[:3]]  # ten digits of a digest
    assert found == [*shown, "ab" * 5, f"{'cd' * 5}#{'ef' * 5}-17"]
    examples.declare(root, f'{examples.SETTINGS}mode = "adaptive"\nfeedback = "ladder"\n')
    assert "0123456789" not in dscore("history").out  # of answers that are hidden
    (printed,) = json.loads(dscore("history", "--json").out)
    assert [use["model"] for use in printed["uses"]] == [name.partition("@")[0] for name in names]


@pytest.mark.usefixtures("project")
def test_the_json(dscore: Run) -> None:
    (printed,) = json.loads(dscore("history", "--json").out)
    assert sorted(use["error"] for use in printed["uses"]) == sorted(examples.outcomes().mean(axis=1))
    assert printed["retired"] is None
    assert all(use["verdict"] == "passed" and len(use["record"]) == 64 for use in printed["uses"])


@pytest.mark.parametrize(("feedback", "threshold"), [("pass-fail", "min_accuracy = 0.5\n"), ("ladder", "")])
def test_a_score_that_was_not_shown_is_not_shown_now(root: Path, dscore: Run, feedback: str, threshold: str) -> None:
    examples.declare(root, f'{examples.SETTINGS}mode = "adaptive"\nfeedback = "{feedback}"\n{threshold}')
    examples.record(root)
    result = dscore("history")
    assert "error" not in result.out
    assert f"Scores are not repeated here: with feedback '{feedback}'" in result.flat
    (printed,) = json.loads(dscore("history", "--json").out)
    assert {use["error"] for use in printed["uses"]} == {None}


def test_nor_is_one_of_a_hold_out_that_nothing_is_known_of(project: Path, dscore: Run) -> None:
    examples.record(project, holdout=examples.identity("part", 400), models=1)
    assert "Scores are not repeated here: the project does not declare" in dscore("history", "part").flat
    (printed,) = json.loads(dscore("history", "digits-test", "--json").out)
    assert [use["error"] for use in printed["uses"][12:]] == [None]
    assert "From 13 on: uses of hold-outs that share examples" in dscore("history", "digits-test").flat


def test_retirements_and_imports_are_told(project: Path, dscore: Run) -> None:
    assert dscore("export", "--output", "all.jsonl").code == 0
    assert dscore("import", "all.jsonl", "--ledger", "new", "--why", "moved house").code == 0
    assert dscore("retire", "digits-test", "--ledger", "new", "--why", "worn out").code == 0
    told = dscore("history", "--ledger", "new").flat
    assert "worn out" in told
    assert "13 records, moved house" in told
    assert project.is_dir()


def test_nothing_on_record(dscore: Run) -> None:
    assert dscore("history").out == "no use is on record\n"


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("name", ["budget.png", "budget.svg", "budget.PDF"])
def test_the_picture_is_drawn(root: Path, dscore: Run, name: str) -> None:
    result = dscore("history", "--plot", name)
    assert result.code == 0
    assert result.out.endswith(f"drawn: {name}\n")
    starts = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[Path(name).suffix.lower()]
    assert (root / name).read_bytes().startswith(starts)
    if name.endswith("png"):
        with Image.open(root / name) as image:
            assert len(image.convert("RGB").getcolors(1 << 24)) > 50  # type: ignore[arg-type]


def test_what_is_drawn_is_what_status_said_at_each_time(project: Path) -> None:
    burning = burn_down(budget(12, project))
    assert burning.used == tuple(range(1, 13))
    assert all(later <= earlier + 1e-9 for earlier, later in zip(burning.left, burning.left[1:], strict=False))
    for used in (1, 5, 12):
        then = budget(used, project)
        matrix = analyse(examples.outcomes()[:used], epsilon=0.04, delta=0.05)
        assert then.used == used
        assert burning.guaranteed[used - 1] == then.tolerance
        assert burning.left[used - 1] == pytest.approx(1 - then.failure_probability / 0.05)
        assert burning.union_guaranteed[used - 1] >= burning.guaranteed[used - 1]
        assert matrix.k == used
    assert burning.union_left[-1] < burning.left[-1]


def test_few_points_for_many_models_and_the_last_among_them(project: Path) -> None:
    assert burn_down(budget(12, project), points=4).used == (1, 5, 8, 12)


def test_a_budget_without_epsilon_and_with_one_model(project: Path) -> None:
    one = budget(1, project)
    undeclared = Budget(Terms("a $ and $ b é"), one.own)
    burning = burn_down(undeclared)
    assert burning.left == ()
    plot_history(burning, undeclared.analysis.similarity, project / "one.png")
    assert (project / "one.png").stat().st_size > 5000


def test_a_picture_of_several_hold_outs_asks_which(project: Path, dscore: Run) -> None:
    examples.record(project, holdout=examples.identity("other", seed=2), models=1)
    assert (
        "--plot draws one hold-out: say which (on record: 'digits-test'"
        in dscore("history", "--plot", "x.png").sentence
    )


@pytest.mark.usefixtures("project")
def test_a_picture_that_cannot_be_drawn(dscore: Run) -> None:
    assert "x.gif must end in one of .png, .svg, .pdf" in dscore("history", "--plot", "x.gif").sentence
    assert "No such file or directory" in dscore("history", "--plot", "none/x.png").sentence


def test_the_curves_are_the_library_s(root: Path, dscore: Run) -> None:
    curves = plot.compute(50_000, 0.244, 0.01, 0.05, 0.85, 3)
    assert curves.similarities[0] == pytest.approx(0.244**2 + 0.756**2, abs=1e-3)
    assert curves.by_epsilon["union"][1] == 251_165
    assert curves.by_epsilon["similarity"][1] == 1_062_137
    assert curves.by_epsilon["naive-bayes"][1] == 128_963_384
    for s, count in zip(curves.similarities, curves.by_similarity["similarity"], strict=True):
        expected = max_models(n=50_000, error=0.244, epsilon=0.01, delta=0.05, bound="similarity", similarity=s)
        assert count == expected
    assert dscore("plot", "curves.png", "--points", "4").out == "drawn: curves.png\n"
    assert (root / "curves.png").stat().st_size > 10_000


def test_curves_where_a_bound_allows_nothing_have_gaps(root: Path, dscore: Run) -> None:
    assert dscore("plot", "small.svg", "--n", "100", "--points", "3").code == 0
    assert dscore("plot", "alike.png", "--n", "9000", "--similarity", "1", "--points", "3").code == 0
    assert (root / "small.svg").is_file()
    assert math.isfinite((root / "alike.png").stat().st_size)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--points", "1"), "--points must be at least 2"),
        (("--error", "2"), "error must lie between 0 and 1"),
        (("--epsilon", "0"), "epsilon must lie strictly between 0 and 1"),
        (("--n", "0"), "n must be a whole number of at least 1"),
    ],
)
def test_bad_input_to_plot(dscore: Run, arguments: tuple[str, ...], says: str) -> None:
    assert says in dscore("plot", "x.png", *arguments).sentence
