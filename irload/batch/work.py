"""One task: its items loaded, predicted and stored; what is wrong with one of them stays its own."""

from __future__ import annotations

from collections.abc import Sequence

from irload.batch.items import Done, Item, Recipe, Record
from irload.batch.load import load_item
from irload.batch.predictor import Predictor
from irload.batch.rows import Rows
from irload.batch.sinks import Result
from irload.batch.target import sink_of
from irload.errors import IRError, Unsupported
from irload.extensions import load_extension, loaded_extensions


class Work:
    """The model, loaded once, and where results go."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        for file in recipe.extensions:
            if file not in loaded_extensions():  # in a process of its own
                load_extension(file)
        self.predictor = Predictor(
            recipe.model,
            weights=recipe.weights,
            batch_size=recipe.batch_size,
            threads=recipe.threads,
            shapes=recipe.shapes,
            uniform=recipe.uniform,
            limits=recipe.limits,
            sha256=recipe.sha256,
            strict=recipe.strict,
        )
        self.sink = sink_of(recipe.target, self.predictor)
        self._told = len(self.predictor.compiled.differences)

    def do(self, items: Sequence[Item]) -> Done:
        """Predict items. Raises OSError where results cannot be stored, and what an item cannot be blamed for."""
        results, faults = self.predict(items)
        stored, part = self.sink.store(results)
        by_name = {record.name: record for record in (*stored, *faults)}
        found = self.predictor.compiled.differences
        news, self._told = found[self._told :], len(found)
        return Done([by_name[item.name] for item in items], part, news)

    def predict(self, items: Sequence[Item]) -> tuple[list[Result], list[Record]]:
        """The outputs of the items, and records of those that have none."""
        faults: list[Record] = []
        loaded: list[tuple[Item, Rows]] = []
        for item in items:
            try:
                loaded.append((item, load_item(item, self.predictor, self.recipe.pixels)))
            except Unsupported:  # a package is missing: no fault of the item
                raise
            except (IRError, MemoryError) as error:
                faults.append(Record(item.name, reason=reason_of(error)))
        results: list[Result] = []
        stacked = self.predictor.stacking.stacked
        for (item, rows), outputs in zip(loaded, self.predictor.run([r for _, r in loaded]), strict=True):
            if isinstance(outputs, IRError):
                faults.append(Record(item.name, reason=reason_of(outputs)))
            else:
                results.append((item, outputs, stacked and not rows.lone))
        return results, faults


def reason_of(error: Exception) -> str:
    """One line that says what is wrong."""
    return (str(error) or "out of memory").replace("\n", " ")
