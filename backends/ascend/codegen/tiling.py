"""Tiling data: what the host tells a kernel about a launch. One definition, for the C++ struct and for Python."""

from __future__ import annotations

import re
import struct

FIELDS = ("rows_per_core", "extra_rows")  # uint32 each


def camel(name: str) -> str:
    """`row_offset` as the API's style has it: `rowOffset`."""
    first, *rest = [part for part in re.split(r"[^0-9A-Za-z]+", name) if part] or ["value"]
    word = first[0].lower() + first[1:] + "".join(part[0].upper() + part[1:] for part in rest)
    return f"v{word}" if word[0].isdigit() else word


def struct_name(kernel: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in kernel.split("_")) + "Tiling"


def file_name(kernel: str) -> str:
    return f"{kernel}_tiling.h"


def header(kernel: str) -> str:
    """The C++ header with the struct of a kernel."""
    guard = f"{kernel.upper()}_TILING_H"
    return f"""\
#ifndef {guard}
#define {guard}

#include <cstdint>

// Rows are dealt out evenly; each of the first `extraRows` cores takes one more.
struct {struct_name(kernel)} {{
    uint32_t rowsPerCore;
    uint32_t extraRows;
}};

#endif  // {guard}
"""


def blocks(rows: int, cores: int) -> int:
    """How many cores a launch over `rows` rows uses."""
    return min(rows, cores)


def data(rows: int, cores: int) -> dict[str, int]:
    """The fields for a launch over `rows` rows on `blocks(rows, cores)` cores."""
    used = blocks(rows, cores)
    return {"rows_per_core": rows // used, "extra_rows": rows % used}


def pack(fields: dict[str, int]) -> bytes:
    """The fields as the struct lies in memory (little endian)."""
    return struct.pack("<" + "I" * len(FIELDS), *(fields[name] for name in FIELDS))
