"""Encoders with decoders: texts (T5) and audio (Whisper), with the cache as state and as inputs and outputs."""

from __future__ import annotations

import json
import shutil
import wave
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import irload
from irload.errors import InputInvalid, ReadError
from irload.text.audio import read_audio, resampled
from irload.text.mel import MelSpectra
from irrun.main import main
from tests.text.best_beams import best_beams
from tests.text.encoder_decoders import END, SIZE, SOURCE, START, audio_encoder, folder_of, logits, text_encoder

SPECTRA = MelSpectra(size=SIZE, samples=3200)
FRAMES = 20
LANGUAGES = {
    "lang_to_id": {"<|en|>": 401, "<|de|>": 402},
    "task_to_id": {"transcribe": 405, "translate": 406},
    "no_timestamps_token_id": 407,
    "suppress_tokens": [7, 8],
}


def greedy(encoded: np.ndarray, marks: list[int], count: int, suppressed: tuple[int, ...] = ()) -> list[int]:
    tokens = [START, *marks]
    while len(tokens) < count + 1 + len(marks) and tokens[-1] != END:
        scores = logits(encoded, tokens)
        scores[list(suppressed)] = -np.inf
        tokens.append(int(scores.argmax()))
    return tokens[1 + len(marks) :]


@pytest.fixture(scope="module", params=[True, False], ids=["state", "past"])
def texts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(tmp_path_factory.mktemp("t5"), text_encoder(), state=request.param, masked=True)


@pytest.fixture(scope="module", params=[True, False], ids=["state", "past"])
def speech(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    encoder = audio_encoder(FRAMES)
    folder = folder_of(tmp_path_factory.mktemp("whisper"), encoder, state=request.param, masked=False, **LANGUAGES)
    (folder / "preprocessor_config.json").write_text(json.dumps({"feature_size": SIZE, "n_samples": 3200}))
    return folder


def tone(count: int, rate: int = 16000) -> np.ndarray:
    return (0.4 * np.sin(2 * np.pi * 440 * np.arange(count) / rate)).astype(np.float32)


@pytest.mark.one_in(2)
def test_texts(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = irload.TextGeneration(texts)
    prompts = ["The model", "a", "one two three four"]
    results = model.generate(prompts)
    for prompt, result in zip(prompts, results, strict=True):
        ids = model.tokenizer.encode(prompt)
        assert list(result.tokens) == greedy(SOURCE[ids], [], 12)
        assert result.prompt_tokens == len(ids)
        beams = model.generate(prompt, beams=4, max_tokens=5)
        assert list(beams.tokens) == best_beams(partial(logits, SOURCE[ids]), [START], END, 4, 5)
    assert main(["generate", str(texts), *prompts[:2]]) == 0
    assert capsys.readouterr().out == "\n\n".join(f"{prompts[k]}\n{results[k].text}" for k in (0, 1)) + "\n"


def test_wrong_guesses_are_removed_from_the_cache(texts: Path) -> None:
    model = irload.TextGeneration(texts)
    plain = model.generate("The model", repetition_penalty=0.2, max_tokens=12)
    assert model.generate("The model", repetition_penalty=0.2, max_tokens=12, lookup=3) == plain


def test_audio(speech: Path, tmp_path: Path) -> None:
    model = irload.TextGeneration(speech)
    audio = tone(2000)
    np.save(tmp_path / "a.npy", audio)
    encoded = SPECTRA.features(audio)[0].T
    for options, marks in (
        ({"language": "de"}, [402, 405, 407]),
        ({"language": "en", "task": "translate"}, [401, 406, 407]),
    ):
        expected = greedy(encoded, marks, 6, (7, 8))
        assert list(model.generate(audio, max_tokens=6, **options).tokens) == expected
        assert list(model.generate([tmp_path / "a.npy"], max_tokens=6, **options)[0].tokens) == expected
    likely = max((401, 402), key=lambda k: logits(encoded, [START])[k])
    assert list(model.generate(audio, max_tokens=6).tokens) == greedy(encoded, [likely, 405, 407], 6, (7, 8))


def test_parts_of_long_audio_follow_each_other(speech: Path) -> None:
    model = irload.TextGeneration(speech)
    long = np.concatenate([tone(3200), tone(3200, 8000), tone(100)])
    parts = [model.generate(long[k : k + 3200], max_tokens=4, language="en") for k in (0, 3200, 6400)]
    whole = model.generate(long, max_tokens=4, language="en")
    assert whole.tokens == tuple(token for part in parts for token in part.tokens)
    assert (
        whole.text == "".join(part.text for part in parts) == "".join(model.stream(long, max_tokens=4, language="en"))
    )


def test_errors(speech: Path, texts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    np.save(tmp_path / "two.npy", np.zeros((2, 5)))
    np.save(tmp_path / "a.npy", tone(99))
    for words, code, message in (
        ((speech, tmp_path / "a.wav"), 3, "cannot be read as PCM audio"),
        ((speech, tmp_path / "a.mp3"), 2, "not an audio file"),
        ((speech, tmp_path / "b.wav"), 3, "b.wav"),
        ((speech, tmp_path / "two.npy"), 2, "audio is an array [samples]"),
        ((speech, tmp_path / "a.npy", "--language", "fr"), 2, "no language fr; it has de, en"),
        ((speech, tmp_path / "a.npy", "--task", "sing"), 2, "not sing"),
        ((texts, "a", "--language", "en"), 2, "require a speech model"),
        ((texts, ""), 2, "prompt is empty"),
    ):
        assert main(["generate", *map(str, words)]) == code
        assert message in " ".join(capsys.readouterr().err.split())
    with pytest.raises(InputInvalid, match="NaN"):
        irload.TextGeneration(speech).generate(np.full(9, np.nan))


@pytest.mark.parametrize(("width", "channels"), [(1, 1), (2, 2), (3, 1), (4, 2)])
def test_wav_files(tmp_path: Path, width: int, channels: int) -> None:
    path, audio = tmp_path / "a.wav", tone(4000, 8000)
    scaled = np.round(audio.astype(np.float64) * (1 << 8 * width - 1)).astype(np.int64)
    data = (scaled + 128 if width == 1 else scaled).astype("<i8").view(np.uint8).reshape(-1, 8)[:, :width]
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(8000)
        file.writeframes(np.repeat(data, channels, 0).tobytes())
    np.testing.assert_allclose(read_audio(path, 8000), audio, atol=2.0 ** (2 - 8 * width))
    samples = read_audio(path, 16000)
    assert len(samples) == 8000
    np.testing.assert_allclose(samples[200:-200], tone(8000)[200:-200], atol=2.0 ** (2 - 8 * width) + 1e-4)


@pytest.mark.parametrize("rate", [44100, 48000, 11025])
def test_resampling_preserves_tones_below_half_of_the_new_rate_only(rate: int) -> None:
    times = np.arange(rate // 4) / rate
    samples = resampled(np.sin(2 * np.pi * 1000 * times), rate, 16000)
    np.testing.assert_allclose(samples[200:-200], np.sin(np.pi / 8 * np.arange(len(samples)))[200:-200], atol=1e-4)
    if rate > 16000:
        assert np.abs(resampled(np.sin(2 * np.pi * 10000 * times), rate, 16000))[200:-200].max() < 1e-4


def test_mel_spectra_by_their_definition() -> None:
    audio = np.random.default_rng(0).normal(0, 0.1, 3000)
    padded = np.pad(np.pad(audio, (0, 200)), 200, mode="reflect")
    window = np.sin(np.pi * np.arange(400) / 400) ** 2
    mels = np.linspace(0, 15 + 27 * np.log(8) / np.log(6.4), SIZE + 2)
    edges = [m * 200 / 3 if m < 15 else 1000 * 6.4 ** ((m - 15) / 27) for m in mels]
    bands = np.zeros((SIZE, FRAMES))
    for t in range(FRAMES):
        frame = padded[160 * t : 160 * t + 400] * window
        power = [abs(sum(frame * np.exp(-2j * np.pi * k * np.arange(400) / 400))) ** 2 for k in range(201)]
        for m, (low, mid, high) in enumerate(zip(edges, edges[1:], edges[2:], strict=False)):
            weights = [max(0, min((40 * k - low) / (mid - low), (high - 40 * k) / (high - mid))) for k in range(201)]
            bands[m, t] = np.log10(max(np.dot(power, weights) * 2 / (high - low), 1e-10))
    expected = (np.maximum(bands, bands.max() - 8) + 4) / 4
    np.testing.assert_allclose(SPECTRA.features(audio)[0], expected, atol=1e-6)
    with pytest.raises(InputInvalid, match="hop_length"):
        MelSpectra.of({"hop_length": 0})
    assert MelSpectra.of({"chunk_length": 10}).samples == 160000


def test_missing_files(texts: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(texts, tmp_path / "t5"))
    (folder / "generation_config.json").unlink()
    with pytest.raises(InputInvalid, match="no decoder_start_token_id"):
        irload.TextGeneration(folder).generate("a")
    (folder / "openvino_decoder_model.xml").unlink()
    with pytest.raises(ReadError, match=r"no openvino_decoder_model\.xml"):
        irload.TextGeneration(folder)
