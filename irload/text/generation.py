"""TextGeneration: generates texts from prompts with the language model of a folder."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack, cast, overload

import numpy as np

from irload.compiling import compile_model
from irload.core.tensor import Array
from irload.errors import InputInvalid, IRError
from irload.options import CompileOptions
from irload.read.folders import DETOKENIZER, MODEL
from irload.runtime.compiled_model import CompiledModel
from irload.text.chat import Message, rendered
from irload.text.decoder import Decoder
from irload.text.folder import Folder
from irload.text.sequence import Generation, Running
from irload.text.settings import GenerationOptions, Settings
from irload.text.sources import EncoderDecoder, Start, start_of_decoder
from irload.text.streaming import TextStream
from irload.text.tokenizer import Tokenizer
from irload.text.windows import TextWindows

__all__ = ["Generation", "TextGeneration"]

CONCURRENT = 8
"""Maximum number of texts in progress. Each has a KV cache."""

Prompt = str | Path | Array | Sequence[int] | Sequence[Message]
"""A text, its token ids, or the messages of a conversation; for a speech model, an audio file or its samples."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A part of the text for prompt `index`. The last part has `result` or `error`. `tokens`: their number so far."""

    index: int
    text: str
    tokens: int
    result: Generation | None = None
    error: IRError | None = None


class TextGeneration:
    """The language model of a folder: openvino_model.xml, its tokenizers, and its configuration.

    Alternatively the folder has an encoder and a decoder: openvino_encoder_model.xml and openvino_decoder_model.xml,
    with the KV cache as state or in openvino_decoder_with_past_model.xml. If the encoder has the input
    `input_features` (Whisper), prompts are audio: files (.wav, .npy) or arrays of samples.

    `folder`: its path. `threads`, `options`: as for `compile_model`. Each text has a separate KV cache, so a result
    does not depend on the other prompts. Raises ReadError for a folder without a model, Unsupported for a model that
    is not a decoder, and the errors of `compile_model`.

    `generate`, `stream` and `chat` take the same options, whose defaults come from generation_config.json:

    - `max_tokens`: maximum length; default 256.
    - `temperature`: 0, the default, chooses the most probable token; otherwise tokens are sampled, with `seed`.
    - `top_k`, `top_p`, `min_p`: restrict sampling to the most probable tokens.
    - `repetition_penalty`; `beams`, with `length_penalty`.
    - `stop`: strings that end the text.
    - `logprobs`: the number of most probable tokens to report.
    - `lookup`: the number of tokens that are guessed from earlier text and verified in one inference (prompt lookup).
    - `language`, `task` ("transcribe", "translate"): for audio.

    They raise InputInvalid for an option out of range, for a prompt that is empty or longer than the positions of the
    model, and for token ids outside the vocabulary, and ExecutionError for logits that are NaN.
    """

    def __init__(self, folder: str | Path, threads: int | None = None, **options: Unpack[CompileOptions]) -> None:
        self.folder = Folder(folder)
        self._encoder = EncoderDecoder(self.folder, threads, options) if self.folder.has_encoder else None
        self._decoder = (
            Decoder(compile_model(self.folder.file(MODEL), threads, **options))
            if self._encoder is None
            else self._encoder.decoder
        )
        self.tokenizer = Tokenizer(folder)

    @property
    def compiled(self) -> CompiledModel:
        """The compiled decoder."""
        return self._decoder.compiled

    @property
    def continues(self) -> bool:
        """True if texts continue their prompts, False for the answers of an encoder and a decoder."""
        return self._encoder is None

    def __repr__(self) -> str:
        return f"<TextGeneration of {self.folder.path}>"

    @overload
    def generate(
        self, prompts: str | Path | Array | Sequence[int], **options: Unpack[GenerationOptions]
    ) -> Generation: ...

    @overload
    def generate(
        self, prompts: Sequence[str | Path | Array] | Sequence[Sequence[int]], **options: Unpack[GenerationOptions]
    ) -> list[Generation]: ...

    def generate(self, prompts: Any, **options: Unpack[GenerationOptions]) -> Generation | list[Generation]:
        """Return the generated text for a prompt, or a list for several. Prompts are texts or lists of token ids."""
        single = isinstance(prompts, str | Path) or (len(prompts) > 0 and isinstance(prompts[0], int | np.number))
        by_index: dict[int, Generation] = {}
        for progress in self.run([prompts] if single else cast(Iterable[Prompt], prompts), live=False, **options):
            if progress.result is not None:
                by_index[progress.index] = progress.result
        results = [by_index[k] for k in range(len(by_index))]
        return results[0] if single else results

    def stream(self, prompt: Prompt, **options: Unpack[GenerationOptions]) -> Iterator[str]:
        """Yield the generated text for a prompt or a conversation, in parts, as soon as they are final."""
        for progress in self.run([prompt], **options):
            if progress.text:
                yield progress.text

    def chat(self, messages: Sequence[Message], **options: Unpack[GenerationOptions]) -> Generation:
        """Return the next turn of a conversation, which the folder's chat template turns into a prompt.

        `messages`: dicts with `role` (system, user or assistant) and `content`. Raises InputInvalid for a folder
        without a template, and for messages that the template refuses.
        """
        return next(p.result for p in self.run([messages], live=False, **options) if p.result is not None)

    def run(
        self,
        prompts: Iterable[Prompt],
        *,
        live: bool = True,
        keep_going: bool = False,
        numbers: Sequence[int] | None = None,
        **options: Unpack[GenerationOptions],
    ) -> Iterator[Progress]:
        """The parts of the texts of several prompts, as soon as they are final; without `live`, whole texts.

        Up to 8 texts are generated at a time, a token of each per round; the next prompt starts when one of them ends.
        `keep_going`: yield the error of a prompt and continue with the others, instead of raising it. `numbers`: one
        per prompt; each selects a separate stream of random numbers. By default the indices.
        """
        settings = Settings.of(self.folder, **options)
        waiting = deque(enumerate(prompts))
        running: deque[tuple[int, Running | TextWindows | Prompt]] = deque()
        while waiting or running:
            while waiting and len(running) < CONCURRENT:
                running.append(waiting.popleft())
            index, sequence = running.popleft()
            try:
                if not isinstance(sequence, Running | TextWindows):
                    sequence = self._started(index if numbers is None else numbers[index], sequence, settings, live)
                text = sequence.step()
            except IRError as error:
                if not keep_going:
                    raise
                yield Progress(index, "", 0, error=error)
                continue
            if sequence.finish is None:
                running.append((index, sequence))
                yield Progress(index, text, sequence.count)
            else:
                yield Progress(index, text, sequence.count, sequence.result())

    def _started(self, index: int, prompt: Prompt, settings: Settings, live: bool) -> Running | TextWindows:
        def running(start: Start) -> Running:
            text = TextStream(self.tokenizer if self.folder.has(DETOKENIZER) else None, settings.stop, live=live)
            return Running(self._decoder, start, settings, index, text, self.folder.end_ids)

        if self._encoder is not None and self._encoder.takes_audio:
            return TextWindows(self._encoder.of_audio(prompt, settings), running)
        if settings.language or settings.task:
            raise InputInvalid(f"language and task require a speech model; {self.folder.path} is not one")
        ids = self._ids(prompt)
        return running(start_of_decoder(self.folder, ids) if self._encoder is None else self._encoder.of_ids(ids))

    def _ids(self, prompt: Prompt) -> list[int]:
        """The ids of a prompt.

        Raises InputInvalid if it is empty and the model has no begin token, or has ids outside the vocabulary.
        """
        if isinstance(prompt, str | Path):
            ids = self.tokenizer.encode(str(prompt))
        elif isinstance(prompt, Sequence) and len(prompt) > 0 and isinstance(prompt[0], Mapping):
            ids = self._conversation(cast(Sequence[Message], prompt))
        else:
            ids = self._decoder.token_ids(prompt)
        if not ids and self.folder.begin_id is not None and self._encoder is None:
            return [self.folder.begin_id]
        if not ids:
            raise InputInvalid("the prompt is empty, and the folder states no bos_token_id to start from")
        return ids

    def _conversation(self, messages: Sequence[Message]) -> list[int]:
        """The ids of a rendered conversation, without the begin token that tokenizer and template both add."""
        ids = self.tokenizer.encode(rendered(self.folder, messages))
        begin = self.folder.begin_id
        return ids[1:] if begin is not None and ids[:2] == [begin, begin] else ids
