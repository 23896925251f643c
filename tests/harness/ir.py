"""The IR text and weights of a case: one layer between Parameters, Consts and Results."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import quoteattr

from irload.core.packing import pack
from tests.harness.case import Case, text

ShapeText = Sequence[str | None]


def ir_of(case: Case, shapes: ShapeText | None = None, version: int = 11) -> tuple[bytes, bytes]:
    """(XML, weights) of a model with only the case's operation.

    `shapes` replaces the shapes of the inputs, as text (`1,?,..8`), for dynamic variants; None keeps one static.
    """
    layers: list[str] = []
    edges: list[str] = []
    blob = bytearray(case.weights)
    count = len(case.inputs)
    for k, operand in enumerate(case.inputs):
        shape = ",".join(map(str, operand.value.shape))
        if operand.constant:
            raw = pack(operand.value, operand.element)
            size = max(len(raw), 1)  # the writer stores one byte even for empty tensors
            data = f'<data element_type="{operand.element}" shape="{shape}" offset="{len(blob)}" size="{size}"/>'
            blob += raw or b"\0"
            layers.append(
                layer_text(k, f"in{k}", "Const", "opset1", data, 0, [(operand.element.precision, operand.value.shape)])
            )
        else:
            shape_text = shapes[k] if shapes is not None and shapes[k] is not None else shape
            data = f'<data element_type="{operand.element}" shape="{shape_text}"/>'
            layers.append(layer_text(k, f"in{k}", "Parameter", "opset1", data, 0, [(operand.element.precision, ())]))
        edges.append(f'<edge from-layer="{k}" from-port="0" to-layer="{count}" to-port="{k}"/>')
    attributes = " ".join(f"{name}={quoteattr(text(value))}" for name, value in case.attributes.items())
    data = f"<data {attributes}/>" if attributes else ""
    layers.append(
        layer_text(count, "op", case.type, case.version, data, count, [("FP32", ())] * case.outputs, case.xml)
    )
    for k in range(case.outputs):
        layers.append(layer_text(count + 1 + k, f"out{k}", "Result", "opset1", "", 1, []))
        edges.append(f'<edge from-layer="{count}" from-port="{count + k}" to-layer="{count + 1 + k}" to-port="0"/>')
    body = f"<layers>{''.join(layers)}</layers><edges>{''.join(edges)}</edges>"
    return f'<?xml version="1.0"?><net name="case" version="{version}">{body}</net>'.encode(), bytes(blob)


def layer_text(
    id: int,
    name: str,
    type: str,
    version: str,
    data: str,
    inputs: int,
    outputs: Sequence[tuple[str, Sequence[int]]],
    tail: str = "",
) -> str:
    ports = "".join(f'<port id="{k}"/>' for k in range(inputs))
    input_text = f"<input>{ports}</input>" if inputs else ""
    ports_text = "".join(
        f'<port id="{inputs + k}" precision="{p}">{"".join(f"<dim>{d}</dim>" for d in dims)}</port>'
        for k, (p, dims) in enumerate(outputs)
    )
    ports_text = f"<output>{ports_text}</output>" if outputs else ""
    return (
        f'<layer id="{id}" name="{name}" type="{type}" version="{version}">{data}{input_text}{ports_text}{tail}</layer>'
    )
