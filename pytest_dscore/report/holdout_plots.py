"""Pictures of hold-out budgets. Matplotlib is imported when one is drawn, and never opens a window."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_dscore.errors import DScoreError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pytest_dscore.holdout.commands._burning import Burning
    from pytest_dscore.holdout.commands.plot import Curves

_FORMATS = (".png", ".svg", ".pdf")
# Colours that colour-blind readers tell apart (Okabe and Ito), and lines that differ without colour too.
_STYLES = {
    "union": {"color": "#444444", "linestyle": "--"},
    "similarity": {"color": "#0072B2", "linestyle": "-"},
    "naive-bayes": {"color": "#D55E00", "linestyle": "-."},
}
_LABELS = {
    "union": "union bound",
    "similarity": "similarity bound",
    "naive-bayes": "naive Bayes (assumption A1)",
}
_OWN = {"color": "#0072B2", "linestyle": "-"}
#: A double ends at 1.8e308, and a ratio of testable models may not.
_LARGEST_LOG10 = 300


def plot_history(burning: Burning, similarity: NDArray[np.float64], path: Path) -> None:
    """Draw a hold-out's budget burning down, the epsilon still guaranteed, and the similarity of its models.

    Parameters
    ----------
    burning
        From `burn_down`.
    similarity
        Shape (k, k), in the order of the record.
    path
        Where to draw; its ending says what (.png, .svg, .pdf).

    Raises
    ------
    DScoreError
        Another ending.
    OSError
        The file cannot be written.
    """
    figure = _figure(path, 11.0, 5.6)
    grid = figure.add_gridspec(2, 2, width_ratios=(1.15, 1))
    left, still = figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0])
    marker = "o" if len(burning.used) < 12 else None
    own, union = f"bound '{burning.bound}'", "plain union bound"
    if burning.left:
        left.plot(burning.used, [100 * x for x in burning.left], label=own, marker=marker, **_OWN)
        if burning.bound != "union":
            left.plot(burning.used, [100 * x for x in burning.union_left], label=union, **_STYLES["union"])
        left.set_ylim(-3, 103)
        left.legend(frameon=False)
    else:
        left.text(0.5, 0.5, "no epsilon is declared", ha="center", va="center", transform=left.transAxes)
    left.set_ylabel("budget left, %")
    left.set_title(_safe(burning.title), fontsize="medium")
    still.plot(burning.used, [100 * x for x in burning.guaranteed], label=own, marker=marker, **_OWN)
    if burning.bound != "union":
        still.plot(burning.used, [100 * x for x in burning.union_guaranteed], label=union, **_STYLES["union"])
    if burning.epsilon is not None:
        still.axhline(100 * burning.epsilon, color="#CC0000", linewidth=1, label="epsilon as declared")
    still.set_ylim(0, 115 * max(*burning.guaranteed, *burning.union_guaranteed, burning.epsilon or 0))
    still.set_ylabel("epsilon still guaranteed, +-%")
    still.set_xlabel("models used")
    still.legend(frameon=False, loc="lower right")
    for axes in (left, still):
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.25)
    _heatmap(figure, figure.add_subplot(grid[:, 1]), similarity)
    _save(figure, path)


def _heatmap(figure: Any, axes: Any, similarity: NDArray[np.float64]) -> None:
    k = len(similarity)
    # From the least to 1, so that differences among alike models are seen; one model alone has none.
    lowest = min(float(similarity.min()), 0.999)
    edges = (0.5, k + 0.5, k + 0.5, 0.5)
    shown = axes.imshow(similarity, vmin=lowest, vmax=1, cmap="viridis", extent=edges, interpolation="nearest")
    bar = figure.colorbar(shown, ax=axes, fraction=0.046)
    bar.set_label("share of examples on which two models agree")
    axes.set_title("similarity of the models", fontsize="medium")
    axes.set_xlabel("model, in the order of the record")
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_major_locator().set_params(integer=True)


def plot_curves(curves: Curves, path: Path) -> None:
    """Draw testable models against similarity (the paper's figure 1b) and the gain over union (its figure 2).

    Parameters
    ----------
    curves
        From `compute`.
    path
        Where to draw; its ending says what (.png, .svg, .pdf).

    Raises
    ------
    DScoreError
        Another ending.
    OSError
        The file cannot be written.
    """
    figure = _figure(path, 13.0, 4.4)
    models, gain, by_epsilon = figure.subplots(1, 3)
    for bound, counts in curves.by_similarity.items():
        style = {**_STYLES[bound], "label": _LABELS[bound]}
        models.plot(curves.similarities, [_log10(count) for count in counts], **style)
        if bound != "union":
            gain.plot(curves.similarities, _gains(counts, curves.by_similarity["union"]), **style)
            ratios = _gains(curves.by_epsilon[bound], curves.by_epsilon["union"])
            by_epsilon.plot([100 * e for e in curves.epsilons], ratios, **style)
    percent = f"+-{100 * curves.epsilon:g} %"
    models.set_ylabel("testable models")
    models.set_title(f"models within {percent} (figure 1b)", fontsize="medium")
    gain.set_title(f"gain over union at {percent} (figure 2, left)", fontsize="medium")
    by_epsilon.set_title(f"gain over union at similarity {curves.similarity:g} (figure 2, right)", fontsize="medium")
    for axes in (models, gain):
        axes.set_xlabel("similarity of the models")
        axes.axvline(curves.similarity, color="#999999", linewidth=1, linestyle=":")
    by_epsilon.set_xlabel("epsilon, %")
    by_epsilon.axvline(100 * curves.epsilon, color="#999999", linewidth=1, linestyle=":")
    for axes in (gain, by_epsilon):
        axes.set_ylabel("times as many models")
    for axes in (models, gain, by_epsilon):
        axes.yaxis.set_major_formatter(lambda value, _: f"$10^{{{value:g}}}$")
        axes.yaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.25)
    models.legend(frameon=False)
    figure.suptitle(
        f"n = {curves.n:,} examples, error rate {100 * curves.error:g} %, probability {100 * (1 - curves.delta):g} %",
        fontsize="medium",
    )
    _save(figure, path)


def _gains(counts: tuple[int, ...], union: tuple[int, ...]) -> list[float]:
    """Return the logarithms of the ratios; NaN, which leaves a gap, where the union bound allows no model."""
    pairs = zip(counts, union, strict=True)
    return [_log10(count) - _log10(base) if base else math.nan for count, base in pairs]


def _log10(count: int) -> float:
    return min(math.log10(count), _LARGEST_LOG10) if count else math.nan


def _figure(path: Path, width: float, height: float) -> Any:
    """Return an empty figure of its own, apart from whatever else draws in this process."""
    if path.suffix.lower() not in _FORMATS:
        raise DScoreError(f"the picture {path} must end in one of {', '.join(_FORMATS)}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=120)


def _safe(text: str) -> str:
    """Return text in which no dollar sign begins a formula, and no odd character lacks a glyph."""
    return text.encode("ascii", "backslashreplace").decode().replace("$", r"\$")
