"""One wrong declaration at a time: `python -m tests.seeded_edits DIR… [--count N] [--seed S]`.

Edits one declared dim or precision of one port in a copy of a model's XML (inputs and outputs, Parameters, constants
and bodies included; sizes changed, replaced by -1, and -1 replaced by a size) and checks the copy. The edit has to be
reported exactly once, at the right layer and port, and nothing else with it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree

from irload.checks import Finding, check
from irload.read import Weights

BODIES = ("body", "then_body", "else_body")
PRECISIONS = ("FP32", "FP16", "I64", "I32", "U8", "BOOL")


@dataclass(frozen=True)
class Edit:
    """One port and its edit."""

    layer_id: int
    body: str
    port: str
    what: str

    def found_by(self, finding: Finding) -> bool:
        """Whether a finding concerns the declaration of exactly this port."""
        place = (finding.layer_id, finding.body, finding.port)
        return finding.code.startswith("IR40") and place == (self.layer_id, self.body, self.port)


class Copy:
    """A model whose XML is edited and restored."""

    def __init__(self, xml: Path, folder: Path) -> None:
        self.xml = xml
        self.file = folder / "model.xml"
        self.tree = etree.parse(xml)
        self.weights = Weights(xml.with_suffix(".bin") if xml.with_suffix(".bin").exists() else None)
        self.ports = [p for p in self.tree.iter("port") if p.find("dim") is not None or p.get("precision")]
        self.before = Counter(map(without_line, check(xml, self.weights).findings))

    def new_findings(self) -> list[Finding]:
        """Findings of the copy that the original lacks."""
        self.tree.write(self.file, encoding="utf-8", xml_declaration=True)
        known = self.before.copy()
        findings: list[Finding] = []
        for finding in check(self.file, self.weights).findings:
            known[without_line(finding)] -= 1
            if known[without_line(finding)] < 0:
                findings.append(finding)
        return findings

    def edited(self, rng: np.random.Generator) -> tuple[Edit, list[Finding]]:
        """Edit a random port, check, and revert the edit."""
        port = self.ports[int(rng.integers(len(self.ports)))]
        dims = port.findall("dim")
        if port.get("precision") and (not dims or rng.random() < 0.25):
            old: str = port.get("precision")
            new = str(rng.choice([p for p in PRECISIONS if p != old]))
            port.set("precision", new)
            what, findings = f"precision {old} → {new}", self.new_findings()
            port.set("precision", old)
        else:
            dim = dims[int(rng.integers(len(dims)))]
            old = dim.text.strip()
            new = _other(int(old), rng)
            dim.text = str(new)
            what, findings = f"dim {dims.index(dim)}: {old} → {new}", self.new_findings()
            dim.text = old
        return Edit(*_place(port), what), findings


def _other(size: int, rng: np.random.Generator) -> int:
    options = [n for n in (-1, size + 1, size * 2, size - 1, 99) if n != size and (n > 0 or n == -1)]
    return int(rng.choice([1, 2, 7, 99])) if size == -1 else int(rng.choice(options))


def _place(port: Any) -> tuple[int, str, str]:
    """(layer id, path of bodies, port) as findings name them."""
    side = port.getparent()
    layer = side.getparent()
    path: list[str] = []
    inner = layer
    while inner.getparent().getparent().tag in BODIES:
        body = inner.getparent().getparent()
        inner = body.getparent()
        path[:0] = [inner.get("name"), body.tag]
    return int(layer.get("id")), "/".join(path), f"{side.tag} port {port.get('id')}"


def without_line(finding: Finding) -> tuple[object, ...]:
    """A finding without its line."""
    return finding.code, finding.body, finding.layer_id, finding.port, finding.message


def models(folders: Sequence[Path]) -> list[Path]:
    """The model files of folders, and the given files."""
    return [f for folder in folders for f in (sorted(folder.glob("*.xml")) if folder.is_dir() else [folder])]


def run(files: Sequence[Path], count: int, seed: int) -> list[str]:
    """Apply the edits, spread over the files, and describe the edits not reported exactly once."""
    missed: list[str] = []
    for k, xml in enumerate(files):
        rng = np.random.default_rng([seed, k])
        share = count // len(files) + (k < count % len(files))
        with tempfile.TemporaryDirectory() as folder:
            copy = Copy(xml, Path(folder))
            for _ in range(share):
                edit, findings = copy.edited(rng)
                if len(findings) != 1 or not edit.found_by(findings[0]):
                    found_text = "; ".join(f"{f.code} {f.layer} {f.message}" for f in findings) or "nothing reported"
                    missed.append(f"{xml.parent.name}: {edit}: {found_text}")
    return missed


def main(arguments: Sequence[str]) -> int:
    """Run and print the result. Returns 1 if an edit was not reported exactly once."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    files = models(options.folders)
    missed = run(files, options.count, options.seed)
    for line in missed:
        print(line)
    print(f"{options.count - len(missed)} of {options.count} edits in {len(files)} models reported exactly once")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
