"""The command group. Imports each command on first use, which keeps `irrun --help` fast."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

COMMANDS = {
    "run": "Run a model on inputs and show its outputs (the default).",
    "generate": "Generate texts with the language model of a folder.",
    "batch": "Run a model over many inputs: restartable, in several processes or on Ray.",
    "inspect": "Show the contents of a model: inputs, outputs, operations, weights.",
    "check": "Check files and report every fault in them.",
    "bench": "Measure latency and throughput, alone or compared with OpenVINO.",
    "compare": "Compare two models, or two ways to run one, layer by layer.",
    "diff": "Show the edits between two models.",
    "infer": "Infer every layer's outputs and compare them with the declared ones.",
    "report": "Write an HTML page that shows a model.",
    "cache": "Show or clear the user's cache: compiled models, kernels, tuning results.",
    "edit": "Change a model: rename, reshape, strip and more, in the order given.",
    "extract": "Write the part of a model between tensors as a model.",
    "upgrade": "Rewrite a model of IR v2 to v10 as IR v11, and list the rewritten layers.",
    "save": "Rewrite a model: as IR v11, for other shapes, with constants of f16.",
}
PIPE_CLOSED = 141
"""The exit code after the reader of the output closed the pipe: the code that a shell reports for SIGPIPE."""

OWN_OPTIONS = ("--help", "-h", "--version")


class Commands(click.Group):
    """A group with a default command: `irrun model.xml x.npy` is `irrun run model.xml x.npy`."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        if "_IRRUN_COMPLETE" in os.environ:
            from irrun.shells import register

            register()
        return super().main(*args, **kwargs)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"irrun.{cmd_name}").command
        # Raw docstrings contain click's no-wrap mark \b as two characters, a backslash and a b.
        command.help = command.help.replace("\\b\n", "\b\n")
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        before, args = _extensions(args)
        if args and args[0] not in COMMANDS and args[0] not in OWN_OPTIONS:
            self._refuse_misspelling(ctx, args[0])
            args = ["run", *args]
        # --extension may precede the command name, but is an option of the command.
        return super().parse_args(ctx, [*args[:1], *before, *args[1:]] if before and args else [*before, *args])

    @staticmethod
    def _refuse_misspelling(ctx: click.Context, word: str) -> None:
        from irload.wording import near_names

        near = near_names(word, [*COMMANDS, *OWN_OPTIONS], cutoff=0.7)
        if near and not ctx.resilient_parsing and not Path(word).exists():
            raise click.UsageError(f"no command and no file '{word}'. Did you mean '{near[0]}'?", ctx)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click would exit with 1, the code for findings
            ctx.exit(PIPE_CLOSED)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        commands = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        options = super().shell_complete(ctx, incomplete) if incomplete.startswith("-") else []
        return [*commands, *options, CompletionItem(incomplete, type="file")]


def _extensions(args: list[str]) -> tuple[list[str], list[str]]:
    """Split the arguments into the --extension options before the command, and the rest."""
    at = 0
    while at < len(args) and args[at].partition("=")[0] == "--extension":
        at += 1 if "=" in args[at] else 2
    return args[:at], args[at:]


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from irload import __version__

        click.echo(f"irrun {__version__}")
        ctx.exit()


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 success · 1 findings · 2 usage · 3 unreadable · 4 unsupported · 5 out of memory · "
    "130 interrupted",
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version and exit.",
)
def app() -> None:
    """Load, check and run OpenVINO IR models without OpenVINO.

    irrun MODEL.xml INPUT.npy is short for irrun run MODEL.xml INPUT.npy.
    """
