"""The HTML page of a report: data, styles and scripts in one file that loads nothing."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from irload.comparison.compare import Comparison
from irload.comparison.edits import Difference
from irload.errors import Unsupported, printable
from irload.loading import read_anyway, read_model
from irload.model import Model
from irload.reporting.document import document_of
from irload.safety import DEFAULT, Limits
from irload.write.atomic import write_atomically

__all__ = ["ModelReport", "report"]

# Dependencies first: each adds to the `d3` of those before.
_D3 = ("color", "dispatch", "ease", "timer", "interpolate", "selection", "drag", "transition", "zoom")
_OWN = ("dom.js", "model.js", "groups.js", "graph.js", "panel.js", "views.js", "main.js")
_FRAME = "width:100%;height:720px;border:1px solid #ccc;border-radius:8px"


@dataclass(frozen=True, slots=True)
class ModelReport:
    """A report: `html` is the page, `data` what it shows, as plain data. A notebook shows it in a frame."""

    html: str
    data: dict[str, Any]

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the page whole or not at all. Raises FileExistsError unless `force`, OSError."""
        path = Path(path)
        if path.exists() and not force:
            raise FileExistsError(f"{path} exists already")
        write_atomically(path, lambda stream: stream.write(self.html.encode("utf-8")))

    def __repr__(self) -> str:
        return f"<ModelReport of {len(self.data['layers'])} layers, {len(self.html) / 1e6:.1f} MB>"

    def _repr_html_(self) -> str:
        """The page in a frame of its own, which may run its scripts and nothing else."""
        return f'<iframe sandbox="allow-scripts" style="{_FRAME}" srcdoc="{escape(self.html)}"></iframe>'


def report(
    model: Model | str | Path,
    inputs: Any = None,
    *,
    constants: bool = True,
    profile: bool = False,
    comparison: Comparison | Model | str | Path | None = None,
    difference: Difference | Model | str | Path | None = None,
    limits: Limits = DEFAULT,
    **options: Any,
) -> ModelReport:
    """Make a page of a model: its graph, layers, costs, memory over time, and what `check` finds in its file.

    `model`: a Model or the path of one, which need not hold together unless it is run. `constants=False` reads no
    weights, so constants have no statistics. `profile=True` measures every step of the plan on `inputs` (as for a
    call). `comparison`: a Comparison, or what `compare` takes as its other side, run on `inputs`. `difference`: a
    Difference, or another model that `diff` compares with this one. `limits` are for what is read, `options` those of
    `compile_model` for the profile. Raises Unsupported where jinja2 is missing, and what reading, running and comparing
    raise.
    """
    template = _template()
    if isinstance(model, Model):
        loaded = model
    else:
        runs = profile or not (comparison is None or isinstance(comparison, Comparison))
        loaded = read_model(model, limits=limits) if runs else read_anyway(model, limits=limits)
    data = document_of(
        loaded,
        inputs,
        constants=constants,
        profile=profile,
        comparison=comparison,
        difference=difference,
        options=options,
    )
    return ModelReport(_page(template, data), data)


def _template() -> Any:
    try:
        from jinja2 import Environment  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise Unsupported("reports need jinja2, which is not installed; pip install 'irload[report]'") from None
    return Environment(autoescape=True, trim_blocks=True).from_string(_asset("page.html.j2"))


def _page(template: Any, data: dict[str, Any]) -> str:
    from markupsafe import Markup  # pyright: ignore[reportMissingImports]

    from irload import __version__

    scripts = [*(_asset(f"vendor/d3-{name}.min.js") for name in _D3), *map(_asset, _OWN)]
    file = data["model"]["file"]
    return template.render(
        title=printable(data["model"]["name"] or (Path(file).name if file else "model")),
        file=printable(file or ""),
        version=__version__,
        style=Markup(_asset("style.css")),
        data=Markup(json_in_html(data)),
        layout=Markup(_asset("vendor/dagre.min.js") + "\n" + _asset("worker.js")),
        scripts=[Markup(script) for script in scripts],
        licences=Markup(_comment(_asset("vendor/LICENSES.txt"))),
    )


def json_in_html(data: object) -> str:
    """JSON that neither ends a script element nor begins a comment, whatever the texts in it hold."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _asset(name: str) -> str:
    """The text of a file of the page, without pointers to maps that are not there."""
    text = (files("irload.reporting") / "assets" / name).read_text(encoding="utf-8")
    return re.sub(r"^//# sourceMappingURL=.*$", "", text, flags=re.MULTILINE)


def _comment(text: str) -> str:
    return text.replace("--", "- -")
