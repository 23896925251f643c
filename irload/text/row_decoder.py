"""Decodes single rows of ids without running the detokenizer model, if it only maps tokens to strings and joins them.

Running the model takes about 1 ms per call, which is too long for a text that grows token by token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from irload.core.tensor import Array
from irload.graph import Graph, Node, Output
from irload.ops.infrastructure.endpoints import Const
from irload.ops.text.bytes import ByteFallback, CharsToBytes, FuzeRagged, byte_token, bytes_of_characters
from irload.ops.text.ragged import pieces_of
from irload.ops.text.regexes import RegexNormalization
from irload.ops.text.utf8 import UTF8Validate
from irload.ops.text.vocabulary import VocabDecoder
from irload.ops.type.convert import Convert
from irload.ops.type.strings import StringTensorPack

Change = Callable[[bytes], bytes]
_I32 = np.iinfo(np.int32)


class RowDecoder:
    """`tokens`: the string of each id; `parts`, `whole`: functions applied to each string, and to the joined text."""

    def __init__(self, tokens: Sequence[bytes], parts: Sequence[Change], whole: Sequence[Change]) -> None:
        self._tokens = tokens
        self._parts = parts
        self._whole = whole
        self._changed: dict[int, bytes] = {}

    def text(self, ids: Sequence[int]) -> str:
        """The text of a row of ids. Raises OverflowError for ids beyond 32 bits."""
        joined = b"".join(map(self._part, ids)) if ids else _applied(self._parts, b"")
        return _applied(self._whole, joined).decode("utf-8", "surrogateescape")

    def _part(self, id: int) -> bytes:
        changed = self._changed.get(id)
        if changed is None:
            if not _I32.min <= id <= _I32.max:
                raise OverflowError
            token = self._tokens[id] if 0 <= id < len(self._tokens) else b""
            changed = _applied(self._parts, token)
            if token:
                self._changed[int(id)] = changed
        return changed


def row_decoder(graph: Graph) -> RowDecoder | None:
    """The decoder of a detokenizer, None if its graph has other operations."""
    if len(graph.parameters) != 1 or len(graph.results) != 1 or graph.sinks:
        return None
    chain = _chain(graph.results[0].inputs[0])
    if chain is None or type(chain[0].op) is not VocabDecoder:
        return None
    tokens = _tokens(chain[0])
    fused = [k for k, node in enumerate(chain) if type(node.op) in (FuzeRagged, CharsToBytes)]
    if tokens is None or len(fused) != 1:
        return None
    join = fused[0]
    parts, whole = _changes(chain[1:join]), _changes(chain[join + 1 :])
    if parts is None or whole is None:
        return None
    if type(chain[join].op) is CharsToBytes:
        parts.append(bytes_of_characters)
    return RowDecoder(tokens, parts, whole)


def _applied(changes: Sequence[Change], text: bytes) -> bytes:
    for change in changes:
        text = change(text)
    return text


def _chain(result: Output) -> list[Node] | None:
    """The operations from VocabDecoder to the strings of the result, None if it is not a chain."""
    packed = result.node
    if not isinstance(packed.op, StringTensorPack) or len(packed.inputs) != 3:
        return None
    nodes: list[Node] = []
    begins, ends, chars = packed.inputs
    while True:
        node = begins.node
        if type(node.op) is VocabDecoder:
            rows = [(node, k) for k in (2, 3, 4)]
            return [node, *nodes[::-1]] if [(o.node, o.index) for o in (begins, ends, chars)] == rows else None
        nodes.append(node)
        if (begins.index, ends.index) != (0, 1) or ends.node is not node:
            return None
        if type(node.op) is FuzeRagged:
            if [o.index for o in node.inputs[:2]] != [0, 1] or node.inputs[0].node is not node.inputs[1].node:
                return None
            begins, ends = node.inputs[2:]
        elif chars.node is not node or chars.index != 2:
            return None
        elif type(node.op) is CharsToBytes:
            begins, ends, chars = node.inputs[2:]
        elif len(node.inputs) >= 3:
            begins, ends, chars = node.inputs[:3]
        else:
            return None


def _tokens(node: Node) -> list[bytes] | None:
    """The strings of all ids of VocabDecoder, empty for ids that it skips."""
    ids = node.inputs[0].node
    while isinstance(ids.op, Convert):
        ids = ids.inputs[0].node
    constants = [_constant(o) for o in node.inputs[1:]]
    present = [c for c in constants if c is not None]
    if ids.type != "Parameter" or len(present) < len(constants):
        return None
    tokens = pieces_of(*present[:3])
    skipped = present[3].tolist() if len(present) == 4 else node.op.attributes["skip_tokens"]
    for id in skipped:
        if 0 <= id < len(tokens):
            tokens[id] = b""
    return tokens


def _changes(nodes: Sequence[Node]) -> list[Change] | None:
    changes: list[Change] = []
    for node in nodes:
        op, others = node.op, [_constant(o) for o in node.inputs[3:]]
        if isinstance(op, RegexNormalization) and len(others) == 2 and others[0] is not None and others[1] is not None:
            changes.append(op.change(others[0], others[1]))
        elif isinstance(op, UTF8Validate):
            changes.append(op.change)
        elif isinstance(op, ByteFallback):
            changes.append(byte_token)
        else:
            return None
    return changes


def _constant(output: Output) -> Array | None:
    return output.node.op.data() if isinstance(output.node.op, Const) else None
