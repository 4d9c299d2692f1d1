"""Routing kernels for any number of tokens: one binary, run on the twin with several, bit for bit what the fallback computes."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from graphs import beside_jax, on_tiles
from jascend.backends.ascend import project
from jascend.backends.ascend.codegen import tiling

import jascend as ja

F32, BF16 = np.float32, ml_dtypes.bfloat16
(N,) = jax.export.symbolic_shape("n")


def operands(tokens, slots, size, experts, dtype=F32, scale=None):
    """One id of about ten is no expert; of some tokens none is."""
    rng = np.random.default_rng(tokens)
    x = rng.normal(0, 20, (tokens, size)).astype(dtype)
    ids = rng.integers(0, experts, (tokens, slots))
    ids[rng.random(ids.shape) < 0.1] = rng.choice([-1, experts, 2**31 - 1, -(2**31)])
    ids[tokens // 2 :][:3] = -1
    given = {"x": x, "expert_idx": ids.astype(np.int32)}
    if scale is not None:
        given["scale"] = rng.uniform(1, 2, tuple(tokens if dim is None else dim for dim in scale)).astype(F32)
    return given


def compiled(attributes, given, target="ascend910b", scale=None):
    def route(x, expert_idx, scale=None, offset=None):
        return ja.moe_init_routing(x, expert_idx, scale, offset, **attributes)

    specs = {name: jax.ShapeDtypeStruct((N, *a.shape[1:]), a.dtype) for name, a in given.items()}
    if scale is not None and None not in scale:
        specs["scale"] = jax.ShapeDtypeStruct(scale, F32)
    if attributes.get("quant_mode") == 0:
        specs["offset"] = jax.ShapeDtypeStruct((1,), F32)
    return ja.compile(route, target=target, **specs)


def same_bits(actual, expected):
    for name, a, e in zip(expected._fields, actual, expected):
        assert (a is None) == (e is None), name
        if e is not None:
            a, e = np.asarray(a), np.asarray(e)
            assert (a.shape, a.dtype) == (e.shape, e.dtype), name
            np.testing.assert_array_equal(np.atleast_1d(a).view(np.uint8), np.atleast_1d(e).view(np.uint8), err_msg=name)


# Slots, size, experts, dtype, the shape of the scale (None: a token's), attributes; on 910B and 950.
CASES = {
    "scaled copies of some": (
        4, 24, 16, F32, (None,),
        dict(active_expert_range=(3, 11), expert_tokens_num_type=2, row_idx_type=1, active_num=300),
    ),
    "codes": (3, 64, 16, BF16, None, dict(quant_mode=1, expert_tokens_num_type=0)),
    "codes of padded rows": (4, 40, 16, BF16, None, dict(quant_mode=1, drop_pad_mode=1, expert_capacity=5)),
    "codes by expert": (5, 64, 16, F32, (16, 64), dict(quant_mode=1)),
    "static codes": (2, 64, 16, F32, (1,), dict(quant_mode=0)),
    "long rows": (2, 60113, 8, F32, None, {}),
    "long codes": (2, 30000, 8, BF16, None, dict(quant_mode=1)),
    "one expert": (1, 8, 16, np.int8, None, {}),
    "more experts than a block": (1100, 5, 300, F32, None, {}),
    "several tables": (4, 16, 1600, np.float16, None, dict(expert_tokens_num_type=2, active_expert_range=(30, 1300))),
    "groups": (3, 100, 16, BF16, None, dict(quant_mode=2)),
    "exact groups": (3, 300, 16, np.float16, None, dict(quant_mode=12)),
    "nibbles": (3, 64, 16, BF16, None, dict(quant_mode=9)),
}  # fmt: skip
ONLY_950 = ("groups", "exact groups", "nibbles")
QUICK = {("scaled copies of some", "ascend910b"), ("codes", "ascend950")}


def cases():
    for name in CASES:
        for target in ("ascend910b", "ascend950"):
            if target == "ascend950" and (name in ("codes of padded rows", "scaled copies of some")):
                continue  # which that product has not
            if target == "ascend950" or name not in ONLY_950:
                marks = [] if (name, target) in QUICK else [pytest.mark.long]
                yield pytest.param(name, target, id=f"{name}-{target}", marks=marks)


@pytest.mark.parametrize(("name", "target"), list(cases()))
def test_any_number_of_tokens(name, target):
    slots, size, experts, dtype, scale, attributes = CASES[name]
    attributes = attributes | {"expert_num": experts}
    program = compiled(attributes, operands(4, slots, size, experts, dtype, scale), target, scale)
    few = 1023 // slots  # tokens whose pairs every core orders
    most = 60 if size > 1000 or slots > 100 else few + 40 if name != "one expert" else 1100
    project._built.cache_clear()
    for tokens in sorted({n for n in (0, 1, 5, 49, few, few + 1, most) if n <= most}):
        given = operands(tokens, slots, size, experts, dtype, scale)
        if attributes.get("quant_mode") == 0:
            given["offset"] = np.array([-3.0], F32)
        if tokens < attributes.get("expert_capacity", 0):
            with pytest.raises(ja.errors.TilingError, match=f": x must have at least 5 rows, but has {tokens}$"):
                program(**given)
            continue
        expected = ja.moe_init_routing(**given, **attributes)
        same_bits(program(**given), expected)
        if tokens == most:
            report = program.profile(**given, cores=5)
            assert not report.findings
            same_bits(report.outputs, expected)
    assert project._built.cache_info().misses == 1


def test_no_tokens_at_all():
    """Where the host launches the kernel all the same, the counts are zeros, and nothing else is touched."""
    name = "scaled copies of some"
    slots, size, experts, dtype, scale, attributes = CASES[name]
    program = compiled(attributes | {"expert_num": experts}, operands(4, slots, size, experts, dtype, scale), scale=scale)
    (kernel,) = program.kernels
    arrays = [np.ones(tensor.shape(0), tensor.dtype) for tensor in (*kernel.signature.inputs, *kernel.signature.outputs)]
    run = project.build_for_twin(kernel, "ascend910b").launch(
        kernel.name, arrays, tiling=tiling.pack(kernel.shape.data(0, 48)), blocks=48, workspace_bytes=1 << 16
    )
    assert not run.findings
    counts = next(a for a, tensor in zip(arrays, (*kernel.signature.inputs, *kernel.signature.outputs)) if tensor.name == "expertTokens")
    assert counts.shape == (16, 2) and not counts.any()


@pytest.mark.long
def test_places_that_no_32_bits_hold():
    """Rows of more than 2^31 bytes together, of which a few are read: the last ones too. Takes 5 GB."""

    def route(x, expert_idx):
        return ja.moe_init_routing(x, expert_idx, expert_num=4, active_num=6)

    size, tokens = 60000, 36001
    program = ja.compile(route, jax.ShapeDtypeStruct((N, size), np.int8), jax.ShapeDtypeStruct((N, 1), np.int32))
    x, ids, used = np.zeros((tokens, size), np.int8), np.full((tokens, 1), -1, np.int32), [0, 17, 35961, 35999, 36000]
    assert x.size > 2**31
    for number, token in enumerate(used):
        x[token], ids[token] = np.arange(size) % (101 + number), (7 - number) % 4
    found = program(x, ids)
    in_order = sorted(used, key=lambda token: ids[token, 0])
    np.testing.assert_array_equal(found.expanded_x[:5], x[in_order])
    np.testing.assert_array_equal(found.expert_tokens, [1, 1, 1, 2])
    np.testing.assert_array_equal(found.expanded_row_idx[np.array(in_order)], range(5))
    assert np.sum(found.expanded_row_idx >= 0) == 5


def test_a_bound_of_tokens():
    """A symbol that cannot be more than few: every core orders all pairs, in runs for as many; tiling refuses more."""
    (few,) = jax.export.symbolic_shape("few", constraints=["few <= 15"])

    def route(x, expert_idx):
        return ja.moe_init_routing(x, expert_idx, expert_num=16)

    program = ja.compile(route, jax.ShapeDtypeStruct((few, 8), F32), jax.ShapeDtypeStruct((few, 4), np.int32))
    (kernel,) = program.kernels
    assert "SyncAll" not in kernel.source and "up to 15 x 4 pairs" in program.explain()
    for tokens in (1, 15):
        given = operands(tokens, 4, 8, 16).values()
        expected = route(*given)
        used = np.asarray(expected.expert_tokens).sum()
        rows, index, counts = on_tiles(program, *given)
        np.testing.assert_array_equal(rows[:used], expected.expanded_x[:used])
        np.testing.assert_array_equal(index, expected.expanded_row_idx)
        np.testing.assert_array_equal(counts, expected.expert_tokens)
    with pytest.raises(ja.errors.TilingError, match="x must have at most 15 rows, but has 16"):
        kernel.signature.check_rows("route", 16)
    with pytest.raises(ValueError, match="x has 16 rows, but was compiled for few <= 15"):
        program(*operands(16, 4, 8, 16).values())


def gated(logits, bias, x):
    gate = ja.moe_gating_top_k(logits, 6, bias=bias, norm_type=1, group_count=8, k_group=4, group_select_mode=1)
    return gate.y, gate.expert_idx, ja.moe_init_routing(x, gate.expert_idx, expert_num=64, quant_mode=1)


GATED = jax.ShapeDtypeStruct((N, 64), F32), jax.ShapeDtypeStruct((64,), F32), jax.ShapeDtypeStruct((N, 40), BF16)


@pytest.mark.long
@pytest.mark.parametrize("target", ["ascend910b", "ascend950"])
def test_gating_and_routing(target):
    """In one kernel as in two: few tokens are gated by every core, many wait in blocks."""
    fused, apart = (ja.compile(gated, *GATED, target=target, forbid=forbid) for forbid in ((), "fuse-moe"))
    assert (len(fused.kernels), len(apart.kernels)) == (1, 2)
    for tokens in (1, 7, 16, 17, 47, 350):
        rng = np.random.default_rng(tokens)
        given = (
            np.round(rng.normal(0, 2, (tokens, 64)), 1).astype(F32), (rng.normal(size=64) / 4).astype(F32),
            rng.normal(0, 3, (tokens, 40)).astype(BF16),
        )  # fmt: skip
        expected = apart(*given)
        same_bits(expected[2], ja.moe_init_routing(given[2], expected[1], expert_num=64, quant_mode=1))
        for cores in (3, None):
            report = fused.profile(*given, cores=cores)
            assert not report.findings
            for a, e in zip(jax.tree.leaves(report.outputs), jax.tree.leaves(expected), strict=True):
                np.testing.assert_array_equal(np.asarray(a).view(np.uint8), np.asarray(e).view(np.uint8))
    with pytest.raises(ja.errors.ParamInvalid, match="logits must not be empty, but has 0"):
        fused(*(x[:0] if x.ndim > 1 else x for x in given))


def test_a_batch_of_several_tokens():
    """The tokens are a multiple of the symbol; what is limited feeds another kernel."""
    def route(x, ids):
        rows = ja.moe_init_routing(x.reshape(-1, 8), ids.reshape(-1, 2), expert_num=4, active_num=20, expert_tokens_num_flag=False)
        return jnp.abs(rows.expanded_x) * 2, rows.expanded_row_idx

    program = ja.compile(route, jax.ShapeDtypeStruct((N, 3, 8), F32), jax.ShapeDtypeStruct((N, 3, 2), np.int32))
    for batch in (1, 3, 4, 200):
        given = operands(3 * batch, 2, 8, 4)
        given = given["x"].reshape(-1, 3, 8), np.clip(given["expert_idx"].reshape(-1, 3, 2), 0, 3)
        for actual, expected in beside_jax(on_tiles(program, *given), route, *given):
            np.testing.assert_array_equal(actual, expected)
