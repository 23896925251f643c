"""Embeddings of samples, streamed into a parquet file: python examples/embed_to_parquet.py OUT.parquet

The model of digits ends in ten probabilities; they serve as the embedding here. Replace it with your own model.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from irload.batch import Prediction, predict

DIGITS = Path(__file__).parents[1] / "models" / "digits"
ROWS = 1000
SCHEMA = pa.schema({"file": pa.string(), "embedding": pa.list_(pa.float32(), 10)})


def tables(results: Iterator[Prediction]) -> Iterator[pa.Table]:
    """Yield one table per thousand results."""
    rows: list[tuple[str, np.ndarray]] = []
    for result in results:
        if result.error:
            print(result.error, file=sys.stderr)
            continue
        rows.append((Path(result.input).name, result.outputs["probabilities"].ravel()))
        if len(rows) == ROWS:
            yield pa.table([list(column) for column in zip(*rows, strict=True)], schema=SCHEMA)
            rows = []
    if rows:
        yield pa.table([list(column) for column in zip(*rows, strict=True)], schema=SCHEMA)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} OUT.parquet")
    with pq.ParquetWriter(sys.argv[1], SCHEMA) as writer:
        for table in tables(predict(DIGITS / "model.xml", DIGITS / "digit_*.npy", batch_size=64)):
            writer.write_table(table)
    print(pq.read_metadata(sys.argv[1]).num_rows, "embeddings")
