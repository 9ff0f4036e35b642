"""What the study keeps: whole or not at all, found again after a kill."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

from benchmarks.study import data, measuring, running, table_six, training, work
from benchmarks.study.keep import Store, key
from benchmarks.study.measured import Measured
from benchmarks.study.work import Task
from tests.benchmarks.tiny import RECIPE, digits, trained

ROOT = Path(__file__).resolve().parents[2]
WANTED = measuring.Wanted(((2, "delete", 0), (2, "noise", 3)), ((2, 14),), ("crop-0.80",))


def measured() -> Measured:
    return measuring.measure(trained(), RECIPE, digits(), WANTED, 0, 31)


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_hits_come_back_as_they_were(tmp_path: Path) -> None:
    store, before = Store(tmp_path), measured()
    store.keep_hits("a", before)
    after = store.hits("a")
    assert after is not None
    assert (after.recipe, after.classes, after.size) == (before.recipe, before.classes, before.size)
    assert np.array_equal(after.labels, before.labels)
    assert np.array_equal(after.clean, before.clean)
    for one, other in ((after.mutants, before.mutants), (after.shifts, before.shifts), (after.unseen, before.unseen)):
        assert {name: hits.tolist() for name, hits in one.items()} == {
            name: hits.tolist() for name, hits in other.items()
        }
    # A bit a hit: 14 rows of 31 examples, and what the format adds.
    assert files(tmp_path)[0].stat().st_size < 4000


def test_weights_come_back_as_they_were(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.keep_weights("a", trained().state_dict(), {"p": 0.25})
    found = store.weights("a")
    assert found is not None
    assert found[1]["p"] == 0.25
    assert found[1]["torch"] == str(torch.__version__)
    assert all(torch.equal(found[0][name], value) for name, value in trained().state_dict().items())


@pytest.mark.parametrize("cut", [0, 7, 100, 0.5, 0.99])
def test_half_written_files_do_not_count(cut: float, tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.keep_hits("a", measured())
    store.keep_weights("a", trained().state_dict(), {"p": None})
    for path in files(tmp_path):
        size = path.stat().st_size
        os.truncate(path, int(cut * size) if cut < 1 else int(cut))
    assert store.hits("a") is None
    assert store.weights("a") is None


def test_a_write_that_is_stopped_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        Store(tmp_path).keep_hits("a", measured())
    assert files(tmp_path) == []


def test_what_a_kill_left_of_a_write_is_not_read(tmp_path: Path) -> None:
    store = Store(tmp_path)
    (tmp_path / "hits").mkdir()
    (tmp_path / "hits" / "a.x81k2.part").write_bytes(b"half")
    assert store.hits("a") is None


def test_a_key_depends_on_everything_that_decides() -> None:
    others = [replace(RECIPE, seed=77), replace(RECIPE, epochs=77), replace(RECIPE, examples=77)]
    others += [replace(RECIPE, architecture="z"), replace(RECIPE, augmentation="z"), replace(RECIPE, dataset="z")]
    names = {
        key(RECIPE, data="x", training=1),
        key(RECIPE, data="y", training=1),
        key(RECIPE, data="x", training=2),
        *(key(recipe, data="x", training=1) for recipe in others),
    }
    assert len(names) == 9
    assert key(RECIPE, data="x", training=1) == key(replace(RECIPE), training=1, data="x")


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "PIECE", 20)


@pytest.mark.usefixtures("small_pieces")
def test_only_what_is_missing_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, task = Store(tmp_path), Task(replace(RECIPE, epochs=1), ("table", "unseen"), 40)
    assert work.result(task, store) is None
    work.do(task, store)
    assert [path.parent.name for path in files(tmp_path)] == ["hits"] * 4 + ["weights"]
    first = work.result(task, store)
    assert first is not None
    assert len(first.measured.labels) == 40
    lost = files(tmp_path)[1]
    lost.unlink()
    assert work.result(task, store) is None
    starts = []
    original = measuring.measure

    def watched(*arguments: object) -> Measured:
        starts.append(arguments[4])
        return original(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(measuring, "measure", watched)
    monkeypatch.setattr(training, "train", lambda *_: pytest.fail("trained again"))
    work.do(task, store)
    assert len(starts) == 1
    second = work.result(task, store)
    assert second is not None
    assert np.array_equal(first.measured.clean, second.measured.clean)
    # More examples: only those that are new are measured.
    work.do(replace(task, examples=60), store)
    assert starts[1:] == [40, 40]


@pytest.mark.usefixtures("small_pieces")
def test_ours_trains_the_network_without_augmentation_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    plain = Task(replace(RECIPE, epochs=1, examples=200), ("table",), 20)
    ours = replace(plain, recipe=replace(plain.recipe, augmentation="ours"))
    work.do(ours, store)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "weights").iterdir()}
    assert len(kept) == 2
    work.do(plain, store)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "weights").iterdir()} == kept
    results = [work.result(task, store) for task in (plain, ours)]
    assert results[0] is not None
    assert results[1] is not None
    assert results[0].p is None
    assert results[1].p == pytest.approx(
        training.guided_probability(work.trained(plain.recipe, data.load("digits"), store).model, data.load("digits"))
    )


@pytest.mark.slow
def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    """Killed for good (SIGKILL) while it works, the command finds what was finished and does the rest."""
    command = [sys.executable, "-m", "benchmarks.study_dscore", "--smallest", "--stages", "table", "--state"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [*command, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment
    ) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if line.startswith("table: 1 of 12"):
                run.send_signal(signal.SIGKILL)
                break
    assert run.returncode == -signal.SIGKILL
    plan = table_six.tasks(table_six.SMALLEST, (0, 1), table_six.SMALLEST_EXAMPLES)
    tasks = [task for row in plan["digits"] for task in row]
    store = Store(tmp_path)
    done = [work.result(task, store) is not None for task in tasks]
    assert done[0]
    assert sum(done) in (1, 2)
    console = Console(record=True, width=200, file=io.StringIO())
    assert len(running.run("rest", tasks[:3], store, None, 1, console)) == 3
    assert f"{sum(done)} of 3 networks were kept" in console.export_text()


@pytest.mark.slow
def test_several_processes_do_the_same(tmp_path: Path) -> None:
    tasks = [Task(replace(RECIPE, epochs=1, examples=128, seed=seed), ("table",), 20) for seed in (0, 1)]
    found = []
    for jobs in (1, 2):
        console = Console(file=io.StringIO())
        results = running.run("both", tasks, Store(tmp_path / str(jobs)), None, jobs, console)
        found.append([result.measured.mutants[3, "delete", 0].tolist() for result in results])
    assert found[0] == found[1]
    assert found[0][0] != found[0][1]


def test_a_terminal_gets_a_bar(tmp_path: Path) -> None:
    tasks = [Task(replace(RECIPE, epochs=1, examples=128), ("table",), 20)]
    console = Console(file=io.StringIO(), force_terminal=True, record=True, width=120)
    running.run("bar", tasks, Store(tmp_path), None, 1, console)
    text = console.export_text()
    assert "bar: 0 of 1 networks were kept, 1 remain" in text
    assert "1/1" in text
