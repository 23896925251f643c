"""Declarations of the plan's records: small, compared by identity or by value, constructed with keywords."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import fields, is_dataclass

import pytest

import irload.plan
from irload.plan.ir import steps
from irload.plan.ir.program import Step, Value

OPEN = {"MemoryRequests", "SharedPacking", "_Found", "_Cone", "_Between"}
"""Records with few instances, which need no slots."""

RECORDS = {
    f"{cls.__module__}.{cls.__qualname__}": cls
    for module in pkgutil.walk_packages(irload.plan.__path__, "irload.plan.")
    for cls in vars(importlib.import_module(module.name)).values()
    if isinstance(cls, type) and cls.__module__ == module.name and is_dataclass(cls)
}
MANY = {name: cls for name, cls in RECORDS.items() if cls.__name__ not in OPEN}


@pytest.mark.parametrize("name", MANY)
def test_records_have_no_dict(name: str) -> None:
    assert MANY[name].__dictoffset__ == 0
    assert "__slots__" in vars(MANY[name])


def test_there_are_records() -> None:
    assert len(MANY) > 30
    assert {cls.__name__ for cls in RECORDS.values()} >= OPEN


STEPS = [cls for cls in RECORDS.values() if issubclass(cls, Step)]


@pytest.mark.parametrize("cls", STEPS, ids=lambda cls: cls.__name__)
def test_steps_are_compared_by_identity_and_filled_by_name(cls: type[Step]) -> None:
    assert cls.__eq__ is object.__eq__
    assert cls.__hash__ is object.__hash__
    assert [f.name for f in fields(cls) if not f.kw_only] == ["inputs", "outputs"]  # type: ignore[arg-type]
    assert cls.__match_args__ == ("inputs", "outputs")


def test_every_step_is_declared() -> None:
    exported = {v for v in vars(steps).values() if isinstance(v, type) and issubclass(v, Step)}
    assert {*STEPS} == exported | {Step}


def test_values_are_compared_by_identity() -> None:
    assert Value.__eq__ is object.__eq__
    assert irload.plan.schedule.Schedule.__eq__ is object.__eq__


MUTABLE = ("GrownRows", "LoopBody", "Tail")
FROZEN = [
    cls for cls in MANY.values() if not issubclass(cls, Step) and cls is not Value and cls.__name__ not in MUTABLE
]


@pytest.mark.parametrize("cls", FROZEN, ids=lambda cls: cls.__name__)
def test_the_others_are_frozen(cls: type) -> None:
    assert cls.__setattr__ is not object.__setattr__
