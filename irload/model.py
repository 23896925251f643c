"""Reading a model for use: the file, the graph, and inference over it, in one call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from irload.graph import Model
from irload.inference import infer
from irload.read import read_graph
from irload.safety import DEFAULT, Limits

__all__ = ["read_model"]


def read_model(model: str | Path | bytes, weights: Any = None, *, limits: Limits = DEFAULT) -> Model:
    """Read an OpenVINO IR (v10, v11) and infer every type and shape in it.

    `model`: path of the XML file, or its bytes. `weights`: path or bytes of the .bin file; by default the file beside
    the XML with the ending .bin. `limits`: what the file may ask for; the model keeps them, and all that is done with
    it obeys them. What the runtime would pass over in silence is kept in `Model.warnings`.
    Raises ReadError for what is no IR, LimitExceeded for what passes a limit, and the fault of the first layer that
    does not hold together; `irload.check` and `irrun check` report all of them. Layers of unknown type do not fail:
    their outputs are taken as declared.
    """
    return infer(read_graph(model, weights, limits=limits))
