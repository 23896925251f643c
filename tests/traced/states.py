"""Random decoders: variables that grow along any axis, in several layers, and everything that may read them."""

from __future__ import annotations

from typing import Any

import numpy as np

import irload
from irload.core import element as et
from irload.model import Model
from tests.harness.body import Body

NUMPY: dict[str, Any] = {"auto_broadcast": "numpy"}


class Decoder:
    """A random model on x [batch, rows, width], mask [batch, all rows] and beam [batch], with its shapes."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.heads, self.size = int(rng.integers(1, 4)), int(rng.choice([4, 8, 12]))
        self.shared = int(rng.choice([1, 1, 2]))
        """Query heads that share keys and values."""
        self.width = self.heads * self.shared * self.size
        self.has_window = bool(rng.random() < 0.15)
        """Whether variables keep the last rows only, which copies them."""
        self.has_mask, self.has_beam = bool(rng.random() < 0.6) and not self.has_window, bool(rng.random() < 0.7)
        self.rows_last = bool(rng.random() < 0.3)
        """Whether rows are axis 1, before the heads."""
        self.graph = graph = Body(bytearray())
        x = graph.parameter(et.f32, f"?,?,{self.width}")
        self.mask = graph.parameter(et.i64, "?,?") if self.has_mask else None
        self.beam = graph.parameter(et.i32, "?") if self.has_beam else None
        self.batch = graph.op("Gather", self.shape_of(x), self.numbers([0]), self.numbers(0), version="opset8")
        if self.mask is not None:
            kept = graph.op("Convert", self.mask, destination_type=et.boolean)
            kept = graph.op("Unsqueeze", kept, self.numbers([1, 2]))
            low = graph.constant(np.array(-1e4, np.float32))
            self.bias = graph.op("Select", kept, graph.constant(np.array(0, np.float32)), low, **NUMPY)
        for layer in range(int(rng.integers(1, 4))):
            x = graph.op("Add", x, self.attention(x, layer), **NUMPY)
        graph.result(x)
        self.model: Model = irload.read_model(*graph.model())

    def shape_of(self, value: Any) -> Any:
        return self.graph.op("ShapeOf", value, version="opset3", output_type="i64")

    def numbers(self, value: Any) -> Any:
        return self.graph.constant(np.array(value, np.int64))

    def linear(self, x: Any, width: int) -> Any:
        weights = self.rng.standard_normal((width, self.width)).astype(np.float32) / self.width**0.5
        return self.graph.op("MatMul", x, self.graph.constant(weights), transpose_a=False, transpose_b=True)

    def by_heads(self, x: Any, heads: int, *, turned: bool) -> Any:
        split = self.graph.op("Reshape", x, self.numbers([0, 0, heads, self.size]), special_zero=True)
        return self.graph.op("Transpose", split, self.numbers([0, 2, 1, 3])) if turned else split

    def cached(self, x: Any, name: str) -> Any:
        """The rows of earlier inferences, then new ones: [batch, heads, all rows, size]."""
        graph, rng = self.graph, self.rng
        axis = 1 if self.rows_last else 2
        new = self.by_heads(self.linear(x, self.heads * self.size), self.heads, turned=not self.rows_last)
        empty = [self.batch, *(self.numbers([n]) for n in (self.heads, 0, self.size))]
        empty = [empty[0], empty[2], empty[1], empty[3]] if self.rows_last else empty
        zero = graph.constant(np.array(0, np.float32))
        empty = graph.op("Concat", *empty, axis=0)
        initial = graph.op("Broadcast", zero, empty, version="opset3", mode="numpy")
        sizes = f"?,?,{self.heads},{self.size}" if self.rows_last else f"?,{self.heads},?,{self.size}"
        declared: dict[str, Any] = {"variable_id": name, "variable_type": et.f32, "variable_shape": sizes}
        past = graph.op("ReadValue", initial, version="opset6", **declared)
        if self.beam is not None:
            past = graph.op("Gather", past, self.beam, self.numbers(0), version="opset8", batch_dims=0)
        joined = graph.op("Concat", past, new, axis=axis)
        stored = joined
        if self.has_window:
            last = [self.numbers([n]) for n in (-6, np.iinfo(np.int64).max, 1, axis)]
            stored = graph.op("Slice", joined, *last, version="opset8")
        graph.op("Assign", stored, version="opset6", variable_id=name)
        if rng.random() < 0.1:
            graph.result(graph.op("Multiply", joined, graph.constant(np.array(2, np.float32)), **NUMPY))
        elif rng.random() < 0.1:
            graph.result(joined)
        return graph.op("Transpose", joined, self.numbers([0, 2, 1, 3])) if self.rows_last else joined

    def attention(self, x: Any, layer: int) -> Any:
        graph, rng = self.graph, self.rng
        query = self.by_heads(self.linear(x, self.width), self.heads * self.shared, turned=True)
        keys, values = self.cached(x, f"keys{layer}"), self.cached(x, f"values{layer}")
        if self.shared > 1:
            keys, values = self.repeated(keys), self.repeated(values)
        if rng.random() < 0.5:
            bias = [self.bias] if self.mask is not None and rng.random() < 0.8 else []
            y = graph.op("ScaledDotProductAttention", query, keys, values, *bias, version="opset13", causal=False)
        else:
            scores = graph.op("MatMul", query, keys, transpose_a=False, transpose_b=True)
            if rng.random() < 0.5:
                scores = graph.op("Tanh", scores)
            y = graph.op("MatMul", graph.op("SoftMax", scores, axis=3), values, transpose_a=False, transpose_b=False)
        joined = graph.op("Transpose", y, self.numbers([0, 2, 1, 3]))
        return self.linear(graph.op("Reshape", joined, self.numbers([0, 0, self.width]), special_zero=True), self.width)

    def repeated(self, x: Any) -> Any:
        """Each head for the query heads that share it."""
        graph = self.graph
        wide = graph.op("Unsqueeze", x, self.numbers([2]))
        sizes = self.shape_of(x)
        dims = [graph.op("Gather", sizes, self.numbers([k]), self.numbers(0), version="opset8") for k in range(4)]
        target = graph.op("Concat", *dims[:2], self.numbers([self.shared]), *dims[2:], axis=0)
        wide = graph.op("Broadcast", wide, target, version="opset3", mode="bidirectional")
        shape = self.numbers([0, self.heads * self.shared, -1, self.size])
        return graph.op("Reshape", wide, shape, special_zero=True)
