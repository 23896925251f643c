"""Reads IR: XML into raw layers, the .bin file into weights, both into a Model. Nothing is inferred here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from irload.errors import InputInvalid, IRError, ReadError, Where
from irload.model import Model
from irload.read.build import build
from irload.read.sealed import SealedWeights
from irload.read.weights import Weights
from irload.read.xml import OnFault, raise_first, read_xml
from irload.safety.files import read_limited
from irload.safety.integrity import Digests, Pins, pins_of
from irload.safety.integrity import sha256 as digest
from irload.safety.limits import DEFAULT, Limits
from irload.safety.opened import ModelFiles

__all__ = ["Weights", "open_weights", "read_graph", "read_xml", "sealed_weights"]


def read_graph(
    source: str | Path | bytes,
    weights: Any = None,
    report: OnFault = raise_first,
    limits: Limits = DEFAULT,
    *,
    mmap: bool = False,
    sha256: str | Pins | None = None,
    hashed: bool = False,
    files: ModelFiles | None = None,
) -> Model:
    """Return the Model of an IR file, without inference.

    `source`: path of the XML, or its bytes. `weights`: path or bytes of the .bin; by default the file beside the XML
    with the suffix .bin, if it exists. Faults go to `report`. `mmap`: map the .bin file. `sha256`: expected digests of
    the files; `hashed`: compute the model's `digests` even without `sha256`. `files`: the files of this path if they
    are already open; then no other file is read. Raises ReadError if nothing can be read.
    """
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith(("<?xml", "<net")):
        raise ReadError("read_model takes a path or bytes, and this str is the text of an XML file; pass text.encode()")
    if isinstance(source, bytes | bytearray | memoryview):
        name, source = None, bytes(source)
    else:
        name = str(source)
        source = Path(source)
    pins = None if sha256 is None else pins_of(sha256)
    if pins is not None and mmap:
        raise InputInvalid("a mapped file may change after it was hashed; give sha256 or mmap, not both")
    try:
        digests = None
        if files is not None:
            opened = sealed_weights(files, limits) if weights is None else open_weights(source, weights, limits)
            net = read_xml(files.content, report, limits, name)
        elif pins is None and not hashed:
            net = read_xml(source, report, limits)
            opened = open_weights(source, weights, limits, mmap=mmap)
        else:  # hash the same bytes that are parsed and run
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
    """Return the weights of a model: `weights` if given, else the .bin file next to the XML, else no weights."""
    if weights is not None or isinstance(source, bytes):
        return weights if isinstance(weights, Weights) else Weights(weights, limits, mmap=mmap)
    beside = Path(source).with_suffix(".bin")
    return Weights(beside if beside.exists() else None, limits, mmap=mmap, beside=beside)


def sealed_weights(files: ModelFiles, limits: Limits) -> Weights:
    """Return the weights of a model whose files were opened before."""
    return Weights(None, limits, beside=files.beside) if files.weights is None else SealedWeights(files.weights, limits)
