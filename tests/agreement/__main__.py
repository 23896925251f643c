"""`python -m tests.agreement DIR… [--relaxed] [--json]`: checks every IR below DIR and prints a row per model.

Every *.xml file that is an IR is a model. Its inputs are in_0.npy, in_1.npy, … next to it, otherwise random. Columns:

type                    f16 if the model computes in narrow floats, else f32
load                    whether irload loads the model
errors, warn, declared  findings of `check`: errors, warnings, declarations that really differ from inference
shapes                  layers whose inferred types and shapes differ from OpenVINO's, of the layers compared
plan 1, plan 2          the plan at 1 and 2 threads against plain execution. For f16 graphs against OpenVINO, which
                        computes in f32 as plans do
runtime                 plain execution against OpenVINO
s                       seconds

Differences of results are the largest difference of an output, in standard deviations of this output. Each model runs
in a separate process. `--relaxed` also compares shapes with dynamic inputs. Exits 1 if anything fails.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tests.agreement.judging import Row, judge, shown
from tests.harness.children import Died, in_children, preload

SECONDS = 900
"""Seconds after which a model counts as hanging; the slowest takes about a minute."""
HEAD = ("model", "type", "load", "errors", "warn", "declared", "shapes", "plan 1", "plan 2", "runtime", "s")
WIDTHS = (44, 4, 6, 6, 5, 8, 9, 8, 8, 8, 6)


def find(words: Sequence[str]) -> list[tuple[Path, str]]:
    """Every IR below the folders, with a unique name. Files are accepted as well."""
    paths: list[tuple[Path, str]] = []
    for folder in map(Path, words):
        files = [folder] if folder.is_file() else sorted(folder.rglob("*.xml"))
        for file in filter(is_ir, files):
            base = folder.parent.parent if folder.is_file() else folder
            inside = file.relative_to(base)
            name = inside.parent if inside.name == "model.xml" and inside.parent.name else inside
            paths.append((file, base.name if str(name) == "model.xml" else str(name)))
    return paths


def is_ir(file: Path) -> bool:
    """Whether the root element is a <net>."""
    with file.open("rb") as text:
        return b"<net" in text.read(4096)


def cells(row: Row) -> list[str]:
    """The row as text of the table."""
    name = row.model if len(row.model) <= WIDTHS[0] else "…" + row.model[1 - WIDTHS[0] :]
    return [
        name,
        row.precision or "–",
        "failed" if row.load else "ok",
        str(row.errors),
        str(row.warnings),
        str(row.declared),
        f"{len(row.shapes_differing)}/{row.shapes_compared}",
        *(_cell(row.plan.get(t)) for t in ("1", "2")),
        "refuses" if row.refused and row.runtime is None else _cell(row.runtime),
        f"{row.seconds:.1f}",
    ]


def _cell(value: float | str | None) -> str:
    return "failed" if isinstance(value, str) else shown(value)


def line(values: Sequence[str]) -> str:
    """One line of the table."""
    return "  ".join(v.ljust(w) if k < 3 else v.rjust(w) for k, (v, w) in enumerate(zip(values, WIDTHS, strict=True)))


def main(words: Sequence[str]) -> int:
    """Print the table or the JSON document. Returns 1 if a model fails, 2 if there is no model."""
    models = find([w for w in words if not w.startswith("--")])
    if not models:
        print("no IR found. Usage: python -m tests.agreement DIR… [--relaxed] [--json]", file=sys.stderr)
        return 2
    preload()
    as_json, relaxed = "--json" in words, "--relaxed" in words
    rows: list[Row] = []
    if not as_json:
        print(line(HEAD), flush=True)
    for k, result in enumerate(in_children(lambda k: judge(*models[k], relaxed=relaxed), len(models), SECONDS)):
        row = Row(models[k][1], load=str(result)) if isinstance(result, Died) else result
        rows.append(row)
        if not as_json:
            print(line(cells(row)), flush=True)
            for fault in row.faults[:6]:
                print(f"      {fault}", flush=True)
    failed = [r for r in rows if r.faults]
    if as_json:
        print(
            json.dumps({"models": [{**asdict(r), "faults": r.faults} for r in rows], "failed": len(failed)}, indent=1)
        )
    else:
        declared = sum(r.declared for r in rows)
        print(f"\n{len(rows)} models, {len(rows) - len(failed)} clean, {declared} declared mismatches")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
