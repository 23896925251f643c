"""Where the outputs of layers come from: ways to run a model, and dumps. Each gives (name, array) in its own order."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from irload.arrays import load_npy, load_npz
from irload.core.tensor import Array
from irload.dump import INDEX
from irload.errors import InputInvalid, ReadError, Unsupported, Where
from irload.graph import Node
from irload.inputs import bind_typed
from irload.model import Model
from irload.observation import Observe, ObservedRun, values
from irload.plan.interpreter import Run
from irload.run import CompiledModel
from irload.safety import Limits

__all__ = ["Names", "Pairs", "Stream", "dumped", "openvino", "openvino_precision", "plain", "planned", "run_plain"]

Names = Mapping[Node, str]
Pairs = Iterator[tuple[str, Array]]
AHEAD = 1 << 18
"""Bytes of outputs that a run makes before they are asked for, so that small layers do not wait for each other."""
CHUNK_BYTES = 1 << 28
"""Bytes of outputs that one inference of another runtime returns."""


def run_plain(model: Model, inputs: Sequence[Array], run: Callable[[CompiledModel], Run]) -> None:
    """Run every layer by its own `compute`."""
    compiled = CompiledModel(model, optimize=False, limits=model.limits)
    arrays, given = bind_typed(compiled.inputs, list(inputs))
    compiled.execute(run(compiled), given, arrays)


def plain(model: Model, inputs: Sequence[Array], names: Names) -> Generator[tuple[str, Array]]:
    """The outputs of every layer by its own `compute`."""

    def work(observe: Observe) -> None:
        run_plain(model, inputs, lambda compiled: ObservedRun(compiled, {}, observe, names))

    return values(work, (), ahead=AHEAD)


def planned(model: Model, inputs: Sequence[Array], names: Names, *, jit: bool) -> tuple[Pairs, Callable[[str], bool]]:
    """The outputs that the plan makes as they stand in the graph, and whether one of a name may be among them.

    All that is not folded is where there is no plan, as with some loops. Raises InputInvalid where `jit` asks for
    compiled kernels that cannot be had.
    """
    compiled = CompiledModel(model, limits=model.limits, jit=jit)
    arrays, given = bind_typed(compiled.inputs, list(inputs), wide=True)
    schedule = compiled.schedule(model, given, None)
    if schedule.is_static and schedule.part is not None:
        plan = compiled.take(schedule.part)
        pairs = ((_name(names, o.node, o.index), array) for o, array in plan.outputs(arrays, Run(compiled, {})))
        return pairs, {_name(names, o.node, o.index) for o in plan.made}.__contains__

    def work(observe: Observe) -> None:
        compiled.execute(ObservedRun(compiled, {}, observe, names), given, arrays)

    folded = {_name(names, o.node, o.index) for o in schedule.folded}
    return values(work, (), ahead=AHEAD), lambda name: name not in folded


def openvino(model: Model, inputs: Sequence[Array], names: Names, precision: str = "f32") -> Pairs:
    """The outputs of OpenVINO's CPU plugin in this precision, so many layers at a time as fit into some memory.

    Each inference returns the outputs of other layers, which keeps it from fusing them. Raises Unsupported where
    OpenVINO is not installed, or does not run the model.
    """
    core: Any = _openvino().Core()
    if model.file is None:
        raise InputInvalid("OpenVINO reads files, and this model was read from none")
    # Without the last two, compressed models are computed on activations and a cache that are rounded to 8 bits or f16.
    config = {"DYNAMIC_QUANTIZATION_GROUP_SIZE": "0", "KV_CACHE_PRECISION": "f32"}
    config["INFERENCE_PRECISION_HINT"] = precision
    by_name: dict[str, list[Node]] = {}
    for node in model.nodes:
        by_name.setdefault(node.name, []).append(node)
    wanted = [n for n in model.nodes if n.reachable and n.type not in ("Parameter", "Const", "Result", "Assign")]
    unique = [(n, o) for n in wanted if len(by_name[n.name]) == 1 for o in n.outputs if _numeric(o.type.element.name)]
    sizes = [o.type.nbytes or CHUNK_BYTES // 64 for _, o in unique]
    try:
        start = 0
        while start < len(unique):
            end, total = start + 1, sizes[start]
            while end < len(unique) and total + sizes[end] <= CHUNK_BYTES:
                total += sizes[end]
                end += 1
            read: Any = core.read_model(model.file, model.weights_file or "")
            read.reshape({k: list(a.shape) for k, a in enumerate(inputs)})
            present = {op.get_friendly_name(): op for op in read.get_ops()}
            part = [(n, o) for n, o in unique[start:end] if n.name in present]
            ports = {
                present[n.name].output(o.index): (n, o) for n, o in part if o.index < len(present[n.name].outputs())
            }
            taken = {r.input_value(0) for r in read.get_results()}
            read.add_outputs([port for port in ports if port not in taken])
            results: Any = core.compile_model(read, "CPU", config)(list(inputs))
            for k, result in enumerate(read.get_results()):
                node, output = ports.pop(result.input_value(0), (None, None))
                if node is not None and output is not None:
                    yield _name(names, node, output.index), np.array(results[k])
            start = end
    except RuntimeError as error:
        raise Unsupported(f"OpenVINO does not run the model: {str(error).strip().splitlines()[-1][:300]}") from None


def openvino_precision(asked: str) -> str:
    """The precision in which OpenVINO runs f32 here where it is asked for this one: not every processor has each.

    Raises Unsupported where OpenVINO is not installed.
    """
    ov = _openvino()
    nothing = ov.op.Parameter(ov.Type.f32, ov.Shape([1]))
    compiled = ov.Core().compile_model(ov.Model([nothing], [nothing]), "CPU", {"INFERENCE_PRECISION_HINT": asked})
    return str(compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name())


def _openvino() -> Any:
    try:
        import openvino  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise Unsupported("OpenVINO is not installed here; pip install openvino") from None
    return openvino


def dumped(path: Path, limits: Limits) -> tuple[Pairs, frozenset[str]]:
    """The arrays of a folder (a dump with its index, or .npy files) or an .npz, and their names. Raises ReadError."""
    if not path.is_dir():
        arrays = load_npz(path, limits=limits)
        return iter(arrays.items()), frozenset(arrays)
    listed: dict[str, str] = {}
    if (path / INDEX).exists():
        try:
            for entry in json.loads((path / INDEX).read_text(encoding="utf-8"))["arrays"]:
                listed[str(entry["name"])] = str(entry["file"])
        except (ValueError, KeyError, TypeError):
            raise ReadError("is no index of a dump", Where(str(path / INDEX))) from None
        if any(Path(file).name != file for file in listed.values()):
            raise ReadError("names files outside of the folder", Where(str(path / INDEX)))
    else:
        listed = {file.stem: file.name for file in sorted(path.glob("*.npy"))}
    if not listed:
        raise ReadError("holds no arrays (.npy) and no index of a dump", Where(str(path)))
    return ((name, load_npy(path / file, limits=limits)) for name, file in listed.items()), frozenset(listed)


class Stream:
    """Pairs that are asked for by name, in about the order in which they come; what comes too early is held."""

    def __init__(self, pairs: Pairs, has: Callable[[str], bool]) -> None:
        self._pairs = pairs
        self._has = has
        self._held: dict[str, Array] = {}

    def take(self, name: str, *, wanted: Callable[[str], bool]) -> Array | None:
        """The array of a name, once; None where there is none. Of the others those that are wanted are held."""
        found = self._held.pop(name, None)
        if found is not None or not self._has(name):
            return found
        within = name.rpartition("]/")[0].rpartition("[")[0]
        for other, array in self._pairs:
            if other == name:
                return array
            if wanted(other):
                self._held[other] = array
            if within and not other.startswith(within):  # the body has run, and the layer was not in this iteration
                return None
        return None

    def close(self) -> None:
        """End what gives the pairs."""
        end = getattr(self._pairs, "close", None)
        if end is not None:
            end()


def _name(names: Names, node: Node, index: int) -> str:
    return f"{names[node]}:{index}" if len(node.outputs) > 1 else names[node]


def _numeric(element: str) -> bool:
    return element not in ("string", "bf16", "nf4", "i4", "u4", "u1", "u2", "u3", "u6") and not element.startswith("f8")
