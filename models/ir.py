"""Writes IR by hand: layers with declared ports, constants, bodies. Sufficient for the small models in this folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

PRECISIONS = {"f32": "FP32", "f16": "FP16", "bf16": "BF16", "i64": "I64", "i32": "I32", "u8": "U8", "boolean": "BOOL"}
PRECISIONS |= {name: name.upper() for name in ("u4", "i4", "nf4", "f4e2m1", "f8e4m3", "f8e5m2", "f8e8m0")}
PRECISIONS |= {"f64": "FP64", "i8": "I8", "u32": "U32", "u64": "U64", "u1": "BIN", "string": "STRING"}
ELEMENTS = {"float32": "f32", "float16": "f16", "int64": "i64", "int32": "i32", "int8": "i8", "uint8": "u8"}
ELEMENTS["bool"] = "boolean"

Dims = Sequence[int | str]  # a size, or the text of a dynamic one: "?", "1..8"


@dataclass(frozen=True)
class Ref:
    """An output port of a layer: where edges start."""

    layer: int
    port: int
    element: str
    dims: tuple[int | str, ...]


@dataclass
class Graph:
    """The layers and edges of a net or of a body. Bodies write their constants to the blob of the net."""

    blob: bytearray = field(default_factory=bytearray)
    layers: list[str] = field(default_factory=list[str])
    edges: list[str] = field(default_factory=list[str])

    def parameter(self, name: str, element: str, dims: Dims) -> Ref:
        """An input of the graph."""
        attributes = {"shape": ",".join(map(str, dims)), "element_type": element}
        return self.layer("Parameter", [], [(element, dims)], name=name, names=[name], attributes=attributes)[0]

    def constant(self, value: object, name: str = "") -> Ref:
        """A Const; plain integers become i64."""
        array = np.asarray(value)
        element, shape = ELEMENTS[array.dtype.name], array.shape
        raw = array.tobytes()
        attributes = {"element_type": element, "shape": ",".join(map(str, shape))}
        attributes |= {"offset": str(len(self.blob)), "size": str(len(raw))}
        self.blob += raw
        return self.layer("Const", [], [(element, shape)], name=name, attributes=attributes)[0]

    def layer(
        self,
        type: str,
        inputs: Sequence[Ref],
        outputs: Sequence[tuple[str, Dims]],
        *,
        version: str = "opset1",
        name: str = "",
        names: Sequence[str] = (),
        attributes: Mapping[str, object] | None = None,
        inner: str = "",
    ) -> list[Ref]:
        """Any layer. `outputs` are the declared ports, `names` their tensor names, `inner` further elements."""
        number = len(self.layers)
        name = name or f"{type}_{number}"
        data = " ".join(f"{key}={quoteattr(str(value))}" for key, value in (attributes or {}).items())
        taken = "".join(_port(k, ref.element, ref.dims) for k, ref in enumerate(inputs))
        given = "".join(
            _port(len(inputs) + k, element, dims, names[k] if k < len(names) else "")
            for k, (element, dims) in enumerate(outputs)
        )
        self.layers.append(
            f'\t\t<layer id="{number}" name={quoteattr(name)} type="{type}" version="{version}">\n'
            + (f"\t\t\t<data {data}/>\n" if data else "")
            + (f"\t\t\t<input>\n{taken}\t\t\t</input>\n" if inputs else "")
            + (f"\t\t\t<output>\n{given}\t\t\t</output>\n" if outputs else "")
            + inner
            + "\t\t</layer>\n"
        )
        for k, ref in enumerate(inputs):
            self.edges.append(
                f'\t\t<edge from-layer="{ref.layer}" from-port="{ref.port}" to-layer="{number}" to-port="{k}"/>\n'
            )
        return [Ref(number, len(inputs) + k, e, tuple(dims)) for k, (e, dims) in enumerate(outputs)]

    def result(self, source: Ref, name: str = "") -> int:
        """Add an output of the graph. Returns its layer's id, for use in port maps."""
        self.layer("Result", [source], [], name=name)
        return len(self.layers) - 1

    def text(self) -> str:
        """The elements `layers` and `edges`."""
        return f"\t<layers>\n{''.join(self.layers)}\t</layers>\n\t<edges>\n{''.join(self.edges)}\t</edges>\n"

    def body(self) -> Graph:
        """Return an empty body whose constants go to this graph's blob."""
        return Graph(self.blob)


def save(graph: Graph, folder: Path, name: str, version: int = 11) -> None:
    """Write model.xml and model.bin."""
    folder.mkdir(parents=True, exist_ok=True)
    text = f'<?xml version="1.0"?>\n<net name="{name}" version="{version}">\n{graph.text()}</net>\n'
    (folder / "model.xml").write_text(text, encoding="utf-8", newline="\n")
    (folder / "model.bin").write_bytes(bytes(graph.blob))


def save_example(folder: Path, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
    """Write input_<k>.npy and expected_<k>.npy beside a model."""
    for kind, arrays in (("input", inputs), ("expected", outputs)):
        for k, array in enumerate(arrays):
            np.save(folder / f"{kind}_{k}.npy", array)


def _port(number: int, element: str, dims: Dims, name: str = "") -> str:
    """Return a port; a dynamic size is declared as −1."""
    lines = "".join(f"\t\t\t\t\t<dim>{d if isinstance(d, int) else -1}</dim>\n" for d in dims)
    named = f" names={quoteattr(name)}" if name else ""
    head = f'\t\t\t\t<port id="{number}" precision="{PRECISIONS[element]}"{named}'
    return f"{head}>\n{lines}\t\t\t\t</port>\n" if lines else f"{head}/>\n"
