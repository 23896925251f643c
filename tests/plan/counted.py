"""What each kernel does, counted: calls of every thread, phase by phase, and the elements of the largest array.

With blocks so small that every kernel cuts its work, and for both kinds of BLAS. So that a kernel that does more, or
holds more at once than it did, is noticed without a clock. `python -m tests.plan.counted` writes the table anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels import packing, winograd
from irload.plan.backends.numpy.kernels import weight_streaming as streamed
from irload.plan.backends.numpy.kernels.calls import Scratch
from irload.plan.backends.numpy.tuning import Phases
from irload.plan.executor import Executor
from models import ir
from tests.fuzz.programs.thresholds import lowered
from tests.plan.exact import Choice, Exact, plan_of, tables
from tests.plan.graphs import PAIRS

FILE = Path(__file__).with_name("counted.json")
PAD = {"pads_begin": "1,1", "pads_end": "1,1"}


def bias(net: Exact, y: ir.Ref, channels: int) -> ir.Ref:
    """A bias and a ReLU, which become an epilogue."""
    return net.op("ReLU", net.op("Add", y, net.weights(1, channels, 1, 1)))


def matmul(net: Exact, *shape: int) -> ir.Ref:
    """A MatMul by 16 rows of 24 columns, with a bias."""
    y = net.op("MatMul", net.input(*shape, 16), net.weights(16, 24), transpose_a=False, transpose_b=False)
    return net.op("ReLU", net.op("Add", y, net.weights(24)))


def interpolated(net: Exact, mode: str) -> ir.Ref:
    """A resampling of the rows."""
    return net.op(
        "Interpolate", net.input(1, 2, 9, 5), net.constant([21]), net.constant([2]), version="opset11", mode=mode,
        shape_calculation_mode="sizes", coordinate_transformation_mode="asymmetric", nearest_mode="floor",
        antialias=False, pads_begin="0,0,0,0", pads_end="0,0,0,0", cube_coeff=-0.75,
    )  # fmt: skip


def sequence(net: Exact, batch: int) -> ir.Ref:
    """A GRU in both directions."""
    x, h, w, r, b = (
        net.input(batch, 3, 5),
        net.input(batch, 2, 4),
        *(net.weights(2, 12, n) for n in (5, 4)),
        net.weights(2, 12),
    )
    return net.op("GRUSequence", x, h, net.constant([3] * batch), w, r, b, version="opset5", outputs=2,
                  hidden_size=4, direction="bidirectional")  # fmt: skip


GRAPHS: dict[str, Callable[[Exact], ir.Ref]] = {
    "convolution": lambda net: bias(net, net.conv(net.input(1, 6, 9, 10), 6, 8, 3, **PAD), 8),
    "convolution of two": lambda net: bias(net, net.conv(net.input(2, 6, 9, 10), 6, 8, 3, **PAD), 8),
    "convolution of a large map": lambda net: bias(net, net.conv(net.input(1, 3, 30, 31), 3, 8, 3, strides="2,2"), 8),
    "convolution in groups": lambda net: bias(
        net,
        net.op("GroupConvolution", net.input(1, 6, 9, 10), net.weights(2, 4, 3, 3, 3), **{**PAIRS, **PAD}),
        8,
    ),
    "pointwise": lambda net: bias(net, net.conv(net.input(1, 16, 9, 10), 16, 24), 24),
    "pointwise of a large map": lambda net: bias(net, net.conv(net.input(1, 4, 20, 21), 4, 8, strides="1,2"), 8),
    "pointwise into slices": lambda net: net.concat(
        *(net.op("ReLU", net.conv(net.input(1, 4, 20, 21), 4, n)) for n in (8, 4)), axis=1
    ),
    "depthwise": lambda net: bias(net, net.depthwise(net.input(2, 4, 9, 10), 4, 3, **PAD), 4),
    "depthwise of many channels": lambda net: bias(
        net, net.depthwise(net.input(1, 24, 9, 10), 24, 3, strides="2,2"), 24
    ),
    "depthwise in a frame": lambda net: bias(
        net, net.depthwise(net.op("ReLU", net.conv(net.input(1, 4, 20, 21), 4, 4)), 4, 3, **PAD), 4
    ),
    "volumes": lambda net: net.op(
        "Convolution", net.input(2, 3, 6, 7, 8), net.weights(4, 3, 2, 2, 2), strides="1,1,1", dilations="1,1,1",
        pads_begin="1,0,0", pads_end="0,0,1",
    ),
    "transposed": lambda net: net.op(
        "ConvolutionBackpropData", net.input(2, 3, 5, 6), net.weights(3, 8, 3, 3), **{**PAIRS, "strides": "2,2"}
    ),
    "transposed, large": lambda net: net.op(
        "ConvolutionBackpropData", net.input(1, 3, 31, 32), net.weights(3, 8, 2, 2), **{**PAIRS, "strides": "2,2"}
    ),
    "transposed in groups": lambda net: net.op(
        "GroupConvolutionBackpropData", net.op("ReLU", net.input(1, 6, 5, 6)), net.weights(3, 2, 2, 3, 3), **PAIRS
    ),
    "pooling": lambda net: net.op("MaxPool", net.input(1, 4, 9, 10), kernel="3,2", strides="2,2", **PAD),
    "pooling of a large map": lambda net: net.op(
        "AvgPool", net.input(1, 5, 64, 64), kernel="3,2", strides="1,1", **PAD, **{"exclude-pad": True}
    ),
    "rows by a matrix": lambda net: matmul(net, 2, 50),
    "few rows by a matrix": lambda net: matmul(net, 5),
    "many rows by a matrix": lambda net: matmul(net, 200),
    "stacks": lambda net: net.op(
        "Add",
        net.op("MatMul", net.input(3, 2, 5, 6), net.input(3, 2, 6, 7), transpose_a=False, transpose_b=False),
        net.weights(7),
    ),
    "elementwise": lambda net: net.op("Add", net.op("Multiply", net.input(20, 30), net.weights(30)), net.input(20, 1)),
    "elementwise of long rows": lambda net: net.op("Tanh", net.op("Add", net.input(3, 500), net.input(1, 500))),
    "elementwise, transposed": lambda net: net.op("Add", net.input(12, 30), net.transpose(net.input(30, 12), 1, 0)),
    "softmax": lambda net: net.op("SoftMax", net.input(30, 9), axis=1),
    "softmax, moved": lambda net: net.op("SoftMax", net.op("Abs", net.input(9, 30)), axis=0),
    "normalisation": lambda net: net.op(
        "Multiply",
        net.op("MVN", net.input(30, 9), net.constant([1]), version="opset6", eps=1e-5, eps_mode="inside_sqrt",
               normalize_variance=True),
        net.weights(9),
    ),
    "sums": lambda net: net.op("ReduceSum", net.input(30, 9), net.constant([1]), keep_dims=True),
    "sums of the middle": lambda net: net.op("ReduceSum", net.input(30, 9, 4), net.constant([1]), keep_dims=True),
    "maxima": lambda net: net.op("ReduceMax", net.input(30, 9), net.constant([1]), keep_dims=True),
    "groups": lambda net: net.op(
        "GroupNormalization", net.input(3, 6, 5, 7), net.weights(6), net.weights(6), version="opset12", num_groups=2,
        epsilon=1e-3,
    ),
    "attention": lambda net: net.op(
        "ScaledDotProductAttention", *(net.input(2, 6, 7, 4) for _ in range(3)), net.input(7, 7), version="opset13",
        causal=False,
    ),
    "banded": lambda net: interpolated(net, "linear_onnx"),
    "by index": lambda net: interpolated(net, "nearest"),
    "copies": lambda net: net.reshape(net.transpose(net.op("Abs", net.input(130, 140)), 1, 0), -1),
    "recurrent": lambda net: sequence(net, 1),
    "recurrent, two samples": lambda net: sequence(net, 2),
}  # fmt: skip


def counted(build: Callable[[Exact], ir.Ref]) -> dict[str, list[str]]:
    """The rows of a graph, for each number of threads, kind of BLAS and choice of kernels."""
    net = Exact()
    model = net.model(build(net))
    found: dict[str, list[str]] = {}
    for small in (True, False):
        for threads in (1, 2, 3):
            k, most = 0, 1
            while k < most:
                with ExitStack() as stack:
                    stack.enter_context(lowered())
                    for module in (packing, streamed, winograd):
                        stack.enter_context(patch.object(module, "small_kernels", lambda small=small: small))
                    taken = stack.enter_context(_scratch_taken())
                    choice = Choice(k)
                    plan = plan_of(model, net.shapes, threads, choice)
                key = f"{threads} threads, {'in place' if small else 'copied'}, choice {k}"
                found[key] = [*rows(plan), f"scratch {sum(taken)}, arena {plan.memory.nbytes}"]
                k, most = k + 1, choice.most
    return found


@contextmanager
def _scratch_taken() -> Generator[list[int]]:
    """The bytes of every piece of working memory that kernels take."""
    taken: list[int] = []
    take = Scratch.take

    def noted(self: Scratch, shape: Sequence[int], dtype: Any = np.float32) -> Array:
        array = take(self, shape, dtype)
        taken.append(array.nbytes)
        return array

    with patch.object(Scratch, "take", noted):
        yield taken


def rows(plan: Executor) -> list[str]:
    """Each step: calls of each part, phase by phase, and the elements of the largest array that one of them takes."""
    found: list[str] = []
    for name, phases in tables(plan):
        calls = " then ".join("+".join(str(len(part)) for part in phase) for phase in phases)
        found.append(f"{name}: {calls} calls, at most {_largest(phases)} elements")
    return found


def _largest(phases: Phases) -> int:
    arguments = (a for phase in phases for part in phase for _, given in part for a in given)
    return max((a.size for a in arguments if isinstance(a, np.ndarray)), default=0)


if __name__ == "__main__":
    table = {name: counted(build) for name, build in GRAPHS.items()}
    FILE.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
