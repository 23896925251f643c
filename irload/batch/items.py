"""The vocabulary of a job: items to predict, records of what became of them, tasks of several items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from irload.batch.carried import Carried
from irload.batch.images import ImageOptions
from irload.core.tensor import Array
from irload.errors import DeclaredDiffers
from irload.extensions import loaded_extensions
from irload.inference import ShapeLike
from irload.safety import Limits


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to predict: files (by input name; "" where no input was named) or the arrays of a table's row.

    `key` is what outputs are named after. `carried` are the row's columns that are no inputs, `fault` what is wrong
    with it already. `stamp` tells whether the input changed, where that is known before it is read.
    """

    number: int
    name: str
    key: str
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    row: Mapping[str, Array | bytes] | None = None
    carried: Carried | None = None
    fault: str = ""
    stamp: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """What became of an item: `reason` is empty where it was done. `outputs` only where nobody stored them.

    `part` and `row` are where a common output has its rows, one for each of the `samples`; `stamp` is the input's.
    """

    name: str
    output: str = ""
    digest: str = ""
    reason: str = ""
    samples: int = 0
    number: int = 0
    part: str = ""
    row: int = 0
    stamp: str = ""
    outputs: tuple[Array, ...] | None = None


@dataclass(slots=True)
class Task:
    """Items that a worker takes together. `deaths` counts the workers that died of it or beside it."""

    items: list[Item]
    deaths: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """What a worker gives back for a task: a record for each item.

    `differences` are the ports that turned out to declare what is not inferred, for the first time.
    """

    records: list[Record]
    differences: Sequence[DeclaredDiffers] = ()


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """All that a worker must know to run the model. `model` is a path, or a Model where it runs in this process.

    `cast`: convert also where that loses something; `hashed`: stamps of inputs are their SHA-256. `batch_size` is None
    where measuring chooses it, `expected` the number of samples for this worker, where known.
    `jit`, `precision`: as for `compile_model`. `extensions` are the files with operations of the user's own that this
    process has loaded.
    """

    model: Any
    weights: str | None = None
    shapes: Mapping[str | int, ShapeLike] | None = None
    batch_size: int | None = None
    threads: int | None = None
    images: ImageOptions = field(default_factory=ImageOptions)
    target: Any = None
    uniform: bool = False
    expected: int | None = None
    limits: Limits | None = None
    sha256: Mapping[str, str] | None = None
    strict: bool = False
    cast: bool = False
    hashed: bool = False
    jit: bool | None = None
    precision: str = "f32"
    extensions: tuple[str, ...] = field(default_factory=loaded_extensions)
