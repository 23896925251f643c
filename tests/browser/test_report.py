"""A report in a real browser: it opens, finds, shows, asks for nothing, and hostile names stay text.

SCREENSHOTS=FOLDER (`make test-browser SCREENSHOTS=docs`) writes the pictures of the documentation.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import irload
from tests.browser.nets import HOSTILE, LENGTH, WIDTH, large

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1440,900"),
)
PATIENCE = 30.0
"""Seconds that what should happen may take on a slow machine."""


def browser(profile: Path) -> webdriver.Chrome:
    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.fail("Chromium or its driver is missing: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options, Service(driver))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    large(folder)
    with chdir(folder):  # the page shows the path as it is given
        model = irload.read_model("model.xml")
        return _made(model, folder)


def _made(model: irload.Model, folder: Path) -> Path:
    assert sum(len(g.nodes) for g in model.walk()) > 2000
    changed = irload.read_model("model.xml")
    softmax = next(n for n in changed.nodes if n.name == "encoder/layer_3/attention/probabilities")
    softmax.op = type(softmax.op)(axis=1)
    tokens = np.random.default_rng(1).standard_normal((1, LENGTH, WIDTH)).astype(np.float32)
    made = irload.report(model, tokens, profile=True, comparison=changed, difference=changed, threads=1)
    made.save(folder / "report.html")
    return folder / "report.html"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    driver = browser(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture
def page(session: webdriver.Chrome, report: Path) -> webdriver.Chrome:
    session.get("about:blank")
    session.get_log("browser")
    session.get_log("performance")
    session.get(report.as_uri())
    until(session, "return document.querySelector('.graph')?.dataset.ready")
    return session


def until(driver: webdriver.Chrome, script: str, wanted: Callable[[Any], bool] = bool) -> Any:
    """What the script returns, as soon as it is what is wanted."""
    end = time.monotonic() + PATIENCE
    while not wanted(found := driver.execute_script(script)):
        assert time.monotonic() < end, f"{script} gave {found!r} for {PATIENCE} s"
        time.sleep(0.05)
    return found


def find(driver: webdriver.Chrome, text: str) -> None:
    """Types into the search and takes the first hit."""
    box = driver.find_element(By.ID, "search")
    box.clear()
    box.send_keys(text)
    until(driver, "return document.querySelectorAll('#hits li').length")
    box.send_keys(Keys.ENTER)


def panel(driver: webdriver.Chrome) -> str:
    return driver.find_element(By.ID, "panel").text


def picture(driver: webdriver.Chrome, name: str) -> None:
    folder = os.environ.get("SCREENSHOTS")
    if folder:
        time.sleep(0.6)  # the view glides
        driver.save_screenshot(str(Path(folder) / f"{name}.png"))


def test_it_opens_and_shows_a_part_that_can_be_read(page):
    shown = page.execute_script("return document.querySelectorAll('.node').length")
    assert 5 < shown < 200
    assert "layers" in page.find_element(By.ID, "facts").text
    assert page.title == "encoder"


def test_search_finds_a_layer_and_a_click_shows_it(page):
    find(page, "layer_3/attention/prob")
    until(page, "return document.querySelector('.node.selected .type')?.textContent", lambda text: text == "SoftMax")
    text = panel(page)
    assert "encoder/layer_3/attention/probabilities" in text
    assert "axis" in text
    assert "diverges" in text
    picture(page, "report")
    page.execute_script("R.select(null)")
    node = next(n for n in page.find_elements(By.CSS_SELECTOR, ".node") if n.text.startswith("Add\nresidual"))
    page.execute_script("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", node)
    until(page, "return document.querySelector('#panel h2').textContent", lambda text: text == "Add")
    assert "auto_broadcast" in panel(page)


def test_constants_have_a_histogram(page):
    find(page, "layer_0/attention/query/MatMul")
    until(page, "return document.querySelector('#panel .chart .bar') !== null")
    assert "encoder/layer_0/attention/query/kernel" in panel(page)


def test_groups_open_and_close(page):
    before = page.execute_script("return document.querySelectorAll('.node').length")
    key = page.execute_script("return document.querySelector('.node.group').dataset.key")
    double = "document.querySelector(`[data-key='${arguments[0]}']`).dispatchEvent(new MouseEvent('dblclick'))"
    page.execute_script(double, key)
    until(page, "return document.querySelectorAll('.node').length", lambda n: n > before)
    close = "document.querySelector(`.cluster[data-key='${arguments[0]}'] text`).dispatchEvent(new MouseEvent('click'))"
    page.execute_script(close, key)
    until(page, "return document.querySelectorAll('.node').length", lambda n: n == before)


def test_bodies_open_in_place(page):
    find(page, "decay")
    until(page, "return document.querySelector('#panel h2').textContent", lambda text: text == "Loop")
    page.find_element(By.CSS_SELECTOR, "#panel button:not(.close)").click()
    until(page, "return document.querySelector('.cluster.body') && document.querySelector('.edge.back') !== null")
    names = page.execute_script("return [...document.querySelectorAll('.node text')].map((t) => t.textContent)")
    assert "halved" in names


def test_everything_opens(page):
    page.execute_script("R.openAll(); R.layout()")
    until(page, "return document.querySelectorAll('.node').length", lambda n: n > 1000)


def test_keys(page):
    body = page.find_element(By.TAG_NAME, "body")
    body.send_keys("/")
    assert page.switch_to.active_element.get_attribute("id") == "search"
    page.switch_to.active_element.send_keys(Keys.ESCAPE)
    graph = page.find_element(By.CSS_SELECTOR, ".graph svg")
    graph.send_keys(Keys.ARROW_DOWN)
    first = until(page, "return document.querySelector('.node.selected')?.dataset.key")
    graph.send_keys(Keys.ARROW_DOWN)
    until(page, "return document.querySelector('.node.selected')?.dataset.key", lambda key: key and key != first)
    graph.send_keys("2")
    assert page.find_element(By.ID, "tab-layers").get_attribute("aria-selected") == "true"


@pytest.mark.parametrize("view", ["layers", "memory", "profile", "findings", "comparison", "difference"])
def test_views(page, view):
    page.find_element(By.ID, f"tab-{view}").click()
    text = page.find_element(By.ID, "view").text
    assert {
        "layers": "encoder/layer_0/attention/query/MatMul",
        "memory": "at the peak",
        "profile": "steps; medians",
        "findings": "",
        "comparison": "first diverge in encoder/layer_3/attention/probabilities",
        "difference": "axis",
    }[view] in text
    if view == "profile":
        picture(page, f"report-{view}")


def test_rows_are_sorted(page):
    page.find_element(By.ID, "tab-layers").click()
    heads = page.find_elements(By.CSS_SELECTOR, "#view th button")
    next(h for h in heads if h.text == "MACs").click()
    first = page.find_element(By.CSS_SELECTOR, "#view tbody tr").text
    assert "MatMul" in first


def test_dark_mode(page):
    light = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    page.find_element(By.ID, "theme").click()
    assert page.execute_script("return getComputedStyle(document.body).backgroundColor") != light


def test_hostile_names_stay_text(page):
    find(page, "onerror")
    until(page, "return document.querySelector('#panel h2').textContent", lambda text: text == "Tanh")
    assert HOSTILE in panel(page)
    page.find_element(By.ID, "tab-layers").click()
    assert HOSTILE in page.find_element(By.ID, "view").text
    assert page.execute_script("return [window.broken === undefined, document.images.length]") == [True, 0]


def test_nothing_is_asked_for_and_nothing_fails(page):
    """After everything was opened once."""
    for button in page.find_elements(By.CSS_SELECTOR, "#tabs button"):
        button.click()
    page.execute_script("R.openAll(); R.show('graph'); R.layout()")
    until(page, "return document.querySelectorAll('.node').length", lambda n: n > 1000)
    messages = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    urls = {m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"}
    assert urls
    assert {url.partition(":")[0] for url in urls} <= {"file", "data", "blob", "about"}
    assert len([url for url in urls if url.startswith("file")]) == 1
    assert [entry for entry in page.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
