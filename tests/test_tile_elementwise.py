"""Elementwise ops on integers, masks and bits, conversions, and minima: the interpreter and the generated code agree."""

import ml_dtypes
import numpy as np
import pytest
from test_tile_sorting import kernel, load, store
from tile_kernels import agree, source

from jascend.passes.pipeline import PipelineError

N = 256
SPECIAL = np.array([0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 3e9, -3e9, 65504, 8388609.0, 1e-40])


def floats(seed=0):
    x = np.random.default_rng(seed).normal(0, 100, N).astype(np.float32)
    x[: len(SPECIAL)] = SPECIAL
    return x


def integers(dtype, seed=0):
    limits = np.iinfo(dtype)
    x = np.random.default_rng(seed).integers(limits.min, limits.max, N, dtype=dtype, endpoint=True)
    x[:4] = [limits.min, limits.max, 0, -1]
    return x


def results(ops, inputs, targets=("ascend910b", "ascend950")):
    """A kernel of lines `name = op : element`, whose named values are stored; `inputs` are arrays by name."""
    elements = {"float32": "f32", "int32": "i32", "int16": "i16", "bfloat16": "bf16", "float16": "f16"}
    types = {name: elements[str(x.dtype)] for name, x in inputs.items()}
    body = "".join(load(name, N, type_) for name, type_ in types.items())
    stores, names = "", {}
    for line in ops.strip().splitlines():
        text, _, kept = line.partition("->")
        body += text + "\n"
        if kept:
            names[text.partition("=")[0].strip(" %")] = kept.strip()
    signature = {f"{name}_gm": f"{N}x{type_}" for name, type_ in types.items()}
    for name, type_ in names.items():
        stores += store(name, N, type_)
        signature[f"{name}_out"] = f"{N}x{type_}"
    text = kernel(body + stores, **signature)
    return dict(zip(names, agree(text, list(inputs.values()), targets=targets)))


def test_integers():
    x, y = integers(np.int32), integers(np.int32, 1)
    y[8:80] = x[8:80]
    found = results(
        """
        %five = arith.constant 5 : i32
        %fives = tensor.splat %five : tensor<256xi32>
        %three = arith.constant dense<3> : tensor<256xi32>
        %and = arith.andi %x, %y : tensor<256xi32>              -> i32
        %or = arith.ori %x, %y : tensor<256xi32>                -> i32
        %xor = arith.xori %x, %y : tensor<256xi32>              -> i32
        %left = arith.shli %x, %fives : tensor<256xi32>         -> i32
        %right = arith.shrsi %x, %fives : tensor<256xi32>       -> i32
        %logical = arith.shrui %x, %three : tensor<256xi32>     -> i32
        %sum = arith.addi %x, %y : tensor<256xi32>              -> i32
        %more = arith.addi %fives, %x : tensor<256xi32>         -> i32
        %less = arith.subi %x, %fives : tensor<256xi32>         -> i32
        %from = arith.subi %fives, %x : tensor<256xi32>         -> i32
        %times = arith.muli %x, %three : tensor<256xi32>        -> i32
        %most = arith.maxsi %x, %fives : tensor<256xi32>        -> i32
        %least = arith.minsi %x, %three : tensor<256xi32>       -> i32
        %equal = arith.cmpi eq, %x, %y : tensor<256xi32>
        %other = arith.cmpi ne, %x, %fives : tensor<256xi32>
        %both = arith.andi %equal, %other : tensor<256xi1>
        %pick = arith.select %both, %x, %fives : tensor<256xi1>, tensor<256xi32>  -> i32
        """,
        {"x": x, "y": y},
    )
    np.testing.assert_array_equal(found["xor"], x ^ y)
    np.testing.assert_array_equal(found["left"], x << 5)
    np.testing.assert_array_equal(found["right"], x >> 5)
    np.testing.assert_array_equal(found["logical"], x.view(np.uint32) >> 3)
    np.testing.assert_array_equal(found["from"], np.int32(5) - x)
    np.testing.assert_array_equal(found["pick"], np.where((x == y) & (x != 5), x, 5))


def test_short_integers():
    x, y = integers(np.int16), integers(np.int16, 1)
    found = results(
        """
        %two = arith.constant 2 : i16
        %twos = tensor.splat %two : tensor<256xi16>
        %and = arith.andi %x, %y : tensor<256xi16>              -> i16
        %xor = arith.xori %x, %y : tensor<256xi16>              -> i16
        %left = arith.shli %x, %twos : tensor<256xi16>          -> i16
        %right = arith.shrsi %x, %twos : tensor<256xi16>        -> i16
        %logical = arith.shrui %x, %twos : tensor<256xi16>      -> i16
        %sum = arith.addi %x, %y : tensor<256xi16>              -> i16
        %less = arith.subi %x, %twos : tensor<256xi16>          -> i16
        %most = arith.maxsi %x, %twos : tensor<256xi16>         -> i16
        %float = arith.sitofp %x : tensor<256xi16> to tensor<256xf32>   -> f32
        """,
        {"x": x, "y": y},
    )
    np.testing.assert_array_equal(found["logical"], x.view(np.uint16) >> 2)
    np.testing.assert_array_equal(found["less"], x - np.int16(2))


def test_masks_and_conversions():
    x, y = floats(), floats(1)
    b = floats(2).astype(ml_dtypes.bfloat16)
    found = results(
        """
        %true = arith.constant dense<true> : tensor<256xi1>
        %zero = arith.constant dense<0.0> : tensor<256xf32>
        %p = arith.cmpf ogt, %x, %zero : tensor<256xf32>
        %q = arith.cmpf olt, %x, %y : tensor<256xf32>
        %either = arith.ori %p, %q : tensor<256xi1>
        %one = arith.xori %p, %q : tensor<256xi1>
        %not = arith.xori %p, %true : tensor<256xi1>
        %v = arith.select %either, %x, %y : tensor<256xi1>, tensor<256xf32>      -> f32
        %w = arith.select %one, %x, %zero : tensor<256xi1>, tensor<256xf32>      -> f32
        %u = arith.select %not, %b, %b : tensor<256xi1>, tensor<256xbf16>        -> bf16
        %bits = arith.bitcast %x : tensor<256xf32> to tensor<256xi32>            -> i32
        %back = arith.bitcast %bits : tensor<256xi32> to tensor<256xf32>         -> f32
        %whole = arith.fptosi %x : tensor<256xf32> to tensor<256xi32>            -> i32
        %short = arith.fptosi %x : tensor<256xf32> to tensor<256xi16>            -> i16
        %even = math.roundeven %x : tensor<256xf32>                              -> f32
        %down = math.floor %x : tensor<256xf32>                                  -> f32
        %up = math.ceil %x : tensor<256xf32>                                     -> f32
        %away = math.round %x : tensor<256xf32>                                  -> f32
        %cut = math.trunc %x : tensor<256xf32>                                   -> f32
        """,
        {"x": x, "y": y, "b": b},
    )
    with np.errstate(invalid="ignore"):
        positive = x > np.finfo(np.float32).tiny  # denormal numbers count as 0
        np.testing.assert_array_equal(found["w"], np.where(positive ^ (x < y), x, 0))
    np.testing.assert_array_equal(found["bits"], x.view(np.int32))
    assert found["whole"][9:14].tolist() == [2**31 - 1, -(2**31), 0, 2**31 - 1, -(2**31)]
    np.testing.assert_array_equal(found["even"], np.rint(x))


@pytest.mark.parametrize("predicate", ["slt", "sle", "sgt", "sge"])
def test_order_of_integers(predicate):
    ops = f"""
        %less = arith.cmpi {predicate}, %x, %y : tensor<256xi32>
        %z = arith.select %less, %x, %y : tensor<256xi1>, tensor<256xi32>   -> i32
        """
    inputs = {"x": integers(np.int32), "y": integers(np.int32, 1)}
    message = f"ascend910b compares i32 tiles for equality only, not '{predicate}'; values within 2\\^24 can be compared as f32"
    with pytest.raises(PipelineError, match=message):
        results(ops, inputs, targets=["ascend910b"])
    if predicate == "slt":
        np.testing.assert_array_equal(results(ops, inputs, targets=["ascend950"])["z"], np.minimum(*inputs.values()))


@pytest.mark.parametrize(("count", "group"), [(64, 8), (1024, 64), (4096, 4096)])
def test_minima(count, group):
    text = kernel(
        load("x", count, "f32")
        + f"""
        %v = "tile.reduce"(%x) {{kind = "min", group = {group} : i64}} : (tensor<{count}xf32>) -> tensor<{count // group}xf32>
        %e = "tile.extract"(%v, %c0) : (tensor<{count // group}xf32>, index) -> f32
        %s = tensor.splat %e : tensor<8xf32>"""
        + store("s", 8, "f32"),
        x_gm=f"{count}xf32", s_out="8xf32",
    )  # fmt: skip
    x = np.random.default_rng(group).normal(size=count).astype(np.float32)
    (s,) = agree(text, [x], targets=["ascend950"] if group == 8 else ["ascend910b"])
    assert s[0] == x[:group].min()


@pytest.mark.parametrize(
    ("ops", "message"),
    [
        ("%z = arith.shli %x, %x : tensor<256xi32> -> i32", "'arith.shli' on tiles takes one amount for all elements"),
        ("%m = arith.cmpi ult, %x, %x : tensor<256xi32>", "comparison 'ult' of i32 tiles has no counterpart"),
        ("%z = arith.remsi %x, %x : tensor<256xi32> -> i32", "'arith.remsi' on tiles has no counterpart"),
        ("%z = arith.constant dense<[1, 2]> : tensor<2xi32>", "a constant tile has one value for all elements"),
    ],
)
def test_refuses(ops, message):
    text = kernel(load("x", N, "i32") + ops.partition("->")[0], x_gm=f"{N}xi32")
    with pytest.raises(PipelineError, match=message):
        source(text, "ascend950")
