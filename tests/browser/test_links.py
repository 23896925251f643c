"""The address follows the view and the selection, and restores them."""

from __future__ import annotations

from urllib.parse import unquote

from selenium.webdriver.common.by import By

from tests.browser.driver import find, open_report, panel, reload, until

LINK = "return decodeURIComponent(location.hash)"
NAME = "encoder/layer_5/attention/probabilities"


def test_the_address_follows_the_selection(session, sound):
    open_report(session, sound)
    assert session.execute_script(LINK) == ""
    find(session, NAME)
    assert session.execute_script(LINK) == f"#graph/layer={NAME}"
    reload(session)
    until(
        session, "return document.querySelector('.node.selected')?.textContent", lambda t: t and t.startswith("SoftMax")
    )
    assert NAME in panel(session)
    session.execute_script("R.select(null)")
    assert session.execute_script(LINK) == ""


def test_the_address_names_the_view(session, sound):
    open_report(session, sound, f"#memory/layer={NAME}")
    assert session.find_element(By.ID, "tab-memory").get_attribute("aria-selected") == "true"
    assert NAME in panel(session)
    session.find_element(By.ID, "tab-layers").click()
    assert session.execute_script(LINK) == f"#layers/layer={NAME}"


def test_a_new_address_is_followed(session, sound):
    open_report(session, sound)
    session.execute_script("location.hash = '#graph/layer=decay/body/halved'")
    until(session, "return document.querySelector('.node.selected')?.textContent", lambda t: t and "halved" in t)
    assert session.execute_script("return document.querySelector('.cluster.body') !== null")


def test_links_of_the_panel_are_addresses(session, sound):
    open_report(session, sound, "#graph/layer=decay/body/halved")
    until(session, "return document.querySelector('.node.selected') !== null")
    links = [unquote(a.get_attribute("href")) for a in session.find_elements(By.CSS_SELECTOR, "#panel a")]
    assert any(link.endswith("#graph/layer=decay/body/state") for link in links)


def test_an_unknown_address_is_harmless(session, sound):
    for link in ("#nonsense", "#graph/layer=%E0%A4%A", "#graph/layer=no such layer", "#layer-3"):
        open_report(session, sound, link)
        assert session.execute_script("return document.querySelectorAll('.node').length") > 5
        assert not [e for e in session.get_log("browser") if e["level"] == "SEVERE"]
