"""Datasets in, datasets out: `predict` in this process or several, `Predictor` for Ray Data's map_batches."""

from __future__ import annotations

from irload.batch.predictor import Predictor
from irload.batch.stream import Prediction, predict

__all__ = ["Prediction", "Predictor", "predict"]
