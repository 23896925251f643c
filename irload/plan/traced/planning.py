"""Plans a program with symbolic sizes: lowering, passes and segments. `Template` then prepares it for binding."""

from __future__ import annotations

from irload.core.trace import Trace
from irload.options import Options
from irload.plan.backends.registry import backends, integer_products, operation, stores_bf16, supported_steps
from irload.plan.ir.program import Program, Value
from irload.plan.lowering.lower import lower
from irload.plan.passes.integers import lower_integers
from irload.plan.passes.pipeline import optimize
from irload.plan.schedule import StaticPart
from irload.plan.segments import Owners, divide
from irload.plan.traced.growth import Growing, read_in_place, readers, request, split_growing
from irload.plan.traced.late import split_late
from irload.plan.traced.ordering import gather_segments
from irload.plan.traced.program import TracedProgram
from irload.plan.traced.progressions import simplify_progressions
from irload.safety.limits import checkpoint


def traced_program(part: StaticPart, trace: Trace, options: Options, *, grows: bool = True) -> TracedProgram:
    """Plan a part of a graph whose dims are symbols. With `grows`, variables that grow are extended in place."""
    offered = backends(options)
    supports = supported_steps(offered)
    program = lower(part, supports, lambda op: operation(op, offered), options.limits)
    optimize(program, _check, integer_products(offered), supports)
    simplify_progressions(program)
    late = split_late(program)
    given = program.inputs
    lower_integers(program, supports)
    growing: list[Growing] = []
    caller_inputs: list[Value] = []

    def arrange(changed: Program, owners: Owners) -> None:
        if grows and not stores_bf16(offered):
            growing.extend(split_growing(changed, owners, offered[-1], given))
            caller_inputs.extend(read_in_place(changed, owners, offered[-1], growing))
        gather_segments(changed, owners, offered[-1], readers(changed, growing))

    owners, requests = divide(program, offered, _check, arrange)
    request(requests, growing, caller_inputs)
    order = [owners[step] for step in program.steps]
    return TracedProgram(trace, program, given, late, growing, order, requests)


def _check(program: Program, after: str) -> None:
    """Check the deadline; called after each pass."""
    checkpoint()
