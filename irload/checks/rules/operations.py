"""IR3xx: operations and their attributes."""

from __future__ import annotations

from collections.abc import Iterator

from irload.checks.rule import Hit, file_rule, graph_rule
from irload.checks.rules.files import hit_of
from irload.checks.subject import Scope, Subject
from irload.core.op import Op
from irload.core.registry import LATEST, opset_number, resolve
from irload.errors import AttributeInvalid, IRError, ShapeMismatch, UnknownOperation
from irload.graph import UnknownOp
from irload.read.raw import RawLayer


def known_class(layer: RawLayer) -> type[Op] | None:
    """The class of a layer's operation, None where there is none."""
    try:
        return resolve(layer.type, layer.version or "opset1")[0]
    except UnknownOperation:
        return None


@graph_rule("IR301", "error", "unknown operation")
def unknown_operation(scope: Scope) -> Iterator[Hit]:
    """No opset has an operation of this type, or the namespace is none that irload knows.

    A warning where no output of the model depends on the layer: the runtime never creates it.

    Example: `type="FooOp" version="opset1"`.
    """
    for layer, node in scope.pairs():
        if isinstance(node.op, UnknownOp) and not _known_elsewhere(layer):
            namespace = "" if opset_number(layer.version or "opset1") else f" in the namespace '{layer.version}'"
            yield Hit(
                layer,
                f"no operation has the type {layer.type}{namespace}",
                "custom operations need their extension, or `irrun --extension`",
                severity="error" if node.reachable else "warning",
            )


@graph_rule("IR302", "error", "operation not in this opset")
def wrong_version(scope: Scope) -> Iterator[Hit]:
    """The operation exists, but not in the opset that the layer names: too old, too new, or dropped from it.

    Example: `type="Gelu" version="opset1"`: Gelu appeared in opset2.
    """
    for layer, node in scope.pairs():
        if isinstance(node.op, UnknownOp) and _known_elsewhere(layer):
            try:
                resolve(layer.type, layer.version or "opset1")
            except UnknownOperation as error:
                yield Hit(layer, error.message, severity="error" if node.reachable else "warning")


def _known_elsewhere(layer: RawLayer) -> bool:
    versions = (f"opset{n}" for n in range(1, LATEST + 1))
    return any(_exists(layer.type, v) for v in versions)


def _exists(type: str, version: str) -> bool:
    try:
        resolve(type, version)
    except UnknownOperation:
        return False
    return True


@graph_rule("IR303", "warning", "layer without a version")
def no_version(scope: Scope) -> Iterator[Hit]:
    """The layer names no opset. It is read as opset1.

    Example: `<layer id="2" name="relu" type="ReLU">`.
    """
    for layer in scope.layers.values():
        if not layer.version:
            yield Hit(layer, "has no version; it is read as opset1")


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
    """An attribute that the operation requires is missing, has text that is no value of its kind, or breaks a rule.

    Example: `<data strides="0,1" …/>`: strides must be positive.
    """
    for error in subject.build_faults:
        if isinstance(error, AttributeInvalid):
            yield _at_layer(subject, error)
    for node, error in subject.infer_faults:
        if isinstance(error, AttributeInvalid):
            yield Hit(node, error.message)


def _at_layer(subject: Subject, error: IRError) -> Hit:
    """A hit at the layer that an error of the builder names."""
    where = error.where
    for scope in subject.scopes:
        layer = scope.layers.get(int(where.layer_id)) if where is not None and where.layer_id is not None else None
        if layer is not None and where is not None and layer.line == where.line:
            return Hit(layer, error.message)
    return hit_of(error)


@graph_rule("IR306", "warning", "unknown attribute")
def unknown_attribute(scope: Scope) -> Iterator[Hit]:
    """`data` has an attribute that the operation does not have; the runtime ignores it in silence. Often a typo.

    Example: `<data stride="2,2" …/>` on a Convolution.
    """
    for layer in scope.layers.values():
        cls = known_class(layer)
        if cls is None:
            continue
        known = {a.xml_name for a in cls.declared.values() if not a.supplied}
        for name in layer.data:
            if name not in known and name not in cls.ignores:
                close = _closest(name, known)
                yield Hit(layer, f"unknown attribute {name}", f"did you mean {close}?" if close else "")


def _closest(name: str, known: set[str]) -> str | None:
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, known, 1, 0.75)), None)


@graph_rule("IR307", "warning", "attribute text that is read otherwise")
def sloppy_text(scope: Scope) -> Iterator[Hit]:
    """The runtime reads the attribute without complaint, but not as it is written.

    Example: `transpose_a="maybe"` (kept at its default) or `strides="1.5,1"` (cut to 1).
    """
    for layer in scope.layers.values():
        cls = known_class(layer)
        for declaration in () if cls is None else cls.declared.values():
            notes: list[str] = []
            if not declaration.supplied and declaration.xml_name in layer.data:
                try:
                    declaration.read(layer.data[declaration.xml_name], notes)
                except IRError:
                    continue  # IR305 reports it
            for note in notes:
                yield Hit(layer, note)


@graph_rule("IR308", "warning", "attribute that the specification requires")
def spec_required(scope: Scope) -> Iterator[Hit]:
    """The specification requires the attribute; the runtime falls back to a default of its own.

    Example: a Reshape without special_zero.
    """
    for layer in scope.layers.values():
        cls = known_class(layer)
        for declaration in () if cls is None else cls.declared.values():
            if declaration.spec_required and declaration.xml_name not in layer.data:
                yield Hit(
                    layer, f"attribute {declaration.xml_name} is missing", f"the runtime reads {declaration.default}"
                )


@graph_rule("IR309", "warning", "opset newer than its operations")
def too_new(scope: Scope) -> Iterator[Hit]:
    """The runtime's newest opset is unfinished and lists only a few operations; others fail to load under its name.

    Example: `type="ReLU" version="opset17"`.
    """
    for layer in scope.layers.values():
        try:
            note = resolve(layer.type, layer.version or "opset1")[1]
        except UnknownOperation:
            continue
        if note:
            yield Hit(layer, note)
