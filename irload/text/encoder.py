"""Runs an encoder on texts: tokenizes them, forms batches of texts of similar length, and returns outputs per text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from irload.core.tensor import Array
from irload.errors import Unsupported
from irload.runtime.compiled_model import CompiledModel
from irload.text.decoder import input_names
from irload.text.folder import Folder
from irload.text.tokenizer import Tokenizer, kept_rows

TOGETHER = 64
"""Texts per call of the tokenizer, which pads all to the longest."""
STEP = 8
"""Lengths of batches are multiples of it, so that many batches share a plan."""
_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "position_ids")


@dataclass(frozen=True, slots=True)
class Batch:
    """The outputs for several texts: `texts`, their indices; `mask`, i64 [texts, length], 1 for tokens."""

    texts: tuple[int, ...]
    mask: Array
    outputs: tuple[Array, ...]


class Encoder:
    """A compiled model with the inputs `input_ids`, `attention_mask`, `token_type_ids` and `position_ids`.

    All inputs except the first are optional. Without a mask, only texts of equal length share an inference. `size`: the
    number of texts per inference. `limit`: the length to which texts are truncated. Raises Unsupported for any other
    input.
    """

    def __init__(
        self,
        folder: Folder,
        compiled: CompiledModel,
        tokenizer: Tokenizer,
        size: int,
        limit: int | None,
        *,
        lower: bool,
    ) -> None:
        self.compiled = compiled
        self.inputs = input_names(compiled, _INPUTS)
        unknown = [name for name in self.inputs if name not in _INPUTS]
        if unknown or "input_ids" not in self.inputs:
            raise Unsupported(f"a text model takes {', '.join(_INPUTS)}; this one takes {', '.join(self.inputs)}")
        self._tokenizer = tokenizer
        self.size = size
        self._limit = limit
        self._lower = lower
        self._padding = folder.padding_id
        self._suffix: int | None = None

    def batches(self, texts: Sequence[str]) -> Iterator[Batch]:
        """The outputs for all texts, which are sorted by length."""
        rows = self._rows([text.lower() for text in texts] if self._lower else texts)
        order = sorted(range(len(rows)), key=lambda k: -len(rows[k]["input_ids"]))
        masked = "attention_mask" in self.inputs
        begin = 0
        while begin < len(order):
            length = len(rows[order[begin]]["input_ids"])
            end = min(begin + self.size, len(order))
            while not masked and len(rows[order[end - 1]]["input_ids"]) < length:
                end -= 1
            yield self._batch(rows, order[begin:end], self._padded(length) if masked else length)
            begin = end

    def _padded(self, length: int) -> int:
        """The length of a batch: a multiple of STEP unless it would exceed the limit."""
        padded = -(-max(length, 1) // STEP) * STEP
        return padded if self._limit is None else max(min(padded, self._limit), length)

    def _batch(self, rows: list[dict[str, list[int]]], texts: list[int], length: int) -> Batch:
        shape = len(texts), length
        ids, types, mask = np.full(shape, self._padding, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for k, text in enumerate(texts):
            row = rows[text]
            count = len(row["input_ids"])
            ids[k, :count] = row["input_ids"]
            types[k, :count] = row.get("token_type_ids", 0)
            mask[k, :count] = 1
        positions = np.tile(np.arange(length, dtype=np.int64), (len(texts), 1))
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types, "position_ids": positions}
        results = self.compiled.create_infer_request().infer([feeds[name] for name in self.inputs])
        return Batch(tuple(texts), mask, tuple(results.values()))

    def _rows(self, texts: Sequence[str]) -> list[dict[str, list[int]]]:
        """The outputs of the tokenizer for each text, without padding."""
        order = sorted(range(len(texts)), key=lambda k: len(texts[k]))
        rows: list[dict[str, list[int]]] = [{}] * len(texts)
        for begin in range(0, len(order), TOGETHER):
            chunk = order[begin : begin + TOGETHER]
            outputs = kept_rows(self._tokenizer.encode([texts[k] for k in chunk]))
            for row, k in enumerate(chunk):
                rows[k] = {name: self._truncated(values[row]) for name, values in outputs.items()}
        return rows

    def _truncated(self, row: list[int]) -> list[int]:
        """Truncate a row to the limit, but keep the special tokens at its end."""
        if self._limit is None or len(row) <= self._limit:
            return row
        suffix = self._suffix_length()
        return row[: self._limit - suffix] + row[len(row) - suffix :]

    def _suffix_length(self) -> int:
        """The number of special tokens that the tokenizer appends to a text."""
        if self._suffix is None:
            empty, some = self._tokenizer.encode_each(["", "a"])
            self._suffix = 0
            for one, other in zip(empty[::-1], some[::-1], strict=False):
                if one != other:
                    break
                self._suffix += 1
        return self._suffix
