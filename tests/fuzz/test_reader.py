"""Properties of the reader and of `check`: any text at any position is either read or rejected with an IRError."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irload
from irload.core import attribute as attr
from irload.core import element as et
from irload.core.shape import Shape
from irload.errors import AttributeInvalid, IRError
from irload.read import Weights, read_graph, read_xml
from irload.read.build import build
from irload.read.names import join_names, split_names
from tests.harness.tiers import tiered

CHARACTERS = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff") | st.sampled_from("\t\n")
NUMBERS = st.integers(-(2**65), 2**65) | st.sampled_from([0, 1, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, 10**400])
ODD = [
    "",
    " ",
    "-",
    "--1",
    "1_0",
    "１２",
    "²",
    "0x10",
    "1e3",
    "1e999",
    "nan",
    "-inf",
    "1,,2",
    ",",
    "1,",
    "..",
    "2..1",
    "?",
]
TEXT = st.text(CHARACTERS, max_size=30) | NUMBERS.map(str) | st.floats().map(repr) | st.sampled_from(ODD)
LISTS = st.lists(TEXT, max_size=4).map(",".join)
ANY = TEXT | LISTS
QUICK = settings(max_examples=tiered(60, 200))

KINDS: dict[str, Any] = {
    "integer": attr.integer(),
    "integers": attr.integers(rule=attr.non_negative),
    "number": attr.number(rule=attr.finite),
    "numbers": attr.numbers(),
    "boolean": attr.boolean(default=False),
    "choice": attr.choice("same_upper", "valid", default="valid"),
    "words": attr.words(),
    "text": attr.text(),
    "element_type": attr.element_type(),
    "shape": attr.shape(),
}


@pytest.mark.parametrize("kind", KINDS)
@given(text=ANY)
@QUICK
def test_attributes_are_read_and_written_back_or_rejected(kind, text):
    declared, notes = KINDS[kind], []
    try:
        value = declared.read(text, notes)
        declared.check(value)
    except AttributeInvalid:
        return
    again = declared.read(declared.write(value), notes)
    assert again == value or repr(again) == repr(value)  # NaN is not equal to itself


@given(text=ANY)
@QUICK
def test_shapes_are_read_and_written_back_or_rejected(text):
    with suppress(irload.ShapeMismatch):
        shape = Shape.parse(text)
        assert Shape.parse(str(shape).strip("[]")) == shape
        assert all(d.hi is None or 0 <= d.lo <= d.hi < 10**18 for d in (shape.dims if shape.rank is not None else ()))


@given(names=st.sets(st.text(st.characters(exclude_characters="\\"), min_size=1)))
@QUICK
def test_splitting_reverses_joining_of_names(names):
    assert split_names(join_names(names)) == tuple(sorted(names))


CONST = (
    '<net name="m" version="11"><layers><layer id="0" name="c" type="Const" version="opset1">'
    '<data element_type="{}" shape={} offset={} size={}/><output><port id="0" precision="FP32"/></output></layer>'
    '<layer id="1" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer></layers>'
    '<edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>'
)
BLOB = bytes(100)


@given(
    element=st.sampled_from([et.f32, et.u8, et.i64, et.u4, et.boolean]),
    dims=st.lists(st.integers(0, 12) | st.sampled_from([2**31, 2**62, 10**17]), max_size=3),
    offset=st.integers(-2, 110) | NUMBERS,
    over=st.integers(-2, 2) | NUMBERS,
)
@QUICK
def test_constant_ranges_must_fit_the_weights_and_the_shape(element, dims, offset, over):
    count = 1
    for dim in dims:
        count *= dim
    size = element.bytes_for(count) + over
    text = CONST.format(element, *(quoteattr(str(v)) for v in (",".join(map(str, dims)), offset, size)))
    fits = min(offset, size) >= 0 and offset + size <= len(BLOB) and over >= 0
    try:
        model = read_graph(text.encode(), BLOB)
    except IRError:
        assert not fits or over > 0 or max(dims, default=0) > 2**30  # empty, but too large for NumPy
        return
    array = model.nodes[0].op.compute()
    assert count == 0 or fits
    assert array.shape == tuple(dims)


def port(slot: Any) -> str:
    dims = "".join(f"<dim>{escape(slot())}</dim>" for _ in range(2))
    return f"<port id={quoteattr(slot())} precision={quoteattr(slot())} names={quoteattr(slot())}>{dims}</port>"


def document(slot: Any) -> bytes:
    """An IR with a loop, metadata and preprocessing; each text is drawn by `slot`."""
    q = lambda: quoteattr(slot())  # noqa: E731 - short, as each line calls it
    data = f"<data shape={q()} element_type={q()} offset={q()} size={q()} axis={q()} variable_id={q()} mode={q()}/>"
    ends = f"<edge from-layer={q()} from-port={q()} to-layer={q()} to-port={q()}/>"
    inner = f"<layer id={q()} name={q()} type={q()} version={q()}>{data}<output>{port(slot)}</output></layer>"
    line = f"external_port_id={q()} internal_layer_id={q()} axis={q()} start={q()} stride={q()} purpose={q()}"
    body = (
        f"<port_map><input {line}/><output {line}/></port_map><back_edges><edge from-layer={q()} to-layer={q()}/>"
        f"</back_edges><body><layers>{inner}</layers><edges>{ends}</edges></body>"
    )
    info = f"<rt_info><attribute name={q()} version={q()} value={q()}/><a name={q()}>{escape(slot())}</a></rt_info>"
    loop = (
        f"<layer id={q()} name={q()} type={q()} version={q()} output_names={q()}><input>{port(slot)}</input>"
        f"<output>{port(slot)}</output>{info}{body}</layer>"
    )
    mean = f"<channel id={q()}><mean value={q()}/><mean offset={q()} size={q()}/></channel>"
    old = f"<meta_data><k value={q()}/><b/></meta_data>"
    old += f"<quantization_parameters><c value={q()}/></quantization_parameters>"
    head = f"<net name={q()} version={q()}>"
    return (
        f"{head}<pre-process reference-layer-name={q()} mean-precision={q()}>{mean}</pre-process>"
        f"<layers>{loop}{inner}</layers><edges>{ends}</edges>{info}{old}</net>"
    ).encode()


SOUND = {
    "id": st.sampled_from(["0", "1", "2", "00", "3"]),
    "type": st.sampled_from(
        ["Parameter", "Const", "Result", "Loop", "If", "TensorIterator", "ReadValue", "Add", "Concat"]
    ),
    "version": st.sampled_from(["opset1", "opset5", "opset8", "11", "10"]),
    "other": st.sampled_from(["f32", "FP32", "I64", "1,2", "", "-1", "4", "current_iteration", "a,b"]),
}
SLOT = st.one_of(*SOUND.values(), *SOUND.values(), ANY)


@given(data=st.data())
@QUICK
def test_any_text_at_any_position_is_read_or_rejected(data):
    text = document(lambda: data.draw(SLOT))
    faults: list[IRError] = []
    with suppress(IRError):
        build(read_xml(text, faults.append), Weights(BLOB), None, faults.append)
    with suppress(IRError):
        irload.read_model(text, BLOB)
    assert all(str(fault) for fault in faults)


@given(data=st.data())
@settings(QUICK, max_examples=tiered(20, 60))
def test_check_never_raises_for_any_content(data):
    text = document(lambda: data.draw(SLOT))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.xml"
        file.write_bytes(text)
        report = irload.check(file, BLOB)
    with suppress(IRError):
        irload.read_model(text, BLOB)
        return
    assert report.errors


@given(
    data=st.binary(max_size=200)
    | st.text(max_size=80).map(lambda t: f'<net version="11">{t}</net>'.encode(errors="replace"))
)
@QUICK
def test_any_bytes_are_rejected_or_empty(data):
    with suppress(IRError):
        assert not irload.read_model(data, b"").nodes
