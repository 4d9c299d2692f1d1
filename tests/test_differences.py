"""`--interpret` on the kernels of operators: given the shapes of their launches, with as many cores as share a row."""

import jax
import jax.numpy as jnp
import pytest
from jascend.passes.differences import differences
from jascend.passes.pipeline import run_pipeline
from mlir import ir

import jascend as ja
import jascend.dialect

F32, I32 = jnp.float32, jnp.int32


def gate(x, bias):
    return ja.moe_gating_top_k(x, 4, bias=bias, norm_type=1)


def route(x, expert_idx):
    return ja.moe_init_routing(x, expert_idx, expert_num=8)


def keep(logits, p):
    return ja.apply_top_k_top_p(logits, p, None)


def on_tiles(function, *shapes, parts=0):
    """A program's kernel as it is first written, and as `pipeline-loads` leaves it; and the context to hold."""
    program = ja.compile(function, *(jax.ShapeDtypeStruct(*each) for each in shapes))
    context = jascend.dialect.make_context()
    before = run_pipeline(ir.Module.parse(program.ir("fused"), context), f"lower-to-tile{{parts={parts}}}")
    return before, run_pipeline(before, "remove-dead-ops{merge=false},pipeline-loads{min-gain=-10}"), context


@pytest.mark.parametrize(
    "function, shapes, parts",
    [
        (gate, [((20, 64), F32), ((64,), F32)], 0),  # a bias has as many elements as there are experts, not as rows
        (route, [((9, 24), F32), ((9, 2), I32)], 0),
        (keep, [((2, 2100), F32), ((2,), F32)], 3),  # three cores meet
    ],
)
def test_loading_ahead_changes_no_result(function, shapes, parts):
    before, after, context = on_tiles(function, *shapes, parts=parts)
    assert str(before) != str(after)
    assert differences(before, after) == []
    del context


def test_a_kernel_that_no_longer_runs_is_an_error():
    before, after, context = on_tiles(gate, ((20, 64), F32), ((64,), F32))
    loads = []

    def visit(op):
        loads.extend([op.operation] if op.name == "tile.load_rows" else [])
        return ir.WalkResult.ADVANCE

    after.operation.walk(visit)
    with context, ir.Location.unknown():
        for load in loads:  # too many rows
            with ir.InsertionPoint(load):
                attribute = ir.IntegerAttr.get(ir.IndexType.get(), 999)
                load.operands[2] = ir.Operation.create(
                    "arith.constant", [ir.IndexType.get()], attributes={"value": attribute}
                ).result
    (found,) = differences(before, after)
    assert found.severity == "error"
    assert "fails after the pipeline: tile.load_rows of 999 rows" in found.message
