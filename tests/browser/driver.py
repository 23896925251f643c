"""Starts Chromium, and performs the actions of the browser tests."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1440,900"),
)
PATIENCE = 120.0
"""The timeout, in seconds, for a change of the page on a busy machine."""
READY = """return document.readyState === 'complete' && location.protocol === 'file:' && !window.stale
    && R.graph.element.dataset.ready !== undefined"""
"""True once the page is loaded and the graph drawn; `get` and `refresh` may return while the previous page is shown."""


def browser(profile: Path) -> webdriver.Chrome:
    binary = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.fail("Chromium or its driver is missing: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.page_load_strategy = "none"  # on a busy machine `get` may return early in any case; READY waits instead
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options, Service(driver))
    started.set_script_timeout(PATIENCE)
    return started


def open_report(driver: webdriver.Chrome, path: Path, link: str = "") -> webdriver.Chrome:
    """Opens a report in a window of 1440×900 with the light theme and a fresh profile, and waits until it is drawn."""
    resize(driver, 1440, 900)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    driver.get("about:blank")
    for log in ("browser", "performance"):
        driver.get_log(log)
    driver.get(path.as_uri() + link)
    until(driver, READY)
    return driver


def reload(driver: webdriver.Chrome) -> None:
    """Reloads the page and waits until it is drawn."""
    driver.execute_script("window.stale = true")
    driver.refresh()
    until(driver, READY)


def resize(driver: webdriver.Chrome, width: int, height: int) -> None:
    """Resizes the window to a size in CSS pixels."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    until(driver, f"return innerWidth === {width} && innerHeight === {height}")


def view(driver: webdriver.Chrome) -> dict[str, float]:
    """The current transform of the drawing (x, y, k), also during an animation."""
    return driver.execute_script("const t = d3.zoomTransform(document.querySelector('.graph > svg')); return {...t}")


def still(driver: webdriver.Chrome) -> dict[str, float]:
    """The transform of the drawing once layout and animation have ended."""
    until(driver, "return document.querySelector('.busy').hidden && !R.graph.svg.__transition")
    return view(driver)


def smallest_text(driver: webdriver.Chrome) -> float:
    """The smallest font size in view, in pixels, including the drawing and charts."""
    return driver.execute_script("""
        const sizes = [];
        for (const e of document.querySelectorAll("body *")) {
          if (![...e.childNodes].some((c) => c.nodeType === 3 && c.data.trim())) continue;
          if (e.closest("script, style, title, noscript, defs")) continue;
          const box = e.getBoundingClientRect();
          if (!box.width || !box.height || box.right < 0 || box.bottom < 0) continue;
          if (box.left > innerWidth || box.top > innerHeight) continue;
          sizes.push(parseFloat(getComputedStyle(e).fontSize) * (e.getScreenCTM ? e.getScreenCTM().a : 1));
        }
        return Math.min(...sizes)""")


def until(driver: webdriver.Chrome, script: str, wanted: Callable[[Any], bool] = bool) -> Any:
    """Runs the script until `wanted` accepts its result, and returns the result."""
    end = time.monotonic() + PATIENCE
    while not wanted(value := driver.execute_script(script)):
        assert time.monotonic() < end, f"{script} returned {value!r} for {PATIENCE} s"
        time.sleep(0.05)
    return value


def find(driver: webdriver.Chrome, text: str) -> None:
    """Types into the search box and opens the first result."""
    box = driver.find_element(By.ID, "search")
    box.clear()
    box.send_keys(text)
    until(driver, "return document.querySelectorAll('#hits li').length")
    box.send_keys(Keys.ENTER)


def panel(driver: webdriver.Chrome) -> str:
    return driver.find_element(By.ID, "panel").text


def view_text(driver: webdriver.Chrome) -> str:
    """The visible text of the view; `text` of its element takes seconds for a table of a thousand layers."""
    return driver.execute_script("return document.getElementById('view').innerText")
