"""`irrun check`: reports every fault of IR files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from irload import Limits
from irload.record import record
from irrun.arguments import FileToWrite, extension_option, limit_option, weights_option
from irrun.completion import rule_codes
from irrun.records import records

CODES = "CODES"
FORMATS = ("text", "json", "sarif", "github", "junit")
BY_SUFFIX = {".sarif": "sarif", ".json": "json", ".xml": "junit"}
"""The format of the file given with -o, unless --format names another."""


@record()
class Files:
    """The files to check."""

    paths: tuple[Path, ...]
    weights: Path | None
    limits: Limits
    ir_only: bool


@record()
class Rules:
    """The rules that apply, and the findings that make a file fail."""

    select: tuple[str, ...]
    ignore: tuple[str, ...]
    strict: bool
    target: str | None
    named: Path | None
    no_config: bool


@record()
class ReportForm:
    """The form of the report, and its file."""

    notes: bool
    every: bool
    form: str | None
    as_json: bool
    output: Path | None
    force: bool

    def format(self) -> str:
        """Return one of `FORMATS`."""
        if self.as_json:
            return "json"
        return self.form or BY_SUFFIX.get(self.output.suffix.lower() if self.output else "", "text")


@click.command("check", no_args_is_help=True)
@click.argument("paths", nargs=-1, metavar="[MODEL|DIR]...", type=click.Path(path_type=Path))
@weights_option
@extension_option
@limit_option
@click.option("--notes", is_flag=True, help="Show notes in full; by default they are only counted.")
@click.option("--all", "every", is_flag=True, help="Show each warning, even if many layers have the same one.")
@click.option(
    "--select", multiple=True, metavar=CODES, shell_complete=rule_codes, help="Only these rules, for example IR401,IR6."
)
@click.option("--ignore", multiple=True, metavar=CODES, shell_complete=rule_codes, help="All rules except these.")
@click.option("--strict", is_flag=True, help="Exit with code 1 for warnings, too, not only for errors.")
@click.option(
    "--target",
    metavar="RELEASE",
    help="Report operations and IR versions that this OpenVINO release cannot read, for example 2023.0.",
)
@click.option("--ir-only", is_flag=True, help="Skip named XML files that are not IR, as in folders.")
@click.option(
    "--config",
    "named",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The configuration with suppressions; default: .irload.toml in the working directory.",
)
@click.option("--no-config", is_flag=True, help="Do not read .irload.toml of the working directory.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Format of the report; default: by the suffix of -o, else text.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option(
    "-o",
    "--output",
    type=FileToWrite(path_type=Path),
    metavar="FILE",
    help="Write the report to a file: .sarif, .json, .xml (JUnit), or text.",
)
@click.option("--force", is_flag=True, help="Let -o replace a file that is not a report of irrun check.")
@click.option("--rules", "list_rules", is_flag=True, help="List all rules.")
@click.option("--explain", metavar="CODE", shell_complete=rule_codes, help="Explain a rule, with an example.")
@records(files=Files, rules=Rules, report=ReportForm)
def command(files: Files, rules: Rules, report: ReportForm, list_rules: bool, explain: str | None) -> int:
    """Check IR files (.xml with the .bin beside it) and report every fault in them.

    Folders are searched for IR files. Exit code: 3 if a file cannot be read as IR or no IR file exists, else 1 if there
    is an error, else 0. Suppressions come from .irload.toml in the working directory, or from --config; an
    .irload.toml in another folder has no effect.

    \b
      irrun check models/
      irrun check model.xml --target 2023.0 --strict
      irrun check models/ -o check.sarif
    """  # noqa: D301
    from irload.checks.config import Config
    from irrun.check_formats import document, is_report
    from irrun.check_result import CheckResult
    from irrun.check_text import render, show_explanation, show_rules
    from irrun.render import safe, stderr

    if list_rules or explain is not None:
        if explain is not None:
            show_explanation(_rule(explain))
        else:
            show_rules()
        return 0
    if not files.paths:
        raise click.UsageError("give a MODEL or a DIR")
    form, output = report.format(), report.output
    if output is not None and output.exists() and not report.force and not is_report(output):
        raise click.UsageError(f"{output} exists already and is not a report of irrun check; --force replaces it")
    config = Config() if rules.no_config else _config(rules.named)
    if config.path is not None:
        stderr().print(f"irrun: {safe(config.path)}: {safe(config.effect())}", soft_wrap=True)
    reports, passed = _check(files, rules, config)
    used = {s.by for r in reports for s in r.suppressed}
    # A commit hook checks only the files of a commit; an entry that matches none of them may match others.
    unused = [] if files.ir_only else [s for s in config.suppressions() if s not in used]
    result = CheckResult(reports, passed, unused, notes=report.notes, every=report.every)
    if output is not None:
        _write(output, document(result, form))
    if form == "text" or output is not None:
        render(result)
    else:
        click.echo(document(result, form, ascii_only=None))
    return _exit_code(reports, rules.strict, none_is_fine=files.ir_only)


def _check(files: Files, rules: Rules, config: Any) -> tuple[list[Any], int]:
    from irload.checks import check
    from irload.checks.search import find_models
    from irrun.render import progress

    select, ignore = _codes(rules.select), _codes(rules.ignore)
    models, passed = find_models(files.paths, only_ir=files.ir_only)
    if files.weights is not None and len(models) != 1:
        raise click.UsageError(f"--bin requires a single MODEL, found {len(models)}")
    how: dict[str, Any] = {"select": select, "ignore": ignore, "target": rules.target, "limits": files.limits}
    reports: list[Any] = []
    with progress(f"checking {len(models)} files"):
        for file in models:
            try:
                reports.append(check(file, files.weights, config=config, **how))
            except ValueError as error:
                raise click.UsageError(f"--target: {error}") from None
    return reports, passed


def _config(named: Path | None) -> Any:
    """Return the named configuration, else that in the working directory. Raises UsageError if it is invalid."""
    from irload import IRError
    from irload.checks.config import find_config, load_config

    try:
        config = find_config(Path()) if named is None else load_config(named)
    except IRError as error:
        raise click.UsageError(str(error)) from None
    _codes([*config.select, *config.ignore, *(e.code for e in config.exemptions)])
    return config


def _exit_code(reports: Sequence[Any], strict: bool, *, none_is_fine: bool) -> int:
    from irrun.failures import FINDINGS, OK, UNREADABLE

    if any(not r.readable for r in reports) or not (reports or none_is_fine):
        return UNREADABLE
    return OK if all(r.ok(strict=strict or r.strict) for r in reports) else FINDINGS


def _codes(texts: Sequence[str]) -> list[str]:
    """Return the rule codes of options and configuration; a prefix selects several rules. Raises InputInvalid."""
    from irload.checks import require_codes

    codes = [code.strip().upper() for text in texts for code in text.split(",") if code.strip()]
    require_codes(codes)
    return codes


def _rule(code: str) -> Any:
    from irload.checks import all_rules

    rule = next((r for r in all_rules() if r.code == code.strip().upper()), None)
    if rule is None:
        raise click.UsageError(f"no rule has the code '{code}'; irrun check --rules lists the codes")
    return rule


def _write(path: Path, text: str) -> None:
    from irload.write.atomic import write_atomically

    write_atomically(path, lambda stream: stream.write(text.rstrip("\n").encode("utf-8", "backslashreplace") + b"\n"))
