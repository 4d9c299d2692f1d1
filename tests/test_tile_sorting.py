"""Sorted lists, compaction and gathers on tiles: the interpreter against NumPy, and the generated code against both."""

import ml_dtypes
import numpy as np
import pytest
from tile_kernels import TARGETS, agree, interpreted, source

from jascend.passes.pipeline import PipelineError

RUNS = (32, 64, 96, 128, 256, 384, 512, 1024, 1536, 2048, 4096, 6144, 8192)


def kernel(body, **arguments):
    """`@k` over memrefs in global memory, "name=32xf32"; constants of its own for loads and stores."""
    signature = ", ".join(f'%{name}: memref<{type_}, "gm">' for name, type_ in arguments.items())
    return f"""
      func.func @k({signature}) attributes {{ascend.kernel}} {{
        %c0 = arith.constant 0 : index
        {body}
        return
      }}"""


def load(name, count, element, memory=None):
    return f"""
        %n_{name} = arith.constant {count} : index
        %{name} = "tile.load"(%{name}_gm, %c0, %n_{name}) : (memref<{memory or count}x{element}, "gm">, index, index) -> tensor<{count}x{element}>"""


def store(name, count, element, number=None):
    number = count if number is None else number
    return f"""
        %s_{name} = arith.constant {number} : index
        "tile.store"(%{name}, %{name}_out, %c0, %s_{name}) : (tensor<{count}x{element}>, memref<{count}x{element}, "gm">, index, index) -> ()"""


def sorting(count, run, ways=None):
    """Sorts in runs, merges every `ways` of them, takes the pairs apart."""
    pairs = f"tensor<{2 * count}xf32>"
    merged = f'%m = "tile.merge"(%p) {{run = {run} : i64, ways = {ways} : i64}} : ({pairs}) -> {pairs}' if ways else ""
    return kernel(
        load("x", count, "f32")
        + load("i", count, "i32")
        + f"""
        %p = "tile.sort"(%x, %i) {{run = {run} : i64}} : (tensor<{count}xf32>, tensor<{count}xi32>) -> {pairs}
        {merged}
        %v, %w = "tile.unpack"(%{'m' if ways else 'p'}) : ({pairs}) -> (tensor<{count}xf32>, tensor<{count}xi32>)"""
        + store("v", count, "f32")
        + store("w", count, "i32"),
        x_gm=f"{count}xf32", i_gm=f"{count}xi32", v_out=f"{count}xf32", w_out=f"{count}xi32",
    )  # fmt: skip


def scores(count, seed=0):
    """Ties, infinities, NaN and both zeros among others."""
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(count) < 0.5, rng.normal(size=count), rng.integers(-2, 3, count)).astype(np.float32)
    for value in (np.nan, np.inf, -np.inf, -0.0, np.nan, -np.inf):
        x[rng.integers(count)] = value
    return x


def by_hand(x, indices, run):
    """Insertion by comparison, one run after the other."""
    values, order = [], []
    for start in range(0, len(x), run):
        lanes = sorted(range(start, start + run), key=lambda i: (not np.isnan(x[i]), 0 if np.isnan(x[i]) else -x[i]))
        values += [x[i] for i in lanes]
        order += [indices[i] for i in lanes]
    return np.array(values, np.float32), np.array(order, np.int32)


@pytest.mark.parametrize("run", RUNS)
def test_the_meaning_of_sort(run):
    x, indices = scores(2 * run), np.arange(2 * run, dtype=np.int32)[::-1].copy()
    v, w = interpreted(sorting(2 * run, run), [x, indices])
    expected = by_hand(x, indices, run)
    np.testing.assert_array_equal(v, expected[0])
    np.testing.assert_array_equal(w, expected[1])


@pytest.mark.parametrize(
    ("count", "run", "ways"),
    [(32, 32, None), (128, 64, None), (96, 96, None), (384, 384, None), (1024, 128, 4), (1536, 256, 2), (3072, 1024, 3)],
)
def test_sort_and_merge(count, run, ways):
    x, indices = scores(count, run), np.arange(7, count + 7, dtype=np.int32)
    v, w = agree(sorting(count, run, ways), [x, indices])
    expected = by_hand(x, indices, run * (ways or 1))
    np.testing.assert_array_equal(v, expected[0])
    np.testing.assert_array_equal(w, expected[1])


def test_the_longest_list():
    """6144 pairs: what fits into the unified buffer of every product."""
    x, indices = scores(6144), np.arange(6144, dtype=np.int32)
    v, w = agree(sorting(6144, 6144), [x, indices], targets=["ascend910b"])
    assert sorted(w.tolist()) == list(range(6144))
    np.testing.assert_array_equal(x[w], v)


def test_unpack_of_what_is_used():
    text = source(sorting(64, 32).replace('"tile.store"(%v', '"tile.store"(%x'), "ascend910b").source
    assert text.count("GatherMask(") == 1


DTYPES = {"f32": np.float32, "i32": np.int32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i16": np.int16}


def values(count, dtype, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(-100, 100, count).astype(dtype)


@pytest.mark.parametrize("element", DTYPES)
def test_compress(element):
    count = 256
    text = kernel(
        load("x", count, element)
        + load("k", count, "f32")
        + f"""
        %zero = arith.constant 0.0 : f32
        %zeros = tensor.splat %zero : tensor<{count}xf32>
        %mask = arith.cmpf ogt, %k, %zeros : tensor<{count}xf32>
        %packed, %kept = "tile.compress"(%x, %mask) : (tensor<{count}x{element}>, tensor<{count}xi1>) -> (tensor<{count}x{element}>, index)
        "tile.store"(%packed, %out, %c0, %kept) : (tensor<{count}x{element}>, memref<{count}x{element}, "gm">, index, index) -> ()""",
        x_gm=f"{count}x{element}", k_gm=f"{count}xf32", out=f"{count}x{element}",
    )  # fmt: skip
    x, key = values(count, DTYPES[element]), scores(count)
    (packed,) = agree(text, [x, key])
    kept = x[key > 0]
    np.testing.assert_array_equal(packed[: len(kept)], kept)


def gathering(count, size, element):
    return kernel(
        load("x", size, element)
        + load("i", count, "i32")
        + f"""
        %v = "tile.gather"(%x, %i) : (tensor<{size}x{element}>, tensor<{count}xi32>) -> tensor<{count}x{element}>"""
        + store("v", count, element),
        x_gm=f"{size}x{element}", i_gm=f"{count}xi32", v_out=f"{count}x{element}",
    )  # fmt: skip


@pytest.mark.parametrize(("element", "count", "size"), [("f32", 96, 64), ("i32", 8, 304), ("bf16", 64, 512), ("i16", 16, 16)])
def test_gather(element, count, size):
    x, indices = values(size, DTYPES[element]), np.random.default_rng(1).integers(0, size, count).astype(np.int32)
    (v,) = agree(gathering(count, size, element), [x, indices])
    np.testing.assert_array_equal(v, x[indices])


def test_gather_from_nowhere():
    with pytest.raises(IndexError, match="tile.gather of element 64: the tile has 64"):
        interpreted(gathering(32, 64, "f32"), [np.zeros(64, np.float32), np.full(32, 64, np.int32)])


def scattering(count, size, element):
    return kernel(
        load("x", count, element)
        + load("i", count, "i32")
        + load("into", size, element)
        + f"""
        %v = "tile.scatter"(%x, %i, %into) : (tensor<{count}x{element}>, tensor<{count}xi32>, tensor<{size}x{element}>) -> tensor<{size}x{element}>"""
        + store("v", size, element)
        + store("into", size, element),
        x_gm=f"{count}x{element}", i_gm=f"{count}xi32", into_gm=f"{size}x{element}", v_out=f"{size}x{element}",
        into_out=f"{size}x{element}",
    )  # fmt: skip


@pytest.mark.parametrize(("element", "count", "size"), [("f32", 64, 128), ("i32", 32, 32), ("bf16", 32, 64)])
def test_scatter(element, count, size):
    rng = np.random.default_rng(2)
    x, into = values(count, DTYPES[element]), values(size, DTYPES[element], seed=1)
    indices = rng.permutation(size)[:count].astype(np.int32)
    v, unchanged = agree(scattering(count, size, element), [x, indices, into], targets=["ascend950"])
    expected = into.copy()
    expected[indices] = x
    np.testing.assert_array_equal(v, expected)
    np.testing.assert_array_equal(unchanged, into)


def test_scatter_is_refused_where_there_is_none():
    with pytest.raises(PipelineError, match="'tile.scatter' needs the instruction Scatter, which ascend910b does not have"):
        source(scattering(64, 128, "f32"), "ascend910b")


@pytest.mark.parametrize("first", [0, 1, 63, 64, 200, 255, None])
def test_find_first(first):
    count = 256
    text = kernel(
        load("x", count, "f32")
        + f"""
        %zero = arith.constant 0.0 : f32
        %zeros = tensor.splat %zero : tensor<{count}xf32>
        %mask = arith.cmpf ogt, %x, %zeros : tensor<{count}xf32>
        %position = "tile.find_first"(%mask) : (tensor<{count}xi1>) -> index
        %number = arith.index_cast %position : index to i32
        %v = tensor.splat %number : tensor<8xi32>"""
        + store("v", 8, "i32"),
        x_gm=f"{count}xf32", v_out="8xi32",
    )  # fmt: skip
    x = np.zeros(count, np.float32)
    if first is not None:
        x[first:] = np.random.default_rng(first).normal(size=count - first)
        x[first] = 1
    targets = TARGETS if first in (64, None) else TARGETS[:1]
    (v,) = agree(text, [x], targets=targets)
    assert v[0] == (count if first is None else first)
