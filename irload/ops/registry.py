"""Resolves the class for a layer's type and version; imports its module on first use."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib import import_module

import irload.ops
from irload.core.op import Op
from irload.core.registry import table
from irload.errors import UnknownOperation
from irload.ops.index import MODULES

__all__ = ["LATEST", "opset_number", "registered", "resolve", "too_new"]

LATEST = 17
"""The newest opset that irload implements."""

# Old files list these types under a namespace that later became part of opset6.
_LEGACY_NAMESPACES = ("experimental", "extension")
_IN_OPSET6 = frozenset(
    {
        *("experimentaldetectrondetectionoutput", "experimentaldetectrongenerateproposalssingleimage"),
        *("experimentaldetectronpriorgridgenerator", "experimentaldetectronroifeatureextractor"),
        *("experimentaldetectrontopkrois", "grucell", "rnncell", "proposal"),
    }
)


def resolve(type: str, version: str) -> tuple[type[Op], str | None]:
    """The class for a layer's type and version, and a note if irload is more lenient than OpenVINO.

    `opsetN` resolves to the newest variant introduced in N or before; other namespaces are plain names. Raises
    UnknownOperation, with a message that names near misses.
    """
    name, note = type.lower(), None
    number = opset_number(version)
    if number is None:
        variants = [] if version == "opset" else _variants(version, name)  # the table's namespace of numbered opsets
        if variants:
            return variants[-1], None
        if version in _LEGACY_NAMESPACES and name in _IN_OPSET6:
            return resolve(type, "opset6")
        raise _unknown(type, version)
    versions = _variants("opset", name)
    candidates = [v for v in versions if v.since <= number or number in v.also_in]
    candidates = [v for v in candidates if number not in v.missing_in]
    if not candidates or not 1 <= number <= LATEST:
        raise _unknown(type, version)
    cls = candidates[-1]
    if number == LATEST and cls.since < LATEST and cls.type not in ("Parameter", "Convert", "ShapeOf"):
        note = f"OpenVINO's {version} does not list {cls.type} yet; read as {cls.opset}"
    return cls, note


def opset_number(version: str) -> int | None:
    """N of `opsetN`, else None. OpenVINO compares names, so `opset01` is not an opset."""
    digits = version.removeprefix("opset")
    plain = digits != version and digits.isascii() and digits.isdigit() and len(digits) < 4
    return int(digits) if plain and not digits.startswith("0") else None


def registered() -> Iterator[type[Op]]:
    """Every registered class, sorted by namespace, type and version."""
    _discover()
    for key in sorted(table):
        yield from table[key]


def _variants(namespace: str, name: str) -> list[type[Op]]:
    """The classes of one type. Imports their modules, so that a model loads only the operations that it contains."""
    for module in _defining_modules().get((namespace, name), ()):
        import_module(module)
    return table.get((namespace, name), [])


@cache
def _defining_modules() -> dict[tuple[str, str], list[str]]:
    """The modules that define each type, from the generated index."""
    modules: dict[tuple[str, str], list[str]] = {}
    for module, types in MODULES.items():
        for written in types.split():
            namespace, _, type = written.rpartition(":")
            modules.setdefault((namespace or "opset", type.lower()), []).append(f"irload.ops.{module}")
    return modules


@cache
def _discover() -> None:
    """Import every module of operations; their class statements register them."""
    for module in pkgutil.walk_packages(irload.ops.__path__, "irload.ops."):
        import_module(module.name)


def too_new(version: str) -> str | None:
    """The fact that irload does not implement an opset yet; None for other versions."""
    is_newer = (opset_number(version) or 0) > LATEST
    return f"{version} is newer than opset{LATEST}, the newest that irload implements" if is_newer else None


def _unknown(type: str, version: str) -> UnknownOperation:
    newer = too_new(version)
    if newer:
        return UnknownOperation(newer, types=((type, version),))
    _discover()
    others = [v for (_, name), versions in sorted(table.items()) if name == type.lower() for v in versions]
    if others:
        known = ", ".join(v.opset for v in others)
        return UnknownOperation(
            f"{type} does not exist in {version}; irload supports it in {known}", types=((type, version),)
        )
    return UnknownOperation(f"no operation {type} in {version}", types=((type, version),))
