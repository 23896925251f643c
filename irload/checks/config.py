"""`.irload.toml`: what a project has decided to ignore.

[check]
ignore = ["IR7", "IR610"]
target = "2023.2"

[[check.exempt]]
code = "IR401"
layer = "head/*"          # glob over layer names; default: all
file = "*/legacy/*.xml"   # glob over paths; default: all
reason = "re-exported in spring"
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from irload.errors import AttributeInvalid, ReadError, Where

NAME = ".irload.toml"


@dataclass(frozen=True, slots=True)
class Exemption:
    """Findings with this code (or its beginning) on these layers of these files are not reported."""

    code: str
    layer: str = "*"
    file: str = "*"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Config:
    """The `[check]` table of a configuration file."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    target: str | None = None
    strict: bool = False
    exemptions: tuple[Exemption, ...] = ()


def find_config(path: Path) -> Config:
    """The configuration for a file: the nearest `.irload.toml` in its folder or above, else the empty one."""
    for folder in path.resolve().parents:
        candidate = folder / NAME
        if candidate.is_file():
            return load_config(candidate)
    return Config()


def load_config(path: Path) -> Config:
    """Read one configuration file. Raises ReadError for bad TOML, AttributeInvalid for keys that are not known."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeError, tomllib.TOMLDecodeError) as error:
        raise ReadError(f"cannot be read: {error}", Where(str(path))) from None
    table = document.get("check", {})
    if not isinstance(table, dict) or set(document) - {"check"}:
        raise AttributeInvalid("must hold one table, [check]", Where(str(path)))
    values: dict[str, Any] = dict(cast("dict[str, Any]", table))
    try:
        exemptions = tuple(Exemption(**e) for e in values.pop("exempt", []))
        lists = {k: tuple(values.pop(k)) for k in ("select", "ignore") if k in values}
        return Config(**lists, **values, exemptions=exemptions)
    except TypeError as error:
        raise AttributeInvalid(f"has a key that [check] does not know: {error}", Where(str(path))) from None
