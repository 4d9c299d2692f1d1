"""Dialect `ascendc`: what the hardware is told (level 3).

One op per call of the Ascend C API that the emitter prints. Buffers are memrefs of rank 1, in memory space "ub" with a
static size or "gm"; the result of a vector op is its first operand, `dst`. Argument order, limits and names are those
of the public API documentation. Which pipe runs an op is part of its definition: synchronisation is derived from it.
"""

from __future__ import annotations

from ..definition import Dialect
from .common import (
    buffer_bytes, buffer_length, bytes_of, constant_index, element_bits, element_bytes, element_bytes_of, space_of,
)  # fmt: skip
from .memory import MEMORY
from .reduce import REDUCE
from .scan import SCAN
from .sorting import SORTING
from .strided import STRIDED
from .sync import EVENT_IDS, EVENTS, PIPES, SYNC
from .vector import VECTOR

__all__ = [
    "ASCENDC", "EVENTS", "EVENT_IDS", "PIPES", "buffer_bytes", "buffer_length", "bytes_of", "constant_index",
    "element_bits", "element_bytes", "element_bytes_of", "space_of",
]  # fmt: skip

ASCENDC = Dialect(
    "ascendc",
    "The Ascend C API, one op a call: explicit buffers, counts, repeats and events.",
    (*MEMORY, *VECTOR, *STRIDED, *REDUCE, *SCAN, *SORTING, *SYNC),
)
