"""Copies of elements that no instruction computes on: 64-bit integers as pairs of words, truth values as bytes."""

import numpy as np
import pytest
from tile_kernels import agree
from test_tile_sorting import kernel


def loading(memory, tile, length, count, offset):
    element = tile
    return kernel(
        f"""
        %offset = arith.constant {offset} : index
        %count = arith.constant {count} : index
        %length = arith.constant {length} : index
        %x = "tile.load"(%x_gm, %offset, %count) {{pad = 0.0 : f32}} : (memref<?x{memory}, "gm">, index, index) -> tensor<{length}x{element}>
        "tile.store"(%x, %x_out, %c0, %length) : (tensor<{length}x{element}>, memref<{length}x{element}, "gm">, index, index) -> ()""",
        x_gm=f"?x{memory}", x_out=f"{length}x{element}",
    )  # fmt: skip


@pytest.mark.parametrize(("count", "length"), [(5, 16), (32, 64), (3, 8)])
def test_64_bit_integers(count, length):
    x = np.random.default_rng(0).integers(-(2**62), 2**62, 50)
    (words,) = agree(loading("i64", "i32", length, count, 7), [x])
    np.testing.assert_array_equal(words[: 2 * count].view(np.int64), x[7 : 7 + count])
    assert not words[2 * count :].any()


@pytest.mark.parametrize(("count", "length"), [(5, 32), (64, 64), (40, 96)])
def test_truth_values(count, length):
    x = np.random.default_rng(0).random(100) < 0.5
    (flags,) = agree(loading("i1", "i8", length, count, 3), [x])
    np.testing.assert_array_equal(flags[:count], x[3 : 3 + count])
    assert not flags[count:].any()


@pytest.mark.parametrize("count", [1, 5, 16])
def test_stores_of_64_bit_integers(count):
    words = np.random.default_rng(0).integers(-(2**31), 2**31, 32).astype(np.int32)
    text = kernel(
        f"""
        %offset = arith.constant 3 : index
        %count = arith.constant {count} : index
        %all = arith.constant 32 : index
        %x = "tile.load"(%x_gm, %c0, %all) : (memref<?xi32, "gm">, index, index) -> tensor<32xi32>
        "tile.store"(%x, %x_out, %offset, %count) : (tensor<32xi32>, memref<20xi64, "gm">, index, index) -> ()""",
        x_gm="?xi32", x_out="20xi64",
    )  # fmt: skip
    (stored,) = agree(text, [words])
    np.testing.assert_array_equal(stored[3 : 3 + count].view(np.int32), words[: 2 * count])
