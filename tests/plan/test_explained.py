"""The complete text of a plan and of a profile, including every number."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.plan import profile
from irload.plan.backends.numpy.executable import _bytes
from irload.plan.backends.numpy.kernels import weight_streaming
from irload.plan.backends.numpy.reasons import REASONS
from irload.plan.executor import Executor
from irload.plan.ir.steps import AttentionStep, ConvStep, MatMulStep
from models import ir
from tests.plan.exact import plan_of
from tests.plan.graphs import Net
from tests.plan.programs import constant, random, value


@pytest.fixture
def small_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """A BLAS that reads small operands in place, regardless of the installed one."""
    monkeypatch.setattr(weight_streaming, "small_kernels", lambda: True)


def mixed() -> tuple[Net, ir.Ref, ir.Ref]:
    """A convolution with a bias, a view, a product, a softmax and an operation without a kernel."""
    net = Net()
    x = net.input(1, 3, 6, 8)
    doubled = net.op("Multiply", net.weights(1, 4, 1, 1), net.constant(np.float32(2)))
    y = net.op("ReLU", net.op("Add", net.conv(x, 3, 4, 2), doubled))
    flat = net.reshape(y, 4, 35)
    z = net.op("MatMul", flat, net.weights(35, 600), transpose_a=False, transpose_b=False)
    return net, net.op("SoftMax", z, axis=1), net.op("ReduceProd", flat, net.constant([0]), keep_dims=False)


EXPECTED = """\
fast plan for x1 f32[1,3,6,8], THREADS
layers: 8, of which 1 are folded into constants
steps: 4 with kernels, 1 views, which take no time
memory: values 19.8 KB, working memory 1.0 MB, constants 24 bytes, packed weights 84.3 KB

kernels:
     1 × im2col: windows are copied into rows in the cache, followed by a matmul
     1 × matmul by columns: few rows: threads share the columns, so each reads a part of the weights
     1 × rows: rows that stay in the cache
     1 × compute: no kernel supports the operation, so its reference `compute` runs

fused:
     1 × Convolution+Add+ReLU

steps:
     0  Convolution+Add+ReLU → [1×4×5×7] by im2col  (ReLU_7)
     1  MatMul → [4×600] by matmul by columns  (MatMul_11)
     2  SoftMax → [4×600] by rows  (SoftMax_12)
     3  ReduceProd → [35] by compute  (ReduceProd_14)"""


@pytest.mark.parametrize(("threads", "said"), [(1, "1 thread"), (2, "2 threads")])
@pytest.mark.numpy_kernels
@pytest.mark.usefixtures("small_kernels")
def test_the_words_of_a_plan(threads: int, said: str) -> None:
    net, *outputs = mixed()
    compiled = irload.compile_model(net.model(*outputs), threads)
    expected = EXPECTED.replace("THREADS", said)
    if threads > 1:
        expected = expected.replace(
            "im2col: windows are copied into rows in the cache, followed by a matmul",
            "im2col of a small map: small map: threads share the channels, so each reads a part of the weights",
        )
        expected = expected.replace("by im2col ", "by im2col of a small map ")
    assert compiled.explain() == expected


def test_the_words_of_a_plan_without_steps() -> None:
    net = Net()
    text = irload.compile_model(net.model(net.reshape(net.input(2, 3), 6)), 1).explain()
    assert "fused: nothing" in text
    assert text.endswith("steps:")


def test_the_words_of_constants() -> None:
    net = Net()
    y = net.op("Multiply", net.input(1000, 1000), net.weights(1000, 1000))
    first, second = net.ops("Split", y, net.constant(0), outputs=2, num_splits=2)
    text = irload.compile_model(net.model(net.op("Add", first, second)), 1).explain()
    assert "constants 4.0 MB, packed weights 0 bytes" in text


def test_the_words_of_a_plain_plan() -> None:
    net, *outputs = mixed()
    compiled = irload.compile_model(net.model(*outputs), 1, optimize=False)
    assert compiled.explain() == (
        "plain plan for x1 f32[1,3,6,8]: operations run one by one, because optimize=False was passed\n"
        "steps: 8; constants 84.2 KB\n\noperations:\n"
        "     1 × Multiply\n     1 × Convolution\n     1 × Add\n     1 × ReLU\n     1 × Reshape\n     1 × MatMul\n"
        "     1 × SoftMax\n     1 × ReduceProd"
    )


@pytest.mark.numpy_kernels
def test_every_kernel_has_a_reason() -> None:
    net, *outputs = mixed()
    plan = plan_of(net.model(*outputs), net.shapes)
    assert {b.name for b in plan.kernels} <= REASONS.keys()


def test_counted_flops() -> None:
    window = ConvStep(
        [value(1, 6, 9, 9), constant(random(2, 4, 3, 3, 2))], [value(1, 8, 7, 8)],
        strides=(1, 1), dilations=(1, 1), pads_begin=(0, 0), pads_end=(0, 0),
    )  # fmt: skip
    assert window.flops == 2 * (8 * 7 * 8) * (3 * 3 * 2)
    assert MatMulStep([value(5, 6), value(6, 7)], [value(5, 7)]).flops == 2 * 5 * 6 * 7
    assert MatMulStep([value(6, 5), value(6, 7)], [value(5, 7)], transpose_a=True).flops == 2 * 5 * 6 * 7
    q, k, v, out = value(2, 5, 4), value(2, 7, 4), value(2, 7, 3), value(2, 5, 3)
    assert AttentionStep([q, k, v], [out], scale=1.0).flops == 2 * 2 * (5 * 7 * 4 + 5 * 7 * 3)


@pytest.mark.numpy_kernels
@pytest.mark.usefixtures("small_kernels")
def test_a_profile_reports_work_and_bytes() -> None:
    net, *outputs = mixed()
    model = net.model(*outputs)
    entries = irload.compile_model(model, 1).profile(random(1, 3, 6, 8), 1)
    assert [(e.operation, e.layer, e.kernel, e.shape, e.flops) for e in entries] == [
        ("Convolution+Add+ReLU", "ReLU_7", "im2col", (1, 4, 5, 7), 2 * 140 * 12),
        ("MatMul", "MatMul_11", "matmul by columns", (4, 600), 2 * 4 * 35 * 600),
        ("SoftMax", "SoftMax_12", "rows", (4, 600), 0),
        ("ReduceProd", "ReduceProd_14", "compute", (35,), 0),
    ]
    assert [e.nbytes for e in entries] == [
        4 * (144 + 48 + 4 + 140), 4 * (140 + 35 * 600 + 2400), 4 * (2400 + 2400), 4 * (140 + 35) + 8,
    ]  # fmt: skip
    plain = irload.compile_model(model, 1, optimize=False).profile(random(1, 3, 6, 8), 1)
    assert [(e.operation, e.shape, e.flops) for e in plain][:2] == [
        ("Multiply", (1, 4, 1, 1), 0),
        ("Convolution", (1, 4, 5, 7), 0),
    ]


def test_a_rate_is_of_flops_or_bytes() -> None:
    entry = profile.StepTime("a", "b", "c", (1,), 0.5, 3_000_000_000, 8_000_000_000)
    assert entry.rate == "6 GFLOP/s"
    assert profile.StepTime("a", "b", "c", (1,), 0.5, 0, 8_000_000_000).rate == "16 GB/s"
    assert profile.StepTime("a", "b", "c", (1,), 0.0, 1, 1).rate == ""


def test_the_median_of_the_rounds_counts() -> None:
    net = Net()
    plan: Executor = plan_of(net.model(net.op("Tanh", net.input(3))), net.shapes)
    (entry,) = profile.medians([profile.of_plan(plan, [seconds]) for seconds in (3.0, 1.0, 2.0)])
    assert entry.seconds == 2.0


def test_memory_counts_once() -> None:
    whole, other = np.zeros(100, np.float32), np.zeros((3, 4), np.float32)
    assert _bytes([whole, whole[:5], whole[5:].reshape(5, 19), other.T]) == 400 + 48
    assert _bytes([]) == 0
    assert _bytes([np.frombuffer(b"abcdefgh", np.float32)]) == 8


@pytest.mark.parametrize(
    ("pairs", "line"),
    [
        (2, "1 kernels of numpy, then 1 kernels of llvm, then 1 kernels of numpy, then 1 kernels of llvm"),
        (5, "5 kernels of numpy in 5 segments, 5 kernels of llvm in 5 segments"),
    ],
)
def test_many_segments_are_counted(pairs: int, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations without a kernel and compiled ones, in turn."""
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    net = Net()
    x = net.input(4, 6)
    for _ in range(pairs):
        x = net.op("ReduceProd", x, net.constant([1]), keep_dims=True)
        x = net.op("Tanh", net.op("Add", x, net.weights(4, 6)))
    assert f"back ends: {line}\n" in irload.compile_model(net.model(x), 1).explain()
