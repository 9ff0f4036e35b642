"""The page in a real browser: drawn without a fault or a request, on a phone, in the dark, on paper, and accessible."""

from __future__ import annotations

import base64
import importlib.util
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from pytest_dscore.report.html import render
from tests.report.conftest import Gathered
from tests.report.pages import rich

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_MISSING = "the HTML report is looked at with chromium and chromedriver: apt-get install chromium chromium-driver"
#: Where a picture of a page that failed is left.
SHOTS = Path(os.environ.get("DSCORE_SHOTS", ".pytest_cache/report-shots"))
_AXE_RUN = (
    "const done = arguments[0]; axe.run().then(found => done(found.violations), error => done([{id: String(error)}]))"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium; where there is none, skipped with the reason, and in CI a failure."""
    binary = next((path for name in _BROWSERS if (path := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        if os.environ.get("CI"):
            pytest.fail(_MISSING)
        pytest.skip(_MISSING)
    options = Options()
    options.binary_location = binary
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(driver))
    yield started
    started.quit()


@pytest.fixture
def page(browser: Any, gathered: Gathered, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The browser with a report that has everything; a picture is kept if the test fails."""
    path = tmp_path / "report.html"
    path.write_text(render(gathered(*rich())), encoding="utf-8")
    _media(browser, "prefers-color-scheme", "light")
    _size(browser, 1200)
    browser.get_log("performance")
    browser.get(path.as_uri())
    failed = request.session.testsfailed
    yield browser
    if request.session.testsfailed > failed or os.environ.get("DSCORE_SHOTS"):
        directory = request.config.rootpath / SHOTS
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{request.node.name}.png").write_bytes(_shot(browser))


def _media(browser: Any, name: str, value: str) -> None:
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": name, "value": value}]})


def _size(browser: Any, width: int) -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def _shot(browser: Any) -> bytes:
    size = browser.execute_script(
        "const e = document.documentElement; return {width: e.clientWidth, height: e.scrollHeight}"
    )
    asked = {"captureBeyondViewport": True, "clip": {"x": 0, "y": 0, **size, "scale": 1}}
    return base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", asked)["data"])


def _faults(browser: Any) -> list[str]:
    """What axe-core finds that is serious or critical."""
    spec = importlib.util.find_spec("axe_core_python")
    assert spec is not None
    assert spec.origin is not None
    browser.execute_script(Path(spec.origin).with_name("axe.min.js").read_text(encoding="utf-8"))
    found = browser.execute_async_script(_AXE_RUN)
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:200]}" if "nodes" in one else one["id"]
        for one in found
        if one.get("impact") not in ("minor", "moderate")
    ]


def test_nothing_is_asked_for_and_nothing_is_refused(page: Any) -> None:
    events = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    urls = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert [url for url in urls if not url.startswith(("data:", "file:"))] == []
    assert sum(url.startswith("file:") for url in urls) == 1
    assert page.get_log("browser") == []  # the policy's refusals would be here


def test_every_picture_is_drawn(page: Any) -> None:
    script = "return Array.from(document.images).map(i => i.complete && i.naturalWidth > 0)"
    drawn = page.execute_script(script)
    assert len(drawn) == 5
    assert all(drawn)
    heats = page.find_elements(By.CSS_SELECTOR, "svg.heat")
    assert len(heats) == 6
    assert all(heat.size["width"] > 150 for heat in heats)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 400])
def test_axe_finds_no_serious_fault(scheme: str, width: int, page: Any) -> None:
    _media(page, "prefers-color-scheme", scheme)
    _size(page, width)
    assert _faults(page) == []


def test_axe_would_find_one(page: Any) -> None:
    page.execute_script("document.images[0].removeAttribute('alt')")
    assert [fault.partition(":")[0] for fault in _faults(page)] == ["image-alt"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_schemes_are_what_they_say(scheme: str, page: Any) -> None:
    _media(page, "prefers-color-scheme", scheme)
    red, green, blue = page.execute_script(
        "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
    )
    assert (red + green + blue > 600) == (scheme == "light")


@pytest.mark.parametrize("width", [1200, 800, 400, 320])
def test_it_fits_any_width(width: int, page: Any) -> None:
    _size(page, width)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


def test_the_keyboard_reaches_the_report_and_opens_the_details(page: Any) -> None:
    page.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    first = page.switch_to.active_element
    assert first.text == "Skip to the report"
    assert first.value_of_css_property("outline-style") == "solid"
    summary = page.find_element(By.TAG_NAME, "summary")
    summary.send_keys(Keys.ENTER)
    assert page.find_element(By.TAG_NAME, "details").get_attribute("open") is not None


def test_on_paper_it_is_light_and_complete(page: Any) -> None:
    _media(page, "prefers-color-scheme", "dark")
    pdf = base64.b64decode(page.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert pdf.startswith(b"%PDF-")
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": []})
    try:
        assert page.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        shown = "return document.querySelector('details table').checkVisibility()"
        assert page.execute_script(shown), "the closed details are not printed"
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
