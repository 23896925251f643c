"""Untrusted XML: each row must not harm a loader, in a process with limited memory and time."""

from __future__ import annotations

import gzip
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from irload.read import read_graph
from tests.harness.growth import LINEAR, growth
from tests.hostile.confined import ROOT, confined, irrun
from tests.read.texts import BASE, PARAMETER, changed, net

MEMORY = 1 << 30
SECONDS = 300


def laughs(levels: int, width: int) -> str:
    """Nested entities that expand a few hundred bytes to the order of `width` ** `levels` letters."""
    entities = '<!ENTITY e0 "ha">' + "".join(f'<!ENTITY e{k + 1} "{f"&e{k};" * width}">' for k in range(levels))
    return changed("<net", f"<!DOCTYPE net [{entities}]><net").replace('name="m"', f'name="&e{levels};"')


def nested_bodies(depth: int) -> str:
    body = "<layers/><edges/>"
    for _ in range(depth):
        body = (
            '<layers><layer id="0" name="t" type="TensorIterator" version="opset1">'
            f"<body>{body}</body></layer></layers><edges/>"
        )
    return f'<net version="11">{body}</net>'


def attributes(count: int) -> str:
    return " ".join(f'a{k}="1"' for k in range(count))


ROWS = {
    "billion laughs": (laughs(9, 10), "has a DOCTYPE"),
    "quadratic blow-up": (laughs(1, 100_000).replace('"ha"', f'"{"ha" * 50_000}"'), "has a DOCTYPE"),
    "external entity": (
        changed("<net", '<!DOCTYPE net [<!ENTITY v SYSTEM "file:///etc/passwd">]><net'),
        "has a DOCTYPE",
    ),
    "external subset": (changed("<net", '<!DOCTYPE net SYSTEM "http://localhost:1/x.dtd"><net'), "has a DOCTYPE"),
    "parameter entity": (changed("<net", '<!DOCTYPE net [<!ENTITY % p SYSTEM "file:///x">%p;]><net'), "has a DOCTYPE"),
    "entity in an attribute": (
        changed("<net", '<!DOCTYPE net [<!ENTITY v "relu">]><net').replace('"relu"', '"&v;"'),
        "has a DOCTYPE",
    ),
    "entity that nothing declares": (changed('"relu"', '"&v;"'), "well-formed"),
    "nesting of metadata": (net(tail=f"<rt_info>{'<a>' * 300}{'</a>' * 300}</rt_info>"), "nested more than 256 deep"),
    "nesting of bodies": (nested_bodies(40), "the limit body_depth is 32"),
    "nesting of bodies, 1000 deep": (nested_bodies(1000), "nested more than 256 deep"),
    "text of 11 MB": (changed('"relu"', f'"{"x" * 11_000_000}"'), "texts beyond 10 MB"),
    "100,000 attributes on <data>": (
        changed("<data ", f"<data {attributes(100_000)} "),
        "the limit attributes is 1000",
    ),
    "gzip bytes under an .xml name": (gzip.compress(BASE.encode()), "compressed with gzip"),
    "UTF-16": (BASE.encode("utf-16"), "UTF-16"),
    "UTF-16 without a mark": (BASE.encode("utf-16-be"), "UTF-16"),
    "UTF-16 declared": (changed('"1.0"', '"1.0" encoding="utf-16"'), "declares the encoding 'utf-16'"),
    "UTF-7 declared": (changed('"1.0"', '"1.0" encoding="UTF-7"'), "declares the encoding 'UTF-7'"),
    "bad UTF-8": (BASE.encode().replace(b"relu", b"re\xfflu"), "XML"),
    "bad UTF-8 cut at the end of the file": (BASE.encode()[:-1] + b"\xe2\x82", "XML"),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("content", "said"), ROWS.values(), ids=ROWS)
def test_refused(tmp_path: Path, content: str | bytes, said: str) -> None:
    file = tmp_path / "model.xml"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    outcome = irrun("inspect", file, memory=MEMORY, seconds=SECONDS)
    assert outcome.returncode == 3, outcome.stderr[:2000]
    assert outcome.stdout == ""
    assert said in outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1  # no traceback


@pytest.mark.one_in(2)
@pytest.mark.parametrize("element", ["<net ", '<layer id="1" ', '<port id="1" ', "<edge "])
def test_100_000_attributes_on_elements_without_any(tmp_path: Path, element: str) -> None:
    """Listing them takes quadratic time. The few supported ones are looked up by name."""
    (tmp_path / "model.xml").write_text(changed(element, f"{element}{attributes(100_000)} "))
    outcome = irrun("inspect", tmp_path / "model.xml", memory=MEMORY, seconds=SECONDS)
    assert outcome.returncode == 0, outcome.stderr[:2000]

    def reading(count: int) -> Callable[[], object]:
        text = changed(element, f"{element}{attributes(count)} ").encode()
        return lambda: read_graph(text)

    assert growth(reading, 100_000) < LINEAR


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_bom_is_fine(tmp_path: Path, mark: bytes) -> None:
    (tmp_path / "model.xml").write_bytes(mark + BASE.encode())
    outcome = irrun("run", tmp_path / "model.xml", "--random", 0, memory=MEMORY, seconds=SECONDS)
    assert outcome.returncode == 0, outcome.stderr


LAYER = PARAMETER.replace('id="0" name="in"', 'id="{0}" name="in{0}"')


def millions(file: Path, count: int) -> int:
    """Write a file of `count` layers with repeated ids; returns its size."""
    block = "".join([LAYER.format(100_000 + k) for k in range(10_000)])
    with file.open("w") as stream:
        stream.write('<net name="m" version="11"><layers>')
        for _ in range(count // 10_000):
            stream.write(block)
        stream.write("</layers><edges/></net>")
    return file.stat().st_size


def test_316_mb_with_1_7_million_layers(tmp_path: Path) -> None:
    """Its tree takes 5.3 GB. The size alone is rejected; with that limit lifted, reading stops at the next limit."""
    file = tmp_path / "model.xml"
    assert millions(file, 1_700_000) > 316_000_000
    outcome = irrun("inspect", file, memory=MEMORY, seconds=SECONDS)
    assert outcome.returncode == 3
    assert "the limit xml_bytes is 268435456" in outcome.stderr
    outcome = irrun("inspect", file, "--limit", "xml-bytes=1G", "--limit", "layers=20K", memory=MEMORY, seconds=SECONDS)
    assert outcome.returncode == 3, outcome.stderr[:2000]
    assert "has 20481 layers or more; the limit layers is 20480" in outcome.stderr


@pytest.mark.nightly
def test_a_long_file_is_streamed(tmp_path: Path) -> None:
    """Read to the end with less memory than its tree takes. Only the parsed layers remain in memory."""
    file = tmp_path / "model.xml"
    layers = "".join(LAYER.format(k) + "<junk/>" * 2_500 for k in range(2_000))
    file.write_text(f'<net version="11"><layers>{layers}</layers></net>')
    code = "import sys; from irload.read import read_xml; print(len(read_xml(sys.argv[1]).graph.layers))"
    outcome = confined(["-c", code, file], memory=MEMORY // 2, seconds=2 * SECONDS)
    assert (outcome.returncode, outcome.stdout) == (0, "2000\n"), outcome.stderr[-2000:]
    tree = "import sys, irload.read; from lxml import etree; etree.parse(sys.argv[1])"
    assert confined(["-c", tree, file], memory=MEMORY // 2, seconds=2 * SECONDS).returncode != 0


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (net("<layer/>" * 300_000), "more than 10000 faults"),
        (net("", "<edge/>" * 300_000), "more than 10000 faults"),
        (net(PARAMETER.replace("<dim>1</dim>", "<dim>x</dim>" * 100_000)), "more than 10000 faults"),
        (net("".join(LAYER.format(k).replace('"0"', '"0" x="1"') for k in range(12_000))), ""),
    ],
    ids=["layers without anything", "edges without anything", "dims", "unknown attributes"],
)
def test_faults_and_warnings_do_not_pile_up(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "model.xml").write_text(text)
    code = """
import sys
from irload.read import read_graph
faults = []
try:
    print(len(read_graph(sys.argv[1], None, faults.append).warnings))
except Exception as error:
    print(len(faults), error)
"""
    outcome = confined(["-c", code, tmp_path / "model.xml"], memory=MEMORY, seconds=2 * SECONDS)
    assert outcome.returncode == 0, outcome.stderr[-2000:]
    assert int(outcome.stdout.split()[0]) <= 10_000
    assert said in outcome.stdout


def test_the_parser_resolves_no_external_entities() -> None:
    """lxml before 6.1 resolved them in iterparse."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "lxml>=6.1" in project["dependencies"]
