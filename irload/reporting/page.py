"""The HTML page of a report: data, styles and scripts in one self-contained file."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Unpack

from irload.comparison.compare import Comparison
from irload.comparison.edits import Difference
from irload.errors import Unsupported
from irload.loading import read_anyway, read_model
from irload.model import Model
from irload.options import CompileOptions, require_options
from irload.reporting.document import document_of
from irload.safety.limits import DEFAULT
from irload.wording import printable
from irload.write.atomic import write_atomically

__all__ = ["ModelReport", "report"]

# In order of dependency: each file extends the object `d3` of the previous ones.
_D3 = ("color", "dispatch", "ease", "timer", "interpolate", "selection", "drag", "transition", "zoom")
_OWN = (
    *("dom", "model", "scopes", "groups", "link", "export", "print"),
    *("camera", "labels", "minimap", "draw", "places", "colour", "bar", "graph", "keys"),
    *("panel", "values", "layer", "search", "tables", "memory", "profile", "findings", "comparison", "main"),
)
_FRAME = "width:100%;height:720px;border:1px solid #ccc;border-radius:8px"


@dataclass(frozen=True, slots=True)
class ModelReport:
    """A report: `html` is the page, `data` its contents as plain data. A notebook shows it in a frame."""

    html: str
    data: dict[str, Any]

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the page atomically. Raises FileExistsError unless `force`, OSError."""
        path = Path(path)
        if path.exists() and not force:
            raise FileExistsError(f"{path} exists already")
        write_atomically(path, lambda stream: stream.write(self.html.encode("utf-8")))

    def __repr__(self) -> str:
        return f"<ModelReport of {len(self.data['layers'])} layers, {len(self.html) / 1e6:.1f} MB>"

    def _repr_html_(self) -> str:
        """Return the page in a sandboxed frame, which may only run its scripts and save files."""
        return (
            f'<iframe sandbox="allow-scripts allow-downloads" style="{_FRAME}" srcdoc="{escape(self.html)}"></iframe>'
        )


def report(
    model: Model | str | Path,
    inputs: Any = None,
    *,
    constants: bool = True,
    profile: bool = False,
    comparison: Comparison | Model | str | Path | None = None,
    difference: Difference | Model | str | Path | None = None,
    tensors: str | Sequence[str] = (),
    threads: int | None = None,
    **options: Unpack[CompileOptions],
) -> ModelReport:
    """Create a page of a model: its graph, layers, costs, memory over time, and the findings of `check` for its file.

    `model`: a Model or its path; it may be inconsistent unless it is run. `constants=False` reads no weights, so
    constants have no statistics. `profile=True` measures every step of the plan on `inputs` (as for a call).
    `comparison`: a Comparison, or the other side of `compare`, run on `inputs`. `difference`: a Difference, or another
    model to `diff` with this one. `tensors`: patterns of layer names; the page includes their outputs on `inputs`, or
    the values of constants, to save as .npy; constants of up to 4 KB are always included. `threads`, `options`: as for
    `compile_model`; `limits` apply to reading, too, all others to `profile` and `tensors`. Raises Unsupported if jinja2
    is missing, LimitExceeded for tensors of more than 64 MB in total, and the errors of reading, running and comparing.
    """
    require_options(options)
    template = _template()
    if isinstance(model, Model):
        loaded = model
    else:
        runs = profile or bool(tensors) or not (comparison is None or isinstance(comparison, Comparison))
        limits = options.get("limits") or DEFAULT
        loaded = read_model(model, limits=limits) if runs else read_anyway(model, limits=limits)
    data = document_of(
        loaded,
        inputs,
        constants=constants,
        profile=profile,
        comparison=comparison,
        difference=difference,
        tensors=tensors,
        threads=threads,
        options=options,
    )
    return ModelReport(_page(template, data), data)


def _template() -> Any:
    try:
        from jinja2 import Environment
    except ImportError:
        raise Unsupported("reports need jinja2, which is not installed; pip install 'irload[report]'") from None
    return Environment(autoescape=True, trim_blocks=True).from_string(_asset("page.html.j2"))


def _page(template: Any, data: dict[str, Any]) -> str:
    from markupsafe import Markup

    from irload import __version__

    scripts = [*(_asset(f"vendor/d3-{name}.min.js") for name in _D3), *(_asset(f"{name}.js") for name in _OWN)]
    file = data["model"]["file"]
    return template.render(
        title=printable(data["model"]["name"] or file or "model"),
        file=printable(file or ""),
        version=__version__,
        style=Markup(_asset("style.css")),
        data=Markup(json_in_html(data)),
        layout=Markup("\n".join(map(_asset, ("vendor/dagre.min.js", "fold.js", "worker.js")))),
        scripts=[Markup(script) for script in scripts],
        licences=Markup(_comment(_asset("vendor/LICENSES.txt"))),
    )


def json_in_html(data: object) -> str:
    """Return JSON in which no text can end a script element or begin a comment."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _asset(name: str) -> str:
    """Return the text of an asset, without references to source maps, which are not included."""
    text = (files("irload.reporting") / "assets" / name).read_text(encoding="utf-8")
    return re.sub(r"^//# sourceMappingURL=.*$", "", text, flags=re.MULTILINE)


def _comment(text: str) -> str:
    return text.replace("--", "- -")
