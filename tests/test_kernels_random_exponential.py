"""Random numbers inside kernels: Threefry's bits are those of jax, and the numbers made of them, on the twin with the checker on."""

import functools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.random import threefry2x32_p
from mlir import ir
from mlir.dialects import arith, func
from tile_kernels import TARGETS, agree, interpreted, on_twin

import jascend as ja
import jascend.dialect
from jascend.passes.builder import Builder
from jascend.passes.lower_to_tile import KERNEL
from jascend.passes.lowerings.ops import Ops
from jascend.passes.lowerings.threefry import Draws

LANES = 128
HALF = 1 << 32


def bits_kernel(row, length, counts):
    """A kernel that draws the bits at the first places of a row, with the key that it is given."""
    with jascend.dialect.make_context(), ir.Location.unknown():
        module = ir.Module.create()
        i32 = ir.IntegerType.get_signless(32)
        gm = ir.StringAttr.get("gm")
        key, out = (ir.MemRefType.get([ir.ShapedType.get_dynamic_size(), n], i32, memory_space=gm) for n in (2, LANES))
        with ir.InsertionPoint(module.body):
            kernel = func.FuncOp("k", ([key, out], []))
            kernel.attributes[KERNEL] = ir.UnitAttr.get()
            with ir.InsertionPoint(kernel.add_entry_block()):
                t = Ops(Builder(ir.Location.unknown()))
                words = t.load(kernel.arguments[0], t.zero, t.b.index(2), 8, "key", 0.0)
                draws = Draws(t, SimpleNamespace(draw="gumbel", low=0.0, counts=counts), length)
                draws.enter_row(words, t.b.index(row))
                bits = draws.bits(t.ramp(LANES, i32, "places"))
                t.store(bits, kernel.arguments[1], t.zero, t.b.index(LANES))
                func.ReturnOp([])
        module.operation.verify()
        return str(module)


def bits_of_jax(key, first):
    places = np.arange(first, first + LANES, dtype=np.uint64)
    words = [jnp.full(LANES, word, jnp.uint32) for word in key]
    counters = [jnp.asarray(half.astype(np.uint32)) for half in (places >> np.uint64(32), places)]
    return np.bitwise_xor(*map(np.asarray, threefry2x32_p.bind(*words, *counters)))


KEYS = [np.array(words, np.uint32) for words in ((0, 0), (0, 7), (0xFFFFFFFF, 0x80000000), (3243370355, 1313272271))]


def test_bits_are_those_of_jax():
    text = bits_kernel(0, LANES, "row")
    for key in KEYS:
        (found,) = interpreted(text, [key.view(np.int32)[None]])
        expected = jax.random.bits(jax.random.wrap_key_data(jnp.asarray(key)), (LANES,))
        np.testing.assert_array_equal(found[0].view(np.uint32), expected)
        np.testing.assert_array_equal(bits_of_jax(key, 0), expected)


@pytest.mark.parametrize(
    ("row", "length"), [(3, 1000), (3, HALF // 2 - 30), (1, HALF - 64), (5, HALF), (7, HALF + HALF // 2 - 10), (1 << 20, 1 << 20)]
)
def test_bits_at_any_position(row, length):
    """Also where the counter leaves its lower word within the row."""
    text = bits_kernel(row, length, "array")
    for key in KEYS[1:3]:
        (found,) = interpreted(text, [key.view(np.int32)[None]])
        np.testing.assert_array_equal(found[0].view(np.uint32), bits_of_jax(key, row * length))


def test_bits_on_the_twin():
    (found,) = agree(bits_kernel(1, HALF - 64, "array"), [KEYS[3].view(np.int32)[None]])
    np.testing.assert_array_equal(found[0].view(np.uint32), bits_of_jax(KEYS[3], HALF - 64))


def exponential(key):
    return jax.random.exponential(key, (3, 5000))


def gumbel_of_rows(key):
    return jax.vmap(lambda key: -jnp.log(jax.random.uniform(key, (100,), minval=1e-7)))(key)


@functools.cache
def program(fn, target):
    key = jax.random.key(0)
    return ja.compile(fn, jax.random.split(key, 3) if fn is gumbel_of_rows else key, target=target)


@pytest.mark.parametrize(("fn", "target"), [(exponential, "ascend910b"), (gumbel_of_rows, "ascend950")])
def test_numbers_on_the_twin(fn, target):
    for seed in range(2):
        key = jax.random.key(seed)
        key = jax.random.split(key, 3) if fn is gumbel_of_rows else key
        found = np.asarray(program(fn, target)(key))
        np.testing.assert_allclose(found, fn(key), rtol=1e-6)


def test_the_least_and_the_greatest_numbers():
    """-log of uniform numbers next to 0 and to 1, where the logarithm alone would say little."""
    uniform = np.concatenate([np.arange(1, 65), 2**23 - np.arange(1, 65)]).astype(np.float64) / 2**23
    with jascend.dialect.make_context(), ir.Location.unknown():
        module = ir.Module.create()
        f32, gm = ir.F32Type.get(), ir.StringAttr.get("gm")
        row = ir.MemRefType.get([ir.ShapedType.get_dynamic_size(), LANES], f32, memory_space=gm)
        with ir.InsertionPoint(module.body):
            kernel = func.FuncOp("k", ([row, row], []))
            kernel.attributes[KERNEL] = ir.UnitAttr.get()
            with ir.InsertionPoint(kernel.add_entry_block()):
                t = Ops(Builder(ir.Location.unknown()))
                x = t.load(kernel.arguments[0], t.zero, t.b.index(LANES), LANES, "x")
                rest = t.b.op(arith.subf, t.filled(1.0, LANES, "ones"), x, name="rest")
                draws = Draws(t, SimpleNamespace(draw="gumbel", low=0.0, counts="row"), LANES)
                t.store(draws.minus_log(x, rest), kernel.arguments[1], t.zero, t.b.index(LANES))
                func.ReturnOp([])
        text = str(module)
    inputs = [uniform.astype(np.float32)[None]]
    expected = interpreted(text, inputs)
    for (found,) in (expected, *(on_twin(text, inputs, expected, target)[0] for target in TARGETS[:1])):
        np.testing.assert_allclose(found[0], -np.log(uniform), rtol=5e-7)


# -- keys of programs -----------------------------------------------------------------------------------------------


def drawn(key):
    return jax.random.exponential(key, (2, 64)), key


def test_keys_are_arguments_and_results():
    for key in (jax.random.key(3), jax.random.PRNGKey(3)):
        numbers, same = ja.compile(drawn, key)(key)
        assert same.dtype == key.dtype and (jax.random.key_data(same) == jax.random.key_data(key)).all()
        np.testing.assert_allclose(numbers, jax.random.exponential(key, (2, 64)), rtol=1e-6)


def test_other_keys_are_refused():
    compiled = ja.compile(drawn, jax.ShapeDtypeStruct((), jax.random.key(0).dtype))
    with pytest.raises(ValueError, match=r"key must be uint32\[2\], the words of a key of threefry2x32, as compiled, but is key<rbg>"):
        compiled(jax.random.key(0, impl="rbg"))
    with pytest.raises(ValueError, match=r"as compiled, but is uint32\[4\]"):
        compiled(jnp.zeros(4, jnp.uint32))


@pytest.mark.parametrize("project", ["direct", "custom_op"])
def test_projects_take_words(project, tmp_path):
    key = jax.random.key(3)
    written = ja.compile(drawn, key).write(tmp_path, project, arguments=(key,))
    words = np.asarray(jax.random.key_data(key)).tobytes()
    assert any(file.read_bytes() == words for file in written.rglob("*.bin"))
