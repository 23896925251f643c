"""Predictor: a model as a function from batches to batches. Each row has the result that it would have alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Unpack

import numpy as np

from irload.arrays.npy import storable
from irload.batch.model_info import labels_of
from irload.batch.samples import SampleInputs, Samples
from irload.batch.sizing import Sizing
from irload.batch.stacking import Stacking, plan_stacking
from irload.compiling import compile_model
from irload.core.tensor import Array
from irload.errors import ExecutionError, InputInvalid, IRError, LimitExceeded, OutOfMemory, out_of_memory
from irload.inference import ShapeLike
from irload.loading import read_model
from irload.model import Model
from irload.options import CompileOptions, Options
from irload.plan.backends.registry import compiled_backend
from irload.runtime.compiled_model import CompiledModel

__all__ = ["Predictor"]

Outputs = tuple[Array, ...]

MAX_SAMPLES = 64
"""The default maximum number of samples per inference."""
NEAR = 1e-4
"""Maximum deviation of a batch from its samples run alone, relative to the largest value.

Rounding errors stay far below; samples that influence each other exceed it.
"""


class Predictor:
    """Maps batches to batches: `predictor({"image": f32[64,1,8,8]})` gives `{"probabilities": f32[64,10]}`.

    Usable with `map_batches` of Ray Data. Columns that are not inputs of the model pass through. Samples of equal shape
    share an inference if the model allows it. The first batch is compared with its samples run alone; if results
    differ, the model runs one sample at a time.

    - `batch_size`: maximum samples per inference; by default the fastest measured number up to 64.
    - `weights`, `sha256`, `shapes`: as for `read_model` and `Model.reshape`.
    - `threads`, `options`: as for `compile_model`; the model is read, not loaded from the cache.
    - `cast`: allow conversions that lose fractions or range, which are otherwise refused.
    - `uniform`: if the model accepts samples of a single shape, pad every inference to `batch_size`. A result then does
      not depend on the other samples of its batch; otherwise rounding differs slightly between batch sizes.
    - `expected`: the number of samples to come, if known: batch sizes are then measured only if that can save time.
    """

    def __init__(
        self,
        model: Model | str | Path,
        *,
        weights: Any = None,
        batch_size: int | None = None,
        threads: int | None = None,
        shapes: Mapping[str | int, ShapeLike] | None = None,
        uniform: bool = False,
        expected: int | None = None,
        sha256: str | Mapping[str, str] | None = None,
        cast: bool = False,
        **options: Unpack[CompileOptions],
    ) -> None:
        if batch_size is not None and batch_size < 1:
            raise InputInvalid(f"batch_size must be at least 1, found {batch_size}")
        resolved = Options.of(options, threads)
        compiled_backend(resolved)  # raise for an invalid IRLOAD_JIT now instead of in every inference
        if not isinstance(model, Model):
            mmap = options.pop("mmap", False)
            model = read_model(model, weights, limits=resolved.limits, mmap=mmap, sha256=sha256)
        if shapes:
            model.reshape({**shapes})
        self.stacking: Stacking = plan_stacking(model, batch_size or MAX_SAMPLES)
        self._min_samples = self.stacking.min_samples
        self.sizing: Sizing | None = None
        if batch_size is None and self.stacking.max_samples > 1:
            self.sizing = Sizing(self._min_samples, self.stacking.max_samples, expected)
        one_shape = all(p.partial_shape.rank and all(d.is_static for d in p.partial_shape[1:]) for p in model.inputs)
        self._padding = uniform and batch_size is not None and one_shape
        self.compiled: CompiledModel = compile_model(model, threads, **options)
        self.inputs = model.inputs
        self.rt_info = model.rt_info
        self.outputs = model.outputs
        self.output_names = unique([p.any_name for p in self.outputs])
        self.labels = labels_of(self.rt_info)
        self.takes = SampleInputs(self.inputs, stacked=self.stacking.stacked, lossy=cast)
        self._compared = 1
        """The size of the largest inference whose results were compared with samples run alone."""

    @property
    def batching(self) -> str:
        """How samples share inferences, in words: `up to 64 at a time, 8 measured to be fastest`."""
        text = str(self.stacking)
        if self.sizing is None or self.stacking.max_samples == 1 or not self.sizing.settled:
            return text
        return f"{text}, {self.sizing.size} measured to be fastest"

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs by name, with the columns that do not feed inputs. Raises the errors of the model."""
        columns, others = self._columns(batch)
        count = len(columns[0]) if columns else 0
        samples = [self.takes.samples([np.asarray(c[k]) for c in columns]) for k in range(count)]
        results: list[Outputs] = []
        for result in self.run(samples):
            if isinstance(result, IRError):
                raise result
            results.append(result)
        merged: dict[str, Any] = dict(others)
        for k, name in enumerate(self.output_names):
            merged[name] = column_of([outputs[k] for outputs in results])
        return merged

    def run(self, items: Sequence[Samples]) -> list[Outputs | IRError]:
        """The outputs of each item, or its error. Items of one shape share inferences."""
        results: list[Outputs | IRError | None] = [None] * len(items)
        groups: dict[tuple[Any, ...], list[int]] = {}
        for k, item in enumerate(items):
            groups.setdefault(tuple((a.shape[1:], a.dtype.str) for a in item.arrays), []).append(k)
        for members in groups.values() if self.stacking.stacked else ([k] for k in range(len(items))):
            for k, result in zip(members, self._group([items[k] for k in members]), strict=True):
                results[k] = result
        return [r for r in results if r is not None]

    def _group(self, items: list[Samples]) -> list[Outputs | IRError]:
        try:
            return list(self._together(items))
        except (IRError, MemoryError) as error:
            if isinstance(error, MemoryError | OutOfMemory | LimitExceeded) and self.sizing is not None:
                self.sizing.refuse(self.sizing.size)
            if len(items) > 1:  # run alone, so that each sample gets its error
                return [self._group([item])[0] for item in items]
            return [error if isinstance(error, IRError) else out_of_memory("for the batch", error)]

    def _together(self, items: list[Samples]) -> list[Outputs]:
        if not self.stacking.stacked:
            return [self._infer(items[0].arrays)]
        inputs = items[0].arrays
        if len(items) > 1:
            inputs = tuple(np.concatenate(parts) for parts in zip(*(i.arrays for i in items), strict=True))
        outputs = self._stack(inputs)
        ends = np.cumsum([len(i.arrays[0]) for i in items])
        per_item: list[Outputs] = []
        for item, end in zip(items, ends.tolist(), strict=True):
            begin = end - len(item.arrays[0])
            per_item.append(tuple(o[begin] if item.single else o[begin:end] for o in outputs))
        return per_item

    def _stack(self, inputs: Outputs) -> Outputs:
        """The outputs for any number of samples of one shape."""
        count, begin = len(inputs[0]), 0
        parts: list[Outputs] = []
        while begin < count or not parts:
            part, size = self._part(inputs, begin)
            outputs = self._sized(part, size)
            if size > self._compared and len(part[0]) > 1 and self.stacking.max_samples > 1:
                if not self._same_alone(part, outputs):
                    if self._min_samples > 1:
                        raise ExecutionError("samples of this model influence each other, but its batch size is fixed")
                    self.stacking = Stacking(stacked=True, why="its samples influence each other")
                    return self._stack(inputs)
                self._compared = size
            parts.append(outputs)
            begin += max(len(part[0]), 1)
        return parts[0] if len(parts) == 1 else tuple(np.concatenate(p) for p in zip(*parts, strict=True))

    def _part(self, inputs: Outputs, begin: int) -> tuple[Outputs, int]:
        """The samples of the next inference and its size; if the size is larger, the rest is padding."""
        available, max_samples = len(inputs[0]) - begin, self.stacking.max_samples
        if self.sizing is not None and max_samples > 1 and available:
            size = self.sizing.choose(_shapes(inputs), available)
        else:
            size = max_samples if self._padding else max(min(max_samples, available), self.stacking.min_samples)
        return tuple(a[begin : begin + size] for a in inputs), size

    def _sized(self, part: Outputs, size: int) -> Outputs:
        """The outputs of an inference of `size`; missing samples are filled with copies of the last."""
        count = len(part[0])
        full = part
        if 0 < count < size:
            full = tuple(np.concatenate([a, np.repeat(a[-1:], size - count, 0)]) for a in part)
        started = perf_counter()
        outputs = self._infer(full)
        if self.sizing is not None:
            self.sizing.record(_shapes(part), len(full[0]), perf_counter() - started, count)
        return outputs if full is part else tuple(o[:count] for o in outputs)

    def _same_alone(self, part: Outputs, outputs: Outputs) -> bool:
        """True if samples have the same results alone: three samples the first time, then the last one."""
        last = len(part[0]) - 1
        for k in (last,) if self._compared > 1 else sorted({0, last // 2, last}):
            alone = self._sized(tuple(a[k : k + 1] for a in part), self._min_samples)
            if not all(_near(a[0], o[k]) for a, o in zip(alone, outputs, strict=True)):
                return False
        return True

    def _infer(self, inputs: Outputs) -> Outputs:
        # A separate request, so that no state passes from one inference to the next.
        return tuple(self.compiled.create_infer_request().infer(list(inputs)).values())

    def _columns(self, batch: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The columns in the order of the model's inputs, and the others."""
        others = dict(batch)
        columns: list[Any] = []
        for port in self.inputs:
            name = next((n for n in (*sorted(port.names), port.node.name) if n in others), None)
            if name is None and len(self.inputs) == 1 and len(batch) == 1:
                name = next(iter(batch))
            if name is None:
                raise InputInvalid(
                    f"no column for input '{port.any_name}'; the batch has {', '.join(map(repr, batch)) or 'none'}"
                )
            columns.append(others.pop(name))
        return columns, others


def _shapes(inputs: Outputs) -> tuple[tuple[int, ...], ...]:
    """The shapes of one sample."""
    return tuple(a.shape[1:] for a in inputs)


def _near(left: Array, right: Array) -> bool:
    if left.shape != right.shape:
        return False
    if left.dtype.kind in "OUSb" or not left.size:
        return bool(np.array_equal(left, right))
    a, b = left.astype(np.float64), right.astype(np.float64)
    scale = float(np.max(np.abs(a), where=np.isfinite(a), initial=1e-6))
    return bool(np.allclose(a, b, rtol=0, atol=NEAR * scale, equal_nan=True))


def column_of(values: list[Array]) -> Any:
    """Values stacked if their shapes are equal, else an array of arrays."""
    stored = [storable(v) for v in values]
    if len({(v.shape, v.dtype) for v in stored}) <= 1:
        return np.stack(stored) if stored else np.zeros(0)
    ragged = np.empty(len(stored), object)
    ragged[:] = stored
    return ragged


def unique(names: Sequence[str]) -> list[str]:
    """The names, with a number appended to duplicates."""
    distinct: list[str] = []
    for k, name in enumerate(names):
        while name in distinct:
            name = f"{name}_{k}"
        distinct.append(name)
    return distinct
