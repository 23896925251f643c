"""Reads a file into a Model: `read_model` infers types and checks declarations, `read_anyway` tolerates faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from irload.errors import IRError
from irload.graph import Node
from irload.model import Model, infer
from irload.read import read_graph
from irload.safety.limits import DEFAULT, Limits
from irload.safety.opened import ModelFiles
from irload.system.forks import unforked
from irload.validation.differences import note_differences

__all__ = ["read_anyway", "read_model", "read_opened"]


@unforked
def read_model(
    model: str | Path | bytes,
    weights: Any = None,
    *,
    limits: Limits = DEFAULT,
    mmap: bool = False,
    sha256: str | Mapping[str, str] | None = None,
) -> Model:
    """Read an OpenVINO IR (v2 to v7, v10, v11) and infer every type and shape in it.

    - `model`: the path of the XML file, or its bytes.
    - `weights`: the path or the bytes of the .bin file; by default the file next to the XML with the suffix .bin.
    - `limits`: bounds on sizes, counts, memory and time, for reading and running the model.
    - `mmap`: map the .bin file instead of reading it. The process is killed if the file is truncated meanwhile.
    - `sha256`: the required digest of the model, as `irrun inspect --sha256` shows it, or a dict of digests by "xml"
      and "bin". The bytes that are hashed are the bytes that are parsed and run.

    `Model.warnings` lists faults that OpenVINO ignores without a warning, including every port whose declaration
    contradicts the inferred type (`Model.differences`). Outputs of layers of unknown type get the declared types.
    Layers of IR v2 to v7 become operations, which `Model.rewritten` lists.

    Raises ReadError if the file is not an IR or does not match the digest, LimitExceeded if it exceeds a limit, and the
    error of the first invalid layer. `irload.check` and `irrun check` report all invalid layers.
    """
    return _inferred(model, weights, limits, mmap=mmap, sha256=sha256)


def read_opened(model: str | Path, files: ModelFiles, limits: Limits) -> Model:
    """`read_model` for files that are already open. `model` is their path, for messages."""
    return _inferred(model, None, limits, files=files)


def _inferred(
    model: str | Path | bytes,
    weights: Any,
    limits: Limits,
    *,
    mmap: bool = False,
    sha256: str | Mapping[str, str] | None = None,
    files: ModelFiles | None = None,
) -> Model:
    inferred = infer(read_graph(model, weights, limits=limits, mmap=mmap, sha256=sha256, files=files))
    note_differences(inferred)
    return inferred


def read_anyway(
    model: str | Path,
    weights: Any = None,
    *,
    limits: Limits = DEFAULT,
    note: Callable[[IRError], object] = lambda error: None,
) -> Model:
    """Read a model that may have invalid layers, for inspection: their outputs get the declared types.

    Each fault of inference is passed to `note`. Raises ReadError and LimitExceeded as `read_model` does.
    """

    def on_error(node: Node, error: IRError) -> None:
        note(error)

    return infer(read_graph(model, weights, limits=limits), on_error)
