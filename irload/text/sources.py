"""The start of a generation: the first tokens of the decoder, and the outputs of an encoder for the prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from irload.compiling import compile_model
from irload.core.tensor import Array
from irload.errors import InputInvalid, Unsupported
from irload.options import CompileOptions
from irload.read.folders import DECODER, DECODER_WITH_PAST, ENCODER
from irload.runtime.compiled_model import CompiledModel
from irload.text.audio import as_samples, read_audio
from irload.text.decoder import Context, Decoder, input_names
from irload.text.folder import Folder
from irload.text.mel import MelSpectra
from irload.text.settings import Settings

_TEXT = ("input_ids", "attention_mask")
_AUDIO = ("input_features",)
TASKS = ("transcribe", "translate")


@dataclass(frozen=True, slots=True)
class Start:
    """The tokens from which the decoder continues, and the inputs that are equal for all tokens.

    `size`: the number of tokens of the prompt. `limit`: the maximum number of tokens that may follow; None: no limit.
    """

    tokens: Sequence[int]
    context: Context = field(default_factory=dict[str, Array])
    size: int = 0
    limit: int | None = None


def start_of_decoder(folder: Folder, ids: Sequence[int]) -> Start:
    """The start of a decoder without encoder. Raises InputInvalid for a prompt beyond the positions of the model."""
    _require_positions(len(ids), folder.positions, needed=1)
    return Start(ids, size=len(ids), limit=None if folder.positions is None else folder.positions - len(ids))


def _require_positions(count: int, positions: int | None, needed: int = 0) -> None:
    if positions is not None and count + needed > positions:
        raise InputInvalid(f"the prompt has {count} tokens; the model has {positions} positions")


class EncoderDecoder:
    """An encoder and a decoder in separate files: for texts (T5), or for audio (Whisper).

    Raises Unsupported for an encoder with other inputs, and the errors of `compile_model`.
    """

    def __init__(self, folder: Folder, threads: int | None, options: CompileOptions) -> None:
        def compiled(name: str) -> CompiledModel:
            return compile_model(folder.file(name), threads, **options)

        self._folder = folder
        self._encoder = compiled(ENCODER)
        past = compiled(DECODER_WITH_PAST) if folder.has(DECODER_WITH_PAST) else None
        self.decoder = Decoder(compiled(DECODER), past, encoded=True)
        self._inputs = input_names(self._encoder, (*_TEXT, *_AUDIO))
        self.takes_audio = self._inputs == _AUDIO
        if not self.takes_audio and not set(self._inputs) <= set(_TEXT):
            raise Unsupported(f"an encoder takes {', '.join(_TEXT)} or input_features, found {', '.join(self._inputs)}")

    def of_ids(self, ids: Sequence[int]) -> Start:
        """The start for the ids of a text. Raises InputInvalid without a token to start from."""
        _require_positions(len(ids), self._folder.source_positions)
        row = np.array([ids], np.int64)
        context = self._encoded({"input_ids": row, "attention_mask": np.ones_like(row)})
        return self._start([], {**context, "encoder_attention_mask": np.ones_like(row)}, len(ids))

    def of_audio(self, audio: object, settings: Settings) -> list[Callable[[], Start]]:
        """Functions that encode 30 seconds each of a file or of samples. Raises the errors of `read_audio`."""
        spectra = MelSpectra.of(self._folder.features)
        samples = read_audio(audio, spectra.rate) if isinstance(audio, str | Path) else as_samples(np.asarray(audio))
        windows = range(0, len(samples), spectra.samples)
        return [partial(self._of_samples, spectra, samples[k : k + spectra.samples], settings) for k in windows]

    def _of_samples(self, spectra: MelSpectra, samples: Array, settings: Settings) -> Start:
        context = self._encoded({"input_features": spectra.features(samples)})
        return self._start(self._marks(context, settings), context, 0)

    def _start(self, marks: Sequence[int], context: Context, size: int) -> Start:
        forced = self._folder.token_id("forced_bos_token_id")
        tokens = [self._first(), *marks, *([] if forced is None else [forced])]
        positions = self._folder.target_positions
        return Start(tokens, context, size, None if positions is None else max(positions - len(tokens), 1))

    def _first(self) -> int:
        named = (self._folder.token_id(name) for name in ("decoder_start_token_id", "bos_token_id"))
        first = next((id for id in named if id is not None), None)
        if first is None:
            raise InputInvalid(f"{self._folder.path} states no decoder_start_token_id to start from")
        return first

    def _encoded(self, feeds: Mapping[str, Array]) -> Context:
        results = self._encoder.create_infer_request().infer([feeds[name] for name in self._inputs])
        return {"encoder_hidden_states": results[0]}

    def _marks(self, context: Context, settings: Settings) -> list[int]:
        """The tokens that select Whisper's language and task, and disable timestamps."""
        config = self._folder.generation
        languages, tasks = _ids(config, "lang_to_id"), _ids(config, "task_to_id")
        marks: list[int] = []
        if languages and config.get("is_multilingual", True):
            marks.append(self._language(context, languages, settings.language or config.get("language")))
            task = settings.task or config.get("task") or TASKS[0]
            if task not in tasks:
                raise InputInvalid(f"the model has the tasks {', '.join(tasks) or 'none'}, not {task}")
            marks.append(tasks[task])
        elif settings.language or settings.task:
            raise InputInvalid("language and task require a model of several languages")
        silent = config.get("no_timestamps_token_id")
        return [*marks, silent] if isinstance(silent, int) else marks

    def _language(self, context: Context, languages: Mapping[str, int], given: Any) -> int:
        """The token of a language. If no language is given, the most probable one for this audio."""
        if given is None:
            logits = self.decoder.cache(context).extend(np.array([[self._first()]], np.int64))[0, -1]
            return max(languages.values(), key=lambda token: logits[token])
        chosen = next((id for name, id in languages.items() if name.strip("<|>") == str(given).lower()), None)
        if chosen is None:
            names = ", ".join(sorted(name.strip("<|>") for name in languages))
            raise InputInvalid(f"the model has no language {given}; it has {names}")
        return chosen


def _ids(config: Mapping[str, Any], name: str) -> dict[str, int]:
    mapping = config.get(name)
    entries = cast(dict[str, Any], mapping).items() if isinstance(mapping, dict) else ()
    return {key: value for key, value in entries if isinstance(value, int)}
