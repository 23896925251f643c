"""The documents and the text of `irrun run --dump` and `--check-finite`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irload import CompiledModel
from irrun.document import Document
from irrun.render import safe, size_text, stderr, stdout, table
from irrun.values import value_text

if TYPE_CHECKING:
    from irload.diagnostics.finite import NonFinite, ValueRange


def require_options(dump: Path | None, layers: Sequence[str], *, finite: bool, subnormals: bool) -> None:
    """Raise UsageError for options that have no effect without another."""
    if layers and dump is None:
        raise click.UsageError("--layers requires --dump DIR, for which it selects layers")
    if subnormals and not finite:
        raise click.UsageError("--subnormals requires --check-finite")


def dumped(compiled: CompiledModel, values: Any, folder: Path, layers: Sequence[str], *, force: bool) -> Document:
    """Write the intermediates; return the folder and their number."""
    from irload.diagnostics.dump import INDEX, dump_intermediates

    entries = dump_intermediates(compiled, values, folder, layers, force=force)
    total = sum((folder / entry.file).stat().st_size for entry in entries)
    return {"folder": str(folder), "index": str(folder / INDEX), "arrays": len(entries), "bytes": total}


def nonfinite(compiled: CompiledModel, values: Any, *, subnormals: bool) -> Document:
    """Return the layers and constants with non-finite values, as in schemas/run.schema.json."""
    from irload.diagnostics.finite import check_finite

    finiteness = check_finite(compiled, values, subnormals=subnormals)
    return {
        "passed": finiteness.passed,
        "visited": finiteness.visited,
        "layers": [_entry(entry) for entry in finiteness.layers],
        "constants": [_entry(entry) for entry in finiteness.constants],
    }


def _entry(entry: NonFinite) -> Document:
    where = entry.where
    return {
        "kind": entry.kind,
        "name": entry.name,
        "operation": where.layer_type,
        "id": where.layer_id,
        "line": where.line,
        "attributes": entry.attributes,
        "made_here": entry.made_here,
        "output": _range(entry.output),
        "inputs": [_range(r) for r in entry.inputs],
    }


def _range(value_range: ValueRange) -> Document:
    return {
        "type": value_range.type,
        "shape": list(value_range.shape),
        "min": value_range.min,
        "max": value_range.max,
        "nan": value_range.nan,
        "infinite": value_range.infinite,
        "subnormal": value_range.subnormal,
    }


def render_intermediates(document: Document) -> None:
    """Show the requested results."""
    if "dump" in document:
        written = document["dump"]
        text = f"wrote {written['arrays']} arrays, {size_text(written['bytes'])}, listed in {safe(written['index'])}"
        stderr().print(text, soft_wrap=True)
    if "finite" in document:
        stdout().print()
        _render_finite(document["finite"])


def _render_finite(finiteness: Document) -> None:
    console = stdout()
    if finiteness["passed"]:
        layers = "the only layer" if finiteness["visited"] == 1 else f"all of {finiteness['visited']} layers"
        console.print(f"[green]PASSED[/]: {layers} and all constants are finite")
        return
    for entry in finiteness["layers"]:
        origin = "from finite inputs" if entry["made_here"] else "from inputs that are not finite"
        heading = f"first {entry['kind']}, {origin}: {safe(entry['name'])}"
        console.print(f"[red]{heading}[/] ({safe(entry['operation'])}, id {entry['id']}, line {entry['line']})")
        for name, value in entry["attributes"].items():
            console.print(f"  {safe(name)}: {safe(value)}", soft_wrap=True)
        console.print(_table(entry))
    for entry in finiteness["constants"]:
        console.print(f"[yellow]constant {safe(entry['name'])}[/] (id {entry['id']}) holds {_counts(entry['output'])}")
    entries = [*finiteness["layers"], *finiteness["constants"]]
    kind = "non-finite or subnormal" if any(e["output"]["subnormal"] for e in entries) else "non-finite"
    console.print(f"[red]FAILED[/]: {kind} " + ("values" if finiteness["layers"] else "constants"))


def _table(entry: Document) -> Any:
    shown = table("", "type", "shape", "min", "max", "not finite", right=("min", "max"))
    rows = [(f"input {k}", r) for k, r in enumerate(entry["inputs"])] + [("output", entry["output"])]
    for label, r in rows:
        shape = safe(f"[{','.join(map(str, r['shape']))}]")
        shown.add_row(label, r["type"], shape, value_text(r["min"]), value_text(r["max"]), _counts(r))
    return shown


def _counts(value_range: Document) -> str:
    counts = (
        ("NaN", value_range["nan"]),
        ("infinite", value_range["infinite"]),
        ("subnormal", value_range["subnormal"]),
    )
    return ", ".join(f"{count} {kind}" for kind, count in counts if count)
