"""The page beside Cawley and Talbot's tables, and the picture of over-fitting, from the results that are there."""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

import datetime
import importlib.metadata
import platform
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.nested_cv_paper import PAPER, PAPER_SPLITS, Pair
from benchmarks.nested_cv_store import Store
from benchmarks.nested_cv_work import BAYES_ERROR, CURVE_ROWS, CURVE_STOPS, CURVES, STOPS, Benchmark
from pytest_dscore.protocol.compare import Bias, paired_bias

Floats = NDArray[np.float64]
COMMAND = "python -m benchmarks.nested_cv_tables --page docs/nested-cv-tables.md"
_PACKAGES = ("numpy", "scipy", "scikit-learn")
_MORE_THAN = 2.0


class Found:
    """The results that are there, by table and set.

    Parameters
    ----------
    store
        Finished work.
    sets
        Data sets by name.
    """

    def __init__(self, store: Store, sets: Mapping[str, Benchmark]) -> None:
        self.store = store
        self.sets = sets
        self.gaps: list[tuple[str, float]] = []

    def rows(self, table: str, name: str) -> dict[int, dict[str, Any]]:
        """Results of one table and set by split, as far as they are there without a hole at the beginning."""
        data = self.sets[name].fingerprint if name in self.sets else ""
        found: dict[int, dict[str, Any]] = {}
        while (result := self.store.get((table, name, len(found), data))) is not None:
            found[len(found)] = result
        return found

    def column(self, table: str, name: str, key: str, scale: float) -> Floats:
        """One figure of every split, times `scale`."""
        return scale * np.array([row[key] for row in self.rows(table, name).values()])

    def beside(self, what: str, here: Pair, paper: Pair) -> str:
        """Three cells: here, paper, difference in standard errors of the difference; the last is kept for the sum."""
        gap = (here[0] - paper[0]) / float(np.hypot(here[1], paper[1]))
        self.gaps.append((what, gap))
        return f"{pair(here)} | {pair(paper)} | {gap:+.1f}"

    def splits(self, name: str, done: int) -> str:
        """Number of splits, and which of them are original realisations."""
        original = min(self.sets[name].original, done)
        return f"{done} ({original})"


def pair(figure: Pair) -> str:
    """Mean and standard error."""
    return f"{figure[0]:.3f} ± {figure[1]:.3f}"


def mean(values: Floats) -> Pair:
    """Mean and its standard error, splits counted as independent (as in the paper)."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def page(found: Found, picture: str | None) -> str:
    """The whole page in Markdown."""
    tables = [internal(found, "rbf"), internal(found, "ard"), contrast(found), stops(found), median(found)]
    tables += [external(found), curve_table(found, picture)]
    parts = [head(found), unfinished(found), summary(found), *tables]
    return "\n\n".join(part for part in parts if part) + "\n"


def head(found: Found) -> str:
    """What this is, made how, with what."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES)
    counts = ", ".join(f"{name} {found.sets[name].original}" for name in found.sets)
    splits = (
        f"The paper uses {PAPER_SPLITS} realisations of each set. Original ones at hand: {counts}. They come first, "
        "and which of the 100 they are is not known; the rest are random splits of the same sizes (seed 0). In the "
        "column *splits*, the number in brackets says how many are original."
    )
    return f"""# Cawley and Talbot's tables, beside figures from here

Made by `{COMMAND}` on
{datetime.date.today().isoformat()} with Python {platform.python_version()}, {versions};
{found.store.hours():.1f} hours of one core that others used too. Do not edit: run it again (finished splits are kept,
see [benchmarks](../benchmarks/README.md)).

Kernel ridge regression, ridge and scale(s) chosen by Nelder-Mead over PRESS (`KernelRidgePress`, default settings).
Cells are mean ± standard error over splits. The *difference* is (here - paper) over the root of the sum of the two
squared standard errors; splits count as independent, as in the paper. PRESS is halved, as it is in the paper's tables.

{wrapped(splits)}"""


def wrapped(text: str) -> str:
    """Prose in lines of at most 120 characters."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def unfinished(found: Found) -> str:
    """What is short of the paper's number of splits or folds."""
    short = [
        f"{table_name} {name} {done} of {PAPER_SPLITS}"
        for table_name in ("rbf", "median", "ard", "external")
        for name in found.sets
        if (done := len(found.rows(table_name, name))) < PAPER_SPLITS
    ]
    return wrapped(f"Unfinished (the same command goes on): {'; '.join(short)}.") if short else ""


def table(title: str, note: str, columns: str, lines: Iterable[str]) -> str:
    """A titled Markdown table; nothing where there are no lines."""
    body = list(lines)
    if not body:
        return ""
    rule = "|" + "---|" * columns.count("|", 1)
    return "\n".join([f"## {title}", "", *([wrapped(note), ""] if note else []), columns, rule, *body])


def internal(found: Found, kernel: str) -> str:
    """Knowl 5: test error and PRESS of one kernel."""
    lines = []
    for name in found.sets:
        errors, press = found.column(kernel, name, "error", 100), found.column(kernel, name, "press", 0.5)
        if len(errors) < 2:
            continue
        paper_error, paper_press = getattr(PAPER[name], f"{kernel}_error"), getattr(PAPER[name], f"{kernel}_press")
        error = found.beside(f"{name}, {kernel.upper()}, error", mean(errors), paper_error)
        lines.append(
            f"| {name} | {found.splits(name, len(errors))} | {error} "
            f"| {found.beside(f'{name}, {kernel.upper()}, PRESS', mean(press), paper_press)} |"
        )
    columns = "| set | splits | error % | paper | difference | PRESS / 2 | paper | difference |"
    return table(f"Internal protocol, {kernel.upper()} kernel", "", columns, lines)


def contrast(found: Found) -> str:
    """The paper's point: ARD minus RBF on the same splits."""
    lines = []
    for name in found.sets:
        errors = [found.column(kernel, name, "error", 100) for kernel in ("ard", "rbf")]
        press = [found.column(kernel, name, "press", 0.5) for kernel in ("ard", "rbf")]
        n = min(len(errors[0]), len(errors[1]))
        if n < 2:
            continue
        worse = paired_bias(errors[0][:n] / 100, errors[1][:n] / 100)
        lower = paired_bias(press[0][:n] / 100, press[1][:n] / 100)
        paper = PAPER[name]
        press_gap, error_gap = paper.ard_press[0] - paper.rbf_press[0], paper.ard_error[0] - paper.rbf_error[0]
        cells = f"{signed(lower)} | {press_gap:+.3f} | {signed(worse)} | {error_gap:+.3f}"
        lines.append(f"| {name} | {found.splits(name, n)} | {cells} |")
    note = (
        "ARD minus RBF, paired split by split; p is Wilcoxon's. The paper's point is a negative first figure (the "
        "criterion is minimised further) with a positive second one (the model is worse)."
    )
    columns = "| set | splits | PRESS / 2 | paper | error (points) | paper |"
    return table("More parameters: lower PRESS, higher error", note, columns, lines)


def stops(found: Found) -> str:
    """ARD where its search would have stopped."""
    lines = []
    for name in found.sets:
        rows = list(found.rows("ard", name).values())
        if len(rows) < 2:
            continue
        paths = np.array([[*row["stopped"], [row["press"], row["error"]]] for row in rows])
        cells = [f"{paths[:, i, 0].mean() / 2:.2f} / {100 * paths[:, i, 1].mean():.2f}" for i in range(paths.shape[1])]
        paper = f"{PAPER[name].ard_press[0]:.2f} / {PAPER[name].ard_error[0]:.2f}"
        used = np.mean([row["evaluations"] for row in rows])
        lines.append(f"| {name} | {found.splits(name, len(rows))} | {' | '.join(cells)} | {used:.0f} | {paper} |")
    after = " | ".join(f"{stop}" for stop in STOPS)
    note = (
        "PRESS / 2 and test error in per cent of the best point met within so many evaluations of PRESS, and at the "
        "end of the search. How far the paper's search went is not known, but its ARD figures for banana and twonorm "
        "are above its RBF ones, which a finished search cannot give, since ARD contains RBF."
    )
    columns = f"| set | splits | {after} | end | evaluations | paper |"
    return table("ARD, stopped early", note, columns, lines)


def median(found: Found) -> str:
    """Knowl 7."""
    lines = []
    for name in found.sets:
        shortcut = found.column("median", name, "error", 1)
        n = len(shortcut)
        if n < 2:
            continue
        bias, paper = paired_bias(found.column("rbf", name, "error", 1)[:n], shortcut), PAPER[name].median_bias
        cells = found.beside(f"{name}, median bias", (bias.mean, bias.se), paper)
        choices = found.column("choices", name, "bias", 1)
        spread = ""
        if len(choices) > 1:
            width = float(choices.std(ddof=1))
            gap = (bias.mean - paper[0]) / float(np.hypot(np.hypot(bias.se, paper[1]), np.sqrt(2) * width))
            spread = f"{choices.mean():.3f} ({width:.3f}) | {gap:+.1f}"
        row = f"| {name} | {found.splits(name, n)} | {pair(mean(100 * shortcut))} | {cells} | {bias.p_value:.2g} |"
        lines.append(f"{row} {spread or ' | '} |")
    note = (
        "The median of the parameters that the first five splits selected, fixed for all splits. Bias: internal - "
        "median error in points, positive where the shortcut flatters. It hangs on which five splits come first, "
        "perhaps others than in the paper, and neither standard error knows: *five chosen anew* is the mean (standard "
        "deviation) of the bias over 20 random choices of five, *difference then* counts that deviation on both sides."
    )
    columns = "| set | splits | median error % | bias | paper | difference | p | five chosen anew | difference then |"
    return table("Median protocol, RBF kernel", note, columns, lines)


def external(found: Found) -> str:
    """Knowl 9."""
    lines = []
    for name in found.sets:
        honest, shortcut = (found.column("external", name, key, 1) for key in ("internal", "external"))
        if len(honest) < 2:
            continue
        bias, paper = paired_bias(honest, shortcut), PAPER[name]
        cells = [
            found.beside(f"{name}, cross-validation, {what}", here, there)
            for what, here, there in (
                ("internal error", mean(100 * honest), paper.cv_internal),
                ("external error", mean(100 * shortcut), paper.cv_external),
                ("external bias", (bias.mean, bias.se), paper.external_bias),
            )
        ]
        lines.append(f"| {name} | {found.splits(name, len(honest))} | {' | '.join(cells)} | {bias.p_value:.2g} |")
    note = (
        "Within the training rows of each split: selection once on all of them, then stratified ten-fold "
        "cross-validation with the result (external); beside it selection anew in every fold (internal). The summary "
        "of the paper at hand says 'the entire dataset'; that the paper's data sets are the training parts of its "
        "realisations is inferred from its standard errors, which are those of 100 such parts and not of repeated "
        "cross-validation of all rows."
    )
    columns = "| set | splits | internal % | paper | difference | external % | paper | difference"
    columns += " | bias (points) | paper | difference | p |"
    return table("External protocol, RBF kernel", note, columns, lines)


def signed(bias: Bias) -> str:
    """Mean, standard error and p-value."""
    return f"{bias.mean:+.3f} ± {bias.se:.3f}, p = {bias.p_value:.1g}"


def summary(found: Found) -> str:
    """How many figures lie how near the paper's; asked when the tables are made."""
    if not found.gaps:
        return ""
    far = [f"{what} ({gap:+.1f})" for what, gap in found.gaps if abs(gap) > _MORE_THAN]
    near = len(found.gaps) - len(far)
    text = f"{len(found.gaps)} figures stand beside the paper's, {near} of them within two standard errors."
    return wrapped(text + (f" The others: {'; '.join(far)}." if far else ""))


def curves(found: Found) -> dict[str, tuple[Floats, Floats]]:
    """PRESS per row and error (%), each of shape (realisations, stops), by kernel."""
    rows = list(found.rows("curve", "synthetic").values())
    if len(rows) < 2:
        return {}
    return {
        name: (np.array([r[name]["press"] for r in rows]), 100 * np.array([r[name]["error"] for r in rows]))
        for name in CURVES
    }


def curve_table(found: Found, picture: str | None) -> str:
    """Where the true error is least, and how far it has risen at the end."""
    lines = []
    found_curves = curves(found)
    for name, (press, error) in found_curves.items():
        best = int(error.mean(axis=0).argmin())
        rise = paired_bias(error[:, -1] / 100, error[:, best] / 100)
        lines.append(
            f"| {name} | {CURVE_STOPS[best]} | {press[:, best].mean():.4f} | {pair(mean(error[:, best]))} | "
            f"{press[:, -1].mean():.4f} | {pair(mean(error[:, -1]))} | {signed(rise)} |"
        )
    number = len(next(iter(found_curves.values()))[0]) if found_curves else 0
    note = (
        f"{number} realisations of {CURVE_ROWS} training rows (Bayes error {100 * BAYES_ERROR:.2f} %). At each number "
        "of evaluations of PRESS: the best point so far, its PRESS per row, and its error on 10,000 fresh rows. The "
        "stop with the least mean error was picked by looking, which flatters the rise after it a little. The columns "
        "of noise are not the paper's: they give ARD something to over-fit."
    )
    columns = (
        "| kernel | best stop | PRESS there | error % there | PRESS at the end | error % at the end | rise (points) |"
    )
    text = table("Over-fitting the criterion, synthetic benchmark", note, columns, lines)
    return text + (f"\n\n![PRESS falls, the error turns and rises]({picture})" if text and picture else "")


def draw(found: Found, path: Path) -> bool:
    """Write the picture; False where there is nothing to draw."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines = curves(found)
    if not lines:
        return False
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    for name, values in lines.items():
        for axes, steps in zip((left, right), values, strict=True):
            middle = steps.mean(axis=0)
            spread = steps.std(axis=0, ddof=1) / np.sqrt(len(steps))
            axes.plot(CURVE_STOPS, middle, marker=".", label=name)
            axes.fill_between(CURVE_STOPS, middle - spread, middle + spread, alpha=0.2)
    right.axhline(100 * BAYES_ERROR, color="grey", linestyle="--", label="Bayes error")
    for axes, title in ((left, "PRESS per row"), (right, "true error (%)")):
        axes.set(title=title, xscale="log", xlabel="evaluations of PRESS")
    right.legend()
    # Neither a date nor random identifiers: the same results give the same file.
    with rc_context({"svg.hashsalt": "nested-cv", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None})
    return True
