"""The types that describe the work of a job: items to predict, records of their results, tasks of several items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from irload.batch.carried import Carried
from irload.batch.images import ImageOptions
from irload.core.tensor import Array
from irload.errors import OUT_OF_MEMORY, DeclaredDiffers
from irload.extensions import loaded_extensions
from irload.inference import ShapeLike
from irload.options import CompileOptions, require_options
from irload.text.tasks import TextOptions


@dataclass(frozen=True, slots=True)
class Item:
    """One input to predict: files (by input name; "" if no input was named) or the arrays of a table row.

    `key` names the item's outputs. `carried` are the row's columns that do not feed inputs, `fault` is an error
    detected before loading. `stamp` changes whenever the input does; it is empty if computing it requires reading the
    input.
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
class ItemRecord:
    """The result of an item: `reason` is empty on success. `outputs` is set only if they were not stored.

    `part` and `row` locate its rows in a common output, one row per sample of `samples`; `stamp` is the input's.
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

    @property
    def is_out_of_memory(self) -> bool:
        """True if the item failed for lack of memory in any process."""
        return OUT_OF_MEMORY in self.reason


@dataclass(slots=True)
class Task:
    """Items that a worker processes together. `deaths` counts the workers that died while processing it."""

    items: list[Item]
    deaths: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """A worker's answer to a task: one record per item.

    `differences` are the ports newly detected whose declaration differs from the inferred type.
    """

    records: list[ItemRecord]
    differences: Sequence[DeclaredDiffers] = ()


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """All options with which a worker runs the model.

    `model` is a path, the folder of a text model, or a Model or TextPredictor if it runs in this process. `cast`: allow
    lossy conversions; `hashed`: stamps of inputs are their SHA-256. `batch_size` is None to choose it by measuring,
    `expected` the number of samples for this worker, if known. `compile`: the options of `compile_model`, resolved by
    the worker. `texts`: how texts are generated. `extensions` are the files with custom operations that this process
    has loaded. Raises TypeError for an unknown option.
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
    sha256: Mapping[str, str] | None = None
    cast: bool = False
    hashed: bool = False
    compile: CompileOptions = field(default_factory=CompileOptions)
    texts: TextOptions = field(default_factory=TextOptions)
    extensions: tuple[str, ...] = field(default_factory=loaded_extensions)

    def __post_init__(self) -> None:
        require_options(self.compile)
