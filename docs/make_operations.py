"""Writes docs/operations.md from the registry: every operation, its ports, attributes and constraints.

python docs/make_operations.py
"""

from __future__ import annotations

import csv
import inspect
import math
from collections.abc import Iterator
from pathlib import Path

from irload.core.attribute import REQUIRED, Attribute
from irload.core.op import Op
from irload.ops.registry import registered

HERE = Path(__file__).parent
DATA = HERE.parent / "tests" / "data"
PROBES = (-math.inf, math.nan, -1, 0, (-1,), (0, 0, 0, 0, 0), ())

INTRODUCTION = """\
# Operations

Every operation of the public opsets and of OpenVINO's tokenizer extension, nGraph's Pad and oneDNN Graph's
Convolution, grouped as in OpenVINO's specification and in `irload/ops/`. Written by `python docs/make_operations.py`
from the registry; a test checks that the page is current.

The version `opsetN` of a layer selects the newest variant introduced in opset N or before. Optional inputs are in
brackets, `*inputs` is any number of inputs. *required* marks a mandatory attribute; if an attribute that only the
specification requires is missing, irload warns and uses OpenVINO's default. f16, bf16 and f8 are computed in f32 and
rounded once.

**Compared with** names the reference: OpenVINO's *reference* kernels, its *CPU plugin* (at f32), or independently
*worked* results if neither has a kernel or both depart from the specification. `make conformance` repeats the
comparison with any number of random cases. Departures are listed, with reasons, in
`irload/deviations/deviations.toml` and `tests/harness/strictness.py`.
"""

ELSEWHERE = {
    "Parameter": "used in every test",
    "Const": "used in every test",
    "Result": "used in every test",
    "ReadValue": "worked examples and the CPU plugin, over several inferences",
    "Assign": "worked examples and the CPU plugin, over several inferences",
    "Pad": "the published example and a plain loop",
}
"""References of the operations without random cases."""


def page() -> str:
    """The text of the page."""
    families: dict[str, list[type[Op]]] = {}
    for cls in registered():
        if cls.__module__.startswith("irload.ops."):
            families.setdefault(cls.__module__.split(".")[2], []).append(cls)
    parts = [INTRODUCTION, *_contents(families)]
    proofs = _proofs()
    for family, classes in sorted(families.items()):
        parts.append(f"\n## {family}\n")
        for cls in sorted(classes, key=lambda c: (c.type.lower(), c.namespace, c.since)):
            parts += _entry(cls, proofs)
    return "\n".join(parts)


def _contents(families: dict[str, list[type[Op]]]) -> Iterator[str]:
    total = sum(map(len, families.values()))
    names = {cls.type for classes in families.values() for cls in classes}
    yield f"{len(names)} operations in {total} variants:\n"
    for family, classes in sorted(families.items()):
        types = sorted({cls.type for cls in classes}, key=str.lower)
        yield f"- [{family}](#{family}): {', '.join(types)}"


def _entry(cls: type[Op], proofs: dict[tuple[str, str], str]) -> Iterator[str]:
    yield f"### {cls.type}, {cls.opset}\n"
    yield inspect.cleandoc(cls.__doc__ or "") + "\n"
    ports = [*cls.signature.required, *(f"[{n}]" for n in cls.signature.optional)]
    ports += [f"*{cls.signature.variadic}"] if cls.signature.variadic else []
    if ports:
        yield f"Inputs: {', '.join(f'`{p}`' for p in ports)}.\n"
    attributes = [a for a in cls.declared.values() if not a.supplied]
    if attributes:
        yield "| attribute | value | default | constraint |"
        yield "|---|---|---|---|"
        for attribute in attributes:
            cells = (f"`{attribute.xml_name}`", attribute.kind, _default(attribute), _constraint(attribute))
            yield f"| {' | '.join(cells)} |"
        yield ""
    yield f"Compared with: {proofs.get((cls.type, cls.opset)) or ELSEWHERE[cls.type]}.\n"


def _default(attribute: Attribute) -> str:
    if attribute.default is REQUIRED:
        return "*required*"
    text = "none" if attribute.default in (None, ()) else f"`{attribute.write(attribute.default)}`"
    return f"{text}, *required by the specification*" if attribute.spec_required else text


def _constraint(attribute: Attribute) -> str:
    """The message of the attribute's rule for the first probe that it rejects; empty if it rejects none."""
    if attribute.rule is None or attribute.kind.startswith("one of"):
        return ""
    for probe in PROBES:
        try:
            complaint = attribute.rule(probe)
        except (TypeError, ValueError, OverflowError, AttributeError):
            continue
        if complaint:
            return complaint
    return ""


def _proofs() -> dict[tuple[str, str], str]:
    proofs: dict[tuple[str, str], str] = {}
    names = {"reference": "OpenVINO's reference", "cpu": "its CPU plugin", "worked": "worked results"}
    with open(DATA / "oracles.csv", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            used = [name for key, name in names.items() if int(line[key])]
            text = ", ".join(used)
            proofs[line["type"], line["version"]] = text if "reference" in text else text.replace("its", "OpenVINO's")
    return proofs


if __name__ == "__main__":
    (HERE / "operations.md").write_text(page(), encoding="utf-8", newline="\n")
