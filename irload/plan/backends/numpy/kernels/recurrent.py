"""Recurrent networks: one matmul for the inputs of all time steps, then a dozen small calls per time step.

A sigmoid is computed as (1 + tanh(x/2))/2: the factor 1/2 is folded into the weights, where it is exact, and one tanh
call covers all gates.
"""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import Scratch, maximum
from irload.plan.backends.numpy.kernels.views import shaped
from irload.plan.threads import ThreadCalls
from irload.record import record

HALF = np.float32(0.5)
SIGMOIDS = {"lstm": (0, 1, 3), "gru": (0, 1), "gru_linear": (0, 1), "rnn": (), "rnn_relu": ()}
"""The gates with a sigmoid; the others use tanh or relu."""

ORDER = {"lstm": (0, 1, 3, 2), "gru": (0, 1, 2), "gru_linear": (0, 1, 2), "rnn": (0,), "rnn_relu": (0,)}
"""The order in which gates are computed: gates with a sigmoid are adjacent."""

GATES = {cell: len(order) for cell, order in ORDER.items()}


@record()
class Direction:
    """One direction: x [batch, length, input], states [batch, hidden], packed weights, y [batch, length, hidden].

    `w` is [input, gates · hidden], `r` [hidden, gates · hidden], `b` [gates · hidden]; `inner` is the bias within the
    reset gate of a linear GRU.
    """

    cell: str
    backwards: bool
    x: Array
    states: tuple[Array, ...]
    w: Array
    r: Array
    b: Array
    inner: Array
    y: Array
    last: tuple[Array, ...]


def packed(cell: str, weights: Array) -> Array:
    """Return the stacked weights of gates reordered, halved before a sigmoid, and transposed."""
    blocks = np.split(weights, GATES[cell])
    scaled = [blocks[g] * (HALF if g in SIGMOIDS[cell] else np.float32(1)) for g in ORDER[cell]]
    return np.ascontiguousarray(np.concatenate(scaled).T)


def recurrent(d: Direction, scratch: Scratch) -> ThreadCalls:
    """Return the calls of all time steps of one direction."""
    batch, length, _ = d.x.shape
    size, width = d.r.shape
    part: ThreadCalls = []
    gates = scratch.take((length, batch, width))
    x = d.x[0]
    if batch > 1:
        turned = scratch.take((length, batch, d.x.shape[2]))
        part.append((np.copyto, (turned, d.x.swapaxes(0, 1))))
        x = shaped(turned, length * batch, -1)
    part.append((np.matmul, (x, d.w, shaped(gates, length * batch, width))))
    part.append((np.add, (gates, d.b, gates)))
    product, spare = scratch.take((batch, width)), scratch.take((batch, size))
    cell = scratch.take((batch, size)) if d.cell == "lstm" else spare
    if d.cell == "lstm":
        part.append((np.copyto, (cell, d.states[1])))
    h = d.states[0]
    for t in reversed(range(length)) if d.backwards else range(length):
        out = d.y[:, t]
        part += STEPS[d.cell](d, gates[t], h, cell, product, spare, out)
        h = out
    part.append((np.copyto, (d.last[0], h)))
    if d.cell == "lstm":
        part.append((np.copyto, (d.last[1], cell)))
    return part


def _sigmoid(gates: Array) -> ThreadCalls:
    """Complete a sigmoid after the tanh of the halved argument."""
    return [(np.multiply, (gates, HALF, gates)), (np.add, (gates, HALF, gates))]


def _lstm(d: Direction, gates: Array, h: Array, cell: Array, product: Array, spare: Array, out: Array) -> ThreadCalls:
    size = h.shape[1]
    f, i, o, c = (gates[:, k * size : (k + 1) * size] for k in range(4))
    return [
        (np.matmul, (h, d.r, product)),
        (np.add, (gates, product, gates)),
        (np.tanh, (gates, gates)),
        *_sigmoid(gates[:, : 3 * size]),
        (np.multiply, (f, cell, cell)),
        (np.multiply, (i, c, c)),
        (np.add, (cell, c, cell)),
        (np.tanh, (cell, spare)),
        (np.multiply, (o, spare, out)),
    ]


def _gru(d: Direction, gates: Array, h: Array, cell: Array, product: Array, spare: Array, out: Array) -> ThreadCalls:
    size = h.shape[1]
    both, (z, r, n) = gates[:, : 2 * size], (gates[:, k * size : (k + 1) * size] for k in range(3))
    inner = product[:, 2 * size :]
    if d.cell == "gru_linear":
        calls: ThreadCalls = [
            (np.matmul, (h, d.r, product)),
            (np.add, (both, product[:, : 2 * size], both)),
            (np.tanh, (both, both)),
            *_sigmoid(both),
            (np.add, (inner, d.inner, inner)),
            (np.multiply, (inner, r, inner)),
        ]
    else:
        calls = [
            (np.matmul, (h, d.r[:, : 2 * size], product[:, : 2 * size])),
            (np.add, (both, product[:, : 2 * size], both)),
            (np.tanh, (both, both)),
            *_sigmoid(both),
            (np.multiply, (r, h, spare)),
            (np.matmul, (spare, d.r[:, 2 * size :], inner)),
        ]
    return [
        *calls,
        (np.add, (n, inner, n)),
        (np.tanh, (n, n)),
        (np.subtract, (h, n, spare)),
        (np.multiply, (spare, z, spare)),
        (np.add, (n, spare, out)),
    ]


def _rnn(d: Direction, gates: Array, h: Array, cell: Array, product: Array, spare: Array, out: Array) -> ThreadCalls:
    sums: ThreadCalls = [(np.matmul, (h, d.r, product)), (np.add, (gates, product, gates))]
    return [*sums, (np.tanh, (gates, out)) if d.cell == "rnn" else (maximum, (gates, np.float32(0), out))]


STEPS = {"lstm": _lstm, "gru": _gru, "gru_linear": _gru, "rnn": _rnn, "rnn_relu": _rnn}
