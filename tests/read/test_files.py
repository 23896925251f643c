"""Files other than IR, and paths other than regular files: irload reports their kind at once."""

from __future__ import annotations

import gzip
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

import irload
from irload.errors import ReadError
from irload.read.prolog import BOM
from tests.read.texts import BASE, changed, net

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
    "text": (b"hello", "not XML"),
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
    "version 9": (net(version="9").encode(), "IR version 9, which does not exist"),
    "version 12": (net(version="12").encode(), "newer"),
    "version x": (net(version="x").encode(), "10 or 11"),
    "an execution graph": (
        BASE.replace(' version="opset1"', "").replace("<data ", '<data execOrder="0" execTimeMcs="1" ').encode(),
        "execution graph",
    ),
}


@pytest.mark.parametrize(("content", "said"), CONTENTS.values(), ids=CONTENTS)
@pytest.mark.parametrize("by", ["path", "bytes"])
def test_the_error_names_the_kind_of_file(tmp_path: Path, content: bytes, said: str, by: str) -> None:
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


def test_the_weights_next_to_the_model_are_used(tmp_path: Path) -> None:
    text = (
        '<net version="11"><layers><layer id="0" name="c" type="Const" version="opset1"><data element_type="f32" '
        'shape="2" offset="0" size="8"/><output><port id="0" precision="FP32"/></output></layer><layer id="1" name="o" '
        'type="Result" version="opset1"><input><port id="0"/></input></layer></layers><edges><edge from-layer="0" '
        'from-port="0" to-layer="1" to-port="0"/></edges></net>'
    )
    (tmp_path / "a.b.xml").write_text(text)
    (tmp_path / "a.b.bin").write_bytes(np.array([1, 2], np.float32).tobytes())
    assert irload.compile_model(tmp_path / "a.b.xml")()[0].tolist() == [1, 2]


def test_xml_in_place_of_weights(tmp_path: Path) -> None:
    digits = Path(__file__).parents[2] / "models" / "digits" / "model.xml"
    padded = digits.read_bytes() + bytes(1 << 20)  # long enough for every constant
    (tmp_path / "padded.bin").write_bytes(padded)
    for weights in (digits, tmp_path / "padded.bin", padded, BOM + padded):
        with pytest.raises(ReadError, match=r"the weights .*are an XML file; name the \.bin file with weights="):
            irload.read_model(digits, weights)
    (tmp_path / "w.XML").write_bytes(digits.with_suffix(".bin").read_bytes())
    with pytest.raises(ReadError, match=r"w\.XML are an XML file"):
        irload.read_model(digits, tmp_path / "w.XML")
    errors = [f for f in irload.check(digits, tmp_path / "padded.bin").findings if f.severity == "error"]
    assert [f.code for f in errors] == ["IR601"]


def test_the_text_of_a_model_is_not_a_path() -> None:
    for text in (BASE, "\ufeff" + BASE, BASE[BASE.index("<net") :]):
        with pytest.raises(ReadError, match=r"^read_model takes a path or bytes.*; pass text\.encode\(\)$"):
            irload.read_model(text)


@pytest.mark.parametrize("declared", ["ISO-8859-1", "latin1"])
def test_latin_1_is_read_as_the_runtime_reads_it(declared: str) -> None:
    text = changed('"1.0"', f'"1.0" encoding="{declared}"').replace('"relu"', '"r\xe9lu"')
    assert "r\xe9lu" in [n.name for n in irload.read_model(text.encode("latin-1")).nodes]
    assert "r\xe9lu" in [n.name for n in irload.read_model(BOM + text.encode()).nodes]
