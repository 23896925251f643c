"""Op: the base class of every operation, and how a class statement becomes an entry of the registry."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from irload.core import registry
from irload.core.attribute import Attribute
from irload.core.context import InferContext, RunContext
from irload.core.element import ELEMENTS, ElementType, f32, nf4
from irload.core.half import widened
from irload.core.rounding import as_real, round_to
from irload.core.shape import shape_of
from irload.core.tensor import Array, Bounds, TensorType
from irload.errors import AttributeInvalid, ExecutionError, IRError, ShapeMismatch, out_of_memory
from irload.record import record


@record()
class Signature:
    """The ports of an operation, taken from the parameters of its `infer`."""

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
        """Raise ShapeMismatch if `count` inputs are too few or too many."""
        least, most = len(self.required), len(self.required) + len(self.optional)
        if count < least or (count > most and self.variadic is None):
            expected = str(least) if least == most else f"{least} to {most}"
            expected = f"at least {least}" if self.variadic is not None else expected
            names = ", ".join([*self.required, *(f"[{n}]" for n in self.optional)])
            raise ShapeMismatch(f"takes {expected} inputs ({names}), found {count}")


class Op:
    """One operation with its attributes: immutable, stateless, and independent of the graph around it.

    A subclass with a `since` (or an `opset` that is not a number) registers itself; one without is the base of a
    family.

    - `infer(self, *inputs)` takes one TensorType per input and returns the TensorType of the output, or a tuple of
      them. Its parameters are the operation's ports: they define names, arity and optional inputs.
    - `compute(self, *inputs)` takes arrays and returns an array or a tuple: plain NumPy, the readable reference. It
      does not write to its inputs. Low-precision floats are passed as f32 unless `widens` is false.
    - `bounds(self, *inputs)`, optional, returns bounds of integer outputs from partly known inputs.

    Class keywords: `since` (opset that introduces this variant), `type` (default: the class's name), `opset` (a
    namespace other than opsetN), `also_in` (earlier opsets that list the variant), `missing_in` (later ones that do
    not).
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
    """The names of attributes without a text form: the data of a constant, bodies."""
    signature: ClassVar[Signature]

    folds: ClassVar[bool] = True
    """False if the result is not a function of the inputs alone (state, random numbers, control flow)."""

    replaceable: ClassVar[bool] = False
    """True if back ends may replace inner functions of `compute`."""

    calculates: ClassVar[bool] = True
    """False for operations that return their inputs unchanged."""

    multiplies: ClassVar[bool] = False
    """True if `compute` multiplies matrices, by BLAS. For operations of extensions this is assumed."""

    rounds: ClassVar[Collection[int]] = ()
    """Inputs that are real numbers by the specification; for integers OpenVINO rounds the result.

    `compute` receives these inputs as f32.
    """

    widens: ClassVar[bool] = True
    """False for operations that only move values: their low-precision floats are not widened."""

    ignores: ClassVar[Collection[str]] = ("PrimitivesPriority", "alt_width", "alt_height")
    """Attributes that old writers leave in `data`, without a meaning."""

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
        declared_here = {a.name: a for a in vars(cls).values() if isinstance(a, Attribute)}
        inherited = [vars(base).get("declared", {}) for base in reversed(cls.__mro__[1:])]
        cls.declared = {name: a for declared in (*inherited, declared_here) for name, a in declared.items()}
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
        """Check rules over several attributes. Raises AttributeInvalid."""

    @classmethod
    def parse(cls, text: Mapping[str, str], **supplied: Any) -> tuple[Self, list[str]]:
        """An instance from the attributes of a `data` element, and warnings about faults that OpenVINO accepts.

        Raises AttributeInvalid with the attribute's name and the expected value.
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
                if value is not None:  # a default may represent "absent", which has no text form
                    declaration.check(value)
            elif declaration.spec_required:
                notes.append(
                    f"attribute {declaration.xml_name} is missing; the specification requires it, "
                    f"OpenVINO uses the default, {declaration.default}"
                )
        notes += [f"unknown attribute {name}" for name in text if name not in known and name not in cls.ignores]
        return cls(**values), notes

    @property
    def attributes(self) -> dict[str, Any]:
        """The attribute values by name."""
        return {name: self.__dict__[name] for name in self.declared}

    def bounds(self, *inputs: TensorType) -> Sequence[Bounds | None] | None:
        """Bounds for the elements of each output, from inputs with values or bounds; None if unknown."""
        return None

    def __repr__(self) -> str:
        shown = ", ".join(f"{n}={v!r}" for n, v in self.attributes.items() if not self.declared[n].supplied)
        return f"{self.type}-{self.opset}({shown})"


def computes_directly(op: Op, dtypes: Iterable[np.dtype[Any]]) -> bool:
    """True if `compute` on tensors of these types needs no conversion, check or context."""
    plain = is_builtin(op) and not op.signature.compute_context and not op.rounds
    return plain and all(dtype.isbuiltin == 1 and dtype != np.float16 for dtype in dtypes)


def infer_outputs(op: Op, inputs: Sequence[TensorType], context: InferContext) -> tuple[TensorType, ...]:
    """The output types of `op`: checks arity, and adds values and bounds if the inputs determine them.

    Raises ShapeMismatch, TypeMismatch or AttributeInvalid without a location.
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
        # The operation's checks give better messages, but they do not cover these shapes.
        raise ShapeMismatch(f"cannot be inferred from {', '.join(map(str, inputs))}: {error}") from error
    results = result if isinstance(result, tuple) else (result,)
    promised: tuple[Any, ...] = results
    if not is_builtin(op) and not all(isinstance(t, TensorType) for t in promised):
        raise ExecutionError(f"{type(op).__qualname__}.infer must return TensorTypes, found {result!r:.200}")
    return results


def evaluate(
    op: Op, inputs: Sequence[Array], outputs: Sequence[TensorType], context: RunContext | None = None
) -> tuple[Array, ...]:
    """Run `compute`. Low-precision floats are widened to f32 before it and rounded once after it.

    `outputs` are the inferred types, to which results are rounded; without types no results are returned. Empty outputs
    are not computed. Raises ExecutionError if `compute` fails.
    """
    widened = [widen(a) for a in inputs] if op.widens else list(inputs)
    for k in op.rounds:
        widened[k] = as_real(widened[k])
    extra: dict[str, Any] = {"context": context} if op.signature.compute_context else {}
    try:
        if not extra and outputs and all(map(_is_empty, outputs)) and is_builtin(op):
            # The axes of an empty tensor may have any length, so a loop over them might not end.
            return tuple(np.empty(t.shape.static, t.element.dtype) for t in outputs)
        with np.errstate(all="ignore"):
            result = op.compute(*widened, **extra)
            results = result if isinstance(result, tuple) else (result,)
            narrowed = tuple(
                _narrow(a, t.element, bool(op.rounds)) for a, t in zip(results, outputs, strict=bool(outputs))
            )
    except IRError:
        raise
    except MemoryError as error:
        raise out_of_memory("for the outputs", error) from error
    except Exception as error:
        if not is_builtin(op):
            raise ExecutionError(_blamed(op, "compute", error)) from error
        if not isinstance(error, ArithmeticError | IndexError | TypeError | ValueError):
            raise
        shapes = ", ".join(str(TensorType.of(a)) for a in inputs)
        raise ExecutionError(f"failed on inputs {shapes}: {error}") from error
    if not is_builtin(op):
        for k, (array, expected) in enumerate(zip(narrowed, outputs, strict=True)):
            if array.dtype != expected.element.dtype or not expected.shape.contains(shape_of(array.shape)):
                raise ExecutionError(
                    f"{type(op).__qualname__}.compute returned {array.dtype}{list(array.shape)} as output {k}, "
                    f"its infer {expected}"
                )
    return narrowed


def _is_empty(tensor: TensorType) -> bool:
    """True if the shape is static and has no elements."""
    shape = tensor.shape
    return shape.rank is not None and any(d.hi == 0 for d in shape.dims) and tensor.is_static


def multiplies(op: Op) -> bool:
    """True if `compute` may use BLAS. The bodies of an operation do not count."""
    return op.multiplies or not is_builtin(op)


def is_builtin(op: Op) -> bool:
    """False for operations of extensions, whose errors must be attributed to the extension."""
    return type(op).__module__.partition(".")[0] == "irload"


def _blamed(op: Op, method: str, error: Exception) -> str:
    return f"{type(op).__qualname__}.{method} raised {type(error).__name__}: {error}"


_NARROW = {e.dtype for e in ELEMENTS if e.is_low_precision and e is not nf4}


def widen(array: Array) -> Array:
    """An array of low-precision floats as f32; other arrays unchanged."""
    if array.dtype == np.float16:
        return widened(array)
    return array.astype(np.float32) if array.dtype in _NARROW else array


def _narrow(array: Array, to: ElementType, rounds: bool) -> Array:
    array = np.asarray(array)
    if to.is_low_precision and to is not nf4 and array.dtype == f32.dtype:
        return array.astype(to.dtype)
    if rounds and to.dtype.kind in "iub":
        return round_to(array, to)
    return array
