"""Groups of cores, workspace and meetings: interpreter against the twin, and what a launch is told."""

from __future__ import annotations

import numpy as np
import pytest
import tile_kernels

from jascend.backends.ascend.codegen.tiling import Shape

GM = 'memref<?x256xf32, "gm">'


def maximum_of_rows(parts: int) -> str:
    """Each row's maximum in all its lanes: every part takes a slice, leaves its maximum in the workspace, meets the others."""
    width = 256 // parts
    return f"""
func.func @k(%x: {GM}, %y: {GM}) attributes {{ascend.kernel}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c256 = arith.constant 256 : index
  %parts = arith.constant {parts} : index
  %width = arith.constant {width} : index
  %rows = memref.dim %x, %c0 : {GM}
  %first, %last, %part, %rounds = "tile.block_rows"(%rows) {{parts = {parts} : i64}} : (index) -> (index, index, index, index)
  %ws = "tile.workspace"() {{name = "maxima", elements = {8 * parts} : i64, per = "row"}} : () -> memref<?x{8 * parts}xf32, "gm">
  scf.for %i = %c0 to %rounds step %c1 {{
    %row = arith.addi %first, %i : index
    %mine = arith.cmpi slt, %row, %last : index
    scf.if %mine {{
      %start = arith.muli %row, %c256 : index
      %shift = arith.muli %part, %width : index
      %offset = arith.addi %start, %shift : index
      %v = "tile.load"(%x, %offset, %width) : ({GM}, index, index) -> tensor<{width}xf32>
      %m = "tile.reduce"(%v) {{kind = "max", group = {min(width, 64)} : i64}} : (tensor<{width}xf32>) -> tensor<{width // min(width, 64)}xf32>
      %e = "tile.extract"(%m, %c0) : (tensor<{width // min(width, 64)}xf32>, index) -> f32
      %s = tensor.splat %e : tensor<8xf32>
      %slot = arith.muli %row, %parts : index
      %mine8 = arith.addi %slot, %part : index
      %to = arith.muli %mine8, %c8 : index
      "tile.store"(%s, %ws, %to, %c8) : (tensor<8xf32>, memref<?x{8 * parts}xf32, "gm">, index, index) -> ()
    }}
    "tile.sync_all"() : () -> ()
    scf.if %mine {{
      %slot = arith.muli %row, %parts : index
      %from = arith.muli %slot, %c8 : index
      %n = arith.muli %parts, %c8 : index
      %all = "tile.load"(%ws, %from, %n) {{pad = 0xFF800000 : f32}} : (memref<?x{8 * parts}xf32, "gm">, index, index) -> tensor<64xf32>
      %m = "tile.reduce"(%all) {{kind = "max", group = 64 : i64}} : (tensor<64xf32>) -> tensor<1xf32>
      %e = "tile.extract"(%m, %c0) : (tensor<1xf32>, index) -> f32
      %s = tensor.splat %e : tensor<{width}xf32>
      %start = arith.muli %row, %c256 : index
      %shift = arith.muli %part, %width : index
      %offset = arith.addi %start, %shift : index
      "tile.store"(%s, %y, %offset, %width) : (tensor<{width}xf32>, {GM}, index, index) -> ()
    }}
  }}
  return
}}
"""


@pytest.mark.parametrize("parts, cores, rows", [(4, 8, 5), (8, 8, 3)])
def test_parts_of_a_row_meet(parts, cores, rows):
    x = np.random.default_rng(parts).standard_normal((rows, 256)).astype(np.float32)
    (y,) = tile_kernels.agree(maximum_of_rows(parts), [x], cores)
    np.testing.assert_array_equal(y, np.broadcast_to(x.max(axis=1, keepdims=True), x.shape))


def test_a_kernel_whose_cores_meet_has_the_mixed_type():
    text = tile_kernels.source(maximum_of_rows(4), "ascend910b")
    assert "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);" in text.source
    assert "    uint32_t rowsPerGroup;\n    uint32_t extraRows;\n};" in text.tiling_header
    assert text.shape == Shape(parts=4, scratch=(0, 0, 128))
    assert text.shape.blocks(rows=5, cores=8) == 8 and text.shape.blocks(rows=1, cores=8) == 4
    assert text.shape.data(rows=5, cores=8) == {"rows_per_group": 2, "extra_rows": 1}
    assert text.shape.workspace_bytes(rows=5, cores=8) == 640


def counts_of_cores() -> str:
    """Every core leaves its number; after the meeting each one sums up what is there, from a share of 20 pieces."""
    return """
func.func @k(%x: memref<?x8xf32, "gm">, %y: memref<?x8xf32, "gm">) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %rows = memref.dim %x, %c0 : memref<?x8xf32, "gm">
  %twice = arith.muli %rows, %c2 : index
  %first, %last, %part, %rounds = "tile.block_rows"(%twice) : (index) -> (index, index, index, index)
  %core, %cores = "tile.core"() : () -> (index, index)
  %any = "tile.workspace"() {name = "any", elements = 8 : i64, per = "launch"} : () -> memref<8xf32, "gm">
  %ws = "tile.workspace"() {name = "numbers", elements = 8 : i64, per = "core"} : () -> memref<?x8xf32, "gm">
  %i32 = arith.index_cast %first : index to i32
  %f = arith.sitofp %i32 : i32 to f32
  %s = tensor.splat %f : tensor<8xf32>
  %at = arith.muli %core, %c8 : index
  "tile.store"(%s, %ws, %at, %c8) : (tensor<8xf32>, memref<?x8xf32, "gm">, index, index) -> ()
  "tile.sync_all"() : () -> ()
  %zero = arith.constant 0.0 : f32
  %zeros = tensor.splat %zero : tensor<8xf32>
  %sum = scf.for %i = %c0 to %cores step %c1 iter_args(%acc = %zeros) -> (tensor<8xf32>) {
    %from = arith.muli %i, %c8 : index
    %v = "tile.load"(%ws, %from, %c8) : (memref<?x8xf32, "gm">, index, index) -> tensor<8xf32>
    %next = arith.addf %acc, %v : tensor<8xf32>
    scf.yield %next : tensor<8xf32>
  }
  %mine = arith.cmpi slt, %core, %rows : index
  scf.if %mine {
    "tile.store"(%sum, %y, %at, %c8) : (tensor<8xf32>, memref<?x8xf32, "gm">, index, index) -> ()
  }
  return
}
"""


def test_shares_of_any_number_and_scratch_for_each_core():
    x = np.zeros((5, 8), np.float32)
    (y,) = tile_kernels.agree(counts_of_cores(), [x], cores=6)
    firsts = np.cumsum([0, 2, 2, 2, 2, 1])  # 10 pieces for 6 cores
    np.testing.assert_array_equal(y, firsts.sum())
    text = tile_kernels.source(counts_of_cores(), "ascend910b")
    assert text.shape == Shape(all_cores=True, uses_rows=True, scratch=(32, 32, 0))
    assert text.shape.data(rows=5, cores=6) == {"rows_per_core": 0, "extra_rows": 5, "rows": 5}
    assert text.shape.workspace_bytes(rows=5, cores=6) == 32 + 6 * 32


def test_a_core_that_never_comes_is_an_error():
    text = """
func.func @k(%x: memref<?x8xf32, "gm">) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %core, %cores = "tile.core"() : () -> (index, index)
  %mine = arith.cmpi eq, %core, %c0 : index
  scf.if %mine {
    "tile.sync_all"() : () -> ()
  }
  return
}
"""
    with pytest.raises(RuntimeError, match="wait in sync_all"):
        tile_kernels.interpreted(text, [np.zeros((2, 8), np.float32)], cores=2)


def test_no_rows_no_blocks():
    assert Shape().blocks(rows=0, cores=48) == 0
    assert Shape(all_cores=True, parts=4).blocks(rows=0, cores=48) == 0
    assert Shape(all_cores=True).blocks(rows=1, cores=48) == 48
    assert Shape(parts=4).blocks(rows=100, cores=2) == 4  # a group is never cut
