"""Plugins: the sample package as a distribution of its own, patterns in files, and mistakes, which name their plugin."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from jascend.dialect import ASCEND
from jascend.passes import PluginError, load_plugin, opt, plugins, registry
from jascend.passes.lowerings import lowering

SAMPLE = Path(__file__).parent.parent / "examples" / "plugin"

GRAPH = """
func.func @f(%x: tensor<2x8xf32>, %p: tensor<2xf32>, %k: tensor<2xi32>) -> tensor<2x8xf32> {
  %v, %i = "ascend.sort"(%x) {descending = false} : (tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xi32>)
  %0 = "ascend.apply_top_k_top_p_with_sorted"(%v, %i, %p, %k, %x) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1>}
     : (tensor<2x8xf32>, tensor<2x8xi32>, tensor<2xf32>, tensor<2xi32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
"""


@pytest.fixture(autouse=True)
def own_registries(monkeypatch):
    registry.all_passes()
    monkeypatch.delenv("JASCEND_DEBUG", raising=False)
    for where, name in ((registry, "_passes"), (registry, "plugin_names"), (lowering, "_lowerings")):
        monkeypatch.setattr(where, name, dict(getattr(where, name)))
    added = set(ASCEND.added)
    yield
    for name in set(ASCEND.added) - added:
        ASCEND.forget(ASCEND.added[name][1])


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs `jascend-opt` on the graph with a plugin of this text; status, output and errors."""
    monkeypatch.chdir(tmp_path)
    Path("graph.mlir").write_text(GRAPH)

    def run(file, text, *words):
        Path(file).write_text(textwrap.dedent(text))
        flag = "--" + file.partition(".")[0].replace("_", "-")
        status = opt.main(["graph.mlir", "--plugin", file, *(words or [flag]), "--remarks"])
        return status, *capsys.readouterr()

    return run


# -- the sample package ---------------------------------------------------------------------------------------------

USE = """
import json, sys
import jax, jax.numpy as jnp, numpy as np
import jascend as ja
from jascend import cli
from jascend_repetition_penalty import repetition_penalty

def filtered(logits, seen, penalty, k):
    return ja.apply_top_k_top_p(repetition_penalty(logits, seen, penalty), None, k)

rng = np.random.default_rng(0)
arguments = (
    jnp.asarray(rng.normal(0, 3, (3, 2500)), jnp.bfloat16), jnp.asarray(rng.random((3, 2500)) < 0.3),
    jnp.asarray([1.5, 0.5, 1.0], jnp.float32), jnp.asarray([5, 2000, 100], jnp.int32),
)
fused, apart = ja.compile(filtered, *arguments), ja.compile(filtered, *arguments, plugins=None)
assert [len(fused.kernels), len(apart.kernels)] == [1, 2]
assert "fold-repetition-penalty: passed: rewrote 'ascend.repetition_penalty'" in fused.explain()
assert "fold-repetition-penalty" not in apart.explain()
forbidden = ja.compile(filtered, *arguments, forbid="fold-repetition-penalty")
assert len(forbidden.kernels) == 2
bits = lambda x: np.asarray(x).view(np.uint16)
assert (bits(fused(*arguments)) == bits(apart(*arguments))).all()
assert (bits(fused(*arguments)) == bits(jax.jit(filtered)(*arguments))).all()
rows = [x[:, None] for x in arguments[:3]]
assert (bits(jax.vmap(repetition_penalty)(*rows)[:, 0]) == bits(repetition_penalty(*arguments[:3]))).all()
try:
    repetition_penalty(arguments[0], arguments[1][:2], arguments[2])
except ja.errors.ParamInvalid as error:
    assert "repetition_penalty: seen must be bool like logits" in str(error)
specs = ["bf16[3,2500]", "bool[3,2500]:ones", "f32[3]:1.5", "i32[3]:100"]
words = [word for spec in specs for word in ("--spec", spec)]
sys.exit(cli.main(["report", "use.py:filtered", *words, "--compare", "baseline", "--json"]))
"""


def test_the_sample_package_as_a_distribution_of_its_own(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    shutil.copytree(SAMPLE, source, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    install = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "install", *install, "--target", target, source], check=True)
    (tmp_path / "use.py").write_text(USE.replace("sys.exit(", "if __name__ == '__main__':\n    sys.exit("))
    path = os.pathsep.join([str(target), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "use.py"], cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["launches"], report["baseline"]["launches"]) == (1, 2)
    assert report["speedup"] > 1


# -- patterns in files ----------------------------------------------------------------------------------------------


def test_patterns_in_pdll(run):
    status, out, err = run(
        "drop_sort.pdll",
        """\
        // The filter on the rows themselves needs no sort.
        Pattern {
          let root = op<ascend.apply_top_k_top_p_with_sorted>(v: Value, i: Value, p: Value, k: Value, x: Value) -> (t: Type);
          replace root with op<ascend.apply_top_k_top_p>(x, p, k) {operandSegmentSizes = attr<"array<i32: 1, 1, 1>">} -> (t);
        }
        """,
    )
    assert status == 0 and '"ascend.apply_top_k_top_p"(%arg0, %arg1, %arg2)' in out
    assert "drop-sort: passed: drop_sort.pdll changed the module: -1 'ascend.apply_top_k_top_p_with_sorted'" in err
    assert registry.find_pass("drop-sort").summary == "The filter on the rows themselves needs no sort."


def test_a_transform_script(run):
    status, out, _ = run(
        "mark.mlir",
        """\
        module attributes {transform.with_named_sequence} {
          transform.named_sequence @__transform_main(%root: !transform.any_op {transform.readonly}) {
            %sort = transform.structured.match ops{["ascend.sort"]} in %root : (!transform.any_op) -> !transform.any_op
            transform.annotate %sort "seen" : !transform.any_op
            transform.yield
          }
        }
        """,
    )
    assert status == 0 and '"ascend.sort"(%arg0) {descending = false, seen}' in out


def test_patterns_run_on_the_level_of_what_they_are_for(tmp_path):
    file = tmp_path / "tiles.mlir"
    file.write_text(
        "pdl.pattern : benefit(1) {\n %x = pdl.operand\n %t = pdl.type\n"
        ' %op = pdl.operation "tile.repeat"(%x : !pdl.value) -> (%t : !pdl.type)\n'
        " pdl.rewrite %op { pdl.replace %op with (%x : !pdl.value) }\n}\n"
    )
    assert load_plugin(file) == ("tiles",)
    assert registry.find_pass("tiles").stage == "tile"


SORT = "let root = op<ascend.sort>(x: Value) -> (a: Type, b: Type);"


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("bad.pdll", f"Pattern {{\n  {SORT}\n  replace root with x;\n}}\n",  # ends MLIR's process
         "graph.mlir:1:1: error: pass 'bad' of plugin 'bad.pdll' failed: MLIR gave up on it (SIGABRT)"),
        ("bad.pdll", f"Pattern {{\n  {SORT}\n  replace root with op<ascend.sort>(x) -> (a, b);\n}}\n",
         "pass 'bad' of plugin 'bad.pdll' failed: "),
        ("bad.pdll", "Pattern {\n  let x = op<a.b>(;\n}\n", "bad.pdll:2:19: error: cannot load plugin 'bad.pdll': expected expression"),
        ("bad.pdll", "Constraint C(v: Value);\nPattern {\n  let r = op<a.b>(x: Value);\n  C(x);\n  erase r;\n}\n",
         "bad.pdll:1:1: error: cannot load plugin 'bad.pdll': 'C' is native code"),
        ("bad.mlir", "module {\n", "bad.mlir:1:9: error: cannot load plugin 'bad.mlir': expected operation name"),
        ("bad.mlir", "module {}\n", "bad.mlir:1:1: error: cannot load plugin 'bad.mlir': it has neither a pattern nor"),
    ],
)  # fmt: skip
def test_mistakes_in_patterns(run, file, text, message):
    status, out, err = run(file, text)
    assert (status, out) == (1, "")
    assert message in err and "Traceback" not in err


# -- mistakes in Python ---------------------------------------------------------------------------------------------

HEAD = "from jascend.passes import rewrite\nfrom mlir import ir\nkept = []\n@rewrite('ascend.sort')\n"
OTHER = """\
def bad(op, r):
    with ir.Context():
        other = ir.Module.parse('func.func @g(%x: tensor<2x8xf32>) { return }')
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import no_such_module\n", "error: cannot load plugin 'bad.py': ModuleNotFoundError: No module named 'no_such_module'"),
        ("def f(:\n", "error: cannot load plugin 'bad.py': SyntaxError"),
        (HEAD + "def bad(op): pass\n", "TypeError: rewrite of 'ascend.sort' must take (op, rewriter), got bad(op)"),
        (HEAD.replace("'ascend.sort'", "print") + "def bad(op, r): pass\n", "TypeError: rewrite takes the name of an operation"),
        (HEAD.replace("'ascend.sort'", "'ascend.sort', -1") + "def bad(op, r): pass\n", "an integer from 0 to 65535, got -1"),
        (HEAD.replace("sort", "srot") + "def bad(op, r): pass\n",
         "error: pass 'bad' of plugin 'bad.py' has a rewrite of 'ascend.srot', which is no operation"),
        (HEAD + "def bad(op, r): 1 / 0\n", "bad.py:5:17: note: raised here"),
        (HEAD + "def bad(op, r):\n    kept.append(op)\n    return True\n",
         "error: pass 'bad' of plugin 'bad.py' failed: KeptHandle: 'kept' keeps an operation, value, block or region"),
        (HEAD + "def bad(op, r):\n    kept.append({'x': [op.x]})\n    return True\n", "KeptHandle: 'kept' keeps"),
        (HEAD + "def bad(op, r): op.operation.erase()\n", "ValueError: 'ascend.sort' cannot be erased: its results are still used"),
        (HEAD + "def bad(op, r): r.erase_op(op)\n", "ValueError: 'ascend.sort' cannot be erased: its results are still used"),
        (HEAD + "def bad(op, r): r.replace_op(op, op.x)\n",
         "has results tensor<2x8xf32>, tensor<2x8xi32> and cannot be replaced by values tensor<2x8xf32>"),
        ("import sys\nsys.exit(0)\n", "error: cannot load plugin 'bad.py': SystemExit: 0"),
        (HEAD + "def bad(op, r): raise SystemExit(3)\n", "error: pass 'bad' of plugin 'bad.py' failed: SystemExit: 3"),
        ("class Odd(Exception):\n    def __str__(self): return None\n" + HEAD + "def bad(op, r): raise Odd\n", "failed: Odd\n"),
        (HEAD + "def bad(op, r): return bad(op, r)\n", "failed: RecursionError: maximum recursion depth exceeded"),
        (HEAD + "def bad(op, r): yield op\n", "rewrite of 'ascend.sort' must be a plain function: a call of bad would only prepare"),
        (HEAD + "def bad(op, r): op.operation.parent.erase()\n",
         "'func.func' cannot be erased: it is, or has in it, what the function is called with"),
        (HEAD + "def bad(op, r): op.operation.block.operations[2].operation.erase()\n",
         "'func.return' cannot be erased at once: ask the rewriter, `erase_op`"),
        (HEAD + "def bad(op, r): op.operation.detach_from_parent()\n", "'ascend.sort' cannot be detached: move it"),
        (HEAD + "def bad(op, r): ir.Operation.create('no.such')\n", "no operation is called 'no.such'"),
        (HEAD + "def bad(op, r):\n    kept.append(r)\n    return len(kept) > 1 and kept[0].ip\n",
         "a rewriter serves the call that it is given to, which is over"),
        (HEAD + "def bad(op, r):\n    kept.append(r.ip)\n    return True\n", "KeptHandle: 'kept' keeps"),
        (HEAD + "def bad(op, r):\n    kept.append(iter(op.operation.block.operations))\n    return True\n", "KeptHandle: 'kept' keeps"),
        (HEAD + OTHER + "    op.operation.operands[0] = other.body.operations[0].arguments[0]\n", "BlockArgument of another context: build it"),
        (HEAD + OTHER + "    other.body.operations[0].operation.clone(r.ip)\n",
         "Operation of another context: build it in the context of the IR"),
        (HEAD + "def bad(op, r):\n    op.operation.attributes['descending'] = ir.UnitAttr.get()\n    return True\n",
         "graph.mlir:1:1: note: the IR is invalid after pass 'bad' of plugin 'bad.py'"),
    ],
)  # fmt: skip
def test_mistakes_in_rewrites(run, text, message):
    status, out, err = run("bad.py", text)
    assert (status, out) == (1, "")
    assert message in err and "bad.py" in err and "Traceback" not in err


def test_types_and_attributes_may_be_kept(run):
    status, _, err = run("bad.py", HEAD + "def bad(op, r):\n    kept.append(op.x.type)\n    return 'only looks'\n")
    assert status == 0 and "bad: missed: only looks" in err


@pytest.mark.parametrize(
    ("work", "message"),
    [
        ("store.function = module.regions[0].blocks[0].operations[0]", "KeptHandle: 'store' keeps"),
        ("store.functions = module.regions[0].blocks[0].operations", "KeptHandle: 'store' keeps"),
        ("module.erase()", "ValueError: 'builtin.module' cannot be erased: it is, or has in it, what the function is called with"),
        ("module.regions[0].blocks[0].operations[0].regions[0].blocks[0].erase_argument(0)",
         "ValueError: argument 0 of a block cannot be erased: it is still used"),
        ("raise BaseException('no')", "BaseException: no"),
    ],
)  # fmt: skip
def test_mistakes_in_whole_passes(run, work, message):
    text = f"""
        from dataclasses import dataclass
        from jascend.passes import register_pass
        class Store: pass
        store = Store()
        @register_pass("bad")
        @dataclass(frozen=True)
        class Bad:
            def run(self, module, remarks):
                {work}
    """
    status, _, err = run("bad.py", text)
    assert status == 1 and f"pass 'bad' of plugin 'bad.py' failed: {message}" in err and "Traceback" not in err


# -- operators ------------------------------------------------------------------------------------------------------

OPERATOR = """
from jascend.dialect import Op, Operand, Result, define
from jascend.passes import lowering
define(Op("test_copy", "A copy.", operands=(Operand("x", "tensor"),), results=(Result("out", "tensor"),), rule=lambda x: {rule}))
@lowering("ascend.test_copy", summary="Copies.")
def lower(op, site):
    {lower}
"""
KERNEL = """
func.func @f(%x: tensor<2x8xf32>) -> tensor<2x8xf32> attributes {ascend.kernel} {
  %0 = "ascend.test_copy"(%x) : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return %0 : tensor<2x8xf32>
}
"""


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"rule": "x", "lower": "raise KeyError('boo')"},
         "graph.mlir:3:8: error: the lowering of 'ascend.test_copy' of plugin 'copy.py' failed: KeyError: 'boo'"),
        ({"rule": "1 / 0", "lower": "pass"}, "'ascend.test_copy' op cannot be verified: its verification, in "),
        ({"rule": "x._replace(dtype='int32')", "lower": "pass"}, "op result 'out' must be int32[2, 8], got float32[2, 8]"),
    ],
)  # fmt: skip
def test_mistakes_in_operators(run, parts, message):
    Path("graph.mlir").write_text(KERNEL)
    status, out, err = run("copy.py", OPERATOR.format(**parts), "--lower-to-tile")
    assert (status, out) == (1, "")
    assert message in err and "Traceback" not in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("define(Op('Test', ''))", "the name of an operation is in snake case, without a dialect, got 'Test'"),
        ("define(Op('sort', ''))", "operation 'ascend.sort' is already defined, by this dialect"),
        ("define(Op('test_x', '', operands=(Operand('x', 'vector'),)))", "the type of operand 'x' must be one of any, tensor,"),
        ("lowering('ascend.sort', summary='')(lambda op, site: None)", "'ascend.sort' already has a lowering, in "),
        ("lowering('ascend.x', summary='')(lambda op: None)", "lowering of 'ascend.x' must take (op, site), got <lambda>(op)"),
    ],
)
def test_definitions_that_are_none(tmp_path, text, message):
    file = tmp_path / "bad.py"
    file.write_text(f"from jascend.dialect import *\nfrom jascend.passes import lowering\n{text}\n")
    with pytest.raises(PluginError) as caught:
        load_plugin(file)
    assert message in str(caught.value) and "bad.py" in str(caught.value)
    assert not ASCEND.defined_by(str(file)) and str(file) not in plugins.operator_files()
