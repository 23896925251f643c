"""Yields predictions as soon as they are computed, for programs that use the arrays directly."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from irload.batch.images import ImageOptions
from irload.batch.items import Done, Item, Task, WorkerOptions
from irload.batch.listing import Listing
from irload.batch.pool import WorkerPool
from irload.batch.predictor import MAX_SAMPLES, unique
from irload.batch.predictors import is_folder, text_predictor_of
from irload.batch.tables import Tables
from irload.batch.task_runner import TaskRunner
from irload.batch.text_predictor import TextPredictor
from irload.core.tensor import Array
from irload.errors import InputInvalid
from irload.graph import Port
from irload.inference import ShapeLike
from irload.loading import read_model
from irload.model import Model
from irload.options import CompileOptions
from irload.safety.limits import DEFAULT
from irload.system.machine import thread_count
from irload.text.settings import GenerationOptions
from irload.text.tasks import TextOptions

__all__ = ["Prediction", "predict"]


@dataclass(frozen=True, slots=True)
class Prediction:
    """The outputs of one item by name, or the reason in `error`. `input` is its file, row or position."""

    input: str
    outputs: dict[str, Array]
    error: str | None = None


def predict(
    model: Model | str | Path,
    source: Any,
    *,
    weights: str | None = None,
    batch_size: int | None = None,
    workers: int = 0,
    threads: int | None = None,
    shapes: Mapping[str | int, ShapeLike] | None = None,
    images: ImageOptions | None = None,
    cast: bool = False,
    columns: Mapping[str, str] | None = None,
    generation: GenerationOptions | None = None,
    chat: bool = False,
    **options: Unpack[CompileOptions],
) -> Iterator[Prediction]:
    """Run a model over many inputs and yield a Prediction for each.

    - `model`: a Model, its path, or the folder of a text model.
    - `source`: a file, folder or pattern, or several of them (`name=pattern` selects an input); or any iterable of
      arrays or of dicts by input name, consumed on demand. For a text model, an iterable of texts.
    - `weights`, `shapes`: as for `read_model` and `Model.reshape`.
    - `batch_size`: maximum samples per inference, if the model allows several; by default the fastest measured number.
    - `workers`: number of processes, which require the model as a path. With 0, the model runs in this process and
      results are in order.
    - `threads`: in total over all workers.
    - `images`: preprocessing of images. `cast`: allow conversions that lose precision or range.
    - `columns`: the table column of each input.
    - `generation`, `chat`: for a text model, as for `TextPredictor`.
    - `options`: as for `compile_model`; `limits` apply to reading, too.

    Items that cannot be used are yielded with an `error`. Raises errors that affect the entire job: IRError for the
    model, InputInvalid for the source, OSError for the system.
    """
    if workers and isinstance(model, Model):
        raise InputInvalid("worker processes load the model themselves: give its path, or workers=0")
    texts = TextOptions(generation or GenerationOptions(), chat)
    loaded: Model | TextPredictor
    if isinstance(model, Model):
        loaded = model
    elif is_folder(model):
        loaded = text_predictor_of(
            WorkerOptions(model, weights, shapes, batch_size, threads, compile=options, texts=texts)
        )
    else:
        mmap = options.get("mmap", False) if workers else options.pop("mmap", False)
        loaded = read_model(model, weights, limits=options.get("limits") or DEFAULT, mmap=mmap)
    items = _items(source, loaded.inputs, columns, given=isinstance(loaded, TextPredictor))
    size = loaded.together if isinstance(loaded, TextPredictor) else batch_size or MAX_SAMPLES
    tasks = iter(lambda: Task(list(islice(items, size))), Task([]))
    share = max(1, thread_count(threads) // max(workers, 1))
    how = WorkerOptions(
        str(model) if workers else loaded,
        weights,
        shapes,
        batch_size,
        share,
        images or ImageOptions(),
        cast=cast,
        compile=options,
        texts=texts,
    )
    return _predictions(how, tasks, workers, unique([p.any_name for p in loaded.outputs]))


def _predictions(
    options: WorkerOptions, tasks: Iterator[Task], workers: int, names: Sequence[str]
) -> Iterator[Prediction]:
    for done in WorkerPool(options, workers).run(tasks) if workers else _here(options, tasks):
        for record in done.records:
            outputs = dict(zip(names, record.outputs, strict=True)) if record.outputs is not None else {}
            yield Prediction(record.name, outputs, record.reason or None)


def _here(options: WorkerOptions, tasks: Iterator[Task]) -> Iterator[Done]:
    runner = TaskRunner(options)
    for task in tasks:
        yield runner.run(task.items)


def _items(source: Any, inputs: Sequence[Port], columns: Mapping[str, str] | None, *, given: bool) -> Iterator[Item]:
    """The items of a source. `given`: the strings in a sequence are texts for a text model, not names of files."""
    if isinstance(source, str | os.PathLike):
        source, given = [source], False
    if not given and isinstance(source, Sequence) and source and isinstance(source[0], str | os.PathLike):
        listing = Listing([os.fspath(word) for word in source], inputs)
        return iter(Tables(listing.paths(), inputs, columns) if listing.tables else listing)
    if not isinstance(source, Iterable):
        raise InputInvalid(f"the source is neither files nor an iterable of arrays: {type(source).__name__}")
    return (Item(k, str(k), str(k), row=_row(value)) for k, value in enumerate(source))


def _row(value: Any) -> dict[str, Array]:
    if isinstance(value, Mapping):
        return {str(name): np.asarray(array) for name, array in value.items()}
    return {"": np.asarray(value)}
