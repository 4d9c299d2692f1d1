"""What becomes of a kernel whose buffers do not fit: smaller tiles, and where those do not help, an error."""

import dataclasses
import inspect
import os
import re

import jax
import jax.numpy as jnp
import pytest
from jascend.backends.ascend import targets
from jascend.errors import Unsupported

import jascend as ja

SPECS = jax.ShapeDtypeStruct((64, 1024), jnp.float32), jax.ShapeDtypeStruct((1024,), jnp.float32)


def gate(x, bias):
    return ja.moe_gating_top_k(x, 8, bias=bias, norm_type=1, group_count=8, k_group=4)


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """Compiles for a product with a unified buffer of so many bytes for the user."""
    monkeypatch.setenv("JASCEND_CACHE_DIR", str(tmp_path))

    def call(usable):
        product = targets.TARGETS["ascend910b"]
        kept = product.ub_bytes - product.ub_usable_bytes
        monkeypatch.setitem(targets.TARGETS, "ascend910b", dataclasses.replace(product, ub_bytes=usable + kept))
        return ja.compile(gate, *SPECS)

    return call


def test_smaller_tiles_are_tried(compiled):
    explained = compiled(60 << 10).explain()
    (what,) = re.findall(r"allocate-ub: missed: size of tiles number 1 of \d+: (.*)", explained)
    needed, budget = re.fullmatch(r"the buffers of this kernel need (\d+) bytes of unified buffer, the budget is (\d+)", what).groups()
    assert int(budget) == 60 << 10 < int(needed)
    ((used,),) = [re.findall(r"buffers in (\d+) of 61440 bytes of unified buffer", explained)]
    assert int(used) <= 60 << 10


def test_the_error_tells_what_does_not_fit(compiled):
    with pytest.raises(Unsupported) as caught:
        compiled(16 << 10)
    text = str(caught.value)
    lines, first = inspect.getsourcelines(gate)
    place = f"{os.path.basename(__file__)}:{first + 1}:"
    needed, budget = re.search(rf"{place}\d+: error: the buffers of this kernel need (\d+) bytes .* budget is (\d+)", text).groups()
    assert int(budget) == 16 << 10
    assert re.search(rf"{place}\d+: note: with the smallest of \d+ sizes of tiles", text)
    sizes = [int(size) for size in re.findall(rf"{place}\d+: note: '\w+' takes (\d+) bytes and is live here", text)]
    assert int(budget) < sum(sizes) <= int(needed)
    assert lines[1].strip() in text


def test_what_one_kernel_has_no_room_for_is_nothing_to_another():
    """Row-wise work with too many values for its first size of tiles, beside a gating that has room for its own."""
    scores, wide = SPECS[0], jax.ShapeDtypeStruct((4, 20000), jnp.float32)

    def gating(scores):
        def model(scores):
            return ja.moe_gating_top_k(scores, 8, norm_type=1)[:2]

        return ja.compile(model, scores)

    def both(scores, wide):
        def model(scores, wide):
            return jax.nn.softmax(wide, axis=-1), ja.moe_gating_top_k(scores, 8, norm_type=1)[:2]

        return ja.compile(model, scores, wide)

    alone, beside = gating(scores), both(scores, wide)
    assert "allocate-ub: missed: size of tiles number 1 of" in beside.explain()
    texts = [re.sub(r"//.*", "", next(k.source for k in p.kernels if "gating" in k.name)) for p in (alone, beside)]
    assert texts[0] == texts[1]


def test_gaps_do_not_cost_the_second_buffers():
    """Placed in the order in which they are made, the sampler's buffers leave gaps and do not fit; by their lives they do."""
    f32, i32 = jnp.float32, jnp.int32
    row, logits = [jax.ShapeDtypeStruct((4,), dtype) for dtype in (i32, f32)], jax.ShapeDtypeStruct((4, 32000), f32)
    program = ja.compile(lambda x, k, p, q: ja.top_k_top_p_sample(x, k, p, q), logits, *row, logits)
    assert "allocate-ub: missed" not in program.explain(details=True)
    assert "loops that load an iteration ahead" in program.explain(details=True)
