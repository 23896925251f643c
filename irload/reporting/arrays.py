"""Arrays in a page: complete .npy files in base64, which the browser saves."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from irload.arrays.npy import write_npy
from irload.core.tensor import Array
from irload.errors import InputInvalid, IRError, LimitExceeded
from irload.graph import Node
from irload.runtime.compiled_model import CompiledModel
from irload.runtime.observation import matches

if TYPE_CHECKING:
    from irload.reporting.layers import LayerIndex

__all__ = ["held_constant", "hold_tensors"]

SMALL = 4 << 10
"""Upper bound of the bytes of a constant that every page includes."""
MAX_BYTES = 64 << 20
"""Upper bound of the bytes of all requested tensors in a page. Browsers are slow with larger pages."""


def held_constant(node: Node) -> dict[str, str]:
    """Return `npy`, the values of a small constant; empty for a large one, or if its weights are missing."""
    if node.op.attributes["size"] > SMALL:
        return {}
    try:
        return {"npy": _encoded(node.op.attributes["data"]())}
    except IRError:
        return {}


def hold_tensors(compiled: CompiledModel, inputs: Any, patterns: Sequence[str], layers: LayerIndex) -> None:
    """Run the model and store the outputs of layers, and the values of constants, that match a pattern.

    Outputs become `arrays` of their layer, pairs of a name (`loop/body[2]/add`) and a file. Raises InputInvalid for a
    pattern that no layer matches, LimitExceeded if the arrays take more than 64 MB, and the errors of a run.
    """
    room = MAX_BYTES
    met: set[str] = set()

    def encoded(name: str, array: Array) -> str:
        nonlocal room
        room -= array.nbytes
        if room < 0:
            raise LimitExceeded(
                f"the tensors up to '{name}' take more than the {MAX_BYTES >> 20} MB that a page may contain; "
                "choose fewer"
            )
        return _encoded(array)

    nodes = list(layers.index)
    for path, k in layers.by_name.items():
        matched = [p for p in patterns if matches(nodes[k].name, p) or matches(path, p)]
        met.update(matched)
        if matched and nodes[k].type == "Const":
            layers.entries[k]["constant"]["npy"] = encoded(path, nodes[k].op.attributes["data"]())
    for name, array in compiled.intermediates(inputs, patterns):
        met.update(p for p in patterns if matches(name, p))
        k = layers.of_run(name)
        if k is not None and nodes[k].type != "Const":
            layers.entries[k].setdefault("arrays", []).append([name, encoded(name, array)])
    for pattern in patterns:
        if pattern not in met:
            raise InputInvalid(f"no layer matches '{pattern}'; irrun inspect --layers lists them")


def _encoded(array: Array) -> str:
    stream = BytesIO()
    write_npy(stream, array)
    return b64encode(stream.getvalue()).decode("ascii")
