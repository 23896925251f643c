"""The files of a language model's folder."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

from irload.errors import ReadError, Where
from irload.read.folders import CONFIG_BYTES, ENCODER, MODEL

T = TypeVar("T")

_KINDS: dict[type, str] = {dict: "object", list: "array"}
_POSITIONS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length")


class Folder:
    """The paths and the configuration of a folder. Raises ReadError if it is not a folder."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            fact = "is a file" if self.path.exists() else "no such folder"
            form = f"a text model is a folder with files such as {MODEL} and openvino_tokenizer.xml"
            raise ReadError(f"{fact}; {form}", Where(str(path)))

    def file(self, name: str) -> Path:
        """The path of a required file. Raises ReadError, with the files that the folder has."""
        path = self.path / name
        if not path.is_file():
            others = ", ".join(sorted(f.name for f in self.path.glob("*.xml"))) or "no .xml files"
            raise ReadError(f"the folder has no {name}; it has {others}", Where(str(self.path)))
        return path

    def has(self, name: str) -> bool:
        """True if the folder has this file."""
        return (self.path / name).is_file()

    @cached_property
    def config(self) -> dict[str, Any]:
        """config.json, or an empty dict."""
        return self.document("config.json")

    @cached_property
    def generation(self) -> dict[str, Any]:
        """generation_config.json, or an empty dict."""
        return self.document("generation_config.json")

    @cached_property
    def tokenizer(self) -> dict[str, Any]:
        """tokenizer_config.json, or an empty dict."""
        return self.document("tokenizer_config.json")

    @property
    def positions(self) -> int | None:
        """The largest number of tokens that the model supports, if config.json states it."""
        text = self.config.get("text_config")
        config = {**self.config, **(cast(dict[str, Any], text) if isinstance(text, dict) else {})}
        candidates = (config.get(name) for name in _POSITIONS)
        return next((n for n in candidates if isinstance(n, int) and n > 0), None)

    @property
    def source_positions(self) -> int | None:
        """The largest number of tokens that an encoder supports, None for relative positions (T5)."""
        return None if "relative_attention_num_buckets" in self.config else self.positions

    @property
    def target_positions(self) -> int | None:
        """The largest number of tokens of the decoder of an encoder-decoder, None for relative positions (T5)."""
        positions = self.config.get("max_target_positions")
        return positions if isinstance(positions, int) and positions > 0 else self.source_positions

    @property
    def has_encoder(self) -> bool:
        """True for an encoder and a decoder in separate files."""
        return not self.has(MODEL) and self.has(ENCODER)

    @property
    def end_ids(self) -> frozenset[int]:
        """The ids that end a text."""
        return frozenset(self.token_ids("eos_token_id"))

    @property
    def begin_id(self) -> int | None:
        """The id that begins a text, if there is one."""
        return self.token_id("bos_token_id")

    def token_id(self, name: str) -> int | None:
        """The id of a special token that generation_config.json or config.json states."""
        id = self.setting(name)
        return id if isinstance(id, int) else None

    def token_ids(self, name: str) -> list[int]:
        """The ids of a special token that may have several."""
        setting = self.setting(name)
        values = cast(list[Any], setting) if isinstance(setting, list) else [setting]
        return [v for v in values if isinstance(v, int)]

    @property
    def padding_id(self) -> int:
        """The id that fills rows after the end of a text, 0 if no file states one."""
        id = self.setting("pad_token_id")
        return id if isinstance(id, int) and id >= 0 else 0

    @cached_property
    def modules(self) -> list[dict[str, Any]]:
        """The modules of modules.json (sentence-transformers), in the order in which they run; empty without it."""
        entries = self._read("modules.json", list)
        return [cast(dict[str, Any], entry) for entry in entries if isinstance(entry, dict)]

    @cached_property
    def sentences(self) -> dict[str, Any]:
        """sentence_bert_config.json, or an empty dict."""
        return self.document("sentence_bert_config.json")

    @property
    def features(self) -> dict[str, Any]:
        """The features of audio: preprocessor_config.json, or `feature_extractor` of processor_config.json."""
        extractor = self.document("processor_config.json").get("feature_extractor")
        nested = cast(dict[str, Any], extractor) if isinstance(extractor, dict) else {}
        return self.document("preprocessor_config.json") or nested

    @property
    def longest(self) -> int | None:
        """The length to which texts are truncated for an encoder, None if no file states one."""
        stated = self.sentences.get("max_seq_length")
        limits = [stated] if isinstance(stated, int) else [self.tokenizer.get("model_max_length"), self.positions]
        return min((n for n in limits if isinstance(n, int) and n > 0), default=None)

    @property
    def architectures(self) -> tuple[str, ...]:
        """The names of the model's classes in config.json."""
        names = self.config.get("architectures")
        return tuple(map(str, cast(list[Any], names))) if isinstance(names, list) else ()

    def setting(self, name: str) -> Any:
        """A value of generation_config.json, else of config.json, else None."""
        value = self.generation.get(name)
        return self.config.get(name) if value is None else value

    @cached_property
    def template(self) -> str | None:
        """The chat template: chat_template.jinja, or the one in tokenizer_config.json."""
        if self.has("chat_template.jinja"):
            return self._text("chat_template.jinja")
        text = self.tokenizer.get("chat_template")
        if isinstance(text, list):
            named = cast(list[dict[str, Any]], text)
            text = next((t.get("template") for t in named if t.get("name") == "default"), None)
        return text if isinstance(text, str) else None

    def document(self, name: str) -> dict[str, Any]:
        """The object in a JSON file, empty if there is no file. Raises ReadError for another document."""
        return self._read(name, dict)

    def _read(self, name: str, kind: type[T]) -> T:
        if not self.has(name):
            return kind()
        try:
            document = json.loads(self._text(name))
        except (ValueError, RecursionError) as error:
            raise ReadError(f"not valid JSON: {error}", Where(str(self.path / name))) from None
        if not isinstance(document, kind):
            raise ReadError(f"expected a JSON {_KINDS[kind]}", Where(str(self.path / name)))
        return document

    def _text(self, name: str) -> str:
        path = self.path / name
        if path.stat().st_size > CONFIG_BYTES:
            raise ReadError(f"more than {CONFIG_BYTES >> 20} MB of configuration", Where(str(path)))
        try:
            return path.read_text("utf-8")
        except (UnicodeDecodeError, OSError) as error:
            raise ReadError(f"cannot be read: {error}", Where(str(path))) from None
