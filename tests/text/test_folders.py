"""Rules about the files of a language model's folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from jsonschema import Draft202012Validator
from openvino import opset13 as ops

import irload
from irrun.main import main
from tests.text.conftest import VOCABULARY
from tests.text.encoder_decoders import audio_encoder, folder_of

SCHEMA = Path(__file__).parents[2] / "schemas" / "inspect-folder.schema.json"
NAMES = ("openvino_model.xml", "openvino_tokenizer.xml", "openvino_detokenizer.xml")


@pytest.fixture
def folder(model_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(model_folder, tmp_path / "lm"))


def messages_of(folder: Path) -> dict[str, list[str]]:
    reports = [irload.check(folder / name) for name in NAMES if (folder / name).exists()]
    findings = [f for report in reports for f in report.findings if f.code.startswith("IR01")]
    return {code: [f.message for f in findings if f.code == code] for code in sorted({f.code for f in findings})}


def messages(file: Path) -> list[str]:
    """The findings of the rules about state and files."""
    return [f.message for f in irload.check(file).findings if f.code in ("IR012", "IR013")]


def change(folder: Path, file: str, **values: Any) -> None:
    path = folder / file
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_a_sound_folder(folder: Path) -> None:
    assert messages_of(folder) == {}
    change(folder, "config.json", architectures=["LlamaForCausalLM"], pad_token_id=None)
    assert messages_of(folder) == {}


def test_vocabularies(folder: Path) -> None:
    change(folder, "config.json", vocab_size=VOCABULARY - 1, architectures=["LlamaForCausalLM"])
    assert [m.split(";")[0] for m in messages_of(folder)["IR010"]] == [f"has {VOCABULARY} tokens"] * 2
    change(folder, "config.json", vocab_size=VOCABULARY + 1)
    assert messages_of(folder)["IR010"] == [
        f"has logits of {VOCABULARY} tokens; config.json states a vocabulary of {VOCABULARY + 1}"
    ]
    change(folder, "config.json", text_config={"vocab_size": VOCABULARY})
    assert messages_of(folder) == {}


def test_special_tokens(folder: Path) -> None:
    change(folder, "generation_config.json", eos_token_id=[0, VOCABULARY])
    assert messages_of(folder) == {
        "IR011": [f"generation_config.json has eos_token_id {VOCABULARY}; the vocabulary has {VOCABULARY} tokens"]
    }


def test_missing_files(folder: Path) -> None:
    (folder / NAMES[2]).unlink()
    assert messages_of(folder) == {}  # a model for embeddings
    change(folder, "config.json", architectures=["GPT2LMHeadModel", "LlamaForCausalLM"])
    assert messages_of(folder) == {"IR012": [f"the folder has {NAMES[1]} but no {NAMES[2]}"]}


def test_encoders_without_decoder(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, audio_encoder(20), state=True, masked=False)
    names = ("openvino_encoder_model.xml", "openvino_decoder_model.xml")
    assert messages(folder / names[0]) == [f"the folder has {names[0]} but no preprocessor_config.json"]
    (folder / "preprocessor_config.json").write_text("{}")
    assert messages(folder / names[0]) == messages(folder / names[1]) == []
    (folder / names[1]).unlink()
    assert messages(folder / names[0]) == [f"the folder has {names[0]} but no {names[1]}"]


def test_state_without_an_initial_value(tmp_path: Path) -> None:
    ids = ops.parameter([-1, 4], np.float32, "input_ids")
    for first, count in ((-1, 1), (1, 0)):
        past = ops.read_value("cache", np.float32, [first, 4])
        keep = ops.assign(ids, "cache")
        ov.save_model(ov.Model([ops.result(ops.add(past, ids))], [keep], [ids], "m"), tmp_path / "openvino_model.xml")
        assert len(messages(tmp_path / "openvino_model.xml")) == count


def test_configurations_of_another_form(folder: Path) -> None:
    for text in ("[]", "{", '{"vocab_size": "many"}', "[" * 100_000):
        (folder / "config.json").write_text(text)
        assert messages_of(folder) == {}


def test_the_summary_of_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(folder, "config.json", architectures=["LlamaForCausalLM"], vocab_size=VOCABULARY - 1)
    assert main(["inspect", str(folder), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator(json.loads(SCHEMA.read_text("utf-8"))).validate(document)
    assert [model["file"] for model in document["models"]] == list(NAMES)
    assert document["models"][0]["variables"] == ["cache"]
    assert document["vocabulary"] == {"config.json": VOCABULARY - 1, NAMES[1]: VOCABULARY, NAMES[2]: VOCABULARY}
    assert (document["positions"], document["chat_template"]) == (200, True)
    assert document["special_tokens"] == {"eos_token_id": [0]}
    assert document["generation"] == {"max_tokens": 20}
    assert [(f["file"], f["code"], f["severity"]) for f in document["findings"]] == [
        (name, "IR010", "error") for name in NAMES[1:]
    ]
    assert main(["inspect", str(folder)]) == 0
    shown = capsys.readouterr().out
    for words in (
        "LlamaForCausalLM",
        "openvino_detokenizer.xml",
        "eos_token_id",
        "positions",
        f"error: {NAMES[1]}: has ",
    ):
        assert words in shown


def test_summaries_of_other_folders(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, code, message in (
        ((tmp_path / "lm" / ".."), 3, "no openvino_model.xml"),
        ((folder, "--layers"), 2, "other options require a model file"),
    ):
        assert main(["inspect", *map(str, words if isinstance(words, tuple) else (words,))]) == code
        assert message in " ".join(capsys.readouterr().err.split())
