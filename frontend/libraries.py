"""What a graph leaves to CANN's libraries: matrix products, gathers of rows, transpositions, positions of maxima.

On the platform `ascend`, these primitives of JAX become `ascend.library_call`s, with reshapes around them that move
nothing. What fits no operator of the libraries stays an op that `import` reports, with the reason. On the twin a call is
run by JAX, on the host.
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

from jascend.dialect.libraries import LIBRARY, library_call
from jascend.dialect.rules import Shaped
from jascend.platform import PLATFORM, ascend_op, refused_op


class NoLibraryOperator(Exception):
    """No operator of the libraries computes this; the text says why."""


# -- one call ---------------------------------------------------------------------------------------------------------


def _abstract_eval(*operands, callee, dims, transposed):
    given = [Shaped(x.shape, x.dtype.name) for x in operands]
    result = library_call(callee, given, dims, transposed)
    return jax.core.ShapedArray(result.shape, jnp.dtype(result.dtype))


def _lower_call(ctx, *operands, callee, dims, transposed):
    attributes = {"callee": callee, "dims": dims or None, "transposed": transposed or None}
    segments = [int(i < len(operands)) for i in range(3)]
    return ascend_op(ctx, "library_call", operands, {k: v for k, v in attributes.items() if v is not None}, segments)


library_call_p = Primitive("library_call")
library_call_p.def_abstract_eval(_abstract_eval)
mlir.register_lowering(library_call_p, _lower_call, platform=PLATFORM)


def _call(callee: str, *operands, dims: Sequence[int] = (), transposed: Sequence[int] = ()):
    return library_call_p.bind(*operands, callee=callee, dims=tuple(dims), transposed=tuple(transposed))


# -- what primitives become -------------------------------------------------------------------------------------------


def _dot_general(a, b, *, dimension_numbers, preferred_element_type, **_):
    (a_contracted, b_contracted), (a_batch, b_batch) = dimension_numbers
    dtype = jnp.dtype(preferred_element_type or jnp.result_type(a, b))
    if a.dtype != b.dtype or not jnp.issubdtype(a.dtype, jnp.floating):
        raise NoLibraryOperator(f"a product of {a.dtype} and {b.dtype}; aclnnMatmul takes floats of one dtype")
    if dtype != a.dtype:  # more exact than its operands: they are widened first
        if dtype != jnp.float32:
            raise NoLibraryOperator(f"a product of {a.dtype} as {dtype}")
        a, b = a.astype(dtype), b.astype(dtype)
    a, a_turned, batch, a_free = _as_matrix(a, a_batch, a_contracted, first=False)
    b, b_turned, _, b_free = _as_matrix(b, b_batch, b_contracted, first=True)
    transposed = (int(a_turned), int(b_turned))
    transposed = transposed if any(transposed) else ()
    if batch:
        out = _call("aclnnBatchMatMul", a, b, transposed=transposed)
    else:
        out = _call("aclnnMatmul", a[0], b[0], transposed=transposed)
    return out.reshape(*batch, *a_free, *b_free)


def _as_matrix(x, batch: Sequence[int], contracted: Sequence[int], first: bool):
    """[batch, rows, columns] of an operand, whether it is to be transposed, and its batch and free sizes. Contracted
    dimensions are the rows of the second operand (`first`), the columns of the first."""
    free = [i for i in range(x.ndim) if i not in batch and i not in contracted]
    batch_sizes, free_sizes, contracted_sizes = ([x.shape[d] for d in dims] for dims in (batch, free, contracted))
    orders = [(*batch, *contracted, *free), (*batch, *free, *contracted)]
    upright = orders[0 if first else 1]
    turned = not _stays(x, upright) and _stays(x, orders[1 if first else 0])
    if not turned:
        x = _transpose(x, permutation=upright)
    matrix = (contracted_sizes, free_sizes) if first != turned else (free_sizes, contracted_sizes)
    return x.reshape(math.prod(batch_sizes), *map(math.prod, matrix)), turned, batch_sizes, free_sizes


def _stays(x, permutation: Sequence[int]) -> bool:
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
        raise NoLibraryOperator(f"a ragged product of {x.dtype} and {weight.dtype}; aclnnGroupedMatmulV4 takes one dtype")
    out = _call("aclnnGroupedMatmulV4", x, weight, sizes)
    dtype = jnp.dtype(preferred_element_type or jnp.result_type(x, weight))
    if out.dtype != dtype:
        raise NoLibraryOperator(f"a ragged product of {x.dtype} as {dtype}; aclnnGroupedMatmulV4 gives {out.dtype}")
    return out


def _gather(x, indices, *, dimension_numbers, slice_sizes, mode, fill_value, **_):
    numbers, (dim, *others) = dimension_numbers, dimension_numbers.start_index_map
    whole = tuple(1 if i == dim else size for i, size in enumerate(x.shape))
    before = tuple(range(dim))  # the dimensions in front of the gathered one stay in front of those of the indices
    after = tuple(range(dim + indices.ndim - 1, x.ndim + indices.ndim - 2))
    if (
        others or numbers.operand_batching_dims or tuple(numbers.collapsed_slice_dims) != (dim,)
        or tuple(slice_sizes) != whole or tuple(numbers.offset_dims) != (*before, *after)
    ):  # fmt: skip
        raise NoLibraryOperator("a gather of other than whole slices along one dimension; aclnnIndexSelect takes those")
    if indices.dtype != jnp.int32:
        raise NoLibraryOperator(f"a gather by {indices.dtype}; kernels compute with int32")
    mode = lax.GatherScatterMode.from_any(mode)
    positions, last = indices.reshape(-1), x.shape[dim] - 1
    wanted = positions
    if mode != lax.GatherScatterMode.PROMISE_IN_BOUNDS:
        positions = jnp.clip(positions, 0, last)
    out = _call("aclnnIndexSelect", x, positions, dims=(dim,))
    if mode == lax.GatherScatterMode.FILL_OR_DROP:
        if not jnp.issubdtype(x.dtype, jnp.floating) and x.dtype != jnp.int32:
            raise NoLibraryOperator(f"a gather of {x.dtype} that fills in what is out of bounds")
        if fill_value is None:
            fill_value = jnp.nan if jnp.issubdtype(x.dtype, jnp.floating) else jnp.iinfo(x.dtype).min
        inside = (wanted == positions).reshape((-1, *(1,) * (x.ndim - 1 - dim)))
        out = jnp.where(inside, out, jnp.asarray(fill_value, x.dtype))
    return out.reshape(*x.shape[:dim], *indices.shape[:-1], *x.shape[dim + 1 :])


def _argmax(x, *, axes, index_dtype):
    if jnp.dtype(index_dtype) != jnp.int32 or len(axes) != 1:
        raise NoLibraryOperator(f"argmax over {len(axes)} dimensions as {jnp.dtype(index_dtype)}")
    return _call("aclnnArgMax", x, dims=axes)


def _transpose(x, *, permutation):
    if _stays(x, permutation):
        return x.reshape([x.shape[dim] for dim in permutation])
    return _call("aclnnPermute", x, dims=permutation)


def _register(primitive, function: Callable) -> None:
    """Lowers a primitive on `ascend` to what `function` makes of it."""

    def rule(ctx, *operands, **params):
        try:
            return mlir.lower_fun(function, multiple_results=False)(ctx, *operands, **params)
        except (NoLibraryOperator, ValueError) as error:
            return refused_op(ctx, primitive.name, operands, str(error))

    mlir.register_lowering(primitive, rule, platform=PLATFORM)


def _ragged_dot_primitive():
    """The primitive behind `lax.ragged_dot`, which has no public name."""
    shapes = ((2, 2), jnp.float32), ((1, 2, 2), jnp.float32), ((1,), jnp.int32)
    (equation,) = jax.make_jaxpr(lax.ragged_dot)(*(jax.ShapeDtypeStruct(*shape) for shape in shapes)).eqns
    return equation.primitive


_register(lax.dot_general_p, _dot_general)
_register(_ragged_dot_primitive(), _ragged_dot)
_register(lax.gather_p, _gather)
_register(lax.argmax_p, _argmax)
_register(lax.transpose_p, _transpose)


# -- on the host ------------------------------------------------------------------------------------------------------


@functools.partial(jax.jit, static_argnames=("callee", "dims", "transposed"))
def run(callee: str, operands: Sequence[jax.Array], dims: tuple[int, ...] = (), transposed: tuple[int, ...] = ()):
    """The result of a library call, by JAX."""
    if transposed:
        operands = [jnp.swapaxes(x, -1, -2) if turned else x for x, turned in zip(operands, transposed)]
    return _ON_THE_HOST[callee](*operands, dims)


def _grouped_on_the_host(x, weight, sizes, dims):
    dtype = jnp.int32 if x.dtype == jnp.int8 else x.dtype
    return lax.ragged_dot(x, weight, sizes, preferred_element_type=dtype)


_ON_THE_HOST: dict[str, Callable] = {
    "aclnnMatmul": lambda a, b, dims: jnp.matmul(a, b),
    "aclnnBatchMatMul": lambda a, b, dims: jnp.matmul(a, b),
    "aclnnGroupedMatmulV4": _grouped_on_the_host,
    "aclnnIndexSelect": lambda x, index, dims: jnp.take(x, index, axis=dims[0], mode="clip"),
    "aclnnArgMax": lambda x, dims: jnp.argmax(x, axis=dims[0]).astype(jnp.int32),
    "aclnnPermute": lambda x, dims: jnp.transpose(x, dims),
}
assert _ON_THE_HOST.keys() == LIBRARY.keys()
