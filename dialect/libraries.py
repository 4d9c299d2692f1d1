"""The operators of CANN's libraries that a graph may call: `ascend.library_call`.

Each is here once, for all that have to do with it: the shape rule for the verifier and for JAX, the work for estimates,
the C parameters for the host program of a written project. Signatures and limits are those of the API pages named.

A matrix that is to be transposed is passed as it lies, as a tensor with other strides: `transposed` has a 1 for it.
Products of 16-bit floats may be float32, which the pages allow ("data types that the operands' converts to") and the
libraries' public source computes without rounding to 16 bits before (`NeedEnableFp32Output` in matmul_util.cpp of
ops-nn, A2, A3 and 950).
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
      operands: how many it takes, at least and at most.
      rule: `rule(operands, dims) -> result`, with matrices the way they are multiplied; raises VerifyError.
      parameters: those of `<name>GetWorkspaceSize` up to the workspace's size, in order: "x0", "x1", ... for an
        operand, "out", "[x0]" for a list of one tensor, "[x]" for one of all operands, "dim" and "dims" for the
        attribute, "{1}" for a list of its second number, "scalar" for an `aclScalar` of it, "dtype" for that of the
        result, anything else as it is.
      flops: `flops(operands, result) -> number`; 0 where time is that of memory.
      widens: whether the result may be float32 where the operands are narrower floats; it is rounded once then.
      matrices: the operands whose last two dimensions may be transposed.
      index: the operand of indices or sizes that the library takes as int64.
      zeroed: whether the result may be left unwritten in part, and is to be 0 there.
      products: whose libraries have it; those of all, where there are none.
    """

    name: str
    summary: str
    header: str
    source: str
    operands: int | tuple[int, int]
    rule: Callable[[Sequence[Shaped], tuple[int, ...]], Shaped]
    parameters: tuple[str, ...]
    flops: Callable[[Sequence[Shaped], Shaped], int] = lambda operands, result: 0
    widens: bool = False
    matrices: tuple[int, ...] = ()
    index: int | None = None
    zeroed: bool = False
    products: tuple[str, ...] = ()

    def result(
        self,
        operands: Sequence[Shaped],
        dims: tuple[int, ...] = (),
        transposed: tuple[int, ...] = (),
        dtype: str | None = None,
    ) -> Shaped:
        """The result's shape and dtype; `dtype` is that of one that is wider than the operands. Raises VerifyError
        where the operator does not take such operands."""
        least, most = self.operands if isinstance(self.operands, tuple) else (self.operands, self.operands)
        if not least <= len(operands) <= most:
            number = least if least == most else f"{least} to {most}"
            raise VerifyError(f"{self.name} takes {number} operands, got {len(operands)}")
        turned = {i for i, flag in enumerate(transposed) if flag}
        if transposed and not (turned and turned.issubset(self.matrices) and len(transposed) == len(operands)):
            raise VerifyError(f"{self.name} has no use for 'transposed' = {list(transposed)}")
        found = self.rule(self.multiplied(operands, transposed), dims)
        if dtype is None:
            return found
        if not (self.widens and dtype == "float32" and found.dtype in ("float16", "bfloat16")):
            raise VerifyError(f"{self.name} has no {dtype} for {', '.join(map(str, operands))}")
        return found._replace(dtype=dtype)

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
    name = "aclnnGroupedMatmulV5"
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


def _position(name: str) -> Callable[[Sequence[Shaped], tuple[int, ...]], Shaped]:
    def rule(operands: Sequence[Shaped], dims: tuple[int, ...]) -> Shaped:
        (x,) = operands
        _check(x.dtype in (*FLOATS, "int32"), f"{name} is called for floats and int32, got {x}")
        (dim,) = _one_dim(name, dims, x)
        return Shaped((*x.shape[:dim], *x.shape[dim + 1 :]), "int32")

    return rule


def _reduction(name: str) -> Callable[[Sequence[Shaped], tuple[int, ...]], Shaped]:
    def rule(operands: Sequence[Shaped], dims: tuple[int, ...]) -> Shaped:
        (x,) = operands
        _check(x.dtype in (*FLOATS, "int32"), f"{name} is called for floats and int32, got {x}")
        _some_dims(name, dims, x)
        return x._replace(shape=tuple(size for dim, size in enumerate(x.shape) if dim not in dims))

    return rule


def _running(name: str) -> Callable[[Sequence[Shaped], tuple[int, ...]], Shaped]:
    def rule(operands: Sequence[Shaped], dims: tuple[int, ...]) -> Shaped:
        (x,) = operands
        _check(x.dtype in (*FLOATS, "int32"), f"{name} is called for floats and int32, got {x}")
        _one_dim(name, dims, x)
        return x

    return rule


def _product_along(operands: Sequence[Shaped], dims: tuple[int, ...]) -> Shaped:
    (x,) = operands
    _check(
        x.dtype in ("float32", "float16", "int32"), f"aclnnProdDim is called for float32, float16 and int32, got {x}"
    )
    (dim,) = _one_dim("aclnnProdDim", dims, x)
    return x._replace(shape=(*x.shape[:dim], *x.shape[dim + 1 :]))


def _flip(operands: Sequence[Shaped], dims: tuple[int, ...]) -> Shaped:
    (x,) = operands
    _some_dims("aclnnFlip", dims, x)
    return x


def _cat(operands: Sequence[Shaped], dims: tuple[int, ...]) -> Shaped:
    first = operands[0]
    (dim,) = _one_dim("aclnnCat", dims, first)
    for x in operands:
        others = len(x.shape) == len(first.shape) and all(
            i == dim or same_size(a, b) for i, (a, b) in enumerate(zip(x.shape, first.shape))
        )
        _check(
            others and x.dtype == first.dtype,
            f"aclnnCat takes tensors that differ along {dim} only, got {_show(operands)}",
        )
    sizes = [x.shape[dim] for x in operands]
    total = sum(sizes) if all(isinstance(size, int) for size in sizes) else None
    return first._replace(shape=(*first.shape[:dim], total, *first.shape[dim + 1 :]))


def _remainder(operands: Sequence[Shaped], dims: tuple[int, ...]) -> Shaped:
    x, y = operands
    _check(x.dtype in FLOATS, f"aclnnFmodTensor is called for floats, got {x}")
    _check(x == y, f"aclnnFmodTensor is called for two tensors of one shape and dtype, got {_show(operands)}")
    return x


def _slice(operands: Sequence[Shaped], dims: tuple[int, ...]) -> Shaped:
    (x,) = operands
    name = "aclnnSliceV2"
    _check(len(dims) == 4, f"{name} takes a dimension, a start, an end and a step, got {list(dims)}")
    dim, start, end, step = dims
    _one_dim(name, (dim,), x)
    size = x.shape[dim]
    inside = 0 <= start <= end and step > 0 and (size is None or end <= size)
    _check(inside, f"{name} takes positions of {x} and a step of at least 1, got {list(dims)}")
    return x._replace(shape=(*x.shape[:dim], -(-(end - start) // step), *x.shape[dim + 1 :]))


def _scatter_add(operands: Sequence[Shaped], dims: tuple[int, ...]) -> Shaped:
    x, index, source = operands
    name = "aclnnScatterAdd"
    (dim,) = _one_dim(name, dims, x)
    _check(x.dtype in (*FLOATS, "int32"), f"{name} is called for floats and int32, got {x}")
    places = index.dtype in ("int32", "int64") and index.shape == source.shape
    _check(places, f"{name} takes an int32 or int64 for each element of {source}, got {index}")
    others = len(x.shape) == len(source.shape) and all(
        i == dim or same_size(a, b) for i, (a, b) in enumerate(zip(x.shape, source.shape))
    )
    _check(
        others and source.dtype == x.dtype,
        f"{name} takes a source that differs from {x} along {dim} only, got {source}",
    )
    return x


def _index_copy(operands: Sequence[Shaped], dims: tuple[int, ...]) -> Shaped:
    x, index, source = operands
    name = "aclnnIndexCopy"
    (dim,) = _one_dim(name, dims, x)
    is_list = len(index.shape) == 1 and index.dtype in ("int32", "int64")
    _check(is_list, f"{name} takes a list of int32 or int64, got {index}")
    wanted = x._replace(shape=(*x.shape[:dim], index.shape[0], *x.shape[dim + 1 :]))
    fits = (
        source.dtype == x.dtype
        and len(source.shape) == len(x.shape)
        and all(map(same_size, source.shape, wanted.shape))
    )
    _check(fits, f"{name} takes a source of {wanted}, got {source}")
    return x


def _quant_matmul(operands: Sequence[Shaped], dims: tuple[int, ...]) -> Shaped:
    a, b, scale = operands
    name = "aclnnQuantMatmulV5"
    ranks = 2 <= len(a.shape) == len(b.shape) <= 6 and all(map(same_size, a.shape[:-2], b.shape[:-2]))
    _check(ranks, f"{name} is called for matrices, or batches of them of one size, got {_show(operands)}")
    _check(a.dtype == b.dtype == "int8", f"{name} is called for int8, got {_show(operands)}")
    _check(same_size(a.shape[-1], b.shape[-2]), f"{name} takes matrices that fit each other, got {_show(operands)}")
    _check(scale == Shaped((1,), "float32"), f"{name} is called with one float32 as scale, got {scale}")
    return Shaped((*a.shape[:-1], b.shape[-1]), "int32")


def _some_dims(name: str, dims: tuple[int, ...], x: Shaped) -> None:
    given = dims and len(set(dims)) == len(dims) and all(0 <= dim < len(x.shape) for dim in dims)
    _check(bool(given), f"{name} takes some of the dimensions of {x}, got {list(dims)}")


def _one_dim(name: str, dims: tuple[int, ...], x: Shaped) -> tuple[int]:
    _check(
        len(dims) == 1 and 0 <= dims[0] < len(x.shape), f"{name} takes one of the dimensions of {x}, got {list(dims)}"
    )
    return dims


def _permute(operands: Sequence[Shaped], dims: tuple[int, ...]) -> Shaped:
    (x,) = operands
    is_order = sorted(dims) == list(range(len(x.shape)))
    _check(is_order, f"aclnnPermute takes an order of the dimensions of {x}, got {list(dims)}")
    return x._replace(shape=tuple(x.shape[dim] for dim in dims))


def _multiply_adds(operands: Sequence[Shaped], result: Shaped) -> int:
    """Two operations a multiply-add: an element of the result is a sum of as many products as a row of `x` has
    elements."""
    return 2 * math.prod(result.shape) * operands[0].shape[-1]


LIBRARY: dict[str, LibraryOperator] = {
    operator.name: operator
    for operator in (
        LibraryOperator(
            "aclnnMatmul", "The product of two matrices.",
            "aclnn_matmul.h", f"{_PAGES}/ops-nn/aclnnMatmul.md", 2, _matmul,
            ("x0", "x1", "out", "static_cast<int8_t>(0)"),  # cubeMathType: as the dtypes are
            flops=_multiply_adds, widens=True, matrices=(0, 1),
        ),
        LibraryOperator(
            "aclnnBatchMatMul", "Products of two matrices, many of them.",
            "aclnn_batch_matmul.h", f"{_PAGES}/ops-nn/aclnnBatchMatMul.md", 2,
            _batch_matmul, ("x0", "x1", "out", "static_cast<int8_t>(0)"),
            flops=_multiply_adds, widens=True, matrices=(0, 1),
        ),
        LibraryOperator(
            "aclnnGroupedMatmulV5", "Of rows in groups, each group times a matrix of its own; 0 behind the last group.",
            "aclnn_grouped_matmul_v5.h", f"{_PAGES}/aclnnGroupedMatmulV5.md", 3, _grouped_matmul,
            ("[x0]", "[x1]", *["nullptr"] * 6, "x2", *["nullptr"] * 3,
             "3", "0", "1", "0",  # one tensor comes out; groups of rows; the list has sizes; no activation
             "nullptr", "[out]", "nullptr", "nullptr"),  # no sizes are expected
            flops=_multiply_adds, matrices=(1,), index=2, zeroed=True,
        ),
        LibraryOperator(
            "aclnnIndexSelect", "The slices of a dimension that a list of positions names.",
            "aclnn_index_select.h", f"{_PAGES}/ops-nn/aclnnIndexSelect.md", 2,
            _index_select, ("x0", "dim", "x1", "out"),
        ),
        LibraryOperator(
            "aclnnArgMax", "Where along a dimension the largest element is, the first of equal ones.",
            "aclnn_argmax.h", f"{_PAGES}/ops-math/aclnnArgMax.md", 1, _position("aclnnArgMax"),
            ("x0", "dim", "false", "out"),
        ),
        LibraryOperator(
            "aclnnArgMin", "Where along a dimension the smallest element is, the first of equal ones.",
            "aclnn_argmin.h", f"{_PAGES}/ops-math/aclnnArgMin.md", 1, _position("aclnnArgMin"),
            ("x0", "dim", "false", "out"),
        ),
        LibraryOperator(
            "aclnnReduceSum", "Sums over some of the dimensions.",
            "aclnn_reduce_sum.h", f"{_PAGES}/ops-math/aclnnReduceSum.md", 1, _reduction("aclnnReduceSum"),
            ("x0", "dims", "false", "dtype", "out"),
        ),
        LibraryOperator(
            "aclnnAmax", "The largest elements over some of the dimensions.",
            "aclnn_amax.h", f"{_PAGES}/ops-math/aclnnAmax.md", 1,
            _reduction("aclnnAmax"), ("x0", "dims", "false", "out"),
        ),
        LibraryOperator(
            "aclnnAmin", "The smallest elements over some of the dimensions.",
            "aclnn_amin.h", f"{_PAGES}/ops-math/aclnnAmin.md", 1,
            _reduction("aclnnAmin"), ("x0", "dims", "false", "out"),
        ),
        LibraryOperator(
            "aclnnCumsum", "Running sums along a dimension.",
            "aclnn_cumsum.h", f"{_PAGES}/ops-math/aclnnCumsum.md", 1,
            _running("aclnnCumsum"), ("x0", "dim", "dtype", "out"),
        ),
        LibraryOperator(
            "aclnnCumprod", "Running products along a dimension.",
            "aclnn_cumprod.h", f"{_PAGES}/ops-math/aclnnCumprod&aclnnInplaceCumprod.md", 1, _running("aclnnCumprod"),
            ("x0", "scalar", "dtype", "out"), products=("ascend910b", "ascend910_93"),
        ),
        LibraryOperator(
            "aclnnProdDim", "Products along a dimension.",
            "aclnn_prod.h", f"{_PAGES}/ops-math/aclnnProdDim.md", 1,
            _product_along, ("x0", "dim", "false", "dtype", "out"),
        ),
        LibraryOperator(
            "aclnnFmodTensor", "What is left of a division that is rounded towards 0.",
            "aclnn_fmod_tensor.h", f"{_PAGES}/ops-math/aclnnFmodTensor&aclnnInplaceFmodTensor.md", 2, _remainder,
            ("x0", "x1", "out"),
        ),
        LibraryOperator(
            "aclnnFlip", "Some of the dimensions from end to start.",
            "aclnn_flip.h", f"{_PAGES}/ops-nn/aclnnFlip.md", 1, _flip, ("x0", "dims", "out"),
        ),
        LibraryOperator(
            "aclnnCat", "Tensors one after another along a dimension.",
            "aclnn_cat.h", f"{_PAGES}/ops-math/aclnnCat.md", (2, 3), _cat, ("[x]", "dim", "out"),
        ),
        LibraryOperator(
            "aclnnSliceV2", "Every so many positions of a dimension, from one to before another.",
            "aclnn_slice_v2.h", f"{_PAGES}/ops-math/aclnnSliceV2.md", 1,
            _slice, ("x0", "{1}", "{2}", "{0}", "{3}", "out"),
        ),
        LibraryOperator(
            "aclnnScatterAdd", "A tensor with elements added where an index along a dimension says, one for each.",
            "aclnn_scatter_add.h", f"{_PAGES}/ops-nn/aclnnScatterAdd.md", 3,
            _scatter_add, ("x0", "dim", "x1", "x2", "out"),
        ),
        LibraryOperator(
            "aclnnIndexCopy", "A tensor with the slices that a list of positions names replaced by others.",
            "aclnn_index_copy.h", f"{_PAGES}/ops-nn/aclnnIndexCopy&aclnnInplaceIndexCopy.md", 3, _index_copy,
            ("x0", "dim", "x1", "x2", "out"),
        ),
        LibraryOperator(
            "aclnnQuantMatmulV5", "The product of two matrices of int8, exact: to int32 the scale is of no account.",
            "aclnn_quant_matmul_v5.h", f"{_PAGES}/ops-nn/aclnnQuantMatmulV5.md", 3, _quant_matmul,
            ("x0", "x1", "nullptr", "x2", *["nullptr"] * 5, "false", "false", "0", "out"),
            flops=_multiply_adds, matrices=(0, 1),
        ),
        LibraryOperator(
            "aclnnPermute", "The dimensions in another order.",
            "aclnn_permute.h", f"{_PAGES}/ops-math/aclnnPermute.md", 1, _permute,
            ("x0", "dims", "out"),
        ),
    )
}  # fmt: skip


def library_call(
    callee: str,
    operands: Sequence[Shaped],
    dims: tuple[int, ...] = (),
    transposed: tuple[int, ...] = (),
    dtype: str | None = None,
) -> Shaped:
    """The result of a call. Raises VerifyError where there is no such operator, or it does not take such operands."""
    if callee not in LIBRARY:
        raise VerifyError(f"'callee' must be one of {', '.join(LIBRARY)}, got '{callee}'")
    return LIBRARY[callee].result(operands, dims, transposed, dtype)


