"""Checking an IR file: every fault in one report, each with a stable code, its place and its reason."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from irload.checks.config import Config, find_config
from irload.checks.releases import parse_release
from irload.checks.report import Finding, Report
from irload.checks.rule import Rule
from irload.checks.rules import all_rules
from irload.checks.subject import examine
from irload.safety import DEFAULT, Limits

__all__ = ["Finding", "Report", "Rule", "all_rules", "check"]


def check(
    path: str | Path,
    weights: Any = None,
    *,
    select: Collection[str] = (),
    ignore: Collection[str] = (),
    target: str | None = None,
    config: Config | None = None,
    limits: Limits = DEFAULT,
) -> Report:
    """Check one IR file and report every fault in it. Never raises for what the file holds.

    `path`: the XML file. `weights`: path or bytes of the .bin file; by default the one beside the XML. `select` and
    `ignore`: codes or their beginnings (`IR4`). `target`: an OpenVINO release (`2023.0`) that must be able to read the
    file. `config`: what a project has decided to ignore, by default the nearest `.irload.toml`. `limits`: what the
    file may ask for; what passes them is reported.
    Raises FileNotFoundError when there is no such file, ValueError for a `target` that is no release.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    start = time.perf_counter()
    config = find_config(path) if config is None else config
    target = target or config.target
    if target is not None and parse_release(target) is None:
        raise ValueError(f"'{target}' is no OpenVINO release; one is written as 2023.0")
    subject = examine(path, weights, target, limits)
    wanted = {r.code for r in all_rules() if _applies(r.code, select or config.select, [*ignore, *config.ignore])}
    findings: list[Finding] = []
    for rule in sorted(all_rules(), key=lambda r: r.last):
        # Rules that nobody asked for still tell the last one what they would have explained.
        if rule.code in wanted or (rule.severity == "error" and subject.faulty):
            found = list(rule.findings(subject))
            findings += [
                f for f in found if rule.code in wanted and not config.exempts(f.code, f.layer_name or "", subject.file)
            ]
    findings.sort(key=lambda f: (f.line is not None, f.line or 0, f.code))
    layers = sum(len(s.raw.layers) for s in subject.scopes)
    return Report(str(path), findings, layers, time.perf_counter() - start, subject.fatal is None, config.strict)


def _applies(code: str, select: Collection[str], ignore: Collection[str]) -> bool:
    chosen = not select or any(code.startswith(s) for s in select)
    return chosen and not any(code.startswith(i) for i in ignore)
