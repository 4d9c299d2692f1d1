"""The interpreter of tiles: on kernels of every dtype and mode against the fallback, and on what it refuses."""

import ml_dtypes
import numpy as np
import pytest
import tile_kernels
from mlir import ir

import jascend as ja
import jascend.dialect
from jascend.passes.interpreter import NotInterpreted, dtype_of, run_kernel
from jascend.passes.pipeline import run_pipeline

FLOATS = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def filter_on_tiles(rows, vocabulary, element, has_p, has_k, tile):
    """The filter, lowered to tiles."""
    x, row = f"tensor<{rows}x{vocabulary}x{element}>", f"tensor<{rows}x{element}>"
    arguments = [("%x", x)] + [("%p", row)] * has_p + [("%k", f"tensor<{rows}xi32>")] * has_k
    signature = ", ".join(f"{name}: {type_}" for name, type_ in arguments)
    text = f"""
      func.func @filter({signature}) -> {x} attributes {{ascend.kernel}} {{
        %0 = "ascend.apply_top_k_top_p"({', '.join(n for n, _ in arguments)})
          {{operandSegmentSizes = array<i32: 1, {int(has_p)}, {int(has_k)}>}} : ({', '.join(t for _, t in arguments)}) -> {x}
        return %0 : {x}
      }}"""
    with jascend.dialect.make_context():
        return run_pipeline(ir.Module.parse(text), f"lower-to-tile{{tile={tile}}}")


def rows_of(rng, element, vocabulary):
    """Ties, infinities and NaN beside plain rows."""
    kinds = [
        rng.normal(0, 4, vocabulary),
        rng.integers(-2, 3, vocabulary),
        np.where(rng.random(vocabulary) < 0.3, -np.inf, rng.normal(0, 1, vocabulary)),
        np.where(np.arange(vocabulary) == vocabulary // 2, np.inf, rng.normal(0, 1, vocabulary)),
        np.where(np.arange(vocabulary) == vocabulary // 3, np.nan, rng.normal(0, 1, vocabulary)),
        np.full(vocabulary, -np.inf),
    ]
    return np.stack(kinds).astype(FLOATS[element])


@pytest.mark.parametrize(
    ("element", "has_p", "has_k", "vocabulary", "tile", "cores"),
    [("f32", True, True, 1500, 1024, 1), ("bf16", True, False, 2048, 2048, 4), ("f16", False, True, 7, 1024, 8)],
    ids=["both", "p", "k"],
)
def test_the_filter(element, has_p, has_k, vocabulary, tile, cores):
    logits = rows_of(np.random.default_rng(vocabulary), element, vocabulary)
    p = np.array([0.9, 0.55, 0.3, 0.9, 0.9, 0.9], np.float32).astype(FLOATS[element])
    k = np.array([200, 3, 0, 5, 4, 2], np.int32)
    module = filter_on_tiles(6, vocabulary, element, has_p, has_k, tile)
    (actual,) = run_kernel(module, "filter", [logits, *[p] * has_p, *[k] * has_k], cores)
    kwargs = {name: value for name, value, given in (("p", p, has_p), ("k", k, has_k)) if given}
    expected = np.asarray(ja.apply_top_k_top_p(logits, **kwargs))
    np.testing.assert_array_equal(actual.astype(np.float32), expected.astype(np.float32))


def module_of(body, signature="%x: memref<?xf32, \"gm\">, %out: memref<?xf32, \"gm\">, %n: index"):
    with jascend.dialect.make_context():
        return ir.Module.parse(f"func.func @f({signature}) {{ {body} return }}")


def test_what_was_not_padded_shows():
    module = module_of(
        """
        %c0 = arith.constant 0 : index
        %c2 = arith.constant 2 : index
        %c3 = arith.constant 3 : index
        %t = "tile.load"(%x, %c0, %c2) : (memref<?xf32, "gm">, index, index) -> tensor<8xf32>
        "tile.store"(%t, %out, %c0, %c3) : (tensor<8xf32>, memref<?xf32, "gm">, index, index) -> ()
        """,
        '%x: memref<?xf32, "gm">, %out: memref<?xf32, "gm">',
    )
    (out,) = run_kernel(module, "f", [np.arange(4, dtype=np.float32)])
    np.testing.assert_array_equal(out[:3], [0, 1, np.nan])
    assert out[3:].tobytes() == b"\xff" * 4  # not written


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ('%t = "tile.load"(%x, %n, %n) : (memref<?xf32, "gm">, index, index) -> tensor<8xf32>', IndexError, "tile.load of 9"),
        ("%c = arith.constant 1.0 : f32 %e = math.tan %c : f32", NotInterpreted, "'math.tan'"),
        ("%c = arith.constant 1.0 : f64", NotInterpreted, "no values of type f64"),
        ("%m = arith.cmpi ult, %n, %n : index", NotInterpreted, "comparison 'ult'"),
    ],
)
def test_refuses(body, error, message):
    module = module_of("%n = arith.constant 9 : index " + body, '%x: memref<?xf32, "gm">')
    with pytest.raises(error, match=message):
        run_kernel(module, "f", [np.zeros(16, np.float32)])


def test_whole_numbers_are_divided_towards_zero():
    text = """
func.func @k(%x: memref<?x64xi32, "gm">, %out: memref<?x64xi32, "gm">) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %x64 = "tile.load"(%x, %c0, %c64) : (memref<?x64xi32, "gm">, index, index) -> tensor<64xi32>
  %a = "tile.extract"(%x64, %c0) : (tensor<64xi32>, index) -> i32
  %b = "tile.extract"(%x64, %c1) : (tensor<64xi32>, index) -> i32
  %q = arith.divsi %a, %b : i32
  %r = arith.remsi %a, %b : i32
  %scaled = arith.muli %q, %b : i32
  %ten = arith.constant 10 : i32
  %tens = arith.muli %q, %ten : i32
  %both = arith.addi %tens, %r : i32
  %tile = tensor.splat %both : tensor<64xi32>
  "tile.store"(%tile, %out, %c0, %c64) : (tensor<64xi32>, memref<?x64xi32, "gm">, index, index) -> ()
  return
}
"""
    x = np.zeros((1, 64), np.int32)
    x[0, :2] = -17, 5  # -3 and -2
    (out,) = tile_kernels.agree(text, [x], targets=["ascend910b"])
    assert set(out[0]) == {-32}


@pytest.mark.parametrize("element", ["f32", "f16", "bf16", "i8", "f8E4M3FN", "f8E5M2", "f8E8M0FNU"])
def test_rows_of_every_element(element):
    memory, attributes = f'memref<?x64x{element}, "gm">', "row_length = 64 : i64, gm_pitch = 64 : i64, pitch = 64 : i64"
    text = f"""
func.func @k(%x: {memory}, %out: {memory}) attributes {{ascend.kernel}} {{
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %rows = "tile.load_rows"(%x, %c0, %c3) {{{attributes}}} : ({memory}, index, index) -> tensor<192x{element}>
  "tile.store_rows"(%rows, %out, %c0, %c3) {{{attributes}}} : (tensor<192x{element}>, {memory}, index, index) -> ()
  return
}}
"""
    dtype = dtype_of(ir.Type.parse(element, jascend.dialect.make_context()))
    x = np.arange(192).astype(np.uint8).repeat(dtype.itemsize).view(dtype).reshape(3, 64)
    with jascend.dialect.make_context():
        (out,) = run_kernel(ir.Module.parse(text), "k", [x])
    assert out.tobytes() == x.tobytes()
