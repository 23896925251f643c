"""`irrun inspect FOLDER`: the models, the tokenizer and the configuration of a language model in one summary."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from irload import Limits
from irload.analysis.parameters import parameters
from irload.checks.rules.folders import SPECIAL_TOKENS, VOCABULARIES
from irload.read.folders import MODELS, TOKENIZER_MODELS
from irload.text.folder import Folder
from irload.text.settings import Settings
from irrun.check_text import COLOURS
from irrun.document import Document
from irrun.render import counted, safe, size_text, stdout, table
from irrun.survey import infer_all, survey

FINDING = ("code", "severity", "message")
"""The fields of a finding that the document has, besides its file."""


def folder_report(path: Path, limits: Limits) -> Document:
    """Return the document of schemas/inspect-folder.schema.json. Raises ReadError for other folders."""
    from irload import check

    folder = Folder(path)
    present = [name for name in (*MODELS, *TOKENIZER_MODELS) if folder.has(name)]
    if not any(name in MODELS for name in present):
        folder.file(MODELS[0])  # raises the error
    vocabulary: dict[str, int | None] = {"config.json": _count(folder.config.get("vocab_size"))}
    models: list[Document] = []
    findings: list[Document] = []
    for name in present:
        surveyed = survey(path / name, None, limits)
        infer_all(surveyed)
        model = surveyed.model
        variables = sorted({n.op.attributes["variable_id"] for n in model.nodes if n.type == "ReadValue"})
        models.append(
            {
                "file": name,
                "inputs": {p.any_name: str(p.type) for p in model.inputs},
                "outputs": {p.any_name: str(p.type) for p in model.outputs},
                "parameters": parameters(model),
                "bytes": sum(f.stat().st_size for f in _files(path / name)),
                "variables": variables,
            }
        )
        for node in model.nodes:
            port = VOCABULARIES.get(node.type)
            if name in TOKENIZER_MODELS and port is not None and port < len(node.inputs):
                dims = node.inputs[port].type.shape
                vocabulary[name] = dims[0].lo if dims.rank and dims[0].is_static else None
        report = check(path / name, select=("IR01",), limits=limits)
        findings += [{"file": name, **{key: getattr(f, key) for key in FINDING}} for f in report.findings]
    return {
        "folder": str(path),
        "architectures": list(folder.architectures),
        "models": models,
        "vocabulary": vocabulary,
        "positions": folder.target_positions if folder.has_encoder else folder.positions,
        "special_tokens": {name: ids for name in SPECIAL_TOKENS if (ids := folder.token_ids(name))},
        "chat_template": folder.template is not None,
        "modules": [str(module.get("type", "")) for module in folder.modules],
        "generation": _settings(folder),
        "findings": findings,
    }


def _count(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _files(model: Path) -> list[Path]:
    return [file for file in (model, model.with_suffix(".bin")) if file.is_file()]


def _settings(folder: Folder) -> Document:
    """The settings of generation_config.json that differ from the defaults."""
    given, plain = Settings.of(folder), Settings()
    names = ("max_tokens", "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "beams", "length_penalty")
    return {name: getattr(given, name) for name in names if getattr(given, name) != getattr(plain, name)}


def show_folder(document: Document) -> None:
    """Show the summary on stdout."""
    out = stdout()
    kinds = ", ".join(document["architectures"]) or "a model without config.json"
    out.print(f"[bold]{safe(document['folder'])}[/]  {safe(kinds)}", soft_wrap=True)
    out.print()
    for model in document["models"]:
        count = len(model["variables"])
        facts = [size_text(model["bytes"])]
        facts += [counted(model["parameters"], "parameter")] if model["file"] in MODELS else []
        facts += [f"{count} variable{'' if count == 1 else 's'}"] if model["variables"] else []
        out.print(f"[bold]{safe(model['file'])}[/]  {', '.join(facts)}", soft_wrap=True)
        for side, arrow in (("inputs", "→"), ("outputs", "←")):
            for name, type_ in model[side].items():
                out.print(f"  {arrow} {safe(name)} {safe(type_)}", soft_wrap=True)
        out.print()
    facts = table("configuration", "value")
    for name, value in _facts(document):
        facts.add_row(name, safe(value))
    out.print(facts)
    for finding in document["findings"]:
        mark = f"[{COLOURS[finding['severity']]}]{finding['severity']}:[/]"
        text = safe(f"{finding['file']}: {finding['message']} ({finding['code']})")
        out.print(f"{mark} {text}", soft_wrap=True)


def _facts(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    sizes = {name: count for name, count in document["vocabulary"].items() if count is not None}
    rows = [("vocabulary", ", ".join(f"{count:,} in {name}" for name, count in sizes.items()))]
    rows.append(("positions", "" if document["positions"] is None else f"{document['positions']:,}"))
    rows += [(name, ", ".join(map(str, ids))) for name, ids in document["special_tokens"].items()]
    rows.append(("chat template", "yes" if document["chat_template"] else ""))
    rows.append(("modules", ", ".join(kind.rpartition(".")[2] for kind in document["modules"])))
    rows += [(name, f"{value:g}") for name, value in document["generation"].items()]
    return [(name, value) for name, value in rows if value]
