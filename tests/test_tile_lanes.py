"""Rows, lanes, slices and carried tiles: interpreter against the twin."""

from __future__ import annotations

import numpy as np
import pytest
import tile_kernels

RNG = np.random.default_rng(7)
TYPES = {"f32": np.float32, "i32": np.int32, "f16": np.float16}


def kernel(inputs: list[str], outputs: list[str], body: str) -> str:
    """A kernel `@k` over named memrefs; `%first` to `%last` are this core's rows of the first one."""
    arguments = ", ".join(f'%{x}' for x in [*inputs, *outputs])
    memory = inputs[0].partition(": ")[2]
    return f"""
func.func @k({arguments}) attributes {{ascend.kernel}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = memref.dim %{inputs[0].partition(":")[0]}, %c0 : {memory}
  %first, %last, %part, %rounds = "tile.block_rows"(%rows) : (index) -> (index, index, index, index)
{body}
  return
}}
"""


def gm(shape: str, element: str = "f32") -> str:
    return f'memref<{shape}x{element}, "gm">'


def random(rows: int, columns: int, element: str = "f32") -> np.ndarray:
    return (RNG.standard_normal((rows, columns)) * 100).astype(TYPES[element])


# -- rows -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "row, pitch, most, element",
    [(64, 64, 4, "f32"), (50, 64, 4, "f16"), (7, 32, 3, "f32"), (33, 80, 5, "i32"), (16, 16, 3, "f16")],
)
def test_rows_in_and_out(row, pitch, most, element):
    length = most * pitch
    body = f"""
  %most = arith.constant {most} : index
  %n = arith.constant {row} : index
  %wide = arith.constant {pitch} : index
  scf.for %r = %first to %last step %most {{
    %left = arith.subi %last, %r : index
    %count = arith.minsi %left, %most : index
    %o = arith.muli %r, %n : index
    %v = "tile.load_rows"(%x, %o, %count) {{row_length = {row} : i64, gm_pitch = {row} : i64, pitch = {pitch} : i64,
         pad = 3.0 : f32}} : ({gm(f"?x{row}", element)}, index, index) -> tensor<{length}x{element}>
    "tile.store_rows"(%v, %y, %o, %count) {{row_length = {row} : i64, gm_pitch = {row} : i64, pitch = {pitch} : i64}}
         : (tensor<{length}x{element}>, {gm(f"?x{row}", element)}, index, index) -> ()
    %padded = arith.muli %r, %wide : index
    %lanes = arith.muli %count, %wide : index
    "tile.store"(%v, %z, %padded, %lanes) : (tensor<{length}x{element}>, {gm(f"?x{pitch}", element)}, index, index) -> ()
  }}"""
    text = kernel(
        [f"x: {gm(f'?x{row}', element)}"],
        [f"y: {gm(f'?x{row}', element)}", f"z: {gm(f'?x{pitch}', element)}"],
        body,
    )
    x = random(11, row, element)
    y, z = tile_kernels.agree(text, [x], cores=2)
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(z[:, row:], 3)


# -- broadcasts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows, width", [(8, 8), (16, 40), (8, 136), (264, 8), (8, 2048)])
@pytest.mark.parametrize("op", ["arith.subf %v, %b", "arith.divf %b, %v"])
def test_broadcast_folds_into_arithmetic(rows, width, op):
    n = rows * width
    text = broadcast_kernel(rows, width, f"%r = {op} : tensor<{n}xf32>")
    x, s = random(1, n), random(1, rows)
    (y,) = tile_kernels.agree(text, [x, s])
    a, b = x.reshape(rows, width), s.reshape(rows, 1)
    expected = a - b if op.startswith("arith.subf") else b / a
    np.testing.assert_array_equal(y.reshape(rows, width), expected)
    source = tile_kernels.source(text, "ascend910b").source
    assert "Copy(" not in source.replace("DataCopy(", "")  # the rows of the broadcast are never written


@pytest.mark.parametrize("rows, width", [(8, 8), (16, 64), (8, 72), (24, 256)])
def test_broadcast_materialised(rows, width):
    n = rows * width
    body = f"""%m = arith.cmpf ogt, %v, %b : tensor<{n}xf32>
  %r = arith.select %m, %v, %b : tensor<{n}xi1>, tensor<{n}xf32>"""
    x, s = random(1, n), random(1, rows)
    (y,) = tile_kernels.agree(broadcast_kernel(rows, width, body), [x, s])
    np.testing.assert_array_equal(y.reshape(rows, width), np.maximum(x.reshape(rows, width), s.reshape(rows, 1)))


def broadcast_kernel(rows: int, width: int, body: str) -> str:
    n = rows * width
    return kernel(
        [f"x: {gm(f'?x{n}')}", f"s: {gm(f'?x{rows}')}"],
        [f"y: {gm(f'?x{n}')}"],
        f"""
  %n = arith.constant {n} : index
  %m0 = arith.constant {rows} : index
  %v = "tile.load"(%x, %c0, %n) : ({gm(f"?x{n}")}, index, index) -> tensor<{n}xf32>
  %t = "tile.load"(%s, %c0, %m0) : ({gm(f"?x{rows}")}, index, index) -> tensor<{rows}xf32>
  %b = "tile.broadcast"(%t) {{width = {width} : i64}} : (tensor<{rows}xf32>) -> tensor<{n}xf32>
  {body}
  "tile.store"(%r, %y, %c0, %n) : (tensor<{n}xf32>, {gm(f"?x{n}")}, index, index) -> ()""",
    )


# -- groups -----------------------------------------------------------------------------------------------------------


def lanes_kernel(n: int, m: int, body: str, element: str = "f32") -> str:
    """`%r` of m lanes from `%v` of n."""
    return kernel(
        [f"x: {gm(f'?x{n}', element)}"],
        [f"y: {gm(f'?x{m}', element)}"],
        f"""
  %n = arith.constant {n} : index
  %m = arith.constant {m} : index
  %v = "tile.load"(%x, %c0, %n) : ({gm(f"?x{n}", element)}, index, index) -> tensor<{n}x{element}>
  {body}
  "tile.store"(%r, %y, %c0, %m) : (tensor<{m}x{element}>, {gm(f"?x{m}", element)}, index, index) -> ()""",
    )


@pytest.mark.parametrize(
    "n, group, start, count, element",
    [(256, 64, 8, 16, "f32"), (512, 128, 64, 64, "f16"), (256, 2, 1, 1, "f32"), (256, 4, 2, 1, "i32"),
     (256, 8, 0, 2, "f32"), (512, 32, 5, 11, "f32"), (256, 16, 15, 1, "i32")],
)  # fmt: skip
def test_take(n, group, start, count, element):
    m = n // group * count
    body = f"""%r = "tile.take"(%v) {{group = {group} : i64, start = {start} : i64, count = {count} : i64}}
      : (tensor<{n}x{element}>) -> tensor<{m}x{element}>"""
    x = random(1, n, element)
    (y,) = tile_kernels.agree(lanes_kernel(n, m, body, element), [x])
    np.testing.assert_array_equal(y.reshape(-1, count), x.reshape(-1, group)[:, start : start + count])


@pytest.mark.parametrize("n, group, width, element", [(64, 8, 32, "f32"), (96, 32, 48, "f16"), (64, 64, 64, "i32")])
def test_spread(n, group, width, element):
    m = n // group * width
    body = f"""%r = "tile.spread"(%v) {{group = {group} : i64, width = {width} : i64, fill = -2.0 : f32}}
      : (tensor<{n}x{element}>) -> tensor<{m}x{element}>"""
    x = random(1, n, element)
    (y,) = tile_kernels.agree(lanes_kernel(n, m, body, element), [x])
    np.testing.assert_array_equal(y.reshape(-1, width)[:, :group], x.reshape(-1, group))
    np.testing.assert_array_equal(y.reshape(-1, width)[:, group:], -2)


# -- slices -----------------------------------------------------------------------------------------------------------

T, S = "tensor<256xf32>", "tensor<64xf32>"


def test_a_slice_is_a_view():
    body = f"""%piece = tensor.extract_slice %v[64] [64] [1] : {T} to {S}
  %r = arith.mulf %piece, %piece : {S}"""
    text = lanes_kernel(256, 64, body)
    x = random(1, 256) / 100
    (y,) = tile_kernels.agree(text, [x])
    np.testing.assert_array_equal(y[0], x[0, 64:128] ** 2)
    assert "DataCopy(" not in tile_kernels.source(text, "ascend910b").source


def test_a_slice_is_made_in_its_place():
    body = f"""%piece = tensor.extract_slice %v[0] [64] [1] : {T} to {S}
  %e = arith.addf %piece, %piece : {S}
  %w = arith.mulf %v, %v : {T}
  %d = arith.mulf %e, %e : {S}
  %r = tensor.insert_slice %d into %w[128] [64] [1] : {S} into {T}"""
    text = lanes_kernel(256, 256, body)
    x = random(1, 256)
    (y,) = tile_kernels.agree(text, [x])
    expected = x[0] * x[0]
    expected[128:192] = (x[0, :64] + x[0, :64]) ** 2
    np.testing.assert_array_equal(y[0], expected)
    assert "DataCopy(" not in tile_kernels.source(text, "ascend910b").source


def test_the_old_value_of_an_insertion_can_be_read_later():
    body = f"""%piece = tensor.extract_slice %v[0] [64] [1] : {T} to {S}
  %d = arith.mulf %piece, %piece : {S}
  %w = tensor.insert_slice %d into %v[128] [64] [1] : {S} into {T}
  %r = arith.subf %w, %v : {T}"""
    x = random(1, 256)
    (y,) = tile_kernels.agree(lanes_kernel(256, 256, body), [x])
    expected = np.zeros(256, np.float32)
    expected[128:192] = x[0, :64] ** 2 - x[0, 128:192]
    np.testing.assert_array_equal(y[0], expected)


def test_slices_of_a_slice_at_run_time():
    body = f"""%c4 = arith.constant 4 : index
  %c64 = arith.constant 64 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %v) -> ({T}) {{
    %o = arith.muli %i, %c64 : index
    %piece = tensor.extract_slice %acc[%o] [64] [1] : {T} to {S}
    %d = arith.addf %piece, %piece : {S}
    %next = tensor.insert_slice %d into %acc[%o] [64] [1] : {S} into {T}
    scf.yield %next : {T}
  }}"""
    x = random(1, 256)
    text = lanes_kernel(256, 256, body)
    (y,) = tile_kernels.agree(text, [x])
    np.testing.assert_array_equal(y, x + x)
    assert tile_kernels.source(text, "ascend910b").source.count("DataCopy(") == 1  # the slice, to its place


# -- carried tiles ----------------------------------------------------------------------------------------------------


def carried(body: str) -> tuple[np.ndarray, np.ndarray, str]:
    text = lanes_kernel(256, 256, f"%c3 = arith.constant 3 : index\n  %w = arith.mulf %v, %v : {T}\n" + body)
    x = random(1, 256) / 100
    (y,) = tile_kernels.agree(text, [x])
    return x[0], y[0], tile_kernels.source(text, "ascend910b").source


def test_a_carried_tile_is_updated_in_place():
    x, y, source = carried(f"""
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %w) -> ({T}) {{
    %s = arith.addf %acc, %v : {T}
    scf.yield %s : {T}
  }}""")
    np.testing.assert_array_equal(y, x * x + x + x + x)
    assert "DataCopy(" not in source


def test_what_is_read_after_its_successor_is_copied():
    x, y, _ = carried(f"""
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %w) -> ({T}) {{
    %s = arith.addf %acc, %v : {T}
    %t = arith.mulf %acc, %s : {T}
    %u = arith.subf %s, %t : {T}
    %q = arith.addf %u, %acc : {T}
    scf.yield %s : {T}
  }}""")
    np.testing.assert_array_equal(y, x * x + x + x + x)


def test_two_carried_tiles_change_places():
    x, y, _ = carried(f"""
  %r, %t = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %v, %b = %w) -> ({T}, {T}) {{
    scf.yield %b, %a : {T}, {T}
  }}""")
    np.testing.assert_array_equal(y, x * x)


def test_a_first_value_that_is_read_later_is_copied():
    x, y, _ = carried(f"""
  %s = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %v) -> ({T}) {{
    %t = arith.addf %acc, %w : {T}
    scf.yield %t : {T}
  }}
  %r = arith.subf %s, %v : {T}""")
    np.testing.assert_array_equal(y, ((x + x * x) + x * x) + x * x - x)


def test_nested_loops_carry_one_buffer():
    x, y, source = carried(f"""
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %w) -> ({T}) {{
    %inner = scf.for %j = %c0 to %c3 step %c1 iter_args(%b = %acc) -> ({T}) {{
      %s = arith.addf %b, %v : {T}
      scf.yield %s : {T}
    }}
    scf.yield %inner : {T}
  }}""")
    expected = x * x
    for _ in range(9):
        expected = expected + x
    np.testing.assert_array_equal(y, expected)
    assert "DataCopy(" not in source


def test_a_while_loop_carries_tiles_and_scalars():
    x, y, _ = carried(f"""
  %r, %n2 = scf.while (%a = %w, %i = %c0) : ({T}, index) -> ({T}, index) {{
    %more = arith.cmpi slt, %i, %c3 : index
    scf.condition(%more) %a, %i : {T}, index
  }} do {{
  ^bb0(%a: {T}, %i: index):
    %s = arith.addf %a, %v : {T}
    %next = arith.addi %i, %c1 : index
    scf.yield %s, %next : {T}, index
  }}""")
    np.testing.assert_array_equal(y, x * x + x + x + x)


@pytest.mark.parametrize("bound", [0, 5])
def test_branches_yield_tiles(bound):
    x, y, source = carried(f"""
  %bound = arith.constant {bound} : index
  %go = arith.cmpi slt, %c3, %bound : index
  %r, %k1 = scf.if %go -> ({T}, index) {{
    %s = arith.addf %w, %v : {T}
    scf.yield %s, %c0 : {T}, index
  }} else {{
    %s = arith.subf %w, %v : {T}
    scf.yield %s, %c1 : {T}, index
  }}""")
    np.testing.assert_array_equal(y, x * x + x if bound else x * x - x)
    assert "DataCopy(" not in source


@pytest.mark.parametrize("bound", [0, 5])
def test_one_branch_updates_in_place(bound):
    x, y, source = carried(f"""
  %bound = arith.constant {bound} : index
  %go = arith.cmpi slt, %c3, %bound : index
  %r = scf.if %go -> ({T}) {{
    %s = arith.addf %w, %v : {T}
    scf.yield %s : {T}
  }} else {{
    scf.yield %w : {T}
  }}""")
    np.testing.assert_array_equal(y, x * x + x if bound else x * x)
    assert "DataCopy(" not in source and "else" not in source


@pytest.mark.parametrize("bound", [0, 5])
def test_a_branch_keeps_what_is_read_later(bound):
    x, y, _ = carried(f"""
  %bound = arith.constant {bound} : index
  %go = arith.cmpi slt, %c3, %bound : index
  %s = scf.if %go -> ({T}) {{
    %t = arith.addf %w, %v : {T}
    scf.yield %t : {T}
  }} else {{
    scf.yield %w : {T}
  }}
  %r = arith.subf %s, %w : {T}""")
    np.testing.assert_array_equal(y, (x * x + x) - x * x if bound else x * 0)


def test_a_mask_is_carried():
    x, y, _ = carried(f"""
  %zero = arith.constant 0.0 : f32
  %zeros = tensor.splat %zero : {T}
  %m0 = arith.cmpf ogt, %v, %zeros : {T}
  %mask = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %m0) -> (tensor<256xi1>) {{
    %l = arith.cmpf ogt, %w, %v : {T}
    scf.yield %l : tensor<256xi1>
  }}
  %r = arith.select %mask, %v, %w : tensor<256xi1>, {T}""")
    np.testing.assert_array_equal(y, np.where(x * x > x, x, x * x))
