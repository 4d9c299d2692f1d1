"""What a function captures, or computes from no argument, is bound to its program."""

import jax
import jax.numpy as jnp
import numpy as np
from graphs import on_tiles

import jascend as ja

F32, INT = jnp.float32, jnp.int32
TABLE = np.arange(24, dtype=np.float32).reshape(3, 8) - 7


def check(function, *arguments, constants):
    program = ja.compile(function, *arguments)
    assert [(x.shape, x.dtype.name) for x in program.constants] == constants
    expected = jax.tree.leaves(jax.jit(function)(*arguments))
    for actual, wanted in zip(on_tiles(program, *arguments), expected, strict=True):
        assert (actual.shape, actual.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(np.asarray(actual, np.float32), np.asarray(wanted, np.float32), rtol=1e-6)
    return program


X = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)


def test_captured_arrays():
    check(lambda x: x @ TABLE.T, X, constants=[((8, 3), "float32")])  # transposed once, not in every call
    check(lambda x: x @ jnp.asarray(TABLE).T + TABLE[0, :3], X, constants=[((8, 3), "float32"), ((3,), "float32")])


def test_ramps_and_masks():
    lengths = np.array([1, 8, 3, 0], np.int32)
    check(lambda x, n: jnp.where(jnp.arange(8) < n[:, None], x, 0), X, lengths, constants=[((8,), "int32")])
    check(lambda x: jnp.where(jnp.tri(4, 8, dtype=bool), x, -1), X, constants=[((4, 8), "bool")])


def test_frequencies_inside_of_jitted_functions():
    @jax.jit
    def angles(positions, theta=10000.0):
        return positions[:, None] * theta ** (-jnp.arange(0, 8, 2, dtype=F32) / 8)

    check(lambda n: angles(n) + 1, np.array([0, 3, 70], np.float32), constants=[((4,), "float32")])


def test_one_number_stays_in_the_graph():
    """Also where it is only found out by computing."""
    half = jnp.full(8, 0.5)
    check(lambda x: x * half + jnp.zeros(8) - jnp.sum(jnp.arange(9)), X, constants=[])
    check(lambda x: x * jnp.maximum(jnp.arange(8), 9), X, constants=[])
    negative = np.array([0.0, -0.0] * 4, np.float32)
    check(lambda x: 1 / jnp.maximum(x, negative), X, constants=[((8,), "float32")])  # equal, but not the same


def test_what_is_returned():
    program = check(lambda x: (x + 1, jnp.arange(5)), X, constants=[((5,), "int32")])
    assert len(program.kernels) == 1


def test_names_stay():
    program = ja.compile(lambda hidden, *, weights: hidden * weights["w"] * TABLE[0], X, weights={"w": X[0]})
    assert [parameter.name for parameter in program.kernels[0].parameters][:1] == ["hidden"]
    np.testing.assert_allclose(program(X, weights={"w": X[0]}), X * X[0] * TABLE[0], rtol=1e-6)


def test_any_number_of_rows():
    (b,) = jax.export.symbolic_shape("b")
    specs = jax.ShapeDtypeStruct((b, 8), F32), jax.ShapeDtypeStruct((b,), INT)
    program = ja.compile(lambda x, n: jnp.where(jnp.arange(8) < n[:, None], x * TABLE[1], 0), *specs)
    for rows in (1, 5, 100):
        x, n = np.ones((rows, 8), np.float32), np.arange(rows, dtype=np.int32) % 9
        (actual,) = on_tiles(program, x, n)
        np.testing.assert_array_equal(actual, np.where(np.arange(8) < n[:, None], TABLE[1], 0))
    table = jnp.arange(4099, dtype=F32)  # a size that the compiler likes to have in the place of b
    program = ja.compile(lambda x: x + table[:8], jax.ShapeDtypeStruct((b, 8), F32))
    np.testing.assert_array_equal(on_tiles(program, np.ones((2, 8), np.float32))[0][1], 1 + table[:8])


def test_a_project_has_them(tmp_path):
    """Also where there is no call for data: a host cannot know them."""
    x = X.astype(np.float32)
    program = ja.compile(lambda x: (x * TABLE[0]) @ TABLE.T, x)
    program.write(tmp_path)
    data = tmp_path / "test/data"
    assert sorted(str(p.relative_to(data)) for p in data.rglob("*.bin")) == ["graph/argument1.bin", "graph/argument2.bin"]
    given = [np.fromfile(data / f"graph/argument{i}.bin", np.float32) for i in (1, 2)]
    assert {len(values) for values in given} == {8, 24}
    for constant, values in zip(program.constants, given, strict=True):
        np.testing.assert_array_equal(values, constant.ravel())
    program.write(tmp_path, arguments=(x,))
    np.testing.assert_array_equal(np.fromfile(data / "graph/argument0.bin", np.float32), x.ravel())
