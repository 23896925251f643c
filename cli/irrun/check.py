"""`irrun check`: every fault of IR files, in one report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from irload import Limits
from irrun.arguments import extension_option, limit_option, weights_option
from irrun.completion import rule_codes

CODES = "CODES"
FORMATS = ("text", "json", "sarif", "github", "junit")


@click.command("check", no_args_is_help=True)
@click.argument("paths", nargs=-1, metavar="[MODEL|DIR]...", type=click.Path(path_type=Path))
@weights_option
@extension_option
@limit_option
@click.option("--notes", is_flag=True, help="Show notes, too; they are only counted otherwise.")
@click.option(
    "--select", multiple=True, metavar=CODES, shell_complete=rule_codes, help="Only these rules, as IR401,IR6."
)
@click.option("--ignore", multiple=True, metavar=CODES, shell_complete=rule_codes, help="All rules but these.")
@click.option("--strict", is_flag=True, help="Let warnings make the exit code 1, as errors do.")
@click.option("--target", metavar="RELEASE", help="An OpenVINO release that must read the files, as 2023.0.")
@click.option("--ir-only", is_flag=True, help="Pass over XML files that are something else, as in folders.")
@click.option(
    "--config",
    "named",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What a project ignores; by default .irload.toml of the working directory.",
)
@click.option("--no-config", is_flag=True, help="Pass over .irload.toml of the working directory.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", help="How to report.")
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write the report to a file.")
@click.option("--force", is_flag=True, help="Let -o replace what is no report of irrun check.")
@click.option("--rules", "list_rules", is_flag=True, help="List all rules.")
@click.option("--explain", metavar="CODE", shell_complete=rule_codes, help="Explain a rule, with an example.")
def command(
    paths: tuple[Path, ...],
    weights: Path | None,
    notes: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    strict: bool,
    target: str | None,
    ir_only: bool,
    named: Path | None,
    no_config: bool,
    form: str,
    limits: Limits,
    as_json: bool,
    output: Path | None,
    force: bool,
    list_rules: bool,
    explain: str | None,
) -> int:
    """Check IR files (.xml with the .bin beside it) and report every fault in them.

    Folders are searched for IR files. The exit code is 3 where a file is no IR that can be read or there is none, else
    1 where there is an error, else 0. What a project has decided to ignore stands in .irload.toml of the working
    directory, or in --config; such a file in another folder counts for nothing.

    \b
      irrun check models/
      irrun check model.xml --target 2023.0 --strict
      irrun check models/ --format sarif -o check.sarif
    """  # noqa: D301
    from irload.checks.config import Config
    from irrun.check_formats import document, is_report
    from irrun.check_result import Result
    from irrun.findings import render, show_explanation, show_rules
    from irrun.render import safe, stderr

    if list_rules or explain is not None:
        if explain is not None:
            show_explanation(_rule(explain))
        else:
            show_rules()
        return 0
    if not paths:
        raise click.UsageError("name a MODEL or a DIR")
    form = "json" if as_json else form
    if output is not None and output.exists() and not force and not is_report(output):
        raise click.UsageError(f"{output} exists already and is no report of irrun check; --force replaces it")
    config = Config() if no_config else _config(named)
    if config.path is not None:
        stderr().print(f"irrun: {safe(config.path)}: {safe(config.effect())}", soft_wrap=True)
    reports, passed = _check(paths, weights, _codes(select), _codes(ignore), target, limits, config, ir_only=ir_only)
    used = {s.by for r in reports for s in r.suppressed}
    # A hook sees only the files of a commit, so what suppresses nothing in these may do so in others.
    unused = [] if ir_only else [s for s in config.suppressions() if s not in used]
    result = Result(reports, passed, unused, notes=notes)
    if output is not None:
        _write(output, document(result, form))
    if form == "text" or output is not None:
        render(result)
    else:
        click.echo(document(result, form, ascii_only=None))
    return _exit_code(reports, strict, none_is_fine=ir_only)


def _check(
    paths: Sequence[Path],
    weights: Path | None,
    select: Sequence[str],
    ignore: Sequence[str],
    target: str | None,
    limits: Limits,
    config: Any,
    *,
    ir_only: bool,
) -> tuple[list[Any], int]:
    from irload.checks import check
    from irload.checks.search import find_models
    from irrun.render import progress

    files, passed = find_models(paths, only_ir=ir_only)
    if weights is not None and len(files) != 1:
        raise click.UsageError(f"--bin is for one file, found {len(files)}")
    reports: list[Any] = []
    with progress(f"checking {len(files)} files"):
        for file in files:
            try:
                reports.append(
                    check(file, weights, select=select, ignore=ignore, target=target, config=config, limits=limits)
                )
            except ValueError as error:
                raise click.UsageError(f"--target: {error}") from None
    return reports, passed


def _config(named: Path | None) -> Any:
    """The configuration that is named, else that of the working directory. Raises UsageError for one that is wrong."""
    from irload import IRError
    from irload.checks.config import find_config, load_config

    try:
        config = find_config(Path()) if named is None else load_config(named)
    except IRError as error:
        raise click.UsageError(str(error)) from None
    _codes([*config.select, *config.ignore, *(e.code for e in config.exemptions)])
    return config


def _exit_code(reports: Sequence[Any], strict: bool, *, none_is_fine: bool) -> int:
    from irrun.main import FINDINGS, OK, UNREADABLE

    if any(not r.readable for r in reports) or not (reports or none_is_fine):
        return UNREADABLE
    return OK if all(r.ok(strict=strict or r.strict) for r in reports) else FINDINGS


def _codes(texts: Sequence[str]) -> list[str]:
    """The codes of options and configuration, each the beginning of some rule's. Raises UsageError."""
    from irload.checks import all_rules

    codes = [code.strip().upper() for text in texts for code in text.split(",") if code.strip()]
    for code in codes:
        if not any(r.code.startswith(code) for r in all_rules()):
            raise click.UsageError(f"no rule has the code {code}; irrun check --rules lists them")
    return codes


def _rule(code: str) -> Any:
    from irload.checks import all_rules

    found = next((r for r in all_rules() if r.code == code.strip().upper()), None)
    if found is None:
        raise click.UsageError(f"no rule has the code {code}; irrun check --rules lists them")
    return found


def _write(path: Path, text: str) -> None:
    from irload.write.atomic import write_atomically

    write_atomically(path, lambda stream: stream.write(text.rstrip("\n").encode("utf-8", "backslashreplace") + b"\n"))
