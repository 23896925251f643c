"""`irrun compare`: compares two models, two ways to run one, or dumps, layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import click

from irload import Limits
from irload.record import record
from irrun.arguments import (
    THREADS,
    extension_option,
    json_option,
    limit_option,
    shapes_option,
    weights_of_two_models,
)
from irrun.document import Document
from irrun.records import Feed, Source, records

if TYPE_CHECKING:
    from irload import Comparison, IRError, Model
    from irload.comparison.compare import LayerError
    from irload.comparison.measures import Measures

SHOWN = 20
"""Upper bound of the diverging layers shown; --all shows every layer."""

COLUMNS = ("type", "own max", "own needs", "total max", "total needs", "tolerance", "beyond", "cosine", "psnr")
"""Columns of the table in addition to the layer's name and operation."""
ONLY_WIDE = frozenset({"type", "own max", "total max", "beyond", "cosine", "psnr"})
WIDE = 130
"""Terminal width in characters from which all columns fit, with names of moderate length."""
ORDERS = ("order", "own", "total")
"""Sort orders of the table: execution order, or by an error, greatest first."""


@record()
class ComparedSides:
    """A and B, their weights, and the model to run if a side is a dump or a way to run."""

    a: str
    b: str
    model: Path | None
    weights_a: Path | None
    weights_b: Path | None
    shapes: tuple[str, ...]
    limits: Limits

    def named(self) -> list[str]:
        """Return the sides that are models. Raises UsageError if there is no model."""
        from irload.comparison.compare import WAYS

        _require_sides(self.a, self.b)
        named = [side for side in (self.a, self.b) if side not in WAYS and not _is_dump(Path(side))]
        if not named and self.model is None:
            raise click.UsageError("neither A nor B is a model; give one with --model FILE")
        return named

    def read(self, named: Sequence[str]) -> tuple[dict[str, Model], Model]:
        """Read the named sides. Returns them by name, and the model to run."""
        weights = {self.a: self.weights_a, self.b: self.weights_b or (self.weights_a if self.a == self.b else None)}
        read = {side: self._read(Path(side), weights[side]) for side in named}
        main = read[named[0]] if named else self._read(self.model or Path(), self.weights_a or self.weights_b)
        return read, main

    def _read(self, path: Path, weights: Path | None) -> Model:
        return Source(path, weights, self.shapes, self.limits).read()


@record()
class TableOptions:
    """Which layers the table shows, and their order."""

    every: bool
    sort: str


@click.command("compare", no_args_is_help=True)
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.argument("inputs", nargs=-1, metavar="[[NAME=]FILE]...", type=click.Path())
@click.option(
    "--model", type=click.Path(path_type=Path), metavar="FILE", help="The model to run, if neither A nor B is a model."
)
@click.option("--weights-a", type=click.Path(path_type=Path), metavar="FILE", help="The .bin file of A.")
@click.option("--weights-b", type=click.Path(path_type=Path), metavar="FILE", help="The .bin file of B.")
@shapes_option
@click.option(
    "--threads", type=click.IntRange(1), metavar="N", help=f"Worker threads of fast, jit and openvino; {THREADS}"
)
@click.option(
    "--random", "seed", type=click.IntRange(0), metavar="SEED", help="Fill inputs without a file with random values."
)
@click.option("--layers", multiple=True, metavar="PATTERN", help="Only these layers; may be repeated.")
@click.option(
    "--tolerance",
    multiple=True,
    metavar="TYPE|PATTERN=X",
    help="Another tolerance, for example f32=1e-3 or head*=0.1.",
)
@click.option("--all", "every", is_flag=True, help="Show every layer, not only diverging ones.")
@click.option(
    "--sort",
    type=click.Choice(ORDERS),
    default="order",
    help="Sort by own error (local) or total error, greatest first; default: execution order.",
)
@extension_option
@limit_option
@json_option
@records(sides=ComparedSides, feed=Feed, table=TableOptions)
def command(
    sides: ComparedSides,
    feed: Feed,
    threads: int | None,
    layers: tuple[str, ...],
    tolerance: tuple[str, ...],
    table: TableOptions,
    as_json: bool,
) -> int:
    r"""Compare A with B layer by layer and report the first layer whose local error exceeds the tolerance.

    The local error of a layer (`own`) is measured with the layer's inputs from the other side, so it excludes errors of
    earlier layers. The total error includes them.

    A and B are each one of: a MODEL (.xml), run without fusions; a way to run the model of the other side: plain, fast
    (planned, in NumPy), jit (with compiled kernels), openvino, openvino:bf16 or openvino:f16; a folder or .npz with
    outputs by name, as written by run --dump; an ONNX file, run by ONNX Runtime. Inputs are given as for irrun run.

    \b
      irrun compare original.xml exported.xml image.npy
      irrun compare fast model.xml --random 0 --shape '[1,3,224,224]'
      irrun compare model.xml dumped/ image.npy
    """
    from irload import IRError, compare
    from irrun.render import progress, show_json

    wanted = _tolerances(tolerance)
    a, b = sides.a, sides.b
    named = sides.named()
    try:
        with progress("reading the model"), weights_of_two_models():
            read, main = sides.read(named)
        values = [f.value for f in feed.gather(main, sides.limits)]
        with progress("comparing"), weights_of_two_models():
            comparison = compare(
                read.get(a, a),
                read.get(b, b),
                values,
                model=main,
                tolerances=wanted,
                layers=layers,
                limits=sides.limits,
                threads=threads,
                progress=_progress(),
            )
    except IRError as error:
        if as_json:
            show_json(_failure(a, b, str(error)))
        raise _as_unreadable(error) from None
    document = _document(a, b, comparison)
    if as_json:
        show_json(document)
    else:
        _render(document, str(comparison), every=table.every, sort=table.sort)
    return 0 if comparison.passed else 1


def _as_unreadable(error: IRError) -> IRError:
    """Convert the error to a class whose exit code is not 1: exit code 1 means that the sides differ."""
    from irload.errors import InputInvalid, LimitExceeded, OutOfMemory, ReadError, UnknownOperation, Unsupported

    kinds = (InputInvalid, ReadError, LimitExceeded, OutOfMemory, UnknownOperation, Unsupported)
    return error if isinstance(error, kinds) else ReadError(f"cannot be compared: {error}")


def _is_dump(path: Path) -> bool:
    return path.is_dir() or path.suffix in (".npz", ".onnx")


def _require_sides(a: str, b: str) -> None:
    """Raise UsageError for an input file in the position of A or B, or a misspelled way to run a model."""
    from irload.comparison.compare import WAYS
    from irload.wording import near_names

    for side in (a, b):
        near = [] if side in WAYS or Path(side).exists() else near_names(side, WAYS, cutoff=0.7)
        if near:
            raise click.UsageError(f"no file '{side}'. Did you mean '{near[0]}'?")
        if Path(side).suffix == ".npy" or ("=" in side and not Path(side).exists()):
            raise click.UsageError(
                f"'{side}' is an input, but A and B come first: each is a model, plain, fast, jit or openvino, "
                f"for example irrun compare fast MODEL.xml {side}"
            )


def _tolerances(texts: Sequence[str]) -> dict[str, float]:
    tolerances: dict[str, float] = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        try:
            tolerances[name] = float(value)
        except ValueError:
            tolerances[name] = -1.0
        if not name or not isfinite(tolerances[name]) or tolerances[name] < 0:
            raise click.UsageError(f"--tolerance '{text}' is not of the form f32=1e-3 or PATTERN=0.01")
    return tolerances


def _progress() -> Callable[[int], None]:
    """Return a callback that reports progress every 100 layers on a terminal."""
    from irrun.render import stderr

    console = stderr()

    def tell(count: int) -> None:
        if console.is_terminal and count % 100 == 0:
            console.print(f"[dim]compared {count} outputs[/]")

    return tell


def _failure(a: str, b: str, error: str) -> Document:
    """Return the document of a comparison that failed with an error."""
    nothing: Document = {"passed": False, "first": None, "unmatched": 0, "layers": [], "outputs": [], "notes": []}
    return {"a": a, "b": b, **nothing, "error": error}


def _document(a: str, b: str, comparison: Comparison) -> Document:
    """Return the document of schemas/compare.schema.json."""
    return {
        "a": a,
        "b": b,
        "passed": comparison.passed,
        "first": None if comparison.first is None else comparison.first.name,
        "unmatched": comparison.unmatched,
        "layers": [_layer(layer) for layer in comparison.layers],
        "outputs": [_layer(output) for output in comparison.outputs],
        "notes": comparison.notes,
        "error": None,
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
        "inherited": layer.inherited,
        "tolerance": layer.tolerance,
        "own": _measures(layer.own),
        "total": _measures(layer.total),
    }


def _measures(measures: Measures | None) -> Document | None:
    if measures is None:
        return None
    names = ("max_abs", "mean_abs", "max_rel", "mean_rel", "against_std", "cosine", "psnr", "needed")
    return {name: _finite(getattr(measures, name)) for name in names} | {
        "beyond": measures.beyond,
        "size": measures.size,
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def _render(document: Document, verdict: str, *, every: bool, sort: str) -> None:
    from irrun.render import counted, safe, stderr, stdout, table

    rows = [e for e in (*document["layers"], *document["outputs"]) if every or not e["passed"]]
    if sort != "order":
        rows.sort(key=lambda layer: _size(layer[sort]), reverse=True)
    console = stdout()
    names = COLUMNS if console.width >= WIDE else tuple(name for name in COLUMNS if name not in ONLY_WIDE)
    shown = table("", "layer", "operation", *names, right=[name for name in names if name != "type"])
    for column in shown.columns:
        column.no_wrap = column.justify == "right"  # names wrap if necessary, numbers do not
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
        verb = "is" if count == 1 else "are"
        stderr().print(
            f"[dim]{counted(count, 'layer output')} {verb} on one side alone (fused, folded or without a partner)[/]"
        )
    for note in document["notes"]:
        stdout().print(safe(note), soft_wrap=True)
    colour = "green" if document["passed"] else "red"
    stdout().print(f"[{colour}]{safe(verdict)}[/]", soft_wrap=True)


def _cells(layer: Document) -> dict[str, str]:
    """Return the text of each of `COLUMNS`."""
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
        "psnr": _number(judged, "psnr"),
    }


def _size(error: Document | None) -> float:
    """Return the smallest tolerance that passes, as a sort key."""
    if error is None:
        return -1.0
    return inf if error["needed"] is None else error["needed"]


def _number(error: Document | None, key: str) -> str:
    value = None if error is None else error[key]
    if error is not None and value is None and key == "needed":
        return "∞"
    return "–" if value is None else f"{value:.3g}"
