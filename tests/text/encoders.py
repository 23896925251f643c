"""Folders with small models that read whole texts: hidden states that depend on all tokens, or logits of classes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from tests.text.conftest import DATA, VOCABULARY

SIZE = 8


def inputs(*names: str) -> list[Any]:
    """Parameters i64 [?,?] of these names."""
    parameters = [ops.parameter([-1, -1], np.int64, name) for name in names]
    for node, name in zip(parameters, names, strict=True):
        node.output(0).get_tensor().set_names({name})
    return parameters


def hidden_states(ids: Any, mask: Any) -> Any:
    """The embedding of each token, plus the masked mean of the sines of all embeddings."""
    rng = np.random.default_rng(1)
    table = rng.normal(0, 1, (VOCABULARY, SIZE)).astype(np.float32)
    weights = ops.unsqueeze(ops.convert(mask, "f32"), ops.constant(np.array([2])))
    tokens = ops.gather(table, ids, ops.constant(0))
    axis = ops.constant(np.array([1]))
    total = ops.reduce_sum(ops.multiply(ops.sin(tokens), weights), axis, keep_dims=True)
    return ops.add(tokens, ops.divide(total, ops.reduce_sum(weights, axis, keep_dims=True)))


def save(folder: Path, output: Any, name: str, parameters: list[Any], **documents: Any) -> Path:
    """Write the model, a WordPiece tokenizer, and JSON files (`config` is config.json)."""
    folder.mkdir(parents=True, exist_ok=True)
    output.output(0).get_tensor().set_names({name})
    model = ov.Model([ops.result(output)], parameters, "encoder")
    ov.save_model(model, folder / "openvino_model.xml", compress_to_fp16=False)
    for file in (DATA / "bert").iterdir():
        shutil.copy(file, folder)
    for stem, document in documents.items():
        (folder / f"{stem}.json").write_text(json.dumps(document))
    return folder


def embedding_folder(folder: Path, pooling: dict[str, Any] | None = None, **documents: Any) -> Path:
    """A model that returns hidden states, with the files of sentence-transformers."""
    ids, mask, types = inputs("input_ids", "attention_mask", "token_type_ids")
    hidden = ops.add(hidden_states(ids, mask), ops.convert(ops.unsqueeze(types, ops.constant(np.array([2]))), "f32"))
    kinds = ["Transformer", "Pooling", "Normalize"] if pooling is not None else []
    modules = [{"idx": k, "name": str(k), "path": f"{k}_{kind}", "type": f"x.{kind}"} for k, kind in enumerate(kinds)]
    save(folder, hidden, "last_hidden_state", [ids, mask, types], modules=modules, **documents)
    if pooling is not None:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


def classifier_folder(folder: Path, **config: Any) -> Path:
    """A classifier of three classes: the logits are the first three elements of the first token's hidden state."""
    ids, mask = inputs("input_ids", "attention_mask")
    first = ops.gather(hidden_states(ids, mask), ops.constant(0), ops.constant(1))
    logits = ops.gather(first, ops.constant(np.arange(3)), ops.constant(1))
    labels = {"id2label": {"0": "bad", "1": "fair enough", "2": "good"}}
    return save(folder, logits, "logits", [ids, mask], config={**labels, **config})
