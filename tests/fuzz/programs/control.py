"""Bodies, states and sequences: Loop, If, TensorIterator, ReadValue, the recurrent layers."""

from __future__ import annotations

import numpy as np

from irload.core import element as et
from tests.fuzz.programs.build import Build, DoesNotFit, Value
from tests.fuzz.programs.graph import Inner


def inside(b: Build) -> Build:
    """A body under construction. Its values do not count as exact."""
    body = Build(b.rng, dyadic=b.dyadic, precise=b.precise, odd=False, dynamic=b.dynamic, element=b.element)
    body.graph.dynamic = b.dynamic
    return body


def worked(body: Build, x: Value) -> Value:
    """A few layers inside a body that preserve the shape."""
    for _ in range(body.number(1, 3)):
        roll = body.rng.random()
        if roll < 0.3 and x.rank >= 1:
            k = x.shape[-1]
            x = body.op("MatMul", x, body.weights(k, k, fan=2 * k), transpose_a=False, transpose_b=body.chance(0.5))
        elif roll < 0.5:
            x = body.add(x, body.weights(*x.shape[-1:]))
        elif roll < 0.7:
            x = body.op(body.pick(("ReLU", "Tanh", "Sigmoid", "Abs")), x)
        elif roll < 0.8:
            x = body.mul(x, x)
            x = body.op("Clamp", x, min=-2.0, max=2.0)
        elif roll < 0.9 and x.rank in (3, 4) and x.size < 4000:
            axes = x.rank - 2
            c = x.shape[1]
            data = {"strides": [1] * axes, "dilations": [1] * axes, "pads_begin": [1] * axes, "pads_end": [1] * axes}
            x = body.op("Convolution", x, body.weights(c, c, *(3,) * axes, fan=9 * c), auto_pad="explicit", **data)
        else:
            x = body.op("Softmax", x, version="opset8", axis=-1) if x.rank else x
    return body.op("Clamp", x, min=-4.0, max=4.0) if body.chance(0.5) else x


def loop(b: Build, x: Value) -> list[Value]:
    """A Loop that carries a value, and perhaps concatenates one per iteration or extends another one by it."""
    if x.rank < 1 or x.size > 20_000:
        raise DoesNotFit("size")
    trips = b.number(1, 4)
    body = inside(b)
    counter = body.parameter((), et.i64, kind="turn") if b.chance(0.5) else None
    carried = body.parameter(x.shape)
    invariant = b.parameter(x.shape[-1:]) if b.chance(0.4) else None
    parameter = body.parameter(x.shape[-1:]) if invariant is not None else None
    y = worked(body, carried)
    y = body.add(y, parameter) if parameter is not None else y
    if counter is not None and b.chance(0.6):
        y = body.add(y, body.op("Convert", counter, destination_type=b.element.name))
    more = body.const(np.array(True))
    takes: list[tuple[int, int, dict[str, object]]] = []
    at = 0
    if counter is not None:
        takes.append((-1, 0, {"purpose": "current_iteration"}))
        at = 1
    takes.append((2, at, {}))
    if invariant is not None:
        takes.append((3, at + 1, {}))
    gives: list[tuple[int, int, dict[str, object]]] = [(-1, 0, {"purpose": "execution_condition"}), (0, 1, {})]
    body.graph.results = [more.ref, y.ref]
    types = [(b.element, x.shape)]
    if b.chance(0.5):
        each = body.op("Unsqueeze", y, body.ints(0)) if b.chance(0.5) else y
        body.graph.results.append(each.ref)
        gives.append((1, 2, {"axis": 0, "start": 0, "stride": 1, "part_size": 1, "end": -1}))
        if each is y:
            if x.shape[0] != 1:
                gives.pop()
                body.graph.results.pop()
            else:
                types.append((b.element, (trips * x.shape[0], *x.shape[1:])))
        else:
            types.append((b.element, (trips, *x.shape)))
    edges, start = [(1, at)], [x] if invariant is None else [x, invariant]
    if invariant is None and b.chance(0.4):
        axis, last = b.number(0, x.rank - 1), len(body.graph.results)
        by = "ScatterUpdate" if counter is not None and x.shape[axis] >= trips and b.chance(0.5) else "Concat"
        grown = x.shape[axis] * (1 if by == "ScatterUpdate" else trips + 1)
        edges.append((last, at + 1))
        takes.append((3, at + 1, {}))
        gives.append((len(types), last, {}))
        start.append(x)
        body.graph.results.append(extended(body, y, counter, axis, by).ref)
        types.append((b.element, (*x.shape[:axis], grown, *x.shape[axis + 1 :])))
    inner = Inner(body.graph, "body", tuple(takes), tuple(gives), tuple(edges))
    limit = b.const(np.int64(trips)) if b.chance(0.5) else b.const(np.array([trips], np.int32))
    go = b.const(np.array(True))
    return b.nested("Loop", "opset5", [limit, go, *start], types, [inner])


def extended(body: Build, y: Value, counter: Value | None, axis: int, by: str) -> Value:
    """A carried value, extended by y, or with a slice of y at the number of the iteration."""
    shape = (*y.shape[:axis], -1, *y.shape[axis + 1 :])
    past = body.parameter(shape)
    if counter is None or by == "Concat":
        return body.uncertain("Concat", body.element, shape, past, y, axis=axis)
    at = body.op("Unsqueeze", counter, body.ints(0))
    part = body.op("Gather", y, body.ints(0), body.const(np.int64(axis)), version="opset8", batch_dims=0)
    along = body.const(np.int64(axis))
    return body.uncertain("ScatterUpdate", body.element, shape, past, at, part, along, version="opset3")


def iterator(b: Build, x: Value) -> list[Value]:
    """A TensorIterator along an axis of x, with a carried value, forwards or backwards."""
    if x.rank < 2 or x.size > 20_000:
        raise DoesNotFit("size")
    axis = b.number(1, x.rank - 1)
    n = x.shape[axis]
    if n > 12:
        raise DoesNotFit("long")
    shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    body = inside(b)
    step, before = body.parameter(shape), body.parameter(shape)
    after = worked(body, body.add(body.op("Tanh", step), before))
    body.graph.results = [after.ref]
    start = b.parameter(shape)
    back = b.chance(0.3)
    way = {
        "axis": axis,
        "start": -1 if back else 0,
        "end": 0 if back else -1,
        "stride": -1 if back else 1,
        "part_size": 1,
    }
    takes = ((0, 0, way), (1, 1, {}))
    gives = ((0, 0, way), (1, 0, {}))
    inner = Inner(body.graph, "body", takes, gives, ((0, 1),))
    return b.nested("TensorIterator", "opset1", [x, start], [(b.element, x.shape), (b.element, shape)], [inner])


def branch(b: Build, x: Value) -> list[Value]:
    """An If whose branches give the same shape."""
    if x.size > 20_000:
        raise DoesNotFit("size")
    bodies: list[Inner] = []
    for tag in ("then_body", "else_body"):
        body = inside(b)
        parameter = body.parameter(x.shape)
        result = worked(body, parameter) if b.chance(0.8) else parameter
        body.graph.results = [result.ref]
        bodies.append(Inner(body.graph, tag, ((1, 0, {}),), ((0, 0, {}),)))
    condition = _condition(b, x)
    return b.nested("If", "opset8", [condition, x], [(b.element, x.shape)], bodies)


def _condition(b: Build, x: Value) -> Value:
    """An input, a constant, or a comparison of a size."""
    if b.chance(0.5):
        return b.parameter((), et.boolean)
    if b.chance(0.5):
        return b.const(np.bool_(b.chance(0.5)), et.boolean)
    shape = b.op("ShapeOf", x, version="opset3", output_type="i64")
    rows = b.op("Gather", shape, b.const(np.int64(0)), b.const(np.int64(0)), version="opset8", batch_dims=0)
    return b.op(
        b.pick(("Equal", "NotEqual", "Less")), rows, b.pick((rows, b.const(np.int64(2)))), auto_broadcast="numpy"
    )


def state(b: Build, x: Value) -> Value:
    """A variable that is read before it is written: a running sum, or the input of the previous inference."""
    if x.size > 20_000 or b.dynamic:
        raise DoesNotFit("size")
    name = f"state{len(b.graph.layers)}"
    data = {"variable_id": name, "variable_type": b.element.name, "variable_shape": ",".join(map(str, x.shape))}
    start = b.weights(*x.shape) if b.chance(0.6) else b.parameter(x.shape)
    before = b.inexact(b.op("ReadValue", start, version="opset6", **data))
    if b.chance(0.6):
        y = b.op("Clamp", b.add(before, x), min=-4.0, max=4.0)
        b.sink("Assign", y, "opset6", variable_id=name)
        return y
    b.sink("Assign", x, "opset6", variable_id=name)
    return b.add(before, x) if b.chance(0.5) else before


def sequence(b: Build, x: Value) -> list[Value]:
    """An LSTM, GRU or RNN over a whole sequence."""
    if x.rank != 3 or x.shape[1] > 24 or b.dynamic:
        raise DoesNotFit("no sequence")
    n, s, e = x.shape
    hidden = b.pick((1, 3, 4, 8))
    direction = b.pick(("forward", "reverse", "bidirectional"))
    d = 2 if direction == "bidirectional" else 1
    kind = b.pick(("LSTMSequence", "GRUSequence", "RNNSequence"))
    gates = {"LSTMSequence": 4, "GRUSequence": 3, "RNNSequence": 1}[kind]
    linear = kind == "GRUSequence" and b.chance(0.5)
    lengths = _lengths(b, n, s)
    states = [
        b.parameter((n, d, hidden)) if b.chance(0.6) else b.weights(n, d, hidden) for _ in range(2 if gates == 4 else 1)
    ]
    weights = [b.weights(d, gates * hidden, e, fan=e), b.weights(d, gates * hidden, hidden, fan=hidden)]
    weights.append(b.weights(d, (gates + linear) * hidden, fan=4))
    data = {"hidden_size": hidden, "direction": direction}
    if linear:
        data["linear_before_reset"] = True
    if b.chance(0.15):
        data["clip"] = 2.0
    y, *last = b.many(kind, x, *states, lengths, *weights, version="opset5", **data)
    flat = b.reshape(b.transpose(y, 0, 2, 1, 3), n, s, d * hidden)
    return [flat, last[0]]


def _lengths(b: Build, count: int, longest: int) -> Value:
    """The lengths of sequences from 1 on: constant, or computed from an input."""
    if b.chance(0.3):
        index = b.parameter((count,), et.i64, kind=f"index{longest}")
        return b.add(b.op("FloorMod", index, b.ints(longest)), b.ints(1))
    return b.ints(*([longest] * count if b.chance(0.6) else [b.number(1, longest) for _ in range(count)]))


def cell(b: Build, x: Value) -> Value:
    """An LSTMCell, GRUCell or RNNCell."""
    if x.rank != 2:
        raise DoesNotFit("no row")
    n, e = x.shape
    hidden = b.pick((2, 4, 6))
    kind = b.pick(("LSTMCell", "GRUCell", "RNNCell"))
    gates = {"LSTMCell": 4, "GRUCell": 3, "RNNCell": 1}[kind]
    states = [b.parameter((n, hidden)) for _ in range(2 if gates == 4 else 1)]
    weights = [
        b.weights(gates * hidden, e, fan=e),
        b.weights(gates * hidden, hidden, fan=hidden),
        b.weights(gates * hidden, fan=4),
    ]
    version = {"LSTMCell": "opset4", "GRUCell": "opset3", "RNNCell": "opset1"}[kind]
    return b.many(kind, x, *states, *weights, version=version, hidden_size=hidden)[0]
