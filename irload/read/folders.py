"""The files of a language model's folder, as optimum-intel names them."""

from __future__ import annotations

MODEL, TOKENIZER, DETOKENIZER = "openvino_model.xml", "openvino_tokenizer.xml", "openvino_detokenizer.xml"
ENCODER, DECODER = "openvino_encoder_model.xml", "openvino_decoder_model.xml"
DECODER_WITH_PAST = "openvino_decoder_with_past_model.xml"
MODELS, TOKENIZER_MODELS = (MODEL, ENCODER, DECODER, DECODER_WITH_PAST), (TOKENIZER, DETOKENIZER)
CONFIG_BYTES = 64 << 20
"""Maximum size in bytes of a JSON file or template."""
