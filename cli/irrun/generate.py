"""`irrun generate`: texts from prompts, by the language model of a folder."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import click

from irload.options import CompileOptions
from irrun.arguments import compile_options, extension_option, limit_option
from irrun.failures import INTERRUPTED
from irrun.generation_options import generation_options, given_settings
from irrun.records import records


@click.command("generate", no_args_is_help=True)
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("prompts", nargs=-1, metavar="[PROMPT]...")
@click.option("--file", "files", multiple=True, type=click.Path(path_type=Path), help="A file with a prompt.")
@click.option("--chat", is_flag=True, help="Start a conversation, with the folder's chat template.")
@click.option("--system", metavar="TEXT", help="With --chat: the system message.")
@generation_options
@click.option(
    "--logprobs",
    type=click.IntRange(0),
    metavar="N",
    help="With --json: the log probabilities of the N most probable tokens.",
)
@compile_options
@limit_option
@extension_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document per text, each on one line.")
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
    """Generate a text for each PROMPT with the model in FOLDER. For Whisper, PROMPT is a .wav or .npy file.

    FOLDER has openvino_model.xml, openvino_tokenizer.xml and openvino_detokenizer.xml. The text is printed as it is
    generated, then on stderr the number of tokens, the time to the first one and tokens per second. PROMPT - reads
    stdin. Options that are not given come from generation_config.json.
    """
    given = given_settings(settings)
    if settings["logprobs"] is not None and not as_json:
        raise click.UsageError("--logprobs requires --json")
    if system is not None and not chat:
        raise click.UsageError("--system requires --chat")
    if chat and as_json:
        raise click.UsageError("--chat cannot be combined with --json")
    texts = _prompts(prompts, files)
    if not chat and not texts:
        raise click.UsageError("give a PROMPT, - for stdin, --file or --chat")
    from irload import TextGeneration
    from irrun.render import progress

    with progress("reading the model"):
        model = TextGeneration(folder, threads, **options)
    gc.enable()
    if chat:
        from irload.text.chat import require_template
        from irrun.conversation import converse

        require_template(model.folder, "omit --chat")
        return converse(model, texts, system, given)
    from irrun.texts import show_texts

    return INTERRUPTED if show_texts(model, texts, given, as_json=as_json) else 0


def _prompts(prompts: tuple[str, ...], files: tuple[Path, ...]) -> list[str]:
    """Return the texts of prompts: as given, from stdin for -, and from files. The last line end is removed."""
    texts = [_stdin() if prompt == "-" else prompt for prompt in prompts]
    return [*texts, *(_without_end(_decoded(file.read_bytes())) for file in files)]


def _stdin() -> str:
    return _without_end(_decoded(sys.stdin.buffer.read()))


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _without_end(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")
