"""Shape arithmetic on dynamic shapes: chains of operations infer the partial shapes that OpenVINO infers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
import openvino as ov
import pytest

import irload
from irload.core.shape import Shape
from tests.harness.case import text
from tests.harness.runtime import core, shape_of

Port = tuple[int, int]


class Graph:
    """Layers appended one by one; each method returns the port of its output."""

    def __init__(self) -> None:
        self.layers: list[str] = []
        self.edges: list[str] = []
        self.blob = b""

    def parameter(self, shape: str, element: str = "f32") -> Port:
        return self._layer("Parameter", "opset1", {"element_type": element, "shape": shape}, [])[0]

    def constant(self, values: Any) -> Port:
        raw = np.asarray(values, np.int64)
        place = {"offset": len(self.blob), "size": max(raw.nbytes, 1)}
        self.blob += raw.tobytes() or b"\0"
        return self._layer("Const", "opset1", {"element_type": "i64", "shape": list(raw.shape), **place}, [])[0]

    def op(self, type: str, version: str, *inputs: Port | Any, outputs: int = 1, **attributes: Any) -> Any:
        ports = [i if isinstance(i, tuple) else self.constant(i) for i in inputs]
        result = self._layer(type, version, attributes, ports, outputs)
        return result[0] if outputs == 1 else result

    def _layer(
        self, type: str, version: str, attributes: dict[str, Any], inputs: list[Port], outputs: int = 1
    ) -> list[Port]:
        id = len(self.layers)
        data = " ".join(f"{k}={quoteattr(text(v))}" for k, v in attributes.items())
        input_text = "".join(f'<port id="{k}"/>' for k in range(len(inputs)))
        ports_text = "".join(f'<port id="{len(inputs) + k}" precision="FP32"/>' for k in range(outputs))
        self.layers.append(
            f'<layer id="{id}" name="n{id}" type="{type}" version="{version}"><data {data}/>'
            + (f"<input>{input_text}</input>" if input_text else "")
            + (f"<output>{ports_text}</output>" if ports_text else "")
            + "</layer>"
        )
        self.edges += [
            f'<edge from-layer="{a}" from-port="{p}" to-layer="{id}" to-port="{k}"/>' for k, (a, p) in enumerate(inputs)
        ]
        return [(id, len(inputs) + k) for k in range(outputs)]

    def ir(self, result: Port) -> tuple[bytes, bytes]:
        self._layer("Result", "opset1", {}, [result], 0)
        layers, edges = "".join(self.layers), "".join(self.edges)
        return f'<net name="g" version="11"><layers>{layers}</layers><edges>{edges}</edges></net>'.encode(), self.blob


def shape(g: Graph, x: Port) -> Port:
    return g.op("ShapeOf", "opset3", x, output_type="i64")


def pick(g: Graph, x: Port, indices: Any) -> Port:
    return g.op("Gather", "opset8", x, indices, 0)


def joined(g: Graph, *parts: Any) -> Port:
    return g.op("Concat", "opset1", *parts, axis=0)


def reshape(g: Graph, x: Port, target: Any, special_zero: bool = False) -> Port:
    return g.op("Reshape", "opset1", x, target, special_zero=special_zero)


def flatten(g: Graph, x: Port) -> Port:
    return reshape(g, x, joined(g, pick(g, shape(g, x), [0]), [-1]))


def split_heads(g: Graph, x: Port) -> Port:
    return reshape(g, x, joined(g, pick(g, shape(g, x), [0, 1]), [4, -1]))


def merge_two(g: Graph, x: Port) -> Port:
    return reshape(g, x, joined(g, [0], pick(g, shape(g, x), [1]), [-1]), special_zero=True)


def slice_of_shape(g: Graph, x: Port) -> Port:
    return reshape(g, x, joined(g, g.op("Slice", "opset8", shape(g, x), [-1], [-3], [-1]), [-1]))


def strided_slice_of_shape(g: Graph, x: Port) -> Port:
    s = g.op("StridedSlice", "opset1", shape(g, x), [1], [3], [1], begin_mask=[0], end_mask=[1])
    return g.op("Broadcast", "opset3", g.constant([1]), s, mode="bidirectional")


def shrunk_to_scalar(g: Graph, x: Port) -> Port:
    masks: dict[str, Any] = {"begin_mask": [0], "end_mask": [0], "shrink_axis_mask": [1]}
    n = g.op("StridedSlice", "opset1", shape(g, x), [1], [2], [1], **masks)
    target = joined(g, g.op("Unsqueeze", "opset1", n, [0]), [2])
    return g.op("Broadcast", "opset3", g.constant(0), target, mode="numpy")


def squeezed(g: Graph, x: Port) -> Port:
    n = g.op("Squeeze", "opset1", pick(g, shape(g, x), [[2]]), [0])
    return g.op("Tile", "opset1", x, joined(g, [1, 2], n))


def split_shape(g: Graph, x: Port) -> Port:
    a, b, c = g.op("Split", "opset1", shape(g, x), 0, outputs=3, num_splits=3)
    return reshape(g, x, joined(g, c, a, b))


def variadic_split_shape(g: Graph, x: Port) -> Port:
    a, b = g.op("VariadicSplit", "opset1", shape(g, x), 0, [1, -1], outputs=2)
    return reshape(g, x, joined(g, b, a))


def transposed_shape(g: Graph, x: Port) -> Port:
    rows = g.op("Transpose", "opset1", g.op("Unsqueeze", "opset1", shape(g, x), [0]), [1, 0])
    return reshape(g, x, reshape(g, rows, [-1]))


def scattered_shape(g: Graph, x: Port) -> Port:
    return reshape(g, x, g.op("ScatterUpdate", "opset3", shape(g, x), [1], [-1], 0))


def scattered_nd(g: Graph, x: Port) -> Port:
    return g.op("Broadcast", "opset3", g.constant(0), g.op("ScatterNDUpdate", "opset4", shape(g, x), [[0]], [7]))


def scattered_elements(g: Graph, x: Port) -> Port:
    s = g.op("ScatterElementsUpdate", "opset3", shape(g, x), [0], [7], 0)
    return g.op("Broadcast", "opset3", g.constant(0), s)


def padded_shape(g: Graph, x: Port) -> Port:
    s = g.op("Pad", "opset1", shape(g, x), [1], [0], 7, pad_mode="constant")
    return g.op("Broadcast", "opset3", g.constant(0), s)


def tiled_shape(g: Graph, x: Port) -> Port:
    return g.op("Broadcast", "opset3", g.constant(0), g.op("Tile", "opset1", shape(g, x), [2]))


def broadcast_shape(g: Graph, x: Port) -> Port:
    s = g.op("Broadcast", "opset3", pick(g, shape(g, x), [2]), [3], mode="numpy")
    return g.op("Broadcast", "opset3", g.constant(0), s)


def sliced_by_shape(g: Graph, x: Port) -> Port:
    return g.op("Slice", "opset8", g.parameter("3,20"), [0], pick(g, shape(g, x), [2]), [1], [1])


def strided_sliced_by_shape(g: Graph, x: Port) -> Port:
    end = joined(g, [0], pick(g, shape(g, x), [1]))
    masks: dict[str, Any] = {"begin_mask": [1, 1], "end_mask": [1, 0]}
    return g.op("StridedSlice", "opset1", g.parameter("?,9"), [0, 0], end, [1, 2], **masks)


def padded_by_shape(g: Graph, x: Port) -> Port:
    return g.op("Pad", "opset12", g.parameter("3,4"), pick(g, shape(g, x), [0, 2]), [1, -1], pad_mode="constant")


def element_picked(g: Graph, x: Port) -> Port:
    return g.op("Broadcast", "opset3", g.constant(0), g.op("GatherElements", "opset6", shape(g, x), [2, 0], axis=0))


def rolled(g: Graph, x: Port) -> Port:
    return g.op("Broadcast", "opset3", g.constant(0), g.op("Roll", "opset7", shape(g, x), [1], [0]))


CHAINS: list[Callable[[Graph, Port], Port]] = [
    *(flatten, split_heads, merge_two, slice_of_shape, strided_slice_of_shape, shrunk_to_scalar, squeezed, split_shape),
    *(variadic_split_shape, transposed_shape, scattered_shape, scattered_nd, scattered_elements, padded_shape),
    *(tiled_shape, broadcast_shape, sliced_by_shape, strided_sliced_by_shape, padded_by_shape),
]


NOT_CARRIED = [element_picked, rolled]
"""Chains through which OpenVINO propagates neither bounds nor values; irload propagates known values only."""


@pytest.mark.parametrize("data", ["2,3,8", "?,3,8", "?,?,8", "1..4,3,2..8", "?,..6,8", "?,?,?", "2..,5,3.."])
@pytest.mark.parametrize("chain", CHAINS, ids=lambda c: c.__name__)
def test_inference_equals_the_runtime(chain: Callable[[Graph, Port], Port], data: str) -> None:
    ours, theirs = both(chain, data)
    assert ours == theirs


@pytest.mark.parametrize("data", ["?,3,8", "2..,5,3.."])
@pytest.mark.parametrize("chain", NOT_CARRIED, ids=lambda c: c.__name__)
def test_values_that_the_runtime_does_not_propagate(chain: Callable[[Graph, Port], Port], data: str) -> None:
    ours, theirs = both(chain, data)
    assert ours == theirs


def both(chain: Callable[[Graph, Port], Port], data: str) -> tuple[Shape, Shape]:
    graph = Graph()
    xml, weights = graph.ir(chain(graph, graph.parameter(data)))
    theirs = core().read_model(xml, ov.Tensor(np.frombuffer(weights or b"\0", np.uint8)))
    expected = shape_of(theirs.get_results()[0].get_input_partial_shape(0))
    return irload.read_model(xml, weights).outputs[0].partial_shape, expected


def test_a_value_that_bounds_leave_no_choice_of_is_known() -> None:
    graph = Graph()
    x = graph.parameter("?,3,8")
    xml, weights = graph.ir(graph.op("Reshape", "opset1", x, joined(graph, [-1], pick(graph, shape(graph, x), [1, 2]))))
    assert str(irload.read_model(xml, weights).outputs[0].partial_shape) == "[?,3,8]"
