"""How much of its operands a launch needs at least, for the roofline.

All of them, but of `q` of an operator that samples only what belongs to survivors. How many survive follows from the
data; certain are, of V elements in a row,

- k of them where top-k alone is on,
- one where top-p or min-p is on: the most probable one may be all that is left,
- V where nothing is on,

and one where k, p or m are known to the kernel only.
The same goes for operands that q is computed from, element by element.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jascend.dialect import make_context
from mlir import ir

_SAMPLERS = {"ascend.top_k_top_p_sample": ("top_k", "top_p", "min_ps"), "ascend.filter_sample": ("k", "p", None)}
_IDENTITY = "affine_map<(d0, d1) -> (d0, d1)>"
_MAX_K = 1024  # of `top_k_top_p_sample`


def needed_bytes(module_text: str, kernel: str, arrays: Sequence[np.ndarray | None]) -> list[int | None]:
    """Of each operand of a launch of a kernel, the bytes that are needed at least; None: all of it.

    Args:
      module_text: level 1, cut into kernels.
      arrays: the operands, None where they are not known.
    """
    needed: list[int | None] = [None] * len(arrays)
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(module_text)
        function = next(
            op.operation for op in module.body.operations if op.operation.attributes["sym_name"].value == kernel
        )
        for view in function.regions[0].blocks[0].operations:
            names = _SAMPLERS.get(view.operation.name)
            if names is None or view.q is None:
                continue
            parameters = [None if name is None else _value(getattr(view, name), arrays) for name in names]
            absent = [name is None or getattr(view, name) is None for name in names]
            for place in _sources(view.q):
                if arrays[place] is not None:
                    rows = arrays[place].reshape(-1, arrays[place].shape[-1]).shape
                    needed[place] = int(_survivors(view, rows, parameters, absent).sum()) * arrays[place].itemsize
    return needed


def _sources(value: ir.Value) -> list[int]:
    """The operands of the launch of which an element is needed where one of a value is, and nowhere else."""
    if len(list(value.uses)) > 1:
        return []
    if isinstance(value.owner, ir.Block):
        return [ir.BlockArgument(value).arg_number]
    op = value.owner
    if op.name != "linalg.generic" or any(str(each) != _IDENTITY for each in op.attributes["indexing_maps"]):
        return []
    inputs = list(op.operands)[: op.attributes["operandSegmentSizes"][0]]
    return [place for operand in inputs for place in _sources(operand)]


def _value(value: ir.Value | None, arrays: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """What an operand holds, if it is an operand of the launch or the same constant for all rows."""
    if value is None:
        return None
    if isinstance(value.owner, ir.Block):
        return arrays[ir.BlockArgument(value).arg_number]
    op = value.owner
    while (
        op.name == "linalg.generic"
        and len(op.regions[0].blocks[0].operations) == 1
        and isinstance(op.operands[0], ir.OpResult)
    ):
        op = op.operands[0].owner  # a scalar for all rows
    if op.name != "arith.constant" or not op.attributes["value"].is_splat:
        return None
    return np.array(op.attributes["value"].get_splat_value().value)


def _survivors(op: ir.OpView, shape: tuple[int, int], parameters: list, absent: list[bool]) -> np.ndarray:
    """How many elements of each row survive for certain."""
    rows, vocabulary = shape
    if any(value is None and not is_absent for value, is_absent in zip(parameters, absent)):
        return np.ones(rows)
    k, p, m = (
        None if value is None else np.broadcast_to(np.asarray(value, np.float32).reshape(-1), (rows,))
        for value in parameters
    )
    if op.operation.name == "ascend.filter_sample":
        most, cuts = vocabulary - 1, np.zeros(rows, bool) if p is None else p <= 1
    else:
        most = min(vocabulary, -(-op.ks_max // 8) * 8, _MAX_K)
        cuts = p < 1
        cuts = cuts if m is None else cuts | (m > 0)
    number = np.full(rows, vocabulary) if k is None else np.where((k >= 1) & (k <= most), k, vocabulary)
    return np.where(cuts, 1, number)
