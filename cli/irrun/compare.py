"""`irrun compare`: two models, two ways to run one, or dumps, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irload import Limits
from irrun.arguments import extension_option, json_option, limit_option

if TYPE_CHECKING:
    from irload import Comparison
    from irload.comparison.compare import LayerError
    from irload.comparison.measures import Measures

SHOWN = 20
"""Layers that diverge and are shown; --all shows every layer."""

COLUMNS = ("type", "own max", "own needs", "total max", "total needs", "tolerance", "beyond", "cosine")
"""What is shown of each layer beside its name and operation."""
ONLY_WIDE = frozenset({"type", "own max", "total max", "beyond", "cosine"})
WIDE = 130
"""Characters of a terminal from which on all columns fit, with names of some length."""

Document = dict[str, Any]


@click.command("compare", no_args_is_help=True)
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.argument("inputs", nargs=-1, metavar="[[NAME=]FILE]...", type=click.Path())
@click.option("--model", type=click.Path(path_type=Path), metavar="FILE", help="The model, where A and B are none.")
@click.option("--random", "seed", type=click.IntRange(0), metavar="SEED", help="Fill inputs that no file gives.")
@click.option("--layers", multiple=True, metavar="PATTERN", help="Only these layers; may be repeated.")
@click.option(
    "--tolerance", multiple=True, metavar="TYPE|PATTERN=X", help="Another tolerance, as f32=1e-3 or head*=0.1."
)
@click.option("--all", "every", is_flag=True, help="Show every layer, not only those that diverge.")
@extension_option
@limit_option
@json_option
def command(
    a: str,
    b: str,
    inputs: tuple[str, ...],
    model: Path | None,
    seed: int | None,
    layers: tuple[str, ...],
    tolerance: tuple[str, ...],
    every: bool,
    limits: Limits,
    as_json: bool,
) -> int:
    r"""Compare A with B layer by layer and name the first layer that diverges by its own error.

    A and B are each a MODEL (.xml), run plainly; plain, fast (its plan in NumPy), jit (with compiled kernels) or
    openvino (openvino:bf16), ways to run the model of the other side; a folder or .npz with outputs by name, as run
    --dump writes them; or an ONNX file, run by ONNX Runtime. Inputs are those of run.

    \b
      irrun compare original.xml exported.xml image.npy
      irrun compare fast model.xml --random 0
      irrun compare model.xml dumped/ image.npy
    """
    from irload import compare, read_model
    from irload.comparison.compare import WAYS
    from irrun.feed import gather
    from irrun.render import progress, show_json

    wanted = _tolerances(tolerance)
    named = [side for side in (a, b) if side not in WAYS and not _is_dump(Path(side))]
    path = Path(named[0]) if named else model
    if path is None:
        raise click.UsageError("neither A nor B is a model; give one with --model FILE")
    with progress("reading the model"):
        loaded = read_model(path, limits=limits)
    values = [f.value for f in gather(loaded.inputs, inputs, seed, limits)]
    sides = [loaded if side == str(path) else side for side in (a, b)]
    with progress("comparing"):
        found = compare(
            sides[0],
            sides[1],
            values,
            model=loaded,
            tolerances=wanted,
            layers=layers,
            limits=limits,
            progress=_progress(),
        )
    document = _document(a, b, found)
    if as_json:
        show_json(document)
    else:
        _render(document, str(found), every=every)
    return 0 if found.passed else 1


def _is_dump(path: Path) -> bool:
    return path.is_dir() or path.suffix in (".npz", ".onnx")


def _tolerances(texts: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        try:
            found[name] = float(value)
        except ValueError:
            found[name] = -1.0
        if not name or not isfinite(found[name]) or found[name] < 0:
            raise click.UsageError(f"--tolerance '{text}' is not of the form f32=1e-3 or PATTERN=0.01")
    return found


def _progress() -> Callable[[int], None]:
    """Says on a terminal every 100 layers how far the comparison is."""
    from irrun.render import stderr

    console = stderr()

    def tell(count: int) -> None:
        if console.is_terminal and count % 100 == 0:
            console.print(f"[dim]compared {count} outputs[/]")

    return tell


def _document(a: str, b: str, found: Comparison) -> Document:
    """The document of schemas/compare.schema.json."""
    return {
        "a": a,
        "b": b,
        "passed": found.passed,
        "first": None if found.first is None else found.first.name,
        "unmatched": found.unmatched,
        "layers": [_layer(layer) for layer in found.layers],
    }


def _layer(layer: LayerError) -> Document:
    return {
        "name": layer.name,
        "operation": layer.operation,
        "id": layer.id,
        "type": layer.type,
        "shape": list(layer.shape),
        "passed": layer.passed,
        "problem": layer.problem,
        "tolerance": layer.tolerance,
        "own": _measures(layer.own),
        "total": _measures(layer.total),
    }


def _measures(found: Measures | None) -> Document | None:
    if found is None:
        return None
    names = ("max_abs", "mean_abs", "max_rel", "mean_rel", "against_std", "cosine", "psnr", "needed")
    return {name: _finite(getattr(found, name)) for name in names} | {"beyond": found.beyond, "size": found.size}


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def _render(document: Document, verdict: str, *, every: bool) -> None:
    from irrun.render import safe, stderr, stdout, table

    rows = [layer for layer in document["layers"] if every or not layer["passed"]]
    console = stdout()
    names = COLUMNS if console.width >= WIDE else tuple(name for name in COLUMNS if name not in ONLY_WIDE)
    shown = table("", "layer", "operation", *names, right=[name for name in names if name != "type"])
    for column in shown.columns:
        column.no_wrap = column.justify == "right"  # names are folded where they must be, numbers are not
    for layer in rows if every else rows[:SHOWN]:
        cells = _cells(layer)
        mark = "" if layer["passed"] else "[red]≠[/]"
        name = layer["name"] + (f" ({layer['problem']})" if layer["problem"] else "")
        shown.add_row(mark, safe(name), safe(layer["operation"]), *(safe(cells[name]) for name in names))
    if shown.row_count:
        console.print(shown)
        if names != COLUMNS:
            console.print(f"[dim]{WIDE} columns, or --json, show more measures[/]")
    if len(rows) > SHOWN and not every:
        stdout().print(f"[dim]and {len(rows) - SHOWN} more layers that diverge (--all)[/]")
    if document["unmatched"]:
        count = document["unmatched"]
        what = "1 output of a layer is" if count == 1 else f"{count} outputs of layers are"
        stderr().print(f"[dim]{what} on one side alone (fused, folded or without a partner)[/]")
    colour = "green" if document["passed"] else "red"
    stdout().print(f"[{colour}]{safe(verdict)}[/]", soft_wrap=True)


def _cells(layer: Document) -> dict[str, str]:
    """What stands in each of `COLUMNS`."""
    own, total = layer["own"], layer["total"]
    judged = own or total
    return {
        "type": f"{layer['type']}[{','.join(map(str, layer['shape']))}]",
        "own max": _number(own, "max_abs"),
        "own needs": _number(own, "needed"),
        "total max": _number(total, "max_abs"),
        "total needs": _number(total, "needed"),
        "tolerance": f"{layer['tolerance']:.3g}",
        "beyond": "" if judged is None else f"{judged['beyond']}/{judged['size']}",
        "cosine": _number(judged, "cosine"),
    }


def _number(found: Document | None, key: str) -> str:
    value = None if found is None else found[key]
    if found is not None and value is None and key == "needed":
        return "∞"
    return "–" if value is None else f"{value:.3g}"
