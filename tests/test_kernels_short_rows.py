"""Kernels of short rows, many in one instruction: against XLA, and bit for bit the same however rows are dealt out."""

import jascend.dialect
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from graphs import beside_jax, on_tiles
from jascend.passes.interpreter import run_kernel
from jascend.passes.pipeline import run_pipeline
from mlir import ir

import jascend as ja

BF16 = ml_dtypes.bfloat16


def normal(*shape, dtype=np.float32):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


def norm(x, weight):
    wide = x.astype(jnp.float32)
    return (wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6) * weight).astype(x.dtype)


def check(function, *arguments, batches=True, twin=False, target="ascend910b", tolerance=2e-6):
    program = ja.compile(function, *arguments, target=target)
    assert ("at a time" in program.explain()) == batches
    results = program(*arguments) if twin else on_tiles(program, *arguments)
    for a, e in beside_jax(results, function, *arguments):
        np.testing.assert_allclose(
            np.asarray(a, np.float64), np.asarray(e, np.float64), rtol=tolerance + (2**-7 if a.dtype == BF16 else 0),
            atol=tolerance,
        )  # fmt: skip
    return program


@pytest.mark.parametrize("length", [17, 32, 40, 64, 200, 1024])
def test_norms_and_softmax(length):
    check(norm, normal(700, length, dtype=BF16), normal(length))
    check(lambda x: jax.nn.softmax(4 * x, -1), normal(60, length))


@pytest.mark.parametrize("target", ["ascend910b", "ascend950"])
def test_on_the_twin(target):
    check(norm, normal(100, 72, dtype=BF16), normal(72), twin=True, target=target)
    if target == "ascend910b":
        check(lambda x, m: jax.nn.softmax(x, -1, where=m), normal(50, 128), normal(50, 128) > -1, twin=True)


def test_longer_and_shorter_rows_go_one_after_another():
    check(norm, normal(9, 1025), normal(1025), batches=False)
    check(lambda x: jax.nn.softmax(x, -1), normal(9, 16), batches=False)


def test_one_value_a_row():
    def quantized(x):
        scale = jnp.max(jnp.abs(x), -1) / 127
        return scale, jnp.round(x / scale[:, None]).astype(jnp.int8)

    check(quantized, normal(300, 96), twin=True)
    check(lambda x, t, k: jnp.where(k[:, None] > 1, x / t[:, None], x) + jnp.where(t > 0, t, 1)[:, None],
          normal(90, 40), normal(90), np.arange(90, dtype=np.int32) % 3)  # fmt: skip
    check(lambda x, m: jnp.where(m[:, None], jnp.exp(x), -x), normal(90, 48), normal(90) > 0)
    check(lambda x, m: jnp.where(m, jnp.sum(x, -1, keepdims=True), x), normal(90, 48), normal(48) > 0)


def test_integers_and_bytes():
    x = np.random.default_rng(0).integers(-100, 100, (70, 56)).astype(np.int8)
    check(lambda x, s: x.astype(jnp.float32) * s[:, None], x, normal(70))
    check(lambda x, n: jnp.where(x > n, x, n), x.astype(np.int32), np.arange(56, dtype=np.int32))


def test_masks_of_rows_and_of_elements():
    """A comparison a row takes 64 rows at a time, which are too many where they are long."""
    flags = np.arange(60) % 2 == 0
    check(lambda x, f: jnp.where(f[:, None], x, x * 2), normal(60, 100), flags)
    check(lambda x, f: jnp.where(f[:, None], x, x * 2), normal(60, 700), flags, batches=False)
    check(lambda x, m, w: jnp.where(m, x, w), normal(60, 700), normal(60, 700) > 0, normal(700), twin=True)


def test_bits_do_not_depend_on_how_many_rows_there_are():
    """Nor on cores or the size of a tile, nor on whether the sum is one of many rows or stands beside a slice."""
    x = normal(130, 200)
    (expected,) = on_tiles(ja.compile(lambda x: jnp.sum(x, -1, keepdims=True) * x, x), x)
    (first,) = on_tiles(ja.compile(lambda x: jnp.sum(x, -1, keepdims=True) * x, x[:1]), x[:1])
    np.testing.assert_array_equal(first.view(np.int32), expected[:1].view(np.int32))
    alone = ja.compile(lambda x: jnp.sum(x, -1, keepdims=True) * x[:, :199], x)
    assert "at a time" not in alone.explain()
    (beside,) = on_tiles(alone, x)
    np.testing.assert_array_equal(beside.view(np.int32), expected[:, :199].copy().view(np.int32))
    fused = ja.compile(lambda x: jnp.sum(x, -1, keepdims=True) * x, x).ir("fused")
    for tile, cores in ((2048, 3), (16384, 40)):
        with jascend.dialect.make_context():
            module = run_pipeline(ir.Module.parse(fused), f"lower-to-tile{{tile={tile}}}")
            name = next(op for op in module.body.operations if "ascend.kernel" in op.operation.attributes).name.value
            (out,) = run_kernel(module, name, [x], cores)
        np.testing.assert_array_equal(out.view(np.int32), expected.view(np.int32))


def test_any_number_of_rows():
    (b,) = jax.export.symbolic_shape("b")
    program = ja.compile(norm, jax.ShapeDtypeStruct((b, 48), np.float32), normal(48))
    assert "at a time" in program.explain()
    for rows in (0, 1, 7, 49, 500):
        x = normal(rows, 48)
        (actual,) = on_tiles(program, x, normal(48))
        np.testing.assert_allclose(actual, jax.jit(norm)(x, normal(48)), rtol=2e-6, atol=2e-6)


def test_they_are_faster_than_one_after_another():
    """Modelled: within twice the roofline of many rows; a row after another, they took four times as long."""
    report = ja.compile(norm, normal(2000, 64, dtype=BF16), normal(64)).profile(normal(2000, 64, dtype=BF16), normal(64))
    assert not report.findings and report.roofline_ratio > 0.5, report
