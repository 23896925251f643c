"""Folders with an encoder and a decoder in separate files, whose logits NumPy computes as well."""

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
END, START = 0, 3
RNG = np.random.default_rng(5)
SOURCE = RNG.normal(0, 1, (VOCABULARY, SIZE)).astype(np.float32)
TABLE = RNG.normal(0, 1, (VOCABULARY, VOCABULARY)).astype(np.float32)
MOOD, MIX = (RNG.normal(0, 1, (n, VOCABULARY)).astype(np.float32) for n in (1, SIZE))


def logits(encoded: np.ndarray, tokens: list[int]) -> np.ndarray:
    """The logits after tokens, for hidden states [length, SIZE] of an encoder."""
    mood = np.sin(np.float32(sum(tokens)))
    return TABLE[tokens[-1]] + mood * MOOD[0] + encoded.mean(0) @ MIX


def parameter(name: str, shape: list[int], kind: Any = np.int64) -> Any:
    node = ops.parameter(shape, kind, name)
    node.output(0).get_tensor().set_names({name})
    return node


def named(node: Any, name: str) -> Any:
    node.output(0).get_tensor().set_names({name})
    return ops.result(node)


def text_encoder() -> ov.Model:
    ids, mask = parameter("input_ids", [-1, -1]), parameter("attention_mask", [-1, -1])
    hidden = ops.multiply(
        ops.gather(SOURCE, ids, ops.constant(0)), ops.unsqueeze(ops.convert(mask, "f32"), ops.constant([2]))
    )
    return ov.Model([named(hidden, "last_hidden_state")], [ids, mask], "encoder")


def audio_encoder(frames: int) -> ov.Model:
    features = parameter("input_features", [-1, SIZE, frames], np.float32)
    hidden = ops.transpose(features, ops.constant([0, 2, 1]))
    return ov.Model([named(hidden, "last_hidden_state")], [features], "encoder")


def decoder(kind: str, *, masked: bool) -> ov.Model:
    """A decoder. `kind`: "state", or without state "first" and "past" for the first and later tokens."""
    ids, hidden = parameter("input_ids", [-1, -1]), parameter("encoder_hidden_states", [-1, -1, SIZE], np.float32)
    inputs = [ids, hidden] + ([parameter("encoder_attention_mask", [-1, -1])] if masked else [])
    new = ops.unsqueeze(ops.convert(ids, "f32"), ops.constant([1, 3]))
    zero, one = ops.constant(0), ops.constant([1])
    kept: list[Any] = []
    if kind == "state":
        beams = parameter("beam_idx", [-1], np.int32)
        inputs.append(beams)
        rows, count = (ops.gather(ops.shape_of(ids), ops.constant([k]), zero) for k in (0, 1))
        empty = ops.broadcast(np.float32(0), ops.concat([rows, one, ops.subtract(count, count), one], 0))
        past = ops.gather(ops.read_value(empty, "cache", np.float32, [-1, 1, -1, 1]), beams, zero)
        whole = ops.concat([past, new], 2)
        kept = [ops.assign(whole, "cache")]
    elif kind == "past":
        past = parameter("past_key_values.0.decoder.key", [-1, 1, -1, 1], np.float32)
        inputs.append(past)
        whole = ops.concat([past, new], 2)
    else:
        whole = new
    sums = ops.squeeze(ops.cum_sum(whole, ops.constant(2)), ops.constant([1]))
    count = ops.gather(ops.shape_of(ids), ops.constant([1]), zero)
    last = ops.slice(sums, ops.negative(count), ops.constant([1 << 40]), one, one)
    mean = ops.reduce_mean(hidden, one, keep_dims=True)
    total = ops.add(ops.gather(TABLE, ids, zero), ops.multiply(ops.sin(last), ops.unsqueeze(MOOD, zero)))
    total = ops.add(total, ops.matmul(mean, MIX, False, False))
    results = [named(total, "logits")]
    if kind != "state":
        results.append(named(whole, "present.0.decoder.key"))
    return ov.Model(results, kept, inputs, "decoder")


def folder_of(folder: Path, encoder: ov.Model, *, state: bool, masked: bool, **generation: Any) -> Path:
    """Write the models, tokenizers, and generation_config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    models = {"encoder": encoder}
    if state:
        models["decoder"] = decoder("state", masked=masked)
    else:
        models |= {"decoder": decoder("first", masked=masked), "decoder_with_past": decoder("past", masked=masked)}
    for name, model in models.items():
        ov.save_model(model, folder / f"openvino_{name}_model.xml", compress_to_fp16=False)
    for file in (DATA / "llama3").iterdir():
        shutil.copy(file, folder)
    config = {"decoder_start_token_id": START, "eos_token_id": END, "max_new_tokens": 12, **generation}
    (folder / "generation_config.json").write_text(json.dumps(config))
    return folder
