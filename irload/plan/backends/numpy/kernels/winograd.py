"""Winograd's F(4,3): 3×3 convolutions of stride 1 with a quarter of the multiplications, on channels-last data.

A tile of 6×6 inputs gives 4×4 outputs. The transforms are small matmuls over panels of tiles; the product over
channels is 36 matmuls. Rounding errors are about ten times larger than in the direct sum.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import Phases, Scratch
from irload.plan.backends.numpy.kernels.conv2d import Conv
from irload.plan.backends.numpy.kernels.packing import aligned
from irload.plan.backends.numpy.kernels.small_gemm import panel_width, products, transform
from irload.plan.backends.numpy.kernels.tiles import cut, cut_range
from irload.plan.backends.numpy.kernels.views import frozen, shaped, shaped_constant
from irload.plan.backends.numpy.kernels.windows import fill_band
from irload.plan.backends.numpy.measured import PANEL, PRODUCTS, TILES, TRANSFORMED, WINOGRAD_CHANNELS, WINOGRAD_MAP
from irload.plan.threads import ThreadCalls
from irload.system.blas import small_kernels

# fmt: off
INPUT = frozen(np.array([
    [4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0],
    [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1],
], np.float32))
WEIGHTS = np.array([
    [1/4, 0, 0], [-1/6, -1/6, -1/6], [-1/6, 1/6, -1/6], [1/24, 1/12, 1/6], [1/24, -1/12, 1/6], [0, 0, 1],
])
OUTPUT = frozen(np.array([
    [1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1],
], np.float32))
# fmt: on
def can(conv: Conv) -> bool:
    """True for 3×3 kernels without strides, dilations and groups."""
    return conv.kernel == (3, 3) and {*conv.strides, *conv.dilations} == {1} and conv.w.shape[0] == 1


def suits(conv: Conv) -> bool:
    """True if Winograd is faster: enough channels, and maps so large that few tiles cross the edge."""
    _, oh, ow, o = conv.out.shape
    return can(conv) and min(conv.x.shape[3], o) >= WINOGRAD_CHANNELS and min(oh, ow) >= WINOGRAD_MAP


def transform_weights(w: Array) -> Array:
    """Return [36, C, O] of the weights [1, O, C, 3, 3], in panels if BLAS reads them in place."""
    _, o, channels, *_ = w.shape
    both = np.kron(WEIGHTS, WEIGHTS).astype(np.float32)
    width = panel_width(channels, o) if small_kernels() else None
    panels = aligned((36, 1 if width is None else o // width, channels, width or o))
    out = panels.transpose(0, 2, 1, 3)
    for a, b in cut_range(0, channels, max(1, TRANSFORMED // o)):
        taps = shaped_constant(shaped_constant(w[0, :, a:b], o, b - a, 9).transpose(2, 1, 0), 9, -1)
        out[:, a:b] = shaped_constant(both @ taps, 36, b - a, -1, panels.shape[-1])
    return panels[:, 0] if width is None else panels


def winograd(conv: Conv, scratch: Scratch) -> Phases:
    """Return the calls of a convolution for which `suits` is true. Threads share rows of tiles, or the 36 matmuls."""
    n, oh, ow, o = conv.out.shape
    channels = conv.x.shape[3]
    weights = conv.w.packed("winograd", transform_weights)
    threads = scratch.share(conv.out.size * channels, PRODUCTS)
    tall, wide = -(-oh // 4), -(-ow // 4)
    rows = max(1, min(-(-tall // threads), max(PANEL // (36 * wide * (channels + o)), -(-TILES // wide))))
    epilogue = conv.epilogue.broadcast(conv.out.shape)
    if threads > 1 and n == 1 and tall * wide < TILES * threads:
        before, product, after = _panel(conv, 0, 0, tall, weights, _Buffers(scratch, tall, wide, channels, o))
        after += epilogue[0].calls(conv.out[0], scratch)
        return [[before], [products(*(x[a:b] for x in product)) for a, b in cut(36, threads)], [after]]
    parts: list[ThreadCalls] = []
    for start, stop in cut(tall, threads):
        part: ThreadCalls = []
        buffers = _Buffers(scratch, rows, wide, channels, o)
        for sample in range(n):
            for a, b in cut_range(start, stop, rows):
                before, product, after = _panel(conv, sample, a, b, weights, buffers)
                part += [*before, *products(*product), *after]
                done = slice(a * 4, min(b * 4, oh))
                part += epilogue[sample, done].calls(conv.out[sample, done], scratch)
        parts.append(part)
    return [parts]


class _Buffers:
    """Working memory of one thread, for panels of up to `rows` rows of tiles."""

    def __init__(self, scratch: Scratch, rows: int, wide: int, channels: int, o: int) -> None:
        count = rows * wide
        self.band = scratch.take((rows * 4 + 2, wide * 4 + 2, channels))
        self.gathered = scratch.take((36 * count * max(channels, o),))
        self.half = scratch.take((36 * count * channels,))
        self.product = scratch.take((36 * count * o,))
        self.result = scratch.take((rows * 4, wide * 4, o))


def _panel(
    conv: Conv, sample: int, a: int, b: int, weights: Array, buffers: _Buffers
) -> tuple[ThreadCalls, tuple[Array, Array, Array], ThreadCalls]:
    """For rows a..b of tiles, return the gather and transform calls, the operands of the matmuls, and the stores."""
    channels = conv.x.shape[3]
    _, oh, ow, o = conv.out.shape
    rows, wide = b - a, -(-ow // 4)
    count = rows * wide
    band = buffers.band[: rows * 4 + 2]
    part: ThreadCalls = []
    fill_band(band, conv.x[sample], a * 4 - conv.pads[0][0], conv.pads[1][0], part)
    st = band.strides
    windows = as_strided(
        band, (6, 6, rows, wide, channels), (st[0], st[1], st[0] * 4, st[1] * 4, st[2]), writeable=False
    )
    gathered = shaped(buffers.gathered[: 36 * count * channels], 6, 6, rows, wide, channels)
    half = shaped(buffers.half[: 36 * count * channels], 6, 6 * count * channels)
    part.append((np.copyto, (gathered, windows)))
    part.append(transform(INPUT, shaped(gathered, 6, -1), half))
    part.append(transform(INPUT, shaped(half, 6, 6, count * channels), shaped(gathered, 6, 6, count * channels)))
    product = shaped(buffers.product[: 36 * count * o], 36, count, o)
    back = shaped(buffers.gathered[: 24 * count * o], 4, 6 * count * o)
    after: ThreadCalls = [transform(OUTPUT, shaped(product, 6, -1), back)]
    final = shaped(buffers.product[: 16 * count * o], 4, 4, count * o)
    after.append(transform(OUTPUT, shaped(back, 4, 6, count * o), final))
    fits = ow == wide * 4 and b * 4 <= oh
    target = conv.out[sample, a * 4 : b * 4] if fits else buffers.result[: rows * 4]
    st = target.strides
    scattered = as_strided(target, (4, 4, rows, wide, o), (st[0], st[1], st[0] * 4, st[1] * 4, st[2]))
    after.append((np.copyto, (scattered, shaped(final, 4, 4, rows, wide, o))))
    if not fits:
        done = conv.out[sample, a * 4 : min(b * 4, oh)]
        after.append((np.copyto, (done, target[: len(done), :ow])))
    return part, (shaped(gathered, 36, count, channels), weights, product), after
