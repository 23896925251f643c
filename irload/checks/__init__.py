"""Checking an IR file: every fault in one report, each with a stable code, its place and its reason."""

from __future__ import annotations

import time
from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from irload.checks.config import Config, find_config
from irload.checks.report import Finding, Report
from irload.checks.rule import Rule, all_rules
from irload.checks.subject import examine

__all__ = ["Finding", "Report", "Rule", "all_rules", "check"]


def check(
    path: str | Path,
    weights: Any = None,
    *,
    select: Collection[str] = (),
    ignore: Collection[str] = (),
    target: str | None = None,
    config: Config | None = None,
) -> Report:
    """Check one IR file and report every fault in it. Never raises for what the file holds.

    `weights`: path or bytes of the .bin file; by default the one beside the XML. `select` and `ignore`: codes or their
    beginnings (`IR4`). `target`: an OpenVINO release (`2023.0`) that must be able to read the file. `config`: rules to
    ignore, by default those of the nearest `.irload.toml`. Raises FileNotFoundError when there is no such file.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    start = time.perf_counter()
    config = find_config(path) if config is None else config
    subject = examine(path, weights, target or config.target)
    wanted = [r for r in all_rules() if _applies(r.code, select or config.select, [*ignore, *config.ignore])]
    findings = [f for rule in wanted for f in rule.findings(subject) if not _exempt(f, config)]
    findings.sort(key=lambda f: (f.line is None, f.line or 0, f.code))
    layers = sum(len(s.raw.layers) for s in subject.scopes)
    return Report(str(path), findings, layers, time.perf_counter() - start)


def _applies(code: str, select: Collection[str], ignore: Collection[str]) -> bool:
    chosen = not select or any(code.startswith(s) for s in select)
    return chosen and not any(code.startswith(i) for i in ignore)


def _exempt(finding: Finding, config: Config) -> bool:
    """True when an exemption of the configuration covers the finding."""
    return any(
        finding.code.startswith(e.code)
        and fnmatchcase(finding.layer_name or "", e.layer)
        and fnmatchcase((finding.file or "").replace("\\", "/"), e.file)
        for e in config.exemptions
    )
