"""Sources of layer outputs: ways to run a model, and dumps. Each yields (name, array) in its order of execution."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from irload.arrays.npy import load_npy, load_npz
from irload.core.tensor import Array, TensorType
from irload.diagnostics.dump import INDEX
from irload.errors import InputInvalid, ReadError, Unsupported, Where
from irload.graph import Node
from irload.model import Model
from irload.plan.interpreter import InterpreterRun
from irload.runtime.compiled_model import CompiledModel
from irload.runtime.inputs import bind_typed
from irload.runtime.observation import Observe, ObservedRun, values
from irload.safety.limits import Limits

__all__ = [
    "Names",
    "Pairs",
    "Stream",
    "dumped",
    "openvino",
    "openvino_precision",
    "output_name",
    "plain",
    "planned",
    "run_plain",
]

Names = Mapping[Node, str]
Pairs = Iterator[tuple[str, Array]]
AHEAD = 1 << 18
"""Bytes of outputs that a run computes ahead, so that threads do not wait for each other at every small layer."""
CHUNK_BYTES = 1 << 28
"""Bytes of outputs that one inference of another runtime returns."""


def output_name(k: int) -> str:
    """Return the name of output `k` of the model; no layer has this name."""
    return f"\0output {k}"


def run_plain(
    model: Model, inputs: Sequence[Array], run: Callable[[CompiledModel], InterpreterRun]
) -> tuple[Array, ...]:
    """Run every layer by its `compute`; return the results."""
    compiled = CompiledModel(model, optimize=False, limits=model.limits)
    arrays, given = bind_typed(compiled.inputs, list(inputs))
    return compiled.execute(run(compiled), given, arrays)


def plain(
    model: Model, inputs: Sequence[Array], names: Names, positions: Sequence[int | None] | None = None
) -> Generator[tuple[str, Array]]:
    """Yield the outputs of every layer, computed by its `compute`, then the outputs of the model.

    `positions`: for each output of the model, the index of the matching output of the other side; None if there is
    none.
    """
    results: list[Array] = []

    def work(observe: Observe) -> None:
        results.extend(run_plain(model, inputs, lambda compiled: ObservedRun(compiled, {}, observe, names)))

    yield from values(work, (), ahead=AHEAD)
    indices = range(len(results)) if positions is None else positions
    yield from ((output_name(k), result) for k, result in zip(indices, results, strict=True) if k is not None)


def planned(
    model: Model, inputs: Sequence[Array], names: Names, *, jit: bool, threads: int | None = None
) -> tuple[Pairs, Callable[[str], bool]]:
    """Return an iterator of the outputs that a plan computes unchanged, and a predicate: True for names that it yields.

    A model without a plan, such as one with certain loops, yields the outputs of all layers that are not folded. Raises
    InputInvalid if `jit` requires compiled kernels that are unavailable.
    """
    compiled = CompiledModel(model, limits=model.limits, jit=jit, threads=threads)
    arrays, given = bind_typed(compiled.inputs, list(inputs), wide=True)
    schedule = compiled.scheduled(given)
    ends = {output_name(k) for k in range(len(model.results))}
    if schedule.is_static and schedule.part is not None:
        plan = compiled.take(schedule.part)
        pairs = (
            (_name(names, o.node, o.index), array) for o, array in plan.outputs(arrays, InterpreterRun(compiled, {}))
        )
        unchanged = {_name(names, o.node, o.index) for o in plan.written_outputs}
        return chain(pairs, _outputs(compiled, given, arrays)), lambda name: name in unchanged or name in ends

    def work(observe: Observe) -> None:
        compiled.execute(ObservedRun(compiled, {}, observe, names), given, arrays)

    folded = {_name(names, o.node, o.index) for o in schedule.folded}
    pairs = chain(values(work, (), ahead=AHEAD), _outputs(compiled, given, arrays))
    return pairs, lambda name: name not in folded


def _outputs(compiled: CompiledModel, given: Sequence[TensorType], arrays: Sequence[Array]) -> Pairs:
    """Yield the outputs of the model as an inference returns them."""
    results = compiled.execute(InterpreterRun(compiled, {}), given, arrays)
    yield from ((output_name(k), result) for k, result in enumerate(results))


def openvino(
    model: Model, inputs: Sequence[Array], names: Names, precision: str = "f32", threads: int | None = None
) -> Pairs:
    """Yield the outputs of OpenVINO's CPU plugin in this precision, in several inferences to bound memory.

    Each inference returns the outputs of other layers, which prevents their fusion; the last pairs are the outputs of
    the model from an inference that returns nothing else. Raises Unsupported if OpenVINO is not installed, or does not
    run the model.
    """
    ov = _openvino()
    core: Any = ov.Core()
    if model.file is None:
        raise InputInvalid("OpenVINO reads models from files, but this model was not read from a file")
    # Without these two options, compressed models round activations and the KV cache to 8 bits or f16.
    config: dict[str, Any] = {"DYNAMIC_QUANTIZATION_GROUP_SIZE": "0", "KV_CACHE_PRECISION": "f32"}
    config["INFERENCE_PRECISION_HINT"] = precision
    config |= {} if threads is None else {"INFERENCE_NUM_THREADS": threads}
    by_name: dict[str, list[Node]] = {}
    for node in model.nodes:
        by_name.setdefault(node.name, []).append(node)
    wanted = [n for n in model.nodes if n.reachable and n.type not in ("Parameter", "Const", "Result", "Assign")]
    unique = [(n, o) for n in wanted if len(by_name[n.name]) == 1 for o in n.outputs if _numeric(o.type.element.name)]
    sizes = [o.type.nbytes or CHUNK_BYTES // 64 for _, o in unique]
    results: list[Array] = []
    try:
        start = 0
        while start < len(unique) or not results:
            end, total = start, 0
            while end < len(unique) and (end == start or total + sizes[end] <= CHUNK_BYTES):
                total += sizes[end]
                end += 1
            read: Any = core.read_model(model.file, model.weights_file or "")
            read.reshape({k: list(a.shape) for k, a in enumerate(inputs)})
            present = {op.get_friendly_name(): op for op in read.get_ops()}
            part = [(n, o) for n, o in unique[start:end] if n.name in present]
            ports = [(n, o) for n, o in part if o.index < len(present[n.name].outputs())]
            if not results:  # an inference with all fusions, as a user runs it
                fused: Any = core.compile_model(read, "CPU", config)(list(inputs))
                results = [np.array(fused[k]) for k in range(len(read.get_results()))]
            # Outputs are selected by Results instead of tensor names, which several layers of published files share.
            ends = list(read.get_results())
            ends += [ov.op.Result(present[n.name].output(o.index)) for n, o in ports]
            shown: Any = ov.Model(ends, read.get_sinks(), read.get_parameters(), read.get_variables(), "shown")
            given: Any = core.compile_model(shown, "CPU", config)(list(inputs))
            count = len(ends) - len(ports)
            for k, (node, output) in enumerate(ports):
                yield _name(names, node, output.index), np.array(given[count + k])
            start = end
            if not unique:
                break
        known = [_numeric(n.inputs[0].type.element.name) for n in model.results]
        yield from ((output_name(k), result) for k, result in enumerate(results) if known[k])
    except RuntimeError as error:
        raise Unsupported(f"OpenVINO does not run the model: {str(error).strip().splitlines()[-1][:300]}") from None


def openvino_precision(requested: str) -> str:
    """Return the precision in which OpenVINO runs f32 for this request; processors do not support all of them.

    Raises Unsupported if OpenVINO is not installed.
    """
    ov = _openvino()
    nothing = ov.op.Parameter(ov.Type.f32, ov.Shape([1]))
    compiled = ov.Core().compile_model(ov.Model([nothing], [nothing]), "CPU", {"INFERENCE_PRECISION_HINT": requested})
    return str(compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name())


def _openvino() -> Any:
    try:
        import openvino
    except ImportError:
        raise Unsupported("OpenVINO is not installed here; pip install openvino") from None
    return openvino


def dumped(path: Path, limits: Limits) -> tuple[Pairs, frozenset[str]]:
    """Return the arrays of a folder (with index or plain .npy files) or an .npz, and their names. Raises ReadError."""
    if not path.is_dir():
        arrays = load_npz(path, limits=limits)
        return iter(arrays.items()), frozenset(arrays)
    listed: dict[str, str] = {}
    if (path / INDEX).exists():
        try:
            for entry in json.loads((path / INDEX).read_text(encoding="utf-8"))["arrays"]:
                listed[str(entry["name"])] = str(entry["file"])
        except (ValueError, KeyError, TypeError):
            raise ReadError("is not an index of a dump", Where(str(path / INDEX))) from None
        if any(Path(file).name != file for file in listed.values()):
            raise ReadError("names files outside of the folder", Where(str(path / INDEX)))
    else:
        listed = {file.stem: file.name for file in sorted(path.glob("*.npy"))}
    if not listed:
        raise ReadError("holds no arrays (.npy) and no index of a dump", Where(str(path)))
    return ((name, load_npy(path / file, limits=limits)) for name, file in listed.items()), frozenset(listed)


class Stream:
    """Pairs requested by name, in approximately their order of arrival; early pairs are buffered."""

    def __init__(self, pairs: Pairs, has: Callable[[str], bool]) -> None:
        self._pairs = pairs
        self._has = has
        self._held: dict[str, Array] = {}
        self._ended: set[str] = set()

    def take(self, name: str, owner: str = "", *, wanted: Callable[[str], bool]) -> Array | None:
        """Return the array of a name, once; None if there is none. Buffers other arrays for which `wanted` is true.

        `owner`: the layer whose body has the name. No arrays of its body follow the output of the owner.
        """
        held = self._held.pop(name, None)
        if held is not None or not self._has(name):
            return held
        if owner and owner in self._ended:
            return None
        for other, array in self._pairs:
            if other == name:
                return array
            if wanted(other):
                self._held[other] = array
            if owner and owner in (other, other.rpartition(":")[0]):
                self._ended.add(owner)
                return None
        return None

    def close(self) -> None:
        """Close the source of the pairs."""
        end = getattr(self._pairs, "close", None)
        if end is not None:
            end()


def _name(names: Names, node: Node, index: int) -> str:
    return f"{names[node]}:{index}" if len(node.outputs) > 1 else names[node]


def _numeric(element: str) -> bool:
    return element not in ("string", "bf16", "nf4", "i4", "u4", "u1", "u2", "u3", "u6") and not element.startswith("f8")
