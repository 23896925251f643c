"""Parameters of commands, grouped in records: the model to read, the inputs to feed, the options of compilation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from irload.record import record
from irrun.arguments import shapes_of

if TYPE_CHECKING:  # imports for `irrun run --help` would take 35 ms
    from irload import CompiledModel, Limits, Model
    from irload.arrays.input_files import InputValue

R = TypeVar("R")


def records(**kinds: Any) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Pass parameters of a command as records: each is built from the parameters that have the names of its fields.

    A kind is a dataclass or a TypedDict. Several records may share a parameter. A field with a default, or any key of
    a TypedDict, may have no parameter.
    """

    def grouped(command: Callable[..., R]) -> Callable[..., R]:
        @wraps(command)
        def call(**given: Any) -> R:
            instances = {name: kind(**_values(kind, given)) for name, kind in kinds.items()}
            rest = {name: value for name, value in given.items() if not any(name in _names(k) for k in kinds.values())}
            return command(**instances, **rest)

        return call

    return grouped


def _names(kind: Any) -> Mapping[str, bool]:
    """The fields of a record: True if a field must have a parameter."""
    if not is_dataclass(kind):
        return dict.fromkeys(kind.__annotations__, False)
    return {f.name: f.default is MISSING for f in fields(kind)}


def _values(kind: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name, is_needed in _names(kind).items() if is_needed or name in given}


@record()
class Source:
    """MODEL, and the options that change how it is read."""

    model: Path
    weights: Path | None
    shapes: tuple[str, ...]
    limits: Limits
    pins: dict[str, str] | None = None

    def read(self) -> Model:
        """Read the model and apply --shape. Raises the errors of read_model and `reshaped`."""
        from irload import read_model

        return self.reshaped(read_model(self.model, self.weights, limits=self.limits, sha256=self.pins))

    def reshaped(self, model: Model) -> Model:
        """Apply --shape to a model that has been read, and return it. Raises InputInvalid if its layers do not fit."""
        if self.shapes:
            from irload import AttributeInvalid, InputInvalid, ShapeMismatch, TypeMismatch

            before = [str(p.partial_shape) for p in model.inputs]
            shapes = shapes_of(model, self.shapes)
            try:
                model.reshape(shapes)
            except (AttributeInvalid, ShapeMismatch, TypeMismatch) as error:
                indices = [k for k in shapes if isinstance(k, int)]
                given = " ".join(f"--shape '{model.inputs[k].any_name}{shapes[k]}'" for k in indices)
                declared = ", ".join(before[k] for k in indices)
                verb = "does" if len(indices) == 1 else "do"
                raise InputInvalid(f"{given} {verb} not fit the model (declared {declared}): {error}") from None
        return model


@record()
class Feed:
    """The files of inputs, and the seed of random ones."""

    inputs: tuple[str, ...]
    seed: int | None

    def gather(self, model: Model | CompiledModel, limits: Limits) -> list[InputValue]:
        """Return one value per input. Raises UsageError and InputInvalid, with advice about shapes."""
        from irload import Model
        from irrun.feed import gather

        def graph() -> Model:
            return model if isinstance(model, Model) else model.model  # reads the model if the plan is from the cache

        def advice(*args: Any) -> str:
            from irrun.suggest import advice

            return advice(graph(), *args)

        def reshapes(*args: Any) -> bool:
            from irrun.suggest import reshapes

            return reshapes(graph(), *args)

        return gather(model.inputs, self.inputs, self.seed, limits, advice, reshapes)
