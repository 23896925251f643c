"""The documents and the tables of `irrun run --profile` and `--explain`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from irrun.document import Document
from irrun.render import safe, stdout, table

if TYPE_CHECKING:
    from irload.plan.profile import StepTime


WIDE = 100
"""Terminal width in columns from which the profile has shapes."""


def timed(steps: Sequence[StepTime]) -> list[Document]:
    """Return one entry per step, as in schemas/run.schema.json."""
    total = sum(s.seconds for s in steps) or 1.0
    return [
        {
            "operation": s.operation,
            "layer": s.layer,
            "kernel": s.kernel,
            "shape": list(s.shape),
            "seconds": s.seconds,
            "share": s.seconds / total,
            "flops": s.flops,
            "bytes": s.nbytes,
            "rate": s.rate,
            "reach": s.reach,
        }
        for s in steps
    ]


def render_plan(document: Document) -> None:
    """Show the requested tables."""
    if "plan" in document:
        stdout().print()
        for line in document["plan"].splitlines():
            stdout().print(safe(line), soft_wrap=True)
    if "profile" in document:
        stdout().print()
        _render_steps(document["profile"])


def _render_steps(steps: Sequence[Document]) -> None:
    reaches = ["reach"] if any(step["reach"] is not None for step in steps) else []
    numbers = ("ms", "rate", *reaches, "share")
    names = ("operation", "layer", "kernel")
    shapes = ["shape"] if stdout().width >= WIDE else []
    shown = table(*names, *shapes, *numbers, right=numbers)
    for column in shown.columns:
        column.no_wrap = column.justify == "right"  # names wrap if necessary, numbers do not
    for step in steps:
        cells = [safe(step[name]) for name in names]
        cells += [safe(f"[{','.join(map(str, step['shape']))}]") for _ in shapes]
        cells += [f"{step['seconds'] * 1e3:.3f}", step["rate"]]
        cells += ["" if step["reach"] is None else f"{step['reach']:.0%}" for _ in reaches]
        shown.add_row(*cells, f"{step['share']:.1%}")
    stdout().print(shown)
    kernels: dict[str, float] = {}
    for step in steps:
        kernels[step["kernel"]] = kernels.get(step["kernel"], 0.0) + step["share"]
    stdout().print()
    sums = table("kernel", "share", right=("share",))
    for kernel, share in sorted(kernels.items(), key=lambda item: -item[1]):
        sums.add_row(safe(kernel), f"{share:.1%}")
    stdout().print(sums)
    stdout().print(f"[dim]{len(steps)} steps, {sum(s['seconds'] for s in steps) * 1e3:.2f} ms (medians of 5 runs)[/]")
