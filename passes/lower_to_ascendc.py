"""Lowers kernels from tiles to the Ascend C API: every tile becomes a named buffer, every op one or a few API calls.

A splat that only feeds operations with a scalar form (`Adds`, `CompareScalar`, `Select` against a scalar) never becomes
a buffer. Unordered comparisons, which the API lacks, are the ordered opposite with its mask inverted. A group reduction
is a fixed tree: eight to one by 32-byte blocks until at most 64 elements a group are left, then one reduction a group.
A load whose tile is not filled to the end gets its padding first, by a fill under a condition.

Before:

    %e = math.exp %x : tensor<4096xf32>
    %s = "tile.reduce"(%e) {kind = "add", group = 4096 : i64} : (tensor<4096xf32>) -> tensor<1xf32>
    %v = "tile.extract"(%s, %c0) : (tensor<1xf32>, index) -> f32

After:

    %e = "ascendc.local_tensor"() {name_hint = "weights"} : () -> memref<4096xf32, "ub">
    "ascendc.exp"(%e, %x) : (memref<4096xf32, "ub">, memref<4096xf32, "ub">) -> ()
    ... "ascendc.block_reduce_sum" twice, "ascendc.whole_reduce_sum" ...
    %v = "ascendc.get_value"(%s, %c0) : (memref<1xf32, "ub">, index) -> f32

Scalars and control flow stay as they are. Buffers have no address yet (`allocate-ub`), and nothing orders the pipes
(`insert-sync`). One function an op, in `passes/ascendc_ops/`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from jascend.backends.ascend.targets import TARGETS

from .ascendc_ops import Lowering, Unsupported
from .diagnostics import PassFailure, emit_error
from .lower_to_tile import KERNEL
from .registry import option, register_pass


@register_pass("lower-to-ascendc")
@dataclass(frozen=True)
class LowerToAscendc:
    target: str = option("ascend910b", "the product whose instructions there are")

    def run(self, module: ir.Operation, remarks) -> None:
        if self.target not in TARGETS:
            emit_error(module, f"option 'target' of lower-to-ascendc must be one of {', '.join(TARGETS)}, got '{self.target}'")
            raise PassFailure
        failed = False
        for op in module.regions[0].blocks[0].operations:
            if KERNEL not in op.operation.attributes:
                continue
            with module.location:
                try:
                    Lowering(TARGETS[self.target]).function(op)
                except Unsupported:
                    failed = True
        if failed:
            raise PassFailure
