"""Generated kernels of elementwise work and row reductions, run on the twin with the checker on, against XLA."""

import jascend.dialect
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from graphs import beside_jax, on_tiles
from jascend.backends.ascend.targets import target
from jascend.passes.interpreter import run_kernel
from jascend.passes.pipeline import run_pipeline
from mlir import ir

import jascend as ja

BF16 = ml_dtypes.bfloat16


def check(function, *arguments, target="ascend910b", kernels=1, tolerance=2e-6, twin=False):
    program = ja.compile(function, *arguments, target=target)
    assert len(program.kernels) == kernels
    results = program(*arguments) if twin else on_tiles(program, *arguments)
    for a, e in beside_jax(results, function, *arguments):
        rounding = 2**-7 if a.dtype == BF16 else 0
        np.testing.assert_allclose(
            np.asarray(a, np.float64), np.asarray(e, np.float64), rtol=tolerance + rounding, atol=tolerance
        )
    return program


def normal(*shape, dtype=np.float32):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def rms_norm(x, weight):
    wide = x.astype(jnp.float32)
    scale = jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)
    return (wide * scale * weight).astype(x.dtype)


def layer_norm(x, weight, bias):
    mean, variance = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5) * weight + bias


@pytest.mark.parametrize("target", ["ascend910b", "ascend950"])
def test_norms(target):
    check(rms_norm, normal(5, 200, dtype=BF16), normal(200), target=target, twin=target == "ascend910b")
    check(layer_norm, normal(3, 1100), normal(1100), normal(1100), target=target)


def test_softmax_of_long_rows():
    check(lambda x: jax.nn.softmax(4 * x), normal(2, 20001), tolerance=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("target", ["ascend910b", "ascend950"])
def test_more_on_the_twin(target):
    check(rms_norm, normal(5, 200, dtype=BF16), normal(200), target=target, twin=True)
    check(layer_norm, normal(3, 1100), normal(1100), normal(1100), target=target, twin=True)
    check(lambda x: jax.nn.softmax(4 * x), normal(2, 20001), target=target, tolerance=1e-5, twin=True)
    check(lambda x: jnp.max(x, -1), normal(3, 4, 40), target=target, twin=True)
    check(lambda x, s: jnp.round(x / s[:, None]).astype(jnp.int8), 90 * normal(5, 70), normal(5), target=target, twin=True)


def test_a_residual_is_computed_once():
    """The product needs it in memory, and so the norm finds it there."""

    def block(x, residual, weight):
        h = x + residual
        return h @ h.T, rms_norm(h, weight)

    program = check(block, normal(4, 64), normal(4, 64), normal(64), kernels=2, tolerance=1e-5)
    assert "row_wise" in program.explain()
    assert "x + residual" not in program.kernels[1].source


def elementwise(x, row, column, scalar, mask, flags, n):
    y = jnp.where(mask, x * column[:, None], -row) / scalar
    y = jnp.where(flags[:, None], jax.nn.silu(y), jnp.minimum(y, 0.5))
    return y, jnp.where(n >= 3, n - 1, n * n), (jnp.exp(x) > 1).astype(jnp.float32), (x * 9).astype(jnp.int32)


def test_elementwise():
    """Broadcasts, masks, integers and casts."""
    x = normal(6, 70)
    n = np.arange(60, dtype=np.int32).reshape(6, 10) % 7
    check(elementwise, x, normal(70), normal(6), np.float32(1.5), x > 0.3, np.arange(6) % 2 == 0, n, kernels=3, twin=True)


def test_narrow_dtypes():
    """Every operation rounds to its dtype."""
    x, y = normal(4, 40, dtype=BF16), normal(4, dtype=BF16)
    program = ja.compile(lambda x, y: x * y[:, None] + x, x, y)
    expected = np.asarray(jnp.asarray(x) * jnp.asarray(y)[:, None]) + x
    np.testing.assert_array_equal(on_tiles(program, x, y)[0], expected)
    check(lambda x, s: x.astype(jnp.float32) * s, np.arange(-32, 32, dtype=np.int8).reshape(4, 16), normal(16))


def test_what_is_one_value_a_row_rounds_and_compares():
    """On tiles of a block or less."""
    check(lambda x, y: x.astype(BF16) + y.astype(BF16)[:, None], normal(4, 40), normal(4))
    check(lambda x: jnp.exp(x - jax.nn.logsumexp(x, -1, keepdims=True)), normal(4, 40))


def test_more_dimensions():
    x, angle = normal(3, 4, 40), normal(3, 40)
    check(lambda x, angle: x * jnp.exp(-angle)[:, None] + x, x, angle)
    check(lambda x: jnp.max(x, -1), x)
    check(lambda x, w: rms_norm((x * 2).reshape(4, 5, 8), w), normal(4, 40), normal(8), kernels=2)


def test_bits_of_numbers():
    def function(x, n):
        bits = jax.lax.bitcast_convert_type(x, jnp.int32)
        return bits + n, jax.lax.bitcast_convert_type(jnp.maximum(bits, 0) + 1, jnp.float32) * 2

    check(function, normal(4, 100), np.arange(4, dtype=np.int32)[:, None], tolerance=0)


def test_one_dimension():
    """What is one for all elements is there before them."""
    check(jax.nn.softmax, normal(100), kernels=3)
    check(lambda x: jnp.sum(x) + 1, normal(100), kernels=2)


def test_results_that_are_one_value():
    check(lambda x: (jnp.zeros((4, 5)), x + 1), normal(5), kernels=2)


def test_what_feeds_an_operator():
    """Its kernel computes what it can; a norm of the whole row comes before."""

    def norm_then_filter(x, k):
        return ja.apply_top_k_top_p(x / jnp.sqrt(jnp.sum(x * x, -1, keepdims=True)), k=k)

    check(norm_then_filter, normal(3, 300), np.array([3, 0, 7], np.int32), kernels=2)


def test_nan_and_infinities():
    x = normal(4, 90)
    x[0, 3], x[1, 5], x[2, 7] = np.nan, np.inf, -np.inf
    program = ja.compile(lambda x: (jnp.max(x, -1), jnp.min(x, -1), jnp.sum(x, -1)), x)
    for actual, reduce in zip(on_tiles(program, x), (np.max, np.min, np.sum)):
        np.testing.assert_allclose(actual, reduce(x, -1), rtol=1e-6)


def lowered(rows, length, tile):
    def sums(x):
        return x / jnp.sum(jnp.exp(x), -1, keepdims=True)

    text = ja.compile(sums, jax.ShapeDtypeStruct((rows, length), np.float32)).ir("fused")
    with ja.dialect.make_context() as context:
        return context, run_pipeline(ir.Module.parse(text), f"lower-to-tile{{tile={tile}}}")


def test_bits_do_not_depend_on_the_mapping():
    """Not on the length of a chunk, the number of rows, or the cores."""
    x = normal(3, 5000)
    found = []
    for rows, tile, cores in ((3, 8192, 3), (3, 1024, 2), (2, 2048, 1), (1, 4096, 1)):
        context, module = lowered(rows, 5000, tile)
        with context:
            (out,) = run_kernel(module, "jascend_sums_row_wise", [x[:rows]], cores)
        found.append(out[0])
    assert all(np.array_equal(found[0].view(np.int32), other.view(np.int32)) for other in found)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: jax.lax.reduce_xor(x.astype(jnp.int32), (1,)), "'reduce_xor': a reduction by 'arith.xori'"),
        (lambda x: jnp.cbrt(x), "'cbrt': kernels do not compute 'math.cbrt'"),
    ],
)
def test_what_has_no_kernel(function, message):
    with pytest.raises(ja.errors.Unsupported, match=message):
        ja.compile(function, normal(4, 8))


def test_all_of_it_is_listed():
    with pytest.raises(ja.errors.Unsupported) as caught:
        ja.compile(lambda x: jnp.cbrt(jnp.arctan2(x, x)) + jax.lax.reduce_xor(x.astype(jnp.int32), (0,)), normal(4, 5))
    text = str(caught.value)
    assert text.count("error: ") == 3  # an operation is one, whatever it was legalized to
    assert all(f"unsupported operation '{name}'" in text for name in ("cbrt", "atan2", "reduce_xor"))


def test_long_chains_and_shared_values():
    """What a value is computed from is gone about once, and not by recursion: 60 doublings would be 2**60 ways."""

    def chain(x):
        for _ in range(350):
            x = x * 0.5 + 1.0
        return x

    def shared(x):
        for _ in range(60):
            x = (x + x) * 0.5
        return x / x.sum(-1, keepdims=True)

    for function in (chain, shared):
        check(function, normal(3, 100))


softmax = jax.nn.softmax
INNER = {
    "many_at_a_time": (softmax, normal(2, 3, 5, 20)),
    "long": (softmax, normal(1, 2, 3, 5000)),
    "a_mask_for_all": (lambda x, m: softmax(jnp.where(m > 0, x, -9.0)), normal(2, 3, 7, 20), normal(7, 20)),
    "causal": (lambda x: softmax(jnp.where(jnp.arange(20) <= jnp.arange(20)[:, None], x, -9.0)), normal(2, 3, 20, 20)),
    "one_a_head": (lambda x, h: softmax(x * h[None, :, None, None]), normal(2, 3, 7, 40), normal(3)),
    "one_a_row": (lambda x, h, w: x * h[..., None] + w, normal(2, 3, 7, 40), normal(2, 3, 7), normal(40)),
    "sums": (lambda x: (x.sum(-1), x[:, 1:, :4, 3:30].max(-1)), normal(2, 3, 7, 40)),
    "positions": (lambda x: x * jnp.arange(7)[None, None, :, None], normal(1, 3, 7, 40)),
    "one_sequence": (lambda x, y: (jnp.exp(x), jnp.tanh(y)), normal(1, 3, 4001), normal(3, 2048)),
}


@pytest.mark.parametrize("name", INNER)
def test_rows_of_more_dimensions(name):
    """Those of all positions are dealt out to the cores: a batch of one takes as many as a batch of many."""
    function, *arguments = INNER[name]
    check(function, *arguments, kernels=2 if name in ("sums", "one_sequence") else 1, twin=name == "a_mask_for_all")


def test_one_row_of_attention_takes_all_cores():
    program = ja.compile(softmax, jax.ShapeDtypeStruct((1, 32, 1, 4096), np.float32))
    assert program.kernels[0].blocks == target("ascend910b").vector_cores


def all_of(x):
    return softmax(x), x.sum(-1), x.max(-1)


def test_cores_that_share_long_rows():
    """The same bits as one core gives that has a row to itself, in one round or in several."""
    x = normal(30, 26000)
    alone = on_tiles(ja.compile(all_of, x), x)
    np.testing.assert_allclose(alone[0], softmax(x), rtol=2e-6)
    for rows in (1, 7):
        program = ja.compile(all_of, x[:rows])
        assert program.kernels[0].blocks == {1: 7, 7: 42}[rows]
        for actual, expected in zip(on_tiles(program, x[:rows]), alone, strict=True):
            np.testing.assert_array_equal(actual, expected[:rows])
    program = ja.compile(softmax, x[:7])
    (kernel,) = program.kernels
    with jascend.dialect.make_context():
        module = ir.Module.parse(program.ir("tile"))
        for rows in (1, 17):
            blocks = kernel.shape.blocks(rows, 48)
            (actual,) = run_kernel(module, kernel.name, [x[:rows]], blocks, rows=rows, leading=[rows])
            np.testing.assert_array_equal(actual, alone[0][:rows])


def test_cores_that_share_long_rows_on_the_twin():
    x = normal(2, 26000)
    program = ja.compile(all_of, x)
    for actual, expected in zip(program(x), on_tiles(program, x), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)
