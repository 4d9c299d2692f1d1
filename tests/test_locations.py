"""Whatever is reported of a graph, on whatever level, names the user's line; and so does the generated text.

The functions below are compiled as they stand here. A comment at the end of a line marks it, for the case of that name.
"""

import importlib
import inspect
import re
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jascend.dialect import ASCEND
from jascend.passes.lowerings.lowering import forget_lowerings

import jascend as ja

S = jax.ShapeDtypeStruct
f32, i32, i8 = jnp.float32, jnp.int32, jnp.int8
ROWS, FILTER = [S((2, 64), f32)], [S((2, 3000), f32), S((2,), f32), S((2,), i32)]


# -- what passes report -------------------------------------------------------------------------------------------------


def factors(x):
    return jnp.linalg.cholesky(x[:, :2])  # import


def in_a_function_of_its_own(x):
    y = x + 1
    return factors(y)


def casts_what_no_kernel_writes(x):
    y = jnp.exp(x)
    return y.astype(jnp.int16)  # cast


def keeps_a_narrow_value(x):
    y = jnp.exp(x)
    z = y.astype(jnp.float8_e4m3fn)  # narrow
    return z


def loops(x):
    return jax.lax.while_loop(  # while
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x)
    )[1]


def sorts_long_rows(x):
    y = x * 2
    return ja.sort(y)  # sort


def scatters(x, i):
    @jax.jit
    def inner(x):
        return x.at[i].max(1.0)  # scatter

    return inner(x)


def plain(x):
    y = jnp.exp(x)
    return y * 2  # plugin


REFUSED = [
    (in_a_function_of_its_own, ROWS, "import", "unsupported operation 'cholesky'"),
    (casts_what_no_kernel_writes, ROWS, "cast", "unsupported operation 'convert_element_type'"),
    (keeps_a_narrow_value, ROWS, "narrow", "unsupported operation 'convert_element_type'"),
    (loops, ROWS, "while", "unsupported operation 'while'"),
    (sorts_long_rows, [S((1, 1 << 21), f32)], "sort", "'ascend.sort' is generated for a fixed row length"),
    (scatters, [S((64,), f32), S((3,), i32)], "scatter", "unsupported operation 'scatter-max'"),
]


def marked(mark):
    """`file:line` of each line of this file that ends in the mark."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    found = [f"{__file__}:{number}" for number, line in enumerate(lines, 1) if line.endswith(f"  # {mark}")]
    assert found, mark
    return found


@pytest.mark.parametrize(("function", "specs", "mark", "text"), REFUSED, ids=lambda x: getattr(x, "__name__", None))
def test_refusals(function, specs, mark, text):
    with pytest.raises(ja.errors.Unsupported) as caught:
        ja.compile(function, *specs)
    ((place, told),) = re.findall(r"^(\S+:\d+):\d+: error: (.*)", str(caught.value), re.MULTILINE)
    assert [place] == marked(mark) and told.startswith(text)


# -- what goes wrong below: mistakes that plugins make in their users' kernels --------------------------------------------

BREAKS = '''
from dataclasses import dataclass

from jascend.dialect import ASCENDC
from jascend.passes import register_pass, rewrite
from mlir import ir
from mlir.dialects import math


def ops(module, name):
    found = []
    module.walk(lambda op: found.append(op.operation) or ir.WalkResult.ADVANCE if op.name == name else ir.WalkResult.ADVANCE)
    return found


@rewrite("linalg.generic", pass_name="graph-raises")
def graph_raises(op, rewriter):
    raise KeyError("a mistake")


@rewrite("tile.store", pass_name="tile-raises")
def tile_raises(op, rewriter):
    raise KeyError("a mistake")


@rewrite("math.exp", pass_name="never-ends", stage="tile")
def never_ends(op, rewriter):
    rewriter.replace_op(op, math.exp(op.operand))


@rewrite("math.exp", pass_name="no-counterpart", stage="tile")
def no_counterpart(op, rewriter):
    rewriter.replace_op(op, math.erf(op.operand))


@rewrite("tile.load", pass_name="invalid-ir")
def invalid_ir(op, rewriter):
    if "seen" in op.attributes:
        return True
    op.attributes["seen"], op.attributes["pad"] = ir.UnitAttr.get(), ir.StringAttr.get("none")


@register_pass("synchronised", stage="ascendc")
@dataclass(frozen=True)
class Synchronised:
    def run(self, module, remarks):
        op = ops(module, "ascendc.exp")[0]
        with ir.InsertionPoint(op), op.location:
            ASCENDC.classes["PipeBarrier"].build(pipe="V")


@register_pass("overlaps", stage="ascendc")
@dataclass(frozen=True)
class Overlaps:
    def run(self, module, remarks):
        op = ops(module, "ascendc.exp")[0]
        with ir.InsertionPoint(op), op.location:
            ASCENDC.classes["BlockReduceSum"].build(op.operands[0], op.operands[0], repeat=1)


@register_pass("no-text", stage="ascendc")
@dataclass(frozen=True)
class NoText:
    def run(self, module, remarks):
        for op in ops(module, "ascendc.block_idx"):
            with ir.InsertionPoint.after(op), op.location:
                for use in list(op.results[0].uses):
                    use.owner.operands[use.operand_number] = math.ctpop(op.results[0])
'''
PASSES = {
    "graph-raises": "pass 'graph-raises' of plugin '.*' failed: KeyError: 'a mistake'",
    "tile-raises": "pass 'tile-raises' of plugin '.*' failed: KeyError: 'a mistake'",
    "never-ends": "'never-ends' of plugin '.*' reaches no fixpoint",
    "no-counterpart": "'math.erf' on tiles has no counterpart in the Ascend C API",
    "invalid-ir": "'tile.load' op ",
    "synchronised": "insert-sync runs on kernels without synchronisation",
    "overlaps": "'ascendc.block_reduce_sum' op writes bytes ",
    "no-text": "'math.ctpop' has no text in Ascend C",
}


@pytest.fixture(scope="module")
def breaks(tmp_path_factory):
    file = tmp_path_factory.mktemp("plugin") / "breaks.py"
    file.write_text(BREAKS, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name == "never-ends")) for name in PASSES]
)  # a pattern without an end is given half a minute
def test_mistakes_of_plugins(name, breaks, monkeypatch):
    monkeypatch.delenv("JASCEND_DEBUG", raising=False)
    monkeypatch.setattr("jascend.passes.rewriting._MAX_REWRITES", 20)
    with pytest.raises(ja.errors.Unsupported) as caught:
        ja.compile(plain, *ROWS, plugins=[None, breaks], forbid=set(PASSES) - {name})
    place, told = re.search(r"^(\S+:\d+):\d+: error: (.*)", str(caught.value), re.MULTILINE).groups()
    function = [f"{__file__}:{inspect.getsourcelines(plain)[1] + line}" for line in (1, 2)]
    assert place in function and re.match(PASSES[name], told), told
    if name.endswith("raises"):
        assert f"{breaks}:" in str(caught.value)  # the plugin's own line beside it


# -- what is said of a graph that compiles, and its text ------------------------------------------------------------------


def filters(logits, p, k):
    scaled = logits / 2  # filters: remark, text
    return ja.apply_top_k_top_p(  # filters: remark, text
        scaled, p, k,
    )


def samples(logits, p, k):
    drawn = ja.top_k_top_p_sample(logits, k, p)  # samples: remark, text
    return drawn.logits_select_idx + 1  # samples: remark, text


def routes(x, scores):
    chosen = ja.moe_gating_top_k(scores, 2, norm_type=1)  # routes: text
    return ja.moe_init_routing(x, chosen.expert_idx, expert_num=64, quant_mode=1), chosen.y  # routes: remark, text


def normalizes(x, weight):
    wide = x * weight  # normalizes: text
    mean = jnp.mean(wide * wide, -1, keepdims=True)  # normalizes: text
    return wide / jnp.sqrt(mean + 1e-6)  # normalizes: remark, text


def raises(logits, p):
    best, order = jax.lax.top_k(logits, logits.shape[1])
    share = jax.nn.softmax(best, axis=-1)
    kept = jnp.cumsum(share, -1) - share < jnp.clip(p, 1e-3, 1)[:, None]  # raises: text
    best = jnp.where(kept, best, -jnp.inf)
    return jnp.put_along_axis(jnp.full_like(logits, -jnp.inf), order, best, 1, inplace=False)  # raises: remark, text


def multiplies(x, w):
    y = x @ w  # multiplies: remark, text
    return jnp.exp(y)  # multiplies: remark, text


COMPILED = [
    (filters, FILTER, ()),
    (samples, FILTER, ()),
    (routes, [S((40, 64), f32), S((40, 64), f32)], ("fuse-moe",)),
    (normalizes, [S((4, 64), f32), S((64,), f32)], ()),
    (raises, FILTER[:2], ()),
    (multiplies, [S((4, 64), f32), S((64, 64), f32)], ()),
]


def check(function, program, where=__file__):
    """Every remark and every line of Python in the text is a marked one, and all that are marked are there."""
    lines = Path(where).read_text(encoding="utf-8").splitlines()
    marks = [(n, re.search(rf"  # {function.__name__}: (.*)", line)) for n, line in enumerate(lines, 1)]
    marked = {(where, n): mark[1] for n, mark in marks if mark}
    said = {remark.position[:2] for remark in program.remarks if not remark.detail}
    assert said == {place for place, mark in marked.items() if "remark" in mark}, program.explain()
    assert {remark.position[:2] for remark in program.remarks} <= set(marked), program.explain(details=True)
    text = {line for kernel in program.kernels for line in re.findall(r"// (\S+\.py:\d+)$", kernel.source, re.MULTILINE)}
    assert text == {f"{Path(where).name}:{n}" for n, mark in marks if mark and "text" in mark[1]}


@pytest.mark.parametrize(("function", "specs", "force"), COMPILED, ids=lambda x: getattr(x, "__name__", None))
def test_remarks_and_text(function, specs, force):
    check(function, ja.compile(function, *specs, force=force))


# -- operators of plugins -------------------------------------------------------------------------------------------------


def test_operator_of_a_plugin(tmp_path, monkeypatch):
    """The line that calls it, whether it stands in a file of its own or in the user's."""
    page = (Path(__file__).parent.parent / "docs" / "extending.md").read_text(encoding="utf-8")
    operator = re.search(r"```python\n# near_max.py\n(.*?)```", page, re.DOTALL)[1]
    model = "def model(x, d):\n    y = x * 2  # model: remark, text\n    return near_max(y, d)  # model: remark, text\n"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "near_max", raising=False)
    for files in ({"near_max": operator, "user": f"from near_max import near_max\n{model}"}, {"user2": f"{operator}\n{model}"}):
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
            module = importlib.import_module(name)
        try:
            check(module.model, ja.compile(module.model, *ROWS, S((2,), f32)), module.__file__)
        finally:
            for name in files:
                ASCEND.forget(str(tmp_path / f"{name}.py"))
                forget_lowerings(str(tmp_path / f"{name}.py"))
