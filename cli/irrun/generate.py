"""`irrun generate`: texts from prompts, by the language model of a folder."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irload.options import CompileOptions
from irrun.arguments import compile_options, extension_option, limit_option
from irrun.failures import INTERRUPTED
from irrun.records import records

if TYPE_CHECKING:
    from irload.text.settings import GenerationOptions

SETTINGS = (
    *("max_tokens", "temperature", "top_k", "top_p", "min_p", "repetition_penalty"),
    *("seed", "beams", "length_penalty", "stop", "logprobs", "lookup"),
)


def generation_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a generation. The others come from generation_config.json."""
    options = [
        click.option("--max-tokens", type=click.IntRange(1), metavar="N", help="Tokens at most (256)."),
        click.option("--temperature", type=click.FloatRange(0), metavar="T", help="Draw tokens; 0: the most probable."),
        click.option("--top-k", type=click.IntRange(0), metavar="K", help="Draw from the K most probable tokens."),
        click.option("--top-p", type=click.FloatRange(0, 1), metavar="P", help="Draw from the first tokens of sum P."),
        click.option("--min-p", type=click.FloatRange(0, 1), metavar="P", help="Exclude tokens below P × the largest."),
        click.option("--repetition-penalty", type=float, metavar="X", help="Divide the logits of used tokens by X."),
        click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of the drawn tokens (0)."),
        click.option("--beams", type=click.IntRange(1), metavar="N", help="Search the best of N continuations."),
        click.option("--length-penalty", type=float, metavar="X", help="Exponent of the length in beam scores (1)."),
        click.option("--stop", multiple=True, metavar="TEXT", help="End before this text; may be repeated."),
        click.option(
            "--logprobs", type=click.IntRange(0), metavar="N", help="Add the N most probable tokens (--json)."
        ),
        click.option("--lookup", type=click.IntRange(0), metavar="N", help="Guess N tokens from earlier text."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.command("generate", no_args_is_help=True)
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("prompts", nargs=-1, metavar="[PROMPT]...")
@click.option("--file", "files", multiple=True, type=click.Path(path_type=Path), help="A file with a prompt.")
@click.option("--chat", is_flag=True, help="Hold a conversation, by the folder's chat template.")
@click.option("--system", metavar="TEXT", help="The instructions that precede a conversation.")
@generation_options
@compile_options
@limit_option
@extension_option
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON per text.")
@records(options=CompileOptions)
def command(
    folder: Path,
    prompts: tuple[str, ...],
    files: tuple[Path, ...],
    chat: bool,
    system: str | None,
    threads: int | None,
    options: CompileOptions,
    as_json: bool,
    **settings: Any,
) -> int:
    """Generate a text for each PROMPT, by the language model in FOLDER.

    FOLDER has openvino_model.xml, openvino_tokenizer.xml and openvino_detokenizer.xml. The text is printed as it is
    generated, then on stderr the number of tokens, the time to the first one and tokens per second. PROMPT - reads
    stdin. Options that are not given come from generation_config.json.
    """
    given = _given(settings)
    if settings["logprobs"] is not None and not as_json:
        raise click.UsageError("--logprobs needs --json")
    if system is not None and not chat:
        raise click.UsageError("--system needs --chat")
    if chat and as_json:
        raise click.UsageError("--chat prints a conversation; leave --json out")
    texts = _prompts(prompts, files)
    if not chat and not texts:
        raise click.UsageError("give a PROMPT, - for stdin, --file or --chat")
    from irload import TextGeneration
    from irrun.render import progress

    with progress("reading the model"):
        model = TextGeneration(folder, threads, **options)
    gc.enable()
    if chat:
        from irrun.conversation import converse

        return converse(model, texts, system, given)
    from irrun.texts import show_texts

    return INTERRUPTED if show_texts(model, texts, given, as_json=as_json) else 0


def _given(settings: dict[str, Any]) -> GenerationOptions:
    """The options that were given."""
    found: Any = {name: settings[name] for name in SETTINGS if settings[name] not in (None, ())}
    return found


def _prompts(prompts: tuple[str, ...], files: tuple[Path, ...]) -> list[str]:
    """The texts of the prompts: as given, of stdin for -, and of files, without their last line end."""
    texts = [_stdin() if prompt == "-" else prompt for prompt in prompts]
    return [*texts, *(_without_end(_decoded(file.read_bytes())) for file in files)]


def _stdin() -> str:
    return _without_end(_decoded(sys.stdin.buffer.read()))


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _without_end(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")
