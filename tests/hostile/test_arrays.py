"""Arrays in and out: hostile arrays are rejected before they do harm, and output files are complete or absent.

Cases that could take memory or time run in a process with limits on both.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import struct
import threading
import zipfile
import zlib
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from irload.arrays.npy import load_npy, load_npz, save_npy, save_npz, storable
from irload.errors import InputInvalid, LimitExceeded, ReadError
from irload.safety.limits import Limits
from tests.hostile.confined import ROOT, confined
from tests.hostile.confined import irrun as irrun_confined

DTYPES = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "U3", "S3")


def npy(array, **options) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asanyarray(array), **options)
    return stream.getvalue()


def header(text: str, data: bytes = b"") -> bytes:
    """A .npy file with any text as its header."""
    body = text.encode("latin1") + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(body)) + body + data


def describing(descr: str, shape: str, data: bytes = b"") -> bytes:
    return header(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}", data)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_in_both_byte_orders(tmp_path, dtype, order):
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(np.dtype(dtype).newbyteorder(order))
    (tmp_path / "x.npy").write_bytes(npy(array))
    loaded = load_npy(tmp_path / "x.npy")
    assert loaded.dtype == np.dtype(dtype)
    assert loaded.dtype.isnative
    np.testing.assert_array_equal(loaded, array)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0, 3), (2, 3, 4)])
def test_shapes_are_kept_and_fortran_order_is_undone(tmp_path, shape):
    array = np.array(np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape), order="F")
    np.save(tmp_path / "x.npy", array)
    loaded = load_npy(tmp_path / "x.npy")
    assert loaded.shape == shape
    assert loaded.flags.c_contiguous
    np.testing.assert_array_equal(loaded, array)


REFUSED = {
    "empty": (b"", "not a .npy array"),
    "not npy": (b"PK\x03\x04 something else", "not a .npy array"),
    "future version": (b"\x93NUMPY\x09\x00" + b"\0" * 20, "9.0"),
    "cut header": (npy(np.zeros(3))[:40], "not a .npy array"),
    "cut data": (npy(np.zeros(3))[:-1], "takes 24 bytes"),
    "trailing bytes": (npy(np.zeros(3)) + b"x", "takes 24 bytes"),
    "pickle": (npy(np.array([{}], object), allow_pickle=True), "pickle"),
    "bare pickle": (pickle.dumps([1]), "not a .npy array"),
    "structured": (npy(np.zeros(2, [("a", "i4"), ("b", "f4")])), "dtype"),
    "datetime": (npy(np.zeros(2, "M8[s]")), "datetime64"),
    "complex": (npy(np.zeros(2, "c8")), "complex64"),
    "void": (npy(np.zeros(2, "V4")), "dtype"),
    "huge shape": (describing("'<f4'", "(1000000000, 1000000000)"), "limit tensor_bytes"),
    "wrapping shape": (describing("'<f4'", "(4294967296, 4294967296)"), "limit tensor_bytes"),
    "negative shape": (describing("'<f4'", "(-1, 4)"), "impossible shape"),
    "rank of 65": (describing("'<f4'", "(1,) * 65"), "not a .npy array"),
    "65 axes": (describing("'<f4'", str((1,) * 65), b"\0" * 4), "impossible shape"),
    "code in the header": (header("__import__('os').system('true')"), "not a .npy array"),
    "no dict": (header("[1, 2]"), "not a .npy array"),
    "bad dtype": (describing("'nonsense'", "(1,)"), "not a .npy array"),
    "nested header": (header("[" * 5000 + "]" * 5000), "not a .npy array"),
    "huge header": (b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31), "not a .npy array"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(tmp_path, name):
    content, said = REFUSED[name]
    file = tmp_path / "x.npy"
    file.write_bytes(content)
    with pytest.raises((ReadError, LimitExceeded)) as caught:
        load_npy(file)
    assert said in str(caught.value)
    assert str(file) in str(caught.value)


def test_paths_other_than_files_are_rejected(tmp_path):
    with pytest.raises(ReadError, match="No such file"):
        load_npy(tmp_path / "gone.npy")
    with pytest.raises(ReadError, match="expected a regular file"):
        load_npy(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_a_fifo_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "x.npy")
    with pytest.raises(ReadError, match="expected a regular file"):
        load_npy(tmp_path / "x.npy")


def test_the_check_precedes_reading_the_data(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((2, 3), np.float32))

    def check(name, dtype, shape):
        assert (name, dtype, shape) == ("", np.float32, (2, 3))
        raise InputInvalid("not this")

    with pytest.raises(InputInvalid, match="not this"):
        load_npy(tmp_path / "x.npy", check)


# -- archives ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_archives(tmp_path, save):
    save(tmp_path / "x.npz", a=np.arange(3), b=np.zeros((2, 2), ">f4"))
    arrays = load_npz(tmp_path / "x.npz")
    assert {k: v.shape for k, v in arrays.items()} == {"a": (3,), "b": (2, 2)}


def test_a_bomb_is_refused_by_its_declared_size(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", a=np.zeros(4_000_000, np.uint8))
    assert (tmp_path / "x.npz").stat().st_size < 10_000
    with pytest.raises(LimitExceeded, match="4000128"):
        load_npz(tmp_path / "x.npz", limits=Limits(tensor_bytes=1_000_000))


def archive(path, members: dict[str, bytes], patch: tuple[bytes, bytes] | None = None) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    if patch:
        path.write_bytes(path.read_bytes().replace(*patch))


@pytest.mark.parametrize(
    ("members", "patch", "said"),
    [
        ({"a.txt": b"hello"}, None, "a.txt"),
        ({"a.npy": b"hello"}, None, "not a .npy array"),
        ({"a.npy": npy(np.zeros(3)) + b"more"}, None, "takes 24 bytes"),
        ({"a.npy": npy(np.array([{}], object), allow_pickle=True)}, None, "pickle"),
        ({"a.npy": npy(np.zeros(3)), "b.npy": npy(np.zeros(3))}, (b"b.npy", b"a.npy"), "two arrays with the same name"),
        ({"a.npy": npy(np.arange(9.0))}, (b"\x08\x00", b"\x63\x00"), "not a stored or deflated"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_refused_archives(tmp_path, members, patch, said):
    archive(tmp_path / "x.npz", members, patch)
    with pytest.raises(ReadError, match=said):
        load_npz(tmp_path / "x.npz")


def test_damaged_archives(tmp_path):
    rng = np.random.default_rng(3)
    np.savez_compressed(tmp_path / "x.npz", a=np.arange(50), b=np.zeros((20, 3)))
    whole = (tmp_path / "x.npz").read_bytes()
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(int(rng.integers(1, 6))):
            damaged[int(rng.integers(len(damaged)))] = int(rng.integers(256))
        (tmp_path / "y.npz").write_bytes(damaged[: int(rng.integers(1, len(damaged) + 1))])
        with contextlib.suppress(ReadError, LimitExceeded):  # any other exception fails the test
            load_npz(tmp_path / "y.npz")


# -- out ---------------------------------------------------------------------------------------------------------------


def test_saved_arrays_load_again(tmp_path):
    arrays = {"a": np.arange(6).reshape(2, 3), "0-d": np.float32(2), "path/x": np.array([], np.int8)}
    save_npz(tmp_path / "x.npz", arrays)
    for name, array in load_npz(tmp_path / "x.npz").items():
        np.testing.assert_array_equal(array, arrays[name], strict=True)
    save_npy(tmp_path / "x.npy", arrays["a"])
    np.testing.assert_array_equal(load_npy(tmp_path / "x.npy"), arrays["a"])


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (np.array([1.5], ml_dtypes.bfloat16), np.float32),
        (np.array([1.5], ml_dtypes.float8_e4m3fn), np.float32),
        (np.array([1.5], np.float16), np.float16),
        (np.array(["a", "bc"], object), np.dtype("U2")),
        (np.array([True]), np.bool_),
    ],
)
def test_types_without_npy_equivalent_are_converted(array, dtype):
    assert storable(array).dtype == dtype
    assert storable(array).tolist() == [float(v) if array.dtype.kind == "V" else v for v in array.tolist()]


def test_existing_files_are_kept_without_force(tmp_path):
    save_npy(tmp_path / "x.npy", np.zeros(2))
    with pytest.raises(FileExistsError, match="exists already"):
        save_npy(tmp_path / "x.npy", np.ones(2))
    assert load_npy(tmp_path / "x.npy").sum() == 0
    save_npy(tmp_path / "x.npy", np.ones(2), force=True)
    assert load_npy(tmp_path / "x.npy").sum() == 2


def test_a_failed_write_leaves_no_file(tmp_path):
    with pytest.raises(AttributeError):
        save_npz(tmp_path / "x.npz", {"a": np.zeros(2), "b": threading.Lock()})
    assert not list(tmp_path.iterdir())


# -- end to end, in a process with limits ------------------------------------------------------------------------------

DIGITS = ROOT / "models" / "digits" / "model.xml"
MEMORY = 1 << 30
SECONDS = 300


class Touch:
    """Creates a file when unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.file,)


ROWS = {
    "pickle": npy(np.array([{}], object), allow_pickle=True),
    "truncated": npy(np.zeros((1, 1, 8, 8), np.float32))[:-1],
    "trailing bytes": npy(np.zeros((1, 1, 8, 8), np.float32)) + b"x",
    "shape of 10^18": describing("'<f4'", "(1000000000, 1000000000)", bytes(256)),
    "2^64 wrap of the shape": describing("'<f4'", "(4294967296, 4294967296)", bytes(256)),
    "structured": npy(np.zeros((1, 1, 8, 8), [("a", "f4")])),
    "text": npy(np.full((1, 1, 8, 8), "x")),
    "datetime": npy(np.zeros((1, 1, 8, 8), "M8[s]")),
    "complex": npy(np.zeros((1, 1, 8, 8), "c16")),
    "empty": b"",
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("row", ROWS)
def test_refused_on_the_command_line(tmp_path, row):
    (tmp_path / "x.npy").write_bytes(ROWS[row])
    outcome = irrun_confined(
        "run", DIGITS, tmp_path / "x.npy", "-o", tmp_path / "out.npz", memory=MEMORY, seconds=SECONDS
    )
    assert outcome.returncode in (2, 3), outcome.stderr
    assert outcome.stdout == ""
    assert len(outcome.stderr.splitlines()) == 1
    assert [f.name for f in tmp_path.iterdir()] == ["x.npy"]


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_a_pickle_is_never_loaded(tmp_path, suffix):
    mark = tmp_path / "touched"
    array = np.array([Touch(mark)], object)
    (np.savez if suffix == "npz" else np.save)(tmp_path / f"x.{suffix}", array)
    outcome = irrun_confined("run", DIGITS, tmp_path / f"x.{suffix}", memory=MEMORY, seconds=SECONDS)
    assert outcome.returncode == 3
    assert "holds Python objects (a pickle), which irload never loads" in outcome.stderr
    assert not mark.exists()


@pytest.mark.parametrize("how", ["big-endian", "Fortran order"])
def test_other_orders_give_the_same(tmp_path, irrun, how):
    sample = np.random.default_rng(1).random((3, 1, 8, 8), np.float32)
    np.save(tmp_path / "a.npy", sample)
    np.save(tmp_path / "b.npy", sample.astype(">f4") if how == "big-endian" else np.asfortranarray(sample))
    for name in "ab":
        assert irrun("run", DIGITS, tmp_path / f"{name}.npy", "-o", tmp_path / f"out_{name}.npy").code == 0
    assert (tmp_path / "out_a.npy").read_bytes() == (tmp_path / "out_b.npy").read_bytes()


def test_0_d_arrays_stay_0_d(tmp_path, irrun):
    np.save(tmp_path / "count.npy", np.array(4, ">i8"))
    np.save(tmp_path / "start.npy", np.array([[1, 3]], np.float32))
    words = [f"{name}={tmp_path / name}.npy" for name in ("count", "start")]
    outcome = irrun("run", ROOT / "models" / "loop" / "model.xml", *words, "-o", tmp_path / "out.npz")
    assert outcome.code == 0, outcome.err
    assert load_npz(tmp_path / "out.npz")["every"].tolist() == [[2, 6], [4, 12], [8, 24], [16, 48]]


@cache
def zeros() -> tuple[int, bytes]:
    """The size of a .npy of 2 GB of zeros, and its 2 MB of compressed contents."""
    block = 1 << 26
    head = describing("'|u1'", f"({32 * block},)")
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    start = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    middle = packer.compress(bytes(block)) + packer.flush(zlib.Z_FULL_FLUSH)  # flushed, so it may be repeated
    return len(head) + 32 * block, start + 32 * middle + packer.flush()


def bomb(path: Path, name: str, declared: int | None = None) -> None:
    """A .npz of 2 MB that unpacks to 2 GB of zeros. `declared`: the size that it declares instead."""
    unpacked, content = zeros()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(f"{name}.npy", content)
    raw = bytearray(path.read_bytes())
    size = struct.pack("<I", unpacked if declared is None else declared)
    for at in (0, raw.rindex(b"PK\x01\x02")):  # the local header and the directory
        field = 8 if at == 0 else 10
        raw[at + field : at + field + 2] = struct.pack("<H", zipfile.ZIP_DEFLATED)
        raw[at + field + 14 : at + field + 18] = size
    path.write_bytes(raw)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "declared", [None, 320, 1 << 30], ids=["declared", "declared as 320 bytes", "declared as 1 GB"]
)
@pytest.mark.parametrize("name", ["image", "other"])
@pytest.mark.parametrize("word", ["{}", "image={}"])
def test_an_archive_of_2_mb_that_holds_2_gb(tmp_path, declared, name, word):
    bomb(tmp_path / "x.npz", name, declared)
    assert (tmp_path / "x.npz").stat().st_size < 3_000_000
    outcome = irrun_confined("run", DIGITS, word.format(tmp_path / "x.npz"), memory=MEMORY, seconds=SECONDS)
    assert outcome.returncode in (2, 3), outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1
    assert "out of memory" not in outcome.stderr


def test_the_same_in_a_batch(tmp_path):
    bomb(tmp_path / "x.npz", "other")
    outcome = irrun_confined(
        "batch", DIGITS, tmp_path / "x.npz", "-o", tmp_path / "out", memory=2 * MEMORY, seconds=SECONDS
    )
    assert outcome.returncode == 1, outcome.stderr
    assert "memory" not in outcome.stdout + outcome.stderr
    assert "has shape [2147483648]" in outcome.stdout + outcome.stderr


def test_the_limit_holds_for_an_archive_as_a_whole(tmp_path):
    bomb(tmp_path / "x.npz", "other")
    with pytest.raises(LimitExceeded, match=r"unpacks to too much: 2147483\d+ bytes; the limit tensor_bytes"):
        load_npz(tmp_path / "x.npz", limits=Limits(tensor_bytes=1 << 20))


def test_a_full_disk_leaves_no_output(tmp_path):
    """A limit on file sizes simulates a full disk: the write fails in the middle."""
    code = """
import resource, signal, sys
sys.dont_write_bytecode = True  # Python would cache truncated files
from irrun.main import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
sys.exit(main(sys.argv[1:]))
"""
    words = ["run", DIGITS, "--shape", "[100,1,8,8]", "--random", 0, "-o", tmp_path / "out.npy"]
    outcome = confined(["-c", code, *words], memory=MEMORY, seconds=SECONDS)
    assert outcome.returncode == 3, outcome.stderr
    assert "File too large" in outcome.stderr
    assert not list(tmp_path.iterdir())


def test_outputs_are_forced_to_disk_and_renamed(tmp_path, monkeypatch):
    """A temporary file in the same folder, fsync, then rename: a crash leaves the old file or the new one."""
    done: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: (done.append("fsync"), fsync(descriptor)))
    monkeypatch.setattr(os, "replace", lambda a, b: (done.append(str(Path(a).parent)), replace(a, b)))
    save_npy(tmp_path / "x.npy", np.zeros(2))
    assert done == ["fsync", str(tmp_path)]


def test_an_existing_output_is_kept_without_force(tmp_path, irrun):
    (tmp_path / "out.npz").write_bytes(b"precious")
    words = ["run", DIGITS, "--shape", "[1,1,8,8]", "--random", "0", "-o", tmp_path / "out.npz"]
    outcome = irrun(*words)
    assert outcome.code == 2
    assert "--force" in outcome.err
    assert (tmp_path / "out.npz").read_bytes() == b"precious"
    assert irrun(*words, "--force").code == 0
    assert set(load_npz(tmp_path / "out.npz")) == {"probabilities"}
