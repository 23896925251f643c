"""Applies the text model of a folder to texts: returns embeddings, classes or generated texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from irload.compiling import compile_model
from irload.core.element import ElementType, f32, string
from irload.core.tensor import Array
from irload.errors import ExecutionError, InputInvalid, IRError, Unsupported
from irload.options import CompileOptions
from irload.read.folders import MODEL
from irload.runtime.compiled_model import CompiledModel
from irload.text.chat import require_template
from irload.text.classes import Classes
from irload.text.encoder import Batch, Encoder
from irload.text.folder import Folder
from irload.text.generation import TextGeneration
from irload.text.pooling import Pooling
from irload.text.settings import GenerationOptions, Settings
from irload.text.tokenizer import Tokenizer

__all__ = ["Field", "Results", "TextOptions", "TextTask", "task_of"]

Results = tuple[Array, ...]
"""The results for one text, one array per field."""
SIZE = 32
"""The default number of texts per inference."""
_GENERATES = ("CausalLM", "LMHead", "ConditionalGeneration", "Seq2SeqLM")
"""Parts of the names of classes that generate texts."""


@dataclass(frozen=True, slots=True)
class Field:
    """One result per text: its name, element type, and shape, None if it varies."""

    name: str
    element: ElementType
    shape: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class TextOptions:
    """`generation`: the options of generated texts; `chat`: each text is the message of a user, for the template."""

    generation: GenerationOptions = field(default_factory=GenerationOptions)
    chat: bool = False


class TextTask(Protocol):
    """Maps texts to results. `together`: the number of texts up to which larger calls take less time per text."""

    @property
    def compiled(self) -> CompiledModel: ...
    @property
    def fields(self) -> tuple[Field, ...]: ...
    @property
    def labels(self) -> tuple[str, ...]: ...
    @property
    def together(self) -> int: ...
    @property
    def words(self) -> str: ...

    def run(self, texts: Sequence[str], numbers: Sequence[int]) -> list[Results | IRError]:
        """The results of each text, or its error. `numbers`: one per text, to select its stream of random numbers."""
        ...


def task_of(
    folder: Folder,
    batch_size: int | None = None,
    threads: int | None = None,
    options: TextOptions | None = None,
    compile: CompileOptions | None = None,
) -> TextTask:
    """The task of a folder, by its files and the outputs of its model.

    Raises InputInvalid for options of generation and a model that does not generate, Unsupported for a model that
    neither embeds nor classifies nor generates, and the errors of `compile_model`.
    """
    compiled = None
    generates = folder.has_encoder or any(part in name for name in folder.architectures for part in _GENERATES)
    if folder.modules or not generates:
        compiled = compile_model(folder.file(MODEL), threads, **(compile or {}))
    options = options or TextOptions()
    if compiled is None or (not folder.modules and compiled.create_infer_request().query_state()):
        return Generating(TextGeneration(folder.path, threads, **(compile or {})), options)
    if options != TextOptions():
        raise InputInvalid(f"options of text generation require a language model; {folder.path} is not one")
    outputs = {name: k for k, port in enumerate(compiled.outputs) for name in port.names}
    hidden = next((n for n in ("sentence_embedding", "last_hidden_state", "token_embeddings") if n in outputs), None)
    logits = outputs.get("logits")
    classifies = logits is not None and compiled.outputs[logits].partial_shape.rank == 2
    lower = folder.sentences.get("do_lower_case") is True
    tokenizer = Tokenizer(folder.path)
    encoder = Encoder(folder, compiled, tokenizer, batch_size or SIZE, folder.longest, lower=lower)
    if hidden is not None:
        return Embedding(encoder, outputs[hidden], Pooling.of(folder))
    if logits is not None and classifies:
        return Classifying(encoder, logits, folder)
    raise Unsupported(
        f"{MODEL} has the outputs {', '.join(sorted(outputs)) or 'without names'}; a text model needs "
        "sentence_embedding, last_hidden_state, or logits [texts, classes]"
    )


class _Encoding:
    """Base of tasks that run an encoder once per text."""

    def __init__(self, encoder: Encoder, output: int) -> None:
        self._encoder = encoder
        self._output = output
        self.compiled = encoder.compiled
        self.labels: tuple[str, ...] = ()
        self.together = 1024
        self.words = f"up to {encoder.size} texts of similar length at a time"
        self.size = _last_dim(self.compiled, output)

    def run(self, texts: Sequence[str], numbers: Sequence[int]) -> list[Results | IRError]:
        """The results of each text. If the inference of several texts fails, each is run separately for its error."""
        results: list[Results | IRError] = [ExecutionError("the text has no result")] * len(texts)
        try:
            for batch in self._encoder.batches(texts):
                for k, result in zip(batch.texts, self.results(batch, batch.outputs[self._output]), strict=True):
                    results[k] = result
        except IRError as error:
            if len(texts) == 1 or isinstance(error, Unsupported):
                return [error] * len(texts)
            return [self.run([text], [number])[0] for text, number in zip(texts, numbers, strict=True)]
        return results

    def results(self, batch: Batch, output: Array) -> Iterator[Results]:
        """The results of the texts of a batch."""
        raise NotImplementedError


class Embedding(_Encoding):
    """Embeddings: the pooled vectors of tokens, or the model's output `sentence_embedding`."""

    def __init__(self, encoder: Encoder, output: int, pooling: Pooling) -> None:
        super().__init__(encoder, output)
        self._pooling = pooling
        pooled = self.compiled.outputs[output].partial_shape.rank == 2
        count = 1 if pooled else len(pooling.modes)
        self.fields = (Field("embedding", f32, None if self.size is None else (self.size * count,)),)

    def results(self, batch: Batch, output: Array) -> Iterator[Results]:
        embeddings = (
            self._pooling.normalized(output.astype(np.float32, copy=False))
            if output.ndim == 2
            else self._pooling.embeddings(output, batch.mask)
        )
        return ((row,) for row in embeddings)


class Classifying(_Encoding):
    """The label with the largest score, its score, and the scores of all classes."""

    def __init__(self, encoder: Encoder, output: int, folder: Folder) -> None:
        super().__init__(encoder, output)
        self._folder = folder
        self._classes = Classes.of(folder, self.size or 0)
        self.labels = self._classes.labels
        shape = None if self.size is None else (self.size,)
        self.fields = (Field("label", string, ()), Field("score", f32, ()), Field("scores", f32, shape))

    def results(self, batch: Batch, output: Array) -> Iterator[Results]:
        if output.shape[1] != len(self._classes.labels):
            self._classes = Classes.of(self._folder, output.shape[1])
        for row in self._classes.scores(output):
            best = int(row.argmax())
            yield np.array(self._classes.labels[best], object), row[best], row


class Generating:
    """The generated text, and the reason why it ended."""

    fields = (Field("generated_text", string, ()), Field("finish", string, ()))
    labels: tuple[str, ...] = ()
    together = 64

    def __init__(self, model: TextGeneration, options: TextOptions) -> None:
        self._model = model
        self._options = options
        self.compiled = model.compiled
        self.words = "up to 8 texts at a time"
        Settings.of(model.folder, **options.generation)  # fail early for invalid options
        if options.chat:
            require_template(model.folder, "omit chat=True (irrun --chat)")

    def run(self, texts: Sequence[str], numbers: Sequence[int]) -> list[Results | IRError]:
        prompts: Sequence[Any] = texts
        if self._options.chat:
            prompts = [[{"role": "user", "content": text}] for text in texts]
        by_index: dict[int, Results | IRError] = {}
        parts = self._model.run(prompts, live=False, keep_going=True, numbers=numbers, **self._options.generation)
        for part in parts:
            if part.error is not None:
                by_index[part.index] = part.error
            elif part.result is not None:
                by_index[part.index] = np.array(part.result.text, object), np.array(part.result.finish, object)
        return [by_index[k] for k in range(len(texts))]


def _last_dim(compiled: CompiledModel, output: int) -> int | None:
    shape = compiled.outputs[output].partial_shape
    return shape[-1].lo if shape.rank and shape[-1].is_static else None
