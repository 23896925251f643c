"""Rules about the files of a language model's folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import irload
from tests.text.conftest import VOCABULARY

NAMES = ("openvino_model.xml", "openvino_tokenizer.xml", "openvino_detokenizer.xml")


@pytest.fixture
def folder(model_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(model_folder, tmp_path / "lm"))


def found(folder: Path) -> dict[str, list[str]]:
    reports = [irload.check(folder / name) for name in NAMES if (folder / name).exists()]
    findings = [f for report in reports for f in report.findings if f.code.startswith("IR01")]
    return {code: [f.message for f in findings if f.code == code] for code in sorted({f.code for f in findings})}


def change(folder: Path, file: str, **values: Any) -> None:
    path = folder / file
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_a_sound_folder(folder: Path) -> None:
    assert found(folder) == {}
    change(folder, "config.json", architectures=["LlamaForCausalLM"], pad_token_id=None)
    assert found(folder) == {}


def test_vocabularies(folder: Path) -> None:
    change(folder, "config.json", vocab_size=VOCABULARY - 1)
    assert [m.split(";")[0] for m in found(folder)["IR010"]] == [f"has {VOCABULARY} tokens"] * 2
    change(folder, "config.json", vocab_size=VOCABULARY + 1)
    assert found(folder)["IR010"] == [
        f"has logits of {VOCABULARY} tokens; config.json states a vocabulary of {VOCABULARY + 1}"
    ]
    change(folder, "config.json", text_config={"vocab_size": VOCABULARY})
    assert found(folder) == {}


def test_special_tokens(folder: Path) -> None:
    change(folder, "generation_config.json", eos_token_id=[0, VOCABULARY])
    assert found(folder) == {
        "IR011": [f"generation_config.json has eos_token_id {VOCABULARY}; the vocabulary has {VOCABULARY} tokens"]
    }


def test_missing_files(folder: Path) -> None:
    (folder / NAMES[2]).unlink()
    assert found(folder) == {}  # a model for embeddings
    change(folder, "config.json", architectures=["GPT2LMHeadModel", "LlamaForCausalLM"])
    assert found(folder) == {"IR012": [f"the folder has {NAMES[1]} but no {NAMES[2]}"]}


def test_configurations_of_another_form(folder: Path) -> None:
    for text in ("[]", "{", '{"vocab_size": "many"}', "[" * 100_000):
        (folder / "config.json").write_text(text)
        assert found(folder) == {}
