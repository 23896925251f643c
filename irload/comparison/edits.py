"""The edits between two models: layers added, removed or changed, and outputs changed as a consequence."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from html import escape
from typing import Literal

from irload.comparison.weights import ValueChange
from irload.wording import printable

__all__ = ["Change", "Difference", "LayerEdit", "ShapeChange"]

NAMES = frozenset({"name", "names"})
"""Kinds of change that only rename."""
HARMLESS = NAMES | {"storage"}
"""Kinds of change that leave the computation the same."""

EditKind = Literal["same", "weights", "shapes", "compressed", "names", "structure"]


@dataclass(frozen=True, slots=True)
class Change:
    """One changed property of a layer: its value in A and in B, "" if absent.

    `what` is `type`, `version`, `attribute`, `shape`, `precision`, `values`, `storage` (of a constant that is followed
    by a Convert in one model), `input` (fed by another layer), `names` (of tensors), `name`, `wiring` (of a body) or
    `order`. `key` is the name of the attribute or the index of the input. `values` is set if elements differ.
    """

    what: str
    key: str
    a: str
    b: str
    values: ValueChange | None = None

    @property
    def label(self) -> str:
        """The name of the property: `strides`, `input 1`, `shape`."""
        return f"{self.what} {self.key}" if self.what in ("input", "names") else self.key or self.what


@dataclass(frozen=True, slots=True)
class LayerEdit:
    """A layer that was `added`, `removed` or `changed`.

    `name` is prefixed by the bodies that lead to it (`loop/body/add`), and is the name in A unless the layer was added.
    `place` names the neighbours of an added or removed layer. `id` and `line` are of A and of B, None if absent.
    """

    kind: Literal["added", "removed", "changed"]
    name: str
    operation: str
    changes: tuple[Change, ...] = ()
    place: str = ""
    id: tuple[int | None, int | None] = (None, None)
    line: tuple[int | None, int | None] = (None, None)


@dataclass(frozen=True, slots=True)
class ShapeChange:
    """An output of an unchanged layer whose type or shape differs because of an edit before it."""

    name: str
    operation: str
    a: str
    b: str


@dataclass(slots=True)
class Difference:
    """The `edits` that turn A into B, in order of execution, and the layers whose types and shapes follow from them.

    `layers` counts the compared layers of A and of B. `unused` names layers of both models on which the outputs of only
    one model depend; `notes` list faults of the files.
    """

    a: str
    b: str
    layers: tuple[int, int] = (0, 0)
    edits: list[LayerEdit] = field(default_factory=list[LayerEdit])
    follows: list[ShapeChange] = field(default_factory=list[ShapeChange])
    unused: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    @property
    def same(self) -> bool:
        """True if there are no edits."""
        return not self.edits

    @property
    def kind(self) -> EditKind:
        """The kind of all edits if they share one: `weights`, `shapes`, `compressed`, `names`; else `structure`."""
        if not self.edits:
            return "same"
        aspects = {c.what for e in self.edits for c in e.changes} | {"" for e in self.edits if e.kind != "changed"}
        kinds: dict[EditKind, set[str]] = {
            "weights": {"values"},
            "shapes": {"shape"},
            "names": set(NAMES),
            "compressed": set(HARMLESS),
        }
        names: list[EditKind] = [kind for kind, wanted in kinds.items() if aspects <= wanted]
        return names[0] if names else "structure"

    @property
    def summary(self) -> str:
        """The difference in one line."""
        edits = self.edits
        match self.kind:
            case "same":
                return f"the same: {self.layers[0]} layers"
            case "weights":
                return f"only weights differ: {_counted(len(edits), 'constant')}, {self._furthest()}"
            case "shapes":
                inputs = ", ".join(f"{e.name} {c.a} → {c.b}" for e in edits[:4] for c in e.changes)
                more = f" and {len(edits) - 4} more" if len(edits) > 4 else ""
                return f"only shapes differ: {inputs}{more}; {_counted(len(self.follows), 'output')} of layers follow"
            case "compressed":
                ways = Counter((c.a, c.b) for e in edits for c in e.changes if c.what == "storage")
                (a, b), _ = ways.most_common(1)[0]
                count = _counted(sum("storage" in {c.what for c in e.changes} for e in edits), "constant")
                return f"only the precision of weights differs: {count} in {b} for {a}, {self._furthest()}"
            case "names":
                return f"only names differ: {_counted(len(edits), 'layer')}"
            case _:
                count = Counter(e.kind for e in self.real)
                parts = [f"{_counted(count[k], 'layer')} {k}" for k in ("added", "removed", "changed") if count[k]]
                return "; ".join([", ".join(parts) or "nothing that is computed differs", *self._harmless()])

    @property
    def real(self) -> list[LayerEdit]:
        """The edits that change the computation, beyond names and the precision of weights."""
        return [e for e in self.edits if e.kind != "changed" or not {c.what for c in e.changes} <= HARMLESS]

    def _harmless(self) -> list[str]:
        """Describe the number of edits of names alone, and of the precision of weights alone."""
        kinds = [{c.what for c in e.changes} for e in self.edits if e.kind == "changed"]
        names = sum(k <= NAMES for k in kinds)
        stored = sum("storage" in k and k <= HARMLESS for k in kinds)
        parts = [f"{_counted(names, 'layer')} by name alone"] if names else []
        return parts + ([f"{_counted(stored, 'constant')} by precision alone"] if stored else [])

    def _furthest(self) -> str:
        values = [
            c.values for e in self.edits for c in e.changes if c.values is not None and c.values.relative is not None
        ]
        furthest = max((v.relative or 0.0 for v in values), default=0.0)
        return f"relative RMS of the changes at most {furthest:.2g}" if furthest else "without loss"

    def __str__(self) -> str:
        return printable(f"{self.a} and {self.b}: {self.summary}")

    def lines(self, *, every: bool = False) -> list[str]:
        """Return the edits in the style of `git diff`: `-` for A, `+` for B. Not escaped.

        If some edits change the computation, returns only these; with `every` also edits of names and precision.
        """
        if self.same:
            return []
        lines = [f"--- {self.a}", f"+++ {self.b}"]
        for edit in self.edits if every else self.real or self.edits:
            if edit.kind == "changed":
                lines.append(f"@@ {edit.name} ({edit.operation}) @@")
                for change in edit.changes:
                    lines += _change_lines(change)
            else:
                sign = "+" if edit.kind == "added" else "-"
                lines.append(f"@@ {edit.name} @@")
                lines.append(f"{sign}{edit.operation} '{edit.name}'{f', {edit.place}' if edit.place else ''}")
                lines += [f"{sign}  {c.label}: {c.b or c.a}" for c in edit.changes]
        return lines

    def _repr_html_(self) -> str:
        """Return the summary and the edits as HTML for notebooks."""
        colours = {"+": "#1a7f37", "-": "#cf222e", "@": "#6e7781", "~": "#9a6700"}
        rows = "".join(
            f'<div style="color:{colours.get(line[:1], "inherit")}">{escape(printable(line))}</div>'
            for line in self.lines()
        )
        return f"<p>{escape(str(self))}</p>" + (f'<div style="font-family:monospace">{rows}</div>' if rows else "")


def _change_lines(change: Change) -> list[str]:
    if change.values is not None:
        kinds = f"{change.a} → {change.b}, " if change.a != change.b else ""
        return [f"~  {change.label}: {kinds}{change.values}"]
    return [f"{sign}  {change.label}: {text}" for sign, text in (("-", change.a), ("+", change.b)) if text]


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
