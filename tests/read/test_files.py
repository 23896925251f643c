"""Files that are no IR, or no files: what irload says of them, and that it says it at once."""

from __future__ import annotations

import gzip
import os
import pickle
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import irload
from irload.errors import IRError, LimitExceeded, ReadError
from irload.read import Weights
from tests.read.texts import BASE, PARAMETER, changed, net

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"

CONTENTS = {
    "empty": (b"", "empty"),
    "blank": (b" \n\t", "blank"),
    "zeros": (bytes(100), "blank"),
    "a Git-LFS pointer": (LFS, "git lfs pull"),
    "gzip": (gzip.compress(BASE.encode()), "gzip"),
    "HTML": (b"<!DOCTYPE html><html></html>", "HTML"),
    "HTML without doctype": (b"\n<html lang='en'>", "HTML"),
    "ONNX": (b"\x08\x08\x12\x07pytorch\x1a\x03", "ONNX"),
    "GGUF": (b"GGUF\x03\0\0\0", "GGUF"),
    "TensorFlow Lite": (b"\x1c\0\0\0TFL3", "TensorFlow Lite"),
    "HDF5": (b"\x89HDF\r\n\x1a\n", "HDF5"),
    "pickle": (pickle.dumps({"a": 1}, 2), "pickle"),
    "safetensors": (b"\x40\0\0\0\0\0\0\0" + b'{"w":{"dtype":"F32"}}', "safetensors"),
    "a compiled model": (b"RR_UPCVO\1\0\0\0", "compiled OpenVINO model"),
    "JSON": (b'{"a": 1}', "JSON"),
    "text": (b"hello", "no XML"),
    "UTF-16": (BASE.encode("utf-16"), "UTF-16"),
    "UTF-16 without mark": (BASE.encode("utf-16-le"), "UTF-16"),
    "UTF-16 by its declaration": (changed('"1.0"', '"1.0" encoding="utf-16"').encode(), "UTF-8"),
    "UTF-7": (changed('"1.0"', '"1.0" encoding="UTF-7"').encode(), "UTF-8"),
    "Latin-1": (changed('"1.0"', '"1.0" encoding="latin-1"').encode(), "UTF-8"),
    "bad UTF-8": (BASE.encode().replace(b"relu", b"re\xfflu"), "XML"),
    "another XML": (b"<svg/>", "root element is <svg>"),
    "an XML namespace": (BASE.replace("<net", '<net xmlns="urn:x"').encode(), "namespace"),
    "only a comment": (b"<!-- x -->", "root element"),
    "an unfinished comment": (b"<!-- x", "root element"),
    "a DOCTYPE": (changed("<net", "<!DOCTYPE net><net").encode(), "DOCTYPE"),
    "a DOCTYPE after comments": (changed("<net", "<!-- a --> <?b c?>\n<!DOCTYPE net []><net").encode(), "DOCTYPE"),
    "no version": (BASE.replace(' version="11"', "").encode(), "10 or 11"),
    "version 7": (net(version="7").encode(), "IR version 7.*original framework"),
    "version 12": (net(version="12").encode(), "newer"),
    "version x": (net(version="x").encode(), "10 or 11"),
    "an execution graph": (
        BASE.replace(' version="opset1"', "").replace("<data ", '<data execOrder="0" execTimeMcs="1" ').encode(),
        "execution graph",
    ),
}


@pytest.mark.parametrize(("content", "said"), CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("by", ["path", "bytes"])
def test_it_says_what_it_is(tmp_path: Path, content: bytes, said: str, by: str) -> None:
    file = tmp_path / "model.xml"
    file.write_bytes(content)
    with pytest.raises(ReadError, match=f"(?s){said}"):
        irload.read_model(file if by == "path" else content)


def test_a_zip_archive(tmp_path: Path) -> None:
    file = tmp_path / "model.xml"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a", "b")
    with pytest.raises(ReadError, match="ZIP"):
        irload.read_model(file)


BOMB = '<!DOCTYPE net [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {chr(98 + k)} "{f"&{chr(97 + k)};" * 10}">' for k in range(9)
)


@pytest.mark.parametrize(
    "prolog",
    [BOMB + "]>", '<!DOCTYPE net SYSTEM "file:///etc/passwd">', '<!DOCTYPE net [<!ENTITY % p SYSTEM "http://x/">%p;]>'],
)
def test_entities_are_not_even_parsed(prolog: str) -> None:
    with pytest.raises(ReadError, match="DOCTYPE"):
        irload.read_model(changed("<net", prolog + "<net").encode())


def test_an_entity_without_a_declaration() -> None:
    with pytest.raises(ReadError, match="well-formed"):
        irload.read_model(changed('"relu"', '"&v;"').encode())


@pytest.mark.parametrize("what", ["model", "weights"])
@pytest.mark.parametrize("kind", ["directory", "FIFO", "device", "missing", "NUL in the name"])
def test_what_is_no_regular_file(tmp_path: Path, what: str, kind: str) -> None:
    path: str | Path = tmp_path / "odd"
    if kind == "directory":
        os.mkdir(path)
    elif kind == "FIFO":
        os.mkfifo(path)  # nobody writes: an open that blocks would hang here
    elif kind == "device":
        path = "/dev/zero"
    elif kind == "NUL in the name":
        path = "a\0b"
    with pytest.raises(ReadError) as caught:
        irload.read_model(path) if what == "model" else Weights(path)
    if kind in ("directory", "FIFO", "device"):
        assert f"is a {kind}" in str(caught.value)


def test_weights_that_are_a_pointer(tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_text(BASE)
    (tmp_path / "m.bin").write_bytes(LFS)
    with pytest.raises(ReadError, match="git lfs pull"):
        irload.read_model(tmp_path / "m.xml")


def test_symbolic_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "m.xml").write_text(BASE)
    (tmp_path / "link.xml").symlink_to("m.xml")
    assert irload.read_model(tmp_path / "link.xml").outputs[0].shape == (1, 3)


def test_the_weights_are_found_beside_the_model(tmp_path: Path) -> None:
    text = (
        '<net version="11"><layers><layer id="0" name="c" type="Const" version="opset1"><data element_type="f32" '
        'shape="2" offset="0" size="8"/><output><port id="0" precision="FP32"/></output></layer><layer id="1" name="o" '
        'type="Result" version="opset1"><input><port id="0"/></input></layer></layers><edges><edge from-layer="0" '
        'from-port="0" to-layer="1" to-port="0"/></edges></net>'
    )
    (tmp_path / "a.b.xml").write_text(text)
    (tmp_path / "a.b.bin").write_bytes(np.array([1, 2], np.float32).tobytes())
    assert irload.compile_model(tmp_path / "a.b.xml")()[0].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("limit", "value", "text"),
    [
        ("xml_bytes", 100, BASE),
        ("layers", 2, BASE),
        ("attributes", 20, changed("<data ", "<data " + " ".join(f'a{k}=""' for k in range(30)) + " ")),
        ("element_bytes", 100_000, net(PARAMETER.replace("</output>", '<port id="1" precision="FP32"/>' * 20_000))),
        ("element_bytes", 100_000, net(tail=f"<rt_info>{'<a/>' * 80_000}</rt_info>")),
    ],
)
def test_limits(limit: str, value: int, text: str) -> None:
    with pytest.raises(LimitExceeded, match=limit):
        irload.read_model(text.encode(), limits=irload.Limits(**{limit: value}))


MANY = " ".join(f'a{k}="1"' for k in range(100_000))


@pytest.mark.parametrize("element", ["<net ", '<layer id="1" ', '<port id="1" ', "<edge ", "<data "])
def test_a_hundred_thousand_attributes_take_no_time(element: str) -> None:
    start = time.perf_counter()
    try:
        irload.read_model(changed(element, f"{element}{MANY} ").encode())
    except LimitExceeded:
        assert element == "<data "
    assert time.perf_counter() - start < 10


@pytest.mark.parametrize(
    "text",
    [net(tail=f"<rt_info>{'<a>' * 300}{'</a>' * 300}</rt_info>"), changed('"relu"', f'"{"x" * 11_000_000}"')],
    ids=["nested", "long"],
)
def test_the_bounds_of_the_parser_are_kept(text: str) -> None:
    with pytest.raises(LimitExceeded, match="256 deep, or texts beyond"):
        irload.read_model(text.encode())


def nested(depth: int) -> str:
    body = "<layers/><edges/>"
    for _ in range(depth):
        body = (
            '<layers><layer id="0" name="t" type="TensorIterator" version="opset1">'
            f"<body>{body}</body></layer></layers><edges/>"
        )
    return f'<net version="11">{body}</net>'


@pytest.mark.parametrize("depth", [40, 1000])
def test_bodies_that_are_nested_too_deep(depth: int) -> None:
    with pytest.raises(IRError, match=r"limit body_depth is 32|nested more than 256 deep"):
        irload.read_model(nested(depth).encode())
