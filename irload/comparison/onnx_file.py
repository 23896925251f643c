"""Runs an ONNX file by ONNX Runtime. Its outputs get the names of the layers of the model converted from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from irload.core.tensor import Array
from irload.errors import InputInvalid, ReadError, Unsupported, Where
from irload.graph import Port
from irload.model import Model

__all__ = ["onnx_outputs"]

LARGEST = 1 << 30
"""Upper bound of the bytes of a file that gets additional outputs, which requires a modified copy in memory."""


def onnx_outputs(
    path: Path, model: Model, inputs: Sequence[Array], names: dict[str, str]
) -> tuple[Iterator[tuple[str, Array]], frozenset[str]]:
    """Return pairs (name, array), and the set of names.

    `names`: tensor name → name of the output of a layer. If the package onnx is installed, it declares these tensors as
    additional outputs, and all of them are returned; otherwise only the declared outputs of the file. The outputs of
    the file are matched by tensor name, else by index; inputs likewise. Raises Unsupported if ONNX Runtime is missing
    or does not run the file, and ReadError.
    """
    if not path.exists():
        raise ReadError("no such file", Where(str(path)))
    try:
        import onnxruntime
    except ImportError:
        raise Unsupported("ONNX Runtime is not installed here; pip install onnxruntime") from None
    runtime: Any = onnxruntime
    quiet = runtime.SessionOptions()
    quiet.log_severity_level = 3
    # With optimizations, fused layers would return nothing, and folded constants would be outputs.
    quiet.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        source, within = _with_outputs(path, names)
        session = runtime.InferenceSession(source, quiet, providers=["CPUExecutionProvider"])
        declared = [o.name for o in session.get_outputs() if o.name not in within]
        labels = {o: names[o] for o in within} | _matched(declared, model.outputs, names)
        wanted = [o for o in labels if o]
        feed = dict(zip(_inputs(session, model.inputs), inputs, strict=True))
        results: list[Any] = session.run(wanted, feed)
    except (InputInvalid, ReadError):
        raise
    except Exception as error:  # a C++ library with a separate exception class for each kind of error
        last = str(error).strip().splitlines()[-1][:300] if str(error).strip() else type(error).__name__
        raise Unsupported(f"ONNX Runtime does not run {path}: {last}") from None
    pairs = {labels[o]: np.asarray(r) for o, r in zip(wanted, results, strict=True)}
    ordered = [name for name in names.values() if name in pairs]
    return ((name, pairs[name]) for name in dict.fromkeys([*ordered, *pairs])), frozenset(pairs)


def _with_outputs(path: Path, names: dict[str, str]) -> tuple[str | bytes, list[str]]:
    """Return the file unchanged, or its bytes with an output for each tensor of a known name; and these names."""
    try:
        import onnx
    except ImportError:
        return str(path), []
    library: Any = onnx
    if path.stat().st_size > LARGEST:
        return str(path), []
    try:
        proto: Any = library.load(str(path), load_external_data=False)
    except Exception:  # protobuf's exception classes, which differ between versions
        raise ReadError("is not an ONNX file", Where(str(path))) from None
    if any(t.data_location == library.TensorProto.EXTERNAL for t in proto.graph.initializer):
        return str(path), []
    present = {o.name for o in proto.graph.output}
    added = [o for node in proto.graph.node for o in node.output if o in names and o not in present]
    proto.graph.output.extend(library.ValueInfoProto(name=o) for o in added)
    return proto.SerializeToString(), added


def _inputs(session: Any, ports: Sequence[Port]) -> list[str]:
    """Return the inputs of the file in the model's order: by name if all names match, else in file order."""
    names = [i.name for i in session.get_inputs()]
    if len(names) != len(ports):
        raise InputInvalid(f"the ONNX file takes {len(names)} inputs, the model {len(ports)}")
    by_port = [next((name for name in names if name in p.names), None) for p in ports]
    shared = [name for name in by_port if name is not None]
    return shared if len(set(shared)) == len(names) else names


def _matched(declared: Sequence[str], ports: Sequence[Port], names: dict[str, str]) -> dict[str, str]:
    """Return the names of layers for the outputs of the file."""
    by_tensor = {o: names[o] for o in declared if o in names}
    if len(by_tensor) < len(declared) == len(ports):
        # A Result returns the output of another layer, under any of its tensor names.
        by_port = [next((names[t] for t in p.output.names if t in names), "") for p in ports]
        return {o: by_tensor.get(o, name) for o, name in zip(declared, by_port, strict=True) if by_tensor.get(o, name)}
    return by_tensor
