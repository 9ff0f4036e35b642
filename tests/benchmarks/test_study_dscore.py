"""The command of the study, end to end in small."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import study_dscore
from benchmarks.study import data, populations, work


def run(folder: Path, *more: str) -> int:
    return study_dscore.main(["--smallest", "--state", str(folder / "state"), "--out", str(folder / "out"), *more])


@pytest.mark.slow
def test_the_smallest_run_writes_the_whole_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path) == 0
    page = (tmp_path / "out" / "study.md").read_text(encoding="utf-8")
    for heading in ("Table VI", "Figure 7", "Validity", "Stability", "deletion helps", "networks were made"):
        assert re.search(f"^## .*{heading}", page, re.MULTILINE), heading
    assert "its figures mean nothing" in page
    assert "Not yet done" not in page
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page)
    assert "study/figure-seven.svg" in pictures
    assert all((tmp_path / "out" / picture).stat().st_size > 1000 for picture in pictures)
    assert "stage page (6 of 6, 0 remain after it)" in capsys.readouterr().out
    # The second time everything is read, and nothing changes.
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*")}
    assert run(tmp_path) == 0
    assert "table: 12 of 12 networks were kept, 0 remain" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*")} == before


def test_a_page_of_nothing_says_what_is_missing(tmp_path: Path) -> None:
    assert run(tmp_path, "--stages", "page") == 0
    page = (tmp_path / "out" / "study.md").read_text(encoding="utf-8")
    assert "table, figure, validity, stability and pruning" in " ".join(page.split())


def test_missing_data_is_one_sentence_before_anything_is_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = ["--state", str(tmp_path / "state"), "--out", str(tmp_path / "out"), "--data", str(tmp_path)]
    assert study_dscore.main(places) == 2
    said = capsys.readouterr()
    assert said.err.startswith("study_dscore: torchvision finds no MNIST in")
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert not (tmp_path / "state").exists()
    data.load.cache_clear()


def test_a_stopped_run_says_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(work, "_finish", stop)
    assert run(tmp_path, "--stages", "table") == 130
    assert "the same command goes on" in capsys.readouterr().err


def test_an_unknown_stage_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        study_dscore.main(["--stages", "tables"])
    assert "choose from" in capsys.readouterr().err


def test_populations_are_as_large_and_as_alike_as_they_should_be() -> None:
    found = populations.populations(mnist=True)
    assert {name: len(tasks) for name, tasks in found.items()} == {"mixed": 34, "uniform": 30, "mixed-mnist": 24}
    mixed = [task.recipe for task in found["mixed"]]
    assert len(set(mixed)) == 34
    assert len({recipe.architecture for recipe in mixed}) == 7
    assert len({recipe.augmentation for recipe in mixed}) >= 8
    uniform = [task.recipe for task in found["uniform"]]
    assert {recipe.architecture.partition("@")[0] for recipe in uniform} == {"plain"}
    assert {recipe.augmentation for recipe in uniform} == {"none", "rhf"}
    assert len({recipe.seed for recipe in uniform}) == 30
    stable = populations.stable()
    assert {task.recipe for task in stable} <= set(mixed)
    assert {task.examples for task in stable} == {10_000}
