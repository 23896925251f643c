"""The steps of `irrun edit`: one option per step, with the function of irload.edit that it calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from irload.record import record
from irrun.arguments import shapes_of

if TYPE_CHECKING:
    from irload import Model, Port


def _extract(model: Model, texts: Sequence[str]) -> Model:
    from irload.edit import extract

    for text in texts:
        before, arrow, after = text.partition("->")
        inputs, outputs = ([word.strip() for word in part.split(",") if word.strip()] for part in (before, after))
        if not arrow or not (inputs or outputs):
            raise click.UsageError(f"--extract '{text}' is not of the form 'FROM,… -> TO,…'; one side may be empty")
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


def _layout(model: Model, texts: Sequence[str], transposes: bool = True) -> Model:
    from irload.edit import layout

    layouts: dict[str | int | Port, str] = {}
    for text in texts:
        name, equals, new = text.rpartition("=")
        if not name or not equals or not new:
            raise click.UsageError(f"--layout '{text}' is not of the form PORT=NHWC or PORT=NTC->TNC")
        layouts[name] = new
    return layout(model, layouts, transposes=transposes)


def _embed(model: Model, texts: Sequence[str]) -> Model:
    from irload.edit import embed

    for text in texts:
        words = dict(_setting(text, word) for word in text.split())
        model = embed(model, words.pop("input", 0), **words)
    return model


def _setting(text: str, word: str) -> tuple[str, Any]:
    """One word of --embed as an argument of `embed`."""
    name, equals, value = word.partition("=")
    if name == "swap-channels" and not equals:
        return "swap_channels", True
    if name in ("input", "layout", "resize", "type") and value:
        return {"type": "element"}.get(name, name), value
    if name in ("mean", "scale"):
        with suppress(ValueError):
            numbers = [float(number) for number in value.split(",")]
            return name, numbers if len(numbers) > 1 else numbers[0]
    form = "input=NAME type=u8 resize=linear swap-channels mean=1,2,3 scale=4,5,6 layout=NHWC"
    raise click.UsageError(f"--embed '{text}': '{word}' is not one of {form}")


def _fold(model: Model, texts: Sequence[str]) -> Model:
    from irload.edit import fold

    return fold(model)


def _convert(model: Model, texts: Sequence[str]) -> Model:
    from irload.analysis.memory import constant_bytes
    from irload.edit import convert
    from irload.edit.convert import FORMATS, GROUPED
    from irrun.render import safe, stderr

    for text in texts:
        words = text.split(",")
        settings: dict[str, Any] = {}
        for word in words[1:]:
            name, _, value = word.partition("=")
            if name == "group" and (value.isdigit() or value == "none"):
                settings["group_size"] = int(value) if value.isdigit() else None
            elif word == "all-layers":
                settings["all_layers"] = True
            else:
                raise click.UsageError(f"--convert '{text}': '{word}' is not one of group=64, group=none, all-layers")
        if settings and words[0] in FORMATS and words[0] not in GROUPED:
            fact = f"{words[0]} takes no settings; group and all-layers are for int4"
            raise click.UsageError(f"--convert '{text}': {fact}")
        converted = convert(model, words[0], **settings)
        if constant_bytes(converted) == constant_bytes(model):
            fact = "no weights are converted; they are compressed already, or would not become smaller"
            stderr().print(f"--convert {safe(text)}: {fact}", soft_wrap=True)
        model = converted
    return model


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
            raise click.UsageError(
                f"--set-batch '{text}' is not a batch size; use, for example, 4, ? or 1..8"
            ) from None
        model = set_batch(model, size)
    return model


def _strip(model: Model, texts: Sequence[str]) -> Model:
    from irload.edit import strip

    return strip(model, names="names" in texts, rt_info="rt-info" in texts, unused="unused" in texts)


@record()
class EditStep:
    """One kind of step. `apply` takes the values of consecutive options of this kind."""

    apply: Callable[[Model, Sequence[str]], Model]
    metavar: str
    help: str
    choices: tuple[str, ...] = ()

    def option(self, name: str) -> Callable[[Any], Any]:
        """The click option, which may be repeated. Without a metavar it takes no value, and is counted."""
        if not self.metavar:
            return click.option(f"--{name}", count=True, help=self.help)
        kind = click.Choice(self.choices) if self.choices else str
        return click.option(f"--{name}", multiple=True, metavar=self.metavar, type=kind, help=self.help)


STEPS = {
    "extract": EditStep(
        _extract, "'FROM -> TO'", "Keep only the part between tensors (see irrun extract); one side may be empty."
    ),
    "rename": EditStep(_rename, "OLD=NEW", "Rename ports, tensors and layers; 'a/*=b/*' keeps the text of the *."),
    "reshape": EditStep(_reshape, "NAME[DIMS]", "Change the shape of an input, for example x[1,3,?,1..8]."),
    "layout": EditStep(_layout, "PORT=NHWC", "Change the layout of an input or output by inserting a Transpose."),
    "pure-layout": EditStep(
        partial(_layout, transposes=False),
        "PORT=NHWC",
        "Like --layout, but merge the Transpose with one of the model instead of adding it.",
    ),
    "embed": EditStep(
        _embed, "STEPS", "Add preprocessing, such as 'type=u8 resize=linear mean=127.5 scale=127.5 layout=NHWC'."
    ),
    "set-batch": EditStep(_set_batch, "SIZE", "Change the batch size, for example to 4, ? or 1..8."),
    "add-output": EditStep(_add_output, "TENSOR", "Add a tensor, or all tensors that match a pattern, to the outputs."),
    "fold": EditStep(_fold, "", "Replace layers that do not depend on inputs by constants."),
    "convert": EditStep(
        _convert,
        "FORMAT",
        "Store weights as fp16, bf16, int8 (or int8_asym), int8_sym, int4 (or int4_sym) or int4_asym, for example "
        "int4,group=64,all-layers.",
    ),
    "strip": EditStep(
        _strip, "PART", "Remove names, rt-info or unused layers (unused).", ("names", "rt-info", "unused")
    ),
}
"""The steps by the name of their option."""
