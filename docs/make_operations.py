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

Every operation of the public opsets, in the folders of OpenVINO's specifications and of `irload/ops/`. Written by
`python docs/make_operations.py` from the operations themselves; a test holds it current.

A file's version `opsetN` selects the newest variant that appeared in opset N or before. Optional inputs stand in
brackets, `*inputs` is any number. *required* marks an attribute that must be there; where one that the specification
requires is missing, irload warns and reads what the runtime reads. In f16, bf16 and f8 irload computes in f32 and
rounds once.

**Compared with** says what proves a row: OpenVINO's *reference* kernels, its *CPU plugin* (at f32), or results *worked*
out independently, where neither has a kernel or both depart from the specification; `make conformance` repeats it with
any number of random cases. What departs stands, with reasons, in `irload/deviations.toml` and
`tests/harness/strictness.py`.
"""

ELSEWHERE = {
    "Parameter": "stands in every test",
    "Const": "stands in every test",
    "Result": "stands in every test",
    "ReadValue": "worked examples and the CPU plugin, over several inferences",
    "Assign": "worked examples and the CPU plugin, over several inferences",
    "Pad": "the published example and a plain loop",
}
"""What proves the rows that have no random cases."""


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
    """What the rule complains about, where it complains about anything simple."""
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
    found: dict[tuple[str, str], str] = {}
    names = {"reference": "OpenVINO's reference", "cpu": "its CPU plugin", "worked": "worked results"}
    with open(DATA / "oracles.csv", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            used = [name for key, name in names.items() if int(line[key])]
            text = ", ".join(used)
            found[line["type"], line["version"]] = text if "reference" in text else text.replace("its", "OpenVINO's")
    return found


if __name__ == "__main__":
    (HERE / "operations.md").write_text(page(), encoding="utf-8", newline="\n")
