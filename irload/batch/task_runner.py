"""One task: its items loaded, predicted and stored; an item that fails does not affect the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irload.batch.items import Done, Item, Record, WorkerOptions
from irload.batch.listing import stamp
from irload.batch.load import load_item
from irload.batch.model_info import with_model_info
from irload.batch.predictor import Predictor
from irload.batch.samples import Samples
from irload.batch.sinks import ItemOutputs
from irload.batch.target import sink_of
from irload.errors import IRError, Unsupported
from irload.extensions import load_extension, loaded_extensions


class TaskRunner:
    """The model, loaded once, and where results go."""

    def __init__(self, options: WorkerOptions) -> None:
        self.options = options
        for file in options.extensions:
            if file not in loaded_extensions():  # in a process of its own
                load_extension(file)
        self.predictor = predictor_of(options)
        self.images = with_model_info(options.images, self.predictor.rt_info)
        self.sink = sink_of(options.target, self.predictor)
        self._reported = len(self.predictor.compiled.differences)

    def run(self, items: Sequence[Item]) -> Done:
        """Predict items. Raises OSError where results cannot be stored, and what is no fault of an item."""
        # Taken before the files are read: what changes meanwhile is seen to have changed when the job is resumed.
        stamps = [item.stamp or stamp(item.files.values(), hashed=self.options.hashed) for item in items]
        results, faults = self.predict(items)
        by_number = dict((*self._stored(results), *faults))
        records = [replace(by_number[i.number], number=i.number, stamp=s) for i, s in zip(items, stamps, strict=True)]
        found = self.predictor.compiled.differences
        new, self._reported = found[self._reported :], len(found)
        return Done(records, new)

    def _stored(self, results: Sequence[ItemOutputs]) -> list[tuple[int, Record]]:
        records = self.sink.store(results)
        return [(item.number, record) for (item, _, _), record in zip(results, records, strict=True)]

    def predict(self, items: Sequence[Item]) -> tuple[list[ItemOutputs], list[tuple[int, Record]]]:
        """The outputs of the items, and records of those that have none, by number."""
        faults: list[tuple[int, Record]] = []
        loaded: list[tuple[Item, Samples]] = []
        for item in items:
            try:
                loaded.append((item, load_item(item, self.predictor, self.images)))
            except Unsupported:  # a package is missing: no fault of the item
                raise
            except (IRError, MemoryError) as error:
                faults.append((item.number, Record(item.name, reason=reason_of(error))))
        results: list[ItemOutputs] = []
        stacked = self.predictor.takes.stacked
        for (item, samples), outputs in zip(loaded, self.predictor.run([s for _, s in loaded]), strict=True):
            if isinstance(outputs, IRError):
                faults.append((item.number, Record(item.name, reason=reason_of(outputs))))
            else:
                results.append((item, outputs, stacked and not samples.single))
        return results, faults


def predictor_of(options: WorkerOptions) -> Predictor:
    """What runs the model as the options say."""
    return Predictor(
        options.model,
        weights=options.weights,
        batch_size=options.batch_size,
        threads=options.threads,
        shapes=options.shapes,
        uniform=options.uniform,
        expected=options.expected,
        limits=options.limits,
        sha256=options.sha256,
        strict=options.strict,
        cast=options.cast,
        jit=options.jit,
        precision=options.precision,
    )


def reason_of(error: Exception) -> str:
    """One line that says what is wrong."""
    return (str(error) or "out of memory").replace("\n", " ")
