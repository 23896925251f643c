"""Examines the bytes before the root element of an XML file, before any parser reads them."""

from __future__ import annotations

import re

from irload.errors import ReadError
from irload.safety.files import HEAD, identify

BOM = b"\xef\xbb\xbf"
_ENCODINGS = {
    **dict.fromkeys((b"utf-8", b"utf8", b"us-ascii", b"ascii"), "utf-8"),
    **dict.fromkeys((b"iso-8859-1", b"latin1"), "iso-8859-1"),
}
_ENCODING = re.compile(rb"""encoding\s*=\s*["']([^"']*)["']""")
_NAME = re.compile(rb"<([A-Za-z_:][\w:.-]*)")


NO_IR = "is not an OpenVINO IR"
"""The beginning of messages about files of another format."""


def root_tag(head: bytes) -> str:
    """Return the name of the root element. Raises ReadError unless the file is XML without a DOCTYPE."""
    kind = identify(head)
    if kind is not None:
        raise ReadError(f"{NO_IR}: the file is {kind}")
    at = len(BOM) if head.startswith(BOM) else 0
    while True:
        while head[at : at + 1].isspace():
            at += 1
        if head.startswith(b"<?", at):
            at = _after(head, b"?>", at)
        elif head.startswith(b"<!--", at):
            at = _after(head, b"-->", at + 4)
        elif head.startswith(b"<!", at):
            raise ReadError("has a DOCTYPE, which no IR needs; remove it")
        else:
            break
    match = _NAME.match(head, at)
    if match is None:
        raise ReadError("is not an OpenVINO IR: it has no root element")
    return match[1].decode("ascii", "replace")


def _after(head: bytes, mark: bytes, start: int) -> int:
    at = head.find(mark, start)
    if at < 0:
        raise ReadError(f"is not an OpenVINO IR: no root element within its first {min(len(head), HEAD)} bytes")
    return at + len(mark)


def encoding(head: bytes) -> str:
    """Return the encoding: UTF-8, or Latin-1 if the file declares it. Raises ReadError if it declares another one."""
    declaration = head[: head.find(b"?>")] if head.removeprefix(BOM).startswith(b"<?xml") else b""
    match = _ENCODING.search(declaration)
    name = match[1] if match else b"utf-8"
    known = _ENCODINGS.get(name.strip().lower())
    if known is None:
        raise ReadError(f"declares the encoding '{name[:40].decode('ascii', 'replace')}'; an IR must be UTF-8")
    return "utf-8" if head.startswith(BOM) else known
