"""IR3xx: operations and their attributes."""

from __future__ import annotations

from collections.abc import Iterator

from irload.checks.rule import Hit, file_rule, graph_rule
from irload.checks.subject import Scope, Subject
from irload.core.op import Op
from irload.deviations.registry import met_by
from irload.errors import AttributeInvalid, IRError, ShapeMismatch, UnknownOperation
from irload.graph import Node, UnknownOp
from irload.ops.registry import LATEST, opset_number, resolve
from irload.read.raw import RawLayer
from irload.wording import near_names


def known_class(layer: RawLayer) -> type[Op] | None:
    """The class of a layer's operation, None if unknown."""
    try:
        return resolve(layer.type, layer.version or "opset1")[0]
    except UnknownOperation:
        return None


@graph_rule("IR301", "error", "unknown operation")
def unknown_operation(scope: Scope) -> Iterator[Hit]:
    """No opset has an operation of this type.

    A warning if no output of the model depends on the layer, because OpenVINO does not create it then.

    Example: `type="FooOp" version="opset1"`.
    """
    for layer, node in _unknown_layers(scope):
        if not _known_elsewhere(layer):
            namespace = "" if opset_number(layer.version or "opset1") else f" in the namespace '{layer.version}'"
            yield Hit(
                layer,
                f"no operation has the type {layer.type}{namespace}",
                "custom operations need their extension, or `irrun --extension`",
                severity="error" if node.reachable else "warning",
            )


@graph_rule("IR302", "error", "operation not in this opset")
def wrong_version(scope: Scope) -> Iterator[Hit]:
    """The operation exists, but not in the opset or namespace of the layer: it was added later, or removed earlier.

    Example: `type="Gelu" version="opset1"`: Gelu appeared in opset2.
    """
    for layer, node in _unknown_layers(scope):
        if _known_elsewhere(layer):
            try:
                resolve(layer.type, layer.version or "opset1")
            except UnknownOperation as error:
                yield Hit(layer, error.message, severity="error" if node.reachable else "warning")


def _unknown_layers(scope: Scope) -> Iterator[tuple[RawLayer, Node]]:
    """The layers without an operation, except layers of IR v2 to v7 that could not be rewritten: IR002 reports them."""
    for layer, node in scope.pairs():
        if isinstance(node.op, UnknownOp) and not layer.is_faulty:
            yield layer, node


def _known_elsewhere(layer: RawLayer) -> bool:
    versions = (f"opset{n}" for n in range(1, LATEST + 1))
    return any(_exists(layer.type, v) for v in versions)


def _exists(type: str, version: str) -> bool:
    try:
        resolve(type, version)
    except UnknownOperation:
        return False
    return True


@graph_rule("IR303", "error", "layer without a version")
def no_version(scope: Scope) -> Iterator[Hit]:
    """The layer names no opset. irload reads it as opset1; OpenVINO refuses the file.

    Example: `<layer id="2" name="relu" type="ReLU">`.
    """
    for layer in scope.layers.values():
        if not layer.version:
            yield Hit(layer, "has no version, which OpenVINO requires; irload reads it as opset1")


@graph_rule("IR304", "error", "wrong number of inputs")
def arity(scope: Scope) -> Iterator[Hit]:
    """The layer has more or fewer inputs than its operation takes.

    Example: a Convolution with one input port.
    """
    for layer, node in scope.pairs():
        if isinstance(node.op, UnknownOp):
            continue
        try:
            node.op.signature.check(len(layer.inputs))
        except ShapeMismatch as error:
            yield Hit(layer, error.message)


@file_rule("IR305", "error", "attribute missing or not allowed")
def attribute_invalid(subject: Subject) -> Iterator[Hit]:
    """An attribute that the operation requires is missing, cannot be parsed, or breaks a rule.

    Example: `<data strides="0,1" …/>`: strides must be positive.
    """
    for error in subject.build_faults:
        if isinstance(error, AttributeInvalid):
            layer = None if error.where is None else subject.layers_by_line.get(error.where.line)
            typos = {} if layer is None else _typos(layer)
            meant = next(
                (typo for name, typo in typos.items() if f"attribute {name} is missing" in error.message), None
            )
            yield Hit(error.where, error.message, _misspelt(meant) if meant else "")
    for node, error in subject.inference.faults:
        if isinstance(error, AttributeInvalid):
            yield Hit(node, error.message)


def _misspelt(attribute: str) -> str:
    return f"the unknown attribute {attribute} may be its misspelling"


def _unknown(layer: RawLayer) -> list[str]:
    """The attributes of a layer that its operation does not have."""
    cls = known_class(layer)
    if cls is None:
        return []
    known = {a.xml_name for a in cls.declared.values() if not a.supplied}
    return [name for name in layer.data if name not in known and name not in cls.ignores]


def _typos(layer: RawLayer) -> dict[str, str]:
    """Missing required attributes, each with an unknown attribute that is probably its misspelling."""
    cls, unknown = known_class(layer), _unknown(layer)
    if cls is None or not unknown:
        return {}
    missing = {
        a.xml_name
        for a in cls.declared.values()
        if (a.required or a.spec_required) and not a.supplied and a.xml_name not in layer.data
    }
    return {close: name for name in unknown for close in near_names(name, missing, cutoff=0.75)}


@graph_rule("IR306", "warning", "unknown attribute")
def unknown_attribute(scope: Scope) -> Iterator[Hit]:
    """`data` has an attribute that the operation does not have; OpenVINO ignores it without a warning. Often a typo.

    Example: `<data stride="2,2" …/>` on a Convolution.
    """
    for layer in scope.layers.values():
        unknown, typos = _unknown(layer), set(_typos(layer).values())
        for name in unknown:
            if name not in typos:  # a typo is reported as the cause of a missing attribute
                cls = known_class(layer)
                known = set() if cls is None else {a.xml_name for a in cls.declared.values()}
                near = near_names(name, known - set(layer.data), cutoff=0.75)  # not attributes that the layer has
                yield Hit(layer, f"unknown attribute {name}", f"did you mean {near[0]}?" if near else "")


@graph_rule("IR307", "warning", "attribute read as a different value")
def sloppy_text(scope: Scope) -> Iterator[Hit]:
    """OpenVINO reads the attribute without an error, but as a different value.

    Example: `transpose_a="maybe"` (kept at its default) or `strides="1.5,1"` (cut to 1).
    """
    for layer in scope.layers.values():
        cls = known_class(layer)
        for declaration in () if cls is None else cls.declared.values():
            notes: list[str] = []
            if not declaration.supplied and declaration.xml_name in layer.data:
                try:
                    value = declaration.read(layer.data[declaration.xml_name], notes)
                except IRError:
                    continue  # IR305 reports it
                if value is None and declaration.required:
                    continue  # IR305 reports it, too
            for note in notes:
                yield Hit(layer, note)


@graph_rule("IR308", "warning", "attribute that the specification requires")
def spec_required(scope: Scope) -> Iterator[Hit]:
    """The specification requires the attribute; OpenVINO falls back to an unspecified default.

    Example: a Reshape without special_zero.
    """
    for layer in scope.layers.values():
        cls, typos = known_class(layer), _typos(layer)
        for declaration in () if cls is None else cls.declared.values():
            name = declaration.xml_name
            if declaration.spec_required and name not in layer.data:
                cause = _misspelt(typos[name]) if name in typos else ""
                cause = cause or f"OpenVINO uses the default, {declaration.default}"
                yield Hit(layer, f"attribute {name} is missing", cause)


@graph_rule("IR309", "warning", "opset newer than its operations")
def too_new(scope: Scope) -> Iterator[Hit]:
    """OpenVINO's newest opset is incomplete, and a layer of it loads only if the opset lists its operation.

    Example: `type="ReLU" version="opset17"`.
    """
    for layer in scope.layers.values():
        try:
            note = resolve(layer.type, layer.version or "opset1")[1]
        except UnknownOperation:
            continue
        if note:
            yield Hit(layer, note)


@file_rule("IR311", "warning", "violates the specification")
def against_specification(subject: Subject) -> Iterator[Hit]:
    """The layer breaks a rule of its operation's specification; OpenVINO and irload accept it nevertheless.

    Other tools may refuse the file. The message gives the interpretation of the layer.

    Example: a PReLU of f16 data with an f32 slope, as Model Optimizer wrote it.
    """
    for node, remark in subject.inference.remarks:
        yield Hit(node, remark)


@graph_rule("IR312", "note", "computed differently by OpenVINO")
def deviation(scope: Scope) -> Iterator[Hit]:
    """OpenVINO, or its CPU plugin, deviates here from the specification, and so from irload.

    Results may differ from OpenVINO's in these layers, for the reason in the note. If the note mentions it, `irrun run
    --emulate openvino-cpu` computes the results of the plugin.

    Example: a NonMaxSuppression, where the CPU plugin drops boxes that overlap by exactly the threshold.
    """
    for layer, node in scope.pairs():
        inputs = [scope.type(i) for i in node.inputs]
        for met in met_by(node.op, inputs, [scope.type(o) for o in node.outputs]):
            advice = "; --emulate openvino-cpu computes as the CPU plugin does" if met.emulated else ""
            yield Hit(layer, f"the {met.where} {met.what}{advice}")
