"""IR01x: the files of a language model's folder, which must agree with each other and be complete."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from irload.checks.rule import Hit, file_rule
from irload.checks.subject import Subject
from irload.errors import IRError
from irload.graph import Node
from irload.read.folders import CONFIG_BYTES, DECODER, DETOKENIZER, ENCODER, MODEL, TOKENIZER
from irload.safety.files import read_limited

_COUNTERPARTS = {ENCODER: DECODER, DECODER: ENCODER}
SPECIAL_TOKENS = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id")
VOCABULARIES = {"BPETokenizer": 5, "WordpieceTokenizer": 5, "UnigramTokenizer": 5, "VocabDecoder": 1}
"""The port with one element per token."""
LANGUAGE_MODELS = ("CausalLM", "LMHead", "MaskedLM", "ConditionalGeneration")
"""Parts of the names of architectures that predict a logit per token; classifiers predict one per label."""


@file_rule("IR010", "error", "vocabulary of another size than its model's")
def other_vocabulary(subject: Subject) -> Iterator[Hit]:
    """A tokenizer has more tokens than `vocab_size` of config.json beside it, or the logits of a model have fewer.

    The model has no embedding for the ids beyond its vocabulary, so generation fails or reads wrong rows. A tokenizer
    may have fewer tokens, because models pad their vocabularies.

    Example: openvino_tokenizer.xml with 32001 tokens beside a config.json with `"vocab_size": 32000`.
    """
    size = _vocabulary_size(subject)
    if size is None:
        return
    name = _name(subject)
    kinds = _architectures(Path(subject.file).parent)
    predicts_tokens = any(part in kind for kind in kinds for part in LANGUAGE_MODELS)
    for scope in subject.scopes[:1]:
        for node in scope.graph.nodes:
            port = VOCABULARIES.get(node.type)
            if name in (TOKENIZER, DETOKENIZER) and port is not None and port < len(node.inputs):
                tokens = _length(subject, node, port, 0)
                if tokens is not None and tokens > size:
                    yield Hit(node, f"has {tokens} tokens; config.json states a vocabulary of {size}")
            elif name == MODEL and predicts_tokens and node.type == "Result" and _is_logits(node):
                logits = _length(subject, node, 0, -1)
                if logits is not None and logits < size:
                    yield Hit(node, f"has logits of {logits} tokens; config.json states a vocabulary of {size}")


@file_rule("IR011", "error", "special token beyond the vocabulary")
def special_token(subject: Subject) -> Iterator[Hit]:
    """config.json or generation_config.json beside a model names a special token beyond `vocab_size`.

    The model never predicts the token, so texts do not end before the maximum length.

    Example: a generation_config.json with `"eos_token_id": 32007` beside a config.json with `"vocab_size": 32000`.
    """
    size = _vocabulary_size(subject)
    if size is None or _name(subject) != MODEL:
        return
    for file in ("config.json", "generation_config.json"):
        config = _json(Path(subject.file).parent / file)
        for name in SPECIAL_TOKENS:
            ids = config.get(name)
            for id in cast(list[Any], ids) if isinstance(ids, list) else [ids]:
                if isinstance(id, int) and not 0 <= id < size:
                    yield Hit(None, f"{file} has {name} {id}; the vocabulary has {size} tokens")


@file_rule("IR012", "warning", "folder of a language model without a required file")
def missing_file(subject: Subject) -> Iterator[Hit]:
    """A language model's folder lacks a file that another one of its files requires.

    Generation reads prompts by openvino_tokenizer.xml and prints texts by openvino_detokenizer.xml; the rule applies to
    them if config.json names a causal language model, as folders of other models need no detokenizer. An encoder
    requires a decoder and vice versa, and an encoder of audio requires preprocessor_config.json.

    Example: a folder with openvino_model.xml and openvino_tokenizer.xml alone.
    """
    folder, name = Path(subject.file).parent, _name(subject)
    for needed in _needed(subject, folder, name):
        if not any((folder / file).is_file() for file in needed):
            yield Hit(None, f"the folder has {name} but no {needed[0]}")


def _needed(subject: Subject, folder: Path, name: str) -> Iterator[tuple[str, ...]]:
    """The files that a file requires, each with its alternatives."""
    if name in _COUNTERPARTS:
        yield (_COUNTERPARTS[name],)
    generates = any("CausalLM" in kind for kind in _architectures(folder))
    if name in (TOKENIZER, DETOKENIZER) and generates:
        yield (DETOKENIZER if name == TOKENIZER else TOKENIZER,)
    inputs = {n for node in (subject.model.parameters if subject.model else ()) for o in node.outputs for n in o.names}
    if name == ENCODER and "input_features" in inputs:
        yield ("preprocessor_config.json", "processor_config.json")


@file_rule("IR013", "warning", "state of a language model without an initial value")
def state_without_start(subject: Subject) -> Iterator[Hit]:
    """A variable with a dynamic batch has no initial value in the model of a language model's folder.

    A reset sets all dynamic dims to 0, including the batch, so the first inference of a text appends rows to a variable
    with a batch of 0. Exporters compute the initial value from the batch of the inputs.

    Example: a ReadValue with variable_shape [?,8,?,64] and no input.
    """
    if _name(subject) not in (MODEL, DECODER):
        return
    for scope in subject.scopes[:1]:
        for node in scope.graph.nodes:
            shape = node.op.attributes.get("variable_shape") if node.type == "ReadValue" else None
            if shape is not None and not node.inputs and shape.rank and not shape[0].is_static:
                name = node.op.attributes["variable_id"]
                yield Hit(node, f"reads variable '{name}' {shape}, which a reset leaves without a batch")


def _architectures(folder: Path) -> list[str]:
    kinds = _json(folder / "config.json").get("architectures")
    return [str(kind) for kind in cast(list[Any], kinds)] if isinstance(kinds, list) else []


def _name(subject: Subject) -> str:
    return Path(subject.file).name


def _vocabulary_size(subject: Subject) -> int | None:
    """`vocab_size` of config.json beside a file of a language model's folder."""
    if _name(subject) not in (MODEL, TOKENIZER, DETOKENIZER):
        return None
    config = _json(Path(subject.file).parent / "config.json")
    text = config.get("text_config")
    size = cast(dict[str, Any], text).get("vocab_size") if isinstance(text, dict) else None
    size = config.get("vocab_size") if size is None else size
    return size if isinstance(size, int) and size > 0 else None


def _json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty if the file is missing or has no object, which generation reports."""
    try:
        content = json.loads(read_limited(path, "a configuration", CONFIG_BYTES))
    except (OSError, IRError, ValueError, RecursionError):
        return {}
    return cast(dict[str, Any], content) if isinstance(content, dict) else {}


def _length(subject: Subject, node: Node, port: int, axis: int) -> int | None:
    """The static dim of an input."""
    shape = subject.scopes[0].type(node.inputs[port]).shape
    if not shape.rank or not shape[shape.rank - 1 if axis < 0 else axis].is_static:
        return None
    return int(shape[shape.rank - 1 if axis < 0 else axis].lo)


def _is_logits(node: Node) -> bool:
    return bool(node.inputs) and ("logits" in node.inputs[0].names or "logits" in (node.output_names or ()))
