"""Runs a job: predicts items from files in worker processes or on Ray, stores and records results. Resumable."""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from itertools import islice

from irload.batch.columns import column_names
from irload.batch.extras import extra
from irload.batch.images import ImageOptions, require_fit
from irload.batch.items import Item, Task
from irload.batch.job import Job, Summary
from irload.batch.labels import fit, label_axis
from irload.batch.listing import Listing, stamp
from irload.batch.load import load_item, port_of
from irload.batch.manifest import DONE, FAILED, Manifest
from irload.batch.model_info import range_warning, with_model_info
from irload.batch.names import shown
from irload.batch.opening import open_manifest, require_free, tidy
from irload.batch.pool import WorkerPool
from irload.batch.predictor import MAX_SAMPLES
from irload.batch.predictors import AnyPredictor, predictor_of
from irload.batch.ray_engine import cluster, require_for_ray, run_ray
from irload.batch.tables import Tables
from irload.batch.target import OutputTarget
from irload.batch.text_predictor import TextPredictor
from irload.errors import InputInvalid, IRError, Unsupported
from irload.graph import Port
from irload.system.machine import thread_count

FAILURES = 1000
"""Maximum failures in a summary; the manifest has them all."""
LABELLED = ("jsonl", "csv")
"""Kinds of results that contain labels."""
FIRST = 8
"""Number of first items that must fail for one reason to end the job."""

OnProgress = Callable[[Summary], None]


def run_job(job: Job, on_progress: OnProgress = lambda _: None) -> Summary:
    """Run the remaining items of a job. Ctrl-C ends it early and keeps finished items.

    Raises FileExistsError for existing outputs, InputInvalid and ReadError if the job cannot start, OSError if results
    cannot be stored; finished items remain valid, and `resume` continues with the others.
    """
    summary = Summary()
    started = time.monotonic()
    predictor = predictor_of(job.options)  # fail early if an option cannot be met
    summary.warnings, summary.differences = list(predictor.compiled.warnings), list(predictor.compiled.differences)
    summary.batching = predictor.batching
    _require_kind(job.target)
    listing = Listing(job.words, predictor.inputs, (str(job.target.path), str(job.target.job)))
    source: Listing | Tables = _tables(job, listing, predictor.inputs) if listing.tables else listing
    if isinstance(source, Tables):
        job = _carrying(job, source, predictor.output_names, summary)
    elif job.columns:
        raise InputInvalid("--column requires .parquet files, but none of the inputs is one")
    job = _imaged(job, listing, predictor, summary)
    summary.warnings += summary.notes
    job = _sized(job, source.total, predictor)
    job.target.sink(predictor)  # fail early if the outputs do not fit
    job.target.require_labels(predictor)
    if not listing.names_inputs:
        port_of("", predictor)  # fail early if the input is ambiguous
    merger = None if job.target.is_folder else job.target.merger(predictor)
    _require_pillow(job, listing, source, predictor)
    if job.engine == "ray":
        require_for_ray(job, listing, source)
        if not job.keep_going:
            _require_loadable(job, source, predictor)
        require_free(job, source)  # before a cluster is started
    del predictor  # one per worker
    with (
        cluster(job.address) if job.engine == "ray" else nullcontext() as ray,
        closing(open_manifest(job, source)) as manifest,
    ):
        whole = manifest.get("state") == "whole"
        summary.total = source.total
        try:
            if ray is not None and merger is not None:
                run_ray(ray, job, source, manifest, summary, merger)
                finished = True
            else:
                finished = _run(job, source, manifest, summary, on_progress, whole=whole)
                if finished and merger is not None and not whole:
                    merger.merge(manifest.runs())
            if finished:
                summary.removed = manifest.removed()
                failed = manifest.count(FAILED)
                manifest.put(state="finished" if failed else "whole")
                tidy(job.target, manifest, parts=not failed)
            summary.finished = finished
        except KeyboardInterrupt:
            summary.interrupted = True
        except OSError as error:
            if error.errno is None:  # not a storage failure: the cluster was lost
                raise
            kept = summary.before + summary.done
            text = f"{error.strerror or error}; {kept} finished items are kept, and --resume continues the job"
            file = error.filename
            if file is None or os.path.dirname(file) == str(job.target.job):  # a deleted temporary file
                file = str(job.target.path)
            raise OSError(error.errno, text, file) from None
        summary.failures = manifest.failures(FAILURES)
        manifest.put(warnings=json.dumps(summary.warnings, ensure_ascii=False))
    summary.seconds = time.monotonic() - started
    return summary


def _run(
    job: Job, source: Listing | Tables, manifest: Manifest, summary: Summary, on_progress: OnProgress, *, whole: bool
) -> bool:
    """Process the unfinished items by local workers. False if failures ended the job."""
    share = max(1, thread_count(job.options.threads) // job.workers)
    pool = WorkerPool(replace(job.options, threads=share, target=job.target), job.workers)
    on_progress(summary)
    reasons: set[str] = set()
    with closing(pool):
        for done in pool.run(_tasks(job, source, manifest, summary, whole=whole)):
            manifest.add(done.records)
            summary.count(done)
            summary.batching, summary.deaths = pool.batching, pool.deaths
            on_progress(summary)
            if job.fail_fast and summary.failed:
                return False
            reasons |= {kind_of(r.reason, r.name) for r in done.records if r.reason}
            if not job.keep_going and _hopeless(summary, reasons):
                summary.stopped = next(r.reason for r in done.records if r.reason)
                return False
    return True


def _require_pillow(job: Job, listing: Listing, source: Listing | Tables, predictor: AnyPredictor) -> None:
    """Raise Unsupported if files, or the first row of a table, are images and pillow is not installed."""
    if listing.images:
        extra("PIL.Image", "images")
    elif listing.tables:
        for item in islice(source, 1):
            try:
                load_item(item, predictor, job.options.images)
            except Unsupported:
                raise
            except (IRError, MemoryError):
                return  # it fails when its turn comes


def _require_loadable(job: Job, source: Listing | Tables, predictor: AnyPredictor) -> None:
    """Raise InputInvalid if the first items all fail to load for one reason, before a cluster is started."""
    images = with_model_info(job.options.images, predictor.rt_info)
    reasons: list[str] = []
    last = ""
    for item in islice(source, FIRST):
        try:
            load_item(item, predictor, images)
            return
        except (IRError, MemoryError) as error:
            reasons.append(kind_of(str(error), item.name))
            last = str(error)
    if len(reasons) == FIRST < source.total and len({*reasons}) == 1:
        raise InputInvalid(f"the first {FIRST} items all fail: {last}; --keep-going continues with the others")


def _hopeless(summary: Summary, reasons: set[str]) -> bool:
    """True if all of the first items failed for one reason, and there are more to come."""
    if summary.before or summary.done or len(reasons) != 1:
        return False
    return FIRST <= summary.failed < summary.total


def kind_of(reason: str, name: str) -> str:
    """A reason without the parts that vary between items: names and numbers."""
    return re.sub(r"[0-9]+", "0", reason.replace(shown(name), "").replace(name, ""))


def _sized(job: Job, total: int, predictor: AnyPredictor) -> Job:
    """The job with its sizes; given sizes are balanced over all items to minimize the padding of the last batch."""
    wanted, total = job.options.batch_size, max(total, 1)
    if isinstance(predictor, TextPredictor):
        return replace(job, task_size=min(predictor.together, math.ceil(total / job.workers)))
    if wanted is not None:
        size = math.ceil(total / math.ceil(total / wanted))
        return replace(job, task_size=size, options=replace(job.options, batch_size=size, uniform=True))
    share = math.ceil(total / job.workers)
    return replace(
        job,
        task_size=min(MAX_SAMPLES, share if job.workers == 1 else math.ceil(share / 2)),
        options=replace(job.options, expected=share),
    )


def _tasks(job: Job, source: Listing | Tables, manifest: Manifest, summary: Summary, *, whole: bool) -> Iterator[Task]:
    """The items that are unfinished or changed since. All items get their new numbers."""
    closed = whole and not job.target.is_folder
    if job.resume and not closed:
        manifest.unnumber()
    waiting: list[Item] = []
    for item in source:
        if job.resume and _is_done(job, item, manifest, summary):
            summary.before += 1
            if not closed:
                manifest.number(item.name, item.number)
            continue
        if closed:
            raise _finished(job, f"{shown(item.name)} is new or was changed since")
        waiting.append(item)
        if len(waiting) == job.task_size:
            yield Task(waiting)
            waiting = []
    manifest.flush()
    if closed and summary.before != manifest.count(DONE):
        raise _finished(job, "inputs were removed since")
    if waiting:
        yield Task(waiting)


def _finished(job: Job, fact: str) -> InputInvalid:
    return InputInvalid(
        f"{job.target.path} is finished, and {fact}; give the inputs another output, or --force to repeat all of them"
    )


def _is_done(job: Job, item: Item, manifest: Manifest, summary: Summary) -> bool:
    done = manifest.done(item.name)
    if done is None:
        return False
    output, before = done
    now = item.stamp or stamp(item.files.values(), hashed=job.options.hashed)
    if before != now:
        summary.changed += 1
        return False
    return not job.target.is_folder or os.path.exists(output)


def _tables(job: Job, listing: Listing, inputs: Sequence[Port]) -> Tables:
    if listing.inputs != [""]:
        raise InputInvalid("a .parquet is given without name=, since its columns are matched to the inputs")
    return Tables(listing.paths(), inputs, job.columns, hashed=job.options.hashed)


def _carrying(job: Job, source: Tables, outputs: Sequence[str], summary: Summary) -> Job:
    """The job with the table columns that are copied into the results."""
    if job.target.is_folder:
        return job
    names = [f.name for f in source.carried]
    for name, renamed in zip(names, column_names(outputs, names)[1], strict=True):
        if name != renamed:
            summary.notes.append(f"column '{name}' is carried over as '{renamed}', as there is another of its name")
    return replace(job, target=replace(job.target, carried=tuple(source.carried)))


def _imaged(job: Job, listing: Listing, predictor: AnyPredictor, summary: Summary) -> Job:
    """The job with the labels of the model. Raises InputInvalid for image options that no image can satisfy."""
    given = job.options.images
    if given != ImageOptions() and not listing.images and not listing.tables:
        raise InputInvalid("options of images are given, but none of the inputs is an image")
    for name in listing.images if given != ImageOptions() else ():
        require_fit(port_of(name, predictor), with_model_info(given, predictor.rt_info))
    if listing.images or listing.tables:
        warning = range_warning(with_model_info(given, predictor.rt_info))
        summary.notes += [warning] if warning else []
    labels = predictor.labels
    sizes = [label_axis(p, stacked=predictor.takes.stacked) for p in predictor.outputs]
    if labels and fit(labels, sizes) and not job.target.labels and job.target.kind in LABELLED:
        return replace(job, target=replace(job.target, labels=labels))
    return job


def _require_kind(target: OutputTarget) -> None:
    """Raise InputInvalid if the output file exists as a folder, or the output folder as a file."""
    if target.is_folder and os.path.lexists(target.path) and not target.path.is_dir():
        raise InputInvalid(f"{target.path} is not a folder; give a folder, or a file named .parquet, .jsonl or .csv")
    if not target.is_folder and target.path.is_dir():
        raise InputInvalid(f"{target.path} is a folder, but the output is a single file")
    if os.path.islink(target.job):
        raise InputInvalid(f"{target.job} is a link; the job's internal files are kept in a folder there")
