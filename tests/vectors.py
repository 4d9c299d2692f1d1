"""Loads the expected values under tests/data."""

import functools
import json
from pathlib import Path
from typing import NamedTuple

import ml_dtypes
import numpy as np

DATA = Path(__file__).parent / "data"

DTYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


class Case(NamedTuple):
    """One case: its index entry, and its arrays by name in the dtypes of the real call."""

    info: dict
    arrays: dict

    @property
    def id(self):
        return f"{self.info['id']}-{self.info['name']}-{self.info['dtype']}"


@functools.cache
def apply_top_k_top_p() -> list[Case]:
    folder = DATA / "apply_top_k_top_p"
    stored = np.load(folder / "vectors.npz")
    cases = []
    for info in json.loads((folder / "index.json").read_text())["cases"]:
        arrays = {name: stored[f"{info['id']}.{name}"] for name in info["arrays"]}
        for name in arrays.keys() & {"logits", "p", "out"}:
            arrays[name] = arrays[name].astype(DTYPES[info["dtype"]])
        cases.append(Case(info, arrays))
    return cases
