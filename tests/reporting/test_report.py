"""Reports contain all data of a model, and show hostile names as text."""

from __future__ import annotations

import builtins
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import irload
from irload.checks import all_rules
from irload.reporting.page import json_in_html
from irload.reporting.statistics import BINS, statistics
from models.ir import Graph
from tests.cli.conftest import MODELS
from tests.inside.nets import model, unary

DIGITS = MODELS / "digits" / "model.xml"
SEVEN = np.load(MODELS / "digits" / "digit_7_0.npy")
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--",
    "]]>",
    "\u2028'\"&amp;",
    "{{ 7 * 7 }}",
    "<img src=x onerror=a>",
]


class Page(HTMLParser):
    """The elements of a page with their attributes, and the text of scripts by id."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self.title = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        tag, attributes = self.elements[-1] if self.elements else ("", {})
        if tag == "title":
            self.title += data
        if tag == "script" and data.strip():
            self.scripts[attributes.get("id") or ""] = data


def hostile() -> irload.Model:
    g = Graph()
    x = g.parameter("x", "f32", [2])
    for name in HOSTILE:
        x = unary(g, "Abs", x, name)
    return model(g, x)


def entry(report: irload.ModelReport, name: str) -> dict:
    return next(e for e in report.data["layers"] if e["name"] == name)


def test_layers_have_all_their_data():
    page = irload.report(DIGITS)
    conv = entry(page, "conv0")
    assert (conv["type"], conv["version"], conv["macs"]) == ("Convolution", "opset1", None)
    assert ["strides", "1,1", True] in conv["attributes"]
    assert ["auto_broadcast.auto_broadcast_axis", "0", False] in entry(page, "conv0/bias")["attributes"]
    assert next(page.data["layers"][k]["name"] for k, *_ in conv["inputs"]) == "scaled"
    assert [name for _, _, name, _ in conv["inputs"]] == ["data", "filters"]
    assert conv["outputs"][0]["type"] == "f32[?,16,8,8]"
    assert conv["parameters"] == 144
    assert page.data["model"]["parameters"] == 6091  # with the scale of the image
    assert [p["name"] for p in page.data["model"]["inputs"]] == ["image"]


def test_constants_have_statistics():
    page = irload.report(DIGITS)
    bias = entry(page, "conv0/bias_values")["constant"]
    node = next(n for n in irload.read_model(DIGITS).nodes if n.name == "conv0/bias_values")
    values = node.op.attributes["data"]()
    numbers = bias["statistics"]
    assert numbers["min"] == values.min()
    assert numbers["max"] == values.max()
    assert numbers["mean"] == pytest.approx(values.mean(), rel=1e-6)
    assert numbers["std"] == pytest.approx(values.std(), rel=1e-5)
    assert len(numbers["histogram"]) == BINS
    assert sum(numbers["histogram"]) == values.size
    assert "statistics" not in entry(irload.report(DIGITS, constants=False), "conv0/bias_values")["constant"]


def test_statistics_of_odd_values():
    g = Graph()
    value = np.array([np.nan, np.inf, 0, 0, 2, -2], np.float32)
    constant = g.constant(value, "c")
    loaded = model(g, unary(g, "Abs", constant, "abs"))
    numbers = statistics(next(n for n in loaded.nodes if n.name == "c"))
    assert (numbers["nonfinite"], numbers["zeros"], numbers["min"], numbers["max"]) == (2, 2 / 6, -2, 2)
    assert (numbers["mean"], numbers["std"]) == (0, pytest.approx(2**0.5))
    assert "nan inf" in numbers["first"]
    json.dumps(irload.report(loaded).data, allow_nan=False)


def test_bodies_and_how_they_are_wired():
    page = irload.report(MODELS / "loop" / "model.xml")
    loop = next(e for e in page.data["layers"] if e["type"] == "Loop")
    (body,) = loop["bodies"]
    graph = page.data["graphs"][body["graph"]]
    assert page.data["layers"][graph["owner"]] is loop
    inside = page.data["layers"][graph["start"] : graph["start"] + graph["count"]]
    assert {e["graph"] for e in inside} == {body["graph"]}
    names = [[page.data["layers"][k]["name"] for k in pair] for pair in body["back"]]
    assert names == [["value_out", "value"]]
    assert page.data["layers"][body["inputs"][0][1]]["name"] == "value"


def test_findings_are_at_their_layers(tmp_path):
    text = (MODELS / "loop" / "model.xml").read_text(encoding="utf-8")
    (tmp_path / "m.xml").write_text(text.replace('name="doubled" type="Add"', 'name="doubled" type="Add" more="1"'))
    text = text.replace('auto_broadcast="numpy"', 'auto_broadcast="numpy" nonsense="1"')
    (tmp_path / "m.xml").write_text(text, encoding="utf-8")
    (tmp_path / "m.bin").write_bytes((MODELS / "loop" / "model.bin").read_bytes())
    page = irload.report(tmp_path / "m.xml")
    findings = [f for f in page.data["findings"] if "nonsense" in f["message"]]
    assert findings
    assert {page.data["layers"][f["layer"]]["name"] for f in findings} == {"doubled"}
    assert irload.report(hostile()).data["findings"] is None


def test_a_model_that_does_not_hold_together_is_shown(tmp_path):
    text = DIGITS.read_text(encoding="utf-8").replace('kernel="2,2"', 'kernel="99,99"')
    (tmp_path / "m.xml").write_text(text, encoding="utf-8")
    (tmp_path / "m.bin").write_bytes(DIGITS.with_suffix(".bin").read_bytes())
    data = irload.report(tmp_path / "m.xml").data
    places = {data["layers"][f["layer"]]["name"] for f in data["findings"] if f["severity"] == "error"}
    assert "pool0" in places
    with pytest.raises(irload.ShapeMismatch):
        irload.report(tmp_path / "m.xml", SEVEN, profile=True)


def test_memory_over_time():
    loaded = irload.read_model(DIGITS).reshape([1, 1, 8, 8])
    data = irload.report(loaded).data["memory"]
    assert max(alive for _, alive in data["series"]) == data["peak"] > 0
    assert [k for k, _ in data["series"]] == sorted(k for k, _ in data["series"])


def test_time_is_of_layers():
    loaded = irload.read_model(DIGITS).reshape([1, 1, 8, 8])
    page = irload.report(loaded, SEVEN, profile=True, threads=1)
    names = [[page.data["layers"][k]["name"] for k in step["layers"]] for step in page.data["profile"]]
    assert any("conv0" in layers and "relu0" in layers for layers in names)  # fused
    assert all(step["seconds"] >= 0 for step in page.data["profile"])


def test_errors_and_edits_are_at_their_layers(tmp_path):
    text = DIGITS.read_text(encoding="utf-8")
    shifted = text.replace('pads_begin="1,1" pads_end="1,1"', 'pads_begin="0,0" pads_end="2,2"', 1)
    (tmp_path / "wrong.xml").write_text(shifted, encoding="utf-8")
    (tmp_path / "wrong.bin").write_bytes(DIGITS.with_suffix(".bin").read_bytes())
    page = irload.report(tmp_path / "wrong.xml", SEVEN, comparison=DIGITS, difference=DIGITS)
    wrong = [e for e in page.data["comparison"]["layers"] if not e["passed"]]
    assert [page.data["layers"][e["layer"]]["name"] for e in wrong] == ["conv0"]
    assert [page.data["layers"][e["layer"]]["name"] for e in page.data["difference"]["edits"]] == ["conv0"]
    assert page.data["difference"]["summary"] == "1 layer changed"
    again = irload.report(
        tmp_path / "wrong.xml",
        comparison=irload.compare(tmp_path / "wrong.xml", DIGITS, SEVEN),
        difference=irload.diff(tmp_path / "wrong.xml", DIGITS),
    )
    assert again.data["difference"] == page.data["difference"]
    assert again.data["comparison"] == page.data["comparison"]


def test_a_comparison_of_iterations_is_at_the_layer_of_the_body():
    loaded = irload.read_model(MODELS / "loop" / "model.xml")
    inputs = [np.load(MODELS / "loop" / f"input_{k}.npy") for k in (0, 1)]
    rows = irload.report(loaded, inputs, comparison=MODELS / "loop" / "model.xml").data["comparison"]["layers"]
    assert all(row["layer"] is not None for row in rows)
    assert len({row["layer"] for row in rows if row["name"].endswith("/doubled")}) == 1


def test_the_time_of_bodies_is_of_their_layers():
    loaded = irload.read_model(MODELS / "loop" / "model.xml")
    inputs = [np.load(MODELS / "loop" / f"input_{k}.npy") for k in (0, 1)]
    page = irload.report(loaded, inputs, profile=True, threads=1)
    (loop,) = page.data["profile"]
    assert [page.data["layers"][k]["type"] for k in loop["layers"]] == ["Loop"]
    (inside,) = loop["inside"]
    assert [page.data["layers"][k]["name"] for k in inside["layers"]] == ["doubled"]
    assert inside["seconds"] > 0


def test_findings_have_the_title_of_their_rule(tmp_path):
    text = DIGITS.read_text(encoding="utf-8").replace('kernel="2,2"', 'kernel="99,99"')
    (tmp_path / "m.xml").write_text(text, encoding="utf-8")
    (tmp_path / "m.bin").write_bytes(DIGITS.with_suffix(".bin").read_bytes())
    titles = {rule.code: rule.title for rule in all_rules()}
    data = irload.report(tmp_path / "m.xml").data["findings"]
    assert data
    assert all(f["title"] == titles[f["code"]] for f in data)


# -- the page ----------------------------------------------------------------------------------------------------------


def test_the_page_loads_no_resources():
    html = irload.report(DIGITS).html
    page = Page(html)
    links = [v for _, attributes in page.elements for k, v in attributes.items() if k in ("src", "href", "srcset")]
    assert links == ["data:,"]
    policy = next(a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "url(" not in html.partition("<style>")[2].partition("</style>")[0]
    assert "sourceMappingURL" not in html


def test_hostile_names_stay_text():
    plain = len(re.findall("<script", irload.report(DIGITS).html))
    report = irload.report(hostile())
    assert len(re.findall("<script", report.html)) == plain
    assert not any(name in report.html for name in HOSTILE if "<" in name and name != "<!--")
    assert "{{ 7 * 7 }}" in report.html  # not read by any template
    page = Page(report.html)
    assert [e["name"] for e in json.loads(page.scripts["data"])["layers"]][1 : 1 + len(HOSTILE)] == HOSTILE
    assert not any(tag == "img" for tag, _ in page.elements)


def test_the_name_of_the_model_stays_text():
    g = Graph()
    g.result(g.parameter("x", "f32", [2]))
    xml = f'<net name="&lt;script&gt;&lt;/title&gt;" version="11">{g.text()}</net>'
    html = irload.report(irload.read_model(xml.encode(), b"")).html
    assert "&lt;script&gt;&lt;/title&gt;" in html
    assert html.count("</title>") == 1


def test_json_in_html():
    text = json_in_html({"a": "</script><!-- & \u2028"})
    assert not set(text) & set("<>&\u2028")
    assert json.loads(text) == {"a": "</script><!-- & \u2028"}


def test_it_is_saved_whole(tmp_path):
    page = irload.report(DIGITS)
    page.save(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == page.html
    with pytest.raises(FileExistsError):
        page.save(tmp_path / "r.html")
    page.save(tmp_path / "r.html", force=True)
    assert repr(page).startswith("<ModelReport of 23 layers")


def test_a_notebook_shows_it_in_a_frame():
    shown = irload.report(hostile())._repr_html_()
    page = Page(shown)
    assert [tag for tag, _ in page.elements] == ["iframe"]
    assert page.elements[0][1]["sandbox"] == "allow-scripts allow-downloads"


def test_without_jinja2_the_extra_is_named(monkeypatch):
    original = builtins.__import__

    def missing(name, *rest):
        if name == "jinja2":
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(irload.Unsupported, match=r"irload\[report\]"):
        irload.report(DIGITS)


def test_the_page_contains_the_licences_of_its_libraries():
    html = irload.report(DIGITS).html
    assert all(name in html for name in ("@dagrejs/dagre", "d3-zoom", "Chris Pettitt", "Mike Bostock"))
