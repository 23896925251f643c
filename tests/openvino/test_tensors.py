"""Tensor: the same values and errors as OpenVINO's, for all types and forms of construction."""

from __future__ import annotations

from copy import copy, deepcopy

import numpy as np
import openvino
import pytest

import irload.openvino as irov
from tests.openvino.both import failure, opset, same

PLAIN = (
    "boolean",
    "f16",
    "f32",
    "f64",
    "i8",
    "i16",
    "i32",
    "i64",
    "u8",
    "u16",
    "u32",
    "u64",
    "bf16",
    "f8e4m3",
    "f8e5m2",
)
PACKED = ("i4", "u4", "u2", "u1", "u3", "u6", "nf4", "f4e2m1")


@pytest.mark.parametrize("name", PLAIN)
def test_plain_types(name):
    def script(ov):
        t = ov.Tensor(getattr(ov.Type, name), [2, 3])
        yield t, t.shape, t.element_type, t.size, t.byte_size, t.strides, t.data.dtype, t.data.shape
        t.data[:] = np.arange(6).reshape(2, 3) % 2
        yield t.data, t.get_shape(), t.get_element_type(), t.get_size(), t.get_byte_size(), t.is_continuous()
        u = ov.Tensor(t, [0, 1], [2, 3])
        yield u.data, u.shape, u.is_continuous(), u.strides
        w = ov.Tensor(getattr(ov.Type, name), ov.Shape([1]))
        t.copy_to(w)
        yield w.data, w.shape
        w.shape = [6, 1]
        yield w.data

    same(script)


@pytest.mark.parametrize("name", PACKED)
def test_packed_types(name):
    def script(ov):
        kind = getattr(ov.Type, name)
        t = ov.Tensor(kind, [3, 5])
        yield t, t.size, t.byte_size, t.data.dtype, t.data.shape, failure(lambda: t.strides)
        values = np.arange(15) % 2
        raw = ov.helpers.pack_data(values, kind)
        yield raw
        t = ov.Tensor(raw, [3, 5], kind)
        yield t.data, t.shape, ov.helpers.unpack_data(t.data, t.element_type, t.shape)
        t.shape = [5, 2]
        yield t.data, t.shape, ov.helpers.unpack_data(t.data, t.element_type, t.shape)

    same(script)
    with pytest.raises(RuntimeError, match=r"takes 8 bytes; the array has 2"):
        irov.Tensor(np.zeros(2, np.uint8), [4, 4], irov.Type.i4)


def test_construction():
    def script(ov):
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        shared, copied = ov.Tensor(array, shared_memory=True), ov.Tensor(array)
        array[0, 0] = 9
        yield shared.data, copied.data, np.shares_memory(shared.data, array), np.shares_memory(copied.data, array)
        shared.data[1] = 7
        yield array
        yield failure(lambda: ov.Tensor(array.T, shared_memory=True)), ov.Tensor(array.T).data
        yield ov.Tensor(np.float32, [2]), ov.Tensor(np.dtype("int8"), [2]), ov.Tensor(type=np.int64, shape=[3])
        yield ov.Tensor([1, 2, 3]).data, ov.Tensor([1.5, 2]).data, ov.Tensor([[True], [False]]).data
        yield failure(lambda: ov.Tensor([1, 2], ov.Type.i8))
        yield ov.Tensor(array, ov.Shape([3, 2]), ov.Type.f32).data, ov.Tensor(array, [6]).data
        yield failure(lambda: ov.Tensor())
        yield ov.Tensor(np.array(3.0)).shape, ov.Tensor(np.zeros((0, 4), np.int32)).shape
        frozen = np.ones(3, np.float32)
        frozen.flags.writeable = False
        yield failure(lambda: ov.Tensor(frozen, shared_memory=True).data.__setitem__(0, 2))
        yield failure(lambda: ov.Tensor(array, shared_memory=True).set_shape([9, 9]))
        t = ov.Tensor(array, shared_memory=True)
        t.shape = [3]
        yield t.data
        yield (
            failure(lambda: ov.Tensor(ov.Tensor(array), [0, 0], [3, 3])),
            failure(lambda: ov.Tensor(ov.Tensor(array), [1], [2])),
            failure(lambda: ov.Tensor(ov.Tensor(array), [0, 0, 0], [1, 1, 1])),
            failure(lambda: ov.Tensor(array).set_shape([-1])),
            failure(lambda: ov.Tensor(ov.Type.f32, [-1])),
            failure(lambda: ov.Tensor(np.zeros(2, complex))),
        )

    same(script)


def test_strings():
    def script(ov):
        t = ov.Tensor(np.array([["a", "bc"], ["", "défg"]]))
        yield t, t.str_data, t.bytes_data, t.size, t.shape, t.element_type
        t.str_data = np.array([["x", "y"], ["z", "long text"]])
        yield t.str_data
        t.bytes_data = np.array([[b"1", b"2"], [b"3", b"4"]])
        yield t.str_data
        u = ov.Tensor(ov.Type.string, [3])
        yield u.str_data.tolist()
        u.copy_from(np.array(["p", "q", "r"]))
        yield u.str_data, ov.Tensor(["one", "three"]).str_data, ov.Tensor(np.array([b"x"])).str_data
        yield failure(lambda: ov.Tensor(np.array([1.0])).str_data), failure(lambda: ov.Tensor(np.array(["a"]), True))
        yield failure(lambda: ov.Tensor(np.array([1.0])).bytes_data)
        invalid = ov.Tensor(np.array([b"\xe2\x80x", b"\xff"]))
        yield invalid.str_data, invalid.bytes_data

    same(script)


def test_messages_about_strings():
    for ov in (openvino, irov):
        t = ov.Tensor(ov.Type.string, [2])
        with pytest.warns(RuntimeWarning, match="Data of string type will be copied!"):
            assert t.data.shape == (2,)
        for name in ("str_data", "bytes_data"):
            with pytest.raises(RuntimeError, match="Passed array must have the same size"):
                setattr(t, name, ["a", "b", "c"])
            with pytest.raises(RuntimeError, match="Unknown string kind"):
                setattr(t, name, [1, 2])
        for arguments in ((np.array(["a"]), True), (np.array(["a"]), [1])):
            with pytest.raises(RuntimeError, match="String types can be only copied"):
                ov.Tensor(*arguments)


def test_copies():
    def script(ov):
        a = ov.Tensor(np.arange(4, dtype=np.int32))
        b = ov.Tensor(np.int32, [1])
        b.copy_from(a)
        yield b.data, failure(lambda: a.copy_to(ov.Tensor(np.float32, [4])))
        b.copy_from(np.array([5, 6], np.int32))
        yield b.data
        b.copy_from([7, 8, 9]) if b.element_type == ov.Type.i64 else None
        v = ov.TensorVector([a, b])
        yield len(v), v[1].data, [t.shape for t in v]
        view, independent = copy(a), deepcopy(a)
        a.data[0] = 9
        yield view.data, view.element_type, independent.data

    same(script)


def test_ports():
    def script(ov):
        for shape in ([2, 3], [-1, 3], [ov.Dimension(1, 4)]):
            p = opset(ov).parameter(ov.PartialShape(shape), np.float32)
            yield ov.Tensor(p.output(0)).shape, ov.Tensor(p.output(0), np.ones((2, 3), np.float32)).shape
            yield failure(lambda p=p: ov.Tensor(p.output(0), [1.0]))
            request = ov.compile_model(ov.Model([opset(ov).relu(p)], [p], "m")).create_infer_request()
            yield request.get_input_tensor().shape, request.get_output_tensor().shape

    same(script)


def test_changes_of_shapes_keep_the_elements():
    def script(ov):
        owned = ov.Tensor(ov.Type.f32, [4])
        owned.data[:] = [1, 2, 3, 4]
        for shape in ([2], [3], [2, 2]):
            owned.shape = shape
            yield owned.data
        owned.shape = [8]
        owned.data[:] = range(8)
        owned.shape = [3]
        owned.shape = [2, 4]
        yield owned.data
        array = np.arange(6, dtype=np.int32)
        shared = ov.Tensor(array, shared_memory=True)
        shared.shape = [2]
        shared.shape = [3, 2]
        yield shared.data, np.shares_memory(shared.data, array), failure(lambda: shared.set_shape([7])), shared.shape
        strings = ov.Tensor(np.array(["a", "b", "c"]))
        strings.shape = [2]
        yield strings.str_data

    same(script)


def test_images_are_copied():
    class Image:  # like Pillow's images
        __array_interface__ = np.full((2, 3), 7, np.uint8).__array_interface__ | {"owner": None}

    assert irov.Tensor(Image()).data.shape == (2, 3)
    assert irov.Tensor(Image()).element_type == irov.Type.u8


def test_values_of_irload_are_views_where_the_width_allows_it():
    array = np.arange(4, dtype=np.float32)
    tensor = irov.Tensor(array, shared_memory=True)
    assert np.shares_memory(tensor._value(), array)
    assert irov.Tensor(irov.Type.bf16, [2])._value().dtype.name == "bfloat16"
