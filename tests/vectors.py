"""Loads the expected values under tests/data."""

import functools
import json
from pathlib import Path
from typing import NamedTuple

import ml_dtypes
import numpy as np

DATA = Path(__file__).parent / "data"

# For jax.jit where many shapes are compiled and each runs once: what is computed is the same, compiling takes half the
# time. Tests of how results depend on batches, fusion and jit compile as users do.
QUICK = {"xla_backend_optimization_level": 0}

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
    return _sampling_cases("apply_top_k_top_p", {"logits", "p", "out"})


@functools.cache
def top_k_top_p_sample() -> list[Case]:
    return _sampling_cases("top_k_top_p_sample_v2", {"logits", "top_p", "min_ps"})


def _sampling_cases(name, narrow):
    """The arrays in `narrow` are stored as float32 and have the dtype of the case."""
    folder = DATA / name
    stored = np.load(folder / "vectors.npz")
    cases = []
    for info in json.loads((folder / "index.json").read_text())["cases"]:
        arrays = {name: stored[f"{info['id']}.{name}"] for name in info["arrays"]}
        for name in arrays.keys() & narrow:
            arrays[name] = arrays[name].astype(DTYPES[info["dtype"]])
        cases.append(Case(info, arrays))
    return cases


_ROUTING_DTYPES = {
    "fp32": np.float32,
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp8_e5m2": ml_dtypes.float8_e5m2,
    "fp8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "fp8_e8m0": ml_dtypes.float8_e8m0fnu,
    "hif8": np.uint8,
    "int8": np.int8,
    "int32": np.int32,
    "int64": np.int64,
}


def _routing_array(stored, case, description):
    """None, or the array in the dtype of the real call; 4-bit arrays as their codes, one uint8 an element."""
    if description is None:
        return None
    array = stored[f"{case}.{description['key']}"]
    if description["storage"] == "uint8-packed-low-nibble-first":
        codes = np.stack([array & 15, array >> 4], axis=-1).reshape(description["shape"])
        return codes.view(ml_dtypes.float4_e2m1fn) if description["dtype"] == "fp4_e2m1" else codes
    return array.view(_ROUTING_DTYPES[description["dtype"]])


@functools.cache
def moe_init_routing() -> list[Case]:
    """Cases whose arrays are `x`, `expert_idx`, `scale`, `offset` and the expected results; None where absent."""
    folder = DATA / "moe_init_routing_v3"
    stored = np.load(folder / "vectors.npz")
    cases = []
    for info in json.loads((folder / "index.json").read_text())["cases"]:
        described = {**info["inputs"], **info["expected"]}
        cases.append(Case(info, {name: _routing_array(stored, info["id"], d) for name, d in described.items()}))
    return cases
