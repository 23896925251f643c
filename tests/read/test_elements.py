"""Elements of the XML: lines, attributes, dims and rt_info that the reader records, and its warnings."""

from __future__ import annotations

import pytest

import irload
from irload.errors import IRError, ReadError
from irload.read.constants import RANK
from irload.read.xml import read_xml
from tests.read.texts import BASE, changed, const_net, faults, net

LINES = BASE.replace("<layer ", "\n<layer ").replace("<edge ", "\n<edge ").replace("<port ", "\n<port ")


def test_lines_of_layers_ports_and_edges() -> None:
    graph = read_xml(LINES.encode()).graph
    assert [layer.line for layer in graph.layers] == [2, 4, 7]
    assert [[p.line for p in (*layer.inputs, *layer.outputs)] for layer in graph.layers] == [[3], [5, 6], [8]]
    assert [edge.line for edge in graph.edges] == [9, 10]
    model = irload.read_model(LINES.encode())
    assert [node.line for node in model.nodes] == [2, 4, 7]


def test_raw_elements_take_little_memory() -> None:
    """A file has millions of them; an instance without slots takes three times as many bytes."""
    graph = read_xml(BASE.encode()).graph
    for element in (graph.layers[0], graph.layers[0].outputs[0], graph.edges[0]):
        assert not hasattr(element, "__dict__")


def test_dims_of_ports() -> None:
    text = changed("<dim>3</dim></port></input>", "<dim> 3 </dim></port></input>")
    text = changed("<dim>1</dim>", "<dim>-1</dim>", text)
    layers = read_xml(text.encode()).graph.layers
    assert [port.dims for layer in layers for port in (*layer.inputs, *layer.outputs)] == [
        (-1, 3),
        (1, 3),
        (1, 3),
        None,
    ]
    largest = "9" * 18
    assert read_xml(changed("<dim>3", f"<dim>{largest}").encode()).graph.layers[0].outputs[0].dims == (1, int(largest))
    with pytest.raises(ReadError, match=r"Parameter 'in' \(id 0\): dimension '1000000000000000000' of a port"):
        read_xml(changed("<dim>3", "<dim>1" + "0" * 18).encode())


@pytest.mark.parametrize(("version", "kept"), [("11", True), ("10", False)])
@pytest.mark.parametrize("dims", ["", "<dim>1</dim>", "<dim>1</dim><dim>3</dim>"])
def test_rt_info_of_ports(version: str, kept: bool, dims: str) -> None:
    """OpenVINO ignores it in IR v10."""
    info = '<rt_info><attribute name="layout" version="0" layout="[N,C]"/><odd a="1"><inner b="2"/></odd></rt_info>'
    text = changed('names="x"><dim>1</dim><dim>3</dim>', f'names="x">{dims}{info}', net(version=version))
    entries = [
        {"name": "layout", "version": "0", "layout": "[N,C]"},
        {"a": "1", "#tag": "odd", "#children": [{"b": "2", "#tag": "inner"}]},
    ]
    assert read_xml(text.encode()).graph.layers[0].outputs[0].rt_info == (entries if kept else [])


@pytest.mark.parametrize(
    ("first", "second", "refused"),
    [("0", "0", True), ("0", "1", False), ("", "", False)],
)
def test_runtime_attributes_twice(first: str, second: str, refused: bool) -> None:
    """Only `<attribute>` elements of certain names with a version must not be repeated."""
    for tag, name in (("attribute", "precise"), ("attribute", "mine"), ("a", "precise"), ("b", "precise")):
        once = (tag, name) == ("attribute", "precise")
        info = "".join(f'<{tag} name="{name}" version="{v}"/>' for v in (first, second))
        _, errors = faults(changed("<input>", f"<rt_info>{info}</rt_info><input>"))
        assert bool(errors) == (refused and once)
        if errors:
            assert "ReLU 'relu' (id 1): rt_info has the attribute precise twice" in errors[0]


@pytest.mark.parametrize("text", [LINES, changed("<edges>", "<edges><junk/>", LINES)])
def test_unknown_elements_of_the_net_are_warnings(text: str) -> None:
    assert read_xml(text.encode()).warnings == []
    text = changed("<layers>", "<first/><layers>", text)
    text = changed("<edges>", "<second>\n</second><edges>", text)
    text = changed("</edges>", "</edges>\n<third/><statistics/><meta_data/>", text)
    assert read_xml(text.encode()).warnings == [
        "line 1: unknown element <first> in <net>",
        "line 8: unknown element <second> in <net>",
        "line 12: unknown element <third> in <net>",
    ]


@pytest.mark.parametrize("mark", ["<!-- x -->", "<?x y?>"], ids=["comment", "instruction"])
def test_comments_and_processing_instructions_are_ignored(mark: str) -> None:
    text = BASE.removeprefix('<?xml version="1.0"?>').replace(">", ">" + mark)
    raw = read_xml(text.replace(f"<dim>{mark}", "<dim>").encode())
    assert raw.warnings == []
    assert raw.graph == read_xml(BASE.encode()).graph


def test_unknown_attributes_and_elements_of_layers_are_warnings() -> None:
    text = changed('type="ReLU"', 'type="ReLU" zeal="1" age="2"', LINES)
    text = changed('id="1" precision', 'junk="" id="1" precision', text)
    text = changed("<output>", "<ports/><output><pork/>", text)
    text = changed('from-layer="1"', 'from-layer="1" weight="2"', text)
    assert sorted(read_xml(text.encode()).warnings) == [
        "line 10: unknown attribute weight of <edge>",
        "line 2: unknown element <pork> among ports",
        "line 2: unknown element <ports> in layer 'in'",
        "line 4: unknown attribute age of <layer>",
        "line 4: unknown attribute zeal of <layer>",
        "line 6: unknown attribute junk of <port>",
    ]


def test_metadata_that_looks_like_a_graph() -> None:
    """Elements of a graph inside rt_info are part of its tree."""
    inner = '<layers><layer id="0"/></layers><edges><edge/></edges><body><layer/></body><pre-process/><rt_info/>'
    for text in (
        net(tail=f"<rt_info>{inner}</rt_info>"),
        net(tail=f"<meta_data>{inner.replace('<pre-process/>', '')}</meta_data>"),
        changed("<input>", f"<rt_info>{inner}</rt_info><input>"),
    ):
        raw = read_xml(text.encode(), report=lambda error: None)
        assert [layer.name for layer in raw.graph.layers] == ["in", "relu", "out"]
        assert (len(raw.graph.edges), raw.preprocess) == (2, None)


def test_elements_outside_their_parents() -> None:
    """A layer outside <layers>, an edge outside <edges>, a body outside a layer, a pre-process outside the net."""
    means = '<x><pre-process><channel id="0"><mean value="1"/></channel></pre-process></x>'
    text = net(tail=f'<x><layer id="9"/></x><x><edge/></x><body><layer id="8"/></body>{means}')
    raw = read_xml(text.encode())
    assert [layer.name for layer in raw.graph.layers] == ["in", "relu", "out"]
    assert (len(raw.graph.edges), raw.preprocess) == (2, None)


@pytest.mark.parametrize(("text", "version"), [("11", 11), ("00000010", 10), (" 11", 11)])
def test_versions(text: str, version: int) -> None:
    assert read_xml(net(version=text).encode()).version == version


@pytest.mark.parametrize("text", ["9", "12", "000000011", "0000000011", "", "11 ", "١١", "1.1"])
def test_other_versions(text: str) -> None:
    with pytest.raises(ReadError, match="version"):
        read_xml(net(version=text).encode())


@pytest.mark.parametrize(("digits", "read"), [(18, True), (19, False)])
def test_ids_have_up_to_18_digits(digits: int, read: bool) -> None:
    text = BASE.replace('id="1" name', f'id="{"9" * digits}" name').replace('-layer="1"', f'-layer="{"9" * digits}"')
    _, errors = faults(text)
    assert (not errors) == read
    assert read or "id='9999999999999999999' of <layer> is not a non-negative integer" in errors[0]


@pytest.mark.parametrize("prolog", ["<!---->", "<!---> x -->", "<!-- - -->\n", " \n<!--x--><?a?>\t<!--y-->", "<?a b?>"])
def test_comments_and_instructions_before_the_net(prolog: str) -> None:
    for start in ("", '<?xml version="1.0"?>', "\N{BYTE ORDER MARK}", '\N{BYTE ORDER MARK}<?xml version="1.0"?>'):
        text = start + prolog.strip() + BASE.removeprefix('<?xml version="1.0"?>')
        assert read_xml(text.encode()).graph == read_xml(BASE.encode()).graph


def test_an_encoding_after_the_declaration_is_text() -> None:
    text = changed("<net", '<!-- encoding="utf-16" --><net')
    assert read_xml(text.encode()).name == "m"
    assert read_xml(text.removeprefix('<?xml version="1.0"?>').encode()).name == "m"


def test_the_tree_of_metadata() -> None:
    """A value hides nested elements; an element without either is empty."""
    inner = '<a value="1"><b value="2"/></a><c> text </c><d/><e><f><g value=""/></f></e>'
    tree = {"a": "1", "c": "text", "d": {}, "e": {"f": {"g": ""}}}
    assert read_xml(net(tail=f"<rt_info>{inner}</rt_info>").encode()).rt_info == tree


@pytest.mark.parametrize(("tag", "refused"), [("meta_data", True), ("quantization_parameters", False)])
def test_entries_of_meta_data_need_a_value(tag: str, refused: bool) -> None:
    _, errors = faults(net(tail=f'<{tag}><a value="1"/><cli_parameters/><b/></{tag}>'))
    assert errors == (["line 1: <b> of meta_data has no value"] if refused else [])


def test_the_name_of_the_net() -> None:
    assert read_xml(BASE.encode()).name == "m"
    assert read_xml(changed(' name="m"', "").encode()).name == ""


def test_a_const_of_the_largest_rank() -> None:
    """NumPy arrays have up to 64 axes."""
    for rank in (RANK, 64):
        shape = ",".join(["1"] * rank)
        model = irload.read_model(
            const_net(f'element_type="f32" shape="{shape}" offset="0" size="4"').encode(), bytes(4)
        )
        assert model.outputs[0].shape == (1,) * 64
    shape = ",".join(["1"] * 65)
    with pytest.raises(IRError, match="rank 65 exceeds 64"):
        irload.read_model(const_net(f'element_type="f32" shape="{shape}" offset="0" size="4"').encode(), bytes(4))


@pytest.mark.parametrize(("digits", "read"), [("1" + "0" * 17, True), ("1" + "0" * 18, False)])
def test_offsets_have_up_to_18_digits(digits: str, read: bool) -> None:
    said = r"outside the \.bin" if read else "attribute offset must be a non-negative integer"
    with pytest.raises(IRError, match=said):
        irload.read_model(const_net(f'element_type="f32" shape="1" offset="{digits}" size="4"').encode(), bytes(4))


@pytest.mark.parametrize(("size", "read"), [(16, True), (15, False)])
def test_the_header_of_strings(size: int, read: bool) -> None:
    """The count and the end of each string, four bytes each, are needed before any string is read."""
    _, errors = faults(const_net(f'element_type="string" shape="2" offset="0" size="{size}"', "STRING"), bytes(16))
    assert bool(errors) != read
    assert read or "at least the 16 bytes" in errors[0]


def test_warnings_of_sizes() -> None:
    for shape, size, warned in (("2", 8, False), ("2", 9, True), ("0", 1, False), ("0", 24, False)):
        model = irload.read_model(
            const_net(f'element_type="f32" shape="{shape}" offset="0" size="{size}"').encode(), bytes(24)
        )
        assert any("is more than the" in w for w in model.warnings) == warned
