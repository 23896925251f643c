"""Reading a model for use: the file, the graph, and inference over it, in one call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from irload.graph import Model
from irload.inference import infer
from irload.read import read_graph

__all__ = ["read_model"]


def read_model(model: str | Path | bytes, weights: Any = None) -> Model:
    """Read an OpenVINO IR (v10, v11) and infer every type and shape in it.

    `model`: path of the XML file, or its bytes. `weights`: path or bytes of the .bin file; by default the file beside
    the XML with the ending .bin. What the runtime would pass over in silence is kept in `Model.warnings`.
    Raises ReadError for what is no IR, and the fault of the first layer that does not hold together; `irload.check` and
    `irrun check` report all of them. Layers of unknown type do not fail: their outputs are taken as declared.
    """
    return infer(read_graph(model, weights))
