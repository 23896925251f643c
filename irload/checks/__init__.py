"""Checks an IR file and reports every fault, each with a stable code, its location and its reason."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from irload.checks.config import Config
from irload.checks.releases import known_releases, parse_release
from irload.checks.report import Finding, Report, Suppressed, Suppression
from irload.checks.rule import Rule
from irload.checks.rules import all_rules
from irload.checks.subject import examine
from irload.errors import InputInvalid
from irload.safety.limits import DEFAULT, Limits

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
    """Check one IR file and report every fault in it. Never raises for faults in the file.

    - `path`: the XML file.
    - `weights`: the path or the bytes of the .bin file; by default the file next to the XML.
    - `select`: report only these rules; `ignore`: do not report these. Codes (`IR401`) or prefixes of codes (`IR4`).
    - `target`: an OpenVINO release (`2023.0`) that must be able to read the file.
    - `config`: a configuration, as `irload.checks.config.load_config(path)` returns it; empty by default.
    - `limits`: maximum sizes, counts and times. A file that exceeds a limit is reported.

    Raises FileNotFoundError if the file does not exist, InputInvalid if no rule has a code of `select` or `ignore`,
    ValueError if `target` is not a release.
    """
    require_codes((*select, *ignore))
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    start = time.perf_counter()
    config = config or Config()
    target = target or config.target
    if target is not None and parse_release(target) is None:
        raise ValueError(f"'{target}' is not an OpenVINO release. {known_releases()}")
    subject = examine(path, weights, target, limits)
    wanted = {r.code for r in all_rules() if _begins(r.code, select or config.select or ("IR",))}
    findings: list[Finding] = []
    suppressed: list[Suppressed] = []
    for rule in sorted(all_rules(), key=lambda r: r.last):
        # Error rules that are not selected run, too: IR310, which runs last, reports only lines without another error.
        if rule.code in wanted or (rule.severity == "error" and subject.faulty):
            for finding in list(rule.findings(subject)):
                if rule.code not in wanted:
                    continue
                by = _OPTION if _begins(rule.code, ignore) else None
                by = by or config.ignoring(finding.code, finding.layer_name or "", subject.file)
                if by is None:
                    findings.append(finding)
                else:
                    suppressed.append(Suppressed(finding, by))
    findings.sort(key=_order)
    suppressed.sort(key=lambda s: _order(s.finding))
    layers = sum(len(s.raw.layers) for s in subject.scopes)
    seconds = time.perf_counter() - start
    return Report(str(path), findings, layers, seconds, subject.fatal is None, config.strict, suppressed)


def require_codes(codes: Iterable[str]) -> None:
    """Raise InputInvalid if no rule has one of these codes or prefixes."""
    for code in codes:
        if not code or not any(r.code.startswith(code) for r in all_rules()):
            raise InputInvalid(f"no rule has the code '{code}'; irrun check --rules lists the codes")


_OPTION = Suppression("ignore")
"""The caller's `select` and `ignore`."""


def _begins(code: str, beginnings: Collection[str]) -> bool:
    return any(code.startswith(b) for b in beginnings)


def _order(finding: Finding) -> tuple[bool, int, str]:
    return finding.line is not None, finding.line or 0, finding.code
