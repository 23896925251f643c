"""The schemas of the reports are valid and closed: a field that a command adds must be described."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

SCHEMAS = sorted((Path(__file__).parents[1] / "schemas").glob("*.schema.json"))


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if "properties" in schema and isinstance(schema["properties"], dict):
            yield schema
        for below in schema.values():
            yield from objects(below)
    elif isinstance(schema, list):
        for below in schema:
            yield from objects(below)


@pytest.mark.parametrize("file", SCHEMAS, ids=lambda f: f.name)
def test_schemas_are_valid_and_closed(file):
    schema = json.loads(file.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    assert all(o.get("additionalProperties") is False for o in objects(schema))
