"""The generated routing kernels, run on the twin with the checker on: against the vectors, the fallback, themselves."""

import functools

import jax
import ml_dtypes
import numpy as np
import pytest
import vectors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jascend as ja
from jascend.errors import Unsupported

F32, BF16 = np.float32, ml_dtypes.bfloat16
CASES = vectors.moe_init_routing()
# Of every kind of case one in `make test`, on one of the products.
QUICK = set("001 005 006 010 015 017 019 020 023 029 031 033 036 038 041 043 075".split())


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
            if {"ascend910b": "950-only", "ascend950": "a2a3-only"}[target] in tags:
                continue
            of_quick = "ascend950" if int(number) % 4 == 0 and "a2a3-only" not in tags else "ascend910b"
            is_quick = number in QUICK and target == of_quick or number in ("060", "061", "071")
            marks = [] if is_quick else [pytest.mark.long]
            yield pytest.param(case, target, id=f"{case.info['id']}-{target}", marks=marks)


@pytest.mark.parametrize(("case", "target"), list(vector_cases()))
def test_vectors(case, target):
    operands = {name: case.arrays[name] for name in ("x", "expert_idx", "scale", "offset")}
    attributes = {k: tuple(v) if isinstance(v, list) else v for k, v in case.info["attrs"].items()}
    check(operands, target, **attributes)


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
