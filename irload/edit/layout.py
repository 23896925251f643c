"""Changes the order of the axes of inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping

from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.edit.chain import Chain
from irload.edit.draft import Draft
from irload.edit.layouts import layout_of, order_of, set_layout
from irload.edit.transposes import absorb_after, absorb_before
from irload.errors import InputInvalid
from irload.graph import Port
from irload.model import Model

__all__ = ["layout"]

OTHER = {"NHWC": "NCHW", "NCHW": "NHWC", "NDHWC": "NCDHW", "NCDHW": "NDHWC", "HWC": "CHW", "CHW": "HWC"}
"""New layout → assumed current layout of a port without a layout in rt_info."""


def layout(model: Model, layouts: Mapping[str | int | Port, str], *, transposes: bool = True) -> Model:
    """The model with other layouts of inputs and outputs.

    `layouts` maps ports to new layouts, such as "NHWC"; a name or index that both an input and an output have selects
    the input. The current layout is that of rt_info. Without one, it is NCHW for a new NHWC, and NHWC for a new NCHW.
    "NTC->TNC" states both. With `transposes`, a Transpose follows each input and precedes each output. Without, each
    Transpose is moved through elementwise layers and merged with a Transpose of the model. The rt_info of the ports
    states their new layouts.

    Raises InputInvalid for an unknown port, for a layout that does not fit its shape, and, without `transposes`, for a
    layer that depends on the current layout.
    """
    draft = Draft(model)
    for key, text in layouts.items():
        port = _port(draft, model, key)
        old, new = _both(port, text)
        order = order_of(port, old, new)
        back = order_of(port, new, old)
        if port.node.type == "Parameter":
            _change_input(draft, port, order, back, transposes=transposes)
        elif transposes:
            _transpose_output(draft, port, order)
        else:
            absorb_before(draft, port.node, order)
        set_layout(_same(draft, port), new)
    return draft.finished()


def _port(draft: Draft, model: Model, key: str | int | Port) -> Port:
    """The input or output of a key."""
    if isinstance(key, Port):
        return draft.input(key) if key.node.type == "Parameter" else draft.output(key)
    try:
        return draft.input(key)
    except InputInvalid as unknown:
        try:
            return draft.output(key)
        except InputInvalid:
            outputs = ", ".join(f"'{p.any_name}'" for p in model.outputs)
            raise InputInvalid(f"{unknown.message}, and the outputs {outputs}") from None


def _both(port: Port, text: str) -> tuple[str, str]:
    """Return the current and the new layout."""
    old, arrow, new = text.upper().replace(" ", "").rpartition("->")
    rank = port.partial_shape.rank
    if rank is not None and rank != len(new):
        raise InputInvalid(f"layout {new} has {len(new)} axes, '{port.any_name}' {port.partial_shape} has {rank}")
    old = old if arrow else layout_of(port) or OTHER.get(new, "")
    if not old:
        raise InputInvalid(f"the current layout of '{port.any_name}' is unknown; state both, as in 'NTC->TNC'")
    return old, new


def _change_input(draft: Draft, port: Port, order: tuple[int, ...], back: tuple[int, ...], *, transposes: bool) -> None:
    shape = Shape(*(port.partial_shape[k] for k in order))
    chain = Chain.at_input(draft, port, TensorType(port.output.type.element, shape))
    if transposes:
        chain.transpose(back)
        chain.close()
    elif order != back or list(order) != sorted(order):
        absorb_after(draft, port.output, back)


def _transpose_output(draft: Draft, port: Port, order: tuple[int, ...]) -> None:
    """Insert a Transpose before a Result. It gets the names of the output, unless another layer also returns them."""
    source, result = port.output, port.node
    chain = Chain(draft, source)
    chain.transpose(order)
    shared = source.node.type == "Parameter" or any(n is not result and source in n.inputs for n in draft.model.results)
    if chain.end is not source and shared:
        result.output_names = port.names
    elif chain.end is not source:
        chain.end.names, source.names = source.names, frozenset()
    result.inputs = [chain.end]


def _same(draft: Draft, port: Port) -> Port:
    """Return the port with its current tensor."""
    ports = draft.model.inputs if port.node.type == "Parameter" else draft.model.outputs
    return next(p for p in ports if p.node is port.node)
