"""Arrays in and out: what is taken, what is refused before it can hurt, and files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import struct
import threading
import zipfile

import ml_dtypes
import numpy as np
import pytest

from irload.arrays import load_npy, load_npz, save_npy, save_npz, storable
from irload.errors import InputInvalid, LimitExceeded, ReadError
from irload.safety import Limits

DTYPES = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "U3", "S3")


def npy(array, **options) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asanyarray(array), **options)
    return stream.getvalue()


def header(text: str, data: bytes = b"") -> bytes:
    """A .npy whose header says anything."""
    body = text.encode("latin1") + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(body)) + body + data


def describing(descr: str, shape: str, data: bytes = b"") -> bytes:
    return header(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}", data)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_in_both_byte_orders(tmp_path, dtype, order):
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(np.dtype(dtype).newbyteorder(order))
    (tmp_path / "x.npy").write_bytes(npy(array))
    found = load_npy(tmp_path / "x.npy")
    assert found.dtype == np.dtype(dtype)
    assert found.dtype.isnative
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0, 3), (2, 3, 4)])
def test_shapes_are_kept_and_fortran_order_is_undone(tmp_path, shape):
    array = np.array(np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape), order="F")
    np.save(tmp_path / "x.npy", array)
    found = load_npy(tmp_path / "x.npy")
    assert found.shape == shape
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, array)


REFUSED = {
    "empty": (b"", "no .npy array"),
    "not npy": (b"PK\x03\x04 something else", "no .npy array"),
    "future version": (b"\x93NUMPY\x09\x00" + b"\0" * 20, "9.0"),
    "cut header": (npy(np.zeros(3))[:40], "no .npy array"),
    "cut data": (npy(np.zeros(3))[:-1], "takes 24 bytes"),
    "trailing bytes": (npy(np.zeros(3)) + b"x", "takes 24 bytes"),
    "pickle": (npy(np.array([{}], object), allow_pickle=True), "pickle"),
    "bare pickle": (pickle.dumps([1]), "no .npy array"),
    "structured": (npy(np.zeros(2, [("a", "i4"), ("b", "f4")])), "dtype"),
    "datetime": (npy(np.zeros(2, "M8[s]")), "datetime64"),
    "complex": (npy(np.zeros(2, "c8")), "complex64"),
    "void": (npy(np.zeros(2, "V4")), "dtype"),
    "huge shape": (describing("'<f4'", "(1000000000, 1000000000)"), "limit tensor_bytes"),
    "wrapping shape": (describing("'<f4'", "(4294967296, 4294967296)"), "limit tensor_bytes"),
    "negative shape": (describing("'<f4'", "(-1, 4)"), "impossible shape"),
    "rank of 65": (describing("'<f4'", "(1,) * 65"), "no .npy array"),
    "65 axes": (describing("'<f4'", str((1,) * 65), b"\0" * 4), "impossible shape"),
    "code in the header": (header("__import__('os').system('true')"), "no .npy array"),
    "no dict": (header("[1, 2]"), "no .npy array"),
    "bad dtype": (describing("'nonsense'", "(1,)"), "no .npy array"),
    "nested header": (header("[" * 5000 + "]" * 5000), "no .npy array"),
    "huge header": (b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31), "no .npy array"),
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


def test_what_is_no_file(tmp_path):
    with pytest.raises(ReadError, match="No such file"):
        load_npy(tmp_path / "gone.npy")
    with pytest.raises(ReadError, match="expected a regular file"):
        load_npy(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_a_fifo_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "x.npy")
    with pytest.raises(ReadError, match="expected a regular file"):
        load_npy(tmp_path / "x.npy")


def test_the_check_comes_before_the_data(tmp_path):
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
    found = load_npz(tmp_path / "x.npz")
    assert {k: v.shape for k, v in found.items()} == {"a": (3,), "b": (2, 2)}


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
        ({"a.npy": b"hello"}, None, "no .npy array"),
        ({"a.npy": npy(np.zeros(3)) + b"more"}, None, "takes 24 bytes"),
        ({"a.npy": npy(np.array([{}], object), allow_pickle=True)}, None, "pickle"),
        ({"a.npy": npy(np.zeros(3)), "b.npy": npy(np.zeros(3))}, (b"b.npy", b"a.npy"), "two arrays of one name"),
        ({"a.npy": npy(np.arange(9.0))}, (b"\x08\x00", b"\x63\x00"), "no plain or deflated"),
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
        with contextlib.suppress(ReadError, LimitExceeded):  # anything else fails the test
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
def test_what_npy_cannot_hold_is_stored_as_what_it_can(array, dtype):
    assert storable(array).dtype == dtype
    assert storable(array).tolist() == [float(v) if array.dtype.kind == "V" else v for v in array.tolist()]


def test_existing_files_are_kept_without_force(tmp_path):
    save_npy(tmp_path / "x.npy", np.zeros(2))
    with pytest.raises(FileExistsError, match="exists already"):
        save_npy(tmp_path / "x.npy", np.ones(2))
    assert load_npy(tmp_path / "x.npy").sum() == 0
    save_npy(tmp_path / "x.npy", np.ones(2), force=True)
    assert load_npy(tmp_path / "x.npy").sum() == 2


def test_a_failed_write_leaves_nothing(tmp_path):
    with pytest.raises(AttributeError):
        save_npz(tmp_path / "x.npz", {"a": np.zeros(2), "b": threading.Lock()})
    assert not list(tmp_path.iterdir())
