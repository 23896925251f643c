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
    """Add the options of text generation. Options that are not given come from generation_config.json."""
    options = [
        click.option(
            "--max-tokens",
            type=click.IntRange(1),
            metavar="N",
            help="Maximum number of tokens; default: from generation_config.json, else 256.",
        ),
        click.option(
            "--temperature", type=click.FloatRange(0), metavar="T", help="Sample tokens; 0: choose the most probable."
        ),
        click.option("--top-k", type=click.IntRange(0), metavar="K", help="Sample from the K most probable tokens."),
        click.option(
            "--top-p",
            type=click.FloatRange(0, 1),
            metavar="P",
            help="Sample from the fewest tokens whose probabilities add up to P.",
        ),
        click.option(
            "--min-p",
            type=click.FloatRange(0, 1),
            metavar="P",
            help="Exclude tokens less than P times as probable as the best.",
        ),
        click.option(
            "--repetition-penalty",
            type=float,
            metavar="X",
            help="Divide positive logits of tokens that occurred before by X, and multiply negative ones.",
        ),
        click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of the sampling; default: 0."),
        click.option("--beams", type=click.IntRange(1), metavar="N", help="Beam search with N beams."),
        click.option(
            "--length-penalty", type=float, metavar="X", help="Exponent of the length in beam scores; default: 1."
        ),
        click.option("--stop", multiple=True, metavar="TEXT", help="End before this text; may be repeated."),
        click.option(
            "--lookup",
            type=click.IntRange(0),
            metavar="N",
            help="Guess N tokens from earlier text and verify them in one inference.",
        ),
        click.option("--language", metavar="NAME", help="Audio: the spoken language; default: detected."),
        click.option("--task", metavar="NAME", help="Audio: transcribe, or translate to English."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def given_settings(settings: Mapping[str, Any]) -> GenerationOptions:
    """Return the options given on the command line."""
    options: Any = {name: settings[name] for name in SETTINGS if settings.get(name) not in (None, ())}
    return options
