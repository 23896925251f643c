"""Limits of the reader: a file that reaches a limit exactly is read; one element more is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import irload
from irload.errors import IRError, LimitExceeded, ReadError
from irload.read import read_graph, xml
from irload.read.elements import Elements
from irload.read.faults import counted
from irload.read.xml import read_xml
from irload.safety.limits import Limits
from tests.read.texts import BASE, EDGES, PARAMETER, RELU, RESULT, changed, const_net, net

LIMITED: dict[str, tuple[str, int, str]] = {
    "layers": ("layers", 3, BASE),
    "ports": ("ports", 4, BASE),
    "edges": ("ports", 5, net(edges=EDGES + '<edge from-layer="0" from-port="0" to-layer="9" to-port="0"/>' * 3)),
    "attributes of data": ("attributes", 2, BASE),
    "a name": ("name_length", 12, changed('name="relu"', 'name="relu_of_12_c"')),
    "a type": ("name_length", 9, BASE),
    "tensor names": ("name_length", 9, changed('names="y"', 'names="nine_char,another_9"')),
    "a long list of tensor names": ("name_length", 12, changed('names="y"', 'names="twelve_chars,y"')),
    "bytes of the file": ("xml_bytes", len(BASE), BASE),
    "bytes of an element": ("element_bytes", len(BASE), BASE),
    "bytes of metadata": ("element_bytes", 30_000, net(tail=f"<rt_info>{' ' * 40_000}</rt_info>")[:30_000]),
    "bytes of a tensor": ("tensor_bytes", 24, const_net('element_type="f32" shape="6" offset="0" size="24"')),
}


@pytest.mark.parametrize(("limit", "value", "text"), LIMITED.values(), ids=LIMITED)
def test_a_limit_is_the_largest_value_that_is_read(limit: str, value: int, text: str) -> None:
    def read(bound: int) -> list[str]:
        errors: list[IRError] = []
        try:
            read_graph(text.encode(), bytes(24), errors.append, Limits(**{limit: bound}))
        except IRError as error:
            errors.append(error)
        return [error.limit for error in errors if isinstance(error, LimitExceeded)]

    assert read(value) == []
    assert read(value - 1) == [limit]


def test_the_size_of_a_file_is_limited_like_that_of_bytes(tmp_path: Path) -> None:
    (tmp_path / "model.xml").write_text(BASE)
    for hashed in (False, True):
        assert read_graph(tmp_path / "model.xml", limits=Limits(xml_bytes=len(BASE)), hashed=hashed).nodes
        with pytest.raises(LimitExceeded, match="xml_bytes"):
            read_graph(tmp_path / "model.xml", limits=Limits(xml_bytes=len(BASE) - 1), hashed=hashed)


def test_elements_with_unlisted_attributes_may_have_any_number() -> None:
    assert read_xml(BASE.encode(), limits=Limits(attributes=4)).warnings == []
    warnings = read_xml(BASE.encode(), limits=Limits(attributes=3)).warnings
    assert warnings[0] == "line 1: 4 attributes of <layer>"


# -- memory that the elements between layers take ----------------------------------------------------------------------

CHUNK = 1 << 12
BOUND = Limits(element_bytes=4 * CHUNK)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parse fewer bytes at once, so that small files have many chunks."""
    monkeypatch.setattr(xml, "CHUNK", CHUNK)


def body(inner: str) -> str:
    """A net of one layer with a body."""
    layer = f'<layer id="1" name="loop" type="If" version="opset8">{inner}</layer>'
    return f'<net name="m" version="11"><layers>{layer}</layers></net>'


def layers(size: int) -> str:
    """Layers of about `size` bytes in total."""
    return "<layers>" + "".join(f'<layer id="{k}" name="n" type="T"/>' for k in range(size // 40)) + "</layers>"


NESTED = '<net version="11">{}</net>', body("<body>{}</body>")


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("nest", NESTED, ids=["net", "body"])
def test_layers_are_freed_one_by_one_at_each_level(nest: str) -> None:
    read_xml(nest.format(layers(20 * CHUNK)).encode(), limits=BOUND)
    with pytest.raises(LimitExceeded, match="element_bytes"):
        read_xml(nest.format(layers(CHUNK) + "<rt_info>" + " " * 5 * CHUNK + "</rt_info>").encode(), limits=BOUND)


@pytest.mark.usefixtures("small_chunks")
def test_edges_are_freed_one_by_one() -> None:
    edges = '<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>' * 1_000
    assert len(read_xml(net(edges=edges).encode(), limits=BOUND).graph.edges) == 1_000


@pytest.mark.usefixtures("small_chunks")
def test_bodies_do_not_hide_the_elements_between_them() -> None:
    """Nearly every chunk ends inside a body, and the elements before it belong to the enclosing layer."""
    pair = "<junk/>" * 30 + f"<then_body>{' ' * (CHUNK - 300)}</then_body>"
    read_xml(body(pair * 2).encode(), limits=BOUND)
    with pytest.raises(LimitExceeded, match="element_bytes"):
        read_xml(body(pair * 12).encode(), limits=BOUND)


@pytest.mark.parametrize("nest", NESTED, ids=["net", "body"])
def test_elements_before_a_layer_are_freed(nest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree of a file takes twenty times its size."""
    before: list[int] = []
    read = Elements.layer

    def counting(self: Elements, element: Any, bodies: Any) -> Any:
        open_elements = [element, *element.iterancestors()]
        before.append(sum(1 for e in open_elements for _ in e.itersiblings(preceding=True)))
        return read(self, element, bodies)

    monkeypatch.setattr(Elements, "layer", counting)
    layer = '<layer id="1" name="n" type="T"/>'
    read_xml(nest.format(f"<junk/><layers><junk/>{layer}<junk/><junk/>{layer}</layers>" * 50).encode())
    assert len(before) >= 100
    assert max(before) <= 4


# -- faults and warnings -----------------------------------------------------------------------------------------------


def test_reading_stops_after_10_000_faults() -> None:
    errors: list[IRError] = []
    report = counted(errors.append)
    for _ in range(10_000):
        report(ReadError("fault"))
    with pytest.raises(ReadError, match="more than 10000 faults"):
        report(ReadError("fault"))
    assert len(errors) == 10_000


def test_all_10_000_faults_of_a_file_are_reported() -> None:
    errors: list[IRError] = []
    edge = '<edge from-layer="0" from-port="0" to-layer="1"/>'
    read_xml(net(edges=edge * 10_000).encode(), errors.append)
    assert len(errors) == 10_000
    with pytest.raises(ReadError, match="more than 10000 faults"):
        read_xml(net(edges=edge * 10_001).encode(), errors.append)


def test_10_000_warnings_are_recorded() -> None:
    for elements, recorded in ((9_999, 9_999), (10_000, 10_000), (10_002, 10_000)):
        assert len(read_xml(net(tail="<junk/>" * elements).encode()).warnings) == recorded
    parameters = "".join(
        PARAMETER.replace('id="0" name="in"', f'id="{k}" name="in"').replace(' version="opset1"', "")
        for k in range(10, 10_012)
    )
    model = irload.read_model(net(PARAMETER + RELU + RESULT + parameters).encode())
    assert sum("read as opset1" in w for w in model.warnings) == 10_000
