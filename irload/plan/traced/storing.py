"""Converts traced programs to JSON and arrays, from which another process restores them without planning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from irload.core.tensor import Array
from irload.core.trace import Trace
from irload.graph import Node
from irload.options import Options
from irload.plan.backends.registry import backends, operation
from irload.plan.folding import Folding
from irload.plan.ir.program import Program
from irload.plan.memory.requests import MemoryRequests
from irload.plan.traced.decoding import PlanDecoder, Source
from irload.plan.traced.encoding import ALIGNMENT, PlanEncoder
from irload.plan.traced.growth import Growing
from irload.plan.traced.program import TracedProgram
from irload.record import record


@record(eq=False)
class StoredProgram:
    """A program as JSON, and its arrays as consecutive byte strings."""

    encoded: Mapping[str, Any]
    arrays: Sequence[bytes | memoryview]


def stored_program(traced: TracedProgram, nodes: Sequence[Node], folding: Folding, largest: int) -> StoredProgram:
    """Convert a program. `nodes`: the layers of the model; `largest`: maximum bytes of arrays. Raises NotStorable."""
    late = {v.source for step in traced.late for v in step.outputs if v.source is not None}
    encode = PlanEncoder(nodes, folding.outputs, late, largest)
    program = traced.program
    encoded = {
        "inputs": encode(program.inputs),
        "outputs": encode(program.outputs),
        "steps": encode(program.steps),
        "given": encode(traced.given),
        "late": encode(traced.late),
        "growing": [[encode(getattr(growing, f.name)) for f in fields(growing)] for growing in traced.growing],
        "owners": [backend.name for backend in traced.owners],
        "layouts": [[encode(value), encode(layout)] for value, layout in traced.requests.layouts.items()],
        "outside": encode(traced.requests.caller_inputs),
        "extended": [encode(step) for step in traced.requests.appending_concats],
        "trace": traced.trace.described(),
    }
    pieces = [piece for a in encode.arrays for piece in (a.reshape(-1).view("u1").data, bytes(-a.nbytes % ALIGNMENT))]
    return StoredProgram({**encoded, "tables": encode.tables, "nodes": list(encode.nodes.items())}, pieces)


def restored_program(encoded: Mapping[str, Any], memory: Array, source: Source, options: Options) -> TracedProgram:
    """Restore a program of the model `source`. `memory`: the bytes of the arrays."""
    offered = backends(options)
    trace = Trace.of(encoded["trace"])
    decode = PlanDecoder(encoded["tables"], memory, trace, source, lambda op: operation(op, offered))
    program = Program(*(decode(encoded[name]) for name in ("steps", "inputs", "outputs")))
    by_name = {backend.name: backend for backend in offered}
    return TracedProgram(
        trace,
        program,
        decode(encoded["given"]),
        decode(encoded["late"]),
        [Growing(*map(decode, each)) for each in encoded["growing"]],
        [by_name[name] for name in encoded["owners"]],
        MemoryRequests(
            {decode(value): decode(layout) for value, layout in encoded["layouts"]},
            appending_concats={decode(step) for step in encoded["extended"]},
            caller_inputs=list(decode(encoded["outside"])),
        ),
    )
