"""The pictures of the HTML report, as inline SVG.

Charts have no viewBox: their coordinates are percentages of the width they get, so that text keeps its size on a phone.
Colours are classes, so that the style sheet can change them in the dark. Numbers stand in the tables around the charts,
which is why most are hidden from screen readers.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from pytest_dscore.figure import Figure
from pytest_dscore.report.contents import Picture

_ROW = 30
_HEAT_SIDE = 300
_MOST_WRITTEN = 8
#: Where a burn-down begins, and how many pixels it goes down.
_TOP, _DEEP = 18, 100


@dataclass(frozen=True)
class Scale:
    """From values to percentages of a chart's width."""

    low: float = 0.0
    high: float = 1.0

    def at(self, value: float) -> float:
        """Where a value lies, within 0 and 100."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(1.0, max(0.0, share)), 3)

    def ticks(self) -> list[float]:
        """Five values, evenly spread."""
        return [self.low + (self.high - self.low) * i / 4 for i in range(5)]


def scale_of(figures: Sequence[Figure], also: Sequence[float] = ()) -> Scale:
    """A scale that holds figures with their intervals: 0 to 1 where it can, else wider."""
    values = [value for one in figures for value in (one.value, one.lower, one.upper)]
    finite = [value for value in (*values, *also, 0.0) if math.isfinite(value)]
    low, high = min(finite), max(finite)
    return Scale(0.0 if low >= 0 else _rounded(low), 1.0 if high <= 1 and low >= 0 else _rounded(high))


def _rounded(value: float) -> float:
    """The next number away from 0 of two significant digits."""
    if value == 0:
        return 0.0
    step = 10 ** (math.floor(math.log10(abs(value))) - 1)
    return math.copysign(math.ceil(abs(value) / step) * step, value)


def bar(
    figure: Figure, scale: Scale, limits: Sequence[float] = (), kind: str = "now", low: Figure | None = None
) -> Markup:
    """One row of a chart: an interval with its value, and a line for each threshold.

    Parameters
    ----------
    figure
        What is drawn.
    scale
        Of the whole chart.
    limits
        Thresholds; drawn from edge to edge, so that rows below each other make one line.
    kind
        ``now`` is filled, ``then`` is hollow.
    low
        A second figure, drawn hollow behind the first: what was there before.
    """
    parts = [Markup('<line class="axis" x1="0" x2="100%" y1="15" y2="15"/>'), *_interval(figure, scale, kind)]
    parts += [_limit(scale.at(limit)) for limit in limits]
    if low is not None and not math.isnan(low.value):
        a, b = scale.at(low.value), scale.at(figure.value)
        parts.append(Markup('<line class="moved" x1="{}%" x2="{}%" y1="15" y2="15"/>').format(a, b))
        parts.append(_dot(a, "then"))
    if not math.isnan(figure.value):
        parts.append(_dot(scale.at(figure.value), kind))
    return _chart(_ROW, parts)


def _interval(figure: Figure, scale: Scale, kind: str) -> list[Markup]:
    if math.isnan(figure.lower) or math.isnan(figure.upper):
        return []
    start, end = scale.at(figure.lower), scale.at(figure.upper)
    drawn = Markup('<rect class="interval {}" x="{}%" width="{}%" y="11" height="8" rx="4"/>')
    return [drawn.format(kind, start, round(end - start, 3))]


def _dot(at: float, kind: str) -> Markup:
    return Markup('<circle class="{}" cx="{}%" cy="15" r="5"/>').format(kind, at)


def _limit(at: float) -> Markup:
    return Markup('<line class="limit" x1="{0}%" x2="{0}%" y1="0" y2="100%"/>').format(at)


def axis(scale: Scale) -> Markup:
    """The numbers below a chart."""
    parts = []
    for i, value in enumerate(scale.ticks()):
        anchor = "start" if i == 0 else "end" if i == 4 else "middle"
        at = scale.at(value)
        parts.append(Markup('<line class="axis" x1="{0}%" x2="{0}%" y1="0" y2="5"/>').format(at))
        parts.append(Markup('<text x="{}%" y="19" text-anchor="{}">{:g}</text>').format(at, anchor, round(value, 4)))
    return _chart(24, parts)


def _chart(height: int, parts: Sequence[Markup]) -> Markup:
    head = Markup('<svg class="chart" width="100%" height="{}" aria-hidden="true" focusable="false">').format(height)
    return head + Markup("").join(parts) + Markup("</svg>")


def heatmap(
    values: Sequence[float],
    heat: Sequence[float],
    titles: Sequence[str],
    mean: Picture | None,
    *,
    kind: str,
    summary: str,
) -> Markup:
    """An n x n grid over the mean of the images: the more heat, the more colour.

    Parameters
    ----------
    values
        What is written in each cell, in reading order.
    heat
        How much colour each gets, in [0, 1].
    titles
        What each says when pointed at.
    mean
        What lies below; None for nothing.
    kind
        Class of the colour.
    summary
        What a screen reader says.
    """
    n = math.isqrt(len(values))
    ratio = 1.0 if mean is None else min(2.0, max(0.5, mean.height / mean.width))
    width, height = _HEAT_SIDE, round(_HEAT_SIDE * ratio)
    parts = [_below(mean, width, height)]
    for i, (value, share, title) in enumerate(zip(values, heat, titles, strict=True)):
        row, col = divmod(i, n)
        parts.append(_cell(col * width / n, row * height / n, width / n, height / n, value, share, title, kind, n))
    head = Markup('<svg class="heat {}" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(
        kind, width, height, summary
    )
    return head + Markup("").join(parts) + Markup("</svg>")


def _below(mean: Picture | None, width: int, height: int) -> Markup:
    if mean is None:
        return Markup('<rect class="blank" width="{}" height="{}"/>').format(width, height)
    drawn = Markup('<image class="pixels" width="{}" height="{}" preserveAspectRatio="none" href="{}"/>')
    return drawn.format(width, height, source(mean))


def _cell(
    x: float, y: float, width: float, height: float, value: float, share: float, title: str, kind: str, n: int
) -> Markup:
    opacity = round(0.82 * min(1.0, max(0.0, share)), 3)
    cell = Markup(
        "<g><title>{}</title>"
        '<rect class="cell" x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" fill-opacity="{}"/>'
    )
    drawn = cell.format(title, x, y, width, height, opacity)
    if n <= _MOST_WRITTEN:
        size = min(22.0, 0.27 * width, 0.5 * height)
        chip = Markup('<rect class="chip" x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" rx="{:.2f}"/>')
        drawn += chip.format(x + width / 2 - 1.5 * size, y + height / 2 - 0.75 * size, 3 * size, 1.5 * size, size / 3)
        text = Markup('<text x="{:.2f}" y="{:.2f}" font-size="{:.2f}" text-anchor="middle">{:.2f}</text>')
        drawn += text.format(x + width / 2, y + height / 2 + 0.35 * size, size, value)
    return drawn + Markup("</g>")


def legend(kind: str) -> Markup:
    """The colours of a heatmap from none to most."""
    cells = (
        Markup('<rect class="cell" x="{}" width="24" height="12" fill-opacity="{}"/>').format(
            24 * i, round(0.82 * i / 5, 3)
        )
        for i in range(6)
    )
    head = Markup('<svg class="legend {}" width="144" height="12" aria-hidden="true" focusable="false">').format(kind)
    return head + Markup("").join(cells) + Markup("</svg>")


def burn_down(uses: Sequence[tuple[int, float]]) -> Markup:
    """The share of a hold-out's budget that is left, against the models used; from (0, all) to the last state."""
    points = [(0, 0.0), *uses]
    most = max(1, points[-1][0])
    places = [(Scale(0, most).at(used), round(_TOP + _DEEP * min(1.0, share), 1)) for used, share in points]
    parts = []
    for share in (0.0, 0.5, 1.0):
        y = _TOP + _DEEP * share
        parts.append(Markup('<line class="axis" x1="0" x2="100%" y1="{0}" y2="{0}"/>').format(y))
        label = Markup('<text x="100%" y="{}" text-anchor="end">{:g} %</text>').format(y - 4, 100 * (1 - share))
        parts.append(label)
    for (x1, y1), (x2, y2) in pairwise(places):
        parts.append(Markup('<line class="burnt" x1="{}%" y1="{}" x2="{}%" y2="{}"/>').format(x1, y1, x2, y2))
    parts += [Markup('<circle class="now" cx="{}%" cy="{}" r="4"/>').format(x, y) for x, y in places]
    below = _TOP + _DEEP + 18
    parts.append(Markup('<text x="0" y="{}">0 models</text>').format(below))
    parts.append(Markup('<text x="100%" y="{}" text-anchor="end">{:,}</text>').format(below, most))
    said = "; ".join(f"{max(0.0, 1 - share):.0%} left after {used:,} models" for used, share in uses)
    head = Markup('<svg class="chart" width="100%" height="{}" role="img" aria-label="{}">').format(below + 4, said)
    return head + Markup("").join(parts) + Markup("</svg>")


def source(picture: Picture) -> Markup:
    """A picture as a data URI."""
    return Markup("data:image/png;base64,") + Markup(base64.b64encode(picture.png).decode("ascii"))
