"""Random decoders with compressed weights and precision="auto", which quantizes the rows of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irload
from irload.core import element as et
from irload.core.tensor import Array
from tests.harness.tiers import tiered
from tests.traced.states import NUMPY, Decoder


class CompressedDecoder(Decoder):
    """A random decoder whose matmuls have weights of 8 or 4 bits, with a scale and a zero point per channel."""

    def linear(self, x: Any, width: int) -> Any:
        graph, rng = self.graph, self.rng
        element, largest = (et.u8, 255) if rng.integers(2) else (et.u4, 15)
        codes = graph.constant(rng.integers(0, largest + 1, (width, self.width)).astype(np.uint8), element)
        zero = graph.constant(np.full((width, 1), largest // 2, np.uint8), element)
        scale = graph.constant(((rng.random((width, 1)) + 0.5) / largest / self.width**0.5 * 4).astype(np.float32))
        codes, zero = (graph.op("Convert", a, destination_type=et.f32) for a in (codes, zero))
        weights = graph.op("Multiply", graph.op("Subtract", codes, zero, **NUMPY), scale, **NUMPY)
        return graph.op("MatMul", x, weights, transpose_a=False, transpose_b=True)


def decoders() -> list[int]:
    """The seeds of decoders whose rows consist of groups of 32, which are quantized."""
    numbers: list[int] = []
    seed = 0
    while len(numbers) < tiered(2, 40):
        rng = np.random.default_rng(seed)
        heads, size, shared = int(rng.integers(1, 4)), int(rng.choice([4, 8, 12])), int(rng.choice([1, 1, 2]))
        if heads * size * shared % 32 == 0:
            numbers.append(seed)
        seed += 1
    return numbers


@pytest.mark.parametrize("number", decoders())
def test_quantized_data(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prompts and tokens of several lengths, with traced plans: results differ by a few quanta."""
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    pytest.importorskip("llvmlite")
    decoder, rng = CompressedDecoder(number), np.random.default_rng(number)
    models = (
        irload.compile_model(decoder.model, 1 + number % 2, precision="auto"),
        irload.compile_model(decoder.model, 1, optimize=False),
    )
    requests, length = [model.create_infer_request() for model in models], 0
    moved: list[float] = []
    for rows in (1, 1, 2, 5, 1, 30, 1, 13, 1):
        length += rows
        inputs: list[Array] = [rng.standard_normal((2, rows, decoder.width)).astype(np.float32)]
        if decoder.has_mask:
            inputs.append(np.ones((2, length), np.int64))
        if decoder.has_beam:
            inputs.append(np.arange(2, dtype=np.int32))
        actual, expected = (request.infer(inputs)[0] for request in requests)
        moved.append(float(np.sqrt(np.mean((actual - expected) ** 2)) / expected.std()))
    assert 0 < np.median(moved) < 0.1
