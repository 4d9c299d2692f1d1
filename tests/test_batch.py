"""Programs for any batch: one compiled kernel, launches of any number of rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from graphs import on_tiles
from jascend.backends.ascend import project

import jascend as ja

(B,) = jax.export.symbolic_shape("b")


def shape(*dims, dtype=np.float32):
    return jax.ShapeDtypeStruct(dims, dtype)


def head(x, weight, k):
    scale = jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)
    return ja.apply_top_k_top_p((x * scale) @ weight, k=k)


@pytest.fixture(scope="module")
def program():
    return ja.compile(head, shape(B, 40), shape(40, 100), shape(B, dtype=np.int32))


def arguments(rows):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 40)).astype(np.float32)[:rows]
    return x, rng.normal(size=(40, 100)).astype(np.float32), (np.arange(rows, dtype=np.int32) % 7)


def test_one_binary_serves_any_batch(program):
    """A row has the same bits in each of them."""
    project._built.cache_clear()
    results = {rows: np.asarray(program(*arguments(rows))) for rows in (1, 5, 130)}
    assert project._built.cache_info().misses == len(program.kernels) == 2
    np.testing.assert_array_equal(results[130] == -np.inf, np.asarray(jax.jit(head)(*arguments(130))) == -np.inf)
    np.testing.assert_allclose(results[130], jax.jit(head)(*arguments(130)), rtol=1e-5, atol=1e-5)
    kept = results[130] != -np.inf
    for rows, result in results.items():
        np.testing.assert_array_equal(result != -np.inf, kept[:rows])
    assert program(*arguments(0)).shape == (0, 100)


def test_launches_follow_the_rows(program):
    report = program.profile(*arguments(96))
    assert [kernel.blocks for kernel in report.kernels] == [48, 48]
    assert [kernel.blocks for kernel in program.profile(*arguments(3)).kernels] == [3, 3]
    assert report.library_calls[0].flops == 2 * 96 * 40 * 100


def test_rows_have_the_same_bits_in_any_batch():
    def norm(x):
        return jax.nn.softmax(x * jnp.max(x, -1, keepdims=True))

    program = ja.compile(norm, shape(B, 77))
    x = np.random.default_rng(1).normal(size=(60, 77)).astype(np.float32)
    whole = np.asarray(program(x))
    for rows in (1, 7, 49):
        np.testing.assert_array_equal(np.asarray(program(x[-rows:])), whole[-rows:])


def test_a_written_project_has_the_rows_of_its_data(program, tmp_path):
    program.write(tmp_path, arguments=arguments(5))
    caller = (tmp_path / "test" / f"{program.kernels[0].name}.cpp").read_text()
    assert "{5, 40}" in caller and (tmp_path / "test/data" / program.kernels[0].name / "x.bin").stat().st_size == 5 * 40 * 4
    assert "{16, 40}" in (program.write(tmp_path / "b") / "test" / f"{program.kernels[0].name}.cpp").read_text()


def test_batches_that_differ(program):
    x, weight, k = arguments(5)
    with pytest.raises(ValueError, match=r"head: k must be int32\[b\] with b = 5, as compiled, but is int32\[4\]"):
        program(x, weight, k[:4])
    with pytest.raises(ValueError, match=r"head: x must be float32\[b, 40\], as compiled, but is float32\[\]"):
        program(x[0, 0], weight, k)


C, D = jax.export.symbolic_shape("c, d")
REFUSED = [
    (lambda x: x - jnp.mean(x, 0), [(B, 4)], "the function computes with b, its number of rows"),
    (lambda x: x * 2, [(4, B)], r"x may have one symbol, as its leading dimension, but is .*\(4, b\)"),
    (lambda x: jnp.concatenate([x, x[:1]]), [(B, 4)], r"concatenate has a dimension of b \+ 1, no multiple of the batch"),
    (lambda x, y: (x, y), [(C, 4), (D, 4)], "one symbolic dimension, the batch, but there are c of x, d of y"),
    (
        lambda x, i: ja.moe_init_routing(x, i.astype(jnp.int32), expert_num=4).expanded_x,
        [(B, 32), (B, 2)], "moe_init_routing serves one number of rows only, not any b",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("function", "shapes", "message"), REFUSED)
def test_what_has_no_meaning_for_any_batch(function, shapes, message):
    with pytest.raises(ja.errors.Unsupported, match=message):
        ja.compile(function, *(shape(*dims) for dims in shapes))


def test_gathers_and_groups_of_dimensions():
    def embed(ids, table, weight):
        x = table[ids]
        return (x * x) @ weight, jnp.max(x.reshape(-1, 4, 10), -1)

    program = ja.compile(embed, shape(B, dtype=np.int32), shape(30, 40), shape(40, 8))
    rng = np.random.default_rng(2)
    given = rng.integers(0, 30, 6).astype(np.int32), *(rng.normal(size=s).astype(np.float32) for s in ((30, 40), (40, 8)))
    for actual, expected in zip(on_tiles(program, *given), jax.jit(embed)(*given), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)
    assert [c.callee for c in program.library_calls] == ["aclnnIndexSelect", "aclnnMatmul"]
