"""The HTML representation of a model in a notebook."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import irload

MODELS = Path(__file__).parents[1] / "models"


def test_a_model_in_a_notebook():
    html = irload.read_model(MODELS / "digits" / "model.xml")._repr_html_()
    root = ElementTree.fromstring(f"<div>{html}</div>")
    cells = ["".join(c.itertext()) for c in root.iter("td")]
    assert cells[:6] == ["image", "f32", "[?,1,8,8]", "probabilities", "f32", "[?,10]"]
    assert cells[cells.index("Convolution") + 1] == "2"
    assert "23 layers" in html


def test_names_are_escaped():
    source = (MODELS / "digits" / "model.xml").read_bytes().replace(b'name="digits"', b'name="&lt;script&gt;x"')
    html = irload.read_model(source, MODELS / "digits" / "model.bin")._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
