"""Embeddings of texts from the vectors of their tokens, as the files of sentence-transformers specify."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, cast

import numpy as np

from irload.core.tensor import Array
from irload.errors import Unsupported
from irload.text.folder import Folder

Pool = Callable[[Array, Array], Array]
"""Maps hidden states [texts, length, size] and a mask f32 [texts, length, 1] to [texts, size]."""


def _mean(hidden: Array, mask: Array) -> Array:
    return (hidden * mask).sum(1) / np.maximum(mask.sum(1), 1e-9)


def _weighted(hidden: Array, mask: Array) -> Array:
    weights = mask * np.arange(1, mask.shape[1] + 1, dtype=np.float32)[None, :, None]
    return (hidden * weights).sum(1) / np.maximum(weights.sum(1), 1e-9)


def _last(hidden: Array, mask: Array) -> Array:
    ends = mask.shape[1] - 1 - mask[:, ::-1, 0].argmax(1)
    return hidden[np.arange(len(hidden)), ends]


_POOLS: Mapping[str, Pool] = {
    "cls": lambda hidden, mask: hidden[:, 0],
    "lasttoken": _last,
    "max": lambda hidden, mask: np.where(mask > 0, hidden, np.float32(-np.inf)).max(1),
    "mean": _mean,
    "mean_sqrt_len_tokens": lambda hidden, mask: (hidden * mask).sum(1) / np.sqrt(np.maximum(mask.sum(1), 1e-9)),
    "weightedmean": _weighted,
}
"""The modes of `pooling_mode` in 1_Pooling/config.json."""
_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""The flags that state the modes in earlier files."""


@dataclass(frozen=True, slots=True)
class Pooling:
    """`modes`: of _POOLS, whose results are concatenated. `normalize`: divide embeddings by their Euclidean norms."""

    modes: tuple[str, ...] = ("mean",)
    normalize: bool = False

    @staticmethod
    def of(folder: Folder) -> Pooling:
        """The pooling of modules.json; the mean without it. Raises Unsupported for modules that are not computed."""
        modes: tuple[str, ...] = ()
        normalize = False
        for module in folder.modules:
            kind = str(module.get("type", "")).rpartition(".")[2]
            if kind == "Pooling":
                path = PurePosixPath(str(module.get("path", "")), "config.json")
                modes = _modes(folder.document(str(path)), str(path))
            elif kind == "Normalize":
                normalize = True
            elif kind != "Transformer":
                raise Unsupported(
                    f"modules.json of {folder.path} has the module {kind}; irload computes Transformer, Pooling and "
                    "Normalize; export the whole model (optimum-cli export openvino --library sentence_transformers)"
                )
        return Pooling(modes or ("mean",), normalize)

    def embeddings(self, hidden: Array, mask: Array) -> Array:
        """The embeddings f32 [texts, size] of hidden states [texts, length, size]; `mask` [texts, length]."""
        hidden, mask = hidden.astype(np.float32, copy=False), mask.astype(np.float32)[:, :, None]
        parts = [_POOLS[mode](hidden, mask) for mode in self.modes]
        return self.normalized(np.concatenate(parts, 1) if len(parts) > 1 else parts[0])

    def normalized(self, embeddings: Array) -> Array:
        """The embeddings, divided by their norms if the folder states so."""
        if not self.normalize:
            return embeddings
        return embeddings / np.maximum(np.linalg.norm(embeddings, axis=1, keepdims=True), 1e-12)


def _modes(config: Mapping[str, Any], file: str) -> tuple[str, ...]:
    named = config.get("pooling_mode")
    listed = cast(list[Any], named) if isinstance(named, list) else [] if named is None else [named]
    modes = [str(mode) for mode in listed] or [mode for flag, mode in _FLAGS.items() if config.get(flag) is True]
    unknown = [mode for mode in modes if mode not in _POOLS]
    if unknown:
        raise Unsupported(f"{file} has the pooling mode {unknown[0]}; irload computes {', '.join(_POOLS)}")
    return tuple(modes)
