"""Dialect `tile`: values that live in one core's unified buffer (level 2).

A tile is a builtin `tensor` of static shape; elementwise work on tiles is plain `arith` and `math`, control flow is
`scf`. Global memory is a `memref` in memory space "gm", addressed by a flat element offset, so that every address is
64-bit arithmetic in the open. The dialect has ops only for what upstream has none.
"""

from __future__ import annotations

from ..definition import Dialect
from .cores import CORES
from .lanes import LANES
from .memory import MEMORY
from .scan import SCAN
from .sorting import SORTING
from .vector import VECTOR

TILE = Dialect(
    "tile",
    "Values that live in one core's unified buffer (UB), in SSA form.",
    (*CORES, *MEMORY, *VECTOR, *LANES, *SORTING, *SCAN),
)
