r"""Converts PCRE2's syntax, with Unicode properties for \s, \w, \d, \b, to that of `regex`, and of `re` for ASCII."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from irload.errors import Unsupported

_TOKEN = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|$)"
    r"|\\x\{(?P<point>[0-9A-Fa-f]+)\}"
    r"|\\[pP](?:\{\^?[\w&]+\}|\w)"
    r"|\\."
    r"|\[:\^?\w+:\]"
    r"|\[\^?\]?"
    r"|.",
    re.DOTALL,
)
_PROPERTY = re.compile(r"\\([pP])\{(\^?)(\w{3,})\}")
_WORD = r"\p{L}\p{N}\p{Mn}\p{Pc}"
_OUTSIDE: Mapping[str, str] = {
    r"\s": r"[\s\u180e]",
    r"\S": r"[^\s\u180e]",
    r"\w": f"[{_WORD}]",
    r"\W": f"[^{_WORD}]",
    r"\b": f"(?:(?<=[{_WORD}])(?![{_WORD}])|(?<![{_WORD}])(?=[{_WORD}]))",
    r"\B": f"(?:(?<=[{_WORD}])(?=[{_WORD}])|(?<![{_WORD}])(?![{_WORD}]))",
    r"\h": r"[\t \xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000]",
    r"\v": r"[\n-\r\x85\u2028\u2029]",
    r"\R": r"(?>\r\n|[\n-\r\x85\u2028\u2029])",
    r"\N": r"[^\n]",
    r"\Z": r"(?=\n?\Z)",
    r"\z": r"\Z",
    r"\e": r"\x1b",
}
"""Escapes outside of sets that `regex` reads differently, or not at all."""
_INSIDE: Mapping[str, str] = {
    r"\s": r"\s\u180e",
    r"\w": _WORD,
    r"\h": r"\t \xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000",
    r"\v": r"\n-\r\x85\u2028\u2029",
    r"\e": r"\x1b",
}
"""Escapes inside of sets that `regex` reads differently, or not at all."""
_LETTERS: Mapping[str, str] = {
    r"\p{L}": "A-Za-z",
    r"\pL": "A-Za-z",
    r"\p{N}": "0-9",
    r"\pN": "0-9",
    r"\p{Nd}": "0-9",
    r"\d": "0-9",
    r"\p{Lu}": "A-Z",
    r"\p{Ll}": "a-z",
    r"\p{Lt}": "",
    r"\p{Lm}": "",
    r"\p{Lo}": "",
    r"\p{M}": "",
    r"\p{Mn}": "",
    r"\p{Nl}": "",
    r"\p{No}": "",
    r"\p{Z}": " ",
    r"\p{Zs}": " ",
    r"\p{P}": r"!-#%-*,-/:;?@\[-\]_{}",
    r"\p{S}": r"$+<=>\^`|~",
    r"\p{Han}": "",
    r"\p{Hiragana}": "",
    r"\p{Katakana}": "",
    r"\s": r" \t-\r",
    r"\w": "A-Za-z0-9_",
}
"""The ASCII characters of each set, as the inside of a set."""
_PLAIN = re.compile(r"\\[xtnrf0-9\W]|[^\\]", re.DOTALL)
"""Tokens that mean the same to PCRE2 and to `re` on ASCII."""


def converted(pattern: str) -> str:
    """The pattern in the syntax of `regex`."""
    parts: list[str] = []
    for token, in_set in tokens(pattern):
        kept = (_INSIDE if in_set else _OUTSIDE).get(token, token)
        parts.append(re.escape(kept[2:]) if kept.startswith("\\Q") else _script(kept))
    return "".join(parts)


def regex_package() -> Any:
    """The module `regex`. Raises Unsupported if it is not installed."""
    try:
        import regex
    except ImportError:
        raise Unsupported(
            "regular expressions of tokenizers need the package regex, which is not installed; "
            "pip install 'irload[text]'"
        ) from None
    return regex


@cache
def _script(token: str) -> str:
    r"""A property that names a script, such as `\p{Han}`, as its script extensions, which PCRE2 matches."""
    match = _PROPERTY.fullmatch(token)
    if match is None:
        return token
    extended = f"\\{match[1]}{{{match[2]}scx={match[3]}}}"
    regex = regex_package()
    try:
        regex.compile(extended)
    except regex.error:  # another property
        return token
    return extended


def ascii_pattern(pattern: str) -> str | None:
    """An equivalent pattern of `re` for texts of ASCII, None if there may be none.

    Letters of other scripts in the pattern cannot match. Patterns that ignore case are left out beyond the inline form
    `(?i:'s|…)` of letters without a second lower case.
    """
    parts: list[str] = []
    for token, in_set in tokens(pattern):
        if token in _LETTERS:
            inside = _LETTERS[token]
            if not in_set and not inside:
                return None
            parts.append(inside if in_set else f"[{inside}]")
        elif token == r"\S" and not in_set:
            parts.append(r"[^ \t-\r]")
        elif _PLAIN.fullmatch(token) or token in ("[", "[^", "[]", "[^]"):
            parts.append(f"{token[:-1]}\\]" if token in ("[]", "[^]") else token)
        else:
            return None
    result = "".join(parts)
    return None if re.search(r"\(\?[|&RPC0-9#>]|\(\*|\[[\^]?\]|\\[0-9]", result) else result


def tokens(pattern: str) -> list[tuple[str, bool]]:
    """The tokens of a pattern, each with whether it is inside of a set. Code points become characters."""
    result: list[tuple[str, bool]] = []
    in_set = False
    for match in _TOKEN.finditer(pattern):
        token = match[0]
        if match["point"] is not None:
            token = re.escape(chr(int(match["point"], 16)))
        elif match["quoted"] is not None:
            result += [(re.escape(c), in_set) for c in match["quoted"]]
            continue
        elif token[0] == "[" and in_set and not token.startswith("[:"):
            result.append((r"\[", True))
            for rest in token[1:]:
                if rest == "]":
                    in_set = False
                result.append((rest, in_set or rest == "]"))
            continue
        elif token[0] == "[" and not in_set:
            in_set = not token.startswith("[:")  # outside of sets, `[:…:]` is a complete set of these characters
            result.append((token, False))
            continue
        elif token == "]" and in_set:
            in_set = False
            result.append((token, True))
            continue
        result.append((token, in_set))
    return result
