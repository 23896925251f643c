"""Datasets in, datasets out: `predict` here or in several processes, `Predictor`s for Ray Data's map_batches."""

from __future__ import annotations

from irload.batch.predictor import Predictor
from irload.batch.stream import Prediction, predict
from irload.batch.text_predictor import TextPredictor

__all__ = ["Prediction", "Predictor", "TextPredictor", "predict"]
