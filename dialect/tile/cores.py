"""What a core has to do with the others."""

from __future__ import annotations

from ..definition import Op, Operand, Result

CORES = (
    Op(
        "block_rows",
        "This core's share of the rows: a half-open range.",
        operands=(Operand("rows", "index", "all rows"),),
        results=(Result("first", "index", ""), Result("last", "index", "one past the end")),
        description="Shares differ by at most one row; the first cores take the larger ones.",
    ),
)
