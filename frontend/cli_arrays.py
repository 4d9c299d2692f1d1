"""Arrays as the command line spells them: `f32[8,128256]`, or with contents `i32[8]:50`.

    DTYPE[DIM,...]           scalars are DTYPE[]; a DIM is a number, or a symbol such as b or 2*b, of which there are
                             no contents
    DTYPE[DIM,...]:FILL      random, zeros, ones, range, empty, a number, LOW..HIGH, or @FILE.npy

`random` is normally distributed for floats, 0 to 99 for integers; `LOW..HIGH` is uniform, HIGH included for integers;
`empty` is what an output is before the kernel runs (NaN, or all bits set). The same text gives the same numbers.
"""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np

DTYPES = {
    "f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2,
    "i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8,
    "u64": np.uint64, "u32": np.uint32, "u16": np.uint16, "u8": np.uint8, "bool": np.bool_,
}  # fmt: skip
_SPEC = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[^\]]*)\](?::(?P<fill>.+))?", re.DOTALL)
_SYMBOL = re.compile(r"(\d+ *\* *)?[A-Za-z_]\w*")
_RANGE = re.compile(r"(?P<low>-?[\d.]+(?:e-?\d+)?)\.\.(?P<high>-?[\d.]+(?:e-?\d+)?)")
_FILLS = "random, zeros, ones, range, empty, a number, LOW..HIGH, @FILE.npy"
_MOST = 2**40  # bytes: more is a slip of the finger


class BadSpec(ValueError):
    """Text that describes no array; says what was given and what there is."""


@dataclass(frozen=True)
class ArraySpec:
    """An array's shape and dtype, and what to fill it with. Dimensions that are symbols are text."""

    text: str
    dtype: np.dtype
    shape: tuple[int | str, ...]
    fill: str

    def array(self, seed: int = 0) -> np.ndarray:
        """The array. Raises BadSpec where the contents cannot be had."""
        for dim in self.shape:
            if isinstance(dim, str):
                raise BadSpec(f"'{self.text}': contents need a number in the place of '{dim}'")
        if self.fill.startswith("@"):
            return self._loaded(Path(self.fill[1:]))
        return _filled(self, np.random.default_rng(seed))

    def _loaded(self, path: Path) -> np.ndarray:
        try:
            array = np.load(path, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise BadSpec(f"'{self.text}': cannot read '{path}': {error}") from None
        if array.dtype.kind == "V" and array.dtype.itemsize == self.dtype.itemsize:  # as NumPy saves bf16 and its like
            array = array.view(self.dtype)
        if (array.shape, array.dtype) != (self.shape, self.dtype):
            given = f"{array.dtype}{list(array.shape)}"
            raise BadSpec(f"'{self.text}': '{path}' holds {given}, not {self.dtype}{list(self.shape)}")
        return np.ascontiguousarray(array)


def parse(text: str, fill: str = "random") -> ArraySpec:
    """Reads one array; `fill` is for text that names none. Raises BadSpec."""
    match = _SPEC.fullmatch(text.strip())
    if match is None:
        raise BadSpec(
            f"'{text}' is no array: write DTYPE[DIM,...] with optional contents, such as f32[8,1024] or i32[8]:50"
        )
    spec = ArraySpec(text, _dtype(match["dtype"], text), _shape(match["shape"], text), match["fill"] or fill)
    if math.prod(dim for dim in spec.shape if isinstance(dim, int)) * spec.dtype.itemsize > _MOST:
        raise BadSpec(f"'{text}' is larger than a terabyte")
    _check_fill(spec)
    return spec


def _dtype(name: str, text: str) -> np.dtype:
    if name in DTYPES:
        return np.dtype(DTYPES[name])
    for known in DTYPES.values():  # the long names too
        if name == np.dtype(known).name:
            return np.dtype(known)
    near = difflib.get_close_matches(name, DTYPES, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise BadSpec(f"'{text}': unknown dtype '{name}'{hint} (there are {', '.join(DTYPES)})")


def _shape(dims: str, text: str) -> tuple[int | str, ...]:
    if not dims.strip():
        return ()
    return tuple(_dimension(part.strip(), text) for part in dims.split(","))


def _dimension(dim: str, text: str) -> int | str:
    if dim.isascii() and dim.isdigit():
        return int(dim)
    if dim.isascii() and _SYMBOL.fullmatch(dim):
        return dim
    raise BadSpec(f"'{text}': dimension '{dim}' is neither a whole number nor a symbol")


def _check_fill(spec: ArraySpec) -> None:
    fill, name = spec.fill, f"'{spec.text}'"
    if fill in ("random", "zeros", "ones", "range", "empty") or fill.startswith("@"):
        return
    bounds = _RANGE.fullmatch(fill)
    try:
        values = [_number(bounds[1]), _number(bounds[2])] if bounds else [_number(fill)]
    except ValueError:
        raise BadSpec(f"{name}: unknown contents '{fill}' (there are {_FILLS})") from None
    if bounds and values[0] > values[1]:
        raise BadSpec(f"{name}: {bounds[1]} is above {bounds[2]}")
    if spec.dtype.kind in "iu":
        limits = np.iinfo(spec.dtype)
        for value in values:
            if not math.isfinite(value) or value != int(value) or not limits.min <= value <= limits.max:
                raise BadSpec(f"{name}: {fill} is not of type {spec.dtype.name} ({limits.min} to {limits.max})")


def _number(text: str) -> int | float:
    """A number, whole ones exactly. Raises ValueError."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def _filled(spec: ArraySpec, rng: np.random.Generator) -> np.ndarray:
    shape, dtype, whole = spec.shape, spec.dtype, spec.dtype.kind in "iu"
    if spec.fill == "empty":
        return np.full(math.prod(shape) * dtype.itemsize, 0xFF, np.uint8).view(dtype).reshape(shape)
    if spec.fill == "range":
        return np.arange(math.prod(shape)).astype(dtype).reshape(shape)
    if spec.fill == "random":
        if dtype.kind == "b":
            return rng.integers(0, 2, shape).astype(dtype)
        return (rng.integers(0, 100, shape) if whole else rng.standard_normal(shape, np.float32)).astype(dtype)
    bounds = _RANGE.fullmatch(spec.fill)
    if bounds and whole:
        low, high = int(_number(bounds[1])), int(_number(bounds[2]))
        return rng.integers(low, high, shape, endpoint=True, dtype=dtype)
    if bounds:
        return rng.uniform(_number(bounds[1]), _number(bounds[2]), shape).astype(dtype)
    value = {"zeros": 0, "ones": 1}.get(spec.fill)
    value = _number(spec.fill) if value is None else value
    return np.full(shape, int(value) if whole else value, np.int64 if whole and value < 2**63 else None).astype(dtype)
