"""Op: the base class of every operation, and how a class statement becomes an entry of the registry."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from irload.core import registry
from irload.core.attribute import Attribute
from irload.core.context import InferContext, RunContext
from irload.core.element import ELEMENTS, ElementType, f32, nf4
from irload.core.half import widened
from irload.core.rounding import as_real, rounded
from irload.core.shape import Shape
from irload.core.tensor import Array, Bounds, TensorType
from irload.errors import AttributeInvalid, ExecutionError, IRError, ShapeMismatch
from irload.record import record


@record()
class Signature:
    """The ports that an operation takes, read off the parameters of its `infer`."""

    required: tuple[str, ...]
    optional: tuple[str, ...]
    variadic: str | None
    infer_context: bool
    compute_context: bool

    @staticmethod
    def of(operation: type[Op]) -> Signature:
        """Read the signatures of `infer` and `compute`."""
        kinds = inspect.Parameter
        required: list[str] = []
        optional: list[str] = []
        variadic: str | None = None
        for p in list(inspect.signature(operation.infer).parameters.values())[1:]:
            if p.kind is kinds.VAR_POSITIONAL:
                variadic = p.name
            elif p.kind is kinds.POSITIONAL_OR_KEYWORD:
                (required if p.default is kinds.empty else optional).append(p.name)
        return Signature(
            tuple(required),
            tuple(optional),
            variadic,
            "context" in inspect.signature(operation.infer).parameters,
            "context" in inspect.signature(operation.compute).parameters,
        )

    def name(self, index: int) -> str:
        """The name of input `index`."""
        names = (*self.required, *self.optional)
        return names[index] if index < len(names) else f"{self.variadic or 'input'}[{index - len(names)}]"

    def check(self, count: int) -> None:
        """Raise ShapeMismatch when `count` inputs are too few or too many."""
        least, most = len(self.required), len(self.required) + len(self.optional)
        if count < least or (count > most and self.variadic is None):
            expected = str(least) if least == most else f"{least} to {most}"
            expected = f"at least {least}" if self.variadic is not None else expected
            names = ", ".join([*self.required, *(f"[{n}]" for n in self.optional)])
            raise ShapeMismatch(f"takes {expected} inputs ({names}), found {count}")


class Op:
    """One operation with its attributes: immutable, without state, knowing nothing of the graph around it.

    A subclass with a `since` (or an `opset` that is no number) registers itself; one without is a family's base.

    - `infer(self, *inputs)` takes a TensorType an input and returns the output's, or a tuple of them. Its parameters
      are the operation's ports: names, arity and optional inputs all come from them.
    - `compute(self, *inputs)` takes arrays and returns an array or a tuple: plain NumPy, the readable oracle. It never
      writes to its inputs. Low-precision floats reach it as f32 unless `widens` is false.
    - `bounds(self, *inputs)`, optional, bounds integer outputs whose inputs are only partly known.

    Class keywords: `since` (opset in which this variant appeared), `type` (default: the class's name), `opset` (a
    namespace that is no opset number), `also_in` and `missing_in` (opset numbers where the tables are irregular).
    """

    type: ClassVar[str] = ""
    namespace: ClassVar[str] = ""
    since: ClassVar[int] = 0
    opset: ClassVar[str] = ""
    """`opset1`, or the namespace: the version under which this variant is written."""
    also_in: ClassVar[Collection[int]] = ()
    missing_in: ClassVar[Collection[int]] = ()
    declared: ClassVar[Mapping[str, Attribute]] = {}
    supplied: ClassVar[Sequence[str]] = ()
    """The names of those attributes that have no text: the data of a constant, bodies."""
    signature: ClassVar[Signature]

    folds: ClassVar[bool] = True
    """False for operations whose result is no function of their inputs (state, random numbers, control flow)."""

    infers_from_scalars: ClassVar[bool] = False
    """True where `infer` reads no values but those of single elements: what it gives holds for any others."""

    calculates: ClassVar[bool] = True
    """False for operations that only hand on what they are given."""

    rounds: ClassVar[Collection[int]] = ()
    """The inputs that hold real numbers by the specification, where the runtime takes integers, too, and rounds the
    result. `compute` takes those as f32."""

    widens: ClassVar[bool] = True
    """False for operations that only move values: they take low-precision floats as they are."""

    ignores: ClassVar[Collection[str]] = ("PrimitivesPriority", "alt_width", "alt_height")
    """Attributes that old writers leave in `data` and that mean nothing."""

    infer: ClassVar[Callable[..., TensorType | tuple[TensorType, ...]]]
    compute: ClassVar[Callable[..., Array | tuple[Array, ...]]]

    def __init_subclass__(
        cls,
        *,
        type: str | None = None,
        since: int | None = None,
        opset: str | None = None,
        also_in: Collection[int] = (),
        missing_in: Collection[int] = (),
        **keywords: Any,
    ) -> None:
        super().__init_subclass__(**keywords)
        own = {a.name: a for a in vars(cls).values() if isinstance(a, Attribute)}
        inherited = [vars(base).get("declared", {}) for base in reversed(cls.__mro__[1:])]
        cls.declared = {name: a for declared in (*inherited, own) for name, a in declared.items()}
        cls.supplied = tuple(name for name, a in cls.declared.items() if a.supplied)
        if since is None and opset is None:
            return
        cls.type = type or cls.__name__
        cls.namespace = opset or "opset"
        cls.since = since or 0
        cls.opset = opset or f"opset{since}"
        cls.also_in, cls.missing_in = also_in, missing_in
        cls.signature = Signature.of(cls)
        registry.register(cls)

    def __init__(self, **attributes: Any) -> None:
        for name, declaration in self.declared.items():
            value = attributes.pop(name, declaration.default)
            if value is declaration.default and declaration.required:
                raise AttributeInvalid(f"attribute {declaration.xml_name} is missing; {self.type} requires it")
            if value is not declaration.default:
                declaration.check(value)
            self.__dict__[name] = value
        if attributes:
            raise AttributeInvalid(f"{self.type} has no attribute {', '.join(attributes)}")
        self.validate()

    def validate(self) -> None:
        """Check what involves several attributes. Raises AttributeInvalid."""

    @classmethod
    def parse(cls, text: Mapping[str, str], **supplied: Any) -> tuple[Self, list[str]]:
        """An instance from the attributes of a `data` element, and warnings about what the runtime lets pass.

        Raises AttributeInvalid with the attribute's name and what was expected.
        """
        notes: list[str] = []
        values = dict(supplied)
        known = {a.xml_name for a in cls.declared.values() if not a.supplied}
        for name, declaration in cls.declared.items():
            if declaration.supplied:
                continue
            if declaration.xml_name in text:
                value = declaration.read(text[declaration.xml_name], notes)
                if value is not None or not declaration.required:
                    values[name] = value
                if value is not None:  # a default may stand for "absent", which no text expresses
                    declaration.check(value)
            elif declaration.spec_required:
                notes.append(
                    f"attribute {declaration.xml_name} is missing; the specification requires it, "
                    f"the runtime reads {declaration.default}"
                )
        notes += [f"unknown attribute {name}" for name in text if name not in known and name not in cls.ignores]
        return cls(**values), notes

    @property
    def attributes(self) -> dict[str, Any]:
        """The attribute values by name."""
        return {name: self.__dict__[name] for name in self.declared}

    def bounds(self, *inputs: TensorType) -> Sequence[Bounds | None] | None:
        """Bounds for the elements of each output, from inputs that carry values or bounds; None when unknown."""
        return None

    def __repr__(self) -> str:
        shown = ", ".join(f"{n}={v!r}" for n, v in self.attributes.items() if not self.declared[n].supplied)
        return f"{self.type}-{self.opset}({shown})"


def infer_outputs(op: Op, inputs: Sequence[TensorType], context: InferContext) -> tuple[TensorType, ...]:
    """The output types of `op`: arity checked, values and bounds added where the inputs determine them.

    Raises ShapeMismatch, TypeMismatch or AttributeInvalid with the fact alone.
    """
    op.signature.check(len(inputs))
    extra: dict[str, Any] = {"context": context} if op.signature.infer_context else {}
    try:
        result = op.infer(*inputs, **extra)
    except IRError:
        raise
    except Exception as error:
        if not is_builtin(op):
            raise ExecutionError(_blamed(op, "infer", error)) from error
        if not isinstance(error, ArithmeticError | LookupError | TypeError | ValueError):
            raise
        # The last resort, for shapes that the operation's own checks, which give better messages, do not cover.
        raise ShapeMismatch(f"cannot be inferred from {', '.join(map(str, inputs))}: {error}") from error
    results = result if isinstance(result, tuple) else (result,)
    promised: tuple[Any, ...] = results
    if not is_builtin(op) and not all(isinstance(t, TensorType) for t in promised):
        raise ExecutionError(f"{type(op).__qualname__}.infer must return TensorTypes, found {result!r:.200}")
    return results


def evaluate(
    op: Op, inputs: Sequence[Array], outputs: Sequence[TensorType], context: RunContext | None = None
) -> tuple[Array, ...]:
    """Run `compute`: low-precision floats widened to f32 before it and rounded once after it.

    `outputs` are the inferred types; they say what to round to, and what is empty is not computed at all. Raises
    ExecutionError where `compute` itself fails.
    """
    widened = [widen(a) for a in inputs] if op.widens else list(inputs)
    for k in op.rounds:
        widened[k] = as_real(widened[k])
    extra: dict[str, Any] = {"context": context} if op.signature.compute_context else {}
    try:
        if not extra and outputs and all(map(_is_empty, outputs)) and is_builtin(op):
            # Other axes may be as long as they like; an operation that walks along them would never be done.
            return tuple(np.empty(t.shape.static, t.element.dtype) for t in outputs)
        with np.errstate(all="ignore"):
            result = op.compute(*widened, **extra)
            results = result if isinstance(result, tuple) else (result,)
            narrowed = tuple(_narrow(a, t.element, bool(op.rounds)) for a, t in zip(results, outputs, strict=True))
    except IRError:
        raise
    except MemoryError as error:
        raise ExecutionError(f"ran out of memory: {error}") from error
    except Exception as error:
        if not is_builtin(op):
            raise ExecutionError(_blamed(op, "compute", error)) from error
        if not isinstance(error, ArithmeticError | IndexError | TypeError | ValueError):
            raise
        shapes = ", ".join(f"{a.dtype}{list(a.shape)}" for a in inputs)
        raise ExecutionError(f"failed on inputs {shapes}: {error}") from error
    if not is_builtin(op):
        for k, (array, expected) in enumerate(zip(narrowed, outputs, strict=True)):
            if array.dtype != expected.element.dtype or not expected.shape.contains(Shape(*array.shape)):
                raise ExecutionError(
                    f"{type(op).__qualname__}.compute gave {array.dtype}{list(array.shape)} as output {k}, "
                    f"its infer {expected}"
                )
    return narrowed


def _is_empty(tensor: TensorType) -> bool:
    """True when a tensor is known to have no elements, and all of its sizes are."""
    shape = tensor.shape
    return shape.rank is not None and any(d.hi == 0 for d in shape.dims) and tensor.is_static


def is_builtin(op: Op) -> bool:
    """False for extensions, whose mistakes must not pass for those of irload."""
    return type(op).__module__.partition(".")[0] == "irload"


def _blamed(op: Op, method: str, error: Exception) -> str:
    return f"{type(op).__qualname__}.{method} raised {type(error).__name__}: {error}"


_NARROW = {e.dtype for e in ELEMENTS if e.is_low_precision and e is not nf4}


def widen(array: Array) -> Array:
    """An array of low-precision floats as f32; others as they are."""
    if array.dtype == np.float16:
        return widened(array)
    return array.astype(np.float32) if array.dtype in _NARROW else array


def _narrow(array: Array, to: ElementType, rounds: bool) -> Array:
    array = np.asarray(array)
    if to.is_low_precision and to is not nf4 and array.dtype == f32.dtype:
        return array.astype(to.dtype)
    if rounds and to.dtype.kind in "iub":
        return rounded(array, to)
    return array
