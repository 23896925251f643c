"""Drawings are legible: initially, zoomed out, in large graphs, on narrow screens and on paper."""

from __future__ import annotations

import base64

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser.driver import find, open_report, panel, reload, resize, smallest_text, still, until, view

READABLE = 9 - 1e-6
"""Minimum height of letters in pixels."""
IN_VIEW = """
    const box = document.querySelector('.graph > svg').getBoundingClientRect();
    const rect = (node) => node.querySelector('.box').getBoundingClientRect();
    const seen = [...document.querySelectorAll('.node')].map((n) => [n, rect(n)])
      .filter(([, r]) => r.right > box.left && r.left < box.right && r.bottom > box.top && r.top < box.bottom);
"""


def open_all(driver):
    driver.find_element(By.XPATH, "//button[text()='open all']").click()
    until(driver, "return document.querySelectorAll('.node').length", lambda n: n > 1000)
    still(driver)


def test_it_opens_on_the_input_at_readable_size(session, sound):
    open_report(session, sound)
    names = session.execute_script(IN_VIEW + "return seen.map(([n]) => n.textContent)")
    assert any(name.startswith("Parametertokens") for name in names)
    assert len(names) < 40
    assert smallest_text(session) >= READABLE
    assert view(session)["k"] >= 0.9


def test_it_opens_on_the_first_fault(session, faulty):
    open_report(session, faulty)
    where = session.execute_script(
        IN_VIEW + "return seen.filter(([n]) => n.matches('.selected')).map(([, r]) => r.top)"
    )
    assert len(where) == 1
    assert 100 < where[0] < 800
    assert "cannot broadcast" in panel(session)
    assert smallest_text(session) >= READABLE
    assert view(session)["k"] >= 0.9


def test_the_graph_opens_on_the_input_after_another_view(session, sound):
    """The initial view depends on the size of the drawing, which is zero until its tab is shown."""
    open_report(session, sound)
    wanted = view(session)
    open_report(session, sound, "#memory")
    session.find_element(By.ID, "tab-graph").click()
    until(session, "return R.graph.svg.dataset.detail")
    assert view(session) == wanted


@pytest.mark.one_in(2)
@pytest.mark.parametrize("zoom", [0.001, 0.05, 0.2, 0.44, 0.46, 0.7, 0.89, 1.5])
def test_no_letter_is_too_small(session, sound, zoom):
    open_report(session, sound)
    session.execute_script(f"R.graph.camera().scale({zoom} / R.graph.camera().view().k)")
    still(session)
    assert smallest_text(session) >= READABLE


@pytest.mark.nightly
def test_a_large_expanded_graph_fills_the_view(session, sound):
    open_report(session, sound)
    open_all(session)
    names = session.execute_script(IN_VIEW + "return seen.map(([n]) => n.textContent)")
    assert any(name.startswith("Parametertokens") for name in names)
    assert 3 < len(names) < 60
    assert smallest_text(session) >= READABLE
    session.find_element(By.XPATH, "//button[text()='fit']").click()
    still(session)
    width, height, count = session.execute_script(
        IN_VIEW + "const r = seen.map(([, r]) => r), m = (f, k) => f(...r.map((b) => b[k]));"
        "const [w, h] = [m(Math.max, 'right') - m(Math.min, 'left'), m(Math.max, 'bottom') - m(Math.min, 'top')];"
        "return [w / box.width, h / box.height, r.length]"
    )
    assert count > 1000
    assert width > 0.5
    assert height > 0.5
    boxes = session.execute_script(IN_VIEW + "return seen.map(([, r]) => [r.width, r.height])")
    assert min(w for w, _ in boxes) > 3  # pixels
    assert session.execute_script("return document.querySelectorAll('.labels .label').length") > 10
    assert smallest_text(session) >= READABLE


@pytest.mark.nightly
def test_frames_of_groups_hold_their_layers(session, sound):
    """No layer is drawn outside the frame of its group, and no two layers cover each other."""
    open_report(session, sound)
    open_all(session)
    bad = session.execute_script("""
        const { nodes, places } = R.graph.drawn(), out = [], boxes = [];
        for (const { key, parent, item } of nodes.values()) {
          const [x, y] = places.nodes[key], { width: w, height: h } = R.draw.size(item);
          const [u, v, a, b] = (parent && places.clusters[parent]) ?? [x, y, w, h];
          if (Math.abs(x - u) > (a - w) / 2 + 1 || Math.abs(y - v) > (b - h) / 2 + 1) out.push(key);
          const covers = ([u, v, a, b]) => Math.abs(x - u) < (w + a) / 2 && Math.abs(y - v) < (h + b) / 2;
          if (boxes.some(covers)) out.push(key);
          boxes.push([x, y, w, h]);
        }
        return out""")
    assert bad == []


@pytest.mark.nightly
def test_the_minimap_shows_the_graph_and_navigates(session, sound):
    open_report(session, sound)
    open_all(session)
    colours = session.execute_script("""
        const c = document.querySelector('.minimap canvas');
        const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        let drawn = 0; for (let k = 3; k < d.length; k += 4) drawn += d[k] > 0; return drawn / (c.width * c.height)""")
    assert colours > 0.05
    before = view(session)
    map_ = session.find_element(By.CSS_SELECTOR, ".minimap")
    assert map_.is_displayed()
    session.execute_script(
        "const m = arguments[0], r = m.getBoundingClientRect();"
        "const middle = {buttons: 1, clientX: r.left + r.width / 2, clientY: r.top + r.height / 2};"
        "m.dispatchEvent(new PointerEvent('pointermove', middle))",
        map_,
    )
    after = view(session)
    assert after["k"] == before["k"]
    assert (after["x"], after["y"]) != (before["x"], before["y"])
    assert session.execute_script(IN_VIEW + "return seen.length") > 0
    session.execute_script("R.graph.all()")
    still(session)
    assert not map_.is_displayed()  # everything is in view


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("key", "grows"), [("+", True), ("=", True), ("-", False)])
def test_zoom_keys_work_at_once(session, sound, key, grows):
    """Without a click on the graph first, and during the animation of the view."""
    open_report(session, sound)
    before = view(session)["k"]
    session.find_element(By.TAG_NAME, "body").send_keys(key)
    assert (view(session)["k"] > before) == grows
    assert view(session)["k"] != before
    session.execute_script("R.graph.camera().center([0, 0])")
    session.find_element(By.TAG_NAME, "body").send_keys(key)
    zoomed = view(session)["k"]
    assert still(session)["k"] == zoomed


def test_zoom_has_buttons(session, sound):
    open_report(session, sound)
    before = view(session)["k"]
    session.find_element(By.CSS_SELECTOR, "button[aria-label='Zoom in (+)']").click()
    assert view(session)["k"] > before
    for _ in range(2):
        session.find_element(By.CSS_SELECTOR, "button[aria-label='Zoom out (-)']").click()
    assert view(session)["k"] < before


# -- narrow screens ----------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_a_narrow_screen_is_enough(session, sound):
    open_report(session, sound)
    resize(session, 420, 820)
    reload(session)
    assert session.execute_script("return document.documentElement.scrollWidth") <= 420
    assert not session.find_element(By.ID, "panel").is_displayed()  # which would cover half of the graph
    assert session.execute_script("return document.querySelector('.graph').clientHeight") > 500
    assert smallest_text(session) >= READABLE
    session.execute_script("document.querySelector('.node').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    assert session.find_element(By.ID, "panel").is_displayed()
    assert session.execute_script("return document.querySelector('.graph').clientHeight") > 250
    session.find_element(By.CSS_SELECTOR, "#panel .close").click()
    for button in session.find_elements(By.CSS_SELECTOR, "#tabs button"):
        button.click()
        assert session.execute_script("return document.documentElement.scrollWidth") <= 420
        assert smallest_text(session) >= READABLE


def test_names_are_not_squeezed_on_a_narrow_screen(session, report):
    open_report(session, report)
    resize(session, 420, 820)
    session.execute_script("R.show('profile')")
    assert session.execute_script("return document.querySelector('#view td a').getBoundingClientRect().height") < 60


@pytest.mark.parametrize("detail", ["full", "brief"])
def test_text_fits_its_box(session, faulty, detail):
    open_report(session, faulty)
    still(session)
    script = """
        document.querySelector('.graph > svg').dataset.detail = arguments[0];
        const shown = [...document.querySelectorAll('.node text')].filter((t) => t.getBBox().width);
        const right = (t) => t.getBBox().x + t.getBBox().width;
        const width = (t) => t.parentNode.querySelector('.box').getBBox().width;
        return [shown.length, shown.filter((t) => right(t) > width(t)).map((t) => t.textContent)]"""
    count, wider = session.execute_script(script, detail)
    assert count
    assert wider == []


# -- paper -------------------------------------------------------------------------------------------------------------

DARK = {"name": "prefers-color-scheme", "value": "dark"}


def test_paper_is_light(session, faulty):
    open_report(session, faulty)
    look = """
        const of = (s, p) => getComputedStyle(document.querySelector(s))[p];
        return [of('h1', 'color'), of('.node:not(.fault) .box', 'fill'), of('.node text', 'fill'),
                of('.cluster rect', 'stroke'), of('.finding', 'backgroundColor'),
                of('.node .strip', 'fill'), of('html', 'colorScheme')]"""
    session.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    light = session.execute_script(look)
    session.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "screen", "features": [DARK]})
    until(session, "return document.documentElement.dataset.theme", lambda theme: theme == "dark")
    assert session.execute_script(look) != light
    session.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": [DARK]})
    assert session.execute_script(look) == light
    assert session.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgba(0, 0, 0, 0)"


def test_paper_shows_the_legible_part(session, sound):
    """Prints the visible part of a graph that is too large, and restores the screen afterwards."""
    open_report(session, sound)
    before = view(session)
    session.execute_script("""
        window.printed = {};
        addEventListener('beforeprint', () => {
          const s = document.querySelector('.graph > svg');
          printed.box = s.getAttribute('viewBox');
          printed.scene = s.querySelector('.scene').getAttribute('transform');
        })""")
    pdf = session.execute_cdp_cmd("Page.printToPDF", {"paperWidth": 8.27, "paperHeight": 11.69})
    assert base64.b64decode(pdf["data"]).startswith(b"%PDF")
    printed = session.execute_script("return window.printed")
    assert printed["box"] == "0 0 680 900"
    assert float(printed["scene"].rpartition("scale(")[2].rstrip(")")) >= 0.9
    assert view(session) == before
    assert session.execute_script("return document.querySelector('.graph > svg').getAttribute('viewBox')") is None


def test_escape_closes_the_panel(session, sound):
    open_report(session, sound)
    session.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)
    assert not session.find_element(By.ID, "panel").is_displayed()


def test_paper_shows_histograms(session, report):
    open_report(session, report)
    find(session, "encoder/layer_0/attention/query/kernel")
    session.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    look = "return getComputedStyle(document.querySelector('#panel .chart rect.bar')).display"
    assert session.execute_script(look) != "none"
