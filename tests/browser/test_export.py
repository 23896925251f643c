"""Downloads from a page: the view as SVG and PNG, arrays as .npy; and the results of the search."""

from __future__ import annotations

import struct
import time
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from selenium.webdriver.common.by import By

import irload
from tests.browser.driver import PATIENCE, find, open_report, still, until
from tests.browser.nets import LENGTH, WIDTH


@pytest.fixture
def downloads(session, tmp_path: Path) -> Path:
    session.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    return tmp_path


def downloaded(folder: Path, ending: str) -> Path:
    """Wait for a complete file: Chromium reserves its name with an empty one, which the finished download replaces."""
    end = time.monotonic() + PATIENCE
    while not (complete := [path for path in folder.glob(f"*{ending}") if path.stat().st_size]):
        assert time.monotonic() < end, f"no {ending} was downloaded"
        time.sleep(0.05)
    return complete[0]


def press(driver, text: str) -> None:
    driver.find_element(By.XPATH, f"//button[text()='{text}']").click()


def test_the_view_is_saved_as_svg(session, sound, downloads):
    open_report(session, sound)
    press(session, "SVG")
    path = downloaded(downloads, ".svg")
    text = path.read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    box = session.execute_script(
        "const r = document.querySelector('.graph > svg').getBoundingClientRect(); return [r.width, r.height]"
    )
    assert [float(root.get("width")), float(root.get("height"))] == pytest.approx(box, abs=1)
    words = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"Parameter", "tokens", "f32[1,16,32]"} <= set(words)
    assert "var(" not in text  # every style is written out
    assert "brief" not in text
    rects = [e.get("fill") for e in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert all(fill.startswith(("rgb", "color", "none")) for fill in rects)
    assert len(words) < 200  # nothing outside the view


def test_the_view_is_saved_as_png(session, sound, downloads):
    open_report(session, sound)
    press(session, "PNG")
    raw = downloaded(downloads, ".png").read_bytes()
    assert raw[:8] == b"\x89PNG\r\n\x1a\n"
    box = session.execute_script(
        "const r = document.querySelector('.graph > svg').getBoundingClientRect(); return [r.width, r.height]"
    )
    assert list(struct.unpack(">II", raw[16:24])) == pytest.approx([2 * n for n in box], abs=2)
    assert len(raw) > 20_000  # a blank picture would be smaller


def test_the_saved_view_is_the_one_on_the_screen(session, sound):
    open_report(session, sound)
    session.execute_script("R.graph.all()")
    still(session)
    text = session.execute_script("return R.svgOfView().text")
    assert "layer_3" in text
    assert "BiasAdd" not in text


def test_constants_are_saved(session, report, downloads):
    open_report(session, report, "#graph/layer=encoder/layer_0/attention/query/kernel")
    session.find_element(By.CSS_SELECTOR, "#panel .save").click()
    array = np.load(downloaded(downloads, ".npy"))
    model = irload.read_model(report.parent / "model.xml")
    constant = next(n for n in model.nodes if n.name == "encoder/layer_0/attention/query/kernel")
    np.testing.assert_array_equal(array, constant.op.attributes["data"]())


def test_tensors_are_saved(session, report, downloads):
    open_report(session, report, "#graph/layer=decay/body/halved")
    until(
        session, "return document.querySelectorAll('#panel .save').length", lambda n: n == 4
    )  # 3 iterations, a constant
    row = session.find_element(By.XPATH, "//*[@id='panel']//div[starts-with(text(), 'decay/body[2]/halved')]")
    row.find_element(By.CSS_SELECTOR, ".save").click()
    array = np.load(downloaded(downloads, ".npy"))
    tokens = np.random.default_rng(1).standard_normal((1, LENGTH, WIDTH)).astype(np.float32)
    compiled = irload.compile_model(report.parent / "model.xml")
    (wanted,) = (a.copy() for _, a in compiled.intermediates(tokens, "decay/body[[]2]/halved"))
    np.testing.assert_array_equal(array, wanted)


# -- search ------------------------------------------------------------------------------------------------------------


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("text", "operation", "why"),
    [
        ("axis=2", "SoftMax", "axis=2"),
        ("approximation_mode=erf layer_7", "Gelu", "approximation_mode=ERF"),
        ("decayed", "Loop", "decayed"),
        ("[1,16,64] outer layer_2", "MatMul", "f32[1,16,64]"),
    ],
)
def test_search_covers_attributes_and_tensors(session, sound, text, operation, why):
    open_report(session, sound)
    box = session.find_element(By.ID, "search")
    box.send_keys(text)
    until(session, "return document.querySelectorAll('#hits li').length")
    first = session.find_element(By.CSS_SELECTOR, "#hits li")
    assert first.text.startswith(operation)
    assert why in first.find_element(By.CLASS_NAME, "why").text


def test_names_precede_tensors_in_search_results(session, sound):
    open_report(session, sound)
    find(session, "decay")
    until(session, "return document.querySelector('#panel h2').textContent", lambda text: text == "Loop")
