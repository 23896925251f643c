"""The steps of `irrun edit`: an option each, with the function of irload.edit that it calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from irload import Model
from irload.record import record
from irrun.arguments import shapes_of


def _extract(model: Model, texts: Sequence[str]) -> Model:
    from irload.edit import extract

    for text in texts:
        before, arrow, after = text.partition("->")
        inputs, outputs = ([word.strip() for word in part.split(",") if word.strip()] for part in (before, after))
        if not arrow or not (inputs or outputs):
            raise click.UsageError(
                f"--extract '{text}' is not of the form 'FROM,… -> TO,…', of which one side may be empty"
            )
        model = extract(model, inputs or None, outputs or None)
    return model


def _rename(model: Model, texts: Sequence[str]) -> Model:
    from irload.edit import rename

    names: dict[str, str] = {}
    for text in texts:
        old, equals, new = text.partition("=")
        if not old or not equals or not new:
            raise click.UsageError(f"--rename '{text}' is not of the form OLD=NEW")
        names[old] = new
    return rename(model, names)


def _reshape(model: Model, texts: Sequence[str]) -> Model:
    from irload.edit import reshape

    return reshape(model, shapes_of(model, texts, "--reshape"))


def _add_output(model: Model, texts: Sequence[str]) -> Model:
    from irload.edit import add_output

    return add_output(model, *texts)


def _set_batch(model: Model, texts: Sequence[str]) -> Model:
    from irload import Shape, ShapeMismatch
    from irload.edit import set_batch

    for text in texts:
        try:
            (size,) = Shape.parse(text)
        except (ShapeMismatch, ValueError):
            raise click.UsageError(f"--set-batch '{text}' is not a size; one is written as 4, ? or 1..8") from None
        model = set_batch(model, size)
    return model


def _strip(model: Model, texts: Sequence[str]) -> Model:
    from irload.edit import strip

    return strip(model, names="names" in texts, rt_info="rt-info" in texts, unused="unused" in texts)


@record()
class Step:
    """One kind of step. `apply` takes the values of consecutive options of this kind."""

    apply: Callable[[Model, Sequence[str]], Model]
    metavar: str
    help: str
    choices: tuple[str, ...] = ()

    def option(self, name: str) -> Callable[[Any], Any]:
        """The click option, which may be repeated."""
        kind = click.Choice(self.choices) if self.choices else str
        return click.option(f"--{name}", multiple=True, metavar=self.metavar, type=kind, help=self.help)


STEPS = {
    "extract": Step(
        _extract, "'FROM -> TO'", "Keep the part between tensors, see irrun extract; one side may be empty."
    ),
    "rename": Step(_rename, "OLD=NEW", "Rename ports, tensors and layers; 'a/*=b/*' keeps the text of the *."),
    "reshape": Step(_reshape, "NAME[DIMS]", "A new shape of an input, for example x[1,3,?,1..8]."),
    "set-batch": Step(_set_batch, "SIZE", "Another batch size, for example 4, ? or 1..8."),
    "add-output": Step(_add_output, "TENSOR", "A tensor, or the tensors of a pattern, as further outputs."),
    "strip": Step(_strip, "PART", "Remove names, rt-info or unused (layers).", ("names", "rt-info", "unused")),
}
"""The steps by the name of their option."""
