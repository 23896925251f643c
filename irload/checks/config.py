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
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar, cast

from irload.errors import AttributeInvalid, ReadError, Where

NAME = ".irload.toml"
T = TypeVar("T")


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
    folder: Path | None = None

    def exempts(self, code: str, layer: str, file: str) -> bool:
        """True when an exemption covers a finding. Globs over files match the path as given, or from this folder."""
        names = [file.replace("\\", "/")]
        with suppress(ValueError):
            if self.folder is not None:
                names.append(Path(file).resolve().relative_to(self.folder.resolve()).as_posix())
        return any(
            code.startswith(e.code) and fnmatchcase(layer, e.layer) and any(fnmatchcase(n, e.file) for n in names)
            for e in self.exemptions
        )


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
    try:
        return _config(cast(dict[str, Any], table), path.parent)
    except (TypeError, ValueError) as error:
        raise AttributeInvalid(f"[check] is not as it should be: {error}", Where(str(path))) from None


def _config(table: dict[str, Any], folder: Path) -> Config:
    """The configuration of a table. Raises ValueError for what has the wrong type or is not known."""
    values = dict(table)
    exemptions = tuple(
        Exemption(**{k: _typed(k, v, str) for k, v in _typed("exempt", e, dict).items()})
        for e in _typed("exempt", values.pop("exempt", []), list)
    )
    select, ignore = (
        tuple(_typed(key, code, str) for code in _typed(key, values.pop(key, []), list)) for key in ("select", "ignore")
    )
    target = _typed("target", values.pop("target", ""), str) or None
    strict = _typed("strict", values.pop("strict", False), bool)
    if values:
        raise ValueError(f"it knows no {', '.join(values)}")
    return Config(select, ignore, target, strict, exemptions, folder)


def _typed(key: str, value: Any, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise ValueError(f"{key} must be a {_KINDS[kind]}, found {value!r}")
    return value


_KINDS: dict[type, str] = {str: "string", list: "list", dict: "table", bool: "boolean"}
