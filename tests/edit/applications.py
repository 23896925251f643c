"""Random applications of each tool of irload.edit, each with the outputs that it must keep."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

import irload
from irload import edit
from irload.edit.draft import Draft
from irload.graph import Output, constant_nodes
from tests.edit.source import Edited, Source
from tests.harness.case import Random
from tests.harness.material import pick

Apply = Callable[[Source, Random], Edited | None]


def name_of(output: Output) -> str:
    """The text that selects a tensor."""
    several = len(output.node.outputs) > 1
    return f"{output.node.name}:{output.index}" if several else output.node.name


def inner(source: Source) -> list[Output]:
    """The tensors that depend on an input and are outputs of layers with unique names."""
    constant = constant_nodes(source.model.nodes)
    names = [n.name for n in source.model.nodes]
    names += {t for n in source.model.nodes for o in n.outputs for t in o.names if t != n.name}
    return [
        o
        for n in source.model.nodes
        if n not in constant and n.reachable and names.count(n.name) == 1 and n.type not in ("Assign",)
        for o in n.outputs
        if o in source.values and o.type.element is not irload.elements.dynamic
    ]


def extract(source: Source, rng: Random) -> Edited | None:
    """A part between random tensors. If it depends on more than the chosen inputs, the model's inputs are added."""
    tensors = inner(source)
    part: irload.Model
    ends = sorted({int(k) for k in rng.integers(len(tensors), size=int(rng.integers(1, 3)))})
    outputs = [tensors[k] for k in ends] if rng.random() < 0.7 else None
    last = ends[-1] if outputs else len(tensors) - 1
    chosen = [tensors[int(rng.integers(last + 1))]] if rng.random() < 0.7 else None
    if chosen is None:
        part = edit.extract(source.model, None, outputs and list(map(name_of, outputs)))
        names = [p.node.name for p in part.inputs]
        inputs = [g for p, g in zip(source.model.inputs, source.inputs, strict=True) if p.node.name in names]
    else:
        rest = [p.output for p in source.model.inputs if p.output not in chosen]
        for candidates in (chosen, [*chosen, *rest]):
            chosen = candidates
            with suppress(irload.InputInvalid):
                part = edit.extract(source.model, list(map(name_of, chosen)), outputs and list(map(name_of, outputs)))
                break
        else:
            return None
        inputs = [source.values[o] for o in chosen]
        if len(part.inputs) != len(inputs):
            return None
    expected = source.outputs if outputs is None else [source.values[o] for o in dict.fromkeys(outputs)]
    return Edited(f"from {chosen} to {outputs}", part, inputs, expected)


def add_output(source: Source, rng: Random) -> Edited | None:
    """One to three more outputs."""
    present = {i for n in source.model.results for i in n.inputs}
    new = [o for o in inner(source) if o not in present and o.node.type != "Parameter"]
    if not new:
        return None
    chosen = list({int(k): None for k in rng.integers(len(new), size=3)})
    model = edit.add_output(source.model, *(name_of(new[k]) for k in chosen))
    return Edited(f"{chosen}", model, source.inputs, [*source.outputs, *(source.values[new[k]] for k in chosen)])


def rename(source: Source, rng: Random) -> Edited:
    """Other names for random layers and all ports."""
    layers = [n.name for n in source.model.nodes if "*" not in n.name]
    chosen = {layers[int(k)] for k in rng.integers(len(layers), size=5)} - {""}
    ports = {p.any_name for p in (*source.model.inputs, *source.model.outputs)}
    names = {name: f"new{k}/{name}" for k, name in enumerate(sorted(chosen | ports))}
    names = {"*": "prefix/*"} if rng.random() < 0.2 else names
    model = edit.rename(source.model, names)
    for old, new in zip(source.model.inputs, model.inputs, strict=True):
        assert names.get(old.any_name, f"prefix/{old.any_name}") == new.any_name
    return Edited(f"{names}", model, source.inputs, source.outputs)


def strip(source: Source, rng: Random) -> Edited:
    """Random parts removed."""
    choice = {key: bool(rng.random() < 0.5) for key in ("names", "rt_info", "unused")}
    return Edited(f"{choice}", edit.strip(source.model, **choice), source.inputs, source.outputs)


def reshape(source: Source, rng: Random) -> Edited:
    """Inputs with the shapes of the arrays, dynamic in random axes of dynamic inputs."""
    shapes = {}
    for port, array in zip(source.model.inputs, source.inputs, strict=True):
        dims = port.partial_shape if port.partial_shape.rank is not None else [None] * np.ndim(array)
        free = rng.random(len(np.shape(array))) < 0.5
        shapes[port] = [d if f else n for d, n, f in zip(dims, np.shape(array), free, strict=True)]
    return Edited(f"{shapes}", edit.reshape(source.model, shapes), source.inputs, source.outputs)


_NUMBERING = {"DetectionOutput", "NonMaxSuppression", "MatrixNms", "MulticlassNms"}
"""Types whose outputs contain the number of the sample, or order the boxes of all samples."""


def set_batch(source: Source, rng: Random) -> Edited | None:
    """Two or three copies of the samples, in one batch; each output repeats, or concatenates, the original's."""
    numbers = any(n.type in _NUMBERING for n in source.model.nodes)
    if numbers or any(np.ndim(a) < 2 or len(a) != 1 for a in source.inputs):
        return None
    count = int(rng.integers(2, 4))
    size = pick(rng, [count, None, (1, 4)])
    model = edit.set_batch(source.model, size)
    batched = [not p.partial_shape[0].is_static or p.partial_shape[0].size > 1 for p in model.inputs]
    inputs = [np.concatenate([a] * count) if b else a for a, b in zip(source.inputs, batched, strict=True)]
    dims = [(o.partial_shape, p.partial_shape) for o, p in zip(source.model.outputs, model.outputs, strict=True)]
    grown = [b.rank is not None and b.rank > 0 and (a != b or not b[0].is_static) for a, b in dims]
    expected = [np.concatenate([a] * count) if g else a for a, g in zip(source.outputs, grown, strict=True)]
    return Edited(f"{size}", model, inputs, expected)


def fold(source: Source, rng: Random) -> Edited:
    """Constants folded, in half of the cases after the inputs have the shapes of the arrays."""
    shapes = {p: np.shape(a) for p, a in zip(source.model.inputs, source.inputs, strict=True)}
    model = edit.reshape(source.model, shapes) if rng.random() < 0.5 else source.model
    return Edited(f"static {model is not source.model}", edit.fold(model), source.inputs, source.outputs)


def layout(source: Source, rng: Random) -> Edited | None:
    """Random orders of the axes of random ports."""
    layouts: dict[irload.Port, str] = {}
    orders: dict[irload.Port, list[int]] = {}
    for port in (*source.model.inputs, *source.model.outputs):
        rank = port.partial_shape.rank or 0
        if rank > 1 and rng.random() < 0.7:
            old = "NCHWXYZ"[:rank]
            orders[port] = [int(k) for k in rng.permutation(rank)]
            layouts[port] = f"{old}->{''.join(old[k] for k in orders[port])}"
    if not layouts:
        return None
    model = edit.layout(source.model, layouts)
    by_place = {(p.node.type, p.index): order for p, order in orders.items()}

    def turned(arrays: list[Any], kind: str) -> list[Any]:
        return [np.transpose(a, by_place[kind, k]) if (kind, k) in by_place else a for k, a in enumerate(arrays)]

    return Edited(f"{layouts}", model, turned(source.inputs, "Parameter"), turned(source.outputs, "Result"))


def embed(source: Source, rng: Random) -> Edited | None:
    """Random preprocessing of a float input, compared with the original on preprocessed values."""
    ports = [p for p in source.model.inputs if p.element_type.name == "f32" and (p.partial_shape.rank or 0) in (2, 4)]
    if not ports:
        return None
    port = pick(rng, ports)
    shape = port.partial_shape
    is_image = shape.rank == 4 and all(d.is_static for d in list(shape)[1:])
    values = np.asarray(rng.integers(0, 256, np.shape(source.inputs[port.index])), np.uint8)
    count = shape[1].size if shape[1].is_static and rng.random() < 0.5 else 1
    mean, scale = (rng.integers(1, 8, count).astype(np.float32) / 4 for _ in range(2))
    swap = bool(shape[1].is_static and rng.random() < 0.5)
    steps: dict[str, Any] = {"element": "u8", "swap_channels": swap, "mean": mean.tolist(), "scale": scale.tolist()}
    prepared = values[:, ::-1] if swap else values
    wide = [1, -1] + [1] * ((shape.rank or 0) - 2)
    prepared = (prepared.astype(np.float32) - mean.reshape(wide)) / scale.reshape(wide)
    if is_image and rng.random() < 0.7:  # of the present size, so that resizing is the identity
        steps |= {"resize": pick(rng, ["linear", "nearest", "bilinear_pillow"]), "layout": "NHWC"}
        values = values.transpose(0, 2, 3, 1)
    model = edit.embed(source.model, port, **steps)
    others = list(source.inputs)
    others[port.index] = prepared
    expected = list(irload.compile_model(source.model, optimize=False)(others).values())
    others[port.index] = values
    codes = frozenset({"IR312"} if steps.get("resize") == "bilinear_pillow" else {})  # the plugin's limits of this mode
    return Edited(f"{port.any_name} {steps}", model, others, expected, codes=codes)


def convert(source: Source, rng: Random) -> Edited | None:
    """Weights in a random format, compared with the same weights restored in NumPy."""
    formats = ["fp16", "bf16", "int8_asym", "int8_sym", "int4_sym", "int4_asym"]
    format, size = pick(rng, formats), pick(rng, [None, 16, 32, 64, 128])
    model = edit.convert(source.model, format, group_size=size, all_layers=bool(rng.random() < 0.5))
    expected = list(irload.compile_model(restored(model), optimize=False)(source.inputs).values())
    # OpenVINO multiplies codes by scales in f32, plain execution rounds the products to f16.
    return Edited(f"{format} {size}", model, source.inputs, expected, by_runtime=5e-2)


def restored(model: irload.Model) -> irload.Model:
    """The model with constants of f32 in place of compressed weights, which NumPy restores and rounds to f16."""
    draft = Draft(model)
    values: dict[Output, Any] = {}
    moved: dict[Output, Output] = {}
    for node in draft.model.nodes:
        if node not in draft.constant_nodes or not node.outputs:
            continue
        (output, *_), inputs = node.outputs, [values.get(i) for i in node.inputs]
        if node.type == "Const":
            values[output] = node.op.compute()
        elif node.type in _RESTORING and all(v is not None for v in inputs):
            values[output] = _RESTORING[node.type](*inputs)
        if any(e.get("name") == "decompression" for e in node.rt_info) and output in values:
            moved[output] = draft.constant(values[output].astype(output.type.element.dtype), "restored")
    draft.rewire(moved)
    return draft.finished()


_RESTORING: dict[str, Callable[..., Any]] = {
    "Convert": lambda v: v.astype(np.float32),
    "Subtract": np.subtract,
    "Multiply": lambda codes, scale: (codes * scale.astype(np.float32)).astype(np.float16),
    "Reshape": np.reshape,
}


APPLICATIONS: dict[str, Apply] = {
    "extract": extract,
    "add_output": add_output,
    "rename": rename,
    "strip": strip,
    "reshape": reshape,
    "set_batch": set_batch,
    "fold": fold,
    "layout": layout,
    "embed": embed,
    "convert": convert,
}
