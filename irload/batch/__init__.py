"""Runs models over datasets: `predict` in this process or in several, `Predictor`s for Ray Data's map_batches."""

from __future__ import annotations

from irload.batch.predictor import Predictor
from irload.batch.stream import Prediction, predict
from irload.batch.text_predictor import TextPredictor

__all__ = ["Prediction", "Predictor", "TextPredictor", "predict"]
