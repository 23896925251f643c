"""A model to edit, with inputs and the value of every tensor, and the comparison of an edited model with it."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import irload
from irload.checks import check
from irload.core.tensor import Array
from irload.graph import Output
from irload.plan.wide import widened_array
from irload.runtime.observation import Visit
from tests.agreement import feeding
from tests.agreement.judging import EXACT
from tests.harness.runtime import array_of, core, tensor

TOLERANCE = 1e-5
"""The largest difference of an output by irload, relative to the largest value of the output (at least 1)."""
BY_RUNTIME = 1e-3
"""The same for OpenVINO, which fuses layers, against irload's values.

An output that the original model also has is compared with OpenVINO's value of the original. In graphs with f16,
which OpenVINO computes in f32, or with FakeQuantize, which amplifies the last bit, other tensors are not compared,
and after an edit that changes the layers no tensor is compared.
"""


@dataclass(frozen=True)
class Edited:
    """An edited model, its inputs, and the values that its outputs must have. `text` describes the edit."""

    text: str
    model: irload.Model
    inputs: list[Any]
    expected: list[Array]
    tolerance: float = TOLERANCE
    by_runtime: float = BY_RUNTIME
    codes: frozenset[str] = frozenset({"IR702"})
    """The codes of findings that the edit may add: by default notes on outputs that nothing reads after a cut."""


@dataclass
class Source:
    """A model file. `inputs` are its inputs, `values` the values of all tensors for them, by plain execution."""

    file: Path
    model: irload.Model
    inputs: list[Any]
    values: dict[Output, Array] = field(default_factory=dict[Output, Array])
    outputs: list[Array] = field(default_factory=list[Array])

    @staticmethod
    def of(file: Path, seed: int = 0) -> Source:
        """Read a model and run it on the inputs next to its file, else on random ones. Raises IRError."""
        model = irload.read_model(file)
        try:
            core().read_model(file)
        except RuntimeError:
            raise irload.Unsupported("OpenVINO rejects the model") from None
        compiled = irload.compile_model(model, optimize=False)
        stored = feeding.stored(file)
        for candidate in [stored] if stored else feeding.candidates(feeding.wanted_by_irload(model), seed):
            values: dict[Output, Array] = {}

            def note(visit: Visit, values: dict[Output, Array] = values) -> None:
                if not visit.owner:
                    values.update(zip(visit.node.outputs, visit.outputs, strict=False))

            try:
                outputs = list(compiled.observe(candidate, note))
            except irload.IRError as error:
                fault = error
                continue
            ports = zip(model.inputs, candidate, strict=True)
            values |= {p.output: np.asarray(a).astype(p.output.type.element.dtype) for p, a in ports}
            return Source(file, model, candidate, values, outputs)
        raise fault

    @cached_property
    def codes(self) -> set[str]:
        """The codes of the findings of the file."""
        return {f.code for f in check(self.file).findings}

    @cached_property
    def by_runtime(self) -> list[Array]:
        """The outputs of the file by OpenVINO."""
        return run_file(self.file, self.model, self.inputs)

    @cached_property
    def is_exact(self) -> bool:
        """False if irload and OpenVINO may differ in intermediate tensors by more than the rounding of f32."""
        short = any(o.type.element.bits == 16 for o in self.values)
        return not short and not any(n.type == "FakeQuantize" for n in self.model.nodes)

    def faults(self, edited: Edited, folder: Path) -> list[str]:
        """The differences of an edited model from the expected outputs, and the new findings in its file."""
        texts: list[str] = []
        file = folder / "edited.xml"
        irload.save_model(edited.model, file)
        new = (f for f in check(file).findings if f.code not in self.codes | edited.codes)
        texts += [f"{f.code} {f.layer}: {f.message}" for f in new]
        compiled = irload.compile_model(edited.model, optimize=False)
        texts += _differences("irload", list(compiled(edited.inputs).values()), edited.expected, edited.tolerance)
        again = irload.read_model(file)
        if again.differences or str(again.inputs + again.outputs) != str(edited.model.inputs + edited.model.outputs):
            texts.append(f"the file differs: {again}, {again.differences[:1]}")
        try:
            actual = run_file(file, edited.model, edited.inputs)
        except RuntimeError as error:
            return [*texts, f"OpenVINO: {str(error)[:300]}"]
        types = (Counter(n.type for n in m.nodes) for m in (self.model, edited.model))
        same = all(any(a is b for b in self.inputs) for a in edited.inputs) and (self.is_exact or operator.eq(*types))
        own = {id(a): b for a, b in zip(self.outputs, self.by_runtime, strict=True)} if same else {}
        expected = [own.get(id(a), a if self.is_exact else b) for a, b in zip(edited.expected, actual, strict=True)]
        return texts + _differences("OpenVINO", actual, expected, max(edited.by_runtime, edited.tolerance))


def run_file(file: Path, model: irload.Model, inputs: Sequence[Any]) -> list[Array]:
    """The outputs of a file by OpenVINO. `model` has the types of the inputs."""
    request = core().compile_model(core().read_model(file), "CPU", EXACT).create_infer_request()
    for k, (port, array) in enumerate(zip(model.inputs, inputs, strict=True)):
        element = port.element_type
        request.set_input_tensor(k, tensor(np.asarray(array).astype(element.dtype), element))
    request.infer()
    return [array_of(request.get_output_tensor(k)) for k in range(len(model.outputs))]


def _differences(who: str, actual: Sequence[Array], expected: Sequence[Array], tolerance: float) -> list[str]:
    if len(actual) != len(expected):
        return [f"{who}: {len(actual)} outputs, expected {len(expected)}"]
    pairs = enumerate(zip(actual, expected, strict=True))
    return [f"{who}: output {k} differs by {d:.1e}" for k, (a, e) in pairs if not (d := difference(a, e)) <= tolerance]


def difference(actual: Array, expected: Array) -> float:
    """The largest difference of an element, relative to the largest expected value or 1; infinite for other shapes."""
    actual, expected = np.asarray(widened_array(actual)), np.asarray(widened_array(expected))
    if actual.shape != expected.shape:
        return float("inf")
    if expected.dtype.kind not in "iufb":
        return 0.0 if actual.tolist() == expected.tolist() else float("inf")
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        gap = np.where((a == e) | (np.isnan(a) & np.isnan(e)), 0, np.abs(a - e))
    finite = np.abs(e[np.isfinite(e)])
    return float(gap.max(initial=0)) / max(1.0, float(finite.max(initial=0)))
