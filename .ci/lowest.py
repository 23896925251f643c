"""Prints constraints that pin every dependency of the project and of its tests to the lowest version it allows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = ("jit", "parquet", "images", "report", "test")


def main() -> None:
    """Print a line a dependency."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"], *(d for e in EXTRAS for d in project["optional-dependencies"][e])]
    for requirement in wanted:
        if requirement.startswith("irload["):
            continue
        found = re.fullmatch(r"([A-Za-z0-9_.-]+)(?:\[[a-z,]+\])?>=([0-9.]+)", requirement)
        if found is None:
            raise SystemExit(f"{requirement}: a requirement states the lowest version that will do, as name>=1.2")
        print(f"{found[1]}=={found[2]}")


if __name__ == "__main__":
    main()
