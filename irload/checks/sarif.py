"""Reports as SARIF 2.1.0, the format of code-scanning viewers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from irload.checks.report import Finding, Report, Suppression
from irload.checks.rule import Rule

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def to_sarif(
    reports: Sequence[Report], rules: Sequence[Rule], version: str, unused: Sequence[Suppression] = ()
) -> dict[str, Any]:
    """The SARIF log of several reports: one run, all rules, one result per finding, including suppressed ones."""
    index = {rule.code: k for k, rule in enumerate(rules)}
    driver = {
        "name": "irload",
        "semanticVersion": version,
        "rules": [_rule(rule) for rule in rules],
    }
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "artifacts": [{"location": {"uri": _uri(r.file)}} for r in reports],
        "results": [
            result
            for k, r in enumerate(reports)
            for result in (
                *(_result(f, index, k) for f in r.findings),
                *({**_result(s.finding, index, k), "suppressions": [_suppression(s.by)]} for s in r.suppressed),
            )
        ],
    }
    if unused:
        notes = [{"level": "note", "message": {"text": f"{s.source} suppresses nothing"}} for s in unused]
        run["invocations"] = [{"executionSuccessful": True, "toolConfigurationNotifications": notes}]
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _suppression(by: Suppression) -> dict[str, Any]:
    return {"kind": "external", "justification": f"{by.source}: {by.reason}" if by.reason else by.source}


def _rule(rule: Rule) -> dict[str, Any]:
    summary, _, rest = rule.explanation.partition("\n\n")
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in re.findall(r"\w+", rule.title)),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": " ".join(summary.split())},
        "help": {"text": " ".join(rest.split()) or rule.title},
        "defaultConfiguration": {"level": rule.severity},
        "properties": {"tags": [rule.category]},
    }


def _result(finding: Finding, index: dict[str, int], artifact: int) -> dict[str, Any]:
    text = f"{finding.layer}: {finding.message}" if finding.layer else finding.message
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(finding.file or ""), "index": artifact}}
    if finding.line is not None:
        physical["region"] = {"startLine": finding.line}
    location: dict[str, Any] = {"physicalLocation": physical}
    if finding.layer_id is not None:
        name = finding.layer_name or str(finding.layer_id)
        location["logicalLocations"] = [{"name": name, "kind": "element", "fullyQualifiedName": finding.layer}]
    return {
        "ruleId": finding.code,
        "ruleIndex": index[finding.code],
        "level": finding.severity,
        "message": {"text": f"{text} ({finding.cause})" if finding.cause else text},
        "locations": [location],
        # Stable under edits elsewhere in the file: the line is not part of it.
        "partialFingerprints": {"irloadFinding/v1": _fingerprint(finding)},
    }


def _fingerprint(finding: Finding) -> str:
    parts = (finding.code, finding.layer_name or "", finding.port or "", finding.message)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _uri(path: str) -> str:
    """A relative reference for relative paths, a file: URI for absolute ones."""
    pure = Path(path)
    return pure.as_uri() if pure.is_absolute() else quote(pure.as_posix().encode("utf-8", "surrogateescape"))
