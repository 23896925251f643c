"""Integrity: the SHA-256 of a model's two files, and pins that they must match."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from irload.errors import InputInvalid, ReadError
from irload.record import record

__all__ = ["Digests", "Pins", "pins_of"]

Pins = Mapping[str, str]
"""Required digests in lower case: "model" of both files together, "xml" and "bin" of each."""

_HEX = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)
_KINDS = ("model", "xml", "bin")


@record()
class Digests:
    """SHA-256 in hexadecimal of the bytes that were read: of the XML, and of the weights if there are any."""

    xml: str
    bin: str | None

    @property
    def model(self) -> str:
        """One digest for both: SHA-256 over the 32 bytes of the XML's digest and the 32 of the weights', if any."""
        return hashlib.sha256(bytes.fromhex(self.xml) + bytes.fromhex(self.bin or "")).hexdigest()

    def require(self, pins: Pins) -> None:
        """Raise ReadError if a pin does not match."""
        digests = {"model": self.model, "xml": self.xml, "bin": self.bin}
        labels = {"model": "the model", "xml": "the XML", "bin": "the .bin file"}
        for kind, pinned in pins.items():
            if digests[kind] == pinned:
                continue
            if digests[kind] is None:
                raise ReadError(f"is pinned to weights of SHA-256 {pinned}, but there is no .bin file")
            other = next((k for k in _KINDS if k != kind and digests[k] == pinned), None)
            hint = "" if other is None else f". The pin is the SHA-256 of {labels[other]}; write {other}=…"
            raise ReadError(
                f"does not match the pin: {labels[kind]} has SHA-256 {digests[kind]}, expected {pinned}{hint}"
            )


def sha256(content: Any) -> str:
    """The digest of bytes or of an array of u8."""
    return hashlib.sha256(content).hexdigest()


def pins_of(given: str | Pins | Iterable[str]) -> dict[str, str]:
    """Pins from one digest, from a dict by "model", "xml" and "bin", or from texts such as `xml=…`.

    A digest without a name is that of the model. Raises InputInvalid for malformed digests and for an empty argument.
    """
    if isinstance(given, Mapping):
        pairs = list(given.items())
    else:
        texts = [given] if isinstance(given, str) else list(given)
        pairs = [(k, v) if sign else ("model", k) for k, sign, v in (t.strip().partition("=") for t in texts)]
    pins: dict[str, str] = {}
    for kind, digest in pairs:
        if kind not in _KINDS or kind in pins:
            raise InputInvalid(f"a SHA-256 pins model, xml or bin, each at most once; found '{kind[:40]}'")
        if not _HEX.fullmatch(digest):
            raise InputInvalid(f"a SHA-256 has 64 hexadecimal digits, found '{digest[:80]}'")
        pins[kind] = digest.lower()
    if not pins:
        raise InputInvalid("sha256 is empty; give the SHA-256 of model, xml or bin")
    return pins
