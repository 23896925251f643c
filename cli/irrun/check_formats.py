"""The result of `irrun check` as a document: text, JSON, SARIF, GitHub workflow commands, JUnit XML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from irload import __version__
from irload.checks import Finding, Report, all_rules
from irload.checks.report import reports_to_dict
from irload.checks.sarif import to_sarif
from irrun.check_result import CheckResult
from irrun.check_text import render
from irrun.render import counted, json_text, plain

HEAD = 1 << 12
"""Bytes read at each end of a file to recognise a report."""
_OURS = re.compile(r'\{\s*"tool": "irload",|"driver": \{\s*"name": "irload",|<testsuites name="irrun check"')
_VERDICT = re.compile(
    r"^(::notice title=irrun check::|✓ no faults in |✗ \d|! \d|! no IR files found)[^\n]*\n?\Z", re.MULTILINE
)


def document(result: CheckResult, form: str, *, ascii_only: bool | None = False) -> str:
    """Return the document in a format; `ascii_only` as for `json_text`."""
    if form == "text":
        return render(result, plain=True)
    if form in ("github", "junit"):
        return "\n".join(_github(result) if form == "github" else _junit(result))
    if form == "sarif":
        return json_text(to_sarif(result.reports, all_rules(), __version__, result.unused), ascii_only=ascii_only)
    return json_text(reports_to_dict(result.reports, __version__, result.unused), ascii_only=ascii_only)


def is_report(file: Path) -> bool:
    """Return True if a file is a report that `irrun check -o` wrote."""
    if not file.is_file():
        return False
    with file.open("rb") as stream:
        head = stream.read(HEAD)
        stream.seek(max(len(head), file.stat().st_size - HEAD))
        tail = stream.read(HEAD) or head
    return bool(_OURS.search(head.decode("utf-8", "replace")) or _VERDICT.search(tail.decode("utf-8", "replace")))


def _text(finding: Finding) -> str:
    text = f"{finding.layer}: {finding.message}" if finding.layer else finding.message
    return plain(f"{text} ({finding.cause})" if finding.cause else text)


# -- GitHub ------------------------------------------------------------------------------------------------------------


def _github(result: CheckResult) -> Iterator[str]:
    """Return workflow commands that annotate the files at their lines."""
    count = dict.fromkeys(("error", "warning", "note"), 0)
    for report in result.reports:
        for finding in report.findings:
            count[finding.severity] += 1
            if finding.severity == "note" and not result.notes:
                continue
            kind = "notice" if finding.severity == "note" else finding.severity
            location = f"file={_property(Path(report.file).as_posix())}"
            line = f",line={finding.line}" if finding.line is not None else ""
            yield f"::{kind} {location}{line},title={finding.code}::{_data(_text(finding))}"
    for suppression in result.unused:
        yield f"::notice title=irrun check::{_data(plain(suppression.source))} suppresses nothing"
    suppressed = sum(len(r.suppressed) for r in result.reports)
    totals = ", ".join(counted(n, kind) for kind, n in count.items())
    yield f"::notice title=irrun check::{totals}, {suppressed} suppressed in {counted(len(result.reports), 'file')}"


def _data(text: str) -> str:
    """Encode a command's message as one line; the runner decodes it."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Encode a property of a command, where `:` and `,` are special, too."""
    return _data(plain(text)).replace(":", "%3A").replace(",", "%2C")


# -- JUnit -------------------------------------------------------------------------------------------------------------


def _junit(result: CheckResult) -> Iterator[str]:
    """Return one suite per file, one test case per finding: failed for errors, skipped if suppressed, else passed."""
    failures = sum(r.errors for r in result.reports)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<testsuites name="irrun check" failures="{failures}">'
    for report in result.reports:
        cases = [_case(report, f, result) for f in report.findings]
        cases += [
            f"    {_open_case(report, s.finding)}><skipped message={_attribute(s.by.source)}/></testcase>"
            for s in report.suppressed
        ]
        cases = cases or [f"    <testcase classname={_attribute(report.file)} name={quoteattr('no faults')}/>"]
        totals = f'tests="{len(cases)}" failures="{report.errors}" skipped="{len(report.suppressed)}"'
        yield f'  <testsuite name={_attribute(report.file)} {totals} time="{report.seconds:.3f}">'
        yield from cases
        yield "  </testsuite>"
    yield "</testsuites>"


def _case(report: Report, finding: Finding, result: CheckResult) -> str:
    text = _text(finding)
    location = plain(f"{report.file}:{finding.line}: " if finding.line is not None else f"{report.file}: ")
    if finding.severity == "error":
        body = f'<failure type="error" message={quoteattr(text)}>{escape(location + text)}</failure>'
    elif finding.severity == "warning" or result.notes:
        body = f"<system-out>{escape(f'{location}{finding.severity}: {text}')}</system-out>"
    else:
        return f"    {_open_case(report, finding)}/>"
    return f"    {_open_case(report, finding)}>{body}</testcase>"


def _open_case(report: Report, finding: Finding) -> str:
    line = f" at line {finding.line}" if finding.line is not None else ""
    return f"<testcase classname={_attribute(report.file)} name={_attribute(f'{finding.code}{line}')}"


def _attribute(text: str) -> str:
    return quoteattr(plain(text))
