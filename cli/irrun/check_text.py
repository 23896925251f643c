"""The report of `irrun check` as text, and the explanation of rules."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from irload.checks import Finding, Rule, all_rules
from irrun.check_result import CheckResult
from irrun.render import counted, safe, stdout, table

COLOURS = {"error": "bold red", "warning": "yellow", "note": "cyan"}
LAYER = re.compile(r"'[^']*'( \(id \d+\))?")
FEW = 3
"""Maximum number of similar warnings that are shown separately."""
LINES = 8
"""Maximum number of line numbers listed for merged findings."""


def render(result: CheckResult, *, plain: bool = False) -> str:
    """Show the reports on stdout, or return them as text if `plain`."""
    text = io.StringIO()
    console = Console(file=text, width=100_000, highlight=False, emoji=False) if plain else stdout()
    for report in result.reports:
        shown = [f for f in report.findings if result.notes or f.severity != "note"]
        if shown:
            console.print(f"[bold]{safe(report.file)}[/]", soft_wrap=True)
            console.print(_rows(shown, every=result.every))
            console.print()
    for suppression in result.unused:
        console.print(f"[dim]{safe(suppression.source)} suppresses nothing[/]", soft_wrap=True)
    console.print(_verdict(result), soft_wrap=True)
    return text.getvalue()


def _rows(findings: Sequence[Finding], *, every: bool) -> Table:
    """Show each finding in at most three lines: location and message, the cause, and the lines of repetitions."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    for name in ("line", "severity", "code"):
        grid.add_column(name, justify="right" if name == "line" else "left", no_wrap=True)
    grid.add_column("text", overflow="fold")
    for finding, lines in _merged(findings, every=every):
        where = f"[bold]{safe(finding.layer)}[/]: " if finding.layer else ""
        line = "" if finding.line is None else str(finding.line)
        colour = COLOURS[finding.severity]
        severity = f"[{colour}]{finding.severity}[/]"
        grid.add_row(f"  [dim]{line}[/]", severity, finding.code, f"{where}{safe(finding.message)}")
        if finding.cause:
            because = "" if finding.cause.endswith("?") else "because "
            grid.add_row("", "", "", f"[dim]{because}{safe(finding.cause)}[/]")
        if lines:
            first = ", ".join(map(str, lines[:LINES])) + (", …" if len(lines) > LINES else "")
            grid.add_row("", "", "", f"[dim]and {len(lines):,} more like this, in lines {first}; --all lists them[/]")
    return grid


def _merged(findings: Sequence[Finding], *, every: bool) -> list[tuple[Finding, list[int]]]:
    """The findings to show, each with the lines of the findings merged into it.

    Unless `every`, many warnings or notes that differ only in layers are shown as one. Errors are all shown.
    """
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        alike.setdefault(_without_layers(finding), []).append(finding)
    shown: list[tuple[Finding, list[int]]] = []
    for finding in findings:
        group = alike[_without_layers(finding)]
        if every or finding.severity == "error" or len(group) <= FEW:
            shown.append((finding, []))
        elif finding is group[0]:
            shown.append((finding, [f.line for f in group[1:] if f.line is not None]))
    return shown


def _without_layers(finding: Finding) -> tuple[str, ...]:
    """The parts of a finding by which it is merged with others: names and ids of layers are left out."""
    return finding.severity, finding.code, *(LAYER.sub("", text) for text in (finding.message, finding.cause))


def _verdict(result: CheckResult) -> str:
    """Return a one-line summary: ✓ or ✗, the counts per severity and the number of files."""
    reports, passed = result.reports, result.passed
    count = {kind: sum(r.count(kind) for r in reports) for kind in ("error", "warning", "note")}
    faulty = sum(1 for r in reports if r.errors or r.warnings)
    totals = " and ".join(f"[{COLOURS[k]}]{counted(count[k], k)}[/]" for k in ("error", "warning") if count[k])
    files = counted(len(reports), "file")
    if totals:
        mark = "[bold red]✗[/]" if count["error"] else "[yellow]![/]"
        verdict = f"{mark} {totals} in {f'{faulty} of {files}' if len(reports) > 1 else files}"
    elif reports:
        verdict = f"[bold green]✓[/] no faults in {files}, {counted(sum(r.layers for r in reports), 'layer')}"
    else:
        verdict = "[yellow]![/] no IR files found"
    asides = [counted(count["note"], "note") + ("" if result.notes else ", shown by --notes")] if count["note"] else []
    suppressed = sum(len(r.suppressed) for r in reports)
    asides += [f"{counted(suppressed, 'finding')} suppressed"] if suppressed else []
    asides += [f"{counted(passed, 'XML file')} that are not IR skipped"] if passed else []
    return f"{verdict}[dim]{''.join(f' ({a})' for a in asides)}[/]"


# -- rules -------------------------------------------------------------------------------------------------------------


def show_rules() -> None:
    """List all rules by category."""
    shown = table("code", "severity", "rule", "group")
    for rule in all_rules():
        shown.add_row(rule.code, f"[{COLOURS[rule.severity]}]{rule.severity}[/]", safe(rule.title), rule.category)
    stdout().print(shown)


def show_explanation(rule: Rule) -> None:
    """Explain one rule: condition, reason, example."""
    console = stdout()
    console.print(f"[bold]{rule.code}[/]  [{COLOURS[rule.severity]}]{rule.severity}[/]  {safe(rule.title)}")
    console.print()
    for paragraph in rule.text.split("\n\n"):
        console.print(safe(" ".join(paragraph.split())))
        console.print()
    console.print(f"[dim]example[/]  {safe(rule.example)}")
