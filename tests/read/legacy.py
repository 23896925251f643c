"""Small files of IR v2 to v7: one layer between inputs and results, its weights in a .bin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irload.core.tensor import Array

Dims = Sequence[int]


PRECISIONS = {"float32": "FP32", "float16": "FP16", "int32": "I32", "int64": "I64"}


def ports(dims: Sequence[Dims], first: int, precisions: Sequence[str] = ()) -> str:
    """The ports of a layer, numbered from `first`."""
    kinds = [f' precision="{p}"' for p in precisions] or [""] * len(dims)
    listed = ["".join(f"<dim>{d}</dim>" for d in shape) for shape in dims]
    return "".join(
        f'<port id="{k}"{kind}>{text}</port>' for k, (kind, text) in enumerate(zip(kinds, listed, strict=True), first)
    )


def legacy_net(
    type: str,
    data: str,
    inputs: Sequence[Dims],
    outputs: Sequence[Dims],
    blobs: Mapping[str, Array] | None = None,
    version: int = 6,
    constants: Mapping[int, Array] | None = None,
    precision: str = "FP32",
    precisions: Sequence[str] = (),
) -> tuple[bytes, bytes]:
    """The XML and the weights of a file with one layer.

    `constants`: inputs that are Const layers. `precision`: of the layers, `precisions`: of the output ports.
    """
    blob, places = b"", ""
    for name, values in (blobs or {}).items():
        places += f'<{name} offset="{len(blob)}" size="{values.nbytes}"/>'
        blob += values.tobytes()
    layers, edges = "", ""
    for k, dims in enumerate(inputs):
        type_, extra, kind = "Input", "", precision
        if constants and k in constants:
            values = constants[k]
            extra = f'<blobs><custom offset="{len(blob)}" size="{values.nbytes}"/></blobs>'
            blob += values.tobytes()
            type_, kind = "Const", PRECISIONS[values.dtype.name]
        layers += (
            f'<layer id="{k}" name="in{k}" type="{type_}" precision="{kind}">'
            f"<output>{ports([dims], 0)}</output>{extra}</layer>"
        )
        edges += f'<edge from-layer="{k}" from-port="0" to-layer="50" to-port="{k}"/>'
    if places and version > 2:  # in v2 they are elements of the layer
        places = f"<blobs>{places}</blobs>"
    layers += (
        f'<layer id="50" name="layer" type="{type}" precision="{precision}">{data}<input>{ports(inputs, 0)}</input>'
        f"<output>{ports(outputs, len(inputs), precisions)}</output>{places}</layer>"
    )
    text = f'<net name="m" version="{version}" batch="1"><layers>{layers}</layers><edges>{edges}</edges></net>'
    return text.encode(), blob
