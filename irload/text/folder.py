"""The files of a language model's folder."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from irload.errors import ReadError, Where

MODEL, TOKENIZER, DETOKENIZER = "openvino_model.xml", "openvino_tokenizer.xml", "openvino_detokenizer.xml"
CONFIG_BYTES = 64 << 20
"""The largest JSON file or template that is read."""
_POSITIONS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length")


class Folder:
    """The paths and the configuration of a folder. Raises ReadError if it is not a folder."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            raise ReadError(f"a language model is a folder with {MODEL}; this is not a folder", Where(str(path)))

    def file(self, name: str) -> Path:
        """The path of a required file. Raises ReadError, with the files that the folder has."""
        found = self.path / name
        if not found.is_file():
            others = ", ".join(sorted(f.name for f in self.path.glob("*.xml"))) or "no .xml files"
            raise ReadError(f"the folder has no {name}; it has {others}", Where(str(self.path)))
        return found

    def has(self, name: str) -> bool:
        """True if the folder has this file."""
        return (self.path / name).is_file()

    @cached_property
    def config(self) -> dict[str, Any]:
        """config.json, or an empty dict."""
        return self._json("config.json")

    @cached_property
    def generation(self) -> dict[str, Any]:
        """generation_config.json, or an empty dict."""
        return self._json("generation_config.json")

    @cached_property
    def tokenizer(self) -> dict[str, Any]:
        """tokenizer_config.json, or an empty dict."""
        return self._json("tokenizer_config.json")

    @property
    def positions(self) -> int | None:
        """The largest number of tokens that the model supports, if config.json states it."""
        text = self.config.get("text_config")
        config = {**self.config, **(cast(dict[str, Any], text) if isinstance(text, dict) else {})}
        found = (config.get(name) for name in _POSITIONS)
        return next((n for n in found if isinstance(n, int) and n > 0), None)

    @property
    def end_ids(self) -> frozenset[int]:
        """The ids that end a text."""
        found = self._setting("eos_token_id")
        values = cast(list[Any], found) if isinstance(found, list) else [found]
        return frozenset(v for v in values if isinstance(v, int))

    @property
    def begin_id(self) -> int | None:
        """The id that begins a text, if there is one."""
        found = self._setting("bos_token_id")
        return found if isinstance(found, int) else None

    def _setting(self, name: str) -> Any:
        found = self.generation.get(name)
        return self.config.get(name) if found is None else found

    @cached_property
    def template(self) -> str | None:
        """The chat template: chat_template.jinja, or the one in tokenizer_config.json."""
        if self.has("chat_template.jinja"):
            return self._text("chat_template.jinja")
        found = self.tokenizer.get("chat_template")
        if isinstance(found, list):
            named = cast(list[dict[str, Any]], found)
            found = next((t.get("template") for t in named if t.get("name") == "default"), None)
        return found if isinstance(found, str) else None

    def _json(self, name: str) -> dict[str, Any]:
        if not self.has(name):
            return {}
        try:
            found = json.loads(self._text(name))
        except (ValueError, RecursionError) as error:
            raise ReadError(f"not valid JSON: {error}", Where(str(self.path / name))) from None
        if not isinstance(found, dict):
            raise ReadError("expected a JSON object", Where(str(self.path / name)))
        return cast(dict[str, Any], found)

    def _text(self, name: str) -> str:
        path = self.path / name
        if path.stat().st_size > CONFIG_BYTES:
            raise ReadError(f"more than {CONFIG_BYTES >> 20} MB of configuration", Where(str(path)))
        try:
            return path.read_text("utf-8")
        except (UnicodeDecodeError, OSError) as error:
            raise ReadError(f"cannot be read: {error}", Where(str(path))) from None
