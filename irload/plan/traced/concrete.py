"""Values and steps of a traced plan, with numbers instead of sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from irload.plan.ir.program import Step, Value

if TYPE_CHECKING:
    from irload.plan.ir.constant import Constant
    from irload.plan.traced.numbers import Items
    from irload.plan.traced.template import Template


class Concrete:
    """Creates concrete values and steps of a template for `numbers`, the values of its sizes.

    `items`: shapes, strides and layouts, by form (see `Numbers`); `late`: the late constants that steps read.
    """

    def __init__(
        self, template: Template, numbers: Sequence[int], items: Items, late: Mapping[Value, Constant]
    ) -> None:
        self.template = template
        self.items = items
        self.numbers = numbers
        self._late = late
        self._values: dict[Value, Value] = {}

    def value(self, value: Value) -> Value:
        """Return the concrete value of a symbolic one."""
        concrete = self._values.get(value)
        if concrete is None:
            shape = self.items[self.template.shapes[value]]
            source = self._late.get(value, value.source)
            same = shape is value.shape and source is value.source
            concrete = value if same else Value(shape, value.dtype, source, value.name, value.used, value.origin)
            self._values[value] = concrete
        return concrete

    def step(self, step: Step) -> Step:
        """Return the concrete step of a symbolic one."""
        changed: dict[str, Any] = {name: build(self.numbers) for name, build in self.template.sized[step]}
        changed |= {"inputs": [self.value(v) for v in step.inputs], "outputs": [self.value(v) for v in step.outputs]}
        concrete = object.__new__(type(step))  # a tenth of the time of dataclasses.replace
        for name in self.template.fields[type(step)]:
            setattr(concrete, name, changed[name] if name in changed else getattr(step, name))
        return concrete
