"""The generated routing kernels, run on the twin with the checker on: against the vectors, the fallback, themselves."""

import functools
import re

import jax
import ml_dtypes
import numpy as np
import pytest
import vectors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jascend as ja
from jascend.dialect.rules.moe_init_routing import QUANTIZATIONS
from jascend.errors import OperatorError, Unsupported

F32, BF16 = np.float32, ml_dtypes.bfloat16
CASES = vectors.moe_init_routing()
# Of every kind of case one in `make test`, on one of the products; and what a product refuses.
QUICK = set("001 005 006 010 015 017 019 020 023 029 031 033 036 038 041 043 075".split())
QUICK_ON_950 = set("060 061 071 072".split())
REFUSED = {"ascend910b": {"950-only"}, "ascend950": {"a2a3-only", "flag_false", "active_num"}}  # by tag


@functools.cache
def program(shapes, attributes, target="ascend910b"):
    """The kernel for operands of these names, shapes and dtypes; a call raises if the checker has findings."""
    names = [name for name, *_ in shapes]
    operands = [jax.ShapeDtypeStruct(shape, dtype) for _, shape, dtype in shapes]

    def route(*given):
        return ja.moe_init_routing(**dict(zip(names, given)), **dict(attributes))

    return ja.compile(route, *operands, target=target)


def run(operands, attributes, target="ascend910b", cores=None):
    given = {name: value for name, value in operands.items() if value is not None}
    shapes = tuple((name, value.shape, np.dtype(value.dtype)) for name, value in given.items())
    compiled = program(shapes, tuple(sorted(attributes.items())), target)
    if cores is None:
        return compiled(*given.values())
    report = compiled.profile(*given.values(), cores=cores)
    assert not [finding for kernel in report.kernels for finding in kernel.findings]
    return report.outputs


def check(operands, target="ascend910b", cores=None, **attributes):
    """Bit for bit what the fallback computes, also where the definition leaves it open; and a dtype is a dtype."""
    actual = run(operands, attributes, target, cores)
    expected = ja.moe_init_routing(**operands, **attributes)
    for name, a, e in zip(expected._fields, actual, expected):
        assert (a is None) == (e is None), name
        if e is not None:
            assert (a.shape, a.dtype) == (e.shape, e.dtype), name
            np.testing.assert_array_equal(as_bits(a), as_bits(e), err_msg=name)


def as_bits(x):
    x = np.asarray(x)
    return x if x.dtype.kind == "i" or x.size == 0 else x.view(f"u{x.dtype.itemsize}")


def routing(tokens, slots, size, experts, dtype=F32, seed=0, scaled=False):
    """Operands; one id of about ten is no expert."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 20, (tokens, size)).astype(dtype)
    ids = rng.integers(0, experts, (tokens, slots))
    ids[rng.random(ids.shape) < 0.1] = rng.choice([-1, experts, 2**31 - 1, -(2**31)])
    scale = rng.normal(size=tokens).astype(F32) if scaled else None
    return {"x": x, "expert_idx": ids.astype(np.int32), "scale": scale}


# -- expected values --------------------------------------------------------------------------------------------------


def vector_cases():
    for case in CASES:
        number, tags = case.info["id"][:3], case.info["tags"]
        for target in ("ascend910b", "ascend950"):
            is_refused = bool(REFUSED[target].intersection(tags))
            of_quick = "ascend950" if int(number) % 4 == 0 and not REFUSED["ascend950"].intersection(tags) else "ascend910b"
            is_quick = number in QUICK and target == of_quick or number in QUICK_ON_950
            marks = [] if is_quick or is_refused else [pytest.mark.long]
            yield pytest.param(case, target, is_refused, id=f"{case.info['id']}-{target}", marks=marks)


@pytest.mark.parametrize(("case", "target", "is_refused"), list(vector_cases()))
def test_vectors(case, target, is_refused):
    operands = {name: case.arrays[name] for name in ("x", "expert_idx", "scale", "offset")}
    attributes = {k: tuple(v) if isinstance(v, list) else v for k, v in case.info["attrs"].items()}
    if not is_refused:
        check(operands, target, **attributes)
        return
    with pytest.raises(OperatorError) as expected:
        ja.moe_init_routing(**operands, **attributes, target=target)
    with pytest.raises(type(expected.value), match=re.escape(str(expected.value))) as found:
        run(operands, attributes, target)
    assert found.value.code in (161002, 561002)


# -- many pairs: cores meet -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attributes", "cores"),
    [
        ({}, None),
        ({"active_expert_range": (3, 11), "expert_tokens_num_type": 0, "row_idx_type": 1}, 7),
        ({"expert_tokens_num_type": 2, "active_num": 100, "row_idx_type": 1}, 5),
        ({"drop_pad_mode": 1, "expert_capacity": 50}, 40),
    ],
)  # fmt: skip
def test_many_pairs(attributes, cores):
    check(routing(300, 4, 24, 16, scaled=True), cores=cores, expert_num=16, **attributes)


@pytest.mark.parametrize("cores", [1, 3, 48])
def test_any_number_of_cores_gives_the_same(cores):
    check(routing(1100, 3, 9, 40, np.float16), cores=cores, expert_num=40)


def test_many_experts():
    """More than one table of counts: they are handled in steps, by cores that meet and by one that does not."""
    operands = routing(300, 4, 40, 1600, np.float16)
    check(operands, expert_num=1600, active_expert_range=(30, 1300), expert_tokens_num_type=2)
    check(routing(20, 9, 5, 10240, np.int8), expert_num=10240, expert_tokens_num_type=0)


@pytest.mark.long
def test_experts_without_end():
    check(routing(3, 600, 16, 10240), expert_num=10240, active_expert_range=(2265, 4456), target="ascend950")
    check(routing(300, 5, 5, 600), expert_num=600, drop_pad_mode=1, expert_capacity=3)
    check(routing(700, 9, 8, 5120), expert_num=5120, expert_tokens_num_type=2)


# -- rows -------------------------------------------------------------------------------------------------------------


def test_long_rows_are_copied_in_parts():
    check(routing(3, 5, 60113, 16), expert_num=16, row_idx_type=1)


def test_odd_rows():
    check(routing(300, 5, 1001, 16, BF16), expert_num=16, target="ascend950")


@pytest.mark.parametrize(("tokens", "slots", "size"), [(5, 3, 0), (0, 3, 16), (4, 0, 16)])
def test_nothing_to_copy(tokens, slots, size):
    check(routing(tokens, slots, size, 7), expert_num=7)


def test_counts_of_64_bits():
    with jax.enable_x64(True):
        for kind in (0, 1, 2):
            check(routing(40, 4, 8, 16), expert_num=16, expert_tokens_num_type=kind)


def test_rows_without_an_active_pair_are_not_read():
    operands = routing(512, 8, 512, 256, BF16)
    shapes = tuple((name, operands[name].shape, np.dtype(operands[name].dtype)) for name in ("x", "expert_idx"))
    attributes = (("active_expert_range", (0, 8)), ("expert_num", 256))
    report = program(shapes, attributes).profile(operands["x"], operands["expert_idx"])
    active = ((operands["expert_idx"] >= 0) & (operands["expert_idx"] < 8)).any(axis=1).sum()
    assert active < 512 / 3
    # What is read beside them: ids twice, ranks, tables.
    assert report.gm_read_bytes < active * 2 * 1024 + 512 * 8 * 4 * 3 + 48 * 48 * 4 * 64 + 48 * 1024


_TOKENS, _SLOTS = 130, 8


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from([(("row_idx_type", 1),), (("active_expert_range", (2, 5)), ("expert_tokens_num_type", 2))]),
    st.lists(st.sampled_from([-1, 0, 1, 2, 3, 4, 5, 7, 8, 2**31 - 1]), min_size=1, max_size=40),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_agrees_with_the_fallback(attributes, some, seed):
    rng = np.random.default_rng(seed)
    ids = rng.choice(some, (_TOKENS, _SLOTS)).astype(np.int32)
    x = rng.normal(size=(_TOKENS, 8)).astype(F32)
    check({"x": x, "expert_idx": ids}, expert_num=8, **dict(attributes))


@st.composite
def routings(draw):
    """A routing of any kind that a product takes: operands, attributes, the product, cores."""
    target = draw(st.sampled_from(["ascend910b", "ascend950"]))
    slots = draw(st.sampled_from([1, 2, 3, 8, 9, 40]))
    most = 1700 if draw(st.booleans()) else 60  # pairs: cores meet, or each orders all of them
    tokens = draw(st.integers(0, most // slots))
    kind = draw(st.sampled_from([0, 1, 2]))
    experts = draw(st.sampled_from([1, 2, 7, 64, 300, 511, 512, 1100, 5120] + [10240] * (kind < 2)))
    first = draw(st.integers(0, experts - 1)) if draw(st.booleans()) else 0
    end = draw(st.integers(first + 1, experts)) if draw(st.booleans()) else experts
    mode = draw(st.sampled_from([-1, 0, 1] if target == "ascend910b" else list(QUANTIZATIONS)))
    attributes = {
        "expert_num": experts, "expert_tokens_num_type": kind, "row_idx_type": draw(st.integers(0, 1)),
        "active_expert_range": (first, end), "quant_mode": mode,
    }  # fmt: skip
    padded = tokens and target == "ascend910b" and experts <= 300 and draw(st.booleans())
    if padded:
        attributes |= {"drop_pad_mode": 1, "expert_capacity": draw(st.integers(1, tokens)), "row_idx_type": 0}
        attributes |= {"active_expert_range": (0, experts), "expert_tokens_num_type": 1}
    elif target == "ascend910b" and draw(st.booleans()):
        attributes["active_num"] = draw(st.integers(0, tokens * slots + 1))
    size = draw(st.sampled_from([0, 1, 3, 31, 130, 257, 1001] + ([] if padded else [5003])))
    size = size // 2 * 2 if mode in (9, 13) else size  # two share a byte
    dtype = {"float32": F32, "bfloat16": BF16, "float16": np.float16}[
        draw(st.sampled_from([name for name in QUANTIZATIONS[mode].x if name in ("float32", "bfloat16", "float16")]))
    ]
    operands = routing(tokens, slots, size, experts, dtype, draw(st.integers(0, 2**32 - 1)))
    near = draw(st.sampled_from([experts, min(experts, 3)]))  # many ties
    operands["expert_idx"] = np.where(operands["expert_idx"] < experts, operands["expert_idx"] % near + first, -1)
    operands["expert_idx"] = operands["expert_idx"].astype(np.int32)
    if mode in (0, 7):
        operands |= {"scale": np.array([2.5], F32), "offset": np.array([-1.25], F32) if mode == 0 else None}
    elif mode == 13 and draw(st.booleans()):
        operands["scale"] = smooth(1, size)
    elif mode == 1 and (end - first) * size < 1 << 20 and draw(st.booleans()):
        active = attributes["active_expert_range"]
        operands["scale"] = smooth(active[1] - active[0], size)
    elif mode == -1 and draw(st.booleans()):
        operands["scale"] = np.arange(tokens, dtype=F32)
    return operands, attributes, target, draw(st.sampled_from([1, 2, 7, 48]))


@pytest.mark.long
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(routings())
def test_any_routing_agrees_with_the_fallback(case):
    """And the same bits whatever the cores."""
    operands, attributes, target, cores = case
    check(operands, target, cores, **attributes)


# -- codes ------------------------------------------------------------------------------------------------------------


def smooth(rows, size, seed=0):
    return np.random.default_rng(seed).uniform(-2, 2, (rows, size)).astype(F32)


def test_dynamic_codes():
    """Rows of zeros, of one element, of the least numbers there are."""
    operands = routing(300, 4, 200, 16)
    operands["x"][5], operands["x"][6] = 0, np.eye(1, 200, 3) * 1e-30
    operands["x"][7], operands["x"][8] = 1e-37, np.finfo(F32).tiny
    check(operands, expert_num=16, quant_mode=1, cores=7)


def test_rows_that_fill_their_lanes():
    """The last tokens are fewer than what is read at once."""
    check(routing(300, 4, 64, 16, np.float16), expert_num=16, quant_mode=1)


def test_dynamic_codes_by_expert():
    operands = routing(300, 4, 200, 16, BF16) | {"scale": smooth(16, 200)}
    check(operands, expert_num=16, quant_mode=1, row_idx_type=1, active_num=500)


def test_dynamic_codes_of_padded_experts():
    operands = routing(300, 4, 24, 16, np.float16) | {"scale": smooth(1, 24)}
    check(operands, expert_num=16, quant_mode=1, drop_pad_mode=1, expert_capacity=80)


@pytest.mark.parametrize("size", [7168, pytest.param(5000, marks=pytest.mark.long)])
def test_dynamic_codes_of_long_rows(size):
    check(routing(40, 8, size, 16, BF16), expert_num=16, quant_mode=1)


@pytest.mark.long
@pytest.mark.parametrize(("dtype", "rows"), [(F32, 0), (BF16, 8), (np.float16, 1)])
def test_dynamic_codes_in_parts(dtype, rows):
    operands = routing(3, 4, 20011, 8, dtype) | ({"scale": smooth(rows, 20011)} if rows else {})
    check(operands, expert_num=8, quant_mode=1, row_idx_type=1)


@pytest.mark.parametrize("size", [1000, pytest.param(70001, marks=pytest.mark.long)])
def test_static_codes(size):
    operands = routing(30, 4, size, 16, BF16) | {"scale": np.array([3], F32), "offset": np.array([1.5], F32)}
    check(operands, expert_num=16, quant_mode=0)


# -- codes by groups, on 950 -------------------------------------------------------------------------------------------


def extreme(tokens, size, dtype, seed=0):
    """Rows of any magnitudes: groups of neighbours close to each other, up to a tie; zeros of both signs, subnormal
    numbers, the largest ones."""
    rng, info = np.random.default_rng(seed), ml_dtypes.finfo(dtype)
    least, most = (int(np.log2(float(x))) for x in (info.smallest_subnormal, info.max))
    exponents = np.repeat(rng.integers(least - 1, most, (tokens, -(-size // 16))), 16, axis=1)[:, :size]
    significands = rng.choice([1, 1.25, 1.5, 1.75, 1.8125, 1.9375, 1.123, -1, -1.75, -1.876], (tokens, size))
    x = np.ldexp(significands, exponents + rng.integers(-12, 1, (tokens, size)))
    x[rng.random(x.shape) < 0.1], x[rng.random(x.shape) < 0.1] = 0, -0.0
    x[0], x[1], x[2] = 0, -0.0, rng.integers(-9, 9, size) * float(info.smallest_subnormal)
    x[3, : size // 2], x[4] = float(info.max), 1e-4
    return x.astype(dtype)


def modes():
    """Every mode with a scale a group or a 4-bit code, for both dtypes; four of them in `make test`."""
    for mode in (2, 3, 4, 5, 9, 11, 12, 13, 14, 15, 16, 17):
        for dtype in (F32 if mode == 13 else np.float16, BF16):
            quick = (mode, dtype) in [(9, np.float16), (12, np.float16), (13, BF16), (16, BF16)]
            yield pytest.param(mode, dtype, marks=[] if quick else [pytest.mark.long])


@pytest.mark.parametrize(("mode", "dtype"), list(modes()))
def test_codes_of_extreme_rows(mode, dtype):
    """Odd numbers of groups; several rows at once."""
    operands = routing(9, 3, 1100, 7) | {"x": extreme(9, 1100, dtype, mode)}
    check(operands, "ascend950", cores=3, expert_num=7, quant_mode=mode, row_idx_type=mode % 2)


@pytest.mark.long
@pytest.mark.parametrize("mode", [3, 16, 9, 5, 14, 12, 13])
def test_codes_of_rows_in_parts(mode):
    """An odd number of blocks of 32."""
    operands = routing(6, 3, 19970, 7) | {"x": extreme(6, 19970, BF16, mode)}
    check(operands, "ascend950", cores=3, expert_num=7, quant_mode=mode, row_idx_type=1)


@pytest.mark.long
@pytest.mark.parametrize("mode", [5, 9, 13, 17])
def test_codes_of_many_tokens(mode):
    """Cores meet; each has several units of rows."""
    operands = routing(700, 3, 130, 40, BF16)
    for cores in (5, 64):
        check(operands, "ascend950", cores=cores, expert_num=40, quant_mode=mode)


@pytest.mark.long
def test_four_bits_inside_jit():
    operands = routing(5, 3, 66, 7, BF16)
    route = functools.partial(ja.moe_init_routing, expert_num=7, quant_mode=9)
    expected = route(operands["x"], operands["expert_idx"])
    with ja.lowering("twin", target="ascend950"):
        rows, _, _, _ = jax.jit(route)(operands["x"], operands["expert_idx"])
        again = jax.jit(functools.partial(ja.moe_init_routing, expert_num=7))(expected.expanded_x, np.zeros((15, 1), np.int32))
    np.testing.assert_array_equal(as_bits(rows), as_bits(expected.expanded_x))
    np.testing.assert_array_equal(as_bits(again.expanded_x), as_bits(expected.expanded_x))


# -- what there is no kernel for --------------------------------------------------------------------------------------


def test_what_goes_in_before_is_computed_before():
    """Rows are copied from where they are."""
    x, ids = np.zeros((4, 64), F32), np.zeros((4, 2), np.int32)
    program = ja.compile(lambda x, ids: ja.moe_init_routing(x * 2, ids, expert_num=4), x, ids)
    assert [kernel.name.rpartition("lambda_")[2] for kernel in program.kernels] == ["row_wise", "moe_init_routing"]


def test_refusals_say_why():
    x, ids = np.zeros((4, 64), F32), np.zeros((4, 2), np.int32)
    with pytest.raises(Unsupported, match="for one routing, not for a batch"):
        ja.compile(jax.vmap(lambda x, ids: ja.moe_init_routing(x, ids, expert_num=4)), x[None], ids[None])
