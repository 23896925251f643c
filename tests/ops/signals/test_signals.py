"""Fourier transforms: hand-worked spectra, sizes, round trips, inferred shapes, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import Bounds, TensorType
from irload.errors import IRError, ShapeMismatch, TypeMismatch
from irload.ops.registry import resolve

VERSIONS = {
    "DFT": "opset7",
    "IDFT": "opset7",
    "RDFT": "opset9",
    "IRDFT": "opset9",
    "STFT": "opset15",
    "ISTFT": "opset16",
}


def make(type: str, **attributes: Any) -> Any:
    return resolve(type, VERSIONS[type])[0](**attributes)


def run(type: str, data: Any, *rest: Any, **attributes: Any) -> Any:
    return make(type, **attributes).compute(np.asarray(data, np.float32), *map(np.asarray, rest))


def shape(type: str, data: Shape, *rest: Any, **attributes: Any) -> Shape:
    """The inferred shape of the output for f32 data of a shape, and other inputs given as values or types."""
    types = [r if isinstance(r, TensorType) else TensorType.of(np.asarray(r)) for r in rest]
    return make(type, **attributes).infer(TensorType(et.f32, data), *types).shape


@pytest.mark.parametrize(
    ("type", "data", "inputs", "expected"),
    [
        ("DFT", [[1, 0], [0, 0], [0, 0], [0, 0]], ([0],), [[1, 0], [1, 0], [1, 0], [1, 0]]),
        ("DFT", [[0, 0], [1, 0], [0, 0], [0, 0]], ([0],), [[1, 0], [0, -1], [-1, 0], [0, 1]]),
        ("DFT", [[1, 0], [2, 0], [9, 9]], ([-1], [2]), [[3, 0], [-1, 0]]),
        ("DFT", [[1, 0]], ([0], [2]), [[1, 0], [1, 0]]),
        ("DFT", [[1, 2]], (np.zeros(0, int),), [[1, 2]]),
        ("IDFT", [[4, 0], [0, 0], [0, 0], [0, 0]], ([0], [-1]), [[1, 0], [1, 0], [1, 0], [1, 0]]),
        ("RDFT", [1, 2, 3], ([0],), [[6, 0], [-1.5, 0.8660254]]),
        ("RDFT", [1, 2, 3, 4], ([0], [2]), [[3, 0], [-1, 0]]),
        ("IRDFT", [[3, 5], [-1, 7]], ([0],), [1, 2]),  # the imaginary parts have no effect
        ("IRDFT", [[6, 0], [-1.5, 0.8660254]], ([0], [3]), [1, 2, 3]),
        ("IRDFT", [[6, 0]], ([0],), []),
    ],
)
def test_spectra(type: str, data: Any, inputs: Any, expected: Any) -> None:
    output = run(type, data, *inputs)
    np.testing.assert_allclose(output, np.asarray(expected, np.float32).reshape(output.shape), atol=1e-6)
    assert output.dtype == np.float32


def test_the_last_axis_in_the_list_is_halved() -> None:
    data = np.arange(12.0).reshape(3, 4)
    assert run("RDFT", data, [0, 1]).shape == (3, 3, 2)
    assert run("RDFT", data, [1, 0]).shape == (2, 4, 2)
    np.testing.assert_allclose(run("IRDFT", run("RDFT", data, [1, 0]), [1, 0], [-1, 3]), data, atol=1e-5)


KNOWN_PARTLY = TensorType(et.i64, Shape(2), bounds=Bounds(np.array([2, 5]), np.array([4, 5])))
TWO = TensorType(et.i64, Shape(2))


@pytest.mark.parametrize(
    ("type", "data", "inputs", "expected"),
    [
        ("DFT", Shape(3, 4, 2), ([0, 1], [-1, 7]), Shape(3, 7, 2)),
        ("DFT", Shape(3, 4, 2), ([0, 1], KNOWN_PARTLY), Shape((2, 4), 5, 2)),
        ("DFT", Shape(3, 4, 2), (TWO, TWO), Shape(None, None, 2)),
        ("DFT", Shape(3, 4, 2), (TWO,), Shape(3, 4, 2)),
        ("RDFT", Shape(3, (0, 9)), ([1],), Shape(3, (0, 5), 2)),
        ("RDFT", Shape(3, 4), (TWO,), Shape(None, None, 2)),
        ("RDFT", Shape(3, 4), ([0, 1], TWO), Shape(None, None, 2)),
        ("IRDFT", Shape(3, (3, 5), 2), ([1],), Shape(3, (4, 8))),
        ("IRDFT", Shape(3, 4, 2), ([1, 0], [9, -1]), Shape(4, 9)),
        ("IRDFT", Shape.unranked(), ([1],), Shape.unranked()),
    ],
)
def test_inferred_shapes(type: str, data: Shape, inputs: Any, expected: Shape) -> None:
    assert shape(type, data, *inputs) == expected


@pytest.mark.parametrize(
    ("type", "data", "inputs", "error"),
    [
        ("DFT", Shape(4, 3), ([0],), ShapeMismatch),  # no pairs
        ("DFT", Shape(2), ([0],), ShapeMismatch),
        ("DFT", Shape(4, 2), ([1],), ShapeMismatch),  # the axis of the pairs
        ("DFT", Shape(4, 4, 2), ([0, -2],), ShapeMismatch),  # one axis twice
        ("DFT", Shape(4, 2), ([0, 1],), ShapeMismatch),
        ("DFT", Shape(4, 2), ([[0]],), ShapeMismatch),
        ("DFT", Shape(4, 2), ([0], [1, 2]), ShapeMismatch),
        ("DFT", Shape(4, 2), ([0], [0]), ShapeMismatch),
        ("DFT", Shape(4, 2), ([0.0],), TypeMismatch),
        ("RDFT", Shape(), (np.zeros(0, int),), ShapeMismatch),
        ("RDFT", Shape(4), (np.zeros(0, int),), ShapeMismatch),
        ("RDFT", Shape(4), ([1],), ShapeMismatch),
    ],
)
def test_invalid_inputs_are_rejected(type: str, data: Shape, inputs: Any, error: type[IRError]) -> None:
    with pytest.raises(error):
        shape(type, data, *inputs)


# -- frames

WINDOW = np.ones(4, np.float32)


def test_a_short_window_is_centered_in_the_frame() -> None:
    output = run("STFT", [1, 2, 3, 4, 5], np.array([1, 1], np.float32), 4, 1)
    np.testing.assert_allclose(output[:, 0, 0], [2 + 3, 3 + 4], rtol=1e-6)  # the first bin is the sum of the frame
    assert run("STFT", [1, 2, 3, 4, 5], WINDOW, 4, 1, transpose_frames=True).shape == (3, 2, 2)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("length", [None, 5, 14])
def test_frames_give_back_their_signal(center: bool, length: int | None) -> None:
    signal = np.arange(1, 11, dtype=np.float32)
    window = np.array([0.5, 1, 1, 0.5], np.float32)
    spectra = run("STFT", signal, window, 4, 2, transpose_frames=True)
    rest = [] if length is None else [length]
    output = run("ISTFT", spectra, window, 4, 2, *rest, center=center)
    whole = signal[2:] if center else signal
    kept = length or (6 if center else 10)
    np.testing.assert_allclose(output, np.pad(whole, (0, 9))[:kept], atol=1e-5)
    np.testing.assert_allclose(run("ISTFT", spectra / 2, window, 4, 2, *rest, center=center, normalized=True), output)


def test_centered_odd_frames_keep_the_middle_element() -> None:
    signal, window = np.arange(1, 12, dtype=np.float32), np.ones(5, np.float32)
    spectra = run("STFT", signal, window, 5, 2, transpose_frames=True)
    np.testing.assert_allclose(run("ISTFT", spectra, window, 5, 2, center=True), signal[2:-2], atol=1e-5)
    assert shape("ISTFT", Shape(3, 4, 2), window, 5, 2, center=True) == Shape(7)


SCALAR = TensorType(et.i64, Shape())


@pytest.mark.parametrize(
    ("type", "data", "inputs", "expected"),
    [
        ("STFT", Shape(2, 16), (WINDOW, 11, 3), Shape(2, 2, 6, 2)),
        ("STFT", Shape((2, 3), None), (WINDOW, 4, 3), Shape((2, 3), (1, None), 3, 2)),
        ("STFT", Shape(16), (WINDOW, SCALAR, 3), Shape(None, None, 2)),
        ("ISTFT", Shape(6, 16, 2), (np.ones(7, np.float32), 11, 3), Shape(56)),
        ("ISTFT", Shape(4, 6, 16, 2), (np.ones(7, np.float32), 11, 3, 64), Shape(4, 64)),
        ("ISTFT", Shape(4, 6, 16, 2), (np.ones(7, np.float32), 11, 3, SCALAR), Shape(4, None)),
    ],
)
def test_inferred_shapes_of_frames(type: str, data: Shape, inputs: Any, expected: Shape) -> None:
    assert shape(type, data, *inputs) == expected


@pytest.mark.parametrize(
    ("type", "data", "inputs", "error"),
    [
        ("STFT", Shape(8), (WINDOW, 9, 1), ShapeMismatch),
        ("STFT", Shape(8), (WINDOW, 3, 1), ShapeMismatch),  # the window is longer than a frame
        ("STFT", Shape(8), (WINDOW, 4, 0), ShapeMismatch),
        ("STFT", Shape(8), (WINDOW, [4], 1), ShapeMismatch),
        ("STFT", Shape(1, 1, 8), (WINDOW, 4, 1), ShapeMismatch),
        ("STFT", Shape(8), (WINDOW.astype(np.float64), 4, 1), TypeMismatch),
        ("ISTFT", Shape(3, 5, 3), (WINDOW, 4, 1), ShapeMismatch),
        ("ISTFT", Shape(4, 5, 2), (WINDOW, 4, 1), ShapeMismatch),  # 3 bins in a frame of 4
        ("ISTFT", Shape(3, 5, 2), (WINDOW, 4, 1, 0), ShapeMismatch),
    ],
)
def test_frames_that_do_not_fit(type: str, data: Shape, inputs: Any, error: type[IRError]) -> None:
    with pytest.raises(error):
        shape(type, data, *inputs)
