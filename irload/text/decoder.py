"""The language model of a folder: tokens in, logits of the next token out, with a cache per sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.errors import ExecutionError, Unsupported
from irload.graph import Node
from irload.runtime.compiled_model import CompiledModel
from irload.runtime.variables import read_nodes

_KNOWN = ("input_ids", "attention_mask", "position_ids", "beam_idx", "token_type_ids")


class Decoder:
    """A compiled decoder. Raises Unsupported for inputs that generation does not feed."""

    def __init__(self, compiled: CompiledModel) -> None:
        self.compiled = compiled
        self.inputs = tuple(_name(port.names, port.any_name) for port in compiled.inputs)
        unknown = [name for name in self.inputs if name not in _KNOWN]
        if unknown or "input_ids" not in self.inputs:
            raise Unsupported(
                f"generation feeds a decoder {', '.join(_KNOWN)}; this model takes {', '.join(self.inputs)}; "
                "export it with its cache as state"
            )
        named = [k for k, port in enumerate(compiled.outputs) if "logits" in port.names]
        self.logits = named[0] if named else 0
        self.has_state = bool(compiled.create_infer_request().query_state())
        self.axes = dict(map(_growing, read_nodes(compiled.model)))
        """The axis of the tokens in each variable, None if it is not unique."""

    def cache(self) -> Cache:
        """An empty cache, for one sequence or the beams of one."""
        return Cache(self)


def _growing(node: Node) -> tuple[str, int | None]:
    """The name of a variable, and its dynamic axis after the batch."""
    shape = node.op.attributes.get("variable_shape")
    axes = [] if shape is None or shape.rank is None else [k for k in range(1, shape.rank) if not shape[k].is_static]
    return node.op.attributes["variable_id"], axes[0] if len(axes) == 1 else None


def _name(names: Sequence[str] | frozenset[str], fallback: str) -> str:
    return next((name for name in _KNOWN if name in names), fallback)


class Cache:
    """The keys and values of one sequence, or of the beams of one: an infer request and the number of its tokens."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self._request = decoder.compiled.create_infer_request()
        self._tokens = np.zeros((1, 0), np.int64)
        """Without state: all tokens, which are computed again for each token."""
        self.length = 0

    def extend(self, tokens: Array, parents: Sequence[int] | None = None) -> Array:
        """The logits after each of the new tokens, [beams, new tokens, vocabulary].

        `tokens`: i64 [beams, new tokens]. `parents`: for each beam the earlier beam that it continues.
        """
        rows, count = tokens.shape
        if not self._decoder.has_state:
            before = self._tokens if parents is None else self._tokens[list(parents)]
            tokens = self._tokens = np.concatenate([before, tokens], 1)
            self.length = 0
        total = self.length + tokens.shape[1]
        feeds: dict[str, Any] = {
            "input_ids": tokens,
            "attention_mask": np.ones((rows, total), np.int64),
            "position_ids": np.tile(np.arange(self.length, total, dtype=np.int64), (rows, 1)),
            "beam_idx": np.array(range(rows) if parents is None else parents, np.int32),
            "token_type_ids": np.zeros_like(tokens),
        }
        results = self._request.infer([feeds[name] for name in self._decoder.inputs])
        logits = results[self._decoder.logits]
        self.length = total
        if logits.ndim != 3 or logits.shape[:2] != (rows, tokens.shape[1]):
            raise ExecutionError(f"expected logits [{rows},{tokens.shape[1]},vocabulary], found {list(logits.shape)}")
        return logits[:, -count:]

    def shorten(self, count: int) -> None:
        """Remove the last `count` tokens. Raises Unsupported for a cache whose layout is not recognised."""
        if not count:
            return
        kept = self.length - count
        if not self._decoder.has_state:
            self._tokens = self._tokens[:, :kept]
        else:
            for variable in self._request.query_state():
                value, axis = variable.state, self._decoder.axes.get(variable.name)
                if value is None or axis is None or value.shape[axis] != self.length:
                    raise Unsupported(
                        f"lookup shortens the cache, and variable {variable.name} has no axis that surely holds its "
                        f"{self.length} tokens; leave lookup out"
                    )
                variable.state = value[(slice(None),) * axis + (slice(kept),)]
        self.length = kept
