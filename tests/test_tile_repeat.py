"""Tiles over and over, and a value a row for any number of rows."""

import numpy as np
import pytest
from test_tile_sorting import kernel, load, store, values
from tile_kernels import agree

DTYPES = {"f32": np.float32, "i32": np.int32}


def load_some(name, count, element):
    """A tile that does not fill its last 32 bytes: the start of one that does."""
    whole = -(-count // 8) * 8
    slice_ = f"""
        %{name} = tensor.extract_slice %{name}_whole[0] [{count}] [1] : tensor<{whole}x{element}> to tensor<{count}x{element}>"""
    return load(name, whole, element, "?").replace(f"%{name} =", f"%{name}_whole =") + slice_


def one_to_one(op, element, count, length):
    return kernel(
        load_some("x", count, element) + f"\n%v = {op} : (tensor<{count}x{element}>) -> tensor<{length}x{element}>" + store("v", length, element),
        x_gm=f"?x{element}", v_out=f"{length}x{element}",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("element", "count", "group", "times"),
    [("f32", 8, 8, 1), ("f32", 32, 32, 22), ("i32", 64, 64, 7), ("f32", 176, 8, 8), ("i32", 16, 8, 20), ("f32", 96, 32, 3)],
)
def test_repeat(element, count, group, times):
    x = values(count, DTYPES[element])
    (v,) = agree(one_to_one(f'"tile.repeat"(%x) {{group = {group} : i64}}', element, count, times * count), [x])
    np.testing.assert_array_equal(v, np.tile(x.reshape(-1, group), times).reshape(-1))


@pytest.mark.parametrize(("element", "rows", "width"), [("f32", 1, 8), ("i32", 2, 32), ("f32", 22, 256), ("i32", 13, 8)])
def test_broadcast_of_any_number(element, rows, width):
    x = values(32, DTYPES[element])
    (v,) = agree(one_to_one(f'"tile.broadcast"(%x) {{width = {width} : i64}}', element, rows, rows * width), [x])
    np.testing.assert_array_equal(v, np.repeat(x[:rows], width))


@pytest.mark.parametrize(("rows", "width"), [(1, 64), (6, 64), (176, 16)])
def test_a_value_a_row_that_is_never_written_out(rows, width):
    count = rows * width
    text = kernel(
        load("x", count, "f32")
        + load_some("y", rows, "f32")
        + f"""
        %rows = "tile.broadcast"(%y) {{width = {width} : i64}} : (tensor<{rows}xf32>) -> tensor<{count}xf32>
        %v = arith.subf %x, %rows : tensor<{count}xf32>"""
        + store("v", count, "f32"),
        x_gm=f"{count}xf32", y_gm="?xf32", v_out=f"{count}xf32",
    )  # fmt: skip
    x, y = values(count, np.float32), values(192, np.float32, seed=1)
    (v,) = agree(text, [x, y])
    np.testing.assert_array_equal(v, x - np.repeat(y[:rows], width))


@pytest.mark.parametrize("count", [8, 64, 328])
def test_a_number_divided_by_a_tile(count):
    text = kernel(
        load("x", count, "f32")
        + f"""
        %three = arith.constant 3.0 : f32
        %threes = tensor.splat %three : tensor<{count}xf32>
        %v = arith.divf %threes, %x : tensor<{count}xf32>"""
        + store("v", count, "f32"),
        x_gm=f"{count}xf32", v_out=f"{count}xf32",
    )  # fmt: skip
    x = np.random.default_rng(0).normal(size=count).astype(np.float32)
    (v,) = agree(text, [x])
    np.testing.assert_array_equal(v, np.float32(3) / x)


@pytest.mark.parametrize("kind", ["add", "max"])
def test_groups_of_a_block(kind):
    x = values(128, np.float32)
    (v,) = agree(one_to_one(f'"tile.reduce"(%x) {{kind = "{kind}", group = 8 : i64}}', "f32", 128, 16), [x])
    np.testing.assert_array_equal(v, getattr(x.reshape(16, 8), {"add": "sum", "max": "max"}[kind])(1))


@pytest.mark.parametrize("group", [48, 384])
def test_sums_of_groups_that_are_no_power_of_two(group):
    """The tree is that of the next power of two, with zeros."""
    text = one_to_one(f'"tile.reduce"(%x) {{kind = "add", group = {group} : i64}}', "f32", 2 * group, 2)
    x = np.random.default_rng(0).normal(size=2 * group).astype(np.float32)
    (v,) = agree(text, [x])
    np.testing.assert_allclose(v, x.reshape(2, group).sum(1), rtol=1e-4)
