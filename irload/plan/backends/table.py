"""The table of a back end: one row for each kind of step that it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from importlib import import_module
from typing import Any, Generic, TypeVar

import numpy as np

from irload.plan.ir.program import Step, Value
from irload.record import record

Select = TypeVar("Select", bound=Callable[..., Any])

StoredValues = Mapping[np.dtype[Any], Callable[..., Iterable[Value]]]
"""For each stored type, a function that returns the values of a step that may be stored in this type.

Arguments: the step, then arguments of the back end.
"""


@record()
class StepRow:
    """A kind of step on one back end.

    `select`: "module.function" that selects the kernels of a step; the module is imported when a step first needs it.
    The kernels run the steps for which `supports` and `limit` are true. `stored`: the values that they can read or
    write in another type. `copies`: true if results are copied to their buffers, which can then have any layout.
    """

    select: str
    supports: Callable[[Any], bool] = lambda step: True
    limit: Callable[[Any], bool] = lambda step: True
    stored: StoredValues = field(default_factory=dict[Any, Any])
    copies: bool = False


class StepTable(Generic[Select]):
    """The rows by kind of step, whose functions are in modules of `package`."""

    def __init__(self, package: str, rows: Mapping[type[Step], StepRow]) -> None:
        self.rows = rows
        self._package = package

    def supports(self, step: Step) -> bool:
        """True if kernels run the step."""
        row = self.rows.get(type(step))
        return row is not None and row.supports(step) and row.limit(step)

    def select(self, step: Step) -> Select:
        """Return the function that selects the kernels of a step."""
        module, name = self.rows[type(step)].select.split(".")
        return getattr(import_module(f"{self._package}.{module}"), name)
