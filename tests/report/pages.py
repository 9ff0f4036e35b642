"""Reports worth drawing, and the page taken apart."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from tests.report import junit
from tests.report.junit import Case

_VOID = {"meta", "link", "img", "br"}
_DRAWN = {"line", "rect", "circle", "image"}


class Page(HTMLParser):
    """Every element of a page with its attributes and text; asserts that what is opened is closed.

    Attributes
    ----------
    elements
        (tag, attributes) in their order.
    texts
        Pieces of text outside of the style sheet.
    """

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"an attribute stands twice on <{tag}>"
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in _DRAWN, f"<{tag}/> closes itself"
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every element of that name."""
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self) -> str:
        """All text on one line."""
        return " ".join(" ".join(self.texts).split())


def rich() -> tuple[list[Case], list[Case]]:
    """Test cases that fill every part of the page, now and before."""
    grown: dict[str, Any] = {
        **{"threshold.max_drop.score": 0.05, "verdict.max_drop.score": "inconclusive"},
        **junit.figure("drop.score", 0.0625),
        "baseline": {"recorded": "2026-11-28T09:00:00Z", "figures": {"score": 0.85}, "a": [[0.9, 0.8], [0.8, 0.7]]},
        "change": {"score": {"value": -0.05, "lower": -0.1125, "upper": 0.0125}},
        "exhibit": junit.exhibit(0, withheld="the data are a declared hold-out"),
    }
    biased: dict[str, Any] = {
        f"protocol.{name}": value for name, value in junit.figure("bias_external", 1.5, 1.0).items()
    }
    biased |= {"protocol.verdict.max_bias": "fail", "protocol.threshold.max_bias": 1.0}
    now = [
        Case(name="dscore[robust-min_score]", properties=junit.model("robust", **grown)),
        Case(properties={**junit.failing().properties, "exhibit": junit.exhibit(5)}, failure=junit.failing().failure),
        Case(name="dscore[fine-min_score]", properties=junit.model("fine", n=5, remarks=["is 0 really black?"])),
        Case(
            name="dscore[lost-min_score]", properties={"model": "lost", "threshold.min_score": 0.5}, failure="no file"
        ),
        *(Case(name=f"use {i}", properties=junit.holdout(used=i, share=i * i / 50)) for i in (1, 2, 4, 6)),
        Case(
            name="dscore[ridge-max_bias]",
            properties=junit.protocol() | biased,
            failure="protocol 'ridge': the external protocol flatters the error by 1.50 points\npyproject.toml:20",
        ),
    ]
    before = [Case(properties=junit.model(score=0.7, a=[[0.9, 0.9], [0.9, 0.6]], model_fingerprint="c3" * 32))]
    return now, before
