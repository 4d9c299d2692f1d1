"""`ascend.repetition_penalty`: logits of tokens that have been seen are divided by a penalty if positive,
else multiplied."""

import jax.numpy as jnp
from mlir.dialects import arith

from jascend.dialect import TILE, Op, Operand, Result, Shaped, define
from jascend.dialect.errors import ParamInvalid
from jascend.extend import primitive
from jascend.passes import lowering
from jascend.passes.builder import tile_type
from jascend.passes.lowerings.ops import Ops
from jascend.passes.lowerings.row_chunks import RowChunks, length_of
from jascend.passes.lowerings.rows import each_row

# -- what it is -----------------------------------------------------------------------------------------------------


def _rule(logits: Shaped, seen: Shaped, penalty: Shaped) -> Shaped:
    """The result's shape and dtype, for JAX and for MLIR."""
    if len(logits.shape) != 2 or logits.dtype not in ("float32", "float16", "bfloat16"):
        raise ParamInvalid("repetition_penalty", "logits", f"must be floats [B, V], but is {logits}")
    if (seen.shape, seen.dtype) != (logits.shape, "bool"):
        raise ParamInvalid("repetition_penalty", "seen", f"must be bool like logits {logits}, but is {seen}")
    if (penalty.shape, penalty.dtype) != (logits.shape[:1], "float32"):
        raise ParamInvalid("repetition_penalty", "penalty", f"must be float32 [B], but is {penalty}")
    return logits


define(
    Op(
        "repetition_penalty",
        "Logits of seen tokens, divided by the penalty if positive, else multiplied by it.",
        operands=(
            Operand("logits", "tensor", "[B, V]; f32, f16 or bf16", by_row=True),
            Operand("seen", "tensor", "[B, V] i1", by_row=True),
            Operand("penalty", "tensor", "[B] f32", by_row=True),
        ),
        results=(Result("out", "tensor", "as `logits`"),),
        rule=_rule,
    )
)

# -- in JAX ---------------------------------------------------------------------------------------------------------


def repetition_penalty(logits, seen, penalty):
    """Penalizes what has been seen.

    Args:
      logits: [B, V] float32, float16 or bfloat16.
      seen: [B, V] bool.
      penalty: [B] float32.

    Returns: [B, V], dtype of `logits`.
    Raises: jascend.errors.ParamInvalid for other shapes and dtypes."""
    return _repetition_penalty_p.bind(jnp.asarray(logits), jnp.asarray(seen), jnp.asarray(penalty))


def _fallback(logits, seen, penalty):
    x, by = logits.astype(jnp.float32), penalty[:, None]
    return jnp.where(seen, jnp.where(x > 0, x / by, x * by), x).astype(logits.dtype)


_repetition_penalty_p = primitive("repetition_penalty", _fallback)

# -- its kernel -----------------------------------------------------------------------------------------------------


@lowering(
    "ascend.repetition_penalty", summary="Divides or multiplies the logits of seen tokens by the penalty of the row."
)
def lower(op, site):
    """Row by row, each in chunks."""
    b, t, producers = site.b, Ops(site.b), site.producers
    logits, out = op.logits.type, site.outputs["out"]
    rows, columns = ("row",), ("row", "col")
    site.deal_out(out)
    share = b.build(TILE.classes["BlockRows"], site.rows, results=[b.index_type] * 4, parts=1)
    length, ramp = b.index(logits.shape[1]), t.ramp(site.tile, b.f32_type, "ramp")

    def row(number):
        producers.enter_row(number, [(op.logits, columns), (op.seen, columns)])
        penalty = producers.row_scalar(op.penalty, rows, "row_penalty")
        offset = b.op(arith.muli, number, length, name="row_offset")

        def chunk(part):
            x, by = part.x, b.splat(penalty, length_of(part.x), "by")
            seen = producers.piece(op.seen, columns, part.column, part.count, 0.0)
            divided, multiplied = b.op(arith.divf, x, by, name="divided"), b.op(arith.mulf, x, by, name="multiplied")
            penalized = b.select(t.compare("OGT", x, b.f32(0.0), "is_positive"), divided, multiplied, "penalized")
            result = b.select(seen, penalized, x, "result")
            if str(logits.element_type) != "f32":
                result = b.op(arith.truncf, tile_type(length_of(x), logits.element_type), result, name="rounded")
            t.store(result, out, t.plus(offset, part.column), part.count)
            return []

        chunks = RowChunks(b, producers, op.logits, t.zero, length, chunk=site.tile, length=logits.shape[1], ramp=ramp)
        chunks.each([], chunk, "The penalized row.")
        return []

    each_row(t, share, row)
