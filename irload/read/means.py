"""The legacy `pre-process`: mean values or mean images that are subtracted from an input."""

from __future__ import annotations

import numpy as np

from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import Array
from irload.errors import ReadError
from irload.graph import Node, Output, topological
from irload.model import Model
from irload.ops.registry import resolve
from irload.read.raw import RawMean, RawPreprocess
from irload.read.weights import Weights


def subtract_means(model: Model, preprocess: RawPreprocess, weights: Weights) -> None:
    """Insert the Subtract that a `pre-process` describes, directly after its Parameter.

    Without a name it applies to the first input of rank 4, as in OpenVINO. Raises ReadError if it names no input, or
    does not have one mean per channel.
    """
    parameter = _parameter(model, preprocess.layer_name)
    means = preprocess.means
    if not means:
        return
    dims = parameter.op.attributes["shape"]
    if dims.rank is None or dims.rank < 3 or not dims[1].contains(len(means)):
        raise ReadError(f"pre-process has {len(means)} means, but input '{parameter.name}' is of shape {dims}")
    data = _means(means, weights, dims)
    number = 1 + max(n.id for n in model.nodes)
    const, subtract = resolve("Const", "opset1")[0], resolve("Subtract", "opset1")[0]
    constant = Node(
        number,
        f"{parameter.name}/mean",
        const(element_type=et.f32, shape=Shape(*data.shape), offset=0, size=data.nbytes, data=lambda: data),
    )
    constant.outputs = [Output(constant, 0)]
    node = Node(number + 1, f"{parameter.name}/subtract_mean", subtract())
    node.outputs = [Output(node, 0)]
    source = parameter.outputs[0]
    for user in model.nodes:
        user.inputs = [node.outputs[0] if i is source else i for i in user.inputs]
    node.inputs = [source, constant.outputs[0]]
    model.nodes = topological([*model.parameters, constant, node, *model.nodes])


def _parameter(model: Model, name: str) -> Node:
    parameters = [n for n in model.parameters if n.outputs and "shape" in n.op.attributes]
    parameters = [n for n in parameters if (n.name == name if name else n.op.attributes["shape"].rank == 4)]
    if not parameters:
        wanted = f"input '{name}'" if name else "input of rank 4"
        raise ReadError(f"pre-process is for the {wanted}, which the model does not have")
    return parameters[0]


def _means(means: list[RawMean], weights: Weights, dims: Shape) -> Array:
    """Return [C, 1, 1] from mean values, or [C, H, W] from mean images."""
    images = [m for m in means if isinstance(m, tuple)]
    if not images:
        return np.array(means, np.float32).reshape(-1, 1, 1)
    if len(images) < len(means):
        raise ReadError("pre-process mixes mean values with mean images")
    size = Shape(*dims[2:])
    if not size.is_static or any(length != 4 * size.size.lo for _, length in images):
        raise ReadError(f"a mean image of pre-process does not have the {size} f32 values of the input")
    return np.stack([weights.array(offset, length, et.f32, size.static) for offset, length in images])
