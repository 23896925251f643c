"""`.irload.toml`: the findings that a project ignores.

`irrun check` reads it from the current folder or from a given path, never from the folder of a model.

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
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar, cast

from irload.checks.report import Suppression
from irload.errors import AttributeInvalid, ReadError, Where
from irload.safety.files import read_limited
from irload.wording import counted

NAME = ".irload.toml"
SIZE = 1 << 16
"""Maximum size in bytes of a configuration file."""
KEYS = ("select", "ignore", "target", "strict", "exempt")
"""The keys of the table `[check]`."""
EXEMPTION_KEYS = ("code", "layer", "file", "reason")
"""The keys of a table `[[check.exempt]]`."""
T = TypeVar("T")


@dataclass(frozen=True)
class Exemption:
    """Findings with this code (or its beginning) on these layers of these files are not reported."""

    code: str
    layer: str = "*"
    file: str = "*"
    reason: str = ""


@dataclass(frozen=True)
class Config:
    """The `[check]` table of a configuration file."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    target: str | None = None
    strict: bool = False
    exemptions: tuple[Exemption, ...] = ()
    path: Path | None = None

    @property
    def name(self) -> str:
        """The file's name, for messages."""
        return NAME if self.path is None else self.path.name

    def ignoring(self, code: str, layer: str, file: str) -> Suppression | None:
        """The entry that suppresses a finding, or None."""
        for ignored in self.ignore:
            if code.startswith(ignored):
                return self._suppression(ignored)
        exemption = self._exemption(code, layer, file)
        return None if exemption is None else self._suppression(exemption)

    def suppressions(self) -> list[Suppression]:
        """All entries that may suppress findings."""
        return [self._suppression(entry) for entry in (*self.ignore, *self.exemptions)]

    def _suppression(self, entry: str | Exemption) -> Suppression:
        if isinstance(entry, str):
            return Suppression(f"ignore {entry} of {self.name}")
        globs = [f"{key} {value}" for key, value in (("layer", entry.layer), ("file", entry.file)) if value != "*"]
        return Suppression(f"exemption of {' on '.join([entry.code, *globs])} of {self.name}", entry.reason)

    def effect(self) -> str:
        """The effect of the configuration, in words."""
        parts = [f"only {', '.join(self.select)}"] if self.select else []
        parts += [f"ignores {', '.join(self.ignore)}"] if self.ignore else []
        parts += [counted(len(self.exemptions), "exemption")] if self.exemptions else []
        parts += [f"target {self.target}"] if self.target else []
        parts += ["strict"] if self.strict else []
        return "; ".join(parts) or "changes nothing"

    def _exemption(self, code: str, layer: str, file: str) -> Exemption | None:
        """The exemption that covers a finding. Globs over files match the path as given, or relative to this folder."""
        names = [file.replace("\\", "/")]
        with suppress(ValueError):
            if self.path is not None:
                names.append(Path(file).resolve().relative_to(self.path.resolve().parent).as_posix())
        fitting = (e for e in self.exemptions if code.startswith(e.code) and fnmatchcase(layer, e.layer))
        return next((e for e in fitting if any(fnmatchcase(n, e.file) for n in names)), None)


def find_config(folder: Path) -> Config:
    """The configuration `.irload.toml` of a folder, empty if there is no such file."""
    path = folder / NAME
    return load_config(path) if path.exists() else Config()


def load_config(path: Path) -> Config:
    """Read one configuration file. Raises ReadError for bad TOML, AttributeInvalid for unknown keys."""
    try:
        content = read_limited(path, "the configuration", SIZE)
        if len(content) > SIZE:
            raise ReadError(f"is larger than {SIZE} bytes")
        text = content.decode("utf-8")
        document = tomllib.loads(text)
    except ReadError as error:
        raise error.at(Where(str(path))) from None
    except (UnicodeError, tomllib.TOMLDecodeError) as error:
        raise ReadError(f"is not valid TOML: {error}", Where(str(path))) from None
    except RecursionError:
        raise ReadError("is nested too deep", Where(str(path))) from None
    table = document.get("check", {})
    if not isinstance(table, dict) or set(document) - {"check"}:
        raise AttributeInvalid("must hold one table, [check]", Where(str(path)))
    try:
        return _config(cast(dict[str, Any], table), path)
    except (TypeError, ValueError, RecursionError) as error:
        raise AttributeInvalid(f"[check] is invalid: {error}", Where(str(path))) from None


def _config(table: dict[str, Any], path: Path) -> Config:
    """The configuration of a table. Raises ValueError for values of the wrong type and unknown keys."""
    _require_known(table, KEYS)
    exemptions = tuple(_exemption(_typed("exempt", e, dict)) for e in _typed("exempt", table.get("exempt", []), list))
    select, ignore = (
        tuple(_typed(key, code, str) for code in _typed(key, table.get(key, []), list)) for key in ("select", "ignore")
    )
    target = _typed("target", table.get("target", ""), str) or None
    strict = _typed("strict", table.get("strict", False), bool)
    return Config(select, ignore, target, strict, exemptions, path)


def _exemption(table: dict[str, Any]) -> Exemption:
    _require_known(table, EXEMPTION_KEYS)
    return Exemption(**{key: _typed(key, value, str) for key, value in table.items()})


def _require_known(table: dict[str, Any], keys: Sequence[str]) -> None:
    """Raise ValueError if the table has other keys."""
    unknown = [f"'{key}'" for key in table if key not in keys]
    if unknown:
        plural = "" if len(unknown) == 1 else "s"
        raise ValueError(f"unknown key{plural} {', '.join(unknown)}; expected {', '.join(keys)}")


def _typed(key: str, value: Any, kind: type[T]) -> T:
    if not isinstance(value, kind):
        raise ValueError(f"{key} must be a {_KINDS[kind]}, found {_shown(value)}")
    return value


def _shown(value: object) -> str:
    """A value in a message; tables and lists may be deep, so only their type is named."""
    return f"a {_KINDS[type(value)]}" if isinstance(value, list | dict) else repr(value)[:80]


_KINDS: dict[type, str] = {str: "string", list: "list", dict: "table", bool: "boolean"}
