"""Creates the predictor of a job: for a model, or for the folder of a text model."""

from __future__ import annotations

import os

from irload.batch.items import WorkerOptions
from irload.batch.predictor import Predictor
from irload.batch.text_predictor import TextPredictor
from irload.errors import InputInvalid
from irload.text.tasks import TextOptions

__all__ = ["AnyPredictor", "is_folder", "predictor_of", "text_predictor_of"]

AnyPredictor = Predictor | TextPredictor


def is_folder(model: object) -> bool:
    """True for the path of a folder, which contains a text model."""
    return isinstance(model, str | os.PathLike) and os.path.isdir(model)


def predictor_of(options: WorkerOptions) -> AnyPredictor:
    """The predictor with the job's options. Raises InputInvalid for options that it does not support."""
    if isinstance(options.model, TextPredictor):
        return options.model
    if is_folder(options.model):
        return text_predictor_of(options)
    if options.texts != TextOptions():
        raise InputInvalid("options of text generation require the folder of a language model")
    return Predictor(
        options.model,
        weights=options.weights,
        batch_size=options.batch_size,
        threads=options.threads,
        shapes=options.shapes,
        uniform=options.uniform,
        expected=options.expected,
        sha256=options.sha256,
        cast=options.cast,
        **options.compile,
    )


def text_predictor_of(options: WorkerOptions) -> TextPredictor:
    """The predictor of a folder. Raises InputInvalid for options that are for model files."""
    for value, name in ((options.weights, "weights"), (options.shapes, "shapes"), (options.sha256, "sha256")):
        if value:
            raise InputInvalid(f"{name} require a model file, but {options.model} is a folder")
    return TextPredictor(
        options.model,
        batch_size=options.batch_size,
        threads=options.threads,
        generation=options.texts.generation,
        chat=options.texts.chat,
        **options.compile,
    )
