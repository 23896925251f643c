"""Embeddings on Ray Data, on this machine or a cluster: python examples/embed_on_ray.py FOLDER

`Predictor` fits map_batches: dicts of arrays in, dicts of arrays out, other columns untouched.
"""

import sys
from pathlib import Path

import numpy as np
import ray

from irload.batch import Predictor

DIGITS = Path(__file__).resolve().parents[1] / "models" / "digits"

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FOLDER")
    ray.init(include_dashboard=False)
    samples = [{"name": f.stem, "image": np.load(f)[0]} for f in sorted(DIGITS.glob("digit_*.npy"))]
    ray.data.from_items(samples).map_batches(
        Predictor,
        fn_constructor_args=(str(DIGITS / "model.xml"),),
        fn_constructor_kwargs={"threads": 1},
        batch_size=64,
        num_cpus=0.5,  # if actors reserve every processor, the readers get none and the job hangs
        compute=ray.data.ActorPoolStrategy(size=1),
    ).select_columns(["name", "probabilities"]).write_parquet(sys.argv[1])
