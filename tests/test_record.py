"""Records behave as the dataclasses that they stand for."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, field, replace
from typing import Any, ClassVar

import pytest

from irload.record import record


@record()
class Point:
    """Frozen, compared by values."""

    kind: ClassVar[str] = "point"
    x: int
    y: int = 2
    names: list[str] = field(default_factory=list[str])
    hidden: int = field(default=0, repr=False)


@record(frozen=False, eq=False)
class Base:
    """May change, compared by identity."""

    x: int
    y: int = field(kw_only=True)


@record(frozen=False, eq=False)
class Derived(Base):
    """More fields."""

    z: int = field(default=3, kw_only=True)

    def __post_init__(self) -> None:
        self.x += 1


@record()
class Named:
    """With methods of its own."""

    name: str

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and self.name.lower() == other.name.lower()

    __hash__ = None  # type: ignore[assignment]


def test_fields_are_given_by_position_or_name_and_have_defaults() -> None:
    assert repr(Point(1)) == "Point(x=1, y=2, names=[])"
    assert Point(1, y=5) == Point(1, 5) == Point(y=5, x=1)
    assert Point(1).names is not Point(1).names
    assert Point(1, 2, ["a"], 7).hidden == 7


@pytest.mark.parametrize(
    ("values", "named"), [((), {}), ((1, 2, [], 4, 5), {}), ((1,), {"x": 2}), ((1,), {"unknown": 2})]
)
def test_wrong_fields_are_refused(values: tuple[Any, ...], named: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"Point\(x, y, names, hidden\)"):
        Point(*values, **named)


def test_fields_by_name_alone_are_not_taken_by_position() -> None:
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
    made = Derived(1, y=2)
    assert repr(made) == "Derived(x=2, y=2, z=3)"
    made.z = 5
    assert made.z == 5
    assert made != Derived(1, y=2, z=5)
    assert hash(made) == object.__hash__(made)


def test_dataclasses_functions_take_them() -> None:
    assert replace(Point(1), y=9) == Point(1, 9)
    assert asdict(Point(1)) == {"x": 1, "y": 2, "names": [], "hidden": 0}
    assert Point.__match_args__ == ("x", "y", "names", "hidden")
    assert Derived.__match_args__ == ("x",)
    assert not hasattr(Point(1), "__dict__")
    assert not hasattr(Derived(1, y=2), "__dict__")


def test_they_are_copied_and_pickled() -> None:
    assert pickle.loads(pickle.dumps(Point(1, 5))) == copy.deepcopy(Point(1, 5)) == copy.copy(Point(1, 5))
    assert copy.copy(Derived(1, y=2)).x == 2


def test_methods_of_the_class_stand() -> None:
    assert repr(Named("a")) == "a"
    assert Named("a") == Named("A")
