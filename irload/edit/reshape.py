"""Changes the shapes of the inputs of a model."""

from __future__ import annotations

from collections.abc import Mapping

from irload.edit.draft import Draft
from irload.graph import Port
from irload.inference import ShapeLike
from irload.model import Model

__all__ = ["reshape"]


def reshape(model: Model, shapes: ShapeLike | Mapping[str | int | Port, ShapeLike]) -> Model:
    """Return the model with other partial shapes of inputs. `Model.reshape` changes the model in place instead.

    `shapes`: one shape for a model of one input, or a dict from input name, position or Port to shape. A shape is a
    Shape, a sequence of sizes (None or −1: any; a pair: bounds) or its text `1,?,2..8`. Raises InputInvalid for an
    unknown input, and the error of the first layer that is invalid for these shapes.
    """
    draft = Draft(model)
    if isinstance(shapes, Mapping):
        shapes = {draft.input(key): shape for key, shape in shapes.items()}
    return draft.finished(lambda changed: changed.reshape(shapes))
