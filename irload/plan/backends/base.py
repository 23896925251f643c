"""The contract of back ends, which compile steps into executables.

A program is offered to the back ends in registration order. Each may rewrite the steps it supports; every step belongs
to the first back end that supports it. Consecutive steps of one back end form a segment, which is compiled in one call,
with memory planned from the requests of all back ends.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from irload.options import Options
from irload.record import record

if TYPE_CHECKING:
    from irload.core.op import Op
    from irload.core.tensor import Array
    from irload.core.trace import Trace
    from irload.plan.ir.program import Program, Step, Value
    from irload.plan.memory.aliases import Aliases
    from irload.plan.memory.memory import Memory
    from irload.plan.memory.requests import MemoryRequests

__all__ = ["Backend", "Executable", "Options", "SharedData", "StepKernel", "foremost"]


SharedData = dict[str, Any]
"""Data that the plans of one model share, such as packed weights, by name of the back end."""


@record()
class StepKernel:
    """A kernel of a segment.

    `why`: a short reason for its selection; `arithmetic`: the type of its products (f32, bf16 or int8).
    """

    step: Step
    name: str
    why: str = ""
    arithmetic: str = "f32"


class Executable(Protocol):
    """A compiled segment, bound to memory. Runs at most one inference at a time."""

    @property
    def kernels(self) -> Sequence[StepKernel]:
        """The kernels in order. Steps without work, such as views, have no kernel."""
        ...

    @property
    def nbytes(self) -> Mapping[str, int]:
        """Bytes held in addition to values and constants, by purpose."""
        ...

    def run(self, context: Any) -> None:
        """Run all kernels. `context` is the current inference, or None.

        Raises the errors of operations, and LimitExceeded if the time limit is exceeded.
        """
        ...

    def run_kernel(self, index: int, context: Any) -> None:
        """Run a single kernel, for profiles and for tests that check memory accesses."""
        ...


class Backend(Protocol):
    """Compiles and runs steps."""

    @property
    def name(self) -> str:
        """The name of the back end in explanations."""
        ...

    def supports(self, step: Step) -> bool:
        """True for steps that this back end runs. Called before and after the passes; no pass may change the answer."""
        ...

    def operation(self, op: Op) -> Op:
        """Return the operation for a Compute step: `op` itself, or a copy with faster inner functions."""
        ...

    def fuse(self, program: Program) -> None:
        """Rewrite steps of this back end, after the passes for all back ends."""
        ...

    def requests(self, program: Program, steps: Sequence[Step]) -> MemoryRequests:
        """Return the memory requests of these steps, all of which this back end runs."""
        ...

    def compile(self, steps: Sequence[Step], memory: Memory, options: Options, shared: SharedData) -> Executable:
        """Compile a segment. `shared` is the same for all plans of the model."""
        ...


@runtime_checkable
class Quantizing(Protocol):
    """A back end with kernels for products of integers. It multiplies bits in integers, which is exact."""

    @property
    def int8(self) -> bool:
        """True if other quantized data and weights are multiplied in integers, too."""
        ...


foremost: list[Backend] = []
"""The back ends added by `registry.register`. Steps are offered to them before all others."""


class SymbolicSizes(Protocol):
    """A plan whose sizes are expressions over symbols of `trace`, and whose values are arrays without memory."""

    @property
    def trace(self) -> Trace:
        """The trace, which records the guards of comparisons."""
        ...

    @property
    def memory(self) -> Memory:
        """The memory of the values."""
        ...

    def value(self, value: Value) -> Value:
        """Return the value with sizes over symbols of the trace, without elements if these depend on symbols."""
        ...

    def step(self, step: Step) -> Step:
        """Return the step with sizes over symbols of the trace."""
        ...


class BoundSizes(Protocol):
    """A plan with symbolic sizes, bound to one shape. Back ends bind their steps to this shape."""

    @property
    def memory(self) -> Memory:
        """The memory of the concrete values."""
        ...

    @property
    def replaces(self) -> bool:
        """True if the previous binding is not used again, so that its executables may be changed."""
        ...

    @property
    def moved(self) -> bool:
        """True if memory outside the arena is at other addresses than in the previous binding."""
        ...

    def value(self, value: Value) -> Value:
        """Return the concrete value for a symbolic value."""
        ...

    def step(self, step: Step) -> Step:
        """Return the concrete step for a symbolic step."""
        ...

    @property
    def addresses(self) -> Array:
        """The address of the first element of each value, in the order of `numbering` (see `prepare`), as i64."""
        ...

    def room(self, value: Value) -> tuple[int, int]:
        """Return the address and the number of bytes of the buffer that contains a symbolic value."""
        ...

    @property
    def changed(self) -> Hashable:
        """The sizes that differ from the previous binding, as a key. The results of `changes` depend on it alone."""
        ...

    def changes(self, step: Step) -> bool:
        """True if the concrete step may differ from the step of the previous binding in more than addresses."""
        ...

    def depends(self, step: Step) -> bool:
        """True if the concrete step may differ between shapes in more than addresses."""
        ...

    @property
    def symbols(self) -> Sequence[int]:
        """The values of the symbols at this shape. All sizes are expressions over the symbols."""
        ...

    def symbolic(self) -> SymbolicSizes:
        """Return the same plan with symbolic sizes. The values of its symbols are the values at this shape."""
        ...

    def working(self, name: object, nbytes: int) -> Array:
        """Return at least `nbytes` of working memory, which all shapes of the plan share under this name."""
        ...


class Preparation(Protocol):
    """A segment of symbolic steps, prepared for binding to shapes."""

    def bind(self, sizes: BoundSizes, previous: Executable | None) -> Executable:
        """Return the segment for one shape. `previous`: the segment for another shape in the same memory.

        Steps that do not change keep the kernels of `previous`.
        """
        ...


@runtime_checkable
class Preparing(Protocol):
    """A back end that binds a segment to a shape faster than by compiling its concrete steps."""

    def prepare(
        self,
        steps: Sequence[Step],
        aliases: Aliases,
        numbering: Mapping[Value, int],
        options: Options,
        shared: SharedData,
    ) -> Preparation:
        """Prepare a segment of steps whose sizes are symbols.

        `numbering`: a number for each value that is computed in each inference or, as a late constant, for each shape.
        """
        ...
