"""RandomUniform and Multinomial. With both seeds 0 the results differ from run to run."""

from __future__ import annotations

import secrets

import numpy as np

from irload.core import attribute as attr
from irload.core.element import INDEX, ElementType, bf16, dynamic, f16, f32, f64, i32, i64
from irload.core.op import Op
from irload.core.shape import ANY, Shape
from irload.core.tensor import Array, TensorType, length_of
from irload.errors import AttributeInvalid, ExecutionError, ShapeMismatch, TypeMismatch
from irload.ops.generation.engines import mersenne, philox, unit_by_bits, unit_by_division

_FLOATS = (f32, f16, bf16, f64)


def seed_of(value: int) -> str | None:
    """Validator: a seed is an unsigned integer of 64 bits."""
    return None if 0 <= value < 2**64 else "must be within 0..2^64 − 1"


def uniform(
    shape: tuple[int, ...], low: Array, high: Array, element: ElementType, seeds: tuple[int, int], alignment: str
) -> Array:
    """Values of [low, high), drawn as the specification defines for each type; `seeds` are (global, operation)."""
    global_seed, op_seed = seeds if any(seeds) else (secrets.randbits(64), 0)
    count = int(np.prod(shape, dtype=np.int64))
    wide = element is f64 or (element is i64 and (alignment == "tensorflow" or max(int(low), int(high)) >= 2**32))
    needed = count * (2 if wide else 1)
    words = philox(needed, global_seed, op_seed) if alignment == "tensorflow" else mersenne(needed, global_seed)
    if element.is_float:
        values = _floats(words, low, high, element, alignment)
    else:
        if wide:  # the two generators order the words of a 64-bit integer differently
            lower, upper = words.reshape(-1, 2).T if alignment == "tensorflow" else words.reshape(-1, 2).T[::-1]
            words = (upper << np.uint64(32)) + lower
        span = np.uint64((int(high) - int(low)) % 2**64)
        values = (words % span).astype(np.int64) + np.int64(int(low))
    return values.astype(element.dtype, copy=False).reshape(shape)


def _floats(words: Array, low: Array, high: Array, element: ElementType, alignment: str) -> Array:
    """Numbers in [low, high). With Philox every step is rounded to the type, with MT19937 only the result."""
    if alignment == "tensorflow":
        return unit_by_bits(words, element) * (high - low) + low
    unit = unit_by_division(words, element)
    if element.is_low_precision:
        unit, low, high = (n.astype(np.float32) for n in (unit, low, high))
    return unit * (high - low) + low


def _require_index(name: str, tensor: TensorType) -> None:
    if tensor.element not in INDEX and not tensor.element.is_dynamic:
        raise TypeMismatch(f"{name} must be of type i32 or i64, found {tensor.element}")


def _require_single(name: str, tensor: TensorType) -> None:
    if tensor.shape.meet(Shape()) is None and tensor.shape.meet(Shape(1)) is None:
        raise ShapeMismatch(f"{name} must be a scalar or a list of one, found {tensor.shape}")


class RandomUniform(Op, since=8):
    """Values drawn uniformly from [min_val, max_val), of the shape in input `shape`.

    Specification: RandomUniform-8. The same seeds give the same values, bit by bit equal to the reference: by Philox
    with `alignment` tensorflow, by MT19937 (which ignores `op_seed`) with pytorch.
    """

    output_type = attr.element_type(among=(*_FLOATS, i32, i64))
    global_seed = attr.integer(default=0, rule=seed_of)
    op_seed = attr.integer(default=0, rule=seed_of)
    alignment = attr.choice("tensorflow", "pytorch", default="tensorflow")

    folds = False
    widens = False

    def infer(self, shape: TensorType, min_val: TensorType, max_val: TensorType) -> TensorType:
        _require_index("shape", shape)
        if shape.rank not in (None, 1):
            raise ShapeMismatch(f"shape must be a list (rank 1), found {shape.shape}")
        for name, tensor in (("min_val", min_val), ("max_val", max_val)):
            _require_single(name, tensor)
            if tensor.element not in (self.output_type, dynamic):
                raise TypeMismatch(f"{name} must be of output_type {self.output_type}, found {tensor.element}")
        if min_val.value is not None and max_val.value is not None and not min_val.value.item() < max_val.value.item():
            raise ShapeMismatch(f"min_val {min_val.value} must be less than max_val {max_val.value}")
        if any(v < 0 for v in shape.ints or ()):
            raise ShapeMismatch(f"shape must not hold negative sizes, found {list(shape.ints or ())}")
        if shape.dims is not None:
            return TensorType(self.output_type, Shape(*shape.dims))
        rank = length_of(shape)
        return TensorType(self.output_type, Shape.any(rank.lo if rank.is_static else None))

    def compute(self, shape: Array, min_val: Array, max_val: Array) -> Array:
        # Plans compute 16-bit floats in f32, but here every step is rounded.
        low, high = (bound.reshape(()).astype(self.output_type.dtype) for bound in (min_val, max_val))
        if not low < high:
            raise ExecutionError(f"min_val {low} must be less than max_val {high}")
        seeds = self.global_seed, self.op_seed
        return uniform(tuple(shape.tolist()), low, high, self.output_type, seeds, self.alignment)


class Multinomial(Op, since=13):
    """The indices of classes drawn with probabilities `probs` [batch, classes]: [batch, num_samples].

    Specification: Multinomial-13. With `log_probs` the probabilities are logarithms; they need not sum to 1. The draws
    equal RandomUniform with the same seeds, in f64 for f64 probabilities, else in f32. Without replacement no class is
    drawn twice for one batch element, so there must be enough classes.
    """

    convert_type = attr.element_type(default=dynamic, among=INDEX, spec_required=True)
    with_replacement = attr.boolean(default=False, spec_required=True)
    log_probs = attr.boolean(default=False, spec_required=True)
    global_seed = attr.integer(default=0, rule=seed_of)
    op_seed = attr.integer(default=0, rule=seed_of)

    folds = False

    def validate(self) -> None:
        if self.convert_type is dynamic:
            raise AttributeInvalid("attribute convert_type must be i32 or i64")

    def infer(self, probs: TensorType, num_samples: TensorType) -> TensorType:
        if not (probs.element.is_float or probs.element.is_dynamic):
            raise TypeMismatch(f"probs must be of a floating-point type, found {probs.element}")
        _require_index("num_samples", num_samples)
        _require_single("num_samples", num_samples)
        if probs.rank not in (None, 2):
            raise ShapeMismatch(f"probs must have shape [batch, classes], found {probs.shape}")
        if any(v < 0 for v in num_samples.ints or ()):
            raise ShapeMismatch(f"num_samples must not be negative, found {num_samples.ints}")
        if probs.rank is None:
            return TensorType(self.convert_type, Shape.unranked())
        batch, classes = probs.shape
        samples = ANY if num_samples.dims is None else num_samples.dims[0]
        if not self.with_replacement and classes.hi is not None and samples.lo > classes.hi:
            raise ShapeMismatch(f"cannot draw {samples} of {classes} classes without replacement")
        return TensorType(self.convert_type, Shape(batch, samples))

    def compute(self, probs: Array, num_samples: Array) -> Array:
        count = int(num_samples.item())
        chances = np.exp(probs) if self.log_probs else probs
        reach = np.cumsum(chances, axis=1, dtype=chances.dtype)
        reach = reach / reach[:, -1:]
        element = f64 if probs.dtype == np.float64 else f32
        zero, one = np.zeros((), probs.dtype), np.ones((), probs.dtype)
        draws = uniform(
            (len(probs), count), zero, one, element, (self.global_seed, self.op_seed), alignment="tensorflow"
        )
        rows = np.arange(len(probs))
        result = np.zeros(draws.shape, self.convert_type.dtype)
        for k in range(count):
            # The first class whose cumulated probability reaches the draw.
            reached = draws[:, k, None] <= reach
            reached[:, -1] = True
            chosen = reached.argmax(axis=1)
            result[:, k] = chosen
            if not self.with_replacement:
                before = np.where(chosen > 0, reach[rows, chosen - 1], 0)
                chance = (reach[rows, chosen] - before)[:, None].astype(reach.dtype)
                behind = np.arange(probs.shape[1]) >= chosen[:, None]
                reach = np.where(behind, reach - chance, reach) / (1 - chance)
        return result
