"""The contract of back ends: what turns steps into something that runs.

A program goes to the back ends in the order in which they are registered. Each may rewrite the steps it supports;
every step then belongs to the first back end that supports it. Neighbouring steps of one back end are a segment, which
it compiles as a whole, over memory that is planned from what all of them ask for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol

from irload.record import record
from irload.safety import DEFAULT, Limits

if TYPE_CHECKING:
    from irload.core.op import Op
    from irload.plan.ir.program import Program, Step
    from irload.plan.memory.memory import Memory
    from irload.plan.memory.requests import MemoryRequests


@record(frozen=False)
class Options:
    """How a model is to be run, and what back ends keep for all plans of it.

    `threads`: how many may work at one step. `precise`: no kernel that rounds more than the plain sum does. `tune`:
    choose kernels by the clock. `jit`: use compiled kernels, None: where they can be had. `precision`: what products
    are computed in: "f32", "bf16", or "auto", the one that is fastest here. `file`: the model's, for messages.
    `kept`: by the name of a back end, whatever it keeps between plans, as packed weights.
    """

    threads: int = 1
    precise: bool = False
    tune: bool = False
    jit: bool | None = None
    precision: str = "f32"
    limits: Limits = DEFAULT
    file: str | None = None
    kept: dict[str, Any] = field(default_factory=dict[str, Any])


@record()
class Kernel:
    """What runs one step of a segment: its name, and in a few words why it was selected."""

    step: Step
    name: str
    why: str = ""


class Executable(Protocol):
    """A segment that is ready to run, over the memory it was compiled for. Serves one inference at a time."""

    @property
    def kernels(self) -> Sequence[Kernel]:
        """What runs, in order. Steps that need no work, as views, have no kernel."""
        ...

    @property
    def nbytes(self) -> Mapping[str, int]:
        """The bytes that are held beside the values and constants, by what they are for."""
        ...

    def run(self, context: Any) -> None:
        """Run all kernels. `context` is the inference under way, None where there is none.

        Raises what operations raise, and LimitExceeded when the inference has taken too long.
        """
        ...

    def run_kernel(self, index: int, context: Any) -> None:
        """Run one kernel alone: for profiles, and for tests that watch memory."""
        ...

    def release(self) -> None:
        """Give up what is held. The executable cannot run any more."""
        ...


class Backend(Protocol):
    """What can run steps."""

    @property
    def name(self) -> str:
        """What explanations call it."""
        ...

    def supports(self, step: Step) -> bool:
        """True for steps that this back end runs. Asked before the passes and after them; no pass may change it."""
        ...

    def operation(self, op: Op) -> Op:
        """The operation in the place of one that no step describes: itself, or one with other inner functions."""
        ...

    def fuse(self, program: Program) -> None:
        """Rewrite what this back end supports, after the passes that hold for all back ends."""
        ...

    def requests(self, program: Program, steps: Sequence[Step]) -> MemoryRequests:
        """What these steps of the program, those that this back end will run, ask of memory."""
        ...

    def compile(self, steps: Sequence[Step], memory: Memory, options: Options) -> Executable:
        """A segment ready to run."""
        ...


foremost: list[Backend] = []
"""Back ends that were registered, to which steps are offered before all others."""
