"""A model like a transformer encoder, of up to some 2,000 layers, with scopes, a loop, and hostile names."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from models.ir import Graph, Ref, save
from tests.harness.tiers import tiered

HOSTILE = "</script><script>window.broken = true</script><img src=x onerror='window.broken = true'>"
WIDTH, LENGTH = 32, 16
BLOCKS = 50 if os.environ.get("SCREENSHOTS") else tiered(12, 50)
"""The blocks of the model of most tests; 50 have over 2,000 layers."""


class Encoder:
    """Adds layers under names with scopes; weights are random with a fixed seed."""

    def __init__(self) -> None:
        self.g = Graph()
        self.rng = np.random.default_rng(0)
        self.scope = ""

    def op(
        self, type: str, name: str, *inputs: Ref, dims=(1, LENGTH, WIDTH), version: str = "opset1", **more: str
    ) -> Ref:
        layer = self.g.layer(type, inputs, [("f32", dims)], version=version, name=self.scope + name, attributes=more)
        return layer[0]

    def weight(self, name: str, *shape: int) -> Ref:
        values = self.rng.normal(0, 0.1, shape).astype(np.float32)
        return self.g.constant(values, f"{self.scope}{name}")

    def dense(self, name: str, x: Ref, width: int) -> Ref:
        before, self.scope = self.scope, f"{self.scope}{name}/"
        flags = {"transpose_a": "false", "transpose_b": "false"}
        dims = (1, LENGTH, width)
        x = self.op("MatMul", "MatMul", x, self.weight("kernel", int(x.dims[2]), width), dims=dims, **flags)
        x = self.op("Add", "BiasAdd", x, self.weight("bias", 1, 1, width), dims=dims, auto_broadcast="numpy")
        self.scope = before
        return x

    def norm(self, name: str, x: Ref) -> Ref:
        before, self.scope = self.scope, f"{self.scope}{name}/"
        axes = self.g.constant(np.array([2]), f"{self.scope}axes")
        more = {"eps": "1e-5", "eps_mode": "inside_sqrt", "normalize_variance": "true"}
        x = self.op("MVN", "normalize", x, axes, version="opset6", **more)
        x = self.op("Multiply", "scale", x, self.weight("gamma", 1, 1, WIDTH), auto_broadcast="numpy")
        x = self.op("Add", "shift", x, self.weight("beta", 1, 1, WIDTH), auto_broadcast="numpy")
        self.scope = before
        return x

    def block(self, number: int, x: Ref) -> Ref:
        self.scope = f"encoder/layer_{number}/attention/"
        q, k, v = (self.dense(name, x, WIDTH) for name in ("query", "key", "value"))
        flags = {"transpose_a": "false", "transpose_b": "true"}
        scores = self.op("MatMul", "scores", q, k, dims=(1, LENGTH, LENGTH), **flags)
        scores = self.op("SoftMax", "probabilities", scores, dims=(1, LENGTH, LENGTH), axis="2")
        mixed = self.op("MatMul", "context", scores, v, transpose_a="false", transpose_b="false")
        mixed = self.dense("output", mixed, WIDTH)
        x = self.norm("norm", self.op("Add", "residual", x, mixed, auto_broadcast="numpy"))
        self.scope = f"encoder/layer_{number}/feed_forward/"
        wide = self.op(
            "Gelu",
            "gelu",
            self.dense("inner", x, 2 * WIDTH),
            dims=(1, LENGTH, 2 * WIDTH),
            version="opset7",
            approximation_mode="ERF",
        )
        return self.norm(
            "norm", self.op("Add", "residual", x, self.dense("outer", wide, WIDTH), auto_broadcast="numpy")
        )


def large(folder: Path, blocks: int = 50, *, fault: bool = False) -> Path:
    """The files of the model. Returns the path of its XML.

    With `fault` a layer in the body of its loop does not fit, and every Gelu has an unknown attribute.
    """
    e = Encoder()
    x = e.g.parameter("tokens", "f32", [1, LENGTH, WIDTH])
    for number in range(blocks):
        x = e.block(number, x)
    e.scope = ""
    x = e.op("Tanh", HOSTILE, looped(e.g, x, np.zeros(5, np.float32) if fault else np.float32(0.5)))
    e.g.result(x, "encoded")
    save(e.g, folder, "encoder")
    path = folder / "model.xml"
    if fault:
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace('approximation_mode="ERF"', 'approximation_mode="ERF" odd="1"'), encoding="utf-8")
    return path


def looped(g: Graph, x: Ref, factor: np.float32 | np.ndarray) -> Ref:
    """Three iterations of a body that multiplies."""
    dims = x.dims
    body = g.body()
    value = body.parameter("state", "f32", dims)
    half = body.constant(factor, "half")
    halved = body.layer(
        "Multiply", [value, half], [("f32", dims)], name="halved", attributes={"auto_broadcast": "numpy"}
    )[0]
    end = body.result(halved, "next state")
    condition = body.result(body.constant(np.array(True)), "go on")
    inner = (
        f'<port_map><input external_port_id="2" internal_layer_id="{value.layer}"/>'
        f'<output external_port_id="-1" internal_layer_id="{condition}" purpose="execution_condition"/>'
        f'<output external_port_id="3" internal_layer_id="{end}"/></port_map>'
        f'<back_edges><edge from-layer="{end}" to-layer="{value.layer}"/></back_edges><body>{body.text()}</body>'
    )
    ports = [g.constant(np.array(3)), g.constant(np.array(True)), x]
    return g.layer("Loop", ports, [("f32", dims)], version="opset5", name="decay", names=["decayed"], inner=inner)[0]
