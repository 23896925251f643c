"""Exports small random models by optimum-intel: python export_optimum.py FOLDER."""

import sys
from pathlib import Path

import torch
from optimum.intel import OVModelForCausalLM, OVModelForFeatureExtraction, OVModelForSequenceClassification
from transformers import BertConfig, BertForSequenceClassification, BertModel, LlamaConfig, LlamaForCausalLM

SIZES = {
    "vocab_size": 120,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "initializer_range": 0.3,
}
folder = Path(sys.argv[1])
torch.manual_seed(3)
for name, exported, model in (
    (
        "classifier",
        OVModelForSequenceClassification,
        BertForSequenceClassification(BertConfig(**SIZES, num_labels=3)),
    ),
    ("features", OVModelForFeatureExtraction, BertModel(BertConfig(**SIZES))),
    ("llama", OVModelForCausalLM, LlamaForCausalLM(LlamaConfig(**SIZES, num_key_value_heads=2))),
):
    model.eval().save_pretrained(folder / f"{name}-torch")
    exported.from_pretrained(folder / f"{name}-torch", export=True, compile=False).save_pretrained(folder / name)
