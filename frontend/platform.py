"""The platform `ascend`, made known to JAX, and lowering rules for it.

`jax.jit(f).trace(...).lower(lowering_platforms=("ascend",))` needs two things: a platform of that name, and for every
primitive of ours a rule that writes the `ascend` operation. There is nothing to execute on through JAX itself, so the
backend behind the name never comes up: JAX notes that quietly and goes on to the CPU. `jascend.compile` runs the
result.
"""

import contextlib
import contextvars

import jax.numpy as jnp
from jax.extend.backend import register_backend_factory
from jax.interpreters import mlir

from jascend.errors import OperatorError

PLATFORM = "ascend"
_product = contextvars.ContextVar("product", default=None)


@contextlib.contextmanager
def limits_of(product: str | None):
    """What is lowered for the platform inside keeps the limits of a product; None: as the calls say."""
    token = _product.set(product)
    try:
        yield
    finally:
        _product.reset(token)


def _no_backend():
    raise RuntimeError("programs for Ascend run through jascend.compile, not through a JAX backend")


register_backend_factory(PLATFORM, _no_backend, priority=-100, fail_quietly=True)


def register_ascend_lowering(primitive, describe, *, rank: int | None = 2, fold=None):
    """Lowers `primitive` to the operation `ascend.<primitive.name>` on the platform `ascend`.

    The operation has no leading batch dimensions. Where vmap has added some, they are folded into the first axis before
    it and unfolded after it.

    Args:
        primitive: a primitive whose operands all carry the same leading batch dimensions.
        describe: `describe(**params) -> (attributes, segments)`. Attributes are a dict of Python bools, ints, floats,
            strings, and tuples of ints (`resultSegmentSizes` of an operation with optional results). Segments has one
            count for each operand the operation can have, 0 where it is absent, or is None when no operand is
            optional. Result types follow the avals.
        rank: rank of the operation's first operand, or None when the operation takes any rank.
        fold: `fold(*operands, **params) -> list of results`, in terms of `primitive` on fewer leading dimensions, where
            not all operands carry the same ones.
    """

    def lower(ctx, *operands, **params):
        check_limits(primitive, ctx.avals_in, params)
        extra = 0 if rank is None else len(ctx.avals_in[0].shape) - rank
        if extra > 0:
            folded = fold or _folded(primitive, extra)
            return mlir.lower_fun(folded, multiple_results=True)(ctx, *operands, **params)
        attributes, segments = describe(**params)
        return ascend_op(ctx, primitive.name, operands, attributes, segments)

    mlir.register_lowering(primitive, lower, platform=PLATFORM)


def has_limits() -> bool:
    """Whether the limits of a product are kept here."""
    return product() is not None


def product() -> str | None:
    """The product whose limits are kept here, if any."""
    return _product.get()


def check_limits(primitive, avals, params) -> None:
    """Raises what a call raises that is meant for the product."""
    product = _product.get()
    if product is None or "target" not in params:
        return
    try:
        primitive.abstract_eval(*avals, **dict(params, target=product))
    except OperatorError as error:
        error.add_note(f"It is compiled for {product}.")
        raise


def _folded(primitive, extra):
    """`primitive` applied to operands whose first `extra + 1` axes are folded into one."""

    def apply(*operands, **params):
        lead = operands[0].shape[: extra + 1]
        rows = 1
        for size in lead:
            rows = rows * size
        results = primitive.bind(*(jnp.reshape(x, (rows, *x.shape[extra + 1 :])) for x in operands), **params)
        results = results if primitive.multiple_results else [results]
        return [jnp.reshape(y, (*lead, *y.shape[1:])) for y in results]

    return apply


def ascend_op(ctx, name, operands, attributes, segments):
    """An operation of the dialect; its result types follow the avals."""
    return _op(ctx, f"ascend.{name}", operands, attributes, segments)


def refused_op(ctx, name, operands, reason: str):
    """What stands for a primitive that nothing computes; the pass `import` reports it, with the reason."""
    return _op(ctx, f"jax.{name}", operands, {"ascend.reason": reason}, None)


def _op(ctx, name, operands, attributes, segments):
    ir = mlir.ir
    # The dialect is registered where the module is imported, through IRDL; jaxlib's MLIR does not have IRDL.
    ctx.module_context.context.allow_unregistered_dialects = True
    attrs = {key: _attribute(ir, value) for key, value in attributes.items()}
    if segments is not None:
        attrs["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(segments)
    results = [mlir.aval_to_ir_type(ctx.module_context, aval) for aval in ctx.avals_out]
    return ir.Operation.create(name, results=results, operands=list(operands), attributes=attrs).results


def _attribute(ir, value):
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if isinstance(value, float):
        return ir.FloatAttr.get_f32(value)
    if isinstance(value, tuple):
        return ir.DenseI32ArrayAttr.get(value)
    return ir.StringAttr.get(value)
