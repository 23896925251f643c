"""Trains the small tokenizers in tests/text/data on this repository's documentation, and converts them to IR.

Needs transformers and tokenizers, which the suite does not: python -m tests.text.make_tokenizers
"""

from __future__ import annotations

from pathlib import Path

import openvino as ov
from openvino_tokenizers import convert_tokenizer
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).parent / "data"
VOCABULARY = 420
SENTENCE = "Grüße aus Köln: naïve café, 日本語 中文 Привет мир 👍🏽 ½ ﬁ Å."
WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
LLAMA3 = WORDS + r"|\s+(?!\S)|\s+"
MARKS = ["<|end|>", "<|user|>", "<|assistant|>"]


def lines() -> list[str]:
    pages = (ROOT / "docs" / name for name in ("architecture.md", "glossary.md", "debugging.md"))
    return [line for page in pages for line in page.read_text("utf-8").splitlines()] + [SENTENCE] * 4


def byte_level(pattern: str | None) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)
    split = [] if pattern is None else [pre_tokenizers.Split(Regex(pattern), "isolated")]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*split, level])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=MARKS
    )
    tokenizer.train_from_iterator(lines(), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=MARKS[0], pad_token=MARKS[0], padding_side="left"
    )


def word_piece() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(lines(), trainers.WordPieceTrainer(vocab_size=VOCABULARY, special_tokens=marks))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    named = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), marks, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named)


def unigram() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=VOCABULARY, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>"
    )
    tokenizer.train_from_iterator(lines(), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", pad_token="<pad>", eos_token="</s>")


def llama2() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    marks = ["<unk>", "<s>", "</s>", *(f"<0x{k:02X}>" for k in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY + 100, special_tokens=marks, limit_alphabet=60)
    tokenizer.train_from_iterator(lines(), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )


KINDS = {
    "gpt2": lambda: byte_level(None),
    "llama3": lambda: byte_level(LLAMA3),
    "bert": word_piece,
    "unigram": unigram,
    "llama2": llama2,
}


def main() -> None:
    for name, make in KINDS.items():
        (DATA / name).mkdir(parents=True, exist_ok=True)
        both = convert_tokenizer(make(), with_detokenizer=True)
        for model, file in zip(both, ("openvino_tokenizer", "openvino_detokenizer"), strict=True):
            ov.save_model(model, DATA / name / f"{file}.xml")


if __name__ == "__main__":
    main()
