"""Renders docs/generate.svg, the picture in text.md, from real runs of irrun with a model of word counts.

python docs/make_text_picture.py
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from make_picture import recorded

import irload
import irload.openvino as ov
from irload.openvino import opset13 as ops

ROOT = Path(__file__).parents[1]
TOKENIZERS = ROOT / "tests" / "text" / "data" / "llama3"
WIDTH = 72
SIZE = 65_521
"""The rows of the table: a prime."""
MARKS = (1_009, 31, 1)
"""Factors of the last three tokens, whose sum selects a row."""
COMMANDS = (
    "irrun inspect lm",
    'irrun generate lm "One class per" --stop .',
    'irrun generate lm "Values are" "An unknown" --max-tokens 30',
)


def language_model(vocabulary: int, tokens: list[int]) -> ov.Model:
    """Logits that prefer the token that followed the last three tokens in a text."""
    following = np.zeros(SIZE, np.int64)
    for k in range(len(tokens) - 3):
        following[sum(m * t for m, t in zip(MARKS, tokens[k : k + 3], strict=True)) % SIZE] = tokens[k + 3]
    ids = ops.parameter([-1, -1], np.int64, name="input_ids")
    ids.output(0).get_tensor().set_names({"input_ids"})
    row = ids
    for back, factor in ((1, MARKS[1]), (2, MARKS[0])):
        earlier = ops.pad(ids, np.array([0, back]), np.array([0, -back]), "constant", np.int64(0))
        row = ops.add(row, ops.multiply(earlier, np.int64(factor)))
    likely = ops.gather(following, ops.mod(row, np.int64(SIZE)), np.int64(0))
    logits = ops.one_hot(likely, np.int64(vocabulary), np.float32(6), np.float32(0), -1)
    logits.output(0).get_tensor().set_names({"logits"})
    return ov.Model([ops.result(logits)], [ids], "counts")


def main() -> None:
    """Write the folder, run the commands and render their output."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "lm")
        shutil.copytree(TOKENIZERS, folder)
        text = " ".join((ROOT / "docs" / "architecture.md").read_text("utf-8").split())
        tokens = irload.Tokenizer(folder).encode(text)
        config = {"architectures": ["CountsForCausalLM"], "vocab_size": 420, "max_position_embeddings": 512}
        (folder / "config.json").write_text(json.dumps({**config, "eos_token_id": 0}))
        ov.save_model(language_model(420, tokens), folder / "openvino_model.xml", compress_to_fp16=False)
        svg = recorded(COMMANDS, lambda command: output_of(command, folder.parent), WIDTH, "irrun generate")
    (ROOT / "docs" / "generate.svg").write_text(svg, encoding="utf-8", newline="\n")


def output_of(command: str, folder: Path) -> str:
    """The output of a command, with the speed that it prints on stderr."""
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    words = [sys.executable, "-m", *shlex.split(command)]
    run = subprocess.run(
        words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True
    )
    return run.stdout


if __name__ == "__main__":
    main()
