"""The page as text: whole, escaped, alone in the world, and with what a screen reader needs."""

from __future__ import annotations

import base64
import hashlib
import re
from itertools import pairwise
from pathlib import Path

import pytest

from pytest_dscore.figure import Figure
from pytest_dscore.report import drawing
from pytest_dscore.report.html import render
from tests.report import junit
from tests.report.conftest import Command, Gathered
from tests.report.junit import Case
from tests.report.pages import Page, rich
from tests.report.test_markdown import ATTACKS

CSS = (Path(__file__).parents[2] / "pytest_dscore/report/templates/report.css").read_text(encoding="utf-8")


@pytest.fixture
def text(gathered: Gathered) -> str:
    """The page of a report that has everything."""
    return render(gathered(*rich()))


@pytest.fixture
def page(text: str) -> Page:
    """The same, taken apart."""
    return Page(text)


def test_it_asks_nothing_of_the_network(page: Page, text: str) -> None:
    for tag, attributes in page.elements:
        assert tag not in ("script", "iframe", "object", "embed", "form", "base", "audio", "video")
        for name, value in attributes.items():
            assert not name.startswith("on"), f"{tag} has a handler"
            assert name != "style", "the policy would not let it work"
            if name in ("src", "href"):
                assert str(value).startswith(("data:", "#")), f"<{tag} {name}={value}>"
    assert not re.search(r"url\(|@import", CSS)
    assert "//" not in re.sub(r"base64,[A-Za-z0-9+/=]+", "", text)


def test_the_policy_allows_only_this_style_sheet_and_pictures_in_the_page(page: Page, text: str) -> None:
    [policy] = [str(one["content"]) for one in page.all("meta") if one.get("http-equiv") == "Content-Security-Policy"]
    style = text[text.index("<style>") + 7 : text.index("</style>")]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def test_headings_are_in_order_and_name_their_sections(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    identifiers = [str(attributes["id"]) for _, attributes in page.elements if "id" in attributes]
    assert len(set(identifiers)) == len(identifiers)
    for _, attributes in page.elements:
        for name in ("aria-labelledby", "href"):
            if str(attributes.get(name, "#main")).startswith("#") and attributes.get(name):
                assert str(attributes[name]).removeprefix("#") in identifiers


def test_what_a_screen_reader_needs(page: Page) -> None:
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("main")) == len(page.all("header")) == len(page.all("footer")) == 1
    assert all(one.get("alt") for one in page.all("img"))
    assert all(one.get("scope") in ("col", "row") for one in page.all("th"))
    for svg in page.all("svg"):
        assert svg.get("aria-hidden") == "true" or (svg.get("role") == "img" and svg.get("aria-label"))
    for attributes in (one for _, one in page.elements if one.get("tabindex") == "0"):
        assert attributes.get("aria-label")


def test_it_says_everything(page: Page) -> None:
    for part in (
        "3 of 11 gates failed, 1 let pass undecided",
        "From report.xml (2026-11-30 10:00). Before: recorded 2026-11-28 09:00, base.xml of 2026-11-29 10:00.",
        "D-Score 0.400 [0.338, 0.463] < 0.500 for model 'digits' (n=2)",
        "( pyproject.toml:4 )",
        "min_score >= 0.5 fail",
        "-0.300 [-0.388, -0.212] worse unpaired",
        "drop of D-Score 0.062 [0.000, 0.125] of 'robust' is inconclusive against max_drop.score <= 0.05",
        "60 right as they are and wrong when the object is moved there; 5 shown, as the model saw them.",
        "3 read as 8 row 7",
        "60 right as they are and wrong when moved there, not shown: the data are a declared hold-out.",
        "lower right 0.250, was 0.600",
        "row 5, column 5",
        "28 % of the budget is left after 6 models",
        "bias external 1.500 [0.500, 2.500]",
        "alpha = 1.0 2 alpha = 0.1 1",
        "Interval of the error: exchangeable rows.",
        "is 0 really black?",
    ):
        assert part in page.text, part


def test_what_failed_comes_first(page: Page) -> None:
    names = re.findall(r"(\w+) \(n=\d, delete\)|(lost)", page.text.partition("Verdict")[2])[:4]
    assert ["".join(pair) for pair in names] == ["digits", "lost", "robust", "fine"]


@pytest.mark.parametrize("attack", [*ATTACKS, "\" onmouseover=alert(1) x='", "{{ 7*7 }}{% raw %}", "</style><script>"])
def test_names_are_text_and_nothing_else(attack: str, gathered: Gathered) -> None:
    name = "".join(c for c in attack if c >= " " or c in "\n\r")

    def cases(word: str) -> list[Case]:
        nasty = junit.model(
            word,
            operator=word,
            remarks=[word],
            helpful_regions=[word],
            holdout_charges=[word],
            versions={word: word},
            exhibit=junit.exhibit(0, withheld=word),
            model_fingerprint=word,
        )
        failed = {f"threshold.{word}": 1.0, f"verdict.{word}": "fail"}
        return [
            Case(name=word, classname=word, properties=nasty | failed, failure=f"{word}\nx.py:3"),
            Case(name=word, properties=junit.holdout(word, sentence=word, assumption=word, remarks=[word])),
            Case(name=word, properties=junit.protocol(word, selected=[{word: word}], leaks=[{"line": word}] * 2)),
        ]

    plain = Page(render(gathered(cases("harmless"))))
    page = Page(render(gathered(cases(name))))
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in plain.elements]
    assert [set(attributes) for _, attributes in page.elements] == [set(attributes) for _, attributes in plain.elements]
    assert "\u202e" not in page.text
    assert "49" not in page.text.replace("0.49", "")


PAIRS = [
    *(("ink", surface) for surface in ("page", "card")),
    *(("muted", surface) for surface in ("page", "card")),
    *((word, f"{word}-soft") for word in ("pass", "fail", "maybe")),
    *((word, "card") for word in ("pass", "fail", "link")),
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("text", "surface"), PAIRS)
def test_text_has_contrast(text: str, surface: str, scheme: str) -> None:
    light, dark = re.findall(r":root \{(.*?)\}", CSS, flags=re.DOTALL)[:2]
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", light))
    colours |= dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", dark)) if scheme == "dark" else {}
    bright, dim = sorted((_luminance(colours[text]), _luminance(colours[surface])), reverse=True)
    assert (bright + 0.05) / (dim + 0.05) >= 4.5


def _luminance(colour: str) -> float:
    """WCAG 2.1."""
    shares = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return sum(weight * share for weight, share in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_a_bar_lies_where_its_figure_does() -> None:
    drawn = str(drawing.bar(Figure(0.5, 0.25, 0.75), drawing.Scale(), [0.9]))
    assert '<rect class="interval now" x="25.0%" width="50.0%"' in drawn
    assert '<circle class="now" cx="50.0%"' in drawn
    assert '<line class="limit" x1="90.0%" x2="90.0%"' in drawn


@pytest.mark.parametrize(
    ("values", "low", "high"), [([0.2, 0.9], 0, 1), ([0.2, 3.14159], 0, 3.2), ([-1.5, 2.0], -1.5, 2.0), ([], 0, 1)]
)
def test_a_scale_holds_what_it_must(values: list[float], low: float, high: float) -> None:
    scale = drawing.scale_of([Figure(value, float("nan"), float("inf")) for value in values])
    assert [scale.low, scale.high] == pytest.approx([low, high])


def test_the_hottest_cell_is_the_worst(text: str) -> None:
    [heat] = re.findall(r'<svg class="heat a".*?</svg>', text, flags=re.DOTALL)[:1]
    opacities = dict(re.findall(r"<title>(.*?): .*?fill-opacity=\"([\d.]+)\"", heat))
    # All lost would be 0.82; here 0.25 of an accuracy of 0.9 is left, or 0.75.
    assert float(opacities["lower right"]) == pytest.approx(0.82 * (1 - 0.25 / 0.9), abs=0.001)
    assert float(opacities["upper left"]) == pytest.approx(0.82 * (1 - 0.75 / 0.9), abs=0.001)


def test_shares_that_mean_nothing_have_no_colour(gathered: Gathered) -> None:
    text = render(gathered([Case(properties=junit.model(no_deletion_hurts="true"))]))
    [heat] = re.findall(r'<svg class="heat f".*?</svg>', text, flags=re.DOTALL)
    assert set(re.findall(r'fill-opacity="([\d.]+)"', heat)) == {"0.0"}
    assert "no mutated region lost accuracy: f~ is uniform by definition" in text


def test_a_grid_too_fine_for_numbers_still_has_its_table(command: Command) -> None:
    junit.write(Path("report.xml"), [Case(properties=junit.model(n=14))])
    page = Page(command("report.xml", "--format", "html").out)
    assert "row 14, column 14" in page.text
    assert "180 more are in the table below" in page.text
