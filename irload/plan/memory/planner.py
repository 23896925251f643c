"""Storage: which values share a buffer, and where each buffer lies in the arena."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from irload.core.tensor import Array
from irload.plan.backends.numpy.kernels.calls import aligned_bytes
from irload.plan.backends.numpy.kernels.weight_streaming import SMALL_M
from irload.plan.ir.program import Program, Step, Value, walk_values
from irload.plan.ir.steps import Attention, Concat, Conv, Elementwise, Normalize, Reshape, Softmax, Transpose, ViewOp
from irload.plan.memory.arena import Lifetime, place
from irload.safety import DEFAULT, Limits

Transform = Callable[[Array], Array]


@dataclass(slots=True)
class _Alias:
    """A value that is a view of another."""

    source: Value
    transform: Transform


class Storage:
    """The memory of one bound program: `view(value)` is the array of any value, in its logical shape."""

    def __init__(self, program: Program, limits: Limits = DEFAULT) -> None:
        self._limits = limits
        self._aliases: dict[Value, _Alias] = {}
        self._views: dict[Value, Array] = {}
        self._nearer: dict[Value, Value] = {}
        """Shortcuts on the way to a root."""
        self._framed: dict[Value, Array] = {}
        self._frames: dict[Value, tuple[int, int, int, int]] = {}
        """The rows and columns around values that are made in the middle of a frame."""
        self.joined: set[tuple[Concat, int]] = set()
        """(join, position) of the inputs that are written straight into the result."""
        self._offsets: dict[Value, int] = {}
        self._uses = _uses(program)
        self._seen: set[Value] = set()
        """What looks at another value …"""
        self._filled: set[Value] = set()
        """… and what attention has written already, when the look comes that gives it."""
        self._find_views(program)
        self._find_filled(program)
        self._find_joins(program)
        self._find_in_place(program)
        self._find_framed(program)
        self._allocate(program)

    @property
    def nbytes(self) -> int:
        """The size of the arena."""
        return self.arena.size

    def view(self, value: Value) -> Array:
        """The array of a value, logical shape."""
        constant = value.constant
        return self._views[value] if constant is None else _sealed(constant)

    def source(self, value: Value) -> Value | None:
        """The value that this one is a view of, None for those with a buffer of their own."""
        alias = self._aliases.get(value)
        return None if alias is None else alias.source

    def buffer(self, root: Value) -> Array:
        """The bytes of the buffer that holds a root, and its frame if it has one."""
        at = self._offsets[root]
        return self.arena[at : at + self._size(root)]

    def frame(self, value: Value) -> Array | None:
        """[N,H,W,C] with the padding that its only taker wants around it; None for values without."""
        return self._framed.get(value)

    def is_view(self, value: Value) -> bool:
        """True for what a ViewOp gives without a copy. Others may lie in another one's buffer, and are computed."""
        return value in self._seen or value in self._filled

    def root(self, value: Value) -> Value:
        """The value whose buffer holds this one."""
        passed: list[Value] = []
        at = self._nearer.get(value, value)
        while at in self._aliases:
            passed.append(at)
            at = self._nearer.get(self._aliases[at].source, self._aliases[at].source)
        self._nearer.update(dict.fromkeys((value, *passed), at))  # chains of views may be long
        return at

    # -- who shares with whom ----------------------------------------------------------------------------------------

    def _find_views(self, program: Program) -> None:
        """What only looks and needs no copy for it. Decided on arrays whose memory is never touched."""
        samples: dict[Value, Array] = {}

        def sample(value: Value) -> Array:
            if value not in samples:
                alias = self._aliases.get(value)
                samples[value] = blank(value) if alias is None else alias.transform(sample(alias.source))
            return samples[value]

        for step in program.steps:
            if not isinstance(step, ViewOp) or step.inputs[0].is_constant:
                continue
            try:
                step.look(sample(step.inputs[0]))
            except ValueError:
                continue
            self._aliases[step.output] = _Alias(step.inputs[0], step.look)
            self._seen.add(step.output)

    def _find_filled(self, program: Program) -> None:
        """What a reshape would have to copy → attention writes there at once, through the same views backwards."""
        makers = program.producers()
        for step in program.steps:
            if not isinstance(step, Reshape) or step.output in self._aliases:
                continue
            looks: list[Reshape | Transpose] = [step]
            source = step.inputs[0]
            while isinstance(look := makers.get(source), Reshape | Transpose):
                looks.append(look)
                source = look.inputs[0]
            taken = [look.inputs[0] for look in looks]
            alone = all(self._uses[v] == [s] and v not in program.returned for v, s in zip(taken, looks, strict=True))
            if alone and isinstance(makers.get(source), Attention):
                with suppress(ValueError):
                    _unlook(looks, blank(step.output))
                    self._aliases[source] = _Alias(step.output, partial(_unlook, looks))
                    self._filled.add(step.output)

    def _find_joins(self, program: Program) -> None:
        """Values that only a Concat takes → slices of its result."""
        makers = program.producers()
        for step in program.steps:
            if not isinstance(step, Concat) or step.output in self._aliases:
                continue
            start = 0
            for k, value in enumerate(step.inputs):
                length = value.shape[step.axis]
                index = (*(slice(None),) * step.axis, slice(start, start + length))
                start += length
                free = value in makers and value not in self._aliases and value not in self._filled
                alone = free and self._uses.get(value) == [step]
                if alone and value not in program.returned and value.channels_last == step.output.channels_last:
                    self._aliases[value] = _Alias(step.output, lambda a, index=index: a[index])
                    self.joined.add((step, k))

    def _find_in_place(self, program: Program) -> None:
        """Elementwise results → the buffer of an operand that nobody needs afterwards."""
        family: dict[Value, int] = {}
        kept = {*program.inputs, *program.outputs}
        for value in walk_values(program):
            root = self.root(value)
            family[root] = family.get(root, 0) + 1
        for step in program.steps:
            if not isinstance(step, Elementwise | Softmax | Normalize) or step.output in self._aliases:
                continue
            for value in step.inputs[: 1 if isinstance(step, Softmax | Normalize) else None]:
                if value.is_constant or value in kept:
                    continue
                same = (value.shape, value.channels_last, value.dtype) == (
                    *(step.output.shape, step.output.channels_last, step.output.dtype),
                )
                single = value not in self._aliases and family.get(value) == 1
                single = single and (isinstance(step, Elementwise) or step.inputs.count(value) == 1)
                if same and single and self._uses[value] == [step]:
                    self._aliases[step.output] = _Alias(value, lambda a: a)
                    family[value] = family.get(step.output, 1) + 1
                    break

    def _find_framed(self, program: Program) -> None:
        """What a 1×1 convolution makes for a depthwise one alone → the middle of a frame, so that nobody copies it."""
        makers = program.producers()
        shared = {self.root(v) for v in self._aliases}
        for step in program.steps:
            if not isinstance(step, Conv) or len(step.strides) != 2 or step.inputs[1].shape[1:3] != (1, 1):
                continue
            value = step.inputs[0]
            maker = makers.get(value)
            alone = self._uses[value] == [step] and value not in program.returned
            if not alone or value in self._aliases or value in shared or not value.channels_last:
                continue
            if isinstance(maker, Conv) and _gives_lines(maker) and any((*step.pads_begin, *step.pads_end)):
                (top, left), (bottom, right) = step.pads_begin, step.pads_end
                self._frames[value] = top, bottom, left, right

    # -- where it lies -------------------------------------------------------------------------------------------------

    def _allocate(self, program: Program) -> None:
        """One arena for every root, by the steps between which it is needed."""
        when = {step: k for k, step in enumerate(program.steps)}
        born: dict[Value, int] = dict.fromkeys(program.inputs, -1)
        for step, k in when.items():
            for value in step.outputs:
                born[value] = k
        first: dict[Value, int] = {}
        last: dict[Value, int] = {}
        end = len(program.steps)
        for value in walk_values(program):
            root = self.root(value)
            first[root] = min(first.get(root, end), born[value])
            final = (
                end
                if value in program.returned
                else max((when[s] for s in self._uses.get(value, ())), default=born[value])
            )
            last[root] = max(last.get(root, -1), final)
        keys = {id(root): root for root in first}
        sizes = {key: max(self._size(root), 1) for key, root in keys.items()}
        lives = {key: Lifetime(sizes[key], first[root], last[root]) for key, root in keys.items()}
        offsets, total = place(lives)
        held = total + _constant_bytes(program)
        self._limits.require("peak_bytes", held, "the plan's constants and activations are too large")
        self.arena = aligned_bytes(max(total, 1))
        self._offsets = {root: offsets[key] for key, root in keys.items()}
        for root in keys.values():
            flat = self.buffer(root).view(root.dtype)
            self._views[root] = self._in_frame(root, flat) if root in self._frames else _shaped(root, flat)
        for value in walk_values(program):
            if value in self._aliases:
                self._view_alias(value)

    def _size(self, root: Value) -> int:
        """The bytes of a buffer, that of the frame included."""
        if root not in self._frames:
            return root.nbytes
        n, channels, height, width = root.shape
        top, bottom, left, right = self._frames[root]
        return n * channels * (height + top + bottom) * (width + left + right) * root.dtype.itemsize

    def _in_frame(self, root: Value, flat: Array) -> Array:
        """The middle of a frame, in its logical shape."""
        n, channels, height, width = root.shape
        top, bottom, left, right = self._frames[root]
        whole = flat.reshape(n, height + top + bottom, width + left + right, channels)
        self._framed[root] = whole
        return np.moveaxis(whole[:, top : top + height, left : left + width], -1, 1)

    def _view_alias(self, value: Value) -> None:
        chain: list[Value] = []
        while value not in self._views:
            chain.append(value)
            value = self._aliases[value].source
        for view in reversed(chain):
            alias = self._aliases[view]
            self._views[view] = alias.transform(self._views[alias.source])


def _gives_lines(maker: Conv) -> bool:
    """True for 1×1 convolutions that can write line by line, of maps so large that their weights do not come first."""
    groups, _, _, *kernel = maker.inputs[1].shape
    plain = groups == 1 and not any((*maker.pads_begin, *maker.pads_end))
    return plain and kernel == [1, 1] and prod(maker.output.shape[2:]) not in SMALL_M


def _uses(program: Program) -> dict[Value, list[Step]]:
    """The steps that take each value, each once."""
    found: dict[Value, list[Step]] = {}
    for step in program.steps:
        for value in dict.fromkeys(step.inputs):
            found.setdefault(value, []).append(step)
    return found


def _constant_bytes(program: Program) -> int:
    """The bytes of the constants that steps take; those that share memory count once."""
    found: dict[object, int] = {}
    for value in (v for s in program.steps for v in s.inputs):
        if value.source is not None:
            root = value.source.root
            found[root.place or root] = root.nbytes
    return sum(found.values())


def _sealed(constant: Array) -> Array:
    """A constant that kernels can tell from the arena's memory: small ones get memory of their own, read-only."""
    if constant.size <= 1 << 16:
        constant = constant.copy()
        constant.flags.writeable = False
    return constant


def _shaped(value: Value, flat: Array) -> Array:
    """A flat buffer in the logical shape of its value; channels-last ones are transposed views."""
    if not value.channels_last:
        return flat.reshape(value.shape)
    n, c, *spatial = value.shape
    return np.moveaxis(flat.reshape(n, *spatial, c), -1, 1)


def blank(value: Value) -> Array:
    """An array laid out like the value's, over no memory of its own: only its strides are looked at."""
    return _shaped(value, as_strided(np.empty(1, value.dtype), (value.size,), (value.dtype.itemsize,)))


def _unlook(looks: Sequence[Reshape | Transpose], array: Array) -> Array:
    """What the looks, last to first, have looked at, as a view of what they have come to. Raises ValueError."""
    for look in looks:
        if isinstance(look, Transpose):
            array = array.transpose(np.argsort(look.order))
        else:
            array = np.reshape(array, look.inputs[0].shape, copy=False)
    return array
