"""The language model of a folder: tokens in, logits of the next token out, with a cache per sequence."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from irload.core.tensor import Array
from irload.errors import ExecutionError, InputInvalid, Unsupported
from irload.graph import Node
from irload.runtime.compiled_model import CompiledModel
from irload.runtime.variables import read_nodes

Context = Mapping[str, Array]
"""Inputs of a decoder that are equal for all tokens: the outputs of an encoder, for one text."""

_KNOWN = ("input_ids", "attention_mask", "position_ids", "beam_idx", "token_type_ids", "cache_position")
ENCODED = ("encoder_hidden_states", "encoder_attention_mask")
PAST, PRESENT = "past_key_values.", "present."
AXIS = 2
"""The axis of tokens in keys and values."""


class Decoder:
    """A compiled decoder; `with_past`: the model of later tokens, if the cache is not state but inputs and outputs.

    `encoded`: the decoder also has the outputs of an encoder as inputs. Raises Unsupported for unknown inputs.
    """

    def __init__(
        self, compiled: CompiledModel, with_past: CompiledModel | None = None, *, encoded: bool = False
    ) -> None:
        self.compiled = compiled
        self.with_past = with_past
        known = (*_KNOWN, *ENCODED) if encoded else _KNOWN
        self.inputs = input_names(compiled, known)
        self.past_inputs = () if with_past is None else input_names(with_past, known)
        """The inputs of `with_past`."""
        unknown = [name for name in self.inputs if name not in known]
        unknown += [name for name in self.past_inputs if name not in known and not name.startswith(PAST)]
        if unknown or "input_ids" not in self.inputs:
            raise Unsupported(
                f"generation supports the inputs {', '.join(known)}; this decoder has {', '.join(self.inputs)}; "
                "export it with its cache as state"
            )
        self.logits = logits_of(compiled)
        self.has_state = with_past is not None or bool(compiled.create_infer_request().query_state())
        self.axes = dict(map(_growing, read_nodes(compiled.model)))
        """The axis of the tokens in each variable; None if several axes, or none, are dynamic."""

    def token_ids(self, prompt: object) -> list[int]:
        """The ids of a prompt. Raises InputInvalid unless they are integers in the vocabulary."""
        numbers = isinstance(prompt, Sequence | np.ndarray) and all(isinstance(k, int | np.integer) for k in prompt)
        if not numbers:
            raise InputInvalid(f"a prompt is a text or a list of integer ids, found {reprlib.repr(prompt)}")
        ids = [int(k) for k in cast(Sequence[int], prompt)]
        shape = self.compiled.outputs[self.logits].partial_shape
        size = shape[-1].hi if shape.rank else None
        for id in ids:
            if id < 0 or (size is not None and id >= size):
                vocabulary = "vocabulary" if size is None else f"vocabulary of {size} tokens"
                raise InputInvalid(f"token id {id} is outside the {vocabulary}")
        return ids

    def cache(self, context: Context | None = None) -> Cache:
        """An empty cache, for one sequence or the beams of one."""
        if self.with_past is not None:
            return PastCache(self, self.with_past, context or {})
        return Cache(self, context or {})


def logits_of(compiled: CompiledModel) -> int:
    """The index of the output `logits`; 0 if no output has this name."""
    return next((k for k, port in enumerate(compiled.outputs) if "logits" in port.names), 0)


def input_names(compiled: CompiledModel, known: Sequence[str]) -> tuple[str, ...]:
    """The name of each input: one of `known` if it has one."""
    return tuple(next((n for n in known if n in port.names), port.any_name) for port in compiled.inputs)


def _growing(node: Node) -> tuple[str, int | None]:
    """The name of a variable, and its dynamic axis after the batch."""
    shape = node.op.attributes.get("variable_shape")
    axes = [] if shape is None or shape.rank is None else [k for k in range(1, shape.rank) if not shape[k].is_static]
    return node.op.attributes["variable_id"], axes[0] if len(axes) == 1 else None


class Cache:
    """The keys and values of one sequence, or of the beams of one: an infer request and the number of its tokens."""

    def __init__(self, decoder: Decoder, context: Context) -> None:
        self._decoder = decoder
        self._context = context
        self._request = decoder.compiled.create_infer_request()
        self._tokens = np.zeros((1, 0), np.int64)
        """For models without state: all tokens so far. Each call computes all of them again."""
        self.length = 0

    def extend(self, tokens: Array, parents: Sequence[int] | None = None) -> Array:
        """The logits after each of the new tokens, [beams, new tokens, vocabulary].

        `tokens`: i64 [beams, new tokens]. `parents`: for each beam the earlier beam that it continues.
        """
        rows, count = tokens.shape
        if not self._decoder.has_state:
            previous = self._tokens if parents is None else self._tokens[list(parents)]
            tokens = self._tokens = np.concatenate([previous, tokens], 1)
            self.length = 0
        total = self.length + tokens.shape[1]
        positions = np.arange(self.length, total, dtype=np.int64)
        feeds: dict[str, Any] = {
            "input_ids": tokens,
            "attention_mask": np.ones((rows, total), np.int64),
            "position_ids": np.tile(positions, (rows, 1)),
            "beam_idx": np.array(range(rows) if parents is None else parents, np.int32),
            "token_type_ids": np.zeros_like(tokens),
            "cache_position": positions,
        }
        feeds |= {n: value if rows == 1 else np.repeat(value, rows, 0) for n, value in self._context.items()}
        logits = self._logits(feeds, parents)
        self.length = total
        if logits.ndim != 3 or logits.shape[:2] != (rows, tokens.shape[1]):
            raise ExecutionError(f"expected logits [{rows},{tokens.shape[1]},vocabulary], found {list(logits.shape)}")
        return logits[:, -count:]

    def _logits(self, feeds: Mapping[str, Any], parents: Sequence[int] | None) -> Array:
        results = self._request.infer([feeds[name] for name in self._decoder.inputs])
        return results[self._decoder.logits]

    def shorten(self, count: int) -> None:
        """Remove the last `count` tokens. Raises Unsupported for a cache whose layout is not recognised."""
        if not count:
            return
        length = self.length - count
        if not self._decoder.has_state:
            self._tokens = self._tokens[:, :length]
        else:
            for variable in self._request.query_state():
                value, axis = variable.state, self._decoder.axes.get(variable.name)
                if value is None or axis is None or value.shape[axis] != self.length:
                    raise Unsupported(
                        f"lookup shortens the cache, and variable {variable.name} has no single axis with its "
                        f"{self.length} tokens; omit lookup"
                    )
                variable.state = value[(slice(None),) * axis + (slice(length),)]
        self.length = length


class PastCache(Cache):
    """A cache of the outputs `present.…`: the first model, and afterwards `with_past`, return keys and values."""

    def __init__(self, decoder: Decoder, with_past: CompiledModel, context: Context) -> None:
        super().__init__(decoder, context)
        later = with_past.create_infer_request()
        self._first = decoder.compiled, self._request, decoder.inputs
        self._later = with_past, later, decoder.past_inputs
        self._past: dict[str, Array] = {}

    def _logits(self, feeds: Mapping[str, Any], parents: Sequence[int] | None) -> Array:
        if parents is not None:
            self._past = {name: value[list(parents)] for name, value in self._past.items()}
        compiled, request, names = self._later if self._past else self._first
        all_feeds = {**feeds, **self._past}
        results = request.infer([all_feeds[name] for name in names])
        for port, value in zip(compiled.outputs, results.values(), strict=True):
            name = next((n for n in port.names if n.startswith(PRESENT)), None)
            if name is not None:
                self._past[PAST + name.removeprefix(PRESENT)] = value
        return results[logits_of(compiled)]

    def shorten(self, count: int) -> None:
        """Remove the last `count` tokens. The keys and values of the encoder's tokens remain."""
        if count:
            self.length -= count
            for name, value in self._past.items():
                if ".encoder." not in name:
                    self._past[name] = value[(slice(None),) * AXIS + (slice(self.length),)]
