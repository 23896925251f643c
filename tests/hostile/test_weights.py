"""Untrusted weights: ranges outside the file, special files, shared bytes, and memory maps."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

import irload
from irload.errors import InputInvalid, IRError, ReadError
from irload.read import Weights
from irload.read.constants import RANK
from irload.system.portable import read_at
from tests.hostile.confined import confined, irrun
from tests.read.texts import BASE, RESULT, const_net, net

MEMORY = 1 << 30
SECONDS = 300
FLOATS = np.arange(6, dtype=np.float32).tobytes()
F32 = 'element_type="f32" '

ROWS = {
    "no element type": 'shape="1" offset="0" size="4"',
    "no shape": F32 + 'offset="0" size="4"',
    "no offset": F32 + 'shape="1" size="4"',
    "no size": F32 + 'shape="1" offset="0"',
    "an element type of ports": 'element_type="FP32" shape="1" offset="0" size="4"',
    "a dynamic element type": 'element_type="dynamic" shape="1" offset="0" size="4"',
    "a dynamic shape": F32 + 'shape="?" offset="0" size="4"',
    "a negative dim": F32 + 'shape="-1" offset="0" size="4"',
    "no rank": F32 + 'shape="..." offset="0" size="4"',
    "size is less than shape × bits": F32 + 'shape="2" offset="0" size="4"',
    "offset past the file": F32 + 'shape="1" offset="24" size="4"',
    "end past the file": F32 + 'shape="1" offset="22" size="4"',
    "size past the file": F32 + 'shape="7" offset="0" size="28"',
    "negative offset": F32 + 'shape="1" offset="-4" size="4"',
    "negative size": F32 + 'shape="1" offset="0" size="-4"',
    "offset 0x0": F32 + 'shape="1" offset="0x0" size="4"',
    "size 0x10": F32 + 'shape="4" offset="0" size="0x10"',
    "offset 1_0": F32 + 'shape="1" offset="1_0" size="4"',
    "size 1_6": F32 + 'shape="4" offset="0" size="1_6"',
    "offset １２": F32 + 'shape="1" offset="１２" size="4"',
    "size １２": F32 + 'shape="3" offset="0" size="１２"',
    "2^64 wrap of the end": F32 + 'shape="1" offset="18446744073709551612" size="8"',
    "2^64 wrap of the size": F32 + 'shape="1" offset="0" size="18446744073709551620"',
    "2^63 − 1": F32 + 'shape="1" offset="9223372036854775807" size="4"',
    "offset 1e0": F32 + 'shape="1" offset="1e0" size="4"',
    "10^18 dims": F32 + 'shape="1000000000000000000" offset="0" size="24"',
    "2^64 wrap of the shape": F32 + 'shape="4294967296,4294967296" offset="0" size="24"',
    "2^64 wrap of the bits": 'element_type="u1" shape="4611686018427387904,4" offset="0" size="24"',
    "10^12 strings": 'element_type="string" shape="1000000000000" offset="0" size="24"',
    "a string without room for its header": 'element_type="string" shape="1" offset="0" size="4"',
    "a string past its bytes": 'element_type="string" shape="1" offset="0" size="24"',
    "rank > 64": F32 + f'shape="{",".join(["1"] * (RANK + 1))}" offset="0" size="4"',
    "an empty tensor of 10^36": F32 + f'shape="0,{"9" * 18},{"9" * 18}" offset="0" size="1"',
}


def test_false_ranges_and_shapes_are_rejected(tmp_path: Path) -> None:
    """All in one process that could not allocate the declared sizes."""
    code = """
import json, sys
import irload
for name, text in json.load(open(sys.argv[1])).items():
    try:
        irload.compile_model(irload.read_model(text.encode(), bytes.fromhex(sys.argv[2])))()
        print(name, "was read")
    except irload.IRError as error:
        if "Const 'c' (id 0)" not in str(error):
            print(name, "does not name the layer:", error)
"""
    (tmp_path / "rows.json").write_text(json.dumps({name: const_net(data) for name, data in ROWS.items()}))
    outcome = confined(["-c", code, tmp_path / "rows.json", FLOATS.hex()], memory=MEMORY, seconds=SECONDS)
    assert (outcome.returncode, outcome.stdout) == (0, ""), outcome.stderr[-2000:]


def test_size_is_more_than_shape_times_bits() -> None:
    """OpenVINO reads a file like this, so it is a warning; `check` has a rule for it."""
    model = irload.read_model(const_net(F32 + 'shape="2" offset="0" size="24"').encode(), FLOATS)
    assert "size 24 is more than the 8 bytes" in model.warnings[0]


# -- files -------------------------------------------------------------------------------------------------------------

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
CONST = const_net(F32 + 'shape="6" offset="0" size="24"')


def place(kind: str, file: Path) -> None:
    """Create the file that a row describes."""
    if kind == "truncated":
        file.write_bytes(FLOATS[:-1])
    elif kind == "empty":
        file.write_bytes(b"")
    elif kind == "Git-LFS pointer":
        file.write_bytes(LFS)
    elif kind == "FIFO":
        os.mkfifo(file)  # no writer: an open that blocks would hang here
    elif kind == "directory":
        file.mkdir()
    elif kind == "device":
        file.symlink_to("/dev/zero")
    elif kind == "link to nothing":
        file.symlink_to(file.with_name("gone"))
    elif kind == "link to itself":
        file.symlink_to(file.name)


FILES = {
    "missing": "there is no model.bin beside the model",
    "truncated": "outside the .bin file of 23 bytes",
    "empty": "outside the .bin file of 0 bytes",
    "Git-LFS pointer": "git lfs pull",
    "FIFO": "a FIFO, expected a regular file",
    "directory": "a directory, expected a regular file",
    "device": "a device, expected a regular file",
    "link to nothing": "",
    "link to itself": "",
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("named", [False, True], ids=["beside the model", "named"])
@pytest.mark.parametrize("kind", FILES)
def test_files_that_are_no_weights(tmp_path: Path, kind: str, named: bool) -> None:
    (tmp_path / "model.xml").write_text(CONST)
    file = tmp_path / ("other.bin" if named else "model.bin")
    place(kind, file)
    words = ["--bin", file] if named else []
    outcome = irrun("run", tmp_path / "model.xml", *words, memory=MEMORY, seconds=SECONDS)
    assert outcome.returncode == 3, outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1
    assert outcome.stdout == ""
    if not (named and kind == "missing"):
        assert FILES[kind] in outcome.stderr


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", ["FIFO", "directory", "device", "link to nothing", "link to itself"])
def test_the_same_as_a_model(tmp_path: Path, kind: str) -> None:
    place(kind, tmp_path / "model.xml")
    outcome = irrun("run", tmp_path / "model.xml", memory=MEMORY, seconds=SECONDS)
    assert outcome.returncode == 3, outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1
    assert FILES[kind] in outcome.stderr


def test_a_nul_in_the_name() -> None:
    with pytest.raises(ReadError):
        irload.read_model("a\0b")
    with pytest.raises(ReadError):
        Weights("a\0b")


def test_a_sparse_file_of_1_tib(tmp_path: Path) -> None:
    """Only a range is read, not the file; a constant larger than the memory is rejected before the read."""
    end = 1 << 40
    with (tmp_path / "model.bin").open("wb") as stream:
        stream.truncate(end)
        stream.seek(end - 24)
        stream.write(FLOATS)
    for data, said in (
        (F32 + f'shape="6" offset="{end - 24}" size="24"', ""),
        (F32 + f'shape="{end // 4}" offset="0" size="{end}"', "the limit tensor_bytes is"),
    ):
        (tmp_path / "model.xml").write_text(const_net(data))
        outcome = irrun("run", tmp_path / "model.xml", memory=MEMORY, seconds=SECONDS)
        assert outcome.returncode == (3 if said else 0), outcome.stderr
        assert said in outcome.stderr
    many = "".join(
        const_net(F32 + f'shape="3000000000" offset="{k * 12_000_000_000}" size="12000000000"')
        .split("<layers>")[1]
        .split(RESULT)[0]
        .replace('id="0" name="c"', f'id="{10 + k}" name="c{k}"')
        + RESULT.replace('id="2" name="out"', f'id="{1000 + k}" name="out{k}"')
        for k in range(80)
    )
    edges = "".join(f'<edge from-layer="{10 + k}" from-port="0" to-layer="{1000 + k}" to-port="0"/>' for k in range(80))
    (tmp_path / "model.xml").write_text(net(many, edges))
    outcome = irrun("run", tmp_path / "model.xml", memory=MEMORY, seconds=SECONDS)
    assert outcome.returncode == 3, outcome.stderr
    assert "the constants are too large: 960000000000 bytes; the limit peak_bytes is" in outcome.stderr


@pytest.mark.parametrize("what", ["model.xml", "model.bin"])
def test_symbolic_links_to_regular_files_are_followed(tmp_path: Path, what: str) -> None:
    """Caches of models consist of links."""
    for name, content in (("model.xml", CONST.encode()), ("model.bin", FLOATS)):
        file = tmp_path / ("blob" if name == what else name)
        file.write_bytes(content)
    (tmp_path / what).symlink_to("blob")
    assert irload.compile_model(tmp_path / "model.xml")()[0].tolist() == [0, 1, 2, 3, 4, 5]


# -- shared bytes ------------------------------------------------------------------------------------------------------


def sharing(constants: list[str]) -> str:
    """A model that returns each of these constants."""
    layers: list[str] = []
    edges: list[str] = []
    for k, data in enumerate(constants):
        layers.append(
            f'<layer id="{k}" name="c{k}" type="Const" version="opset1"><data {data}/>'
            '<output><port id="0" precision="FP32"/></output></layer>'
            + RESULT.replace('id="2" name="out"', f'id="{10_000 + k}" name="out{k}"')
        )
        edges.append(f'<edge from-layer="{k}" from-port="0" to-layer="{10_000 + k}" to-port="0"/>')
    return net("".join(layers), "".join(edges))


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("element", "values"), [("f32", 1 << 20), ("u4", 1 << 23)], ids=["used as they are", "unpacked"]
)
def test_thousands_of_constants_over_the_same_bytes(tmp_path: Path, element: str, values: int) -> None:
    """4 MB of weights, read by 2,000 constants in 60 shapes: 8 GB (or 16) if each were a copy."""
    (tmp_path / "model.bin").write_bytes(bytes(4 << 20))
    shapes = [",".join(["1"] * (k % 60) + [str(values)]) for k in range(2_000)]
    constants = [f'element_type="{element}" shape="{s}" offset="0" size="{4 << 20}"' for s in shapes]
    (tmp_path / "model.xml").write_text(sharing(constants))
    code = """
import sys
import irload
from irload.read import read_graph
model = read_graph(sys.argv[1])
arrays = [n.op.compute() for n in model.nodes if n.type == "Const"]
print(len(arrays), len({a.ctypes.data for a in arrays}), sum(a.shape[-1] for a in arrays))
"""
    outcome = confined(["-c", code, tmp_path / "model.xml"], memory=MEMORY, seconds=SECONDS)
    assert outcome.returncode == 0, outcome.stderr[-2000:]
    assert outcome.stdout.split() == ["2000", "1", str(2_000 * values)]


def test_constants_over_the_same_bytes_are_counted_once() -> None:
    data = F32 + 'shape="1000" offset="0" size="4000"'
    model = irload.read_model(sharing([data] * 100).encode(), bytes(4000))
    assert len(irload.compile_model(model, limits=irload.Limits(peak_bytes=5_000))()) == 100


def test_overlapping_ranges_do_not_add_up(tmp_path: Path) -> None:
    file = tmp_path / "m.bin"
    file.write_bytes(bytes(range(100)))
    weights = Weights(file)
    arrays = [weights.raw(k, 60) for k in range(40)]
    assert [f[0] for f in arrays] == list(range(40))
    assert np.shares_memory(arrays[5], arrays[6])


# -- the file changes concurrently -------------------------------------------------------------------------------------


def test_a_file_that_shrinks_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "m.bin"
    file.write_bytes(bytes(100))
    weights = Weights(file)
    os.truncate(file, 10)
    with pytest.raises(ReadError, match="changed"):
        weights.raw(50, 50)


def test_a_short_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file shrinks between stat and read."""
    file = tmp_path / "m.bin"
    file.write_bytes(bytes(100))
    weights = Weights(file)

    def shrinking(descriptor: int, target: memoryview, offset: int) -> int:
        os.truncate(file, 60)
        return read_at(descriptor, target, offset)

    monkeypatch.setattr("irload.read.weights.read_at", shrinking)
    with pytest.raises(ReadError, match="shrank after it was opened: it ends 40 bytes early"):
        weights.raw(0, 100)


SHRINKING = """
import os, sys
import irload
model = irload.read_model(sys.argv[1], mmap=sys.argv[2] == "True")
os.truncate(sys.argv[1].replace(".xml", ".bin"), 0)
compiled = irload.compile_model(model)
print(compiled()[0].sum())
"""


@pytest.mark.parametrize("mmap", [False, True])
def test_the_file_shrinks_while_mapped(tmp_path: Path, mmap: bool) -> None:
    """A mapped file that shrinks kills by SIGBUS, so mapping is opt-in; for a read it is an error."""
    size = 1 << 20
    (tmp_path / "model.xml").write_text(const_net(F32 + f'shape="{size // 4}" offset="0" size="{size}"'))
    (tmp_path / "model.bin").write_bytes(bytes(size))
    outcome = confined(["-c", SHRINKING, tmp_path / "model.xml", mmap], memory=MEMORY, seconds=SECONDS)
    if mmap:
        assert outcome.returncode == -signal.SIGBUS
    else:
        assert outcome.returncode == 1
        assert "ReadError" in outcome.stderr
        assert "has changed since it was opened" in outcome.stderr


def test_mapped_weights_give_the_same(tmp_path: Path) -> None:
    (tmp_path / "model.xml").write_text(CONST)
    (tmp_path / "model.bin").write_bytes(FLOATS)
    assert irload.compile_model(tmp_path / "model.xml", mmap=True)()[0].tolist() == [0, 1, 2, 3, 4, 5]
    model = irload.read_model(tmp_path / "model.xml", mmap=True)
    assert irload.compile_model(model)()[0].tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(InputInvalid, match="already read"):
        irload.compile_model(model, mmap=True)
    (tmp_path / "model.bin").write_bytes(b"")
    with pytest.raises(IRError, match=r"outside the \.bin file of 0 bytes"):
        irload.read_model(tmp_path / "model.xml", mmap=True)


def test_a_model_without_constants_needs_no_weights(tmp_path: Path) -> None:
    (tmp_path / "model.xml").write_text(BASE)
    assert irload.read_model(tmp_path / "model.xml", mmap=True).outputs[0].shape == (1, 3)
