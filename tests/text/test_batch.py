"""Batches of texts against loops over OpenVINO: embeddings, classes, generated texts."""

from __future__ import annotations

import json
import random
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import irload
from irload.batch import TextPredictor, predict
from irload.errors import InputInvalid, Unsupported
from irload.text.classes import Classes
from irload.text.folder import Folder
from irload.text.pooling import Pooling
from irrun.main import main
from tests.harness import runtime
from tests.text.conftest import DATA
from tests.text.encoders import classifier_folder, embedding_folder

WORDS = ("model", "file", "reads", "naïve", "日本", "the", "a", ".", "👍🏽")
MEAN = {"pooling_mode_mean_tokens": True}


def texts(count: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choice(WORDS) for _ in range(rng.randrange(20))) for _ in range(count)]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of 40 rows with a column of texts and another column."""
    path = tmp_path / "texts.parquet"
    pq.write_table(pa.table({"id": list(range(40)), "body": texts(40)}), path)
    return path


def run(*words: object) -> int:
    return main(["batch", *map(str, words), "--no-jit"])


@cache
def compiled(folder: Path) -> tuple[ov.CompiledModel, ov.CompiledModel]:
    """The tokenizer and the model of a folder."""
    files = (folder / f"openvino_{name}.xml" for name in ("tokenizer", "model"))
    tokenizer, model = (runtime.core().compile_model(file, "CPU") for file in files)
    return tokenizer, model


def hidden(folder: Path, text: str) -> np.ndarray:
    """The model's output for one text by OpenVINO."""
    tokenizer, model = compiled(folder)
    tokens = tokenizer(ov.Tensor([text]))
    return model([tokens["input_ids"], tokens["attention_mask"], tokens["input_ids"] * 0][: len(model.inputs)])[0]


def embedded(folder: Path, every: list[str]) -> np.ndarray:
    means = np.stack([hidden(folder, text)[0].mean(0) for text in every])
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def test_embeddings_equal_those_of_a_loop(table: Path, tmp_path: Path) -> None:
    folder = embedding_folder(tmp_path / "model", MEAN)
    words = (folder, table, "--column", "body", "-o", tmp_path / "out.parquet", "--batch-size", 7, "--workers", 2)
    assert run(*words) == 0
    written = pq.read_table(tmp_path / "out.parquet")
    assert written.column_names == ["input", "id", "embedding"]
    assert written.column("id").to_pylist() == list(range(40))
    values = np.array(written.column("embedding").to_pylist(), np.float32)
    np.testing.assert_allclose(values, embedded(folder, texts(40)), atol=1e-6)
    (folder / "config.json").write_text("{ }")
    assert run(*words, "--resume") == 2  # with another model


def test_classes(table: Path, tmp_path: Path) -> None:
    folder = classifier_folder(tmp_path / "model")
    assert run(folder, table, "--column", "body", "-o", tmp_path / "out.jsonl") == 0
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    for line, text in zip(lines, texts(40), strict=True):
        logits = hidden(folder, text)[0].astype(np.float64)
        scores = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()
        best = int(scores.argmax())
        assert line["label"] == ("bad", "fair enough", "good")[best]
        assert line["score"][0]["value"] == pytest.approx(scores[best], abs=1e-6)
        assert next(entry["label"] for entry in line["scores"]) == line["label"]
    assert run(folder, table, "--column", "body", "-o", tmp_path / "out.csv") == 0
    header = (tmp_path / "out.csv").read_text("utf-8").splitlines()[0]
    assert header == "input,id,label,score,scores[bad],scores[fair enough],scores[good]"


def test_generated_texts(model_folder: Path, tmp_path: Path) -> None:
    prompts = ["The model", "A file", "x", "y" * 300, "z"]
    pq.write_table(pa.table({"text": prompts}), tmp_path / "in.parquet")
    words = (model_folder, tmp_path / "in.parquet", "-o", tmp_path / "out.jsonl", "--max-tokens", 4)
    assert run(*words, "--temperature", 1, "--seed", 3) == 1  # one prompt is longer than the model's positions
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    model = irload.TextGeneration(model_folder)
    kept = [k for k in range(5) if k != 3]
    expected = [r.result for r in model.run(
        [prompts[k] for k in kept], live=False, numbers=kept, max_tokens=4, temperature=1.0, seed=3
    ) if r.result]  # fmt: skip
    assert sorted(line["generated_text"] for line in lines) == sorted(r.text for r in expected)
    assert {line["finish"] for line in lines} <= {"stop", "length"}


def test_answers(model_folder: Path) -> None:
    model = irload.TextGeneration(model_folder)
    predictions = TextPredictor(model_folder, generation={"max_tokens": 5}, chat=True)({"text": ["hi"], "id": [7]})
    assert predictions["generated_text"].tolist() == [
        model.chat([{"role": "user", "content": "hi"}], max_tokens=5).text
    ]
    assert predictions["id"] == [7]


def test_predict_takes_texts(tmp_path: Path) -> None:
    folder = embedding_folder(tmp_path / "model", MEAN)
    predictions = [p.outputs["embedding"] for p in predict(folder, texts(12))]
    np.testing.assert_allclose(predictions, embedded(folder, texts(12)), atol=1e-6)


def test_a_model_without_mask_runs_texts_of_one_length_together(tmp_path: Path) -> None:
    from openvino import opset13 as ops

    from tests.text.encoders import inputs, save

    (ids,) = inputs("input_ids")
    mean = ops.reduce_mean(ops.convert(ids, "f32"), ops.constant(np.array([1])), keep_dims=True)
    every = ops.unsqueeze(mean, ops.constant(np.array([2])))
    folder = save(tmp_path / "model", every, "last_hidden_state", [ids])
    predictions = TextPredictor(folder)({"text": texts(30)})["embedding"][:, 0]
    assert predictions.tolist() == pytest.approx([np.mean(irload.Tokenizer(folder).encode(text)) for text in texts(30)])


@pytest.mark.parametrize(
    ("mode", "of"),
    [
        ("cls", lambda h: h[0]),
        ("max", lambda h: h.max(0)),
        ("mean", lambda h: h.mean(0)),
        ("mean_sqrt_len_tokens", lambda h: h.sum(0) / np.sqrt(len(h))),
        ("weightedmean", lambda h: np.average(h, axis=0, weights=np.arange(1, len(h) + 1))),
        ("lasttoken", lambda h: h[-1]),
    ],
)
def test_pooling(mode: str, of: Any) -> None:
    hidden = np.random.default_rng(0).normal(0, 1, (3, 5, 4)).astype(np.float32)
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 0, 0, 0]])
    embedding = Pooling((mode,)).embeddings(hidden, mask)
    for row, states, kept in zip(embedding, hidden, mask, strict=True):
        np.testing.assert_allclose(row, of(states[kept > 0]), rtol=1e-5)
    both = Pooling((mode, "cls"), normalize=True).embeddings(hidden, mask)
    assert np.linalg.norm(both, axis=1) == pytest.approx(1)
    assert both.shape == (3, 8)


def test_pooling_of_a_folder(tmp_path: Path) -> None:
    folder = embedding_folder(tmp_path / "a", {"pooling_mode": "cls"})
    assert Pooling.of(Folder(folder)) == Pooling(("cls",), normalize=True)
    assert Pooling.of(Folder(embedding_folder(tmp_path / "b"))) == Pooling(("mean",))
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode": "median"}')
    with pytest.raises(Unsupported, match="pooling mode median"):
        Pooling.of(Folder(folder))
    (folder / "modules.json").write_text('[{"type": "sentence_transformers.models.Dense"}]')
    with pytest.raises(Unsupported, match="the module Dense"):
        TextPredictor(folder)


def test_texts_are_truncated_before_their_last_special_tokens(tmp_path: Path) -> None:
    config = {"max_seq_length": 6, "do_lower_case": True}
    folder = embedding_folder(tmp_path / "model", {"pooling_mode": "lasttoken"}, sentence_bert_config=config)
    whole = irload.Tokenizer(folder).encode("the model reads the file and the model")
    assert len(whole) > 6
    ids = np.array([[*whole[:5], whole[-1]]])
    states = runtime.core().compile_model(folder / "openvino_model.xml", "CPU")([ids, np.ones_like(ids), ids * 0])[0]
    expected = states[0, -1] / np.linalg.norm(states[0, -1])
    predictions = TextPredictor(folder)({"text": ["THE model reads the file and the model"]})["embedding"]
    np.testing.assert_allclose(predictions[0], expected, atol=1e-6)


def test_activations(tmp_path: Path) -> None:
    logits = np.array([[1.0, -2.0, 0.5]], np.float32)
    (tmp_path / "config.json").write_text('{"problem_type": "multi_label_classification"}')
    classes = Classes.of(Folder(tmp_path), 3)
    assert classes.labels == ("LABEL_0", "LABEL_1", "LABEL_2")
    np.testing.assert_allclose(classes.scores(logits), 1 / (1 + np.exp(-logits)), rtol=1e-6)
    (tmp_path / "config.json").write_text('{"problem_type": "regression"}')
    assert Classes.of(Folder(tmp_path), 3).scores(logits).tolist() == logits.tolist()


def test_errors(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], model_folder: Path) -> None:
    folder = embedding_folder(tmp_path / "model", MEAN)
    file = tmp_path / "model" / "openvino_model.xml"
    out = ("-o", tmp_path / "out.parquet")
    untemplated = shutil.copytree(model_folder, tmp_path / "lm")
    (untemplated / "chat_template.jinja").unlink()
    for words, code, message in (
        ((folder, table, *out), 2, "no column for input 'text'"),
        ((folder, table, "--column", "none", *out), 2, "no column 'none' for input 'text'"),
        ((folder, table, "--column", "body", "--max-tokens", 3, *out), 2, "require a language model"),
        ((folder, table, "--column", "body", "--shape", "[1]", *out), 2, "--shape requires a model file"),
        ((folder, table, "--column", "body", "--bin", "x", *out), 2, "weights require a model file"),
        ((file, table, "--column", "body", *out), 2, "must name an input, since the model has 3"),
        ((untemplated, table, "--column", "body", "--chat", *out), 2, "tokenizer_config.json); omit --chat"),
        ((file, table, "--chat", *out), 2, "require the folder of a language model"),
        ((model_folder, table, "--column", "body", "--top-p", 0.5, "--beams", 2, "--temperature", 1, *out), 2, "beams"),
        ((tmp_path, table, "--column", "body", *out), 3, "no openvino_model.xml"),
        ((DATA / "bert", table, "--column", "body", *out), 3, "no openvino_model.xml"),
    ):
        assert run(*words) == code, words
        assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out.parquet").exists()
    assert not (tmp_path / "out.parquet.batch").exists()
    with pytest.raises(InputInvalid, match="no column 'text'"):
        TextPredictor(folder)({"body": ["a"]})
