"""Constants of a plan. Large ones, such as weights, are released after packing and recreated on demand."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any
from weakref import WeakValueDictionary, ref

import numpy as np

from irload.core.element import ElementType
from irload.core.op import Op, is_builtin, widen
from irload.core.packing import pack
from irload.core.tensor import Array, TensorType
from irload.plan.ir.derivations import Derivation
from irload.record import record

SMALL = 1 << 16
"""Constants up to this number of bytes are never released."""

DEEPEST = 50
"""Recomputing a released constant may take this many operations; constants deeper than this are never released."""


WIDENED = "widened"
"""The key under which `Constant.widened` derives a constant."""


@record()
class Recipe:
    """A folded operation with one output, and its constant inputs.

    `type` is the type of the output; None if the operation must not be repeated.
    """

    op: Op
    inputs: tuple[Constant, ...]
    type: TensorType | None = None

    @property
    def widens(self) -> bool:
        """True for a conversion from f16."""
        return self.op.type == "Convert" and is_builtin(self.op) and self.inputs[0].dtype == np.float16


class Constant:
    """A tensor known before the run, shared by all plans of a model.

    `make` recreates the array after `release`: it reads the file, or repeats the folded operation. Constants that share
    memory have the same `byte_range` (offset and size in the file).
    """

    def __init__(
        self,
        make: Callable[[], Array],
        shape: tuple[int, ...],
        dtype: np.dtype[np.generic],
        array: Array | None = None,
        depth: int = 0,
        byte_range: object = None,
        recipe: Recipe | None = None,
        element: ElementType | None = None,
        codes: Callable[[], Array] | None = None,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.depth = depth
        self.byte_range = byte_range
        self.recipe = recipe
        """The folded operation that computes the constant. Compressed weights are detected by their recipe."""
        self.element = element
        """The element type in the file, if the constant is stored in the file."""
        self._codes = codes
        self._make = make
        self._strong = array
        self._weak = (lambda: None) if array is None else ref(array)
        self._derived: WeakValueDictionary[object, Constant] | None = None
        """Weak references, because each derived constant refers to this one: a cycle would live until the next garbage
        collection."""
        self._parent: Constant | None = None
        self._key: object = None
        self._stored_function: Callable[[Array], Array] | None = None

    @staticmethod
    def of(array: Array) -> Constant:
        """Return a constant that keeps its array, read-only, for its lifetime."""
        held = array.view()
        held.flags.writeable = False  # read-only results of an inference are copied for the caller
        return Constant(lambda: held, held.shape, held.dtype, held)

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def array(self) -> Array:
        """The values, read-only."""
        array = self._strong
        if array is None:
            array = self._weak()
        if array is None:
            array = self._make()
            array.flags.writeable = False
            self._weak = ref(array)
            if array.nbytes <= SMALL:
                self._strong = array
        return array

    @property
    def stored(self) -> Array:
        """The values, read-only. f16 that is only widened to f32 stays f16."""
        if self._strong is None and self._weak() is None:
            if self._parent is not None and self._stored_function is not None:
                return self._stored_function(self._parent.stored)
            if self.recipe is not None and self.recipe.widens and self.dtype == np.float32:
                return self.recipe.inputs[0].array
        return self.array

    @property
    def codes(self) -> Array:
        """The bytes as stored in the file, with values of fewer than 8 bits packed. Requires an `element`."""
        if self._codes is not None:
            return self._codes()
        if self.element is None:
            raise ValueError("the constant is not one of a file")
        return np.frombuffer(pack(self.array, self.element), np.uint8)

    @property
    def root(self) -> Constant:
        """The constant from which this one is derived, possibly in several steps; the constant itself if it is not."""
        at = self
        while at._parent is not None:
            at = at._parent
        return at

    @property
    def derivation(self) -> tuple[Constant, object] | None:
        """The constant from which this one is derived, and the key of the function; None if it is not derived."""
        return None if self._parent is None else (self._parent, self._key)

    @property
    def held(self) -> bool:
        """True while this object holds a strong reference to the array."""
        return self._strong is not None

    def held_array(self) -> Array:
        """Return the values and hold a strong reference to them from now on. For values that every run reads."""
        if self._strong is None:
            self._strong = self.array
        return self._strong

    def release(self) -> None:
        """Drop the strong reference to the array; it is recreated on demand."""
        if self._strong is not None and self._strong.nbytes > SMALL and self.depth <= DEEPEST:
            self._strong = None
        if self._parent is not None:
            self._parent.release()

    def widened(self) -> Constant:
        """Return the constant converted from a 16-bit float to f32. `stored` of the result is still f16."""
        stored = _same if self.dtype == np.float16 else None
        return self._derive(WIDENED, self.shape, widen, np.dtype(np.float32), stored)

    def corrected(self, correction: Callable[[Array], Array]) -> Constant:
        """Return the constant `correction(array)`, with the same recipe.

        `correction` must change only values that no 16-bit float has, because it is not applied to f16 arrays.
        """

        def stored(array: Array) -> Array:
            return correction(array) if array.dtype == self.dtype else array

        constant = self._derive(correction, self.shape, correction, self.dtype, stored)
        constant.recipe = self.recipe
        return constant

    def derived(
        self, key: object, shape: tuple[int, ...], how: Callable[[Array], Array], *, dtype: np.dtype[Any] | None = None
    ) -> Constant:
        """Return the constant `how(array)` of this shape; the same object for equal keys.

        `dtype`: the type of the result, if it differs.
        """
        return self._derive(key, shape, how, dtype or self.dtype, None)

    def by(self, how: Derivation) -> Constant:
        """Return the constant that a derivation computes from the array."""
        return self._derive(how, how.shape(self.shape), how, self.dtype, how if how.moves else None)

    def _derive(
        self,
        key: object,
        shape: tuple[int, ...],
        how: Callable[[Array], Array],
        dtype: np.dtype[np.generic],
        stored: Callable[[Array], Array] | None,
    ) -> Constant:
        """Return the constant `how(array)`. `stored`: the same function of an array in the type of the file, if any."""
        if self._derived is None:
            self._derived = WeakValueDictionary()
        constant = self._derived.get(key)
        if constant is None:
            constant = self._derived[key] = Constant(lambda: how(self.array), shape, dtype, depth=self.depth + 1)
            constant._parent = self
            constant._key = key
            constant._stored_function = stored
        return constant


def _same(array: Array) -> Array:
    return array
