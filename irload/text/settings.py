"""The settings of a generation, with defaults from generation_config.json."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any, TypedDict, Unpack, cast

from irload.errors import InputInvalid
from irload.text.folder import Folder

DEFAULT_TOKENS = 256
MAX_BEAMS = 1000
"""Bounds the memory that a generation_config.json can request: every beam has a cache."""


class GenerationOptions(TypedDict, total=False):
    """The keyword arguments of `generate`, `stream` and `chat`.

    Without an option, or with None, the value in generation_config.json applies, or else this default:

    - `max_tokens`: the maximum length; 256.
    - `temperature`: 0, which chooses the most probable token; otherwise tokens are sampled, with `seed` (0).
    - `top_k` (0: all), `top_p` (1), `min_p` (0): restrict sampling to the most probable tokens.
    - `repetition_penalty` (1); `beams` (1: no beam search), with `length_penalty` (1).
    - `stop`: a string or strings that end the text; none.
    - `logprobs`: the number of most probable tokens to report; None: no probabilities.
    - `lookup`: the number of tokens that are guessed from earlier text and verified in one inference; 0.
    - `language`, `task` ("transcribe", "translate"): for audio; None: detected, and "transcribe".
    """

    max_tokens: int | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    repetition_penalty: float | None
    seed: int | None
    beams: int | None
    length_penalty: float | None
    stop: str | Sequence[str]
    logprobs: int | None
    lookup: int
    language: str | None
    task: str | None


@dataclass(frozen=True, slots=True)
class Settings:
    """Resolved settings. `temperature` 0 is greedy. Raises InputInvalid for values out of range."""

    max_tokens: int = DEFAULT_TOKENS
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0
    beams: int = 1
    length_penalty: float = 1.0
    stop: tuple[str, ...] = ()
    logprobs: int | None = None
    lookup: int = 0
    language: str | None = None
    task: str | None = None
    suppress: tuple[int, ...] = ()
    """Tokens that are never chosen, and `begin_suppress`, which do not begin a text: from generation_config.json."""
    begin_suppress: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name, kind, low, high in _RANGES:
            value = getattr(self, name)
            if value is not None and not (isinstance(value, kind) and low <= value <= high):
                whole = "an integer of " if kind is Integral else ""
                bounds = f"at least {low}" if math.isinf(high) else f"{low} to {high}"
                raise InputInvalid(f"{name} must be {whole}{bounds}, found {value}")
        if not 0 < self.repetition_penalty < math.inf:
            raise InputInvalid(f"repetition_penalty must be positive and finite, found {self.repetition_penalty}")
        if not math.isfinite(self.length_penalty):
            raise InputInvalid(f"length_penalty must be finite, found {self.length_penalty}")
        if self.beams > 1 and self.temperature > 0:
            raise InputInvalid("beams cannot be combined with sampling; omit temperature, or set it to 0")
        if self.lookup and (self.beams > 1 or self.temperature > 0):
            raise InputInvalid("lookup requires greedy generation; omit beams and temperature")
        if not all(self.stop):
            raise InputInvalid("a stop string must not be empty")

    @property
    def samples(self) -> bool:
        """True if tokens are drawn at random."""
        return self.temperature > 0

    @staticmethod
    def of(folder: Folder, **options: Unpack[GenerationOptions]) -> Settings:
        """The settings of a folder, changed by the options that are not None. Raises InputInvalid."""
        unknown = options.keys() - {f.name for f in fields(Settings)} | options.keys() & _FILE_ONLY
        if unknown:
            raise TypeError(f"generation has no option {', '.join(sorted(unknown))}")
        settings: dict[str, Any] = {k: v for k, v in options.items() if v is not None}
        if "stop" in settings:
            settings["stop"] = (settings["stop"],) if isinstance(settings["stop"], str) else tuple(settings["stop"])
        return Settings(**{**_configured(folder.generation, settings), **settings})


_RANGES: tuple[tuple[str, type[Any], float, float], ...] = (
    ("max_tokens", Integral, 1, math.inf),
    ("temperature", Real, 0, math.inf),
    ("top_k", Integral, 0, math.inf),
    ("top_p", Real, 0, 1),
    ("min_p", Real, 0, 1),
    ("seed", Integral, 0, math.inf),
    ("beams", Integral, 1, MAX_BEAMS),
    ("logprobs", Integral, 0, math.inf),
    ("lookup", Integral, 0, math.inf),
)
_FILE_ONLY = {"suppress", "begin_suppress"}
_NAMES = {
    "max_new_tokens": "max_tokens",
    "num_beams": "beams",
    "repetition_penalty": "repetition_penalty",
    "length_penalty": "length_penalty",
}
_SAMPLING = ("temperature", "top_k", "top_p", "min_p")


def _configured(config: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of generation_config.json. Its sampling parameters apply if it or the caller enables sampling."""
    settings: dict[str, Any] = {
        ours: _number(config[theirs]) for theirs, ours in _NAMES.items() if isinstance(config.get(theirs), int | float)
    }
    for theirs, ours in (("suppress_tokens", "suppress"), ("begin_suppress_tokens", "begin_suppress")):
        ids = config.get(theirs)
        if isinstance(ids, list):
            settings[ours] = tuple(k for k in cast(list[Any], ids) if isinstance(k, int) and k >= 0)
    stops = config.get("stop_strings")
    stops = [stops] if isinstance(stops, str) else stops
    if isinstance(stops, list) and "stop" not in given:
        settings["stop"] = tuple(stop for stop in cast(list[Any], stops) if stop and isinstance(stop, str))
    if given.get("temperature", 0) or (config.get("do_sample") and "temperature" not in given):
        if given.get("beams", settings.get("beams", 1)) > 1:
            return settings
        settings.pop("beams", None)
        settings |= {"temperature": 1.0}
        settings |= {name: _number(config[name]) for name in _SAMPLING if isinstance(config.get(name), int | float)}
    return settings


def _number(value: float) -> float:
    """The value, as an int if it is whole: 50.0 is a valid top_k."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
