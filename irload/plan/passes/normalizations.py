"""Match decomposed normalizations: (x − mean(x)) / sqrt(mean((x − mean(x))²) + eps) → Normalize(x); also RMSNorm.

Scale γ and shift β remain elementwise steps, which become the epilogue. If γ was folded into the reciprocal root r, as
in x·(r·γ) + (β − mean(x)·(r·γ)), it is factored out again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from math import isclose

import numpy as np

from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Program, Step, Value, origin_of
from irload.plan.ir.steps import ElementwiseStep, NormalizeStep, ReduceStep, ReshapeStep
from irload.plan.passes.algebra import Algebra, Form, Monomial, NotRepresentable
from irload.record import record

REACH, MOST = 40, 16
"""The number of steps searched from a mean or square on, and the maximum number of them that depend on x."""


def recognise_normalizations(program: Program) -> None:
    """Replace each step that computes a normalized tensor; dead code elimination removes unused means."""
    producers = program.producers()
    steps = program.steps
    at = {step: k for k, step in enumerate(steps)}
    replaced: dict[Step, list[Step]] = {}
    for mean in steps:
        if not isinstance(mean, ReduceStep) or mean.kind != "mean" or not mean.inputs[0].size:
            continue
        source, rank = mean.inputs[0], len(mean.inputs[0].shape)
        if mean.axes != tuple(range(rank - len(mean.axes), rank)):
            continue
        square = producers.get(source)
        match = _search(steps[at[mean] : at[mean] + REACH], source, mean.axes, center=True)
        if match is None and isinstance(square, ElementwiseStep) and square.inputs[0].shape == source.shape:
            match = _search(steps[at[square] : at[square] + REACH], square.inputs[0], mean.axes, center=False)
        if match is not None and match.step not in replaced:
            replaced[match.step] = match.steps()
    program.steps = [new for step in steps for new in replaced.get(step, [step])]


@record(frozen=False)
class _Found:
    """A match: `step` computes normalized(x) · `scale` + `shift`. `through`: the steps from x to `step`."""

    step: ElementwiseStep
    x: Value
    axes: tuple[int, ...]
    eps: float
    center: bool
    through: tuple[Step, ...]
    scale: Value | None = None
    shift: Value | None = None

    def steps(self) -> list[Step]:
        """Return the replacement steps."""
        origin = origin_of(self.through)
        operands = [v for v in (self.scale, self.shift) if v is not None]
        result = self.x.like() if operands else self.step.output
        normal = NormalizeStep([self.x], [result], axes=self.axes, eps=self.eps, center=self.center, origin=origin)
        if not operands:
            return [normal]
        functions = [f for f, v in (("multiply", self.scale), ("add", self.shift)) if v is not None]
        count = 1 + len(operands)
        chain = [Instruction(f, (0 if k == 0 else count, k + 1)) for k, f in enumerate(functions)]
        expression = Expression(count, tuple(chain))
        return [
            normal,
            ElementwiseStep([result, *operands], self.step.outputs, expression=expression, origin=self.step.origin),
        ]


@record(frozen=False)
class _Cone:
    """The values that depend on x, with their forms and the steps that compute them.

    `reduced`: the shape of x with length 1 along `axes`. `unknown`: the values that do not depend on x, by atom.
    """

    algebra: Algebra
    x: Value
    reduced: tuple[int, ...]
    axes: tuple[int, ...]
    forms: dict[Value, Form] = field(default_factory=dict[Value, Form])
    unknown: dict[int, Value] = field(default_factory=dict[int, Value])
    producers: dict[Value, Step] = field(default_factory=dict[Value, Step])

    def atom(self, value: Value) -> Form:
        """Return the form of a value that does not depend on x."""
        if value.size == 1 and value.constant is not None:
            return self.algebra.number(float(value.constant.reshape(-1)[0]))
        form = self.algebra.atom("unknown", id(value))
        self.unknown[form[0][0][0][0]] = value
        return form

    def take(self, step: Step) -> bool:
        """Record the form of the step's output. False if it does not depend on x or has no form."""
        if len(step.outputs) != 1 or not any(v in self.forms for v in step.inputs):
            return False
        try:
            form = self._form(step)
        except NotRepresentable:
            return False
        if form is None:
            return False
        self.forms[step.output] = form
        self.producers[step.output] = step
        return True

    def _form(self, step: Step) -> Form | None:
        x = self.x
        if isinstance(step, ReduceStep) and step.kind == "mean" and step.axes == self.axes:
            source = step.inputs[0]
            return self.algebra.atom("mean", self.forms[source]) if source.shape == x.shape else None
        if isinstance(step, ReshapeStep):
            return self.forms[step.inputs[0]] if step.output.shape == self.reduced else None
        if not isinstance(step, ElementwiseStep) or step.output.shape not in (x.shape, self.reduced):
            return None
        if any(v in self.forms and v.shape not in (x.shape, self.reduced) for v in step.inputs):
            return None
        registers = [self.forms[v] if v in self.forms else self.atom(v) for v in step.inputs]
        for i in step.expression.instructions:
            registers.append(self.algebra.apply(i.opcode, [registers[a] for a in i.args], i.numbers))
        return registers[step.expression.result]

    def through(self, step: Step) -> tuple[Step, ...]:
        """Return the steps between x and the output of `step`, unordered."""
        steps: dict[Step, None] = {}
        waiting: list[Step] = [step]
        while waiting:
            at = waiting.pop()
            if at not in steps:
                steps[at] = None
                waiting += [self.producers[v] for v in at.inputs if v in self.producers]
        return tuple(reversed(steps))


def _search(steps: Sequence[Step], x: Value, axes: tuple[int, ...], *, center: bool) -> _Found | None:
    """Return the match of the first of these steps that computes a normalized x."""
    reduced = tuple(1 if k in axes else n for k, n in enumerate(x.shape))
    cone = _Cone(Algebra(), x, reduced, axes)
    cone.forms[x] = cone.algebra.atom("unknown", id(x))
    for step in steps:
        if len(cone.producers) == MOST:
            break
        if cone.take(step) and isinstance(step, ElementwiseStep) and step.output.shape == x.shape:
            match = _normalised(cone, step, center)
            if match is not None:
                return match
    return None


def _normalised(cone: _Cone, step: ElementwiseStep, center: bool) -> _Found | None:
    """Match the form of the step's output with r·x·γ − r·mean(x)·γ + β, where γ and β are unknowns and optional."""
    algebra, x = cone.algebra, cone.forms[cone.x]
    mean = algebra.atom("mean", x)
    middle = algebra.add(x, mean, -1.0) if center else x
    variance = algebra.atom("mean", algebra.multiply(middle, middle))
    factors: dict[int, tuple[Monomial, float]] = {}
    shift: Monomial = ()
    roots: set[int] = set()
    for monomial, c in cone.forms[step.output]:
        root = [atom for atom, e in monomial if e == -0.5]
        if root:
            roots.update(root)
            of = next((atom for atom, e in monomial if (atom, e) in ((_atom(x), 1), (_atom(mean), 1))), -1)
            factors[of] = (tuple(p for p in monomial if p[0] not in (*root, of)), c)
        elif shift or c != 1 or len(monomial) != 1:
            return None
        else:
            shift = monomial
    wanted = {_atom(x), _atom(mean)} if center else {_atom(x)}
    if set(factors) != wanted or len(roots) != 1 or len(cone.forms[step.output]) != len(wanted) + bool(shift):
        return None
    gamma, c = factors[_atom(x)]
    eps = _eps(algebra, roots.pop(), variance)
    if eps is None or not isclose(c, 1, rel_tol=1e-7) or (center and factors[_atom(mean)] != (gamma, -c)):
        return None
    if any(len(m) > 1 or any(e != 1 or atom not in cone.unknown for atom, e in m) for m in (gamma, shift)):
        return None
    scaled, shifted = (cone.unknown[m[0][0]] if m else None for m in (gamma, shift))
    if center and scaled is not None and not _is_finite(scaled):
        return None  # with an infinite γ, the folded expression is ∞ − ∞, and the factored one is ∞
    return _Found(step, cone.x, cone.axes, eps, center, cone.through(step), scaled, shifted)


def _is_finite(value: Value) -> bool:
    """True for constants without infinities and NaN."""
    return value.constant is not None and bool(np.isfinite(value.constant).all())


def _atom(form: Form) -> int:
    """Return the only atom of a form."""
    return form[0][0][0][0]


def _eps(algebra: Algebra, atom: int, variance: Form) -> float | None:
    """Return eps if the atom is variance + eps, None otherwise."""
    if atom == _atom(variance):
        return 0.0
    terms = dict(algebra.keys[atom][1]) if algebra.keys[atom][0] == "sum" else {}
    eps = terms.pop((), 0.0)
    return eps if tuple(terms.items()) == variance and eps > 0 else None
