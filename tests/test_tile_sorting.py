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
    v, w = agree(sorting(count, run, ways), [x, indices], targets=TARGETS if count == 1536 else TARGETS[:1])
    expected = by_hand(x, indices, run * (ways or 1))
    np.testing.assert_array_equal(v, expected[0])
    np.testing.assert_array_equal(w, expected[1])


def test_the_longest_list():
    """6144 pairs: what fits into the unified buffer of every product."""
    x, indices = scores(6144), np.arange(6144, dtype=np.int32)
    v, w = agree(sorting(6144, 6144), [x, indices], targets=["ascend910b"])
    assert sorted(w.tolist()) == list(range(6144))
    np.testing.assert_array_equal(x[w], v)


def test_a_running_list():
    """The 64 largest of a row that goes by in chunks: sorted, merged into the list so far, cut off."""
    chunk, rows = 64, 4
    scores_, indices, pairs, both = (f"tensor<{n}x{t}>" for n, t in ((chunk, "f32"), (chunk, "i32"), (128, "f32"), (256, "f32")))
    text = kernel(
        f"""
        %c64 = arith.constant 64 : index
        %end = arith.constant {rows * chunk} : index
        %least = arith.constant dense<0xFF800000> : {scores_}
        %ramp = "tile.iota"() : () -> {indices}
        %none = "tile.sort"(%least, %ramp) {{run = 64 : i64}} : ({scores_}, {indices}) -> {pairs}
        %list = scf.for %at = %c0 to %end step %c64 iter_args(%so_far = %none) -> ({pairs}) {{
          %x = "tile.load"(%x_gm, %at, %c64) : (memref<{rows * chunk}xf32, "gm">, index, index) -> {scores_}
          %first = arith.index_cast %at : index to i32
          %firsts = tensor.splat %first : {indices}
          %i = arith.addi %ramp, %firsts : {indices}
          %new = "tile.sort"(%x, %i) {{run = 64 : i64}} : ({scores_}, {indices}) -> {pairs}
          %merged = "tile.merge_lists"(%so_far, %new) {{operandSegmentSizes = array<i32: 1, 1, 0, 0>}}
            : ({pairs}, {pairs}) -> {both}
          %kept = tensor.extract_slice %merged[0] [128] [1] : {both} to {pairs}
          scf.yield %kept : {pairs}
        }}
        %v, %w = "tile.unpack"(%list) : ({pairs}) -> ({scores_}, {indices})"""
        + store("v", chunk, "f32")
        + store("w", chunk, "i32"),
        x_gm=f"{rows * chunk}xf32", v_out=f"{chunk}xf32", w_out=f"{chunk}xi32",
    )  # fmt: skip
    x = scores(rows * chunk)
    v, w = agree(text, [x])
    expected = by_hand(x, np.arange(len(x), dtype=np.int32), len(x))
    np.testing.assert_array_equal(v, expected[0][:chunk])
    np.testing.assert_array_equal(w, expected[1][:chunk])


def test_lists_of_different_lengths():
    body, start = "", 0
    x = np.concatenate([np.sort(scores(n, n))[::-1] for n in (32, 64, 96)])
    x = np.where(np.isnan(x), np.float32(9), x)
    for number, n in enumerate((32, 64, 96)):
        body += f"""
        %x{number} = tensor.extract_slice %x[{start}] [{n}] [1] : tensor<192xf32> to tensor<{n}xf32>
        %i{number} = tensor.extract_slice %i[{start}] [{n}] [1] : tensor<192xi32> to tensor<{n}xi32>
        %p{number} = "tile.sort"(%x{number}, %i{number}) {{run = {n} : i64}} : (tensor<{n}xf32>, tensor<{n}xi32>) -> tensor<{2 * n}xf32>"""
        start += n
    text = kernel(
        load("x", 192, "f32")
        + load("i", 192, "i32")
        + body
        + """
        %m = "tile.merge_lists"(%p0, %p1, %p2) {operandSegmentSizes = array<i32: 1, 1, 1, 0>}
          : (tensor<64xf32>, tensor<128xf32>, tensor<192xf32>) -> tensor<384xf32>
        %v, %w = "tile.unpack"(%m) : (tensor<384xf32>) -> (tensor<192xf32>, tensor<192xi32>)"""
        + store("v", 192, "f32")
        + store("w", 192, "i32"),
        x_gm="192xf32", i_gm="192xi32", v_out="192xf32", w_out="192xi32",
    )  # fmt: skip
    v, w = agree(text, [x, np.arange(192, dtype=np.int32)])
    expected = by_hand(x, np.arange(192, dtype=np.int32), 192)
    np.testing.assert_array_equal(v, expected[0])
    np.testing.assert_array_equal(w, expected[1])


def test_unpack_of_what_is_used():
    text = source(sorting(64, 32).replace('"tile.store"(%v', '"tile.store"(%x'), "ascend910b").source
    assert text.count("GatherMask(") == 1


DTYPES = {"f32": np.float32, "i32": np.int32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i16": np.int16}


def values(count, dtype, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(-100, 100, count).astype(dtype)


def test_compress():
    """Every type of element, under one mask."""
    count = 256
    body = load("k", count, "f32") + f"""
        %zeros = arith.constant dense<0.0> : tensor<{count}xf32>
        %mask = arith.cmpf ogt, %k, %zeros : tensor<{count}xf32>"""
    signature = {"k_gm": f"{count}xf32"}
    for element in DTYPES:
        tile = f"tensor<{count}x{element}>"
        body += load(element, count, element) + f"""
        %p_{element}, %kept_{element} = "tile.compress"(%{element}, %mask) : ({tile}, tensor<{count}xi1>) -> ({tile}, index)
        "tile.store"(%p_{element}, %o_{element}, %c0, %kept_{element}) : ({tile}, memref<{count}x{element}, "gm">, index, index) -> ()"""
        signature[f"{element}_gm"] = f"{count}x{element}"
    signature |= {f"o_{element}": f"{count}x{element}" for element in DTYPES}
    key, inputs = scores(count), [values(count, dtype) for dtype in DTYPES.values()]
    for packed, x in zip(agree(kernel(body, **signature), [key, *inputs]), inputs):
        np.testing.assert_array_equal(packed[: (key > 0).sum()], x[key > 0])


def gathering(count, size, element):
    return kernel(
        load("x", size, element)
        + load("i", count, "i32")
        + f"""
        %v = "tile.gather"(%x, %i) : (tensor<{size}x{element}>, tensor<{count}xi32>) -> tensor<{count}x{element}>"""
        + store("v", count, element),
        x_gm=f"{size}x{element}", i_gm=f"{count}xi32", v_out=f"{count}x{element}",
    )  # fmt: skip


def test_gather():
    """Every type of element; more indices than elements, and fewer."""
    cases = [("f32", 96, 64), ("i32", 8, 304), ("f16", 32, 32), ("bf16", 64, 512), ("i16", 16, 16)]
    body, given, results, inputs = "", {}, {}, []
    for element, count, size in cases:
        body += load(element, size, element) + load(f"i_{element}", count, "i32") + f"""
        %v_{element} = "tile.gather"(%{element}, %i_{element}) : (tensor<{size}x{element}>, tensor<{count}xi32>) -> tensor<{count}x{element}>"""
        body += store(f"v_{element}", count, element)
        given |= {f"{element}_gm": f"{size}x{element}", f"i_{element}_gm": f"{count}xi32"}
        results[f"v_{element}_out"] = f"{count}x{element}"
        inputs += [values(size, DTYPES[element]), np.random.default_rng(1).integers(0, size, count).astype(np.int32)]
    found = agree(kernel(body, **given, **results), inputs)
    for v, x, indices in zip(found, inputs[::2], inputs[1::2]):
        np.testing.assert_array_equal(v, x[indices])


def test_gather_from_nowhere():
    with pytest.raises(IndexError, match="tile.gather of element 64: the tile has 64"):
        interpreted(gathering(32, 64, "f32"), [np.zeros(64, np.float32), np.full(32, 64, np.int32)])


def scattering(count, size, element, kept=True):
    signature = {"x_gm": f"{count}x{element}", "i_gm": f"{count}xi32", "into_gm": f"{size}x{element}", "v_out": f"{size}x{element}"}
    return kernel(
        load("x", count, element)
        + load("i", count, "i32")
        + load("into", size, element)
        + f"""
        %v = "tile.scatter"(%x, %i, %into) : (tensor<{count}x{element}>, tensor<{count}xi32>, tensor<{size}x{element}>) -> tensor<{size}x{element}>"""
        + store("v", size, element)
        + (store("into", size, element) if kept else ""),
        **signature,
        **({"into_out": f"{size}x{element}"} if kept else {}),
    )


@pytest.mark.parametrize(("element", "count", "size"), [("f32", 64, 128), ("bf16", 32, 32)])
def test_scatter(element, count, size):
    rng = np.random.default_rng(2)
    x, into = values(count, DTYPES[element]), values(size, DTYPES[element], seed=1)
    indices = rng.permutation(size)[:count].astype(np.int32)
    v, unchanged = agree(scattering(count, size, element), [x, indices, into], targets=["ascend950"])
    expected = into.copy()
    expected[indices] = x
    np.testing.assert_array_equal(v, expected)
    np.testing.assert_array_equal(unchanged, into)


def test_scatter_in_place():
    """Where nothing else uses the tile that is written into, there is no copy of it."""
    text = scattering(32, 64, "f32", kept=False)
    assert "DataCopy(" not in source(text, "ascend950").source.replace("DataCopyPad(", "")
    rng = np.random.default_rng(3)
    agree(text, [values(32, np.float32), rng.permutation(64)[:32].astype(np.int32), values(64, np.float32)], targets=["ascend950"])


def test_scatter_is_refused_where_there_is_none():
    with pytest.raises(PipelineError, match="'tile.scatter' needs the instruction Scatter, which ascend910b does not have"):
        source(scattering(64, 128, "f32"), "ascend910b")


def test_scatter_into_a_carried_tile():
    """Rounds of a loop write into one buffer."""
    tile, indices = "tensor<64xf32>", "tensor<32xi32>"
    text = kernel(
        load("x", 32, "f32")
        + load("i", 32, "i32")
        + f"""
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %step = arith.constant dense<32> : {indices}
        %zeros = arith.constant dense<0.0> : {tile}
        %v, %last = scf.for %n = %c0 to %c2 step %c1 iter_args(%into = %zeros, %at = %i) -> ({tile}, {indices}) {{
          %w = "tile.scatter"(%x, %at, %into) : (tensor<32xf32>, {indices}, {tile}) -> {tile}
          %next = arith.xori %at, %step : {indices}
          scf.yield %w, %next : {tile}, {indices}
        }}"""
        + store("v", 64, "f32"),
        x_gm="32xf32", i_gm="32xi32", v_out="64xf32",
    )  # fmt: skip
    x = values(32, np.float32)
    at = np.random.default_rng(4).permutation(32).astype(np.int32)
    (v,) = agree(text, [x, at], targets=["ascend950"])
    np.testing.assert_array_equal(v[at], x)
    np.testing.assert_array_equal(v[at + 32], x)
    assert source(text, "ascend950").source.count("DataCopy(") <= 1


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
