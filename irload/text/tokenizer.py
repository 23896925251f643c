"""Tokenizer: converts texts to token ids and back with the tokenizer models of a folder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack, overload

import numpy as np

from irload.compiling import compile_model
from irload.core.tensor import Array
from irload.errors import InputInvalid
from irload.options import CompileOptions
from irload.read.folders import DETOKENIZER, TOKENIZER
from irload.runtime.compiled_model import CompiledModel
from irload.text.folder import Folder
from irload.text.row_decoder import RowDecoder, row_decoder

__all__ = ["Tokenizer"]


class Tokenizer:
    """The tokenizer of a folder with openvino_tokenizer.xml and openvino_detokenizer.xml.

    `folder`: the path. `options`: as for `compile_model`. Each model is read on first use. Raises ReadError for a path
    that is not a folder.
    """

    def __init__(self, folder: str | Path, **options: Unpack[CompileOptions]) -> None:
        self._folder = Folder(folder)
        self._options = options

    def __repr__(self) -> str:
        return f"<Tokenizer of {self._folder.path}>"

    @overload
    def encode(self, texts: str) -> list[int]: ...

    @overload
    def encode(self, texts: Sequence[str]) -> dict[str, Array]: ...

    def encode(self, texts: str | Sequence[str]) -> list[int] | dict[str, Array]:
        """Return the token ids of a text; for several texts, the model's outputs by name, padded to equal lengths.

        The outputs are `input_ids` and `attention_mask`, which is 0 for padding, and for some models `token_type_ids`;
        i64 [texts, length]. Invalid bytes are passed as surrogates (`errors="surrogateescape"`). Raises ReadError
        without a tokenizer, and Unsupported without the packages of `irload[text]`.
        """
        single = isinstance(texts, str)
        outputs = self._encoded([texts] if isinstance(texts, str) else list(texts))
        return kept_ids(outputs)[0] if single else outputs

    def encode_each(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text without padding. Raises the errors of `encode`."""
        return kept_ids(self._encoded(list(texts))) if texts else []

    def _encoded(self, texts: list[str]) -> dict[str, Array]:
        if not all(isinstance(text, str) for text in texts):
            raise InputInvalid("a tokenizer takes a text or a sequence of texts")
        array = np.empty(len(texts), object)
        array[:] = texts
        return self._tokenizer.create_infer_request().infer([array]).to_dict()

    @overload
    def decode(self, ids: Sequence[int]) -> str: ...

    @overload
    def decode(self, ids: Sequence[Sequence[int]] | Array) -> list[str]: ...

    def decode(self, ids: Any) -> str | list[str]:
        """Return the text of a sequence of ids, or a list of texts for rows of ids; special tokens are omitted.

        Bytes that are not UTF-8 become U+FFFD: detokenizers keep encoded surrogates and code points beyond U+10FFFF.
        Raises ReadError without a detokenizer, and InputInvalid for other values.
        """
        if not isinstance(ids, np.ndarray) and all(isinstance(k, int | np.integer) for k in ids):
            return self._row([int(k) for k in ids])
        if isinstance(ids, np.ndarray) and ids.ndim == 2:
            return self._decoded(ids)
        if isinstance(ids, np.ndarray) and ids.ndim == 1:
            return self._decoded(ids[None])[0]
        return [self._row([int(k) for k in row]) for row in ids]

    def _row(self, ids: list[int]) -> str:
        if self._rows is not None:
            try:
                return _readable(self._rows.text(ids))
            except OverflowError:  # ids beyond 32 bits, which the model converts
                pass
        return self._decoded(np.array([ids], np.int64).reshape(1, -1))[0]

    def _decoded(self, ids: Array) -> list[str]:
        if ids.dtype.kind not in "iu":
            raise InputInvalid(f"ids must be integers, found {ids.dtype}")
        return [_readable(str(text)) for text in self._detokenizer([ids])[0].ravel()]

    @cached_property
    def _tokenizer(self) -> CompiledModel:
        return compile_model(self._folder.file(TOKENIZER), **self._options)

    @cached_property
    def _rows(self) -> RowDecoder | None:
        return row_decoder(self._detokenizer.model) if self._options.get("optimize", True) else None

    @cached_property
    def _detokenizer(self) -> CompiledModel:
        return compile_model(self._folder.file(DETOKENIZER), **self._options)


def _readable(text: str) -> str:
    """The text with U+FFFD for each byte that is not UTF-8, as OpenVINO's Python API decodes strings."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def kept_ids(outputs: dict[str, Array]) -> list[list[int]]:
    """The ids of each row that are not padding."""
    rows = kept_rows(outputs)
    return rows["input_ids"] if "input_ids" in rows else next(iter(rows.values()))


def kept_rows(outputs: dict[str, Array]) -> dict[str, list[list[int]]]:
    """For each output except the mask, the elements of each row that are not padding."""
    mask = outputs.get("attention_mask")
    rows: dict[str, list[list[int]]] = {}
    for name, output in outputs.items():
        if mask is None:
            rows[name] = output.tolist()
        elif output is not mask:
            rows[name] = [row[kept].tolist() for row, kept in zip(output, mask.astype(bool), strict=True)]
    return rows
