"""Conversions among floats of 32 and 16 bits in plans: bit for bit as `compute` rounds, by either back end."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from tests.plan.graphs import Net

ENDS = [0.0, -0.0, 65504, 65519.99, 65520, -1e30, np.inf, -np.inf, np.nan, 6e-8, 2.9e-8, 1e-40, 6.1e-5, 3.39e38, 2049]


@pytest.mark.parametrize("jit", ["off", "auto"])
@pytest.mark.parametrize("to", ["f16", "bf16"])
def test_rounding(to: str, jit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRLOAD_JIT", jit)
    net = Net()
    short = net.op("Convert", net.input(203), destination_type=to)
    model = net.model(net.op("Convert", short, destination_type="f32"))
    data = np.random.default_rng(0).standard_normal(203).astype(np.float32)
    data[: len(ENDS)] = ENDS
    compiled = irload.compile_model(model, 1)
    actual, expected = (c([data])[0] for c in (compiled, irload.compile_model(model, 1, optimize=False)))
    np.testing.assert_array_equal(actual, expected)
    assert not np.array_equal(actual[20:], data[20:]), "values are rounded"
    assert "compute" not in {step.kernel for step in compiled.profile([data], 1)}


def test_integers_stored_in_a_wider_type_wrap() -> None:
    """i4 and i8 are both stored in 8 bits."""
    net = Net()
    bytes = net.op("Convert", net.input(4), destination_type="i8")
    model = net.model(net.op("Convert", net.op("Convert", bytes, destination_type="i4"), destination_type="f32"))
    np.testing.assert_array_equal(irload.compile_model(model, 1)([np.float32([7, 8, -9, 100])])[0], [7, -8, 7, 4])


@pytest.mark.parametrize("jit", ["off", "auto"])
def test_signed_and_unsigned_bytes_wrap(jit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRLOAD_JIT", jit)
    net = Net()
    signed = net.op("Convert", net.input(4), destination_type="i8")
    unsigned = net.op("Convert", signed, destination_type="u8")
    model = net.model(net.op("Convert", unsigned, destination_type="f32"), unsigned)
    for output in irload.compile_model(model, 1)([np.float32([-7.9, 300, 127, -129])]).values():
        np.testing.assert_array_equal(output, [249, 44, 127, 127])


@pytest.mark.parametrize("jit", ["off", "auto"])
@pytest.mark.parametrize("to", ["u8", "i8", "i32", "i64", "boolean"])
@pytest.mark.parametrize("reader", ["ReLU", "Power"])
def test_a_fused_conversion_drops_fractions(to: str, reader: str, jit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Power with a computed exponent has a kernel of NumPy only."""
    monkeypatch.setenv("IRLOAD_JIT", jit)
    net = Net()
    x = net.op("Convert", net.op("Convert", net.input(5), destination_type=to), destination_type="f32")
    model = net.model(net.op("ReLU", x) if reader == "ReLU" else net.op("Power", net.constant(np.float32([2])), x))
    data = [np.float32([0.5, 1.5, 2.25, 3.9, 7.5])]
    actual, expected = (irload.compile_model(model, 1, optimize=o)(data)[0] for o in (True, False))
    np.testing.assert_array_equal(actual, expected)


def test_nf4_is_computed() -> None:
    """The values of nf4 are stored as f32."""
    net = Net()
    codes = net.op("Convert", net.input(5), destination_type="nf4")
    model = net.model(net.op("Convert", codes, destination_type="f32"))
    output = irload.compile_model(model, 1)([np.float32([-2, -0.5, 0.01, 0.1, 3])])[0]
    np.testing.assert_allclose(output, [-1, -0.525073, 0, 0.0795803, 1], atol=1e-6)
