"""Reading a file into a Model: `read_model` infers and compares what ports declare, `read_anyway` takes any graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from irload.differences import note_differences
from irload.errors import IRError
from irload.graph import Node
from irload.model import Model, infer
from irload.read import read_graph
from irload.safety import DEFAULT, Limits

__all__ = ["read_anyway", "read_model"]


def read_model(
    model: str | Path | bytes,
    weights: Any = None,
    *,
    limits: Limits = DEFAULT,
    mmap: bool = False,
    sha256: str | Mapping[str, str] | None = None,
) -> Model:
    """Read an OpenVINO IR (v10, v11) and infer every type and shape in it.

    `model`: path of the XML file, or its bytes. `weights`: path or bytes of the .bin file; by default the file beside
    the XML with the ending .bin. `limits`: what the file may ask for; the model keeps them, and all that is done with
    it obeys them. `mmap`: map the .bin file instead of reading it; the process dies if the file shrinks meanwhile.
    `sha256`: the digest that the model must have, as `irrun inspect --sha256` shows it, or a dict of those of "xml" and
    "bin"; the very bytes that were hashed are parsed and run. What the runtime ignores without a warning is kept in
    `Model.warnings`, among it every port that declares what is not inferred (`Model.differences`).
    Raises ReadError for what is no IR or not what was pinned, LimitExceeded for what passes a limit, and the fault of
    the first layer that does not hold together; `irload.check` and `irrun check` report all of them. Layers of unknown
    type do not fail: their outputs are taken as declared.
    """
    found = infer(read_graph(model, weights, limits=limits, mmap=mmap, sha256=sha256))
    note_differences(found)
    return found


def read_anyway(
    model: str | Path,
    weights: Any = None,
    *,
    limits: Limits = DEFAULT,
    note: Callable[[IRError], object] = lambda error: None,
) -> Model:
    """Read a model that need not hold together, to be looked at: what a layer gives that does not infer is as declared.

    Each fault of inference goes to `note`. Raises ReadError and LimitExceeded as `read_model` does.
    """

    def on_error(node: Node, error: IRError) -> None:
        note(error)

    return infer(read_graph(model, weights, limits=limits), on_error)
