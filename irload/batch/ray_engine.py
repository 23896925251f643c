"""The same job on Ray Data: its readers, a pool of actors that each hold the model, its writer.

An actor asks for half a processor, so that the readers never wait for one that actors hold.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irload.batch.columns import write_tables
from irload.batch.extras import extra
from irload.batch.items import Done, Item, Recipe, Record
from irload.batch.manifest import Manifest
from irload.batch.sinks import Columns, Row, per_row
from irload.batch.tables import Tables, row_items
from irload.batch.work import Work
from irload.errors import InputInvalid
from irload.write.atomic import write_atomically

if TYPE_CHECKING:
    from irload.batch.job import Job, Summary
    from irload.batch.listing import Listing

CPUS = 0.5
"""Processors that an actor asks for."""

PATH, ERROR = "irload.path", "irload.error"
"""Columns that parts have besides those of the output."""


class Actor:
    """Maps a block of rows or of files to a block of results, a row a sample, with what was wrong with the others."""

    def __init__(self, recipe: Recipe, columns: Sequence[str]) -> None:
        self.work = Work(recipe)
        self.columns = columns
        form = recipe.target.merger(self.work.predictor).form
        assert isinstance(form, Columns)
        self.format = form.format

    def __call__(self, block: Any) -> Any:
        """A table of results for a table."""
        paths = block.column("path").to_pylist()
        with tempfile.TemporaryDirectory(prefix="irload-") as folder:
            items = list(self._rows(block) if self.columns else _files(block, paths, folder))
            results, faults = self.work.predict(items)
            reasons = {record.name: record.reason.replace(folder, "") for record in faults}
        found = {item.number: per_row(item, outputs, many) for item, outputs, many in results}
        rows: list[Row] = []
        places: list[str] = []
        errors: list[str | None] = []
        for item, path in zip(items, paths, strict=True):
            samples = found.get(item.number) or [(item.name, item.carried, None)]
            rows += samples
            places += [path] * len(samples)
            errors += [reasons.get(item.name)] * len(samples)
        text = self.format.arrow.string()
        table = self.format.table(rows).append_column(PATH, self.format.arrow.array(places, text))
        return table.append_column(ERROR, self.format.arrow.array(errors, text))

    def _rows(self, block: Any) -> Iterator[Item]:
        names = [str(k) for k in range(block.num_rows)]
        return row_items(block, names, 0, self.columns, [f.name for f in self.format.carried])


def _files(block: Any, paths: Sequence[str], folder: str) -> Iterator[Item]:
    """Files whose bytes came with the block; they may lie on another machine."""
    contents = block.column("bytes")
    for k, path in enumerate(paths):
        file = Path(folder + os.path.abspath(path))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(contents[k].as_py())
        yield Item(k, path, path, {"": str(file)})


def run_ray(job: Job, listing: Listing, source: Listing | Tables, manifest: Manifest, summary: Summary) -> bool:
    """Do a job on the cluster at `job.address`, or on one started for it here. Returns True."""
    if job.target.kind != "parquet" or job.resume or job.fail_fast:
        raise InputInvalid("Ray writes one .parquet and redoes what its workers lose: no --resume, no --fail-fast")
    if listing.inputs != [""]:
        raise InputInvalid("Ray reads the files of one input: give .npz or .parquet for several")
    ray = extra("ray", "ray")
    extra("ray.data", "ray")
    own = not ray.is_initialized()
    if own:
        here = {"include_dashboard": False} if job.address is None else {}
        ray.init(address=job.address, log_to_driver=False, configure_logging=False, **here)
    try:
        given = {os.path.abspath(path): path for path in listing.paths()}
        _map(ray, job, list(given), source)
        _merge(job, source, given, manifest, summary)
    finally:
        if own:
            ray.shutdown()
    return True


def _map(ray: Any, job: Job, paths: list[str], source: Listing | Tables) -> None:
    """Have the cluster write the parts."""
    context = ray.data.DataContext.get_current()
    before = context.execution_options.preserve_order, context.enable_progress_bars
    context.execution_options.preserve_order, context.enable_progress_bars = True, False
    try:
        tables = isinstance(source, Tables)
        read = ray.data.read_parquet if tables else ray.data.read_binary_files
        target = replace(job.target, path=Path(os.path.abspath(job.target.path)))
        recipe = replace(
            job.recipe, model=os.path.abspath(job.recipe.model), threads=job.recipe.threads or 1, target=target
        )
        read(paths, include_paths=True).map_batches(
            Actor,
            fn_constructor_args=(recipe, source.columns if isinstance(source, Tables) else ()),
            batch_size=job.recipe.batch_size,
            batch_format="pyarrow",
            num_cpus=CPUS,
            compute=ray.data.ActorPoolStrategy(size=job.workers),
        ).write_parquet(str(target.parts))
    finally:
        context.execution_options.preserve_order, context.enable_progress_bars = before


def _merge(job: Job, source: Listing | Tables, given: dict[str, str], manifest: Manifest, summary: Summary) -> None:
    """One output from the parts, as the local engine makes it, and the records of its items."""
    arrow, parquet = extra("pyarrow", "parquet"), extra("pyarrow.parquet", "parquet")
    files = sorted(job.target.parts.glob("**/*.parquet"))
    seen: Counter[str] = Counter()

    def tables() -> Iterator[Any]:
        for file in files:
            table = parquet.read_table(file)
            paths = [given[os.path.abspath(p)] for p in table.column(PATH).to_pylist()]
            errors = table.column(ERROR).to_pylist()
            names = table.column("input").to_pylist()
            if isinstance(source, Tables):
                names = _numbered(paths, seen)
            else:
                names = [
                    path + name.removeprefix(os.path.abspath(path)) for path, name in zip(paths, names, strict=True)
                ]
            owners = names if isinstance(source, Tables) else paths
            samples = Counter(owners)
            done = Done(
                [
                    Record(owner, "" if error else str(job.target.path), "", _local(error, path), samples[owner])
                    for owner, (path, error) in dict(zip(owners, zip(paths, errors, strict=True), strict=True)).items()
                ]
            )
            manifest.add(done.records)
            summary.count(done)
            table = table.set_column(0, "input", arrow.array(names, arrow.string())).drop_columns([PATH, ERROR])
            yield table.filter(arrow.array([error is None for error in errors]))

    first = parquet.read_schema(files[0])
    schema = arrow.schema([f for f in first if f.name not in (PATH, ERROR)])
    write_atomically(job.target.path, lambda stream: write_tables(schema, tables(), stream))


def _numbered(paths: Sequence[str], seen: Counter[str]) -> list[str]:
    names: list[str] = []
    for path in paths:
        names.append(f"{path}#{seen[path]}")
        seen[path] += 1
    return names


def _local(error: str | None, path: str) -> str:
    return "" if error is None else error.replace(os.path.abspath(path), path)
