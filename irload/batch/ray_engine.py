"""Runs a job on Ray Data, which reads the inputs, runs a pool of actors with one model each, and writes parts.

Ray does not keep the order of rows, so each item carries its number, and the parts are sorted at the end. An actor
reserves half a processor, so that readers can always be scheduled beside actors.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from irload.batch.columns import ResultRow, write_tables
from irload.batch.extras import extra
from irload.batch.forms import ParquetRows
from irload.batch.items import Done, Item, ItemRecord, WorkerOptions
from irload.batch.job import Job, Summary
from irload.batch.listing import Listing
from irload.batch.manifest import Manifest
from irload.batch.names import shown
from irload.batch.parquet import open_parquet
from irload.batch.ray_source import NAME, NUMBER, require_readable, rows_or_files
from irload.batch.sinks import PartsSink, per_row
from irload.batch.tables import Tables, row_items
from irload.batch.task_runner import TaskRunner
from irload.errors import InputInvalid
from irload.write.atomic import write_atomically

CPUS = 0.5
"""Processors reserved by an actor."""
PATIENCE = 10
"""Timeout for the cluster to answer, in seconds."""

ERROR = "irload.error"
"""The column of error messages."""


class Actor:
    """Maps a block of rows or of files to a block of results: one row per sample, or the error of an item."""

    def __init__(self, options: WorkerOptions, columns: Mapping[str, str]) -> None:
        self.runner = TaskRunner(options)
        self.columns = columns
        form = options.target.merger(self.runner.predictor).form
        assert isinstance(form, ParquetRows)
        self.format = form.format

    def __call__(self, block: Any) -> Any:
        """A table of results for a table."""
        names = block.column(NAME).to_pylist()
        with tempfile.TemporaryDirectory(prefix="irload-") as folder:
            items = list(self._rows(block, names) if self.columns else _files(block, names, folder))
            results, faults = self.runner.predict(items)
            given = {item.number: item.files.get("", "") for item in items}
            reasons = {n: r.reason.replace(given[n] or r.name, shown(r.name)) for n, r in faults}
        by_number = {item.number: per_row(item, outputs, many) for item, outputs, many in results}
        rows: list[ResultRow] = []
        numbers: list[int] = []
        errors: list[str | None] = []
        for item, number in zip(items, block.column(NUMBER).to_pylist(), strict=True):
            samples: list[ResultRow] = by_number.get(item.number) or [(item.name, item.carried, None)]
            rows += samples
            numbers += [number] * len(samples)
            errors += [reasons.get(item.number)] * len(samples)
        arrow = self.format.arrow
        table = self.format.table(rows).append_column(NUMBER, arrow.array(numbers, arrow.int64()))
        return table.append_column(ERROR, arrow.array(errors, arrow.string()))

    def _rows(self, block: Any, names: Sequence[str]) -> Iterator[Item]:
        return row_items(block.drop_columns([NAME, NUMBER]), [(n, n) for n in names], 0, self.columns)


def _files(block: Any, names: Sequence[str], folder: str) -> Iterator[Item]:
    """Files whose bytes arrive with the block; they may be stored on another machine."""
    contents = block.column("bytes")
    for k, name in enumerate(names):
        file = Path(folder, f"{k}{Path(name).suffix}")
        file.write_bytes(contents[k].as_py())
        yield Item(k, name, name, {"": str(file)})


def require_for_ray(job: Job, listing: Listing, source: Listing | Tables) -> None:
    """Raise InputInvalid for options that Ray does not support or if no cluster answers, Unsupported without Ray."""
    if job.target.kind != "parquet" or job.resume or job.fail_fast:
        raise InputInvalid("--engine ray requires a .parquet as output, and supports neither --resume nor --fail-fast")
    if listing.inputs != [""]:
        raise InputInvalid("Ray reads the files of a single input; use .npz or .parquet for several inputs")
    require_readable(source)
    extra("ray.data", "ray")
    if job.address is not None:
        _require_answer(job.address)


def _require_answer(address: str) -> None:
    """Raise InputInvalid if no server answers at host:port. Ray itself would wait for minutes."""
    try:
        url = urlsplit(address if "://" in address else f"//{address}")
        host, port = url.hostname, url.port
    except ValueError as error:
        raise InputInvalid(f"'{address}' is not a valid address of a Ray cluster: {error}") from None
    if host and port:
        try:
            socket.create_connection((host, port), PATIENCE).close()
        except OSError as error:
            raise InputInvalid(f"no Ray cluster answers at {address}: {error.strerror or error}") from None


@contextmanager
def cluster(address: str | None) -> Generator[Any]:
    """The module of Ray, connected to the cluster at an address, or to a local one started here.

    Raises ConnectionError if it cannot be reached.
    """
    ray = extra("ray", "ray")
    extra("ray.data", "ray")
    logging.getLogger("ray.data").setLevel(logging.WARNING)
    with redirect_stdout(sys.stderr):  # Ray prints its warnings to stdout, where results belong
        initialize = not ray.is_initialized()
        if initialize:
            here = {"include_dashboard": False} if address is None else {}
            ray.init(address=address, log_to_driver=False, logging_level=logging.WARNING, **here)
        try:
            yield ray
        finally:
            if initialize:
                ray.shutdown()


def run_ray(
    ray: Any, job: Job, source: Listing | Tables, manifest: Manifest, summary: Summary, merger: PartsSink
) -> None:
    """Run a job on a cluster."""
    assert isinstance(merger.form, ParquetRows)
    _map(ray, job, source)
    _merge(job, merger.form.format.schema, manifest, summary)


def _map(ray: Any, job: Job, source: Listing | Tables) -> None:
    """Write the parts on the cluster."""
    context = ray.data.DataContext.get_current()
    before = context.execution_options.preserve_order, context.enable_progress_bars
    context.execution_options.preserve_order, context.enable_progress_bars = True, False
    try:
        parts = os.path.abspath(job.target.parts)
        options = replace(
            job.options, model=os.path.abspath(job.options.model), threads=job.options.threads or 1, target=job.target
        )
        rows_or_files(ray, source).map_batches(
            Actor,
            fn_constructor_args=(options, source.columns if isinstance(source, Tables) else {}),
            batch_size=job.task_size,
            batch_format="pyarrow",
            num_cpus=CPUS,
            compute=ray.data.ActorPoolStrategy(size=job.workers),
        ).write_parquet(parts)
    finally:
        context.execution_options.preserve_order, context.enable_progress_bars = before


def _merge(job: Job, schema: Any, manifest: Manifest, summary: Summary) -> None:
    """Concatenate the parts to one output, as the local engine does, and record its items."""
    compute = extra("pyarrow.compute", "parquet")
    files = sorted(job.target.parts.glob("**/*.parquet"))

    def tables() -> Iterator[Any]:
        for table in in_order(files):
            records: dict[int, ItemRecord] = {}
            columns = (table.column(name).to_pylist() for name in (NUMBER, "input", ERROR))
            for number, name, error in zip(*columns, strict=True):
                samples = records[number].samples + 1 if number in records else 1
                whole = name.rpartition("#")[0] if samples > 1 and not error else name
                records[number] = ItemRecord(
                    whole, "" if error else str(job.target.path), "", error or "", samples, number
                )
            done = Done(list(records.values()))
            manifest.add(done.records)
            summary.count(done)
            good = table.filter(compute.is_null(table.column(ERROR)))
            yield good.drop_columns([NUMBER, ERROR])

    write_atomically(job.target.path, lambda stream: write_tables(schema, tables(), stream))


def in_order(files: Sequence[Path]) -> Iterator[Any]:
    """The rows of the parts by number. Only parts whose numbers overlap are in memory together."""
    arrow, parquet = extra("pyarrow", "parquet"), extra("pyarrow.parquet", "parquet")
    compute = extra("pyarrow.compute", "parquet")
    firsts = [(min(parquet.read_table(f, columns=[NUMBER]).column(0).to_pylist(), default=0), f) for f in files]
    firsts.sort()
    waiting: Any = None
    for k, (_, file) in enumerate(firsts):
        with open_parquet(file) as opened:
            table = opened.read()
        waiting = table if waiting is None else arrow.concat_tables([waiting, table])
        order = compute.sort_indices(waiting, [(NUMBER, "ascending")])
        waiting = waiting.take(order)
        if k + 1 < len(firsts):
            ready = compute.less(waiting.column(NUMBER), firsts[k + 1][0])
            yield waiting.filter(ready)
            waiting = waiting.filter(compute.invert(ready))
        else:
            yield waiting
