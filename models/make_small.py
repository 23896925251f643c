"""Creates three small models with dynamic shapes, state, or a loop.

python models/make_small.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ir import Graph, save, save_example

HERE = Path(__file__).parent


def dynamic() -> None:
    """Flattens all axes except the first, of any size: ShapeOf → Gather → Concat → Reshape, then a softmax."""
    g = Graph()
    data = g.parameter("data", "f32", ["1..8", "?", 4])
    (shape,) = g.layer("ShapeOf", [data], [("i64", [3])], version="opset3", attributes={"output_type": "i64"})
    (batch,) = g.layer(
        "Gather",
        [shape, g.constant([0]), g.constant(0)],
        [("i64", [1])],
        version="opset8",
        attributes={"batch_dims": 0},
    )
    (target,) = g.layer("Concat", [batch, g.constant([-1])], [("i64", [2])], attributes={"axis": 0})
    (flat,) = g.layer("Reshape", [data, target], [("f32", ["?", "?"])], attributes={"special_zero": "false"})
    (out,) = g.layer(
        "Softmax",
        [flat],
        [("f32", ["?", "?"])],
        version="opset8",
        name="softmax",
        names=["shares"],
        attributes={"axis": -1},
    )
    g.result(out)
    save(g, HERE / "dynamic", "dynamic")
    x = np.log(np.arange(1, 25, dtype=np.float32)).reshape(2, 3, 4)
    y = np.exp(x.reshape(2, 12).astype(np.float64))
    save_example(HERE / "dynamic", [x], [(y / y.sum(1, keepdims=True)).astype(np.float32)])


def state() -> None:
    """A running sum: each inference adds its input to a variable, initially zero, and returns it."""
    g = Graph()
    step = g.parameter("step", "f32", [1, 3])
    variable = {"variable_id": "total"}
    zeros = g.constant(np.zeros((1, 3), np.float32))
    (before,) = g.layer(
        "ReadValue",
        [zeros],
        [("f32", [1, 3])],
        version="opset6",
        name="read",
        attributes={**variable, "variable_type": "f32", "variable_shape": "1,3"},
    )
    (total,) = g.layer(
        "Add", [before, step], [("f32", [1, 3])], name="add", names=["total"], attributes={"auto_broadcast": "numpy"}
    )
    g.layer("Assign", [total], [("f32", [1, 3])], version="opset6", name="assign", attributes=variable)
    g.result(total)
    save(g, HERE / "state", "state")
    x = np.array([[1, 2, 3]], np.float32)
    save_example(HERE / "state", [x], [x])


def loop() -> None:
    """Doubles a vector `count` times, and returns the last value and every intermediate one."""
    g = Graph()
    count = g.parameter("count", "i64", [])
    start = g.parameter("start", "f32", [1, 2])
    go_on = g.constant(np.array(True))
    body = g.body()
    value = body.parameter("value", "f32", [1, 2])
    doubled = body.layer(
        "Add", [value, value], [("f32", [1, 2])], name="doubled", attributes={"auto_broadcast": "numpy"}
    )[0]
    value_out = body.result(doubled, "value_out")
    condition_out = body.result(body.constant(np.array(True)), "condition_out")
    inner = f"""\t\t\t<port_map>
\t\t\t\t<input external_port_id="2" internal_layer_id="{value.layer}"/>
\t\t\t\t<output external_port_id="-1" internal_layer_id="{condition_out}" purpose="execution_condition"/>
\t\t\t\t<output external_port_id="3" internal_layer_id="{value_out}"/>
\t\t\t\t<output external_port_id="4" internal_layer_id="{value_out}" axis="0"/>
\t\t\t</port_map>
\t\t\t<back_edges>
\t\t\t\t<edge from-layer="{value_out}" to-layer="{value.layer}"/>
\t\t\t</back_edges>
\t\t\t<body>
{body.text()}\t\t\t</body>
"""
    last, every = g.layer(
        "Loop",
        [count, go_on, start],
        [("f32", [1, 2]), ("f32", ["?", 2])],
        version="opset5",
        name="doubling",
        names=["last", "every"],
        inner=inner,
    )
    g.result(last)
    g.result(every)
    save(g, HERE / "loop", "loop")
    x = np.array([[1, 3]], np.float32)
    every_value = np.array([[2, 6], [4, 12], [8, 24], [16, 48]], np.float32)
    save_example(HERE / "loop", [np.int64(4), x], [every_value[-1:], every_value])


if __name__ == "__main__":
    for make in (dynamic, state, loop):
        make()
