"""If: runs one of two bodies."""

from __future__ import annotations

from collections.abc import Sequence

from irload.core import attribute as attr
from irload.core.context import InferContext, RunContext
from irload.core.element import boolean, dynamic, i8, merge, u8
from irload.core.op import Op
from irload.core.remarks import remark
from irload.core.shape import ANY, Shape
from irload.core.subgraph import Subgraph
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError, IRError, LimitExceeded, ShapeMismatch, TypeMismatch


class If(Op, since=8):
    """Runs `then_body` if the condition is true, else `else_body`.

    Specification: If-8. The condition has one element; of several the first counts. Each output returns one result of
    either body; their types must agree, their shapes may differ. With a known condition only one branch is inferred. At
    run time, the shapes of the inputs may be invalid for the branch that is not selected.
    """

    then_body: Subgraph = attr.supplied()
    else_body: Subgraph = attr.supplied()

    folds = False
    widens = False

    def infer(self, cond: TensorType, *inputs: TensorType, context: InferContext) -> tuple[TensorType, ...]:
        self._check_condition(cond)
        ports = (cond, *inputs)
        if cond.value is not None:
            # The other branch is not inferred: it never runs, and need not be valid for these shapes.
            return _branch_types(self.chosen(cond.value), ports, context)
        inferred: list[tuple[TensorType, ...]] = []
        failures: list[IRError] = []
        for branch in (self.then_body, self.else_body):
            try:
                inferred.append(_branch_types(branch, ports, context))
            except IRError as error:
                if isinstance(error, LimitExceeded) or not context.at_run():
                    raise
                failures.append(error)
        if not inferred:
            raise failures[0]
        then_types, else_types = inferred[0], inferred[-1]
        if len(then_types) != len(else_types):
            raise ShapeMismatch(f"then_body gives {len(then_types)} outputs, else_body {len(else_types)}")
        return tuple(
            TensorType(merge(a.element, b.element), _either(a.shape, b.shape))
            for a, b in zip(then_types, else_types, strict=True)
        )

    def _check_condition(self, cond: TensorType) -> None:
        """Raise for an invalid condition; remark on one that only OpenVINO accepts.

        It accepts several elements, of which the first counts, i8 and u8, and any number whose value is known.
        """
        if cond.shape.meet(Shape()) is None and cond.shape.meet(Shape(1)) is None:
            if cond.rank != 1 or cond.shape.size.hi == 0:
                raise ShapeMismatch(f"cond must be a scalar or have one element, found {cond.shape}")
            remark(f"cond must have one element by the specification, found {cond.shape}; the first counts")
        if cond.element not in (boolean, dynamic):
            fact = f"cond must be boolean{{}}, found {cond.element}"
            if not cond.element.is_numeric or (cond.value is None and cond.element not in (i8, u8)):
                raise TypeMismatch(fact.format(""))  # of wider types OpenVINO reads only one byte: 1.0 is false
            remark(fact.format(" by the specification") + "; every value but zero is true")

    def compute(self, cond: Array, *inputs: Array, context: RunContext) -> tuple[Array, ...]:
        branch = self.chosen(cond)
        ports = (cond, *inputs)
        given = {m.inner: ports[m.outer] for m in branch.inputs}
        results = context.run_body(branch.body, [given[k] for k in range(len(given))])
        return tuple(results[inner] for inner in _outputs(branch))

    def chosen(self, cond: Array) -> Subgraph:
        """The branch that a condition selects, by its first element."""
        if not cond.size:
            raise ExecutionError(f"cond must have an element, found shape {list(cond.shape)}")
        return self.then_body if cond.reshape(-1)[0] else self.else_body


def _outputs(branch: Subgraph) -> list[int]:
    """The positions of the body's results, in port order."""
    return [m.inner for m in sorted(branch.outputs, key=lambda m: m.outer)]


def _branch_types(branch: Subgraph, ports: Sequence[TensorType], context: InferContext) -> tuple[TensorType, ...]:
    given = {m.inner: ports[m.outer].without_value() for m in branch.inputs}
    for k, parameter in enumerate(branch.body.parameters):
        if k not in given:
            raise ShapeMismatch(f"the parameter '{parameter.name}' of a branch has no input")
    results = context.infer_body(branch.body, [given[k] for k in range(len(given))])
    return tuple(results[inner].without_value() for inner in _outputs(branch))


def _either(a: Shape, b: Shape) -> Shape:
    """The shape that allows the outputs of both branches. Bounds are kept only if both dims are static."""
    if a.rank is None or a.rank != b.rank:
        return Shape.unranked()
    return Shape(*(x.hull(y) if x.is_static and y.is_static else ANY for x, y in zip(a, b, strict=True)))
