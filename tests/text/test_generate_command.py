"""`irrun generate`: prompts as words, of stdin and files, JSON lines, conversations, Ctrl-C, and the errors."""

from __future__ import annotations

import io
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import irload
from irrun.main import main
from tests.harness.children import HANGING
from tests.hostile.test_interrupt import listening

SCHEMA = Path(__file__).parents[2] / "schemas" / "generate.schema.json"


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main(["generate", *map(str, words)])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_one_text(model_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, model_folder, "The model", "--max-tokens", 5)
    assert code == 0
    assert out == irload.TextGeneration(model_folder).generate("The model", max_tokens=5).text + "\n"
    assert "5 tokens, the first after" in err
    assert "tokens/s" in err


def test_several_texts_in_the_order_of_their_prompts(
    model_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prompt.txt").write_text("from a file\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"from stdin\n")))
    code, out, _ = run(capsys, model_folder, "x", "-", "--file", tmp_path / "prompt.txt", "--max-tokens", 3)
    expected = irload.TextGeneration(model_folder).generate(["x", "from stdin", "from a file"], max_tokens=3)
    texts = [p + r.text for p, r in zip(("x", "from stdin", "from a file"), expected, strict=True)]
    assert (code, out) == (0, "\n\n".join(texts) + "\n")


def test_lines_of_json(model_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, model_folder, "x", "y", "--json", "--logprobs", 2, "--max-tokens", 3, "--seed", 1)
    documents = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [d["prompt"] for d in documents] == ["x", "y"]
    for document in documents:
        Draft202012Validator(json.loads(SCHEMA.read_text("utf-8"))).validate(document)
        assert len(document["logprobs"]) == len(document["tokens"])


def test_a_conversation(
    model_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("hello\n\nand more\n"))
    code, out, _ = run(capsys, model_folder, "--chat", "--max-tokens", 4, "--system", "be brief")
    model = irload.TextGeneration(model_folder)
    turns = [{"role": "system", "content": "be brief"}]
    for text in ("hello", "and more"):
        turns.append({"role": "user", "content": text})
        turns.append({"role": "assistant", "content": model.chat(turns, max_tokens=4).text})
    assert code == 0
    assert out == "".join(turns[k]["content"] + "\n" for k in (2, 4))


def test_errors(model_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    untemplated = shutil.copytree(model_folder, tmp_path / "lm")
    (untemplated / "chat_template.jinja").unlink()
    for words, code, message in (
        ((model_folder,), 2, "give a PROMPT"),
        ((model_folder / "none", "x"), 3, "none: no such folder; a text model is a folder with files such as"),
        ((model_folder / "openvino_model.xml", "x"), 3, "openvino_model.xml: is a file; a text model is a folder"),
        ((model_folder, "x", "--logprobs", "2"), 2, "--logprobs requires --json"),
        ((model_folder, "x", "--system", "y"), 2, "--system requires --chat"),
        ((model_folder, ""), 2, "prompt is empty"),
        ((untemplated, "x", "--chat"), 2, "tokenizer_config.json); omit --chat"),
        ((model_folder, "x", "--beams", "2", "--temperature", "1"), 2, "beams cannot be combined with sampling"),
        ((tmp_path, "x"), 3, "no openvino_model.xml"),
    ):
        output, out, err = run(capsys, *words)
        assert (output, out) == (code, "")
        assert message in err


def test_ctrl_c_ends_the_text(model_folder: Path) -> None:
    command = [sys.executable, "-m", "irrun", "generate", str(model_folder), "x", "--max-tokens", "199", "--no-jit"]
    code, out, err = 0, b"", b""
    for _ in range(5):  # if this process waits too long for the processor, the text ends before the signal
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=listening)
        assert process.stdout is not None
        assert process.stdout.read(1)  # the first token
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HANGING)
        code = process.returncode
        if code:
            break
    assert code == 130
    assert out.endswith(b"\n")
    assert b"interrupted" in err
    assert b"Traceback" not in err
