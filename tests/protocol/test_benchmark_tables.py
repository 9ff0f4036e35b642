"""The script behind docs/nested-cv-tables.md: its figures, memory and page, on data drawn here and on a real set."""

# mypy: disable-error-code="import-untyped,misc,untyped-decorator,no-any-return,type-arg,no-untyped-def,no-untyped-call"
from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock
from sklearn.model_selection import StratifiedKFold

from benchmarks import nested_cv_report as report
from benchmarks import nested_cv_tables as tables
from benchmarks import nested_cv_work as work
from benchmarks.nested_cv_paper import PAPER
from benchmarks.nested_cv_store import Store
from pytest_dscore.protocol import KernelRidgePress, compare_protocols

from .raetsch import FOLDER
from .raetsch import load as load_raetsch

ROOT = Path(__file__).resolve().parents[2]
SEED_TEXT = ROOT.parent / "shared" / "seeds" / "nested_cv.txt"
SET = "thyroid"


def write_set(folder: Path, rows: int = 215, seed: int = 0) -> None:
    """A data set of our own in the shape of the thyroid file, with two 'original' splits."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    t = np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 + rng.normal(size=rows) > 0.5, 1, 0)
    orders = np.array([rng.permutation(rows) for _ in range(2)])
    folder.mkdir(exist_ok=True)
    np.savez(folder / f"{SET}.npz", x=X, t=t, train=orders[:, :140], test=orders[:, 140:215])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_set(tmp_path / "data")
    return tmp_path


def run(folder: Path, *more: str) -> int:
    places = ["--data", str(folder / "data"), "--out", str(folder / "out")]
    return tables.main([*places, "--sets", SET, "--splits", "2", *more])


def stored(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "out" / "results.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def column(folder: Path, table: str, key: str) -> list[Any]:
    return [record[key] for record in stored(folder) if record["table"] == table]


def test_the_subset_is_what_the_library_gives(folder: Path) -> None:
    """Errors, medians and external errors are those of compare_protocols on the same folds."""
    assert run(folder, "--table", "rbf", "median", "ard", "external") == 0
    with np.load(folder / "data" / f"{SET}.npz") as archive:
        X, y = archive["x"], np.where(archive["t"] > 0, 1, -1)
        splits = list(zip(archive["train"], archive["test"], strict=True))
    data = work.load(SET, folder / "data", 5)
    assert data.original == 2
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(data.splits, splits, strict=False))
    compared = compare_protocols(KernelRidgePress(), None, X, y, outer=data.splits)
    assert column(folder, "rbf", "error") == pytest.approx(list(compared.internal.fold_errors), abs=1e-12)
    assert column(folder, "median", "error") == pytest.approx(list(compared.median.fold_errors[:2]), abs=1e-12)
    ard = KernelRidgePress("ard").fit(X[splits[0][0]], y[splits[0][0]])
    assert column(folder, "ard", "press")[0] == ard.press_
    assert column(folder, "ard", "error")[0] == 1 - ard.score(X[splits[0][1]], y[splits[0][1]])
    rows = data.splits[1][0]
    splitter = StratifiedKFold(10, shuffle=True, random_state=1)
    compared = compare_protocols(KernelRidgePress(), None, X[rows], y[rows], outer=splitter)
    for name in ("internal", "external"):
        assert column(folder, "external", name)[1] == pytest.approx(
            getattr(compared, name).fold_errors.mean(), abs=1e-12
        )


def test_the_page_has_every_figure_beside_the_paper_s(folder: Path) -> None:
    page = folder / "page" / "tables.md"
    assert run(folder, "--page", str(page)) == 0
    text = page.read_text(encoding="utf-8")
    errors = 100 * np.array(column(folder, "rbf", "error"))
    mean, se = errors.mean(), errors.std(ddof=1) / len(errors) ** 0.5
    gap = (mean - 4.747) / np.hypot(se, 0.235)
    # The median needs five splits, so five are there.
    assert f"| {SET} | 5 (2) | {mean:.3f} ± {se:.3f} | 4.747 ± 0.235 | {gap:+.1f} |" in text
    halves = np.array(column(folder, "ard", "press")) / 2
    assert f"| {halves.mean():.3f} ± {halves.std(ddof=1) / 2**0.5:.3f} | 6.816 ± 0.164 |" in text
    inside, outside = (100 * np.array(column(folder, "external", key)) for key in ("internal", "external"))
    bias = inside - outside
    assert f"| {bias.mean():.3f} ± {bias.std(ddof=1) / 2**0.5:.3f} | 0.536 ± 0.073 |" in text
    assert f"rbf {SET} 5 of 100" in text
    assert "Original ones at hand: thyroid 2." in text
    assert f"![PRESS falls, the error turns and rises]({tables.PICTURE})" in text
    assert text.endswith(f"]({tables.PICTURE})\n")
    picture = (page.parent / tables.PICTURE).read_text(encoding="utf-8")
    assert "true error" in picture
    assert sorted(path.name for path in page.parent.iterdir()) == sorted([tables.PICTURE, page.name])
    assert run(folder, "--page", str(page)) == 0
    assert (page.read_text(encoding="utf-8"), (page.parent / tables.PICTURE).read_text("utf-8")) == (text, picture)


def test_choices_are_the_median_protocol_with_other_first_splits(folder: Path) -> None:
    data = work.load(SET, folder / "data", 7)
    results = [work.internal_split(data, "rbf", index) for index in range(7)]
    found = [work.median_choice(data, results, index)["bias"] for index in range(2)]
    assert found == [work.median_choice(data, results, index)["bias"] for index in range(2)]
    chosen = list(np.random.default_rng(1).choice(7, 5, replace=False))
    order = chosen + [i for i in range(7) if i not in chosen]
    compared = compare_protocols(KernelRidgePress(), None, data.X, data.y, outer=[data.splits[i] for i in order])
    assert found[1] == pytest.approx(compared.bias["median"].mean, abs=1e-9)


def test_finished_work_is_not_done_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(folder, "--table", "rbf") == 0
    before = stored(folder)

    def forbidden(*_: Any) -> None:
        raise AssertionError("done again")

    monkeypatch.setattr(work, "internal_split", forbidden)
    assert run(folder, "--table", "rbf") == 0
    assert stored(folder) == before
    write_set(folder / "data", seed=1)
    with pytest.raises(AssertionError, match="done again"):
        run(folder, "--table", "rbf")


def test_more_splits_keep_the_first_ones(folder: Path) -> None:
    few, more = (work.load(SET, folder / "data", n).splits for n in (6, 9))
    assert all(np.array_equal(a[0], b[0]) and np.array_equal(a[1], b[1]) for a, b in zip(few, more, strict=False))
    assert all(len(train) == 140 and len(test) == 75 and not set(train) & set(test) for train, test in more)


def test_a_line_cut_off_is_done_again(folder: Path) -> None:
    assert run(folder, "--table", "rbf") == 0
    before = column(folder, "rbf", "error")
    path = folder / "out" / "results.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    assert run(folder, "--table", "rbf") == 0
    assert column(folder, "rbf", "error") == before


def test_a_foreign_line_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "results.jsonl").write_text('{"not": "ours"}\n', encoding="utf-8")
    assert run(folder, "--table", "rbf") == 2
    assert "line 1 is no result" in capsys.readouterr().err


def test_two_at_once_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "out").mkdir()
    with FileLock(folder / "out" / "lock"):
        assert run(folder, "--table", "rbf") == 2
    assert "another process" in capsys.readouterr().err


def test_no_time_means_show_only(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "--minutes", "0") == 0
    assert not (folder / "out").exists()
    assert "rbf thyroid 0 of 100" in capsys.readouterr().out
    assert run(folder, "--table", "rbf", "--minutes", "1e-9") == 1
    assert "2 pieces are left" in capsys.readouterr().err


def test_ctrl_c_keeps_what_is_done(folder: Path) -> None:
    # A shell that runs the tests in the background has SIGINT ignored, and children inherit that.
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code += f"; sys.path.insert(0, {str(ROOT)!r}); from benchmarks.nested_cv_tables import main; sys.exit(main())"
    places = ["--data", str(folder / "data"), "--out", str(folder / "out"), "--sets", SET, "--table", "rbf", "ard"]
    child = subprocess.Popen([sys.executable, "-c", code, *places], stderr=subprocess.PIPE, text=True)
    path = folder / "out" / "results.jsonl"
    deadline = time.monotonic() + 50
    while not (path.exists() and path.read_bytes().count(b"\n") >= 2) and time.monotonic() < deadline:
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    _, told = child.communicate(timeout=30)
    assert child.returncode == 130, told
    assert "goes on from here" in told
    assert len(stored(folder)) >= 2
    assert Store(path).get(("rbf", SET, 0, work.load(SET, folder / "data", 2).fingerprint)) is not None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sets", "banana"], "lacks banana.npz"),
        (["--splits", "0"], "at least 1"),
        (["--table", "svm"], "invalid choice"),
    ],
)
def test_bad_arguments_are_named(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    with pytest.raises(SystemExit):
        tables.main(["--data", str(folder / "data"), "--sets", SET, *arguments])
    assert words in capsys.readouterr().err


def test_the_most_telling_pieces_come_first() -> None:
    pieces = tables.plan(tables.TABLES, list(PAPER), 100)
    assert len(pieces) == len(set(pieces)) == 7 * (400 + work.CHOICES) + 100
    assert all(piece.table in ("rbf", "median") for piece in pieces[: 7 * 200])
    assert {(piece.table, piece.name) for piece in pieces[-3 * 80 :]} == {
        ("ard", "banana"),
        ("ard", "diabetis"),
        ("ard", "twonorm"),
    }
    place = {piece: number for number, piece in enumerate(pieces)}
    for name in PAPER:
        assert place[tables.Piece("rbf", name, 4)] < place[tables.Piece("median", name, 0)]
        assert place[tables.Piece("rbf", name, 99)] < place[tables.Piece("choices", name, 0)]
        assert place[tables.Piece("rbf", name, 99)] < place[tables.Piece("external", name, 0)]


@pytest.mark.parametrize(("table", "needed"), [("median", 5), ("external", 3), ("choices", 3), ("ard", 0)])
def test_a_table_brings_what_it_needs(table: str, needed: int) -> None:
    pieces = tables.plan([table], [SET], 3)
    assert len([piece for piece in pieces if piece.table == "rbf"]) == needed
    assert len([piece for piece in pieces if piece.table == table]) == (0 if table == "choices" else 3)


def test_curve_steps_follow_the_search() -> None:
    found = work.curve(0)
    assert set(found) == set(work.CURVES)
    for steps in found.values():
        assert np.all(np.diff(steps["press"]) <= 1e-12)
        assert min(steps["error"]) > work.BAYES_ERROR - 0.015
    noisy = found["ard, 8 columns of noise"]
    assert noisy["press"][-1] < noisy["press"][8] < noisy["press"][0]


def test_the_paper_s_figures_are_copied_right() -> None:
    if not SEED_TEXT.exists():
        pytest.skip(f"{SEED_TEXT} is absent: the paper's figures were not compared with their source")
    text = SEED_TEXT.read_text(encoding="utf-8").replace("\\mathbf{", "").replace("}", "")
    for name, printed in PAPER.items():
        lines = [line for line in text.splitlines() if line.startswith(name.replace("_", " ") + "\t")]
        cells = [[float(n) for n in re.findall(r"[-+]?\d+\.\d+", line)] for line in lines]
        kernels, median, external = cells[0], cells[-2], cells[-1]
        assert kernels == [*printed.rbf_error, *printed.ard_error, *printed.rbf_press, *printed.ard_press]
        assert median[-2:] == list(printed.median_bias)
        assert external == [*printed.cv_external, *printed.cv_internal, *printed.external_bias]


def test_a_real_set_comes_near_the_paper(tmp_path: Path) -> None:
    """Two splits of thyroid: PRESS and error within what two splits can say (four of their standard errors)."""
    load_raetsch(SET)
    places = ["--data", str(FOLDER), "--out", str(tmp_path)]
    assert tables.main([*places, "--sets", SET, "--splits", "2", "--table", "rbf", "ard"]) == 0
    data = work.load(SET, FOLDER, 2)
    found = report.Found(Store(tmp_path / "results.jsonl"), {SET: data})
    for kernel in ("rbf", "ard"):
        halves, errors = found.column(kernel, SET, "press", 0.5), found.column(kernel, SET, "error", 100)
        assert len(errors) == 2
        for here, (mean, se) in (
            (halves, getattr(PAPER[SET], f"{kernel}_press")),
            (errors, getattr(PAPER[SET], f"{kernel}_error")),
        ):
            assert abs(here.mean() - mean) < 4 * se * 50**0.5
