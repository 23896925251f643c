"""Reading IR: XML into raw layers, the .bin file into weights, both into a Model. Nothing is inferred here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from irload.errors import InputInvalid, IRError, ReadError, Where
from irload.files import read_limited
from irload.integrity import Digests, Pins, pins_of
from irload.integrity import sha256 as digest
from irload.model import Model
from irload.read.build import build
from irload.read.weights import Weights
from irload.read.xml import OnFault, raise_first, read_xml
from irload.safety import DEFAULT, Limits

__all__ = ["Weights", "open_weights", "read_graph", "read_xml"]


def read_graph(
    source: str | Path | bytes,
    weights: Any = None,
    report: OnFault = raise_first,
    limits: Limits = DEFAULT,
    *,
    mmap: bool = False,
    sha256: str | Pins | None = None,
    hashed: bool = False,
) -> Model:
    """The Model of an IR file, not yet inferred.

    `source`: path of the XML, or its bytes. `weights`: path or bytes of the .bin; by default the file beside the XML
    with the ending .bin, if there is one. Faults go to `report`. `mmap`: map the .bin file. `sha256`: what the files
    must be; `hashed`: give the model its `digests` in any case. Raises ReadError where nothing can be read.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        name, source = None, bytes(source)
    else:
        name = str(source)
        source = Path(source)
    pins = None if sha256 is None else pins_of(sha256)
    if pins is not None and mmap:
        raise InputInvalid("a mapped file may change after it was hashed; give sha256 or mmap, not both")
    try:
        if pins is None and not hashed:
            digests = None
            net = read_xml(source, report, limits)
            opened = open_weights(source, weights, limits, mmap=mmap)
        else:  # the very bytes that are hashed are parsed and run
            content = source if isinstance(source, bytes) else read_limited(source, "the model", limits.xml_bytes)
            opened = open_weights(source, weights, limits)
            digests = Digests(digest(content), opened.digest(keep=pins is not None))
            digests.require(pins or {})
            net = read_xml(content, report, limits, name)
        model = build(net, opened, name, report, limits)
    except IRError as error:
        raise error.at(Where(name)) from None
    except RecursionError:
        raise ReadError("is nested too deep", Where(name)) from None
    model.digests = digests
    return model


def open_weights(
    source: str | Path | bytes, weights: Any = None, limits: Limits = DEFAULT, *, mmap: bool = False
) -> Weights:
    """The weights of a model: what is given, else the file beside the XML with the ending .bin, else none."""
    if weights is not None or isinstance(source, bytes):
        return weights if isinstance(weights, Weights) else Weights(weights, limits, mmap=mmap)
    beside = Path(source).with_suffix(".bin")
    return Weights(beside if beside.exists() else None, limits, mmap=mmap, beside=beside)
