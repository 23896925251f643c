"""The options of compilation: as keyword arguments with types, and as a record with defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from irload.errors import InputInvalid
from irload.record import record
from irload.safety.limits import DEFAULT, Limits
from irload.system.machine import thread_count

__all__ = ["CompileOptions", "Options", "Precision", "require_options"]

Precision = Literal["f32", "bf16", "auto"]
"""The arithmetic of products; "auto" is the fastest on this machine."""
PRECISIONS = ("f32", "bf16", "auto")


class CompileOptions(TypedDict, total=False):
    """The keyword arguments, besides `threads`, of `compile_model` and of all functions that compile a model.

    - `optimize`, default True: False runs the operations one by one, by their reference `compute`.
    - `precise`, default False: True excludes Winograd kernels.
    - `tune`, default False: True times alternative NumPy kernels and stores the fastest in the user's cache.
    - `jit`, default None: True requires compiled kernels, False excludes them, None uses them if available.
    - `precision`, default "f32": "f32", "bf16" or "auto", the arithmetic of products.
    - `limits`, default None: `Limits` on planning and running; None uses the limits with which the model was read.
    - `strict`, default False: True raises DeclaredDiffers for a port that contradicts the inferred type.
    - `cache`, default True: for a path, load the plan from the user's cache, or store it there.
    - `mmap`, default False: for a path, map its .bin file.

    `help(irload.compile_model)` gives the details.
    """

    optimize: bool
    precise: bool
    tune: bool
    jit: bool | None
    precision: Precision
    limits: Limits | None
    strict: bool
    cache: bool
    mmap: bool


@record()
class Options:
    """Resolved options. Raises InputInvalid for an unknown precision or `jit`, or a precision that `jit` excludes.

    `threads`: the maximum per step. `precise`: exclude kernels that round more than a plain sum. `tune`: choose kernels
    by timing. `jit`: require compiled kernels, or exclude them; None: use them if available. `limits`: the limits of
    planning and running. `strict`: raise for ports whose declaration differs from the inferred type. `optimize`: False
    runs each operation by its `compute`. `cache`, `mmap`: for a model given as a path, use the cache of plans, map the
    weights. Properties of the model: `file`: its path, for messages; `variables`: whether it has variables, as decoders
    do; `resized`: whether dims other than the first may differ between calls.
    """

    threads: int = 1
    precise: bool = False
    tune: bool = False
    jit: bool | None = None
    precision: Precision = "f32"
    limits: Limits = DEFAULT
    strict: bool = False
    optimize: bool = True
    cache: bool = True
    mmap: bool = False
    file: str | None = None
    variables: bool = False
    resized: bool = False

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise InputInvalid(f"precision must be one of {', '.join(PRECISIONS)}, found '{self.precision}'")
        if self.jit not in (True, False, None):  # any text would count as True, also "off"
            raise InputInvalid(f"jit must be True, False or None, found {self.jit!r}")
        if self.precision == "bf16" and self.jit is False:
            raise InputInvalid("precision bf16 requires compiled kernels, which jit=False (irrun --no-jit) disables")

    @classmethod
    def of(
        cls,
        given: CompileOptions,
        threads: int | None = None,
        *,
        limits: Limits = DEFAULT,
        file: str | None = None,
    ) -> Options:
        """Resolve keyword arguments. `threads`: None for the default; `limits`: used unless `given` contains limits.

        Raises TypeError for an unknown keyword, InputInvalid for an invalid value.
        """
        require_options(given)
        values: dict[str, Any] = {**given, "limits": given.get("limits") or limits}
        return cls(thread_count(threads), **values, file=file)


def require_options(given: Mapping[str, Any]) -> None:
    """Raise TypeError unless all keys are options."""
    known = CompileOptions.__optional_keys__
    unknown = sorted(given.keys() - known)
    if unknown:
        raise TypeError(
            f"unexpected keyword argument '{unknown[0]}'; the options are {', '.join(sorted({*known, 'threads'}))}"
        )
