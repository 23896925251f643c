"""Runs a task: loads, predicts and stores its items. An item that fails does not affect the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irload.batch.items import Done, Item, ItemRecord, WorkerOptions
from irload.batch.listing import stamp
from irload.batch.load import load_item
from irload.batch.model_info import with_model_info
from irload.batch.predictors import predictor_of
from irload.batch.samples import Samples
from irload.batch.sinks import ItemOutputs
from irload.batch.target import sink_of
from irload.errors import IRError, Unsupported, out_of_memory
from irload.extensions import load_extension, loaded_extensions


class TaskRunner:
    """The model, loaded once, and the sink of its results."""

    def __init__(self, options: WorkerOptions) -> None:
        self.options = options
        for file in options.extensions:
            if file not in loaded_extensions():  # in a worker process
                load_extension(file)
        self.predictor = predictor_of(options)
        self.images = with_model_info(options.images, self.predictor.rt_info)
        self.sink = sink_of(options.target, self.predictor)
        self._reported = len(self.predictor.compiled.differences)

    def run(self, items: Sequence[Item]) -> Done:
        """Predict items. Raises OSError if results cannot be stored, and errors that concern all items."""
        # Before the files are read: a file that changes meanwhile then differs from its stamp when the job resumes.
        stamps = [item.stamp or stamp(item.files.values(), hashed=self.options.hashed) for item in items]
        results, faults = self.predict(items)
        by_number = dict((*self._stored(results), *faults))
        records = [replace(by_number[i.number], number=i.number, stamp=s) for i, s in zip(items, stamps, strict=True)]
        differences = self.predictor.compiled.differences
        new, self._reported = differences[self._reported :], len(differences)
        return Done(records, new)

    def _stored(self, results: Sequence[ItemOutputs]) -> list[tuple[int, ItemRecord]]:
        records = self.sink.store(results)
        return [(item.number, record) for (item, _, _), record in zip(results, records, strict=True)]

    def predict(self, items: Sequence[Item]) -> tuple[list[ItemOutputs], list[tuple[int, ItemRecord]]]:
        """The outputs of the items by number, and records of the failed ones."""
        faults: list[tuple[int, ItemRecord]] = []
        loaded: list[tuple[Item, Samples]] = []
        for item in items:
            try:
                loaded.append((item, replace(load_item(item, self.predictor, self.images), number=item.number)))
            except Unsupported:  # a package is missing, which concerns all items
                raise
            except (IRError, MemoryError) as error:
                faults.append((item.number, ItemRecord(item.name, reason=reason_of(error))))
        results: list[ItemOutputs] = []
        stacked = self.predictor.takes.stacked
        for (item, samples), outputs in zip(loaded, self.predictor.run([s for _, s in loaded]), strict=True):
            if isinstance(outputs, IRError):
                faults.append((item.number, ItemRecord(item.name, reason=reason_of(outputs))))
            else:
                results.append((item, outputs, stacked and not samples.single))
        return results, faults


def reason_of(error: Exception) -> str:
    """Return the error as one line of text."""
    fault = out_of_memory("for the item", error) if isinstance(error, MemoryError) else error
    return str(fault).replace("\n", " ")
