"""`irrun edit`: changes a model in several steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irrun.edit_steps import STEPS
from irrun.edited import editing, write_edited
from irrun.records import Source, records

if TYPE_CHECKING:
    from irload import Model
    from irrun.edited import Edit

ORDER = "irrun.edit.order"
"""Key in the context's `meta`; its value lists the names of the given options in order."""


class _Ordered(click.Command):
    """A command that records the order of its options, which click groups by name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        ctx.meta[ORDER] = [str(p.name).replace("_", "-") for p in given]
        return super().parse_args(ctx, args)


def _values(given: tuple[str, ...] | int) -> Iterator[str]:
    """Yield the values of an option; for a counted option, one empty text per occurrence."""
    return iter([""] * given if isinstance(given, int) else given)


def _apply(name: str, texts: list[str], model: Model) -> Model:
    return STEPS[name].apply(model, texts)


def _steps(command: Callable[..., Any]) -> Callable[..., Any]:
    for name, step in reversed(STEPS.items()):
        command = step.option(name)(command)
    return command


@click.command("edit", cls=_Ordered, no_args_is_help=True)
@editing
@_steps
@records(source=Source)
def command(source: Source, target: Path, force: bool, as_json: bool, **given: Any) -> int:
    r"""Apply steps to MODEL (.xml) in the order of their options, and write NEW.xml with the .bin beside it.

    Each step may be repeated; consecutive options of one kind are one step.

    \b
      irrun edit model.xml --rename input=image --reshape 'image[1,3,224,224]' -o new.xml
      irrun edit model.xml --extract '-> pool' --rename pool=features --strip names -o new.xml
    """
    values = {name: _values(given[name.replace("-", "_")]) for name in STEPS}
    edits: list[tuple[str, Edit]] = []
    for name, group in groupby(name for name in click.get_current_context().meta[ORDER] if name in STEPS):
        texts = [next(values[name]) for _ in group]
        edits.append((" ".join([name, *filter(None, texts)]), partial(_apply, name, texts)))
    if not edits and not source.shapes:
        raise click.UsageError("no step is given; irrun edit --help lists the steps")
    write_edited(source, target, edits, force=force, as_json=as_json)
    return 0
