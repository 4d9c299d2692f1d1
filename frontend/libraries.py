"""What a graph leaves to CANN's libraries: matrix products, transpositions, concatenations, running sums.

On the platform `ascend`, these primitives of JAX become `ascend.library_call`s, with reshapes around them that move
nothing; gathers and scatters, too (`indexing.py`). What fits no operator of the libraries stays an op that `import`
reports, with the reason. On the twin a call is run by JAX, on the host.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jaxlib.mlir.dialects import stablehlo

from jascend.dialect.libraries import LIBRARY, library_call
from jascend.dialect.rules import Shaped
from jascend.passes.lowerings.access import TAKEN_APART
from jascend.platform import PLATFORM, ascend_op, product, refused_op


class NoLibraryOperator(Exception):
    """No operator of the libraries computes this; the text says why."""


# -- one call ---------------------------------------------------------------------------------------------------------


def _abstract_eval(*operands, callee, dims, transposed, dtype):
    given = [Shaped(x.shape, x.dtype.name) for x in operands]
    result = library_call(callee, given, dims, transposed, dtype)
    return jax.core.ShapedArray(result.shape, jnp.dtype(result.dtype))


def _lower_call(ctx, *operands, callee, dims, transposed, dtype):
    attributes = {"callee": callee, "dims": dims or None, "transposed": transposed or None, "dtype": dtype}
    segments = [int(i < len(operands)) for i in range(3)]
    return ascend_op(ctx, "library_call", operands, {k: v for k, v in attributes.items() if v is not None}, segments)


library_call_p = Primitive("library_call")
library_call_p.def_abstract_eval(_abstract_eval)
mlir.register_lowering(library_call_p, _lower_call, platform=PLATFORM)


def exists(callee: str) -> bool:
    """Whether the libraries of the product have an operator."""
    return not LIBRARY[callee].products or product() in (None, *LIBRARY[callee].products)


def call(callee: str, *operands, dims: Sequence[int] = (), transposed: Sequence[int] = (), dtype: str | None = None):
    """A call of an operator of the libraries; `dtype` of a result that is wider than the operands. Raises
    NoLibraryOperator where the product's do not have it."""
    if not exists(callee):
        raise NoLibraryOperator(f"the libraries of {product()} have no {callee}")
    return library_call_p.bind(*operands, callee=callee, dims=tuple(dims), transposed=tuple(transposed), dtype=dtype)


_TURNED = 256  # elements by turns: of fewer, a kernel writes one after the other


# -- what primitives become -------------------------------------------------------------------------------------------


def _dot_general(a, b, *, dimension_numbers, preferred_element_type, **_):
    (a_contracted, b_contracted), (a_batch, b_batch) = dimension_numbers
    dtype = jnp.dtype(preferred_element_type or jnp.result_type(a, b))
    of_bytes = a.dtype == b.dtype == jnp.int8 and dtype == jnp.int32
    if not of_bytes and (a.dtype != b.dtype or not jnp.issubdtype(a.dtype, jnp.floating)):
        raise NoLibraryOperator(f"a product of {a.dtype} and {b.dtype}; aclnnMatmul takes floats of one dtype")
    wide = None if of_bytes or dtype == a.dtype else dtype.name
    if wide not in (None, "float32"):
        raise NoLibraryOperator(f"a product of {a.dtype} as {dtype}")
    a, a_turned, batch, a_free = _as_matrix(a, a_batch, a_contracted, first=False)
    b, b_turned, _, b_free = _as_matrix(b, b_batch, b_contracted, first=True)
    operands = [a, b] if batch else [a[0], b[0]]
    transposed = [int(a_turned), int(b_turned)]
    if of_bytes:
        callee, operands, transposed = "aclnnQuantMatmulV5", [*operands, jnp.ones(1)], [*transposed, 0]
    else:
        callee = "aclnnBatchMatMul" if batch else "aclnnMatmul"
    out = call(callee, *operands, transposed=transposed if any(transposed) else (), dtype=wide)
    return out.reshape(*batch, *a_free, *b_free)


def _as_matrix(x, batch: Sequence[int], contracted: Sequence[int], first: bool):
    """[batch, rows, columns] of an operand, whether it is to be transposed, and its batch and free sizes. Contracted
    dimensions are the rows of the second operand (`first`), the columns of the first."""
    free = [i for i in range(x.ndim) if i not in batch and i not in contracted]
    batch_sizes, free_sizes, contracted_sizes = ([x.shape[d] for d in dims] for dims in (batch, free, contracted))
    orders = [(*batch, *contracted, *free), (*batch, *free, *contracted)]
    upright = orders[0 if first else 1]
    turned = not stays(x, upright) and stays(x, orders[1 if first else 0])
    if not turned:
        x = _transpose(x, permutation=upright)
    matrix = (contracted_sizes, free_sizes) if first != turned else (free_sizes, contracted_sizes)
    return x.reshape(math.prod(batch_sizes), *map(math.prod, matrix)), turned, batch_sizes, free_sizes


def stays(x, permutation: Sequence[int]) -> bool:
    """Whether a permutation of dimensions moves nothing."""
    moved = [dim for dim in permutation if x.shape[dim] != 1]
    return moved == sorted(moved)


def _ragged_dot(x, weight, sizes, *, ragged_dot_dimension_numbers, preferred_element_type, group_offset=None, **_):
    dims = ragged_dot_dimension_numbers
    plain = (((1,), (1,)), ((), ()))
    given = tuple(tuple(tuple(part) for part in pair) for pair in dims.dot_dimension_numbers)
    if given != plain or tuple(dims.lhs_ragged_dimensions) != (0,) or tuple(dims.rhs_group_dimensions) != (0,):
        raise NoLibraryOperator("a ragged product of other than [M, K] by [G, K, N]")
    if group_offset is not None:
        raise NoLibraryOperator("a ragged product with group_offset")
    if x.dtype != weight.dtype:
        raise NoLibraryOperator(
            f"a ragged product of {x.dtype} and {weight.dtype}; aclnnGroupedMatmulV5 takes one dtype"
        )
    out = call("aclnnGroupedMatmulV5", x, weight, sizes)
    dtype = jnp.dtype(preferred_element_type or jnp.result_type(x, weight))
    if out.dtype != dtype:
        raise NoLibraryOperator(f"a ragged product of {x.dtype} as {dtype}; aclnnGroupedMatmulV5 gives {out.dtype}, "
                                "once rounded: leave out preferred_element_type, or widen the operands")  # fmt: skip
    return out


def _position(callee: str):
    def function(x, *, axes, index_dtype):
        if jnp.dtype(index_dtype) != jnp.int32 or len(axes) != 1:
            raise NoLibraryOperator(f"a position in {len(axes)} dimensions as {jnp.dtype(index_dtype)}")
        return call(callee, x.astype(jnp.int32) if x.dtype in (jnp.bool_, jnp.int8) else x, dims=axes)

    return function


def _cumsum(x, *, axis, reverse):
    if reverse:
        return call("aclnnFlip", _cumsum(call("aclnnFlip", x, dims=(axis,)), axis=axis, reverse=False), dims=(axis,))
    return call("aclnnCumsum", x, dims=(axis,))


def _cumprod(x, *, axis, reverse):
    if not exists("aclnnCumprod"):
        return _running(lax.mul, 1)(x, axis=axis, reverse=reverse)
    if reverse:
        return call("aclnnFlip", _cumprod(call("aclnnFlip", x, dims=(axis,)), axis=axis, reverse=False), dims=(axis,))
    return call("aclnnCumprod", x, dims=(axis,))


def _running(combine: Callable, neutral: str | int):
    """Running results of what no library has, along the last axis: each element with the one before, then with what is
    two before, four, and so on."""

    def function(x, *, axis, reverse):
        order = [*(dim for dim in range(x.ndim) if dim != axis), axis]
        x = lax.transpose(x, order)
        length, by = x.shape[-1], 1
        while by < length:
            kept = lax.slice_in_dim(x, by if reverse else 0, length if reverse else length - by, axis=-1)
            none = jnp.full((*x.shape[:-1], by), _neutral(neutral, x.dtype), x.dtype)
            x, by = combine(x, lax.concatenate([kept, none] if reverse else [none, kept], x.ndim - 1)), 2 * by
        return lax.transpose(x, [order.index(dim) for dim in range(x.ndim)])

    return function


def _neutral(which: str | int, dtype) -> float | int:
    if isinstance(which, int):
        return which
    if jnp.issubdtype(dtype, jnp.floating):
        return -math.inf if which == "least" else math.inf
    limits = jnp.iinfo(dtype)
    return limits.min if which == "least" else limits.max


def _any(x, *, axes, **_):
    return lax.reduce_max(x.astype(jnp.float32), axes) > 0


def _all(x, *, axes, **_):
    return lax.reduce_min(x.astype(jnp.float32), axes) > 0


def _concatenate(*operands, dimension):
    first = operands[0]
    if dimension == first.ndim - 1 > 1 and first.size >= _TURNED and all(x.shape[-1] == 1 for x in operands):
        # One element each, by turns, as of pairs that are rotated: whole runs side by side, and then turned.
        runs = lax.concatenate([lax.expand_dims(lax.squeeze(x, (dimension,)), (1,)) for x in operands], 1)
        return lax.transpose(runs, (0, *range(2, first.ndim), 1))
    while len(operands) > 1:
        first, *rest = operands
        operands = [call("aclnnCat", first, *rest[:2], dims=(dimension,)), *rest[2:]]
    return operands[0]


def _stack(*operands, axis):
    return lax.concatenate([lax.expand_dims(x, (axis,)) for x in operands], axis)


def _pad(x, value, *, padding_config):
    if any(inner for _, _, inner in padding_config):
        raise NoLibraryOperator("padding between elements")
    lowest = [max(0, -low) for low, _, _ in padding_config]
    x = lax.slice(x, lowest, [size - max(0, -high) for size, (_, high, _) in zip(x.shape, padding_config)])
    for dim, (low, high, _) in enumerate(padding_config):
        sizes = max(0, low), max(0, high)
        sides = [jnp.broadcast_to(value, (*x.shape[:dim], size, *x.shape[dim + 1 :])) for size in sizes]
        parts = [part for part in (sides[0], x, sides[1]) if part.shape[dim] > 0]
        x = lax.concatenate(parts, dim) if len(parts) > 1 else parts[0]
    return x


def _reverse(x, *, dimensions):
    return call("aclnnFlip", x, dims=dimensions)


def _slice(ctx, x, *, start_indices, limit_indices, strides):
    """Of neighbours, a slice that kernels take as it is; each dimension of which every other position goes is a call,
    and so is one behind all that several positions stay of, where what is left lies too far apart."""
    strides = strides or (1,) * len(start_indices)
    sizes = [limit - start for start, limit in zip(start_indices, limit_indices)]
    behind = max((dim + 1 for dim, size in enumerate(sizes) if size > 1), default=len(sizes))
    apart = math.prod(ctx.avals_in[0].shape[behind:])
    picked = {dim for dim in range(behind, len(sizes)) if ctx.avals_in[0].shape[dim] > 1}
    called = set() if apart in TAKEN_APART or behind < 2 else picked
    called |= {dim for dim, stride in enumerate(strides) if stride > 1}

    def in_steps(x):
        for dim, (start, limit, stride) in enumerate(zip(start_indices, limit_indices, strides)):
            if dim in called:
                x = call("aclnnSliceV2", x, dims=(dim, start, limit, stride))
        plain = [dim not in called for dim in range(x.ndim)]
        starts = [start if own else 0 for start, own in zip(start_indices, plain)]
        limits = [limit if own else size for limit, size, own in zip(limit_indices, x.shape, plain)]
        return lax.slice(x, starts, limits)

    if called:
        return mlir.lower_fun(in_steps, multiple_results=False)(ctx, x)
    return [stablehlo.slice(x, *map(mlir.dense_int_array, (start_indices, limit_indices, strides)))]


def _transpose(x, *, permutation):
    if stays(x, permutation):
        return x.reshape([x.shape[dim] for dim in permutation])
    return call("aclnnPermute", x, dims=permutation)


def register(primitive, function: Callable, multiple_results: bool = False) -> None:
    """Lowers a primitive on `ascend` to what `function` makes of it."""
    register_rule(primitive, mlir.lower_fun(function, multiple_results=multiple_results))


def register_rule(primitive, lower: Callable) -> None:
    """Lowers a primitive on `ascend` by a rule; what it does not take is reported."""

    def rule(ctx, *operands, **params):
        try:
            return lower(ctx, *operands, **params)
        except (NoLibraryOperator, ValueError) as error:
            return refused_op(ctx, primitive.name, operands, str(error))

    mlir.register_lowering(primitive, rule, platform=PLATFORM)


def primitive_behind(function: Callable, *shapes: tuple):
    """The one primitive that a function of JAX is, which has no public name; None where it is more than one."""
    equations = jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct(*shape) for shape in shapes)).eqns
    return equations[0].primitive if len(equations) == 1 else None


mlir.register_lowering(lax.slice_p, _slice, platform=PLATFORM)
register(lax.dot_general_p, _dot_general)
_MATRIX = ((2, 2), jnp.float32)
register(primitive_behind(lax.ragged_dot, _MATRIX, ((1, 2, 2), jnp.float32), ((1,), jnp.int32)), _ragged_dot)
_stack_p = primitive_behind(lambda x, y: jnp.stack([x, y]), _MATRIX, _MATRIX)
if _stack_p is not None:
    register(_stack_p, _stack)
register(lax.cumsum_p, _cumsum)
register(lax.cumprod_p, _cumprod)
register(lax.cummax_p, _running(lax.max, "least"))
register(lax.cummin_p, _running(lax.min, "most"))
register(lax.cumlogsumexp_p, _running(jnp.logaddexp, "least"))
register(lax.reduce_or_p, _any)
register(lax.reduce_and_p, _all)
register(lax.concatenate_p, _concatenate)
register(lax.pad_p, _pad)
register(lax.rev_p, _reverse)
register(lax.argmax_p, _position("aclnnArgMax"))
register(lax.argmin_p, _position("aclnnArgMin"))
register(lax.transpose_p, _transpose)


# -- on the host ------------------------------------------------------------------------------------------------------


@functools.partial(jax.jit, static_argnames=("callee", "dims", "transposed", "dtype"))
def run(
    callee: str,
    operands: Sequence[jax.Array],
    dims: tuple[int, ...] = (),
    transposed: tuple[int, ...] = (),
    dtype: str | None = None,
):
    """The result of a library call, by JAX; `dtype` is the result's."""
    if transposed:
        operands = [jnp.swapaxes(x, -1, -2) if turned else x for x, turned in zip(operands, transposed)]
    if LIBRARY[callee].widens:
        return jnp.matmul(*operands, preferred_element_type=dtype)
    return _ON_THE_HOST[callee](*operands, dims)


def _grouped_on_the_host(x, weight, sizes, dims):
    dtype = jnp.int32 if x.dtype == jnp.int8 else x.dtype
    return lax.ragged_dot(x, weight, sizes, preferred_element_type=dtype)


def _added_on_the_host(x, index, source, dims):
    places = [lax.broadcasted_iota(jnp.int32, index.shape, dim) for dim in range(x.ndim)]
    places[dims[0]] = index
    return x.at[tuple(places)].add(source)


_ON_THE_HOST: dict[str, Callable] = {
    "aclnnGroupedMatmulV5": _grouped_on_the_host,
    "aclnnIndexSelect": lambda x, index, dims: jnp.take(x, index, axis=dims[0], mode="clip"),
    "aclnnArgMax": lambda x, dims: jnp.argmax(x, axis=dims[0]).astype(jnp.int32),
    "aclnnArgMin": lambda x, dims: jnp.argmin(x, axis=dims[0]).astype(jnp.int32),
    "aclnnReduceSum": lambda x, dims: jnp.sum(x, axis=dims, dtype=x.dtype),
    "aclnnAmax": lambda x, dims: jnp.max(x, axis=dims),
    "aclnnAmin": lambda x, dims: jnp.min(x, axis=dims),
    "aclnnCumsum": lambda x, dims: jnp.cumsum(x, axis=dims[0], dtype=x.dtype),
    "aclnnCumprod": lambda x, dims: jnp.cumprod(x, axis=dims[0], dtype=x.dtype),
    "aclnnProdDim": lambda x, dims: jnp.prod(x, axis=dims[0], dtype=x.dtype),
    "aclnnFlip": lambda x, dims: jnp.flip(x, dims),
    "aclnnCat": lambda *operands: jnp.concatenate(operands[:-1], axis=operands[-1][0]),
    "aclnnSliceV2": lambda x, dims: lax.slice_in_dim(x, dims[1], dims[2], dims[3], axis=dims[0]),
    "aclnnIndexCopy": lambda x, index, source, dims: x.at[(slice(None),) * dims[0] + (index,)].set(source),
    "aclnnScatterAdd": _added_on_the_host,
    "aclnnFmodTensor": lambda x, y, dims: lax.rem(x, y),
    "aclnnQuantMatmulV5": lambda a, b, scale, dims: jnp.matmul(a, b, preferred_element_type=jnp.int32),
    "aclnnPermute": lambda x, dims: jnp.transpose(x, dims),
}
assert _ON_THE_HOST.keys() == {name for name, operator in LIBRARY.items() if not operator.widens}
