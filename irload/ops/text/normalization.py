"""NormalizeUnicode, CharsMapNormalization and CaseFold: characters replaced by tables."""

from __future__ import annotations

from collections.abc import Callable

from irload.core import attribute as attr
from irload.core.element import boolean
from irload.core.tensor import Array, TensorType
from irload.errors import AttributeInvalid
from irload.ops.text.base import Text
from irload.ops.text.charsmap import FORMS, CharsMap, normal_form
from irload.ops.text.compiled_map import CompiledMap
from irload.ops.text.prepared import prepared
from irload.ops.text.ragged import joined, pieces_of, require_count, require_strings, strings_of, text_of

_SPACE, _BLOCK = " ", "\u2581"


class Normalization(Text):
    """Base: strings in, strings out, and optionally a boolean per string that leaves it unchanged."""

    def mapped(
        self, change: Callable[[bytes], bytes], begins: Array, ends: Array, chars: Array, skips: Array | None
    ) -> tuple[Array, ...]:
        """The outputs for a change of single strings."""
        pieces = pieces_of(begins, ends, chars)
        if skips is None:
            return joined(map(change, pieces), begins.shape)
        flags = skips.ravel().tolist()
        changed = (piece if skip else change(piece) for piece, skip in zip(pieces, flags, strict=True))
        return (*joined(changed, begins.shape), skips)


class NormalizeUnicode(Normalization, opset="extension"):
    """Strings in a normal form of Unicode.

    Inputs: a tensor of strings, optionally a boolean per string that leaves it unchanged. Invalid bytes become U+FFFD.
    """

    normalization_form = attr.text()

    def validate(self) -> None:
        if self.normalization_form not in ("NFC", "NFD", "NFKC", "NFKD"):
            raise AttributeInvalid(
                f"attribute normalization_form must be NFC, NFD, NFKC or NFKD, found {self.normalization_form}"
            )

    def infer(
        self, begins: TensorType, ends: TensorType, chars: TensorType, skips: TensorType | None = None
    ) -> tuple[TensorType, ...]:
        require_strings("string", begins, ends, chars)
        return (*strings_of(begins.shape), *(() if skips is None else (skips.without_value(),)))

    def compute(self, begins: Array, ends: Array, chars: Array, skips: Array | None = None) -> tuple[Array, ...]:
        table = normal_form(self.normalization_form.lower(), False)
        return self.mapped(lambda piece: _replaced(table, piece), begins, ends, chars, skips)


class CaseFold(Normalization, opset="extension"):
    """Strings in lower or upper case.

    `encoding` "utf-8": all characters that have a simple case folding, to lower case; otherwise only ASCII. Inputs: a
    tensor of strings, optionally a boolean per string that leaves it unchanged, which only "utf-8" respects.
    """

    encoding = attr.text(default="utf-8")
    lower = attr.boolean(default=True)

    def validate(self) -> None:
        if self.encoding not in ("", "utf-8") or (self.encoding and not self.lower):
            raise AttributeInvalid(
                f"attribute encoding must be empty, or utf-8 with lower, found {self.encoding} and {self.lower}"
            )

    def infer(
        self, begins: TensorType, ends: TensorType, chars: TensorType, skips: TensorType | None = None
    ) -> tuple[TensorType, ...]:
        require_strings("string", begins, ends, chars)
        return (*strings_of(begins.shape), *(() if skips is None else (skips.without_value(),)))

    def compute(self, begins: Array, ends: Array, chars: Array, skips: Array | None = None) -> tuple[Array, ...]:
        if not self.encoding:
            change = bytes.lower if self.lower else bytes.upper
            folded = self.mapped(change, begins, ends, chars, None)
            return folded if skips is None else (*folded, skips)
        table = normal_form("identity", True)
        return self.mapped(lambda piece: _replaced(table, piece), begins, ends, chars, skips)


class CharsMapNormalization(Normalization, opset="extension"):
    """Strings normalized by a compiled map of SentencePiece, or by a normal form.

    Inputs: a tensor of strings, optionally a boolean per string that leaves it unchanged, and without
    `normalization_form` the map as bytes. `remove_extra_whitespaces` strips spaces and reduces runs of spaces to one;
    `escape_whitespaces` replaces spaces by U+2581; `add_dummy_prefix` adds a space in front. Invalid bytes become
    U+FFFD.
    """

    add_dummy_prefix = attr.boolean(default=False)
    remove_extra_whitespaces = attr.boolean(default=True)
    escape_whitespaces = attr.boolean(default=False)
    normalization_form = attr.text(default="")
    case_fold = attr.boolean(default=False)
    nmt = attr.boolean(default=False)

    def validate(self) -> None:
        form = self.normalization_form.lower()
        if form and form not in FORMS and not (form == "identity" and self.case_fold):
            raise AttributeInvalid(
                f"attribute normalization_form must be one of {', '.join(FORMS)}, or identity with case_fold, "
                f"found {self.normalization_form}"
            )

    def infer(
        self, begins: TensorType, ends: TensorType, chars: TensorType, *inputs: TensorType
    ) -> tuple[TensorType, ...]:
        require_count(3 + len(inputs), 3, 4, 5)
        require_strings("string", begins, ends, chars)
        has_skips = len(inputs) == 2 or (len(inputs) == 1 and inputs[0].element is boolean)
        return (*strings_of(begins.shape), *((inputs[0].without_value(),) if has_skips else ()))

    def compute(self, begins: Array, ends: Array, chars: Array, *inputs: Array) -> tuple[Array, ...]:
        has_skips = len(inputs) == 2 or (len(inputs) == 1 and bool(self.normalization_form))
        if self.normalization_form:
            table = normal_form(self.normalization_form.lower(), self.case_fold)
        else:
            table = prepared(self, inputs[-1:], lambda: CompiledMap(text_of(inputs[-1])))
        change = self._changed if self.remove_extra_whitespaces else self._kept
        return self.mapped(lambda piece: change(table, piece), begins, ends, chars, inputs[0] if has_skips else None)

    def _kept(self, table: CharsMap | CompiledMap, piece: bytes) -> bytes:
        """The text with all of its spaces."""
        if not piece:
            return piece
        text = table.replaced(_decoded(piece))
        text = f"{_SPACE}{text}" if self.add_dummy_prefix else text
        return _encoded(text.replace(_SPACE, _BLOCK) if self.escape_whitespaces else text)

    def _changed(self, table: CharsMap | CompiledMap, piece: bytes) -> bytes:
        """The text without extra spaces. Only spaces inside a part, such as the replacement of a key, are kept."""
        result: list[str] = []
        after_space, begun = True, False
        for part in table.parts(_decoded(piece)):
            if not begun and part == _SPACE:
                continue
            begun = True
            shown = part.lstrip(_SPACE) if after_space else part
            if shown:
                result.append(shown)
                after_space = shown.endswith(_SPACE)
        if not begun:
            return b""
        text = (_SPACE if self.add_dummy_prefix else "") + "".join(result)
        if self.escape_whitespaces:  # U+2581 at the end of the text is removed, as spaces are
            return _encoded(text.replace(_SPACE, _BLOCK).rstrip(_BLOCK))
        return _encoded(text.rstrip(_SPACE))


def _replaced(table: CharsMap | CompiledMap, piece: bytes) -> bytes:
    return _encoded(table.replaced(_decoded(piece)))


def _decoded(piece: bytes) -> str:
    """The text, with a surrogate for each invalid byte, which no map contains."""
    return piece.decode("utf-8", "surrogateescape")


def _encoded(text: str) -> bytes:
    """The bytes of a text, with U+FFFD for surrogates."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text).encode()
