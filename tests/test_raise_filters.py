"""`raise-sampling`: ways to write filters. Logits have many equal values, so that a wrong rule for ties shows in every test."""

import inspect
import re
from collections import Counter
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from raising import FILTER, INF, LARGEST, LOGITS, NOISE, ROWS, SAMPLE, B, V, arguments, at_least_kth, check, draws, kth_of, raised

import jascend as ja


def top_k_by_last_of_top_k(logits):
    values, _ = lax.top_k(logits, 10)
    return jnp.where(logits < values[..., -1, None], -INF, logits)


def top_k_by_sorted(logits):
    kth = jnp.sort(logits, axis=-1)[:, -7]
    return jnp.where(logits >= kth[:, None], logits, -INF)


def top_k_by_smallest_of_largest(logits):
    return jnp.where(logits >= jnp.min(lax.top_k(logits, 5)[0], axis=-1, keepdims=True), logits, -INF)


def top_k_by_descending(logits):
    ordered = jnp.sort(logits, axis=-1, descending=True)
    mask = ordered[:, 4:5] > logits
    return lax.select(mask, jnp.full_like(logits, -INF), logits)


def top_k_of_each_row(logits, k):
    ordered = jnp.sort(logits, axis=-1)
    kth = jnp.take_along_axis(ordered, (V - k)[:, None], axis=-1)
    return jnp.where(logits < kth, -INF, logits)


def top_k_of_each_row_clipped(logits, k):
    k = jnp.clip(k, 1, V)
    kth = -jnp.sort(-logits, axis=-1)[jnp.arange(B), k - 1]
    return jnp.where(logits >= kth[:, None], logits, -INF)


def ascending_in_sorted_rows(logits, k, p):
    ordered, indices = jnp.sort(logits, axis=-1), jnp.argsort(logits, axis=-1)
    kth = jnp.take_along_axis(ordered, (V - k)[:, None], axis=-1)
    ordered = jnp.where(ordered < kth, -INF, ordered)
    sums = jnp.cumsum(jax.nn.softmax(ordered, axis=-1), axis=-1)
    removed = (sums <= 1 - p[:, None]).at[:, -1].set(False)
    ordered = jnp.where(removed, -INF, ordered)
    return jnp.zeros_like(logits).at[jnp.arange(B)[:, None], indices].set(ordered)


def ascending_taken_back(logits, p):
    order = jnp.argsort(logits, axis=-1)
    ordered = jnp.take_along_axis(logits, order, axis=-1)
    sums = jnp.cumsum(jax.nn.softmax(ordered, axis=-1), axis=-1)
    kept = (sums > 1.0 - p[:, None]) | (jnp.arange(V) == V - 1)
    kept = jnp.take_along_axis(kept, jnp.argsort(order, axis=-1), axis=-1)
    return jnp.where(kept, logits, -INF)


def descending_rolled(logits, p):
    logits = at_least_kth(logits, 20)
    order = jnp.argsort(logits, axis=-1)[:, ::-1]
    ordered = jnp.take_along_axis(logits, order, axis=-1)
    removed = jnp.cumsum(jax.nn.softmax(ordered, axis=-1), axis=-1) > p[:, None]
    removed = jnp.roll(removed, 1, axis=-1).at[:, 0].set(False)
    removed = jnp.zeros_like(removed).at[jnp.arange(B)[:, None], order].set(removed)
    return jnp.where(removed, -INF, logits)


def descending_sorted_back(logits):
    ordered, order = jnp.sort(logits)[:, ::-1], jnp.argsort(logits)[:, ::-1]
    removed = jnp.cumsum(jax.nn.softmax(ordered), axis=-1) > 0.9
    removed = jnp.concatenate((jnp.zeros_like(removed[:, :1]), removed), axis=-1)[:, :-1]
    _, removed = lax.sort_key_val(order, removed)
    return jnp.where(removed, -INF, logits)


def descending_shifted_in_place(logits):
    order = jnp.flip(jnp.argsort(logits, axis=-1), axis=-1)
    probabilities = jnp.take_along_axis(jax.nn.softmax(logits, axis=-1), order, axis=-1)
    removed = jnp.cumsum(probabilities, axis=-1) > 0.75
    removed = removed.at[..., 1:].set(removed[..., :-1])
    removed = removed.at[..., 0].set(False)
    removed = jnp.put_along_axis(jnp.zeros((B, V), bool), order, removed, axis=-1, inplace=False)
    return jnp.where(removed, -INF, logits)


def lower_index_first(logits, p):
    order = jnp.argsort(-logits, axis=-1)
    ordered = jnp.take_along_axis(logits, order, axis=-1)
    probabilities = jax.nn.softmax(ordered, axis=-1)
    kept = jnp.cumsum(probabilities, axis=-1) - probabilities < jnp.clip(p, 1e-6, 1.0)[:, None]
    kept = jnp.take_along_axis(kept, jnp.argsort(order, axis=-1), axis=-1)
    return jnp.where(kept, logits, -INF)


def lower_index_first_padded(logits):
    order = jnp.argsort(logits, axis=-1, descending=True)
    ordered = jnp.take_along_axis(logits, order, axis=-1)
    kept = jnp.cumsum(jax.nn.softmax(ordered, axis=-1), axis=-1) < 0.6
    kept = jnp.pad(kept[:, :-1], ((0, 0), (1, 0)), constant_values=True)
    ordered = jnp.where(kept, ordered, -INF)
    return jnp.full_like(logits, -INF).at[ROWS, order].set(ordered)


def lower_index_first_rolled(logits, p):
    """The first place is kept by `|` with itself, and the rows go back by sorting the indices."""
    values, indices = lax.top_k(logits, V)
    kept = jnp.roll(jax.nn.softmax(values, axis=-1).cumsum(axis=-1) < p[:, None], 1)
    kept |= kept.at[:, 0].set(True)
    return lax.sort_key_val(indices, jnp.where(kept, values, -INF))[-1]


def largest_put_back(logits):
    values, indices = lax.top_k(logits, 9)
    return jnp.full_like(logits, -INF).at[jnp.arange(B)[:, None], indices].set(values)


def largest_by_mask(logits):
    _, indices = lax.top_k(logits, 9)
    mask = jnp.zeros(logits.shape, bool).at[jnp.arange(B)[:, None], indices].set(True)
    return jnp.where(mask, logits, -INF)


def largest_by_rank(logits):
    ranks = jnp.argsort(jnp.argsort(-logits, axis=-1), axis=-1)
    return jnp.where(ranks < 12, logits, -INF)


def min_p(logits):
    probabilities = jax.nn.softmax(logits, axis=-1)
    least = 0.1 * probabilities.max(axis=-1, keepdims=True)
    return jnp.where(probabilities < least, -INF, logits)


def min_p_of_each_row(logits, p):
    return jnp.where(logits >= logits.max(-1, keepdims=True) + jnp.log(jnp.clip(p, 0, 1))[:, None], logits, -INF)


def all_stages(logits, k, p):
    logits = top_k_of_each_row(logits, k)
    order = jnp.argsort(logits, axis=-1)
    sums = jnp.cumsum(jax.nn.softmax(jnp.take_along_axis(logits, order, axis=-1), axis=-1), axis=-1)
    removed = (sums <= 1 - p[:, None]).at[:, -1].set(False)
    logits = jnp.where(jnp.take_along_axis(removed, jnp.argsort(order), axis=-1), -INF, logits)
    return min_p(logits)


def both_masks_of_the_whole_row(logits, p):
    order = jnp.argsort(logits, axis=-1)
    sums = jnp.cumsum(jax.nn.softmax(jnp.take_along_axis(logits, order, axis=-1), axis=-1), axis=-1)
    in_nucleus = (sums > 1 - p[:, None]).at[:, -1].set(True)
    in_nucleus = jnp.take_along_axis(in_nucleus, jnp.argsort(order), axis=-1)
    return jnp.where((logits >= kth_of(logits, 6)) & in_nucleus, logits, -INF)


def one_row_at_a_time(logits, p):
    def filtered(row, p):
        order = jnp.argsort(row)
        sums = jnp.cumsum(jax.nn.softmax(row[order]))
        removed = (sums <= 1 - p).at[-1].set(False)
        return jnp.zeros_like(row).at[order].set(jnp.where(removed, -INF, row[order]))

    return jax.vmap(filtered)(logits, p)


def one_row(logits):
    return at_least_kth(logits[1])


def two_batch_dimensions(logits, p):
    logits = logits.reshape(2, B // 2, V)
    order = jnp.argsort(logits, axis=-1)
    ordered = jnp.take_along_axis(logits, order, axis=-1)
    sums = jnp.cumsum(jax.nn.softmax(ordered, axis=-1), axis=-1)
    removed = (sums <= 1 - p.reshape(2, B // 2)[..., None]).at[..., -1].set(False)
    removed = jnp.take_along_axis(removed, jnp.argsort(order, axis=-1), axis=-1)
    return jnp.where(removed, -INF, logits)


def probabilities_themselves(logits):
    probabilities = jax.nn.softmax(logits, axis=-1)
    values, order = lax.top_k(probabilities, V)
    kept = jnp.cumsum(values, axis=-1) - values < 0.8
    kept = jnp.take_along_axis(kept, jnp.argsort(order, axis=-1), axis=-1)
    return jnp.where(kept, probabilities, 0.0)


def upcast(logits, p):
    return ascending_taken_back(logits.astype(jnp.bfloat16).astype(jnp.float32), p)


def top_k_in_bfloat16(logits):
    return at_least_kth(logits.astype(jnp.bfloat16))


FILTERS = {
    top_k_by_last_of_top_k: [FILTER],
    top_k_by_sorted: [FILTER],
    top_k_by_smallest_of_largest: [FILTER],
    top_k_by_descending: [FILTER],
    top_k_of_each_row: [FILTER],
    top_k_of_each_row_clipped: [FILTER],
    ascending_in_sorted_rows: [FILTER],
    ascending_taken_back: [FILTER],
    descending_rolled: [FILTER],
    descending_sorted_back: [FILTER],
    descending_shifted_in_place: [FILTER],
    lower_index_first: [SAMPLE],
    lower_index_first_padded: [SAMPLE],
    lower_index_first_rolled: [SAMPLE],
    largest_put_back: [SAMPLE],
    largest_by_mask: [SAMPLE],
    largest_by_rank: [SAMPLE],
    min_p: [SAMPLE],
    min_p_of_each_row: [SAMPLE],
    all_stages: [FILTER, SAMPLE],
    both_masks_of_the_whole_row: [FILTER, FILTER],
    one_row_at_a_time: [FILTER],
    one_row: [FILTER],
    two_batch_dimensions: [FILTER],
    probabilities_themselves: [SAMPLE],
    upcast: [FILTER],
    top_k_in_bfloat16: [FILTER],
}


@pytest.mark.parametrize(("fn", "operators"), FILTERS.items(), ids=lambda value: getattr(value, "__name__", None))
def test_filters(fn, operators):
    check(fn, arguments(fn), operators, draws(fn))


def test_a_computed_k_out_of_range_means_the_same():
    k = jnp.array([0, V, V + 3, -2], jnp.int32)  # JAX counts a negative index from the end
    check(top_k_of_each_row, (LOGITS, k), [FILTER])


def test_p_at_its_ends():
    for p in ([0.0, 1.0, 1.5, 0.5], [1e-9, 0.25, -1.0, 2.0]):
        check(descending_rolled, (LOGITS, jnp.array(p, jnp.float32)), [FILTER])
        check(lower_index_first, (LOGITS, jnp.array(p, jnp.float32)), [SAMPLE])


def test_min_p_at_its_ends():
    check(min_p_of_each_row, (LOGITS, jnp.array([0.0, 1.0, 2.0, 0.05], jnp.float32)), [SAMPLE])


# -- what is left of top_k ----------------------------------------------------------------------------------------------


def largest_of_scaled_rows(logits):
    values, indices = lax.top_k(logits * 2, 6)
    return values + 1, indices


def index_in_the_list(logits, key):
    """Temperature after the choice of the largest; who is drawn, by `one_hot`."""
    values, indices = lax.top_k(logits, 20)
    return jnp.sum(jax.nn.one_hot(jax.random.categorical(key, values / 0.7), 20, dtype=jnp.int32) * indices, axis=-1)


def cut_with_a_finite_number(logits, key):
    return jax.random.categorical(key, jnp.where(logits < kth_of(logits, 10), -1e9, logits))


@pytest.mark.parametrize(
    ("fn", "operators"),
    [(largest_of_scaled_rows, [LARGEST]), (index_in_the_list, [LARGEST, SAMPLE, NOISE]), (cut_with_a_finite_number, [LARGEST, SAMPLE, NOISE])],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_the_largest_of_rows(fn, operators):
    after, counts, _ = raised(fn, *arguments(fn))
    assert counts == Counter(operators)
    for each in (arguments(fn), *draws(fn)):
        for expected, found in zip(jax.tree.leaves(fn(*each)), after(*each)):
            assert expected.dtype == found.dtype
            np.testing.assert_array_equal(found, expected)


def test_more_than_the_operator_lists():
    after, counts, remarks = raised(lambda x: lax.top_k(x, 1500), jnp.zeros((2, 2000)))
    assert after is None and "it takes the 1500 largest of a row, and the operator at most 1024" in remarks[0].text


# -- in other code ----------------------------------------------------------------------------------------------------


def test_calls_are_seen_through():
    @jax.custom_vjp
    def kept(logits):
        return jax.checkpoint(jax.jit(at_least_kth))(logits)

    kept.defvjp(lambda logits: (kept(logits), None), lambda _, g: (g,))
    check(kept, (LOGITS,), [FILTER])
    soft = jax.custom_jvp(top_k_by_sorted)
    soft.defjvp(lambda primals, tangents: (soft(*primals), *tangents))
    check(soft, (LOGITS,), [FILTER])


def test_programs_with_effects_stay_as_they_are():
    def fn(logits):
        jax.debug.print("{}", logits[0, 0])
        return at_least_kth(logits)

    assert raised(fn, LOGITS)[0] is None


def test_deep_programs():
    def fn(logits):
        for _ in range(3000):
            logits = logits + 1.0
        return at_least_kth(logits)

    assert raised(fn, LOGITS)[1] == {FILTER: 1}


def test_a_compiled_program_computes_the_same():
    program = ja.compile(descending_rolled, *arguments(descending_rolled))
    assert [kernel.name for kernel in program.kernels] == ["jascend_descending_rolled_apply_top_k_top_p"]
    for each in draws(descending_rolled)[:2]:
        np.testing.assert_array_equal(program(*each), jax.jit(descending_rolled)(*each))
    line = inspect.getsourcelines(descending_rolled)[1] + len(inspect.getsourcelines(descending_rolled)[0]) - 1
    assert f"test_raise_filters.py:{line}:11: remark: raise-sampling: passed: top-k, top-p" in program.explain()


def test_the_example_of_the_documentation():
    page = Path(__file__).parent.parent / "docs" / "raising.md"
    (example,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(example, str(page), "exec"), {})


def test_forbidden():
    program = ja.compile(at_least_kth, LOGITS, forbid=["raise-sampling"])
    assert program.kernels[0].name == "jascend_at_least_kth_sort" and "raise-sampling" not in program.explain()
    with pytest.raises(ja.errors.Unsupported, match="raise-sampling, fuse-sampling, fuse-moe, fuse-elementwise, but has 'x'"):
        ja.compile(at_least_kth, LOGITS, forbid="x")
