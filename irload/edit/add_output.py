"""Adds outputs to a model: tensors inside it."""

from __future__ import annotations

from irload.edit.draft import Draft
from irload.edit.points import Point, label, matching
from irload.errors import InputInvalid
from irload.model import Model

__all__ = ["add_output"]


def add_output(model: Model, *points: Point) -> Model:
    """Return the model with additional outputs, after the existing ones.

    `points` select tensors as in `extract`; a pattern selects the outputs of all matching layers, except
    constants and outputs of the model. A tensor without a name gets the name of its layer. Raises InputInvalid for an
    unknown name, and for a tensor that is an output already.
    """
    draft = Draft(model)
    present = {i for n in draft.model.results for i in n.inputs}
    for point in points:
        outputs = matching(draft, point)
        new = [o for o in outputs if o not in present]
        if not new:
            raise InputInvalid(f"'{label(outputs[0])}' is an output of the model already")
        for output in new:
            draft.result(output, label(output))
            present.add(output)
    return draft.finished()
