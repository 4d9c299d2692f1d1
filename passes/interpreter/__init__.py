"""Runs kernels of the `tile` dialect on NumPy arrays: the meaning of level 2, without a compiler.

    outputs = run_kernel(module, "filter", [logits, k], cores=3)

Every tile op and the upstream ops that kernels are made of have one small function each. Floats are computed in float32
with denormal results flushed to zero, integers wrap, a reduction is a balanced tree over neighbours; so a kernel gives
the same bits here as its Ascend C text on the twin. Whatever has no function raises `NotInterpreted`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from mlir import ir

from . import cores as _cores
from . import lanes, scan, sorting, tiles, upstream  # noqa: F401  (each registers its functions)
from .core import Core, NotInterpreted, dtype_of

__all__ = ["NotInterpreted", "dtype_of", "run_kernel"]


def run_kernel(
    module: ir.Module,
    name: str,
    inputs: Sequence[np.ndarray],
    cores: int = 1,
    *,
    rows: int | None = None,
    leading: Sequence[int] | None = None,
) -> list[np.ndarray]:
    """Runs a kernel lowered to tiles, one core after the other; those that meet go on together.

    Args:
      module: holds the kernel, a function over memrefs in memory space "gm".
      name: the kernel's.
      inputs: arrays for its leading arguments.
      cores: among how many the rows are shared.
      rows: how many there are; None: the leading dimension of the first input.
      leading: the leading dimension of each of the other arguments; None: the rows.

    Returns: the arrays of the other arguments, as the kernel left them. Bytes that it did not write are 0xFF.
    """
    kernel = next(op for op in module.body.operations if op.operation.attributes["sym_name"].value == name)
    block = kernel.regions[0].blocks[0]
    arrays = [np.ascontiguousarray(x) for x in inputs]
    rows = arrays[0].shape[0] if rows is None else rows
    outputs = []
    for i, argument in enumerate(list(block.arguments)[len(arrays) :]):
        memory = ir.MemRefType(argument.type)
        first = rows if leading is None else leading[i]
        shape = [first if memory.is_dynamic_dim(dim) else memory.get_dim_size(dim) for dim in range(memory.rank)]
        output = np.empty(shape, dtype_of(memory.element_type))
        output.view(np.uint8).fill(0xFF)
        outputs.append(output)
    scratch = _cores.workspaces(kernel.operation, rows, cores)
    runs = [Core(dict(zip(block.arguments, arrays + outputs)), core, cores, scratch) for core in range(cores)]
    _cores.run_together(runs, lambda core: core.block(block))
    return outputs
