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


def head(x, weight, bias):
    scale = jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)
    return jax.nn.softmax(x * scale * weight + bias[:, None])


@pytest.fixture(scope="module")
def program():
    return ja.compile(head, shape(B, 77), shape(77), shape(B))


def arguments(rows):
    rng = np.random.default_rng(0)
    x, weight, bias = (rng.normal(size=size).astype(np.float32) for size in ((200, 77), 77, 200))
    return x[:rows], weight, bias[:rows]


def test_one_binary_serves_any_batch(program):
    """A row has the same bits in each of them."""
    project._built.cache_clear()
    results = {rows: np.asarray(program(*arguments(rows))) for rows in (1, 5, 49, 130)}
    assert project._built.cache_info().misses == len(program.kernels) == 1
    np.testing.assert_allclose(results[130], jax.jit(head)(*arguments(130)), rtol=1e-5, atol=1e-6)
    for rows, result in results.items():
        np.testing.assert_array_equal(result, results[130][:rows])
    assert program(*arguments(0)).shape == (0, 77)


@pytest.mark.long
def test_one_binary_of_each_operator_serves_any_batch():
    """Sorted rows, draws and samples with a key a row: each as for all rows."""

    def pick(x, keys, p):
        x = ja.sort(x)[0]
        noise = jax.vmap(lambda key: jax.random.gumbel(key, x.shape[1:]))(keys)
        return x, noise, jax.vmap(jax.random.categorical)(keys, ja.apply_top_k_top_p(x, p))

    keys = jax.random.split(jax.random.key(3), 130)
    program = ja.compile(pick, shape(B, 77), jax.ShapeDtypeStruct((B,), keys.dtype), shape(B))
    project._built.cache_clear()
    given = arguments(130)[0], keys, np.linspace(0.1, 1, 130).astype(np.float32)
    results = {rows: program(*(x[:rows] for x in given)) for rows in (1, 5, 49, 130)}
    assert project._built.cache_info().misses == len(program.kernels)
    for rows, outputs in results.items():
        for result, whole, expected in zip(outputs, results[130], jax.jit(pick)(*given), strict=True):
            np.testing.assert_array_equal(result, whole[:rows])
            np.testing.assert_allclose(result, expected[:rows], rtol=1e-5, atol=1e-6)


def test_launches_follow_the_rows(program):
    blocks = {rows: [kernel.blocks for kernel in program.profile(*arguments(rows)).kernels] for rows in (3, 96)}
    assert blocks == {3: [3], 96: [48]}


def test_a_written_project_has_the_rows_of_its_data(program, tmp_path):
    program.write(tmp_path, arguments=arguments(5))
    caller = (tmp_path / "test" / f"{program.kernels[0].name}.cpp").read_text()
    x = tmp_path / "test/data" / program.kernels[0].name / "x.bin"
    assert "{5, 77}" in caller and x.stat().st_size == 5 * 77 * 4
    assert "{16, 77}" in (program.write(tmp_path / "b") / "test" / f"{program.kernels[0].name}.cpp").read_text()


def test_batches_that_differ(program):
    x, weight, bias = arguments(5)
    with pytest.raises(ValueError, match=r"head: bias must be float32\[b\] with b = 5, as compiled, but is float32\[4\]"):
        program(x, weight, bias[:4])
    with pytest.raises(ValueError, match=r"head: x must be float32\[b, 77\], as compiled, but is float32\[\]"):
        program(x[0, 0], weight, bias)


C, D = jax.export.symbolic_shape("c, d")
REFUSED = [
    (lambda x: x - jnp.mean(x, 0), [(B, 4)], "the function computes with b, its number of rows"),
    (lambda x: x * 2, [(4, B)], r"x may have one symbol, as its leading dimension, but is .*\(4, b\)"),
    (lambda x: jnp.concatenate([x, x[:1]]), [(B, 4)], r"concatenate has a dimension of b \+ 1, no multiple of the batch"),
    (lambda x, y: (x, y), [(C, 4), (D, 4)], "one symbolic dimension, the batch, but there are c of x, d of y"),
    (
        lambda x: x.at[jnp.argmax(x[:, 0])[None]].get(mode="clip", wrap_negative_indices=False),
        [(B, 4)], r"gather keeps positions among the rows of the batch inside.*: where all are inside, `x\.at",
    ),
    (
        lambda x, i: (ja.moe_init_routing(x, i.astype(jnp.int32), expert_num=4, active_num=7).expanded_x, jnp.ones(7) * 2),
        [(B, 32), (B, 2)], "a limit of 7 rows, with b in place of their number, must not be another size too",
    ),
    (
        lambda x, i: ja.moe_init_routing(
            x, i.astype(jnp.int32), expert_num=4, drop_pad_mode=1, expert_capacity=5000
        ).expanded_x,
        [(B, 32), (B, 2)], r"expert_capacity must be at most the number of rows \(4099\)",
    ),
    (
        lambda x: x + jax.random.gumbel(jax.random.key(0), x.shape),
        [(B, 32)], "random_exponential serves one number of rows only, not any b: no operand has the rows",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("function", "shapes", "message"), REFUSED)
def test_what_has_no_meaning_for_any_batch(function, shapes, message):
    with pytest.raises((ja.errors.Unsupported, ja.errors.TilingError), match=message) as error:
        ja.compile(function, *(shape(*dims) for dims in shapes))
    if isinstance(error.value, ja.errors.TilingError):  # the user has not written 4099
        assert error.value.__notes__[-1] == "b is 4099 here; give it bounds with constraints of `symbolic_shape`"


def test_constraints_of_the_symbol():
    """Say what is compiled in its place, and which calls are refused."""
    (rows,) = jax.export.symbolic_shape("rows", constraints=["rows >= 5000", "rows <= 6000"])
    program = ja.compile(lambda x: x * 2, shape(rows, 4))
    for count in (4999, 6001):
        with pytest.raises(ValueError, match=f"x has {count} rows, but was compiled for rows >= 5000 and rows <= 6000"):
            program(np.zeros((count, 4), np.float32))
    assert program._plan_for(program._inputs((np.zeros((5500, 4), np.float32),), {})).steps[0].types[0].shape == (5500, 4)


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
    (call,) = ja.compile(jnp.matmul, shape(B, 40), shape(40, 8)).profile(*given[1:]).library_calls
    assert call.flops == 2 * 30 * 40 * 8


def drawn(x, key, place):
    """With one key for all rows, and with one for each."""
    own = jax.vmap(lambda place: jax.random.fold_in(key, place))(place)
    return jax.random.categorical(key, x), jax.vmap(jax.random.categorical)(own, x)


def test_keys():
    key = jax.random.key(3)
    program = ja.compile(drawn, shape(B, 60), key, shape(B, dtype=np.int32))
    assert len(program.kernels) == 3
    for rows in (1, 6):
        rng = np.random.default_rng(rows)
        given = rng.normal(size=(rows, 60)).astype(np.float32), key, rng.integers(-9, 9, rows).astype(np.int32)
        for found, expected in zip(on_tiles(program, *given), drawn(*given)):
            np.testing.assert_array_equal(found, expected)


def test_keys_that_come_with_no_rows():
    def split(x, key):
        return jax.vmap(jax.random.categorical)(jax.random.split(key, x.shape[0]), x)

    with pytest.raises(ja.errors.Unsupported, match="not any b: no operand has the rows"):
        ja.compile(split, shape(B, 60), jax.random.key(0))
