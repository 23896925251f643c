"""Rules about the files of a language model's folder, on files that consist of the layers that they examine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import irload
from irload.read.folders import DECODER, DETOKENIZER, ENCODER, MODEL, TOKENIZER
from models import ir

SIZE = 100


def config(folder: Path, name: str = "config.json", **values: Any) -> None:
    (folder / name).write_text(json.dumps(values), encoding="utf-8")


def saved(folder: Path, graph: ir.Graph, name: str) -> Path:
    file = folder / name
    file.write_text(f'<net name="n" version="11">{graph.text()}</net>', encoding="utf-8")
    return file


def said(file: Path, *codes: str) -> list[str]:
    return [f.message for f in irload.check(file).findings if f.code in codes]


def tokenizer(type: str, port: int, tokens: int, ports: int) -> ir.Graph:
    """A layer whose input `port` has `tokens` elements; the other inputs have 5 · SIZE."""
    graph = ir.Graph()
    inputs = [graph.parameter(f"p{k}", "i32", (tokens if k == port else 5 * SIZE,)) for k in range(ports)]
    (out,) = graph.layer(type, inputs, [("i32", ("?",))], version="extension")
    graph.result(out)
    return graph


@pytest.mark.parametrize(
    ("type", "port"), [("BPETokenizer", 5), ("WordpieceTokenizer", 5), ("UnigramTokenizer", 5), ("VocabDecoder", 1)]
)
@pytest.mark.parametrize("name", [TOKENIZER, DETOKENIZER, MODEL, "other.xml"])
def test_vocabularies_of_tokenizers(tmp_path, type, port, name):
    config(tmp_path, vocab_size=SIZE)
    applies = name in (TOKENIZER, DETOKENIZER)
    for tokens, ports, reported in (
        (SIZE + 1, 8, True),
        (SIZE, 8, False),
        (SIZE + 1, port + 1, True),
        (0, port, False),
    ):
        findings = said(saved(tmp_path, tokenizer(type, port, tokens, ports), name), "IR010")
        message = f"has {tokens} tokens; config.json states a vocabulary of {SIZE}"
        assert findings == ([message] if reported and applies else [])


def logits(dims: ir.Dims, name: str = "logits", output: str = "") -> ir.Graph:
    graph = ir.Graph()
    graph.result(graph.parameter(name, "f32", dims))
    if output:
        graph.layers[-1] = graph.layers[-1].replace('version="opset1"', f'version="opset1" output_names="{output}"')
    return graph


@pytest.mark.parametrize(
    ("graph", "reported"),
    [
        *((logits((1, 200, SIZE - 1)), True), (logits((1, 2, SIZE)), False), (logits((1, 2, SIZE + 1)), False)),
        *((logits((1, 2, "?")), False), (logits(()), False), (logits((9, 9, 9), "hidden"), False)),
        *((logits((9, 9, 9), "hidden", "logits"), True), (logits(("?", "?", 9)), True)),
    ],
)
def test_logits_of_models(tmp_path, graph, reported):
    config(tmp_path, vocab_size=SIZE, architectures=["LlamaForCausalLM"])
    assert bool(said(saved(tmp_path, graph, MODEL), "IR010")) == reported
    assert said(saved(tmp_path, graph, TOKENIZER), "IR010") == []
    config(tmp_path, vocab_size=0, architectures=["LlamaForCausalLM"])
    assert said(tmp_path / MODEL, "IR010") == []


@pytest.mark.parametrize(
    ("architectures", "reported"),
    [
        *((["GPT2LMHeadModel"], True), (["BertForMaskedLM"], True), (["LlavaForConditionalGeneration"], True)),
        *((["BertForSequenceClassification"], False), (["BertForTokenClassification"], False), (None, False)),
    ],
)
def test_logits_of_labels_are_not_compared(tmp_path, architectures, reported):
    config(tmp_path, vocab_size=SIZE, architectures=architectures)
    assert bool(said(saved(tmp_path, logits((1, 2)), MODEL), "IR010")) == reported


def test_the_vocabulary_of_the_text_part_precedes(tmp_path):
    file = saved(tmp_path, logits((1, 2, 50)), MODEL)
    for values, reported in (
        ({"vocab_size": 60, "text_config": {"vocab_size": 40}}, False),
        ({"vocab_size": 40, "text_config": {"vocab_size": 60}}, True),
        ({"vocab_size": 60, "text_config": {}}, True),
        ({"vocab_size": 1}, False),
        ({"vocab_size": "60"}, False),
        ({"text_config": []}, False),
    ):
        config(tmp_path, architectures=["LlamaForCausalLM"], **values)
        assert bool(said(file, "IR010")) == reported


@pytest.mark.parametrize(
    ("id", "reported"),
    [(0, False), (SIZE - 1, False), (SIZE, True), (-1, True), (None, False), ("7000", False), ([0, SIZE, -2], True)],
)
@pytest.mark.parametrize("name", ["bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id"])
def test_special_tokens(tmp_path, name, id, reported):
    file = saved(tmp_path, logits((1, 2, SIZE)), MODEL)
    config(tmp_path, vocab_size=SIZE, **{name: id})
    config(tmp_path, "generation_config.json", **{name: id})
    ids = [] if not reported else [n for n in ([id] if isinstance(id, int) else id) if not 0 <= n < SIZE]
    assert said(file, "IR011") == [
        f"{file} has {name} {n}; the vocabulary has {SIZE} tokens"
        for file in ("config.json", "generation_config.json")
        for n in ids
    ]
    assert said(saved(tmp_path, logits((1, 2, SIZE)), TOKENIZER), "IR011") == []


@pytest.mark.parametrize(
    ("name", "others", "missing"),
    [
        *((TOKENIZER, [], DETOKENIZER), (DETOKENIZER, [], TOKENIZER), (TOKENIZER, [DETOKENIZER], None)),
        *((MODEL, [], None), (ENCODER, [], DECODER), (DECODER, [], ENCODER), (ENCODER, [DECODER], None)),
    ],
)
def test_files_that_require_others(tmp_path, name, others, missing):
    config(tmp_path, architectures=["SomeModel", "GemmaForCausalLM"])
    for other in others:
        saved(tmp_path, logits((1,)), other)
    expected = [f"the folder has {name} but no {missing}"] if missing else []
    assert said(saved(tmp_path, logits((1,)), name), "IR012") == expected
    config(tmp_path, architectures="CausalLM")
    assert bool(said(tmp_path / name, "IR012")) == (missing in (ENCODER, DECODER))


@pytest.mark.parametrize("name", [ENCODER, DECODER])
def test_encoders_of_audio(tmp_path, name):
    for other in (ENCODER, DECODER):
        saved(tmp_path, logits((1, 2), "input_features"), other)
    missing = [f"the folder has {name} but no preprocessor_config.json"] if name == ENCODER else []
    assert said(tmp_path / name, "IR012") == missing
    config(tmp_path, "processor_config.json")
    assert said(tmp_path / name, "IR012") == []


@pytest.mark.parametrize(
    ("shape", "start", "reported"),
    [("?,4", False, True), ("?,4", True, False), ("1,?", False, False), ("...", False, False), ("", False, False)],
)
@pytest.mark.parametrize("name", [MODEL, DECODER, ENCODER])
def test_state_without_an_initial_value(tmp_path, shape, start, reported, name):
    graph = ir.Graph()
    x = graph.parameter("x", "f32", ("?", 4))
    variable = {"variable_id": "v", "variable_type": "f32", "variable_shape": shape}
    (past,) = graph.layer("ReadValue", [x] if start else [], [("f32", ("?", 4))], version="opset6", attributes=variable)
    graph.layer("Assign", [x], [("f32", ("?", 4))], version="opset6", attributes={"variable_id": "v"})
    graph.result(past)
    findings = said(saved(tmp_path, graph, name), "IR013")
    expected = [f"reads variable 'v' [{shape}], which a reset leaves without a batch"]
    assert findings == (expected if reported and name != ENCODER else [])
