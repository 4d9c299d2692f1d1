"""Two values that one kernel computes and writes: a residual sum beside its norm, and what later layers start from."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from graphs import beside_jax, on_tiles
from test_kernels_row_wise import check, normal, rms_norm

import jascend as ja

BF16 = ml_dtypes.bfloat16


def residual(x, r, weight):
    total = x + r
    return total, rms_norm(total, weight)


SIZES = {
    "many short rows": (40, 64, np.float32), "rows of no whole block": (5, 77, BF16), "a row in a tile": (3, 3000, BF16),
    "rows in chunks": (2, 20001, np.float32),
}  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
def test_a_sum_and_its_norm(size):
    rows, length, dtype = SIZES[size]
    arguments = normal(rows, length, dtype=dtype), normal(rows + 1, length, dtype=dtype)[1:], normal(length, dtype=dtype)
    program = check(residual, *arguments, tolerance=1e-5)
    assert program.kernels[0].name == "jascend_residual_row_wise_pair"
    (alone,) = on_tiles(ja.compile(lambda *given: residual(*given)[1], *arguments), *arguments)
    np.testing.assert_array_equal(on_tiles(program, *arguments)[1], alone)  # the bits of a kernel of its own


@pytest.mark.parametrize("target", ["ascend910b", pytest.param("ascend950", marks=pytest.mark.long)])
def test_on_the_twin(target):
    """Rows; one sequence of elements, of two dtypes; the one that comes first may be returned last."""

    def pairs(x, r, weight):
        total, larger = x + r, x > r
        return total, rms_norm(total, weight), jnp.where(larger, x * 2, r), larger

    arguments = normal(3, 200), normal(3, 201)[:, 1:].copy(), normal(200)
    check(pairs, *arguments, kernels=2, target=target, twin=True)


def test_one_kernel_costs_less_than_two():
    """What both need is read once, and there is one launch."""
    arguments = normal(8, 256), normal(9, 256)[1:].copy(), normal(256)
    pair = ja.compile(residual, *arguments).profile(*arguments)
    apart = [
        ja.compile(lambda x, r: x + r, *arguments[:2]).profile(*arguments[:2]),
        ja.compile(lambda *given: residual(*given)[1], *arguments).profile(*arguments),
    ]
    assert pair.gm_read_bytes < 0.61 * sum(each.gm_read_bytes for each in apart)
    assert pair.microseconds < 0.6 * sum(each.microseconds for each in apart)


def layers(x, weight, matrices):
    for matrix in matrices:
        x = x + rms_norm(x, weight) @ matrix
        x = x + jax.nn.silu(rms_norm(x, weight) @ matrix) @ matrix
    return x


def test_a_stack_of_layers_reads_as_much_in_each():
    """The sums along it are in memory from one norm to the next: no kernel adds up all that came before."""
    arguments = normal(4, 16), normal(16), normal(4, 16, 16) / 4
    program = ja.compile(layers, *arguments)
    assert max(len(kernel.signature.inputs) for kernel in program.kernels) == 3
    assert sum(kernel.name.startswith("jascend_layers_row_wise_pair") for kernel in program.kernels) == 7
    for actual, expected in beside_jax(on_tiles(program, *arguments), layers, *arguments):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


def test_any_batch():
    (batch,) = jax.export.symbolic_shape("b")
    spec = jax.ShapeDtypeStruct((batch, 40), np.float32)
    program = ja.compile(residual, spec, spec, jax.ShapeDtypeStruct((40,), np.float32))
    assert len(program.kernels) == 1
    for rows in (1, 70):
        arguments = normal(rows, 40), normal(rows, 41)[:, 1:].copy(), normal(40)
        for actual, expected in beside_jax(on_tiles(program, *arguments), residual, *arguments):
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def alone(x, r, weight):
    """The product needs the sum before the norm is there; rows of columns are no rows; other shapes are other kernels."""
    total = x + r
    columns = total.sum(0)
    return total @ weight, rms_norm(total * columns, weight[0]), total.max(-1), total


def test_what_is_written_alone():
    arguments = normal(4, 16), normal(5, 16)[1:].copy(), normal(16, 16)
    program = ja.compile(alone, *arguments)
    assert not any("pair" in kernel.name for kernel in program.kernels)
    for actual, expected in beside_jax(on_tiles(program, *arguments), alone, *arguments):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


def test_values_that_have_nothing_to_do_with_each_other():
    """One kernel for two of the same rows, where neither has to be there before the other."""
    x, y = normal(4, 96), normal(4, 96)
    check(lambda x, y: (x / x.sum(-1, keepdims=True), jnp.exp(y)), x, y)
    check(lambda x, y: (x.sum(-1), y.max(-1)), x, y)
    check(lambda x, y: (x * 2, y[:, :8] * 2), x, y, kernels=2)


def test_what_an_operator_s_kernel_needs_is_there_before():
    x = normal(4, 300)
    program = ja.compile(lambda x: (ja.sort(x - x.max(-1, keepdims=True))[0], x.sum(-1)), x)
    for actual, expected in beside_jax(on_tiles(program, x), lambda x: (jnp.sort(x - x.max(-1, keepdims=True)), x.sum(-1)), x):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)
