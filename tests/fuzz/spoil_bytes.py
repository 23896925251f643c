"""Damages bytes: of the XML, regardless of their meaning, and of the weights."""

from __future__ import annotations

import gzip

from tests.fuzz.mutant import Mutant

LAUGHS = (
    '<!DOCTYPE net [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>',
    '<!DOCTYPE net SYSTEM "http://localhost:1/x.dtd">',
    '<!DOCTYPE net [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
    '<!DOCTYPE net [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]>',
    "<!DOCTYPE net>",
    '<!DOCTYPE net [<!ATTLIST layer type CDATA "ReLU">]>',
)
PIECES = (
    *(
        b"<",
        b">",
        b"&",
        b'"',
        b"/",
        b"&x;",
        b"&#0;",
        b"&#x41;",
        b"&lt;",
        b"&#99999999;",
        b"\x00",
        b"\xff\xfe",
        b"\xc3\x28",
    ),
    *(b"<![CDATA[", b"]]>", b"<!--", b"-->", b"<?xml?>", b"<?php ?>", b"<layer>", b"</layer>", b"</net>", b"<net/>"),
    *(
        b'<layer id="7"/>',
        b"<xi:include href='x'/>",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
        b"\xf0\x9f\x98\x80",
        b"-1",
        b"9" * 400,
    ),
)


def flip(m: Mutant, text: bytes) -> bytes:
    """Replace some bytes."""
    changed = bytearray(text)
    for _ in range(m.of((1, 1, 2, 5, 40))):
        changed[m.between(0, len(changed) - 1)] = m.between(0, 255)
    return bytes(changed)


def cut(m: Mutant, text: bytes) -> bytes:
    """Remove a range, perhaps to the end."""
    start = m.between(0, len(text) - 1)
    end = len(text) if m.chance(0.4) else start + m.between(1, 200)
    return text[:start] + text[end:]


def insert(m: Mutant, text: bytes) -> bytes:
    """Insert bytes."""
    where = m.between(0, len(text))
    return text[:where] + m.of(PIECES) * m.of((1, 1, 1, 300)) + text[where:]


def repeat(m: Mutant, text: bytes) -> bytes:
    """Repeat a range several times."""
    start = m.between(0, len(text) - 1)
    end = start + m.between(1, 300)
    return text[:end] + text[start:end] * m.of((1, 2, 50)) + text[end:]


def doctype(m: Mutant, text: bytes) -> bytes:
    """Add a document type with entities, and use them."""
    used = text.replace(b'name="', b'name="&c;', 1) if m.chance(0.5) else text
    head, end, rest = used.partition(b"?>")
    return head + end + m.of(LAUGHS).encode() + rest if end else m.of(LAUGHS).encode() + used


def encode(m: Mutant, text: bytes) -> bytes:
    """Another encoding, in fact or by declaration, or another kind of file."""
    words = text.decode(errors="replace")
    options = (
        lambda: words.encode("utf-16"),
        lambda: words.encode("utf-32"),
        lambda: words.encode("utf-7"),
        lambda: b"\xef\xbb\xbf" + text,
        lambda: words.replace("utf-8", "latin-1", 1).replace("UTF-8", "latin-1", 1).encode(),
        lambda: words.replace("utf-8", "utf-16", 1).replace("UTF-8", "UTF-16", 1).encode(),
        lambda: gzip.compress(text, mtime=0),
        lambda: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n",
        lambda: b"",
        lambda: b" " * 3000 + text,
        lambda: b"<!--" + b"x" * 100_000 + b"-->" + text,
    )
    return m.of(options)()


def deepen(m: Mutant, text: bytes) -> bytes:
    """Nest elements deeply, or add many attributes to one."""
    where = text.find(b"<layer", m.between(0, len(text)))
    if where < 0:
        return text
    count = m.of((3, 200, 255, 300, 5000))
    if m.chance(0.5):
        many = b" ".join(b'a%d="1"' % k for k in range(count))
        return text[: where + 6] + b" " + many + text[where + 6 :]
    tag = m.of((b"layer", b"body", b"rt_info", b"x", b"layers"))
    return text[:where] + (b"<%s>" % tag) * count + (b"</%s>" % tag) * count + text[where:]


BYTES = (flip, flip, cut, insert, insert, repeat, doctype, encode, deepen)


def weights(m: Mutant) -> bool:
    """Truncate, extend, empty, remove or replace the .bin file."""
    blob = m.blob
    if blob is None:
        return False
    size = len(blob)
    roll = m.between(0, 5)
    if roll == 0:
        m.blob = None
    elif roll == 1:
        m.blob = bytearray()
    elif roll == 2:
        m.blob = blob[: m.between(0, size)]
    elif roll == 3:
        m.blob = blob + bytes(m.of((1, 7, 4096)))
    elif roll == 4:
        for _ in range(min(size, m.of((1, 8, 64)))):
            blob[m.between(0, size - 1)] = m.between(0, 255)
    else:
        m.blob = bytearray(m.of((b"\xff", b"\x00", b"\x7f")) * size)
    return m.note(f".bin: {('missing', 'empty', 'cut', 'longer', 'bytes changed', 'filled')[roll]}")
