"""Generation against a plain loop over OpenVINO: greedy, beams, sampling, stop strings, lookup, chat, errors."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

import irload
from irload.errors import ExecutionError, InputInvalid, ReadError
from irload.text.decoder import Decoder
from irload.text.lookup import Lookup
from irload.text.sampling import distribution, penalized
from irload.text.settings import Settings
from irload.text.streaming import TextStream
from tests.harness import runtime
from tests.text.best_beams import best_beams

PROMPTS = ("The model", "A file is read by", "x", "one two three four five six", "\n")


@pytest.fixture(scope="module")
def model(model_folder: Path) -> irload.TextGeneration:
    return irload.TextGeneration(model_folder)


def greedy(folder: Path, prompt: list[int], count: int) -> list[int]:
    """The most probable tokens by OpenVINO."""
    request = runtime.core().compile_model(folder / "openvino_model.xml", "CPU").create_infer_request()
    tokens: list[int] = []
    new = prompt
    while len(tokens) < count and 0 not in tokens:
        total = len(prompt) + len(tokens)
        feeds = {"input_ids": [new], "attention_mask": np.ones((1, total), np.int64), "beam_idx": np.zeros(1, np.int32)}
        new = [int(request.infer({k: ov.Tensor(np.array(v)) for k, v in feeds.items()})[0][0, -1].argmax())]
        tokens += new
    return tokens


def test_greedy_tokens_equal_those_of_the_runtime(model: irload.TextGeneration, model_folder: Path) -> None:
    together = model.generate(list(PROMPTS), max_tokens=64)
    for prompt, result in zip(PROMPTS, together, strict=True):
        assert list(result.tokens) == greedy(model_folder, model.tokenizer.encode(prompt), 64)
        assert result == model.generate(prompt, max_tokens=64)
    assert {r.finish for r in together} <= {"stop", "length"}


def test_lookup_gives_the_same_tokens(model: irload.TextGeneration) -> None:
    prompt = "the file is read and the file is read and the file"
    assert model.generate(prompt, lookup=4) == model.generate(prompt)


def test_lookup_returns_the_tokens_after_the_last_occurrence() -> None:
    lookup = Lookup([1, 2, 3, 4, 1, 2])
    assert lookup.candidates(3) == [3, 4, 1]
    lookup.add(9)
    assert lookup.candidates(3) == []


def test_parts_join_to_the_text(model: irload.TextGeneration) -> None:
    parts = list(model.stream(PROMPTS[0], max_tokens=30))
    assert len(parts) > 1
    assert "".join(parts) == model.generate(PROMPTS[0], max_tokens=30).text


def test_more_prompts_than_run_at_once(model: irload.TextGeneration) -> None:
    prompts = [f"prompt {k}" for k in range(11)]
    assert [r.text for r in model.generate(prompts, max_tokens=3)] == [
        model.generate(p, max_tokens=3).text for p in prompts
    ]


def test_a_seed_reproduces_a_text_with_any_other_prompts(model: irload.TextGeneration) -> None:
    options = {"temperature": 1.0, "seed": 7, "max_tokens": 8}
    first = model.generate([PROMPTS[0], PROMPTS[1]], **options)
    assert model.generate([PROMPTS[0]], **options) == first[:1]
    assert model.generate([PROMPTS[0]], **{**options, "seed": 8}) != first[:1]


def test_samples_follow_the_distribution(model: irload.TextGeneration) -> None:
    ids = model.tokenizer.encode(PROMPTS[0])
    options = {"temperature": 0.7, "top_k": 5, "top_p": 0.9, "max_tokens": 1}
    drawn = Counter(r.tokens[0] for seed in range(3) for r in model.generate([ids] * 200, seed=seed, **options))
    logits = Decoder(irload.compile_model(model.folder.path / "openvino_model.xml")).cache().extend(np.array([ids]))
    tokens, probabilities = distribution(logits[0, -1], Settings(temperature=0.7, top_k=5, top_p=0.9))
    assert set(drawn) <= set(tokens.tolist())
    for token, p in zip(tokens.tolist(), probabilities, strict=True):
        assert abs(drawn[token] / 600 - p) < 5 * np.sqrt(p * (1 - p) / 600)


def test_truncation_of_the_distribution() -> None:
    scores = np.log(np.array([0.1, 0.5, 0.3, 0.1]))
    assert distribution(scores, Settings(temperature=1.0))[0].tolist() == [1, 2, 0, 3]
    assert distribution(scores, Settings(temperature=1.0, top_k=2))[1].tolist() == pytest.approx([0.625, 0.375])
    assert distribution(scores, Settings(temperature=1.0, top_p=0.6))[0].tolist() == [1, 2]
    assert distribution(scores, Settings(temperature=1.0, min_p=0.5))[0].tolist() == [1, 2]
    assert distribution(scores, Settings(temperature=1.0, top_p=0.0))[0].tolist() == [1]
    assert penalized(np.array([2.0, -2.0, 1.0]), [0, 1], 2.0).tolist() == [1.0, -4.0, 1.0]


def test_beams(model: irload.TextGeneration, model_folder: Path) -> None:
    compiled = runtime.core().compile_model(model_folder / "openvino_model.xml", "CPU")

    def logits(tokens: list[int]) -> np.ndarray:
        ids = np.array([tokens])
        return compiled.create_infer_request().infer([ids, np.ones_like(ids), np.zeros(1, np.int32)])[0][0, -1]

    for prompt in PROMPTS[:2]:
        result = model.generate(prompt, beams=4, max_tokens=6)
        assert list(result.tokens) == best_beams(logits, model.tokenizer.encode(prompt), 0, 4, 6)


def test_a_stop_string_ends_the_text_before_it(model: irload.TextGeneration) -> None:
    whole = model.generate(PROMPTS[0]).text
    stop = whole[4:7]
    for options in ({"stop": stop}, {"stop": [stop, "never"], "lookup": 3}):
        result = model.generate(PROMPTS[0], **options)
        assert result.text == whole[: whole.find(stop)]
        assert result.finish == "stop"
    assert "".join(model.stream(PROMPTS[0], stop=stop)) == whole[: whole.find(stop)]


def test_parts_of_a_stop_string_are_held_back(model: irload.TextGeneration) -> None:
    stream = TextStream(model.tokenizer, ["abc"])
    ids = model.tokenizer.encode("xabab")
    assert "".join(stream.add(k) for k in ids) in ("xab", "x")
    assert stream.finish().endswith("ab")
    assert stream.text == "xabab"


def test_characters_of_several_tokens_are_whole(model: irload.TextGeneration) -> None:
    stream = TextStream(model.tokenizer)
    parts = [stream.add(k) for k in model.tokenizer.encode("a👍🏽é\u200bz")] + [stream.finish()]
    assert "".join(parts) == "a👍🏽é\u200bz"
    assert not any("\ufffd" in part for part in parts)


def test_logprobs(model: irload.TextGeneration) -> None:
    result = model.generate(PROMPTS[0], logprobs=3, max_tokens=4)
    assert result.logprobs is not None
    assert [p.token for p in result.logprobs] == list(result.tokens)
    for entry in result.logprobs:
        assert entry.top[0] == (entry.token, entry.logprob)  # greedy
        assert len(entry.top) == 3
        assert entry.logprob < 0
    assert model.generate(PROMPTS[0], max_tokens=4).logprobs is None


def test_chat(model: irload.TextGeneration) -> None:
    messages = [{"role": "user", "content": "hi"}]
    ids = model.tokenizer.encode("<|user|>hi<|end|><|assistant|>")
    assert model.chat(messages).tokens == model.generate(ids).tokens
    assert "".join(model.stream(messages)) == model.chat(messages).text
    with pytest.raises(InputInvalid, match="no tools"):
        model.chat([{"role": "tool", "content": ""}])


def test_templates_that_fail(model_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(model_folder, tmp_path / "lm")
    for template in ("{{ messages[7].role }}", "{% if %}", "{{ ().__class__.__base__ }}"):
        (folder / "chat_template.jinja").write_text(template)
        model = irload.TextGeneration(folder)
        with pytest.raises(InputInvalid, match="fails"):
            model.chat([{"role": "user", "content": "hi"}])
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(InputInvalid, match="no chat template"):
        irload.TextGeneration(folder).chat([{"role": "user", "content": "hi"}])


def test_limits(model: irload.TextGeneration) -> None:
    with pytest.raises(InputInvalid, match="200 positions"):
        model.generate([[5] * 200])
    assert len(model.generate([5] * 197, max_tokens=20).tokens) == 3
    with pytest.raises(InputInvalid, match="prompt is empty"):
        model.generate("")
    size = model.compiled.outputs[0].partial_shape[-1].hi
    for prompt in ([size], [5, -1], np.array([size])):
        with pytest.raises(InputInvalid, match=rf"token id (-1|{size}) is outside the vocabulary of {size} tokens"):
            model.generate(prompt)
    assert model.generate([size - 1], max_tokens=1).tokens
    for prompt in ([1.5], [[1.5]], [[5, "a"]]):
        with pytest.raises(InputInvalid, match="a prompt is a text or a list of integer ids, found"):
            model.generate(prompt)
    for options, words in (
        ({"top_p": 2.0}, "top_p must be 0 to 1"),
        ({"temperature": -1.0}, "temperature"),
        ({"beams": 2.5}, "beams must be an integer of 1 to 1000, found 2.5"),
        ({"max_tokens": 0}, "max_tokens must be an integer of at least 1, found 0"),
        ({"beams": 2, "temperature": 1.0}, "beams cannot be combined with sampling"),
        ({"lookup": 2, "temperature": 1.0}, "lookup requires greedy"),
        ({"stop": ""}, "must not be empty"),
        ({"repetition_penalty": 0.0}, "positive"),
        ({"repetition_penalty": math.inf}, "positive and finite"),
        ({"length_penalty": math.nan}, "length_penalty must be finite"),
    ):
        with pytest.raises(InputInvalid, match=words):
            model.generate("a", **options)
    with pytest.raises(TypeError, match="no option colour"):
        model.generate("a", colour=1)


def test_logits_that_are_nan(monkeypatch: pytest.MonkeyPatch, model: irload.TextGeneration) -> None:
    from irload.text.decoder import Cache

    monkeypatch.setattr(Cache, "extend", lambda self, tokens, parents=None: np.full((1, tokens.shape[1], 9), np.nan))
    with pytest.raises(ExecutionError, match="token 1 are NaN"):
        model.generate("a")


def test_defaults_come_from_the_folder(model_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(model_folder, tmp_path / "lm")
    config = {"do_sample": True, "temperature": 0.6, "top_k": 20, "max_new_tokens": 7, "stop_strings": ["x"]}
    (folder / "generation_config.json").write_text(json.dumps(config))
    settings = Settings.of(irload.TextGeneration(folder).folder)
    assert (settings.temperature, settings.top_k, settings.max_tokens, settings.stop) == (0.6, 20, 7, ("x",))
    assert Settings.of(irload.TextGeneration(folder).folder, temperature=0.0).top_k == 0
    config = {"num_beams": 2.0, "stop_strings": 5, "max_new_tokens": "7"}
    (folder / "generation_config.json").write_text(json.dumps(config))
    settings = Settings.of(irload.TextGeneration(folder).folder)
    assert (settings.beams, settings.stop, settings.max_tokens) == (2, (), 256)
    (folder / "generation_config.json").write_text("{")
    with pytest.raises(ReadError, match="not valid JSON"):
        irload.TextGeneration(folder).generate("a")


def test_a_decoder_without_state(tmp_path: Path, model: irload.TextGeneration) -> None:
    from openvino import opset13 as ops

    ids = ops.parameter([-1, -1], np.int64, "input_ids")
    ids.output(0).get_tensor().set_names({"input_ids"})
    table = np.random.default_rng(0).normal(0, 1, (50, 50)).astype(np.float32)
    ov.save_model(
        ov.Model([ops.gather(table, ids, ops.constant(0))], [ids], "bigrams"), tmp_path / "openvino_model.xml"
    )
    bigrams = irload.TextGeneration(tmp_path)
    result = bigrams.generate([3], max_tokens=4, lookup=2)
    expected = [3]
    for _ in range(4):
        expected.append(int(table[expected[-1]].astype(np.float16).argmax()))
    assert list(result.tokens) == expected[1:]
    assert result.text == ""
