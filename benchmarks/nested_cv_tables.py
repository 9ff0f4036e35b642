"""Cawley and Talbot's tables (Knowls 5, 7 and 9) for kernel ridge regression, on the sets at hand.

``python -m benchmarks.nested_cv_tables --page docs/nested-cv-tables.md`` does all of it: many hours, but every
finished split is kept in ``--out`` (by default in the user's cache folder), so that it can be stopped with Ctrl-C or
``--minutes`` and started again. ``--sets heart --splits 20 --table rbf median`` does a part, ``--minutes 0`` only shows
what is there.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from benchmarks import nested_cv_report as report
from benchmarks import nested_cv_work as work
from benchmarks.nested_cv_paper import PAPER
from benchmarks.nested_cv_store import RESULTS, Key, Store, StoreError, open_store

TABLES = ("rbf", "median", "choices", "ard", "external", "curve")
DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "raetsch"
PICTURE = "nested-cv-overfitting.svg"
#: Small training sets, which are cheap; the paper's point about ARD is shown on these first.
SMALL = tuple(name for name, printed in PAPER.items() if printed.sizes[0] <= 200)
_FIRST = 20
_QUIET_SECONDS = 30.0


@dataclass(frozen=True)
class Piece:
    """One piece of work: a split, choice or realisation of one table."""

    table: str
    name: str
    index: int

    @property
    def stage(self) -> int:
        """The most telling pieces, and of those the cheap ones, have the lowest."""
        early, small = self.index < _FIRST, self.name in SMALL
        if self.table in ("rbf", "median"):
            return 0 if early else 1
        if self.table in ("choices", "curve"):
            return 2
        if small:
            return 3 if early else 4
        return (5 if early else 6) if self.table == "external" else (7 if early else 8)


def plan(tables: Sequence[str], sets: Sequence[str], splits: int) -> list[Piece]:
    """All pieces of work, in the order in which they are done."""
    counts = dict.fromkeys(tables, splits)
    if "median" in tables:
        counts["rbf"] = max(splits, work.MEDIAN_SPLITS)
    if "choices" in tables:
        counts["choices"] = work.CHOICES if splits >= work.CHOICE_SPLITS else 0
    if {"choices", "external"} & set(tables):
        counts["rbf"] = max(splits, counts.get("rbf", 0))
    wanted = [Piece("curve", "synthetic", index) for index in range(counts.pop("curve", 0))]
    wanted += [Piece(table, name, i) for name in sets for table, count in counts.items() for i in range(count)]
    return sorted(wanted, key=lambda piece: (piece.stage, TABLES.index(piece.table), piece.index))


class Runner:
    """Does pieces of work and keeps their results.

    Parameters
    ----------
    store
        Finished work.
    sets
        Data sets by name.
    """

    def __init__(self, store: Store, sets: Mapping[str, work.Benchmark]) -> None:
        self.store = store
        self.sets = sets

    def key(self, piece: Piece) -> Key:
        """Name of the result."""
        data = "" if piece.table == "curve" else self.sets[piece.name].fingerprint
        return (piece.table, piece.name, piece.index, data)

    def do(self, piece: Piece) -> None:
        """Do it and write the result down."""
        began = time.perf_counter()
        result = self._result(piece)
        self.store.add(self.key(piece), time.perf_counter() - began, result)

    def _result(self, piece: Piece) -> dict[str, Any]:
        if piece.table == "curve":
            return work.curve(piece.index)
        data = self.sets[piece.name]
        if piece.table in ("rbf", "ard"):
            return work.internal_split(data, piece.table, piece.index)
        if piece.table == "median":
            return work.median_split(data, self._first(piece.name, work.MEDIAN_SPLITS), piece.index)
        if piece.table == "choices":
            return work.median_choice(data, self._first(piece.name, work.CHOICE_SPLITS), piece.index)
        whole = self.store[self.key(Piece("rbf", piece.name, piece.index))]["params"]
        return work.external_split(data, whole, piece.index)

    def _first(self, name: str, number: int) -> list[dict[str, Any]]:
        return [self.store[self.key(Piece("rbf", name, index))] for index in range(number)]


class Tell(Protocol):
    """Called before each piece, and once at the end with None."""

    def __call__(self, done: int, piece: Piece | None) -> None: ...


@contextmanager
def progress(total: int) -> Iterator[Tell]:
    """A bar on a terminal; elsewhere a line every half minute."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(total)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as live:
        task = live.add_task("", total=total)
        yield lambda done, piece: live.update(task, completed=done, description=_name(piece))


def _lines(total: int) -> Tell:
    began = last = time.monotonic()

    def tell(done: int, piece: Piece | None) -> None:
        nonlocal last
        if piece is None or time.monotonic() - last >= _QUIET_SECONDS:
            last = time.monotonic()
            print(f"{last - began:6.0f} s  {done} of {total} pieces  {_name(piece)}", file=sys.stderr, flush=True)

    return tell


def _name(piece: Piece | None) -> str:
    return f"{piece.table} {piece.name} {piece.index}" if piece else "stopped"


def run(runner: Runner, pieces: Sequence[Piece], minutes: float | None) -> int:
    """Do what is not done yet, until it is done or the time is over; returns how many pieces are left."""
    left = [piece for piece in pieces if runner.key(piece) not in runner.store]
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    done = 0
    with progress(len(left)) as tell:
        for piece in left:
            if deadline is not None and time.monotonic() >= deadline:
                break
            tell(done, piece)
            runner.do(piece)
            done += 1
        tell(done, None)
    return len(left) - done


def write_page(found: report.Found, path: Path) -> None:
    """Page and picture, each put in place in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = path.parent / PICTURE
    draft = picture.with_name(f".{PICTURE}.{os.getpid()}.svg")
    drawn = report.draw(found, draft)
    if drawn:
        os.replace(draft, picture)
    text = report.page(found, PICTURE if drawn else None)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, path)


def default_out() -> Path:
    """A folder in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pytest-dscore" / "nested-cv-tables"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(prog="nested_cv_tables", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the IDA benchmark sets")
    parser.add_argument("--out", type=Path, default=default_out(), help="folder that keeps finished work")
    parser.add_argument("--sets", nargs="+", default=list(PAPER), choices=list(PAPER), metavar="SET")
    parser.add_argument("--table", nargs="+", default=list(TABLES), choices=TABLES, dest="tables", metavar="TABLE")
    parser.add_argument("--splits", type=int, default=100, help="splits of each set, and realisations of the curve")
    parser.add_argument("--minutes", type=float, help="stop after the piece at hand when this time is over")
    parser.add_argument("--page", type=Path, help="write the page here, the picture beside it; else print it")
    args = parser.parse_args(arguments)
    if args.splits < 1:
        parser.error("--splits must be at least 1")
    missing = [name for name in args.sets if not (args.data / f"{name}.npz").is_file()]
    if missing:
        parser.error(f"{args.data} lacks {', '.join(f'{name}.npz' for name in missing)}: pass --data or fewer --sets")
    return args


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for, show it; 1: not all done, 2: cannot work, 130: stopped with Ctrl-C."""
    args = parse(arguments)
    sets = {name: work.load(name, args.data, args.splits) for name in args.sets}
    left = 0
    try:
        if args.minutes is None or args.minutes > 0:
            with open_store(args.out) as store:
                pieces = plan(args.tables, args.sets, args.splits)
                left = run(Runner(store, sets), pieces, args.minutes)
        store = Store(args.out / RESULTS)
    except KeyboardInterrupt:
        print("Stopped. The same command goes on from here.", file=sys.stderr)
        return 130
    except StoreError as error:
        print(error, file=sys.stderr)
        return 2
    if args.page:
        write_page(report.Found(store, sets), args.page)
    else:
        print(report.page(report.Found(store, sets), None))
    if left:
        print(f"{left} pieces are left: the same command goes on from here.", file=sys.stderr)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
