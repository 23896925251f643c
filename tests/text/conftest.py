"""A folder with a small language model with state, and tokenizers of 420 entries."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

DATA = Path(__file__).parent / "data"
VOCABULARY = 420
END = 0
TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools') }}{% endif %}"
    "<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def language_model() -> ov.Model:
    """A model whose logits depend on the last token and on the sum of all tokens, stored in a state like a KV cache."""
    rng = np.random.default_rng(0)
    table = rng.normal(0, 1, (VOCABULARY, VOCABULARY)).astype(np.float32)
    table[:, END] -= 1  # otherwise texts would end early
    direction = rng.normal(0, 1, (1, 1, VOCABULARY)).astype(np.float32)
    ids = ops.parameter([-1, -1], np.int64, "input_ids")
    mask = ops.parameter([-1, -1], np.int64, "attention_mask")
    beams = ops.parameter([-1], np.int32, "beam_idx")
    for node, name in ((ids, "input_ids"), (mask, "attention_mask"), (beams, "beam_idx")):
        node.output(0).get_tensor().set_names({name})
    size = ops.shape_of(ids)
    rows, count = (ops.gather(size, ops.constant([k]), ops.constant(0)) for k in (0, 1))
    one = ops.constant(np.array([1]))
    none = ops.subtract(count, count)  # with a constant, OpenVINO would infer length 0 for the variable
    empty = ops.broadcast(np.float32(0), ops.concat([rows, one, none, one], 0))
    variable = ops.read_value(empty, "cache", np.float32, [-1, 1, -1, 1])
    past = ops.gather(variable, beams, ops.constant(0))
    new = ops.unsqueeze(ops.convert(ids, "f32"), ops.constant(np.array([1, 3])))
    whole = ops.concat([past, new], 2)
    keep = ops.assign(whole, "cache")
    sums = ops.cum_sum(whole, ops.constant(2))
    last = ops.slice(sums, ops.negative(count), ops.constant(np.array([1 << 40])), one, ops.constant(np.array([2])))
    mood = ops.squeeze(ops.sin(last), ops.constant(np.array([1])))
    logits = ops.add(ops.gather(table, ids, ops.constant(0)), ops.multiply(mood, direction))
    logits.output(0).get_tensor().set_names({"logits"})
    return ov.Model([ops.result(logits)], [keep], [ids, mask, beams], "language model")


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that model hubs provide."""
    folder = tmp_path_factory.mktemp("lm")
    ov.save_model(language_model(), folder / "openvino_model.xml", compress_to_fp16=False)
    for file in (DATA / "llama3").iterdir():
        shutil.copy(file, folder)
    (folder / "config.json").write_text(json.dumps({"vocab_size": VOCABULARY, "max_position_embeddings": 200}))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [END], "max_new_tokens": 20}))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return folder
