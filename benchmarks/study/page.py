"""Markdown and pictures of the study's pages."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Picture

from benchmarks.nested_cv_report import wrapped

__all__ = ["bullets", "canvas", "interval", "joined", "save", "section", "table", "wrapped"]


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table; nothing where there are no rows."""
    lines = [_row(row) for row in rows]
    if not lines:
        return ""
    return "\n".join([_row(columns), "|" + " --- |" * len(columns), *lines])


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def section(title: str, *parts: str) -> str:
    """Return a heading of the second level with paragraphs and tables below it; nothing where all are empty."""
    kept = [part for part in parts if part]
    return "\n\n".join([f"## {title}", *kept]) if kept else ""


def bullets(points: Iterable[str]) -> str:
    """Return a list of points, lines of at most 120 characters."""
    wrapper = textwrap.TextWrapper(120, "- ", "  ", break_long_words=False, break_on_hyphens=False)
    return "\n".join(wrapper.fill(point) for point in points)


def interval(value: float, lower: float, upper: float, spec: str = ".2f") -> str:
    """Return ``value [lower, upper]``."""
    return f"{value:{spec}} [{lower:{spec}}, {upper:{spec}}]"


def joined(names: Iterable[str]) -> str:
    """Return names in one phrase."""
    *rest, last = names
    return f"{', '.join(rest)} and {last}" if rest else last


def canvas(width: float, height: float) -> Picture:
    """Return an empty picture, inches."""
    picture = Picture(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(picture)
    return picture


def save(picture: Picture, path: Path) -> str:
    """Write an SVG, the same bytes for the same picture, and return the Markdown that shows it.

    The page is taken to lie beside the pictures' folder.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": "study", "svg.fonttype": "none"}):
        picture.savefig(path, metadata={"Date": None})
    # Matplotlib ends lines of its paths with blanks.
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")
    return f"![{path.stem.replace('-', ' ')}]({path.parent.name}/{path.name})"
