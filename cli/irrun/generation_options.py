"""The options of generated texts, for commands that generate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from irload.text.settings import GenerationOptions

SETTINGS = (
    *("max_tokens", "temperature", "top_k", "top_p", "min_p", "repetition_penalty"),
    *("seed", "beams", "length_penalty", "stop", "logprobs", "lookup", "language", "task"),
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
        click.option("--lookup", type=click.IntRange(0), metavar="N", help="Guess N tokens from earlier text."),
        click.option("--language", metavar="NAME", help="Audio: the language that is spoken; default: detected."),
        click.option("--task", metavar="NAME", help="Audio: transcribe, or translate to English."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def given_settings(settings: Mapping[str, Any]) -> GenerationOptions:
    """The options that were given."""
    found: Any = {name: settings[name] for name in SETTINGS if settings.get(name) not in (None, ())}
    return found
