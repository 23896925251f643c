"""The text model of a folder as a function from batches to batches: embeddings, classes or generated texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from irload.batch.predictor import Outputs, column_of
from irload.batch.samples import SampleInputs, Samples
from irload.core.element import string
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import InputInvalid, IRError
from irload.graph import Node, Output, Port
from irload.ops.infrastructure.endpoints import Parameter
from irload.options import CompileOptions
from irload.text.folder import Folder
from irload.text.settings import GenerationOptions
from irload.text.tasks import Field, TextOptions, task_of

__all__ = ["TextPredictor"]

TEXT = "text"
"""The name of the only input."""


class TextPredictor:
    """Maps batches of texts to batches: `predictor({"text": texts})` gives `{"embedding": f32[n,384]}`.

    Usable with `map_batches` of Ray Data. `folder`: the path of a folder with a model and its tokenizer; its files
    state whether the results are embeddings (`embedding`), classes (`label`, `score`, `scores`) or generated texts
    (`generated_text`, `finish`). Columns other than `column` pass through. Texts of similar length share an inference:
    up to `batch_size`, by default 32. `threads`, `options`: as for `compile_model`. `generation`: the options of
    `TextGeneration.generate`; `chat`: each text is the message of a user, to which the folder's chat template applies.
    Raises ReadError for a folder without a model, Unsupported for other models, and the errors of `compile_model`.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        column: str = TEXT,
        batch_size: int | None = None,
        threads: int | None = None,
        generation: GenerationOptions | None = None,
        chat: bool = False,
        **options: Unpack[CompileOptions],
    ) -> None:
        if batch_size is not None and batch_size < 1:
            raise InputInvalid(f"batch_size must be at least 1, found {batch_size}")
        texts = TextOptions(generation or GenerationOptions(), chat)
        self.column = column
        self.task = task_of(Folder(folder), batch_size, threads, texts, options)
        self.compiled = self.task.compiled
        self.inputs = (_port(Field(TEXT, string, ()), 0),)
        self.outputs = tuple(_port(entry, k) for k, entry in enumerate(self.task.fields))
        self.output_names = [entry.name for entry in self.task.fields]
        self.rt_info: Mapping[str, Any] = {}
        self.takes = SampleInputs(self.inputs, stacked=True)
        self.batching = self.task.words
        self.together = self.task.together
        self.labels = self.task.labels

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """The results by name, with the other columns. Raises the errors of the model."""
        others = dict(batch)
        if self.column not in others:
            raise InputInvalid(f"no column '{self.column}'; the batch has {', '.join(map(repr, batch)) or 'none'}")
        texts = [str(text) for text in np.asarray(others.pop(self.column), object)]
        results: list[Outputs] = []
        for result in self.task.run(texts, range(len(texts))):
            if isinstance(result, IRError):
                raise result
            results.append(result)
        merged = dict(others)
        for k, name in enumerate(self.output_names):
            merged[name] = column_of([outputs[k] for outputs in results])
        return merged

    def run(self, items: Sequence[Samples]) -> list[Outputs | IRError]:
        """The outputs of each item, or its error."""
        texts = [item.arrays[0].ravel().tolist() for item in items]
        flat = [text for item_texts in texts for text in item_texts]
        numbers = [item.number for item_texts, item in zip(texts, items, strict=True) for _ in item_texts]
        results = iter(self.task.run(flat, numbers))
        return [
            _joined([next(results) for _ in item_texts], item) for item_texts, item in zip(texts, items, strict=True)
        ]


def _joined(results: Sequence[Outputs | IRError], item: Samples) -> Outputs | IRError:
    """The outputs of an item, from the outputs of its texts."""
    rows: list[Outputs] = []
    for result in results:
        if isinstance(result, IRError):
            return result
        rows.append(result)
    return rows[0] if item.single else tuple(np.stack(column) for column in zip(*rows, strict=True))


def _port(entry: Field, index: int) -> Port:
    """A port of the predictor: any number of samples of a field."""
    shape = Shape(None, *((None,) if entry.shape is None else entry.shape))
    node = Node(index, entry.name, Parameter(element_type=entry.element, shape=shape))
    output = Output(node, 0, frozenset({entry.name}), type=TensorType(entry.element, shape))
    node.outputs.append(output)
    return Port(node, output, index, output.names)
