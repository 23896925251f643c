"""Records behave like dataclasses, and are used according to the rule in irload/record.py."""

from __future__ import annotations

import ast
import copy
import pickle
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, asdict, field, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pytest

from irload.record import record

ROOT = Path(__file__).parents[1]
RUN_PATH = (
    *("irload.core", "irload.errors", "irload.experts", "irload.graph", "irload.inference", "irload.model"),
    *("irload.ops", "irload.options", "irload.plan", "irload.read", "irload.runtime", "irload.safety"),
    *("irload.system", "irload.validation"),
)
DATACLASSES = {
    *("tensor.Bounds", "shape.Dim", "tensor.TensorType"),  # one or more per tensor
    *("graph.Declared", "graph.Node", "graph.Output"),  # per layer and port
    *("raw.RawEdge", "raw.RawLayer", "raw.RawPort"),  # likewise
    *("expression.Expression", "expression.Instruction", "observation.Visit"),  # per elementwise operation or layer
    *("values.Bool", "values.Int", "values.LlvmValue", "values.Pointer", "values.Vec"),  # per instruction of a kernel
    "loader.Code",  # has weak references
}


@record()
class Point:
    """Frozen, compared by value."""

    kind: ClassVar[str] = "point"
    x: int
    y: int = 2
    names: list[str] = field(default_factory=list[str])
    hidden: int = field(default=0, repr=False)


@record(frozen=False, eq=False)
class Base:
    """Mutable, compared by identity."""

    x: int
    y: int = field(kw_only=True)


@record(frozen=False, eq=False)
class Derived(Base):
    """Additional fields."""

    z: int = field(default=3, kw_only=True)

    def __post_init__(self) -> None:
        self.x += 1


@record()
class Named:
    """Defines __repr__ and __eq__."""

    name: str

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and self.name.lower() == other.name.lower()

    __hash__ = None  # type: ignore[assignment]


@cache
def decorated() -> list[tuple[str, str, str]]:
    """Module, class and decorator of every record and dataclass."""
    return list(_decorated())


def _decorated() -> Iterator[tuple[str, str, str]]:
    for path in (ROOT / "irload").rglob("*.py"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                for decorator in node.decorator_list:
                    word = ast.unparse(decorator).partition("(")[0]
                    if word in ("record", "dataclass"):
                        yield name, f"{name.rpartition('.')[2]}.{node.name}", word


def test_a_run_defines_records_and_everything_else_dataclasses() -> None:
    wrong = [
        f"{cls} of {module} is a {word}"
        for module, cls, word in decorated()
        if (word == "record") != (module.startswith(RUN_PATH) and cls not in DATACLASSES)
    ]
    assert wrong == []


def test_every_exception_is_needed() -> None:
    assert {
        cls for module, cls, word in decorated() if word == "dataclass" and module.startswith(RUN_PATH)
    } == DATACLASSES


def test_fields_are_given_by_position_or_name_and_have_defaults() -> None:
    assert repr(Point(1)) == "Point(x=1, y=2, names=[])"
    assert Point(1, y=5) == Point(1, 5) == Point(y=5, x=1)
    assert Point(1).names is not Point(1).names
    assert Point(1, 2, ["a"], 7).hidden == 7


def test_unknown_fields_are_named_with_the_nearest() -> None:
    with pytest.raises(TypeError, match=r"^Point has no field 'hiden'; did you mean 'hidden'\?$"):
        Point(1, hiden=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^Point has no field 'q'; the fields are x, y, names, hidden$"):
        Point(1, q=2)  # type: ignore[call-arg]


@pytest.mark.parametrize(("values", "named"), [((), {}), ((1, 2, [], 4, 5), {}), ((1,), {"x": 2})])
def test_wrong_fields_are_rejected(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"Point\(x, y, names, hidden\)"):
        Point(*values, **named)


def test_keyword_only_fields_are_rejected_by_position() -> None:
    with pytest.raises(TypeError):
        Base(1, 2)  # type: ignore[call-arg]


def test_frozen_ones_are_equal_and_hashed_by_values_and_do_not_change() -> None:
    one, other = Point(1, 2, ()), Point(1, 2, ())  # type: ignore[arg-type]
    assert one == other
    assert hash(one) == hash(other)
    assert one != Point(1, 3, ())
    assert one != (1, 2, (), 0)
    with pytest.raises(FrozenInstanceError):
        one.x = 3  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del one.x


def test_the_others_change_and_are_compared_by_identity() -> None:
    derived = Derived(1, y=2)
    assert repr(derived) == "Derived(x=2, y=2, z=3)"
    derived.z = 5
    assert derived.z == 5
    assert derived != Derived(1, y=2, z=5)
    assert hash(derived) == object.__hash__(derived)


def test_functions_of_dataclasses_accept_records() -> None:
    assert replace(Point(1), y=9) == Point(1, 9)
    assert asdict(Point(1)) == {"x": 1, "y": 2, "names": [], "hidden": 0}
    assert Point.__match_args__ == ("x", "y", "names", "hidden")
    assert Derived.__match_args__ == ("x",)
    assert not hasattr(Point(1), "__dict__")
    assert not hasattr(Derived(1, y=2), "__dict__")


def test_they_are_copied_and_pickled() -> None:
    assert pickle.loads(pickle.dumps(Point(1, 5))) == copy.deepcopy(Point(1, 5)) == copy.copy(Point(1, 5))
    assert copy.copy(Derived(1, y=2)).x == 2


def test_methods_of_the_class_are_preserved() -> None:
    assert repr(Named("a")) == "a"
    assert Named("a") == Named("A")
