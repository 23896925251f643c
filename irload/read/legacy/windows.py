"""The windows of legacy convolutions and poolings, in both spellings of their attributes."""

from __future__ import annotations

from collections.abc import Sequence

from irload.errors import AttributeInvalid, ShapeMismatch
from irload.read.legacy.layer import LegacyLayer, listed
from irload.record import record

Pads = tuple[Sequence[int], Sequence[int]]
_AXES = ("z", "y", "x")
_LISTS = {"kernel": "kernel-x", "strides": "stride-x", "dilations": "dilation-x", "pads_begin": "pad-x"}
"""The lists, and an attribute that overrides each by axis."""
_ENDS = {"x": "pad-r", "y": "pad-b", "z": "pad-back"}


@record()
class Windows:
    """Kernel, strides, dilations and pads by axis. `auto_pad` overrides the pads."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads_begin: tuple[int, ...]
    pads_end: tuple[int, ...]
    auto_pad: str

    @staticmethod
    def of(layer: LegacyLayer) -> Windows:
        """Read the lists `kernel`, `strides` …, or `kernel-y`, `kernel-x`, `stride-y` …."""
        rank = len(layer.input_dims()) - 2
        if not 1 <= rank <= 3:
            raise ShapeMismatch(f"has an input of rank {rank + 2}, expected 3 to 5")
        _require_values(layer, rank)
        begin = _by_axis(layer, rank, "pads_begin", "pad", 0)
        return Windows(
            _by_axis(layer, rank, "kernel", "kernel", None),
            _by_axis(layer, rank, "strides", "stride", 1),
            _by_axis(layer, rank, "dilations", "dilation", 1),
            begin,
            _ends(layer, rank, begin),
            layer.text("auto_pad", "explicit"),
        )

    def attributes(self, pads: Pads) -> dict[str, str]:
        """The attributes of a convolution."""
        begin, end = pads
        return {
            "strides": listed(self.strides),
            "dilations": listed(self.dilations),
            "pads_begin": listed(begin),
            "pads_end": listed(end),
            "auto_pad": "explicit",
        }

    def convolved_pads(self, data: Sequence[int], outputs: Sequence[int]) -> Pads:
        """The pads for which a convolution of this data has the declared outputs."""
        total = [
            (out - 1) * s + d * (k - 1) + 1 - n
            for n, out, k, s, d in zip(data, outputs, self.kernel, self.strides, self.dilations, strict=True)
        ]
        return self._pads(total, data, outputs)

    def transposed_pads(self, data: Sequence[int], outputs: Sequence[int]) -> Pads:
        """The pads for which a transposed convolution has the declared outputs; negative ends add outputs."""
        total = [
            (n - 1) * s + d * (k - 1) + 1 - out
            for n, out, k, s, d in zip(data, outputs, self.kernel, self.strides, self.dilations, strict=True)
        ]
        begin = self._begin(total)
        return begin, [t - b for t, b in zip(total, begin, strict=True)]

    def _begin(self, total: Sequence[int]) -> Sequence[int]:
        if self.auto_pad == "same_upper":
            return [max(t, 0) // 2 for t in total]
        if self.auto_pad == "same_lower":
            return [max(t, 0) - max(t, 0) // 2 for t in total]
        return [0] * len(total) if self.auto_pad == "valid" else self.pads_begin

    def _pads(self, total: Sequence[int], data: Sequence[int], outputs: Sequence[int]) -> Pads:
        """The stated pads; the end pads are changed if the result would not have the declared dims."""
        begin = self._begin(total)
        stated = self.pads_end if self.auto_pad == "explicit" else [0] * len(total)
        ends = [
            end if (n + b + end - d * (k - 1) - 1) // s + 1 == out else t - b
            for n, out, t, b, end, k, s, d in zip(
                data, outputs, total, begin, stated, self.kernel, self.strides, self.dilations, strict=True
            )
        ]
        return begin, ends


def _by_axis(layer: LegacyLayer, rank: int, name: str, short: str, default: int | None) -> tuple[int, ...]:
    """A list, or one attribute per axis."""
    if layer.has(name) and not layer.has(f"{short}-x"):
        return _list(layer, rank, name)
    return tuple(layer.integer(f"{short}-{axis}", default) for axis in _AXES[-rank:])


def _ends(layer: LegacyLayer, rank: int, begin: Sequence[int]) -> tuple[int, ...]:
    if layer.has("pads_end"):
        return _list(layer, rank, "pads_end")
    axes = _AXES[-rank:]
    return tuple(layer.integer(_ENDS[axis], start) for axis, start in zip(axes, begin, strict=True))


def _list(layer: LegacyLayer, rank: int, name: str) -> tuple[int, ...]:
    """Return one value per axis. A single value applies to all axes."""
    values = layer.integers(name)
    return values * rank if len(values) == 1 else values


def _require_values(layer: LegacyLayer, rank: int) -> None:
    """Raise AttributeInvalid, which names all lists that have neither a single value nor one per axis."""
    lists = [name for name, by_axis in _LISTS.items() if not layer.has(by_axis)] + ["pads_end"]
    counts = {name: len(layer.integers(name)) for name in lists if layer.has(name)}
    wrong = [f"{count} in {name}" for name, count in counts.items() if count not in (1, rank)]
    if wrong:
        raise AttributeInvalid(
            f"attributes must have {rank} values for an input of rank {rank + 2}, found {', '.join(wrong)}"
        )
