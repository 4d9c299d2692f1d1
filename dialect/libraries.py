"""The operators of CANN's libraries that a graph may call: `ascend.library_call`.

Each is here once, for all that have to do with it: the shape rule for the verifier and for JAX, the work for estimates,
the C parameters for the host program of a written project. Signatures and limits are those of the API pages named.

A matrix that is to be transposed is passed as it lies, as a tensor with other strides: `transposed` has a 1 for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .definition import VerifyError
from .rules.shaped import FLOATS, Shaped, same_size

_PAGES = "https://www.hiascend.com/document/detail/zh/CANNCommunityEdition/850/API/aolapi/context"


@dataclass(frozen=True)
class LibraryOperator:
    """One operator.

    Attributes:
      name: of its aclnn functions.
      summary: what it computes.
      header: of its declarations, in `aclnnop/`.
      source: the page that its signature and limits are from.
      operands: how many it takes.
      rule: `rule(operands, dims) -> result`, with matrices the way they are multiplied; raises VerifyError.
      parameters: those of `<name>GetWorkspaceSize` up to the workspace's size, in order: "x0", "x1", ... for an operand, "out",
        "[x0]" for a list of one tensor, "dim" and "dims" for the attribute, anything else as it is.
      flops: `flops(operands, result) -> number`; 0 where time is that of memory.
      matrices: the operands whose last two dimensions may be transposed.
      index: the operand of indices or sizes that the library takes as int64.
      zeroed: whether the result may be left unwritten in part, and is to be 0 there.
    """

    name: str
    summary: str
    header: str
    source: str
    operands: int
    rule: Callable[[Sequence[Shaped], tuple[int, ...]], Shaped]
    parameters: tuple[str, ...]
    flops: Callable[[Sequence[Shaped], Shaped], int] = lambda operands, result: 0
    matrices: tuple[int, ...] = ()
    index: int | None = None
    zeroed: bool = False

    def result(self, operands: Sequence[Shaped], dims: tuple[int, ...] = (), transposed: tuple[int, ...] = ()) -> Shaped:
        """The result's shape and dtype. Raises VerifyError where the operator does not take such operands."""
        if len(operands) != self.operands:
            raise VerifyError(f"{self.name} takes {self.operands} operands, got {len(operands)}")
        turned = {i for i, flag in enumerate(transposed) if flag}
        if transposed and not (turned and turned.issubset(self.matrices) and len(transposed) == self.operands):
            raise VerifyError(f"{self.name} has no use for 'transposed' = {list(transposed)}")
        return self.rule(self.multiplied(operands, transposed), dims)

    def multiplied(self, operands: Sequence[Shaped], transposed: tuple[int, ...]) -> list[Shaped]:
        """The operands with matrices the way they are multiplied."""
        flags = transposed or (0,) * len(operands)
        return [swapped(operand) if flag else operand for operand, flag in zip(operands, flags)]


def swapped(matrix: Shaped) -> Shaped:
    """A matrix transposed: its last two dimensions the other way round."""
    *lead, rows, columns = matrix.shape
    return matrix._replace(shape=(*lead, columns, rows))


def _check(holds: bool, message: str) -> None:
    if not holds:
        raise VerifyError(message)


def _show(operands: Sequence[Shaped]) -> str:
    return ", ".join(map(str, operands))


def _matmul(operands: Sequence[Shaped], dims: tuple[int, ...]) -> Shaped:
    a, b = operands
    _check(len(a.shape) == len(b.shape) == 2, f"aclnnMatmul is called for matrices, got {_show(operands)}")
    return _product("aclnnMatmul", a, b)


def _batch_matmul(operands: Sequence[Shaped], dims: tuple[int, ...]) -> Shaped:
    a, b = operands
    _check(len(a.shape) == len(b.shape) == 3, f"aclnnBatchMatMul takes three dimensions, got {_show(operands)}")
    _check(same_size(a.shape[0], b.shape[0]), f"aclnnBatchMatMul takes batches of one size, got {_show(operands)}")
    return _product("aclnnBatchMatMul", a, b)


def _product(name: str, a: Shaped, b: Shaped) -> Shaped:
    _check(a.dtype == b.dtype and a.dtype in FLOATS, f"{name} takes floats of one dtype, got {_show((a, b))}")
    _check(same_size(a.shape[-1], b.shape[-2]), f"{name} takes matrices that fit each other, got {_show((a, b))}")
    return Shaped((*a.shape[:-1], b.shape[-1]), a.dtype)


def _grouped_matmul(operands: Sequence[Shaped], dims: tuple[int, ...]) -> Shaped:
    x, weight, sizes = operands
    name = "aclnnGroupedMatmulV4"
    ranks = tuple(len(operand.shape) for operand in operands)
    _check(ranks == (2, 3, 1), f"{name} takes [M, K], [G, K, N] and [G], got {_show(operands)}")
    _check(same_size(x.shape[1], weight.shape[1]), f"{name} takes matrices that fit each other, got {_show(operands)}")
    _check(same_size(weight.shape[0], sizes.shape[0]), f"{name} takes a size a group, got {_show(operands)}")
    _check(sizes.dtype in ("int32", "int64"), f"{name} takes whole sizes, got {_show(operands)}")
    few = not isinstance(sizes.shape[0], int) or sizes.shape[0] <= 1024
    _check(few, f"{name} takes at most 1024 groups, got {sizes}")
    dtypes = x.dtype in (*FLOATS, "int8") and x.dtype == weight.dtype
    _check(dtypes, f"{name} takes floats or int8 of one dtype, got {_show(operands)}")
    return Shaped((x.shape[0], weight.shape[2]), "int32" if x.dtype == "int8" else x.dtype)


def _index_select(operands: Sequence[Shaped], dims: tuple[int, ...]) -> Shaped:
    x, index = operands
    name = "aclnnIndexSelect"
    is_list = len(index.shape) == 1 and index.dtype in ("int32", "int64")
    _check(is_list, f"{name} takes a list of int32 or int64, got {index}")
    (dim,) = _one_dim(name, dims, x)
    return x._replace(shape=(*x.shape[:dim], index.shape[0], *x.shape[dim + 1 :]))


def _arg_max(operands: Sequence[Shaped], dims: tuple[int, ...]) -> Shaped:
    (x,) = operands
    _check(x.dtype in FLOATS, f"aclnnArgMax is called for floats, got {x}")
    (dim,) = _one_dim("aclnnArgMax", dims, x)
    return Shaped((*x.shape[:dim], *x.shape[dim + 1 :]), "int32")


def _one_dim(name: str, dims: tuple[int, ...], x: Shaped) -> tuple[int]:
    _check(len(dims) == 1 and 0 <= dims[0] < len(x.shape), f"{name} takes one of the dimensions of {x}, got {list(dims)}")
    return dims


def _permute(operands: Sequence[Shaped], dims: tuple[int, ...]) -> Shaped:
    (x,) = operands
    is_order = sorted(dims) == list(range(len(x.shape)))
    _check(is_order, f"aclnnPermute takes an order of the dimensions of {x}, got {list(dims)}")
    return x._replace(shape=tuple(x.shape[dim] for dim in dims))


def _multiply_adds(operands: Sequence[Shaped], result: Shaped) -> int:
    """Two operations a multiply-add: an element of the result is a sum of as many products as a row of `x` has elements."""
    return 2 * math.prod(result.shape) * operands[0].shape[-1]


LIBRARY: dict[str, LibraryOperator] = {
    operator.name: operator
    for operator in (
        LibraryOperator(
            "aclnnMatmul", "The product of two matrices.",
            "aclnn_matmul.h", f"{_PAGES}/ops-nn/aclnnMatmul.md", 2, _matmul,
            ("x0", "x1", "out", "static_cast<int8_t>(0)"),  # cubeMathType: as the dtypes are
            flops=_multiply_adds, matrices=(0, 1),
        ),
        LibraryOperator(
            "aclnnBatchMatMul", "Products of two matrices, many of them.",
            "aclnn_batch_matmul.h", f"{_PAGES}/ops-nn/aclnnBatchMatMul.md", 2,
            _batch_matmul, ("x0", "x1", "out", "static_cast<int8_t>(0)"), flops=_multiply_adds, matrices=(0, 1),
        ),
        LibraryOperator(
            "aclnnGroupedMatmulV4", "Of rows in groups, each group times a matrix of its own; 0 behind the last group.",
            "aclnn_grouped_matmul_v4.h", f"{_PAGES}/aclnnGroupedMatmulV4.md", 3, _grouped_matmul,
            ("[x0]", "[x1]", *["nullptr"] * 6, "x2", *["nullptr"] * 3,
             "3", "0", "1", "0",  # one tensor comes out; groups of rows; the list has sizes; no activation
             "[out]", "nullptr", "nullptr"),
            flops=_multiply_adds, matrices=(1,), index=2, zeroed=True,
        ),
        LibraryOperator(
            "aclnnIndexSelect", "The slices of a dimension that a list of positions names.",
            "aclnn_index_select.h", f"{_PAGES}/ops-nn/aclnnIndexSelect.md", 2, _index_select, ("x0", "dim", "x1", "out"),
        ),
        LibraryOperator(
            "aclnnArgMax", "Where along a dimension the largest element is, the first of equal ones.",
            "aclnn_argmax.h", f"{_PAGES}/ops-math/aclnnArgMax.md", 1, _arg_max, ("x0", "dim", "false", "out"),
        ),
        LibraryOperator(
            "aclnnPermute", "The dimensions in another order.",
            "aclnn_permute.h", f"{_PAGES}/ops-math/aclnnPermute.md", 1, _permute,
            ("x0", "dims", "out"),
        ),
    )
}  # fmt: skip


def library_call(
    callee: str, operands: Sequence[Shaped], dims: tuple[int, ...] = (), transposed: tuple[int, ...] = ()
) -> Shaped:
    """The result of a call. Raises VerifyError where there is no such operator, or it does not take such operands."""
    if callee not in LIBRARY:
        raise VerifyError(f"'callee' must be one of {', '.join(LIBRARY)}, got '{callee}'")
    return LIBRARY[callee].result(operands, dims, transposed)


