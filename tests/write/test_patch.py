"""correct_ports: only false port declarations change; an edited file is restored as far as possible."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

import irload
from irload.model import infer
from irload.read import read_graph
from irload.write.patch import corrected

ROOT = Path(__file__).parents[2] / "models"
MODELS = sorted(ROOT.glob("*/model.xml"))
LOOP = ROOT / "loop" / "model.xml"
CONV = ROOT / "conv_openvino" / "model.xml"


def fix(source: bytes, weights: Path | bytes | None) -> tuple[bytes, int]:
    return corrected(source, infer(read_graph(source, weights)))


@pytest.mark.parametrize("file", MODELS, ids=lambda f: f.parent.name)
def test_sound_models_are_left_alone(file):
    source = file.read_bytes()
    assert fix(source, file.with_suffix(".bin")) == (source, 0)


def edited(source: bytes, rng: random.Random) -> tuple[bytes, str]:
    """The file with one dim or one precision of an output changed, or a dim added or removed."""
    dims = [
        d
        for ports in re.finditer(rb"<output>.*?</output>", source, re.S)
        for d in re.finditer(rb"[ \t]*<dim>(-?\d+)</dim>\n", source[: ports.end()][ports.start() :])
        for d in [(ports.start() + d.start(), ports.start() + d.end(), d[1])]
    ]
    start, end, number = rng.choice(dims)
    line = source[start:end]
    kind = rng.choice(["change", "add", "remove", "precision"])
    if kind == "change":
        return source[:start] + line.replace(number, b"%d" % (int(number) + 91)) + source[end:], kind
    if kind == "add":
        return source[:end] + line + source[end:], kind
    if kind == "remove":
        return source[:start] + source[end:], kind
    precisions = list(re.finditer(rb'precision="(\w+)"', source))
    match = rng.choice(precisions)
    other = rng.choice([p for p in (b"FP16", b"U8") if p != match[1]])
    return source[: match.start(1)] + other + source[match.end(1) :], kind


@pytest.mark.parametrize("file", MODELS, ids=lambda f: f.parent.name)
@pytest.mark.parametrize("seed", range(25))
def test_edits_are_undone(file, seed):
    source = file.read_bytes()
    changed, _ = edited(source, random.Random(seed))
    assert changed != source
    assert fix(changed, file.with_suffix(".bin")) == (source, 1)


@pytest.mark.parametrize("file", [LOOP, ROOT / "digits" / "model.xml"], ids=lambda f: f.parent.name)
def test_all_dims_are_found_again(file):
    """Also in bodies, and in every port at once."""
    source = file.read_bytes()
    changed = re.sub(rb"\n[ \t]*<dim>.*?</dim>", b"", source)
    assert b"<dim>" not in changed
    changes, count = fix(changed, file.with_suffix(".bin"))
    assert changes == source
    assert count > 5


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.replace(b"\n", b"\r\n"),
        lambda s: b"\xef\xbb\xbf" + s,
        lambda s: s.replace(b'"', b"'"),
        lambda s: s.replace(b"\t", b"  "),
        lambda s: re.sub(rb"\n\s*", b"", s),
        lambda s: s.replace(b"<dim>", b"<!-- <dim>5</dim> > --><dim> ").replace(b"</dim>", b" </dim >"),
        lambda s: s.replace(b"<port ", b"<port\n odd='precision=\"x\">,y' "),
        lambda s: s.replace(b"<output>", b"<rt_info><input><port><dim>9</dim></port></input></rt_info><output>"),
        lambda s: s.replace(b"</port>", b"<rt_info><attribute name='layout' version='0'/></rt_info></port>"),
    ],
    ids=["crlf", "bom", "quotes", "blanks", "one line", "comments", "attributes", "metadata", "rt_info of ports"],
)
@pytest.mark.parametrize("file", [LOOP, CONV], ids=lambda f: f.parent.name)
def test_other_layouts(file, change):
    source = change(file.read_bytes())
    weights = file.with_suffix(".bin")
    assert fix(source, weights) == (source, 0)
    outputs = source.rindex(b"<dim>")
    wrong = source[:outputs] + re.sub(rb">( ?)-?\d+", rb">\g<1>77", source[outputs:], count=1)
    assert wrong != source
    assert fix(wrong, weights) == (source, 1)


PORT = '<port id="0" precision="FP32"{}'
RELU = """<net name="n" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="{}" element_type="f32"/>
<output>{}</output></layer>
<layer id="1" name="r" type="Result" version="opset1"><input><port id="0"/></input></layer></layers>
<edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>"""


@pytest.mark.parametrize(
    ("shape", "before", "after"),
    [
        ("2,3", "/>", "><dim>2</dim><dim>3</dim></port>"),
        ("2,3", " />", "><dim>2</dim><dim>3</dim></port>"),
        ("2,3", "></port>", "><dim>2</dim><dim>3</dim></port>"),
        ("", "><dim>2</dim></port>", "></port>"),
        ("", ">\n  <dim>2</dim>\n</port>", " />"),
        ("2..4,?,5", "><dim>2</dim><dim>7</dim><dim>-1</dim></port>", "><dim>-1</dim><dim>-1</dim><dim>5</dim></port>"),
        ("...", "><dim>2</dim></port>", "><dim>2</dim></port>"),
        ("2", "><dim/></port>", "><dim>2</dim></port>"),
    ],
)
def test_ports_of_parameters(shape, before, after):
    model = RELU.format(shape, PORT.format(before)).encode()
    if before == "><dim/></port>":
        errors: list[irload.IRError] = []
        fixed = corrected(model, infer(read_graph(model, None, errors.append)))[0]
    else:
        fixed = fix(model, None)[0]
    # The Result's input lists nothing, so it is filled in, too.
    expected = PORT.format(after) + "</output>"
    assert expected in fixed.decode()


def test_ports_whose_type_is_unknown_keep_theirs():
    text = RELU.format("2", PORT.format("><dim>4</dim></port>")).replace("f32", "dynamic")
    fixed, count = fix(text.encode(), None)
    assert b'precision="FP32"><dim>2</dim>' in fixed
    assert count == 2


def test_files(tmp_path):
    xml, weights = tmp_path / "m.xml", tmp_path / "m.bin"
    source = CONV.read_bytes()
    xml.write_bytes(source.replace(b"<dim>3</dim>", b"<dim>4</dim>", 1))
    weights.write_bytes(CONV.with_suffix(".bin").read_bytes())
    model = irload.read_model(xml)
    assert irload.correct_ports(model, tmp_path / "fixed.xml") == 1
    assert (tmp_path / "fixed.xml").read_bytes() == source
    with pytest.raises(FileExistsError):
        irload.correct_ports(model, xml)
    assert irload.correct_ports(model, xml, force=True) == 1
    assert xml.read_bytes() == source
    assert weights.read_bytes() == CONV.with_suffix(".bin").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["fixed.xml", "m.bin", "m.xml"]


def test_models_from_bytes_have_no_file(tmp_path):
    model = irload.read_model(CONV.read_bytes(), CONV.with_suffix(".bin").read_bytes())
    with pytest.raises(irload.InputInvalid, match="no file"):
        irload.correct_ports(model, tmp_path / "fixed.xml")
