"""IR v2 to v7: the rewritten layers follow the input when a model is reshaped to another batch or image size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import irload
from irload.core.tensor import Array
from irload.errors import IRError, ShapeMismatch
from irload.loading import read_anyway
from tests.harness.runtime import core
from tests.read.legacy import Dims, legacy_net
from tests.read.legacy_layers import FC, NCHW, REGION, weights

Shape = tuple[int, ...]
LAYERS: list[tuple[str, str, Shape, Shape, Shape, Shape]] = [
    ("Flatten", "", NCHW, (1, 108), (2, 3, 4, 5), (2, 60)),
    ("Flatten", '<data axis="1" end_axis="-1"/>', NCHW, (1, 108), (2, 3, 4, 5), (2, 60)),
    ("Flatten", '<data axis="2"/>', NCHW, (1, 3, 36), (2, 3, 4, 5), (2, 3, 20)),
    ("Flatten", '<data axis="-2"/>', NCHW, (1, 3, 36), (2, 3, 4, 5), (2, 3, 20)),
    ("Flatten", '<data axis="0"/>', NCHW, (108,), (2, 3, 4, 5), (120,)),
    ("Flatten", '<data axis="0" end_axis="1"/>', NCHW, (3, 6, 6), (2, 3, 4, 5), (6, 4, 5)),
    ("Flatten", '<data axis="1" end_axis="2"/>', NCHW, (1, 18, 6), (2, 3, 4, 5), (2, 12, 5)),
    ("Flatten", '<data axis="2" end_axis="2"/>', NCHW, NCHW, (2, 3, 4, 5), (2, 3, 4, 5)),
    ("Reshape", '<data axis="0" dim="0,-1,2" num_axes="-1"/>', (1, 108), (1, 54, 2), (2, 60), (2, 30, 2)),
    ("Reshape", '<data axis="1" dim="-1,2" num_axes="-1"/>', (1, 108), (1, 54, 2), (2, 60), (2, 30, 2)),
    ("Reshape", '<data dim="1,-1"/>', NCHW, (1, 108), (2, 3, 4, 5), (2, 60)),
    ("Reshape", '<data dim="1,108"/>', NCHW, (1, 108), (2, 3, 4, 5), (2, 60)),
    ("Reshape", '<data dim="1,3"/>', (1, 3, 1, 1), (1, 3), (2, 4, 1, 1), (2, 4)),
    ("Reshape", '<data dim="1,3"/>', (1, 3, 1, 1), (1, 3), (2, 3, 2, 1), (2, 6)),
    ("Reshape", '<data dim="-1,36"/>', NCHW, (3, 36), (2, 3, 6, 6), (6, 36)),
    ("Reshape", '<data dim="0,3,-1,6"/>', (1, 108), (1, 3, 6, 6), (2, 36), (2, 3, 2, 6)),
    ("Reshape", "", NCHW, (1, 3, 36), (2, 4, 5, 6), (2, 4, 30)),
    ("Reshape", "", NCHW, NCHW, (2, 4, 5, 6), (2, 4, 5, 6)),
    ("Reshape", "", (1, 3), (1, 3, 1, 1), (2, 3), (2, 3, 1, 1)),
    ("RegionYolo", f'<data {REGION} do_softmax="0"/>', (1, 21, 2, 3), (1, 21, 2, 3), (2, 21, 4, 5), (2, 21, 4, 5)),
    ("RegionYolo", f"<data {REGION}/>", (1, 21, 2, 3), (1, 21, 2, 3), (2, 21, 4, 5), (2, 21, 4, 5)),
]


@pytest.mark.parametrize(("type", "data", "dims", "declared", "size", "expected"), LAYERS)
def test_layers_follow_the_input(
    type: str, data: str, dims: Shape, declared: Shape, size: Shape, expected: Shape
) -> None:
    model = irload.read_model(*legacy_net(type, data, [dims], [declared]))
    assert model.warnings == []
    assert model.outputs[0].shape == declared
    assert model.reshape(size).outputs[0].shape == expected
    if type != "RegionYolo":
        x = weights(*size)
        np.testing.assert_array_equal(irload.compile_model(model)(x)[0], x.reshape(expected))


@pytest.mark.parametrize(
    ("type", "data", "declared"),
    [
        ("Reshape", '<data dim="1,2,54"/>', (1, 2, 54)),
        ("Reshape", '<data dim="1,-1,5"/>', (1, 2, 54)),  # the result is not the declared one
        ("Reshape", '<data dim="-1,-1,54"/>', (1, 2, 54)),
        ("Reshape", '<data dim="1,-1,0,0,0"/>', (1, 2, 54)),
        ("Reshape", '<data dim="-1" axis="1" num_axes="3"/>', (1, 2, 54)),
        ("Reshape", '<data dim="-1" axis="999999999"/>', (1, 2, 54)),
        ("Reshape", "", (1, 2, 54)),
        ("Flatten", '<data axis="0"/>', (1, 2, 54)),
        ("Flatten", '<data axis="7"/>', (1, 2, 54)),
    ],
)
def test_declared_dims_apply_without_a_fitting_target(type: str, data: str, declared: Shape) -> None:
    model = irload.read_model(*legacy_net(type, data, [NCHW], [declared]))
    assert model.reshape((2, 3, 6, 6)).outputs[0].shape == (2, *declared[1:])
    with pytest.raises(ShapeMismatch, match="elements"):
        model.reshape((1, 3, 4, 5))


@pytest.mark.parametrize("declared", [(1, 107), (1, 3, 35), (0,), (1, 3)])
@pytest.mark.parametrize("type", ["Reshape", "Flatten"])
def test_declared_dims_of_another_size_are_refused(type: str, declared: Shape) -> None:
    with pytest.raises(ShapeMismatch, match="elements"):
        irload.read_model(*legacy_net(type, "", [NCHW], [declared]))


def stored(values: Sequence[float], kind: type[np.generic], declared: Dims = (1, 54, 2)) -> tuple[bytes, bytes]:
    """A Reshape of [1, 108] to a target in the .bin file."""
    constants: dict[int, Array] = {1: np.array(values, kind)}
    return legacy_net("Reshape", "", [(1, 108), (len(values),)], [declared], constants=constants)


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int32, np.int64])
def test_stored_targets(kind: type[np.generic]) -> None:
    text, blob = stored([0, -1, 2], kind)
    assert irload.read_model(text, blob).reshape((3, 60)).outputs[0].shape == (3, 30, 2)
    faults: list[IRError] = []
    model = read_anyway(text, note=faults.append)
    assert [f.where.layer_name for f in faults if f.where is not None] == [
        "in1" if kind is not np.float16 else "in1/Const"
    ]
    assert model.outputs[0].shape == (1, 54, 2)


@pytest.mark.parametrize("values", [[0, -1, 2.5], [np.nan, -1, 2], [np.inf, -1, 2], [0, -1, 3], [0, -1], [0, -1, 1, 2]])
def test_stored_targets_that_do_not_fit(values: Sequence[float]) -> None:
    model = irload.read_model(*stored(values, np.float32))
    assert model.reshape((3, 108)).outputs[0].shape == (3, 54, 2)
    with pytest.raises(ShapeMismatch):
        model.reshape((3, 60))


@pytest.mark.parametrize(
    ("dims", "declared", "size", "expected"),
    [
        ((4, 3, 2, 2), (4, 5), (7, 3, 2, 2), (7, 5)),
        ((1, 7, 3, 4), (1, 7, 5), (2, 9, 3, 4), (2, 9, 5)),
        ((1, 12), (1, 5), (3, 12), (3, 5)),
    ],
)
def test_fully_connected_layers_keep_the_batch(dims: Shape, declared: Shape, size: Shape, expected: Shape) -> None:
    net = legacy_net("FullyConnected", '<data out-size="5"/>', [dims], [declared], {"weights": FC})
    model = irload.read_model(*net).reshape(size)
    x = weights(*size)
    rows = x.reshape(*expected[:-1], 12)
    np.testing.assert_allclose(irload.compile_model(model)(x)[0], rows @ FC.T, rtol=1e-5, atol=1e-5)


def test_rows_of_a_fully_connected_layer_have_a_fixed_length() -> None:
    """An image of twice the size is not a batch of twice the size."""
    net = legacy_net("FullyConnected", '<data out-size="5"/>', [(1, 3, 2, 2)], [(1, 5)], {"weights": FC})
    with pytest.raises(ShapeMismatch, match="24 elements"):
        irload.read_model(*net).reshape((1, 3, 2, 4))
    net = legacy_net("FullyConnected", '<data out-size="5"/>', [(2, 3, 12)], [(6, 5)], {"weights": FC})
    with pytest.raises(ShapeMismatch):
        irload.read_model(*net).reshape((3, 3, 12))


PRIORS = '<data min_size="4" step="0" offset="0.5" variance="0.1" clip="0" flip="0"{}/>'
MAPS = [(1, 3, 2, 2), (1, 3, 8, 16)]


@pytest.mark.parametrize("type", ["PriorBox", "PriorBoxClustered"])
def test_priors_follow_the_map_and_the_image(type: str) -> None:
    data = PRIORS.format("") if type == "PriorBox" else '<data width="4" height="6" offset="0.5" variance="0.1"/>'
    sizes = [(2, 3, 3, 2), (2, 3, 12, 20)]
    model = irload.read_model(*legacy_net(type, data, MAPS, [(1, 2, 16)]))
    assert model.outputs[0].shape == (1, 2, 16)
    declared = irload.read_model(*legacy_net(type, data, sizes, [(1, 2, 24)]))
    reshaped = model.reshape({"in0": sizes[0], "in1": sizes[1]})
    inputs = [weights(*dims) for dims in sizes]
    boxes = irload.compile_model(reshaped)(inputs)[0]
    np.testing.assert_array_equal(boxes, irload.compile_model(declared)(inputs)[0])
    assert boxes.shape == (1, 2, 24)


def test_the_stated_size_of_an_image_is_fixed() -> None:
    for stated, size in (
        (' img_h="8" img_w="16"', (1, 3, 5, 7)),
        (' img_size="8"', (1, 3, 9, 9)),
        (' img_h="8"', (1, 3, 9, 16)),
    ):
        model = irload.read_model(*legacy_net("PriorBox", PRIORS.format(stated), MAPS, [(1, 2, 16)]))
        inputs = [weights(*dims) for dims in MAPS]
        expected = irload.compile_model(model)(inputs)[0]
        reshaped = model.reshape({"in0": MAPS[0], "in1": size})
        np.testing.assert_array_equal(irload.compile_model(reshaped)([inputs[0], weights(*size)])[0], expected)


@pytest.mark.parametrize(
    ("type", "data", "dims", "declared", "size"),
    [
        ("Flatten", '<data axis="1" end_axis="2"/>', NCHW, (1, 18, 6), (2, 3, 4, 5)),
        ("Flatten", "", NCHW, (1, 108), (2, 3, 4, 5)),
        ("RegionYolo", f"<data {REGION}/>", (1, 21, 2, 3), (1, 21, 2, 3), (2, 21, 4, 5)),
    ],
)
def test_the_runtime_reshapes_saved_files(tmp_path, type: str, data: str, dims: Shape, declared: Shape, size) -> None:
    model = irload.read_model(*legacy_net(type, data, [dims], [declared]))
    irload.save_model(model, tmp_path / "new.xml")
    theirs = core().read_model(str(tmp_path / "new.xml"))
    theirs.reshape(list(size))
    x = weights(*size)
    expected = core().compile_model(theirs, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(x)[0]
    np.testing.assert_allclose(irload.compile_model(model.reshape(size))(x)[0], expected, rtol=1e-5, atol=1e-6)
