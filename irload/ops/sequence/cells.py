"""RNNCell, GRUCell and LSTMCell: one step of a recurrent network."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core import attribute as attr
from irload.core.shape import Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ShapeMismatch
from irload.ops.sequence.recurrent import GRU, LSTM, RNN, Recurrent, float_type, merged, of_rank


class Cell(Recurrent):
    """One step: X [batch, input], states [batch, hidden] → states."""

    def cell(
        self, x: TensorType, states: Sequence[TensorType], w: TensorType, r: TensorType, *biases: TensorType
    ) -> TensorType:
        """The type of each output. `biases` is (B,), or empty."""
        element = float_type(x, *states, w, r, *biases).element
        data = of_rank("X", x, 2)
        before = [of_rank("the initial state", s, 2) for s in states]
        weights, recurrence = of_rank("W", w, 2), of_rank("R", r, 2)
        batch = merged("batch_size", data[0], *(s[0] for s in before))
        merged("input_size", data[1], weights[1])
        blocks = [("W", weights[0], self.gates), ("R", recurrence[0], self.gates)]
        blocks += [("B", of_rank("B", b, 1)[0], self.bias_gates) for b in biases]
        return TensorType(element, Shape(batch, self.hidden([*(s[1] for s in before), recurrence[1]], blocks)))


class RNNCell(RNN, Cell, since=1, missing_in=(2,)):
    """One step of a plain recurrent network.

    Specification: RNNCell-3 (written as opset1). X [batch, input], H [batch, hidden], W [hidden, input],
    R [hidden, hidden], B [hidden] → [batch, hidden].
    """

    def infer(self, x: TensorType, h: TensorType, w: TensorType, r: TensorType, b: TensorType) -> TensorType:
        return self.cell(x, [h], w, r, b)

    def compute(self, x: Array, h: Array, w: Array, r: Array, b: Array) -> Array:
        return self.step(x @ w.T, (h,), r, b)[0]


class GRUCell(GRU, Cell, since=3):
    """One step of a gated recurrent network.

    Specification: GRUCell-3. X [batch, input], H [batch, hidden], W [3 · hidden, input], R [3 · hidden, hidden],
    B [3 · hidden], or [4 · hidden] with `linear_before_reset` → [batch, hidden].
    """

    def infer(self, x: TensorType, h: TensorType, w: TensorType, r: TensorType, b: TensorType) -> TensorType:
        return self.cell(x, [h], w, r, b)

    def compute(self, x: Array, h: Array, w: Array, r: Array, b: Array) -> Array:
        return self.step(x @ w.T, (h,), r, b)[0]


class LSTMCell4(LSTM, Cell, type="LSTMCell", since=4):
    """One step of a long short-term memory.

    Specification: LSTMCell-4. X [batch, input], H and C [batch, hidden], W [4 · hidden, input],
    R [4 · hidden, hidden], B [4 · hidden] → H and C.
    """

    def infer(
        self, x: TensorType, h: TensorType, c: TensorType, w: TensorType, r: TensorType, b: TensorType
    ) -> tuple[TensorType, TensorType]:
        state = self.cell(x, [h, c], w, r, b)
        return state, state

    def compute(self, x: Array, h: Array, c: Array, w: Array, r: Array, b: Array) -> tuple[Array, ...]:
        return self.step(x @ w.T, (h, c), r, b)


class LSTMCell1(LSTM, Cell, type="LSTMCell", since=1):
    """LSTMCell with an optional bias. Specification: LSTMCell-1.

    Like OpenVINO, irload reads the peepholes P [3 · hidden], `input_forget` and `weights_format`, which the
    specification does not mention, and ignores them: the gates are always f, i, c, o, and independent.
    """

    hidden_size = attr.integer(rule=attr.positive)
    input_forget = attr.boolean(default=False)
    weights_format = attr.choice("fico", "icof", "ifco", "ifoc", "iofc", default="ifco")

    def infer(
        self,
        x: TensorType,
        h: TensorType,
        c: TensorType,
        w: TensorType,
        r: TensorType,
        b: TensorType | None = None,
        p: TensorType | None = None,
    ) -> tuple[TensorType, TensorType]:
        state = self.cell(x, [h, c], w, r, *(() if b is None else (b,)))
        if p is not None:
            float_type(x, p)
            size = state.shape[1]
            rows = of_rank("P", p, 1)[0]
            if size.is_static and rows.meet(size * 3) is None:
                raise ShapeMismatch(f"P must have 3 · {size} rows, found {rows}")
        return state, state

    def agree(self, size: Dim) -> None:
        """Raise ShapeMismatch if `hidden_size` differs from the inputs: OpenVINO creates P of this size."""
        if not size.contains(self.hidden_size):
            raise ShapeMismatch(f"attribute hidden_size is {self.hidden_size}, the inputs have {size}")

    def compute(
        self, x: Array, h: Array, c: Array, w: Array, r: Array, b: Array | None = None, p: Array | None = None
    ) -> tuple[Array, ...]:
        return self.step(x @ w.T, (h, c), r, np.zeros(len(w), w.dtype) if b is None else b)
