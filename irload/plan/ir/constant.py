"""Constants of a plan: weights that are released once kernels have packed them, and made again when asked for."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from weakref import ref

import numpy as np

from irload.core.op import Op, is_builtin, widen
from irload.core.tensor import Array
from irload.record import record

SMALL = 1 << 16
"""Bytes up to which a constant is simply kept."""

DEEPEST = 50
"""Steps that making a constant again may take; what is further from the file is kept."""


@record()
class Recipe:
    """An operation of one output and the constants it takes."""

    op: Op
    inputs: tuple[Constant, ...]

    @property
    def widens(self) -> bool:
        """True for f16 converted."""
        return self.op.type == "Convert" and is_builtin(self.op) and self.inputs[0].dtype == np.float16


class Constant:
    """A tensor known before the run. The same object stands for it in all plans of a model.

    `make` gives the array again after `release`: it reads the file, or computes what the constant was folded from.
    `place` is the same for constants that share memory.
    """

    def __init__(
        self,
        make: Callable[[], Array],
        shape: tuple[int, ...],
        dtype: np.dtype[np.generic],
        array: Array | None = None,
        depth: int = 0,
        place: object = None,
        recipe: Recipe | None = None,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.depth = depth
        self.place = place
        self.recipe = recipe
        """The operation that gives the constant, where it was folded: compressed weights are recognised by it."""
        self._make = make
        self._strong = array
        self._weak = (lambda: None) if array is None else ref(array)
        self._derived: dict[object, Constant] = {}
        self._parent: Constant | None = None
        self._moved: Callable[[Array], Array] | None = None

    @staticmethod
    def of(array: Array) -> Constant:
        """A constant that is held for as long as this object lives."""
        return Constant(lambda: array, array.shape, array.dtype, array)

    @property
    def nbytes(self) -> int:
        """Their bytes."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def array(self) -> Array:
        """The values, read-only."""
        found = self._strong
        if found is None:
            found = self._weak()
        if found is None:
            found = self._make()
            found.flags.writeable = False
            self._weak = ref(found)
            if found.nbytes <= SMALL:
                self._strong = found
        return found

    @property
    def stored(self) -> Array:
        """The values, read-only; those that are f16 widened to f32 and nothing else as f16."""
        if self._strong is None and self._weak() is None:
            if self._parent is not None and self._moved is not None:
                return self._moved(self._parent.stored)
            if self.recipe is not None and self.recipe.widens and self.dtype == np.float32:
                return self.recipe.inputs[0].array
        return self.array

    @property
    def root(self) -> Constant:
        """What it was derived from in the end."""
        at = self
        while at._parent is not None:
            at = at._parent
        return at

    @property
    def held(self) -> bool:
        """True while this object itself keeps the array."""
        return self._strong is not None

    def held_array(self) -> Array:
        """The values, kept from now on, as they are needed in every run."""
        if self._strong is None:
            self._strong = self.array
        return self._strong

    def release(self) -> None:
        """Let go of the array. Whoever works with it keeps it alive."""
        if self._strong is not None and self._strong.nbytes > SMALL and self.depth <= DEEPEST:
            self._strong = None
        if self._parent is not None:
            self._parent.release()

    def widened(self) -> Constant:
        """Floats of 16 bits as f32, of which `stored` gives those that are f16 as they are."""
        stored = _same if self.dtype == np.float16 else None
        return self._made("widened", self.shape, widen, np.dtype(np.float32), stored)

    def without(self, how: Callable[[Array], Array]) -> Constant:
        """What is left when `how` takes away what floats of 16 bits cannot be; it comes from the same operation."""

        def stored(array: Array) -> Array:
            return how(array) if array.dtype == self.dtype else array

        made = self._made(how, self.shape, how, self.dtype, stored)
        made.recipe = self.recipe
        return made

    def derived(
        self, key: object, shape: tuple[int, ...], how: Callable[[Array], Array], *, moves: bool = False
    ) -> Constant:
        """What `how` makes of it, the same object for the same key. `moves`: it does so with any type."""
        return self._made(key, shape, how, self.dtype, how if moves else None)

    def _made(
        self,
        key: object,
        shape: tuple[int, ...],
        how: Callable[[Array], Array],
        dtype: np.dtype[np.generic],
        stored: Callable[[Array], Array] | None,
    ) -> Constant:
        """What `how` makes of it. `stored`: what gives that in the type of the file, None where nothing does."""
        if key not in self._derived:
            self._derived[key] = made = Constant(lambda: how(self.array), shape, dtype, depth=self.depth + 1)
            made._parent = self
            made._moved = stored
        return self._derived[key]


def _same(array: Array) -> Array:
    return array
