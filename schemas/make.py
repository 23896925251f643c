"""Generates schemas/ir.rng, a RELAX NG schema of IR versions 10 and 11, from the table of operations.

python -m schemas.make

With the schema an editor completes and checks types, versions and attributes of layers. It describes the operations of
opset1 and later; layers of other namespaces may have any content.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from irload.core.attribute import Attribute
from irload.core.element import ELEMENTS
from irload.core.op import Op
from irload.errors import UnknownOperation
from irload.ops.registry import LATEST, registered, resolve

TARGET = Path(__file__).with_name("ir.rng")

INTEGER = r"\s*[+\-]?\d+\s*"
NUMBERED = r"opset\d+"
NUMBER = r"\s*[+\-]?((\d+\.?\d*|\.\d+)([eE][+\-]?\d+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])\s*"

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<!-- OpenVINO IR, versions 10 and 11. Generated from the table of operations by schemas/make.py; do not edit. -->
<grammar xmlns="http://relaxng.org/ns/structure/1.0" xmlns:a="http://relaxng.org/ns/compatibility/annotations/1.0"
         datatypeLibrary="http://www.w3.org/2001/XMLSchema-datatypes">
<start><element name="net">
  <optional><attribute name="name"/></optional>
  <attribute name="version"><choice><value>10</value><value>11</value></choice></attribute>
  <interleave>
    <ref name="graph"/>
    <optional><element name="meta_data"><ref name="anything"/></element></optional>
    <optional><element name="quantization_parameters"><ref name="anything"/></element></optional>
    <optional><element name="pre-process"><ref name="anything"/></element></optional>
    <optional><element name="statistics"><ref name="anything"/></element></optional>
  </interleave>
</element></start>
<define name="graph"><interleave>
  <element name="layers"><zeroOrMore><ref name="layer"/></zeroOrMore></element>
  <optional><element name="edges"><zeroOrMore><element name="edge">
    <attribute name="from-layer"><ref name="natural"/></attribute>
    <attribute name="from-port"><ref name="natural"/></attribute>
    <attribute name="to-layer"><ref name="natural"/></attribute>
    <attribute name="to-port"><ref name="natural"/></attribute>
  </element></zeroOrMore></element></optional>
  <ref name="rt_info"/>
</interleave></define>
<define name="rt_info"><optional><element name="rt_info"><ref name="anything"/></element></optional></define>
<define name="anything"><zeroOrMore><choice>
  <attribute><anyName/></attribute><text/><element><anyName/><ref name="anything"/></element>
</choice></zeroOrMore></define>
<define name="ports"><interleave>
  <ref name="rt_info"/>
  <optional><element name="input"><zeroOrMore><element name="port">
    <ref name="port"/><optional><ref name="precision"/></optional><ref name="shape"/>
  </element></zeroOrMore></element></optional>
  <optional><element name="output"><zeroOrMore><element name="port">
    <ref name="port"/><ref name="precision"/><optional><attribute name="names"/></optional><ref name="shape"/>
  </element></zeroOrMore></element></optional>
</interleave></define>
<define name="port"><attribute name="id"><ref name="natural"/></attribute></define>
<define name="shape"><interleave>
  <zeroOrMore><element name="dim">
    <data type="string"><param name="pattern">\\s*(-1|\\d+)\\s*</param></data>
  </element></zeroOrMore>
  <ref name="rt_info"/>
</interleave></define>
<define name="port_map"><zeroOrMore><choice>
  <element name="input"><ref name="mapped"/></element><element name="output"><ref name="mapped"/></element>
</choice></zeroOrMore></define>
<define name="mapped">
  <attribute name="external_port_id"><ref name="integer"/></attribute>
  <attribute name="internal_layer_id"><ref name="natural"/></attribute>
  <optional><attribute name="axis"><ref name="integer"/></attribute></optional>
  <optional><attribute name="start"><ref name="integer"/></attribute></optional>
  <optional><attribute name="end"><ref name="integer"/></attribute></optional>
  <optional><attribute name="stride"><ref name="integer"/></attribute></optional>
  <optional><attribute name="part_size"><ref name="integer"/></attribute></optional>
  <optional><attribute name="purpose"><choice>
    <value>current_iteration</value><value>execution_condition</value>
  </choice></attribute></optional>
</define>
<define name="back_edges"><optional><element name="back_edges"><zeroOrMore><element name="edge">
  <attribute name="from-layer"><ref name="natural"/></attribute>
  <attribute name="to-layer"><ref name="natural"/></attribute>
</element></zeroOrMore></element></optional></define>
"""


def schema() -> str:
    """Return the text of the schema."""
    return "".join([HEAD, *_kinds(), *_layers(), "</grammar>\n"])


def _define(name: str, content: str) -> str:
    return f'<define name="{name}">{content}</define>\n'


def _pattern(pattern: str) -> str:
    return f'<data type="string"><param name="pattern">{escape(pattern)}</param></data>'


def _values(words: list[str]) -> str:
    return f"<choice>{''.join(f'<value>{escape(w)}</value>' for w in dict.fromkeys(words))}</choice>"


def _listed(item: str) -> str:
    return rf"\s*|({item},)*{item}(,\s*)?"


def _kinds() -> Iterator[str]:
    names = [e.name for e in ELEMENTS]
    yield _define("natural", _pattern(r"\s*\d{1,19}\s*"))
    yield _define("integer", _pattern(INTEGER))
    yield _define("integers", _pattern(_listed(INTEGER)))
    yield _define("number", _pattern(NUMBER))
    yield _define("numbers", _pattern(_listed(NUMBER)))
    yield _define("boolean", _values(["true", "false", "1", "0", "True", "False", "TRUE", "FALSE"]))
    yield _define("element_type", _values([*names, "undefined"]))
    precisions = [e.precision for e in ELEMENTS]
    yield _define("precision", f'<attribute name="precision">{_values([*precisions, *names, "undefined"])}</attribute>')


# -- layers ------------------------------------------------------------------------------------------------------------


def _layers() -> Iterator[str]:
    variants = [(cls, _versions(cls)) for cls in registered() if cls.namespace == "opset"]
    for cls, versions in variants:
        yield _define(_name(cls), _variant(cls, versions))
    known = "".join(f'<ref name="{_name(cls)}"/>' for cls, _ in variants)
    yield _define(
        "extension",
        '<attribute name="type"/><attribute name="version"><data type="string"><except>'
        f"{_pattern(NUMBERED)}</except></data></attribute><interleave>"
        '<optional><element name="data"><zeroOrMore><attribute><anyName/></attribute></zeroOrMore></element></optional>'
        f'<ref name="ports"/>{_body("body")}{_body("then_body")}{_body("else_body")}</interleave>',
    )
    yield _define(
        "layer",
        '<element name="layer"><attribute name="id"><ref name="natural"/></attribute><attribute name="name"/>'
        '<optional><attribute name="output_names"/></optional>'
        f'<choice>{known}<ref name="extension"/></choice></element>',
    )


def _name(cls: type[Op]) -> str:
    return f"{cls.type}-{cls.opset}"


def _versions(cls: type[Op]) -> list[str]:
    """Return the versions under which a file may name the variant."""
    found: list[str] = []
    for n in range(1, LATEST + 1):
        try:
            if resolve(cls.type, f"opset{n}")[0] is cls:
                found.append(f"opset{n}")
        except UnknownOperation:
            continue
    return found


def _variant(cls: type[Op], versions: list[str]) -> str:
    about = (cls.__doc__ or "").strip().split("\n")[0]
    any_case = "".join(f"[{c.upper()}{c.lower()}]" if c.isalpha() else re.escape(c) for c in cls.type)
    bodies = [a.name for a in cls.declared.values() if a.supplied and a.name != "data"]
    return (
        f'<attribute name="type"><a:documentation>{escape(about)}</a:documentation>'
        f"<choice><value>{cls.type}</value>{_pattern(any_case)}</choice></attribute>"
        f'<attribute name="version">{_values(versions)}</attribute>'
        f'<interleave>{_data(cls)}<ref name="ports"/>{"".join(map(_body, bodies))}</interleave>'
    )


def _data(cls: type[Op]) -> str:
    attributes = [a for a in cls.declared.values() if not a.supplied]
    content = "".join(map(_attribute, attributes))
    content += "".join(f"<optional><attribute name={quoteattr(name)}/></optional>" for name in cls.ignores)
    element = f'<element name="data">{content}</element>'
    return element if any(a.required for a in attributes) else f"<optional>{element}</optional>"


def _attribute(attribute: Attribute) -> str:
    text = f"<attribute name={quoteattr(attribute.xml_name)}>{_content(attribute)}</attribute>"
    return text if attribute.required else f"<optional>{text}</optional>"


def _content(attribute: Attribute) -> str:
    kind = attribute.kind
    if attribute.words:
        spelled = {attribute.read(w, []) for w in attribute.words}
        words = [attribute.write(w) for w in sorted(spelled)]
        return _values([*words, *attribute.words, *(w.upper() for w in attribute.words)])
    if kind in ("integer", "integers", "number", "numbers", "boolean"):
        return f'<ref name="{kind}"/>'
    return '<ref name="element_type"/>' if kind == "element type" else "<text/>"


def _body(name: str) -> str:
    maps = f'<optional><element name="{name.removesuffix("body")}port_map"><ref name="port_map"/></element></optional>'
    body = f'<optional><element name="{name}"><ref name="graph"/></element></optional>'
    return maps + body + ('<ref name="back_edges"/>' if name == "body" else "")


if __name__ == "__main__":
    TARGET.write_text(schema(), encoding="utf-8")
