"""Runs a job: items from files, predicted by worker processes or by Ray, stored, recorded, resumable."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from irload.batch.items import Item, Task
from irload.batch.job import Job, Summary
from irload.batch.listing import Listing
from irload.batch.manifest import Manifest
from irload.batch.pool import Pool
from irload.batch.predictor import MOST, Predictor
from irload.batch.ray_engine import run_ray
from irload.batch.tables import Tables
from irload.batch.target import Target
from irload.errors import InputInvalid
from irload.graph import Port
from irload.plan.threads import thread_count

FAILURES = 1000
"""Failures that a summary lists; the manifest has them all."""


OnProgress = Callable[[Summary], None]


def run_job(job: Job, on_progress: OnProgress = lambda _: None) -> Summary:
    """Do what is left of a job. Ctrl-C ends it early, with what is finished kept.

    Raises FileExistsError for outputs that are there already, InputInvalid and ReadError for what cannot be begun,
    OSError where results cannot be stored; whatever was finished before stays, and `resume` goes on from there.
    """
    summary = Summary()
    started = time.monotonic()
    predictor = Predictor(
        job.options.model,
        weights=job.options.weights,
        batch_size=job.options.batch_size,
        shapes=job.options.shapes,
        limits=job.options.limits,
        sha256=job.options.sha256,
        strict=job.options.strict,
    )
    summary.warnings, summary.differences = predictor.compiled.warnings, predictor.compiled.differences
    summary.batching = predictor.batching
    listing = Listing(job.words, predictor.inputs)
    source: Listing | Tables = _tables(listing, predictor.inputs) if listing.tables else listing
    if isinstance(source, Tables):
        job = _carrying(job, source)
    job = _sized(job, source.total)
    job.target.sink(predictor)  # fails early where the outputs do not fit
    merger = None if job.target.is_folder else job.target.merger(predictor)
    del predictor  # each worker has its own
    with closing(_open(job, source)) as manifest:
        whole = manifest.get("state") == "whole"
        summary.total = source.total
        try:
            if job.engine == "ray":
                finished = run_ray(job, listing, source, manifest, summary, merger)
            else:
                finished = _run(job, source, manifest, summary, on_progress, whole=whole)
                if finished and merger is not None and not (whole and not summary.done):
                    merger.merge(list(manifest.parts()))
            if finished:
                manifest.put(state="whole" if not manifest.count("failed") else "finished")
                _tidy(job.target, manifest, parts=not manifest.count("failed"))
            summary.finished = finished
        except KeyboardInterrupt:
            summary.interrupted = True
        except OSError as error:
            if error.errno is None:  # no failure to store: a cluster that cannot be reached
                raise
            kept = summary.before + summary.done
            text = f"{error.strerror or error}; {kept} finished items are kept, and --resume goes on from there"
            raise OSError(error.errno, text, error.filename) from None
        summary.failures = manifest.failures(FAILURES)
        manifest.put(warnings=json.dumps(summary.warnings, ensure_ascii=False))
    summary.seconds = time.monotonic() - started
    return summary


def _run(
    job: Job, source: Listing | Tables, manifest: Manifest, summary: Summary, on_progress: OnProgress, *, whole: bool
) -> bool:
    """The items that are not done yet, through local workers. False where the first failure ended it."""
    share = max(1, thread_count(job.options.threads) // job.workers)
    pool = Pool(replace(job.options, threads=share, target=job.target), job.workers)
    on_progress(summary)
    with closing(pool):
        for done in pool.run(_tasks(job, source, manifest, summary, whole=whole)):
            manifest.add(done.records, done.part)
            summary.count(done)
            summary.batching, summary.deaths = pool.batching, pool.deaths
            on_progress(summary)
            if job.fail_fast and summary.failed:
                return False
    return True


def _sized(job: Job, total: int) -> Job:
    """The job with its sizes: given ones are evened out over all items, so that the last batch is hardly padded."""
    wanted, total = job.options.batch_size, max(total, 1)
    if wanted is not None:
        size = math.ceil(total / math.ceil(total / wanted))
        return replace(job, task_size=size, options=replace(job.options, batch_size=size, uniform=True))
    share = math.ceil(total / job.workers)
    return replace(job, task_size=min(MOST, math.ceil(share / 2)), options=replace(job.options, expected=share))


def _tasks(job: Job, source: Listing | Tables, manifest: Manifest, summary: Summary, *, whole: bool) -> Iterator[Task]:
    waiting: list[Item] = []
    for item in source:
        output = manifest.done(item.name) if job.resume else None
        if output is not None and (not job.target.is_folder or os.path.exists(output)):
            summary.before += 1
            continue
        if whole and not job.target.is_folder:
            raise InputInvalid(f"{job.target.path} is finished and {item.name} is new; give new inputs another output")
        waiting.append(item)
        if len(waiting) == job.task_size:
            yield Task(waiting)
            waiting = []
    if waiting:
        yield Task(waiting)


def _tables(listing: Listing, inputs: Sequence[Port]) -> Tables:
    if listing.inputs != [""]:
        raise InputInvalid("the columns of a .parquet feed the inputs; it is given without name=")
    return Tables(listing.paths(), inputs)


def _carrying(job: Job, source: Tables) -> Job:
    """The job with the columns of the table that go along into the results."""
    if job.target.is_folder:
        return job
    target = replace(job.target, carried=tuple(source.carried))
    return replace(job, target=target)


def _open(job: Job, source: Listing | Tables) -> Manifest:
    """The manifest of a new job, or of the one to go on with."""
    target = job.target
    facts = {"model": str(job.options.model), "digest": _digest(job), "made": repr(_settings(job))}
    begun = target.manifest.exists()
    if begun and not job.resume and not job.force:
        raise FileExistsError(f"{target.manifest} exists already; --resume continues that job")
    resuming = begun and job.resume
    if not resuming:
        if not job.force:
            _refuse_existing(target, source)
        shutil.rmtree(target.job, ignore_errors=True)
    for folder in (target.job, target.scratch, target.parts):
        folder.mkdir(parents=True, exist_ok=True)
    manifest = Manifest(target.manifest)
    if resuming and manifest.get("digest") is not None:
        for name, what in (("digest", "another model"), ("made", "other options")):
            if manifest.get(name) != facts[name]:
                manifest.close()
                raise InputInvalid(f"the job in {target.job} was begun with {what}; --force starts it anew")
        _tidy(target, manifest, parts=False)
    else:
        manifest.put(**facts)
    return manifest


def _refuse_existing(target: Target, source: Listing | Tables) -> None:
    if not target.is_folder:
        if os.path.lexists(target.path):
            raise FileExistsError(f"{target.path} exists already")
        return
    if target.path.is_dir() and any(target.path.iterdir()):
        for item in source:
            if os.path.lexists(target.output(item)):
                raise FileExistsError(f"{target.output(item)} exists already")


def _tidy(target: Target, manifest: Manifest, *, parts: bool) -> None:
    """Remove what killed workers left half-written or unrecorded; with `parts`, all of the parts."""
    shutil.rmtree(target.scratch, ignore_errors=True)
    target.scratch.mkdir(parents=True, exist_ok=True)
    kept = set() if parts else set(manifest.parts())
    for file in target.parts.iterdir():
        if file.name not in kept:
            file.unlink()
    if parts:
        shutil.rmtree(target.parts, ignore_errors=True)
        shutil.rmtree(target.scratch, ignore_errors=True)


def _digest(job: Job) -> str:
    """A digest of the bytes of the model's files."""
    model = Path(job.options.model)
    weights = Path(job.options.weights) if job.options.weights else model.with_suffix(".bin")
    digest = hashlib.sha256()
    for file in (model, weights):
        if file.exists():
            with open(file, "rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def _settings(job: Job) -> tuple[object, ...]:
    """The options that results depend on."""
    target, options = job.target, job.options
    return (target.kind, target.top, target.labels, options.images, sorted((options.shapes or {}).items(), key=str))
