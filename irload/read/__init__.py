"""Reading IR: XML into raw layers, .bin into weights, both into a Model. Knows XML, knows no operation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from irload.errors import IRError, ReadError, Where
from irload.graph import Model
from irload.read.build import build
from irload.read.weights import Weights
from irload.read.xml import Report, raise_first, read_xml
from irload.safety import DEFAULT, Limits

__all__ = ["Weights", "open_weights", "read_graph", "read_xml"]


def read_graph(
    source: str | Path | bytes, weights: Any = None, report: Report = raise_first, limits: Limits = DEFAULT
) -> Model:
    """The Model of an IR file, not yet inferred.

    `source`: path of the XML, or its bytes. `weights`: path or bytes of the .bin; by default the file beside the XML
    with the ending .bin, if there is one. Faults go to `report`. Raises ReadError where nothing can be read.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        name, source = None, bytes(source)
    else:
        name = str(source)
        source = Path(source)
    try:
        net = read_xml(source, report, limits)
        return build(net, open_weights(source, weights, limits), name, report, limits)
    except IRError as error:
        raise error.at(Where(name)) from None
    except RecursionError:
        raise ReadError("is nested too deep", Where(name)) from None


def open_weights(source: str | Path | bytes, weights: Any = None, limits: Limits = DEFAULT) -> Weights:
    """The weights of a model: what is given, else the file beside the XML with the ending .bin, else none."""
    if weights is not None or isinstance(source, bytes):
        return weights if isinstance(weights, Weights) else Weights(weights, limits)
    beside = Path(source).with_suffix(".bin")
    return Weights(beside if beside.exists() else None, limits)
