"""Valid models in IR text for the tests of rules, one element per line, and edits of them.

Each model is a block: its layers and edges, with ids from 0, and its weights. Several blocks form one file, so that
unrelated faults can be combined.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

Dims = Sequence[int]
Port = tuple[str, Dims]
BLOCK = 1000
"""The distance of layer ids between blocks of one file."""
OUTER = re.compile(r'^<layer id="(\d+)" name="(\w*)"', re.M)
EDGE = re.compile(r'^<edge from-layer="(\d+)" from-port="(\d+)" to-layer="(\d+)"', re.M)


@dataclass(frozen=True)
class Block:
    """A piece of a net: text of its layers, of its edges, and the bytes of its constants."""

    layers: str
    edges: str
    blob: bytes = b""

    def edited(self, *changes: tuple[str, str]) -> Block:
        """The block with the first occurrence of each text replaced; raises if a text does not occur."""
        block = self
        for old, new in changes:
            if old in block.layers:
                block = replace(block, layers=block.layers.replace(old, new, 1))
            else:
                assert old in block.edges, old
                block = replace(block, edges=block.edges.replace(old, new, 1))
        return block

    def shifted(self, first: int, offset: int, prefix: str) -> Block:
        """The block with ids from `first`, constants from `offset`, and prefixed names."""
        layers = OUTER.sub(lambda m: f'<layer id="{int(m[1]) + first}" name="{m[2] and prefix + m[2]}"', self.layers)
        layers = re.sub(r'names="(\w+)', rf'names="{prefix}\1', layers)
        layers = re.sub(r'variable_id="', f'variable_id="{prefix}', layers)
        layers = re.sub(r' offset="(\d+)"', lambda m: f' offset="{int(m[1]) + offset}"', layers)
        edges = EDGE.sub(
            lambda m: f'<edge from-layer="{int(m[1]) + first}" from-port="{m[2]}" to-layer="{int(m[3]) + first}"',
            self.edges,
        )
        return Block(layers, edges, self.blob)


def net(*blocks: Block, version: str = "11") -> tuple[str, bytes]:
    """(text, weights) of a file that consists of the blocks."""
    parts: list[Block] = []
    blob = b""
    for k, block in enumerate(blocks):
        parts.append(block if len(blocks) == 1 else block.shifted(BLOCK * k, len(blob), f"b{k}_"))
        blob += block.blob
    layers, edges = "".join(p.layers for p in parts), "".join(p.edges for p in parts)
    head = f'<?xml version="1.0"?>\n<net name="m" version="{version}">\n'
    return f"{head}<layers>\n{layers}</layers>\n<edges>\n{edges}</edges>\n</net>\n", blob


def port(id: int, declaration: Port, names: str = "") -> str:
    precision, dims = declaration
    named = f' names="{names}"' if names else ""
    return f'<port id="{id}" precision="{precision}"{named}>{"".join(f"<dim>{d}</dim>" for d in dims)}</port>'


def layer(
    id: int,
    name: str,
    type: str,
    inputs: Sequence[Port] = (),
    outputs: Sequence[Port] = (),
    data: str = "",
    *,
    version: str = "opset1",
    names: Sequence[str] = (),
    tail: str = "",
    indent: str = "",
) -> str:
    """The text of a layer; ports are numbered as OpenVINO's writer does."""
    count = len(inputs)
    input_ports = [port(k, entry) for k, entry in enumerate(inputs)]
    ports = [port(count + k, p, names[k] if k < len(names) else "") for k, p in enumerate(outputs)]
    attributes = f' output_names="{names[0]}"' if type == "Result" and names else ""
    lines = [
        f'<layer id="{id}" name="{name}" type="{type}" version="{version}"{attributes}>',
        *([f"<data {data}/>"] if data else []),
        *(["<input>", *input_ports, "</input>"] if input_ports else []),
        *(["<output>", *ports, "</output>"] if ports else []),
        *([tail] if tail else []),
        "</layer>",
    ]
    return "".join(f"{indent}{line}\n" for line in lines)


def inner(*arguments: object, **keywords: object) -> str:
    """A layer of a body."""
    return layer(*arguments, **keywords, indent="  ")


def edges(*ends: tuple[int, int, int, int], indent: str = "") -> str:
    return "".join(
        f'{indent}<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>\n' for a, b, c, d in ends
    )


def body(tag: str, layers: str, *ends: tuple[int, int, int, int]) -> str:
    return f"<{tag}>\n<layers>\n{layers}</layers>\n<edges>\n{edges(*ends, indent='  ')}</edges>\n</{tag}>"


def f32(*dims: int) -> Port:
    return ("FP32", dims)


def i64(*dims: int) -> Port:
    return ("I64", dims)


BOOL: Port = ("BOOL", ())
CONV_DATA = 'strides="1,1" dilations="1,1" pads_begin="0,0" pads_end="0,0" auto_pad="explicit"'

CONV = Block(
    layer(0, "x", "Parameter", [], [f32(1, 3, 8, 8)], 'shape="1,3,8,8" element_type="f32"', names=["x"])
    + layer(1, "w", "Const", [], [f32(4, 3, 3, 3)], 'element_type="f32" shape="4,3,3,3" offset="0" size="432"')
    + layer(2, "conv", "Convolution", [f32(1, 3, 8, 8), f32(4, 3, 3, 3)], [f32(1, 4, 6, 6)], CONV_DATA, names=["c"])
    + layer(3, "relu", "ReLU", [f32(1, 4, 6, 6)], [f32(1, 4, 6, 6)], names=["y"])
    + layer(4, "out", "Result", [f32(1, 4, 6, 6)], names=["y"]),
    edges((0, 0, 2, 0), (1, 0, 2, 1), (2, 2, 3, 0), (3, 1, 4, 0)),
    np.linspace(-1, 1, 108, dtype=np.float32).tobytes(),
)

DYNAMIC = Block(
    layer(0, "x", "Parameter", [], [f32(-1, 3)], 'shape="?,3" element_type="f32"', names=["x"])
    + layer(1, "relu", "ReLU", [f32(-1, 3)], [f32(-1, 3)], names=["y"])
    + layer(2, "out", "Result", [f32(-1, 3)], names=["y"]),
    edges((0, 0, 1, 0), (1, 1, 2, 0)),
)

STEP = f32(2, 1, 3)
TENSOR_ITERATOR = Block(
    layer(0, "seq", "Parameter", [], [f32(2, 5, 3)], 'shape="2,5,3" element_type="f32"', names=["seq"])
    + layer(1, "init", "Parameter", [], [STEP], 'shape="2,1,3" element_type="f32"', names=["init"])
    + layer(
        *(2, "ti", "TensorIterator", [f32(2, 5, 3), STEP], [f32(2, 5, 3), STEP]),
        names=["all", "last"],
        tail='<port_map>\n<input external_port_id="0" internal_layer_id="0" axis="1"/>\n'
        '<input external_port_id="1" internal_layer_id="1"/>\n'
        '<output external_port_id="2" internal_layer_id="3" axis="1"/>\n'
        '<output external_port_id="3" internal_layer_id="4"/>\n</port_map>\n'
        '<back_edges>\n<edge from-layer="4" to-layer="1"/>\n</back_edges>\n'
        + body(
            "body",
            inner(0, "slice", "Parameter", [], [STEP], 'shape="2,1,3" element_type="f32"')
            + inner(1, "state", "Parameter", [], [STEP], 'shape="2,1,3" element_type="f32"')
            + inner(2, "add", "Add", [STEP, STEP], [STEP], 'auto_broadcast="numpy"')
            + inner(3, "each", "Result", [STEP])
            + inner(4, "next", "Result", [STEP]),
            *((0, 0, 2, 0), (1, 0, 2, 1), (2, 2, 3, 0), (2, 2, 4, 0)),
        ),
    )
    + layer(3, "out", "Result", [f32(2, 5, 3)], names=["all"])
    + layer(4, "end", "Result", [STEP], names=["last"]),
    edges((0, 0, 2, 0), (1, 0, 2, 1), (2, 2, 3, 0), (2, 3, 4, 0)),
)

LOOP = Block(
    layer(0, "trip", "Const", [], [i64()], 'element_type="i64" shape="" offset="0" size="8"')
    + layer(1, "go", "Const", [], [BOOL], 'element_type="boolean" shape="" offset="8" size="1"')
    + layer(2, "x", "Parameter", [], [f32(1, 2)], 'shape="1,2" element_type="f32"', names=["x"])
    + layer(
        *(3, "loop", "Loop", [i64(), BOOL, f32(1, 2)], [f32(1, 2)]),
        version="opset5",
        names=["y"],
        tail='<port_map>\n<input external_port_id="-1" internal_layer_id="0" purpose="current_iteration"/>\n'
        '<input external_port_id="2" internal_layer_id="1"/>\n'
        '<output external_port_id="-1" internal_layer_id="5" purpose="execution_condition"/>\n'
        '<output external_port_id="3" internal_layer_id="6"/>\n</port_map>\n'
        '<back_edges>\n<edge from-layer="6" to-layer="1"/>\n</back_edges>\n'
        + body(
            "body",
            inner(0, "i", "Parameter", [], [i64()], 'shape="" element_type="i64"')
            + inner(1, "s", "Parameter", [], [f32(1, 2)], 'shape="1,2" element_type="f32"')
            + inner(2, "on", "Const", [], [BOOL], 'element_type="boolean" shape="" offset="8" size="1"')
            + inner(3, "f", "Convert", [i64()], [f32()], 'destination_type="f32"')
            + inner(4, "sum", "Add", [f32(1, 2), f32()], [f32(1, 2)], 'auto_broadcast="numpy"')
            + inner(5, "more", "Result", [BOOL])
            + inner(6, "next", "Result", [f32(1, 2)]),
            *((0, 0, 3, 0), (1, 0, 4, 0), (3, 1, 4, 1), (2, 0, 5, 0), (4, 2, 6, 0)),
        ),
    )
    + layer(4, "out", "Result", [f32(1, 2)], names=["y"]),
    edges((0, 0, 3, 0), (1, 0, 3, 1), (2, 0, 3, 2), (3, 3, 4, 0)),
    np.int64(3).tobytes() + b"\x01" + bytes(7),
)


def _branch(tag: str, type: str) -> str:
    return body(
        tag,
        inner(0, "in", "Parameter", [], [f32(1, 2)], 'shape="1,2" element_type="f32"')
        + inner(1, "f", type, [f32(1, 2)], [f32(1, 2)])
        + inner(2, "res", "Result", [f32(1, 2)]),
        *((0, 0, 1, 0), (1, 1, 2, 0)),
    )


_BRANCH_MAP = (
    '<{}>\n<input external_port_id="1" internal_layer_id="0"/>\n'
    '<output external_port_id="2" internal_layer_id="2"/>\n</{}>\n'
)

IF = Block(
    layer(0, "cond", "Parameter", [], [BOOL], 'shape="" element_type="boolean"', names=["cond"])
    + layer(1, "x", "Parameter", [], [f32(1, 2)], 'shape="1,2" element_type="f32"', names=["x"])
    + layer(
        *(2, "if", "If", [BOOL, f32(1, 2)], [f32(1, 2)]),
        version="opset8",
        names=["y"],
        tail=_BRANCH_MAP.format("then_port_map", "then_port_map")
        + _BRANCH_MAP.format("else_port_map", "else_port_map")
        + _branch("then_body", "ReLU")
        + "\n"
        + _branch("else_body", "Sigmoid"),
    )
    + layer(3, "out", "Result", [f32(1, 2)], names=["y"]),
    edges((0, 0, 2, 0), (1, 0, 2, 1), (2, 2, 3, 0)),
)

STATE = Block(
    layer(0, "x", "Parameter", [], [f32(1, 3)], 'shape="1,3" element_type="f32"', names=["x"])
    + layer(1, "zero", "Const", [], [f32(1, 3)], 'element_type="f32" shape="1,3" offset="0" size="12"')
    + layer(
        *(2, "read", "ReadValue", [f32(1, 3)], [f32(1, 3)]),
        'variable_id="v" variable_type="f32" variable_shape="1,3"',
        version="opset6",
    )
    + layer(3, "add", "Add", [f32(1, 3), f32(1, 3)], [f32(1, 3)], 'auto_broadcast="numpy"', names=["y"])
    + layer(4, "write", "Assign", [f32(1, 3)], [f32(1, 3)], 'variable_id="v"', version="opset6")
    + layer(5, "out", "Result", [f32(1, 3)], names=["y"]),
    edges((1, 0, 2, 0), (2, 1, 3, 0), (0, 0, 3, 1), (3, 2, 4, 0), (3, 2, 5, 0)),
    np.zeros(3, np.float32).tobytes(),
)

RESHAPE = Block(
    layer(0, "x", "Parameter", [], [f32(2, 6)], 'shape="2,6" element_type="f32"', names=["x"])
    + layer(1, "sizes", "ShapeOf", [f32(2, 6)], [i64(2)], 'output_type="i64"', version="opset3")
    + layer(2, "target", "Const", [], [i64(2)], 'element_type="i64" shape="2" offset="0" size="16"')
    + layer(3, "mul", "Multiply", [i64(2), i64(2)], [i64(2)], 'auto_broadcast="numpy"')
    + layer(4, "reshape", "Reshape", [f32(2, 6), i64(2)], [f32(2, 6)], 'special_zero="false"', names=["y"])
    + layer(5, "out", "Result", [f32(2, 6)], names=["y"]),
    edges((0, 0, 1, 0), (1, 1, 3, 0), (2, 0, 3, 1), (0, 0, 4, 0), (3, 2, 4, 1), (4, 2, 5, 0)),
    np.ones(2, np.int64).tobytes(),
)

BASES = {
    "conv": CONV,
    "dynamic": DYNAMIC,
    "tensor_iterator": TENSOR_ITERATOR,
    "loop": LOOP,
    "if": IF,
    "state": STATE,
    "reshape": RESHAPE,
}
