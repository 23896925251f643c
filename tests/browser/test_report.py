"""A report in a real browser: navigation, search, panels and charts; no requests; hostile names are shown as text.

SCREENSHOTS=FOLDER (`make test-browser SCREENSHOTS=docs`) writes the pictures of the documentation.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser.driver import find, panel, until, view_text
from tests.browser.nets import BLOCKS, HOSTILE


def picture(driver: webdriver.Chrome, name: str) -> None:
    folder = os.environ.get("SCREENSHOTS")
    if folder:
        time.sleep(0.6)  # the view is animated
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
    key = page.execute_script(
        "const groups = [...document.querySelectorAll('.node.group')];"
        "return groups.find((g) => g.getBoundingClientRect().top > 150).dataset.key"
    )
    named = "[...document.querySelectorAll(arguments[0])].find((e) => e.dataset.key === arguments[1])"
    page.execute_script(f"{named}.dispatchEvent(new MouseEvent('dblclick'))", ".node", key)
    until(page, "return document.querySelectorAll('.node').length", lambda n: n > before)
    page.execute_script(f"{named}.dispatchEvent(new MouseEvent('click'))", ".label", key)
    until(page, "return document.querySelectorAll('.node').length", lambda n: n == before)


def test_bodies_open_in_place(page):
    find(page, "decay")
    until(page, "return document.querySelector('#panel h2').textContent", lambda text: text == "Loop")
    page.find_element(By.XPATH, "//*[@id='panel']//button[starts-with(text(), 'open body')]").click()
    until(page, "return document.querySelector('.cluster.body') && document.querySelector('.edge.back') !== null")
    names = page.execute_script("return [...document.querySelectorAll('.node text')].map((t) => t.textContent)")
    assert "halved" in names


@pytest.mark.nightly
def test_everything_opens(page):
    page.execute_script("R.openAll(); R.layout()")
    until(page, "return document.querySelectorAll('.node').length", lambda n: n > 20 * BLOCKS)


def test_keys(page):
    body = page.find_element(By.TAG_NAME, "body")
    body.send_keys("/")
    assert page.switch_to.active_element.get_attribute("id") == "search"
    page.switch_to.active_element.send_keys(Keys.ESCAPE)
    graph = page.find_element(By.CSS_SELECTOR, ".graph svg")
    page.execute_script("R.select(null)")
    graph.send_keys(Keys.ARROW_DOWN)
    first = until(page, "return document.querySelector('.node.selected')?.dataset.key")
    graph.send_keys(Keys.ARROW_DOWN)
    until(page, "return document.querySelector('.node.selected')?.dataset.key", lambda key: key and key != first)
    graph.send_keys("2")
    assert page.find_element(By.ID, "tab-layers").get_attribute("aria-selected") == "true"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("view", ["layers", "memory", "profile", "findings", "comparison", "difference"])
def test_views(page, view):
    page.find_element(By.ID, f"tab-{view}").click()
    text = view_text(page)
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
    assert HOSTILE in view_text(page)
    assert page.execute_script("return [window.broken === undefined, document.images.length]") == [True, 0]


def test_the_page_sends_no_request_and_logs_no_error(page):
    """Opens every panel and every group first."""
    for button in page.find_elements(By.CSS_SELECTOR, "#tabs button"):
        button.click()
    page.execute_script("R.openAll(); R.show('graph'); R.layout()")
    until(page, "return document.querySelectorAll('.node').length", lambda n: n > 20 * BLOCKS)
    messages = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    urls = {m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"}
    assert urls
    assert {url.partition(":")[0] for url in urls} <= {"file", "data", "blob", "about"}
    assert len([url for url in urls if url.startswith("file")]) == 1
    assert [entry for entry in page.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
