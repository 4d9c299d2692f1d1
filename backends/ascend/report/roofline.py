"""The least time a program can take on a product, whatever its kernels do.

    launch + max(compulsory bytes / shared bandwidth, vector cycles / (clock x cores), library calls' cube cycles)

Compulsory bytes are each input byte that the result needs and each output byte, once. The bandwidth is that of all
cores in one direction, so a kernel that overlaps reads with writes can come below the bound by up to the ratio of
`total_both` to `total`. Vector cycles are a constant for each operator (`ROOFLINE_CYCLES` in `targets.py`, with its
derivation); elementwise work that is fused around the operator counts nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from jascend.backends.ascend import targets
from jascend.dialect import make_context
from mlir import ir

_LANES = 64  # 4-byte elements in one repeat
# An operator that is several: these, each on an operand.
_PARTS = {"moe_gating_routing": (("moe_gating_top_k", 0), ("moe_init_routing", 1))}


@dataclass(frozen=True)
class Roofline:
    """A lower bound, with its parts in seconds.

    Attributes:
        compulsory_bytes: inputs and outputs, each byte once.
        vector_cycles: of one vector unit, over all cores.
        launch, memory, vector, cube: seconds.
    """

    compulsory_bytes: int
    vector_cycles: float
    launch: float
    memory: float
    vector: float
    cube: float = 0.0

    @property
    def seconds(self) -> float:
        return self.launch + max(self.memory, self.vector, self.cube)

    @property
    def bound(self) -> str:
        """What binds: "memory", "vector" or "cube"."""
        return max(("memory", "vector", "cube"), key=lambda part: getattr(self, part))


def roofline(
    target: str, compulsory_bytes: int, vector_cycles: float = 0.0, cores: int | None = None, cube: float = 0.0
) -> Roofline:
    """The bound for a product; `cores` as of `profile_kernel`, `cube` the seconds that its cube units need."""
    costs, cores = targets.costs(target), cores or targets.target(target).vector_cores
    return Roofline(compulsory_bytes, vector_cycles, costs.launch, compulsory_bytes / costs.total,
                    vector_cycles / (costs.clock * cores), cube)  # fmt: skip


def operator_cycles(module_text: str) -> float:
    """Vector cycles that the `ascend` operators of a level-1 module need at least, over all cores."""
    cycles = 0.0
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(module_text)

        def visit(op: ir.Operation) -> ir.WalkResult:
            nonlocal cycles
            if op.name.startswith("ascend."):
                cycles += _cycles_of(op)
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
    return cycles


def _cycles_of(op: ir.Operation) -> float:
    name = op.name.removeprefix("ascend.")
    return sum(_cycles_on(op, part, operand) for part, operand in _PARTS.get(name, ((name, 0),)))


def _cycles_on(op: ir.Operation, name: str, operand: int) -> float:
    if f"{name} quantized" in targets.ROOFLINE_CYCLES and op.attributes["quant_mode"].value >= 0:
        name += " quantized"
    cycles, unit = targets.ROOFLINE_CYCLES.get(name, (0.0, "row"))
    shape = ir.RankedTensorType(op.operands[operand].type).shape
    rows = math.prod(shape[:-1])
    return cycles * (rows if unit == "row" else rows * shape[-1] / _LANES)
