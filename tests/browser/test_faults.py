"""Navigation to a fault inside a body, and findings by rule."""

from __future__ import annotations

from selenium.webdriver.common.by import By

from tests.browser.driver import open_report, panel, until

CLOSE = "R.select(null); R.open.clear(); R.layout(() => { window.shut = true; })"


def closed(driver, path):
    open_report(driver, path)
    driver.execute_script(CLOSE)
    until(driver, "return window.shut")


def test_the_way_to_a_fault_is_open_and_coloured(session, faulty):
    open_report(session, faulty)
    frames = session.execute_script("return [...document.querySelectorAll('.cluster.fault')].map((c) => c.dataset.key)")
    loop = session.execute_script("return R.layers.find((l) => l.name === 'decay').index")
    assert f"l{loop}" in frames
    assert session.execute_script("return document.querySelectorAll('.node.fault').length") == 1
    colour = "return getComputedStyle(document.querySelector('.cluster.fault rect')).stroke"
    assert session.execute_script(colour) == session.execute_script("""
        const e = document.body.appendChild(R.h('i', {style: {color: 'var(--bad)'}}));
        return getComputedStyle(e).color""")


def test_a_collapsed_group_with_a_fault_is_coloured(session, faulty):
    closed(session, faulty)
    marked = session.execute_script(
        "return [...document.querySelectorAll('.node')].filter((n) => n.matches('.fault')).length"
    )
    assert marked == 1
    assert session.execute_script("return document.querySelectorAll('.node').length") > marked
    assert session.execute_script("return document.querySelector('.node.fault .mark.error') !== null")


def test_the_panel_of_a_layer_leads_to_the_fault_inside(session, faulty):
    closed(session, faulty)
    session.execute_script("R.select(R.layers.find((l) => l.name === 'decay').index)")
    assert "FAULTS INSIDE" in panel(session)
    session.find_element(By.LINK_TEXT, "decay/body/halved").click()
    until(
        session,
        "return document.querySelector('.node.selected')?.textContent",
        lambda t: t and t.startswith("Multiplyhalved"),
    )
    assert session.execute_script("return document.querySelector('.cluster.body.fault') !== null")


def test_a_divergence_inside_is_coloured_by_error(session, report):
    open_report(session, report)
    session.execute_script("R.select(null); R.open.clear(); R.layout(() => { window.shut = true; })")
    until(session, "return window.shut")
    assert session.execute_script("return document.querySelectorAll('.node.group.fault').length") == 1


def test_findings_are_grouped_by_rule(session, faulty):
    open_report(session, faulty)
    session.find_element(By.ID, "tab-findings").click()
    groups = session.find_elements(By.CSS_SELECTOR, "#view details")
    counts = {g.find_element(By.TAG_NAME, "b").text: int(g.find_element(By.CLASS_NAME, "badge").text) for g in groups}
    assert counts["IR408"] == 1
    warnings = next(g for g in groups if int(g.find_element(By.CLASS_NAME, "badge").text) == 12)
    assert len(warnings.find_elements(By.CLASS_NAME, "message")) == 1  # one text for all of its layers
    assert len(warnings.find_elements(By.CSS_SELECTOR, "li a")) == 12
    assert groups[0].find_element(By.TAG_NAME, "b").text == "IR408"  # errors first
