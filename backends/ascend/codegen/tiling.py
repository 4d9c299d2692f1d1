"""Tiling data: what the host tells a kernel about a launch. One definition, for the C++ struct and for Python."""

from __future__ import annotations

import functools
import re
import struct
import textwrap
from dataclasses import dataclass


@functools.cache
def camel(name: str) -> str:
    """`row_offset` as the API's style has it: `rowOffset`."""
    first, *rest = [part for part in re.split(r"[^0-9A-Za-z]+", name) if part] or ["value"]
    word = first[0].lower() + first[1:] + "".join(part[0].upper() + part[1:] for part in rest)
    return f"v{word}" if word[0].isdigit() else word


def struct_name(kernel: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in kernel.split("_")) + "Tiling"


def file_name(kernel: str) -> str:
    return f"{kernel}_tiling.h"


@dataclass(frozen=True)
class Shape:
    """What of a launch's size a kernel asks for: how its cores share the rows, and how much scratch memory they need.

    Attributes:
      parts: how many cores work on the same rows.
      all_cores: whether a launch takes all cores, however few rows there are.
      uses_rows: whether the kernel asks for the number of rows.
      scratch: bytes of workspace: for the launch, for each core and for each row.
    """

    parts: int = 1
    all_cores: bool = False
    uses_rows: bool = False
    scratch: tuple[int, int, int] = (0, 0, 0)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of the tiling data, uint32 each."""
        share = "rows_per_core" if self.parts == 1 else "rows_per_group"
        return (share, "extra_rows", *(("rows",) if self.uses_rows else ()))

    def groups(self, rows: int, cores: int) -> int:
        """How many groups of cores a launch has; none without rows."""
        groups = max(1, cores // self.parts)
        return groups if rows and self.all_cores else min(rows, groups)

    def blocks(self, rows: int, cores: int) -> int:
        """How many cores a launch over `rows` rows uses, of `cores` that there are."""
        return self.groups(rows, cores) * self.parts

    def data(self, rows: int, cores: int) -> dict[str, int]:
        """The fields for a launch over `rows` rows on `blocks(rows, cores)` cores."""
        share, extra = divmod(rows, max(1, self.groups(rows, cores)))
        return dict(zip(self.fields, (share, extra, rows)))

    def workspace_bytes(self, rows: int, cores: int) -> int:
        launch, core, row = self.scratch
        return launch + core * self.blocks(rows, cores) + row * rows

    @property
    def about(self) -> str:
        """How the rows are dealt out, as a sentence."""
        if self.parts == 1:
            return "Rows are dealt out evenly; each of the first `extraRows` cores takes one more."
        return (
            f"{self.parts} neighbouring cores make a group and work on the same rows. Rows are dealt out evenly; each "
            "of the first `extraRows` groups takes one more."
        )

    def header(self, kernel: str) -> str:
        """The C++ header with the struct of a kernel."""
        guard = f"{kernel.upper()}_TILING_H"
        lines = [f"// {line}" for line in textwrap.wrap(self.about, 116)]
        fields = [f"    uint32_t {camel(name)};" for name in self.fields]
        return "\n".join(
            [
                f"#ifndef {guard}", f"#define {guard}", "", "#include <cstdint>", "", *lines,
                f"struct {struct_name(kernel)} {{", *fields, "};", "", f"#endif  // {guard}", "",
            ]
        )  # fmt: skip


def pack(fields: dict[str, int]) -> bytes:
    """The fields as the struct lies in memory (little endian)."""
    return struct.pack("<" + "I" * len(fields), *fields.values())
