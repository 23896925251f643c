"""RNNSequence, GRUSequence and LSTMSequence: recurrent networks over whole sequences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from irload.core import attribute as attr
from irload.core.element import dynamic
from irload.core.shape import Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError, TypeMismatch
from irload.ops.sequence.recurrent import GRU, LSTM, RNN, Recurrent, State, float_type, merged, of_rank


class Unrolled(Recurrent):
    """All steps of one or two directions.

    X [batch, length, input], states [batch, directions, hidden], sequence_lengths [batch], W [directions, …, input], R
    [directions, …, hidden], B [directions, …] → Y [batch, directions, length, hidden] and the last states. Beyond the
    end of a sequence shorter than `length` Y is zero; the last state is the state at its end. The reverse direction
    starts from that end, and its Y has the order of X.
    """

    direction = attr.choice("forward", "reverse", "bidirectional", default="forward", spec_required=True)

    def unrolled(
        self,
        x: TensorType,
        states: Sequence[TensorType],
        lengths: TensorType,
        w: TensorType,
        r: TensorType,
        b: TensorType,
    ) -> tuple[TensorType, ...]:
        """The types of Y and of the last states."""
        element = float_type(x, *states, w, r, b).element
        if not (lengths.element.is_integer or lengths.element is dynamic):
            raise TypeMismatch(f"sequence_lengths must be of an integer type, found {lengths.element}")
        data = of_rank("X", x, 3)
        before = [of_rank("the initial state", s, 3) for s in states]
        weights, recurrence, bias = of_rank("W", w, 3), of_rank("R", r, 3), of_rank("B", b, 2)
        batch = merged("batch_size", data[0], *(s[0] for s in before), of_rank("sequence_lengths", lengths, 1)[0])
        merged("input_size", data[2], weights[2])
        count = 2 if self.direction == "bidirectional" else 1
        directions = merged(
            "num_directions", Dim(count, count), *(s[1] for s in before), weights[0], recurrence[0], bias[0]
        )
        size = self.hidden(
            [*(s[2] for s in before), recurrence[2]],
            [("W", weights[1], self.gates), ("R", recurrence[1], self.gates), ("B", bias[1], self.bias_gates)],
        )
        state = TensorType(element, Shape(batch, directions, size))
        return TensorType(element, Shape(batch, directions, data[1], size)), *(state for _ in states)

    def run(self, x: Array, states: State, lengths: Array, w: Array, r: Array, b: Array) -> tuple[Array, ...]:
        """y and the last states of all directions."""
        require_lengths(lengths, x.shape[1])
        backwards = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[self.direction]
        passes = [
            self._pass(x, tuple(s[:, d] for s in states), lengths, w[d], r[d], b[d], backwards=back)
            for d, back in enumerate(backwards)
        ]
        return tuple(np.stack(parts, 1) for parts in zip(*passes, strict=True))

    def _pass(
        self, x: Array, state: State, lengths: Array, w: Array, r: Array, b: Array, *, backwards: bool
    ) -> tuple[Array, ...]:
        """y [batch, length, hidden] and the last states of one direction."""
        order = _reversed(x.shape[1], lengths) if backwards else None
        data = x if order is None else np.take_along_axis(x, order[..., None], 1)
        projected = data @ w.T
        y = np.zeros((*x.shape[:2], state[0].shape[-1]), x.dtype)
        empty = (lengths == 0)[:, None] & (x.shape[1] > 0)
        state = tuple(np.where(empty, 0, s).astype(s.dtype, copy=False) for s in state)
        for t in range(x.shape[1]):
            running = (t < lengths)[:, None]
            state = tuple(
                np.where(running, new, old)
                for new, old in zip(self.step(projected[:, t], state, r, b), state, strict=True)
            )
            y[:, t] = np.where(running, state[0], 0)
        return y if order is None else np.take_along_axis(y, order[..., None], 1), *state


def require_lengths(lengths: Array, longest: int) -> None:
    """Raise ExecutionError unless all lengths of sequences are in 0..longest."""
    if np.any(lengths < 0) or np.any(lengths > longest):
        raise ExecutionError(f"sequence_lengths must be in 0..{longest}, found {lengths.tolist()[:8]}")


def _reversed(length: int, lengths: Array) -> Array:
    """For each position, its index in the reversed sequence; positions beyond the end are unchanged."""
    at = np.arange(length)[None]
    ends = lengths[:, None].astype(np.int64)
    return np.where(at < ends, ends - 1 - at, at)


class RNNSequence(RNN, Unrolled, since=5):
    """A plain recurrent network over sequences.

    Specification: RNNSequence-5. W [directions, hidden, input], R [directions, hidden, hidden], B [directions, hidden].
    """

    def infer(
        self, x: TensorType, h: TensorType, sequence_lengths: TensorType, w: TensorType, r: TensorType, b: TensorType
    ) -> tuple[TensorType, ...]:
        return self.unrolled(x, [h], sequence_lengths, w, r, b)

    def compute(self, x: Array, h: Array, sequence_lengths: Array, w: Array, r: Array, b: Array) -> tuple[Array, ...]:
        return self.run(x, (h,), sequence_lengths, w, r, b)


class GRUSequence(GRU, Unrolled, since=5):
    """A gated recurrent network over sequences.

    Specification: GRUSequence-5. W and R have 3 · hidden rows per direction, B 3 · hidden values, or 4 · hidden with
    `linear_before_reset`.
    """

    def infer(
        self, x: TensorType, h: TensorType, sequence_lengths: TensorType, w: TensorType, r: TensorType, b: TensorType
    ) -> tuple[TensorType, ...]:
        return self.unrolled(x, [h], sequence_lengths, w, r, b)

    def compute(self, x: Array, h: Array, sequence_lengths: Array, w: Array, r: Array, b: Array) -> tuple[Array, ...]:
        return self.run(x, (h,), sequence_lengths, w, r, b)


class LSTMSequence(LSTM, Unrolled, since=5):
    """A long short-term memory over sequences.

    Specification: LSTMSequence-5. W and R have 4 · hidden rows per direction, B 4 · hidden values. Outputs Y, H and C.
    """

    def infer(
        self,
        x: TensorType,
        h: TensorType,
        c: TensorType,
        sequence_lengths: TensorType,
        w: TensorType,
        r: TensorType,
        b: TensorType,
    ) -> tuple[TensorType, ...]:
        return self.unrolled(x, [h, c], sequence_lengths, w, r, b)

    def compute(
        self, x: Array, h: Array, c: Array, sequence_lengths: Array, w: Array, r: Array, b: Array
    ) -> tuple[Array, ...]:
        return self.run(x, (h, c), sequence_lengths, w, r, b)
