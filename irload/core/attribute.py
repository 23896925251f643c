"""Typed attributes: `attr.integers(default=())` converts the XML text of an attribute to a value, and back.

An attribute is declared in the class body of an operation. Reading it from an instance gives its value:

    class AvgPool(Op, since=1):
        kernel = attr.integers(rule=positive)  # required
        rounding_type = attr.choice("floor", "ceil", default="floor")
        exclude_pad = attr.boolean(name="exclude-pad")

Text is parsed as OpenVINO's reader parses it. Malformed text that OpenVINO accepts silently causes a warning.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from irload.core.element import ElementType, element
from irload.core.shape import Shape
from irload.errors import AttributeInvalid, IRError
from irload.record import record

__all__ = [
    "REQUIRED",
    "UNSAID",
    "Advice",
    "Attribute",
    "Validator",
    "advised",
    "at_least",
    "boolean",
    "choice",
    "element_type",
    "finite",
    "integer",
    "integers",
    "non_negative",
    "number",
    "numbers",
    "positive",
    "shape",
    "supplied",
    "text",
    "within",
    "words",
]

Validator = Callable[[Any], str | None]
"""Returns the requirement that the value violates (`must be positive`), or None if the value is valid."""

REQUIRED: Final = object()


class Attribute:
    """The declaration of one attribute: how its text is parsed and written, its default, and its rule.

    `spec_required` marks an attribute that the specification requires but OpenVINO defaults: its absence is a
    warning. `supplied` marks an attribute without a text form: the reader supplies its value (a body, the data of a
    constant).
    """

    def __init__(
        self,
        parse: Callable[[str, list[str]], Any],
        write: Callable[[Any], str],
        default: Any,
        rule: Validator | None,
        name: str | None,
        *,
        spec_required: bool = False,
        supplied: bool = False,
        kind: str = "",
    ) -> None:
        self.parse = parse
        self.write = write
        self.default = default
        self.rule = rule
        self.xml_name = name or ""
        self.spec_required = spec_required
        self.supplied = supplied
        self.kind = kind
        self.words: tuple[str, ...] = ()
        """For an attribute with a fixed set of values: the allowed words, in lower case."""
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.xml_name = self.xml_name or name

    # There is no __set__, so the value in the instance's __dict__ shadows the declaration, and a read is a dict lookup.
    def __get__(self, instance: object | None, owner: type) -> Attribute:
        return self

    @property
    def required(self) -> bool:
        """True if an instance cannot be created without it."""
        return self.default is REQUIRED

    def check(self, value: Any) -> None:
        """Raise AttributeInvalid if the value breaks the rule."""
        complaint = self.rule(value) if self.rule else None
        if complaint:
            raise AttributeInvalid(f"attribute {self.xml_name} {complaint}, found {_shown(value)}")

    def read(self, text: str, notes: list[str]) -> Any:
        """The value of `text`. Appends a note to `notes` for each fault that OpenVINO accepts silently."""
        try:
            heard: list[str] = []
            value = self.parse(text, heard)
        except IRError as error:
            raise AttributeInvalid(f"attribute {self.xml_name}: {error.message}") from None
        notes += [f"attribute {self.xml_name}: {note}" for note in heard]
        if isinstance(self.rule, Advice) and value is not UNSAID and (complaint := self.rule.rule(value)):
            notes.append(f"attribute {self.xml_name} {complaint} by the specification, found {_shown(value)}")
        # As in OpenVINO, unusable text leaves the default.
        return (None if self.required else self.default) if value is UNSAID else value


UNSAID: Final = object()


# -- kinds of attributes ---------------------------------------------------------------------------------------------
# Each function returns an Attribute but is annotated with the type of its value, as dataclasses.field is.


def integer(
    default: Any = REQUIRED, *, rule: Validator | None = None, name: str | None = None, spec_required: bool = False
) -> int:
    """A 64-bit integer."""
    return _attribute(_parse_integer, str, default, rule, name, spec_required, "integer")


def integers(
    default: Any = REQUIRED, *, rule: Validator | None = None, name: str | None = None, spec_required: bool = False
) -> tuple[int, ...]:
    """A comma-separated list of 64-bit integers. Inference replaces an empty default, for example by ones per axis."""
    return _attribute(_parse_integers, _join, default, rule, name, spec_required, "integers")


def number(
    default: Any = REQUIRED, *, rule: Validator | None = None, name: str | None = None, spec_required: bool = False
) -> float:
    """A floating-point number, stored as f64."""
    return _attribute(_parse_number, _float_text, default, rule, name, spec_required, "number")


def numbers(
    default: Any = REQUIRED, *, rule: Validator | None = None, name: str | None = None, spec_required: bool = False
) -> tuple[float, ...]:
    """A comma-separated list of floating-point numbers."""
    return _attribute(
        lambda text, notes: tuple(_parse_number(item, notes) for item in _number_items(text)),
        lambda value: ", ".join(map(_float_text, value)),
        default,
        rule,
        name,
        spec_required,
        "numbers",
    )


def boolean(default: Any = REQUIRED, *, name: str | None = None, spec_required: bool = False) -> bool:
    """true, false, 1 or 0, ignoring case. Other text leaves the default, with a warning."""

    def parse(text: str, notes: list[str]) -> Any:
        word = text.lower()  # as in OpenVINO, blanks are not stripped: `true ` is other text
        if word in ("true", "1"):
            return True
        if word in ("false", "0"):
            return False
        notes.append(f"'{text}' is neither true nor false; OpenVINO ignores it and keeps the default")
        return UNSAID

    return _attribute(parse, lambda v: "true" if v else "false", default, None, name, spec_required, "boolean")


def choice(
    *words: str,
    default: Any = REQUIRED,
    name: str | None = None,
    spec_required: bool = False,
    upper: bool = False,
    aliases: Mapping[str, str] | None = None,
) -> str:
    """One of `words`, ignoring case; stored in the spelling given here. `upper`: written in upper case.

    `aliases`: other words that occur in files, each with the word of `words` that it stands for.
    """
    known = {word.lower(): word for word in words} | dict(aliases or {})

    def parse(text: str, notes: list[str]) -> str:
        spelled = known.get(text.lower())
        if spelled is None:
            raise AttributeInvalid(f"'{text}' is not one of {', '.join(words)}")
        return spelled

    def rule(value: str) -> str | None:
        return None if value in words else f"must be one of {', '.join(words)}"

    write = str.upper if upper else str
    kind = "one of " + ", ".join(f"`{w}`" for w in words)
    attribute = _attribute(parse, write, default, rule, name, spec_required, kind)
    attribute.words = tuple(known)
    return attribute


def words(default: Any = REQUIRED, *, rule: Validator | None = None, name: str | None = None) -> tuple[str, ...]:
    """A comma-separated list of words."""
    return _attribute(lambda text, notes: _items(text), ",".join, default, rule, name, False, "words")


def text(default: Any = REQUIRED, *, rule: Validator | None = None, name: str | None = None) -> str:
    """Any text."""
    return _attribute(lambda text, notes: text, str, default, rule, name, False, "text")


def element_type(
    default: Any = REQUIRED, *, among: Sequence[ElementType] = (), name: str | None = None, spec_required: bool = False
) -> ElementType:
    """An element type by its lower-case name. `among` lists the allowed ones."""

    def rule(value: ElementType) -> str | None:
        allowed = not among or value in among or value is default
        return None if allowed else f"must be one of {', '.join(e.name for e in among)}"

    return _attribute(
        lambda text, notes: element(text), lambda e: e.name, default, rule, name, spec_required, "element type"
    )


def shape(default: Any = REQUIRED, *, name: str | None = None) -> Shape:
    """A partial shape in the grammar of Parameter: `1,?,2..8`, `...`."""
    return _attribute(
        lambda text, notes: Shape.parse(text), lambda s: str(s).strip("[]"), default, None, name, False, "shape"
    )


def supplied(default: Any = REQUIRED) -> Any:
    """A value without a text form: the reader, or the Python code that builds the operation, supplies it."""
    unwritten: Any = _no_text
    return Attribute(unwritten, unwritten, default, None, None, supplied=True, kind="supplied")


# -- rules -----------------------------------------------------------------------------------------------------------


def positive(value: Any) -> str | None:
    """Validator: a number, or every number of a list, is above zero."""
    return None if all(v > 0 for v in _each(value)) else "must be positive"


def non_negative(value: Any) -> str | None:
    """Validator: a number, or every number of a list, is zero or above."""
    return None if all(v >= 0 for v in _each(value)) else "must not be negative"


def at_least(low: float) -> Validator:
    """Validator: a number, or every number of a list, is `low` or above."""
    return lambda value: None if all(v >= low for v in _each(value)) else f"must be at least {low}"


def within(low: float, high: float) -> Validator:
    """Validator: a number, or every number of a list, is in `low` to `high`."""
    return lambda value: None if all(low <= v <= high for v in _each(value)) else f"must be within {low}..{high}"


def finite(value: Any) -> str | None:
    """Validator: neither NaN nor infinite."""
    return None if all(math.isfinite(v) for v in _each(value)) else "must be finite"


@record()
class Advice:
    """A rule of the specification that OpenVINO does not enforce: breaking it causes a warning."""

    rule: Validator

    def __call__(self, value: Any) -> str | None:
        return None


def advised(rule: Validator) -> Validator:
    """Validator: like `rule`, but violating it causes a warning instead of an error."""
    return Advice(rule)


def _each(value: Any) -> Sequence[Any]:
    return value if isinstance(value, tuple) else (value,)


# -- text ------------------------------------------------------------------------------------------------------------

# OpenVINO parses numbers as C++ streams do: it reads the longest valid prefix and ignores the rest. There is one
# exception: an `e` after the number must be followed by the digits of the exponent.
_INTEGER: Final = re.compile(r"-?[0-9]+")  # OpenVINO refuses a plus sign
_NUMBER: Final = re.compile(r"([-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)([eE]?)")


def _attribute(
    parse: Callable[[str, list[str]], Any],
    write: Callable[[Any], str],
    default: Any,
    rule: Validator | None,
    name: str | None,
    spec_required: bool,
    kind: str,
) -> Any:
    return Attribute(parse, write, default, rule, name, spec_required=spec_required, kind=kind)


def _items(text: str) -> tuple[str, ...]:
    """The items of a comma-separated list, stripped of blanks; empty items are dropped."""
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _parse_integer(text: str, notes: list[str]) -> int:
    word = text.strip()
    prefix = _INTEGER.match(word)
    if prefix is None:
        raise AttributeInvalid(f"'{_short(word)}' is not an integer")
    number = int(prefix[0]) if len(prefix[0]) <= 32 else 2**64
    if not -(2**63) <= number < 2**64:
        raise AttributeInvalid(f"'{_short(word)}' does not fit 64 bits")
    if prefix[0] != word:
        notes.append(f"'{_short(word)}' is not an integer; OpenVINO reads {number}")
    return number


def _parse_integers(text: str, notes: list[str]) -> tuple[int, ...]:
    return tuple(_parse_integer(item, notes) for item in _number_items(text))


def _number_items(text: str) -> list[str]:
    """The items of a comma-separated list of numbers; the last item may be empty."""
    items = text.split(",")
    if not items[-1]:
        items.pop()
    if any(not item.strip() for item in items):
        raise AttributeInvalid(f"'{_short(text)}' has an empty item")
    return items


def _parse_number(text: str, notes: list[str]) -> float:
    word = text.strip()
    if word in ("nan", "inf", "-inf"):
        return float(word)
    prefix = _NUMBER.match(word)
    if prefix is None or prefix[2] or not math.isfinite(number := float(prefix[1])):
        raise AttributeInvalid(f"'{_short(word)}' is not a number")
    if prefix[0] != word:
        notes.append(f"'{_short(word)}' is not a number; OpenVINO reads {number:g}")
    return number


def _join(value: Sequence[Any]) -> str:
    return ",".join(map(str, value))


def _float_text(value: float) -> str:
    """At most 17 significant digits, as OpenVINO writes. repr is the shortest text that parses to the same value."""
    return repr(float(value))


def _no_text(*_: Any) -> Any:
    raise AttributeInvalid("has no text form")


def _short(word: str, limit: int = 40) -> str:
    return word if len(word) <= limit else word[:limit] + "…"


def _shown(value: Any) -> str:
    return _short(f"[{', '.join(map(str, value[:100]))}]" if isinstance(value, tuple) else f"{value}", 200)
