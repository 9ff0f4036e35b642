"""Cawley and Talbot's tables (Knowls 5, 7 and 9) for kernel ridge regression, on the sets at hand.

``python benchmarks/nested_cv_tables.py --data ../shared/data/raetsch --sets heart --splits 20``; finished sets are kept
in the file named by ``--store`` and not run again.
"""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from pytest_dscore.protocol import KernelRidgePress, compare_protocols

# Per set: rows of the training and test part; the paper's test error (%), its standard error, PRESS as printed (half
# the sum) and its standard error, for RBF and then for ARD; bias of the median protocol (points) and its error.
_FIGURES = """
banana 400 4900 10.610 0.051 60.808 0.636 10.638 0.052 60.957 0.624 0.226 0.034
breast_cancer 200 77 26.727 0.466 70.632 0.328 28.766 0.391 66.789 0.385 0.351 0.195
diabetis 468 300 23.293 0.169 146.143 0.452 24.520 0.215 141.465 0.606 0.143 0.074
heart 170 100 16.730 0.359 42.576 0.356 22.810 0.411 37.023 0.494 1.010 0.186
thyroid 140 75 4.747 0.235 9.099 0.152 4.693 0.202 6.816 0.164 0.187 0.100
titanic 150 2051 22.483 0.085 48.332 0.622 22.562 0.109 47.801 0.623 0.076 0.077
twonorm 400 7000 2.846 0.021 32.539 0.279 4.292 0.086 35.620 0.490 -0.022 0.014
"""


def _paper() -> dict[str, dict[str, Any]]:
    table = {}
    for name, rows, tests, *rest in (line.split() for line in _FIGURES.split("\n") if line):
        v = [float(text) for text in rest]
        table[name] = {"sizes": (int(rows), int(tests)), "rbf": v[:4], "ard": v[4:8], "median": v[8:]}
    return table


PAPER = _paper()


def splits_of(data: dict[str, Any], sizes: tuple[int, int], wanted: int) -> tuple[list[Any], int]:
    """Original realisations as far as they are at hand, then random ones of the same sizes."""
    given = [(a.astype(int), b.astype(int)) for a, b in zip(data["train"], data["test"], strict=True)][:wanted]
    rng = np.random.default_rng(0)
    drawn = [rng.permutation(len(data["x"])) for _ in range(wanted - len(given))]
    return given + [(order[: sizes[0]], order[sizes[0] : sum(sizes)]) for order in drawn], len(given)


def run_set(name: str, folder: Path, wanted: int, kernels: list[str]) -> dict[str, Any]:
    """Errors, PRESS / 2 and the median protocol's bias for one set."""
    with np.load(folder / f"{name}.npz") as archive:
        data = {key: archive[key] for key in archive.files}
    X, y = data["x"], np.where(data["t"] > 0, 1, -1)
    splits, original = splits_of(data, PAPER[name]["sizes"], wanted)
    row: dict[str, Any] = {"splits": wanted, "original": original}
    for kernel in kernels:
        start = time.perf_counter()
        if kernel == "rbf":
            compared = compare_protocols(KernelRidgePress(), None, X, y, outer=splits)
            errors = compared.internal.fold_errors
            row["median"] = [compared.bias["median"].mean, compared.bias["median"].se, compared.bias["median"].p_value]
        else:
            errors = np.array([1 - KernelRidgePress("ard").fit(X[a], y[a]).score(X[b], y[b]) for a, b in splits])
        presses = np.array([KernelRidgePress(kernel).fit(X[a], y[a]).press_ / 2 for a, _ in splits[: min(wanted, 20)]])
        row[kernel] = [100 * errors.mean(), 100 * _se(errors), presses.mean(), _se(presses)]
        print(f"{name} {kernel}: {time.perf_counter() - start:.0f} s", flush=True)
    return row


def _se(values: Any) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def show(found: dict[str, Any]) -> None:
    """Print beside the paper, with the difference in standard errors of the difference."""
    print("| set | splits (original) | figure | here | paper | difference (s.e.) |\n|---|---|---|---|---|---|")
    for name, row in found.items():
        lines = []
        for kernel in ("rbf", "ard"):
            if kernel in row:
                for label, i in (("error %", 0), ("PRESS / 2", 2)):
                    lines.append((f"{kernel} {label}", row[kernel][i : i + 2], PAPER[name][kernel][i : i + 2]))
        if "median" in row:
            lines.append((f"median bias (p = {row['median'][2]:.2g})", row["median"][:2], PAPER[name]["median"]))
        for label, (here, se), (there, paper_se) in lines:
            gap = (here - there) / np.hypot(se, paper_se)
            cells = f"{here:.3f} +- {se:.3f} | {there:.3f} +- {paper_se:.3f} | {gap:+.1f}"
            print(f"| {name} | {row['splits']} ({row['original']}) | {label} | {cells} |")


def main() -> None:
    """Run the sets asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data" / "raetsch"
    )
    parser.add_argument(
        "--sets", nargs="+", default=["heart", "breast_cancer", "thyroid", "titanic"], choices=sorted(PAPER)
    )
    parser.add_argument("--kernels", nargs="+", default=["rbf"], choices=["rbf", "ard"])
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--store", type=Path, default=None, help="JSON file that keeps finished sets")
    args = parser.parse_args()
    if not args.data.is_dir():
        parser.error(f"{args.data} is no folder: pass --data with the IDA benchmark sets")
    found = json.loads(args.store.read_text()) if args.store and args.store.exists() else {}
    key = f"{args.splits} {' '.join(args.kernels)}"
    done = found.setdefault(key, {})
    for name in args.sets:
        if name not in done:
            done[name] = run_set(name, args.data, args.splits, args.kernels)
            if args.store:
                args.store.write_text(json.dumps(found))
    show({name: done[name] for name in args.sets})


if __name__ == "__main__":
    main()
