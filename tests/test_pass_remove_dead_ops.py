"""`remove-dead-ops` keeps what a program does. What it removes is in filecheck/remove-dead-ops.mlir.

Random programs are compared before and after the pass by what they compute, as terms: the value of a store or a return
is the tree of ops behind it, where a load also tells which stores came before it.
"""

from __future__ import annotations

import functools

from hypothesis import given, settings
from hypothesis import strategies as st
from jascend.dialect import make_context
from jascend.passes import Remarks, run_pipeline
from mlir import ir

TILE, GM = "tensor<8xf32>", 'memref<?xf32, "gm">'
LINES = {
    "iota": '"tile.iota"() : () -> {tile}',
    "load": '"tile.load"(%gm, %n, %n) : ({gm}, index, index) -> {tile}',
    "add": "arith.addf {a}, {b} : {tile}",
    "mul": "arith.mulf {a}, {b} : {tile}",
    "exp": "math.exp {a} : {tile}",
}
STATEMENTS = st.recursive(
    st.tuples(st.sampled_from([*LINES, "store"]), st.integers(0, 99), st.integers(0, 99)),
    lambda inner: st.tuples(st.sampled_from(["for", "if"]), st.lists(inner, max_size=5), st.lists(inner, max_size=3)),
    max_leaves=20,
)


def program(statements: list) -> str:
    """A function that does the statements; operands are chosen among the tiles that are visible at the place."""
    lines: list[str] = []

    def emit(statements: list, visible: list[str]) -> str:
        visible = list(visible)
        for kind, first, second in statements:
            if kind in ("for", "if"):
                lines.append("scf.if %c {" if kind == "if" else f"scf.for %i{len(lines)} = %zero to %n step %one {{")
                emit(first, visible)
                if kind == "if":
                    lines.append("} else {")
                    emit(second, visible)
                lines.append("}")
                continue
            a, b = visible[first % len(visible)], visible[second % len(visible)]
            if kind == "store":
                lines.append(f'"tile.store"({a}, %gm, %n, %n) : ({TILE}, {GM}, index, index) -> ()')
                continue
            name = f"%v{len(lines)}"
            lines.append(f"{name} = {LINES[kind].format(a=a, b=b, tile=TILE, gm=GM)}")
            visible.append(name)
        return visible[-1]

    returned = emit(statements, ["%x"])
    constants = "%zero = arith.constant 0 : index\n%one = arith.constant 1 : index\n"
    body = "\n".join([*lines, f"return {returned} : {TILE}"])
    return f"func.func @f(%x: {TILE}, %gm: {GM}, %n: index, %c: i1) -> {TILE} {{\n{constants}{body}\n}}"


@functools.cache
def context() -> ir.Context:
    return make_context()


def effects(module: ir.Module) -> list:
    """What the function does, in order: its stores and its return, with the terms of what they use."""
    found: list = []
    terms: dict[ir.Value, tuple] = {}

    def visit(block: ir.Block, path: tuple) -> None:
        for argument in block.arguments:
            terms[argument] = ("argument", path, argument.arg_number)
        children = 0
        for op in (op.operation for op in block.operations):
            attributes = tuple(str(op.attributes[name]) for name in op.attributes)
            term = (op.name, attributes, *(terms[operand] for operand in op.operands))
            if op.name in ("tile.store", "func.return"):
                found.append((path, term))
            if op.name == "tile.load":
                term = (*term, path, len(found))
            for region in op.regions:
                before = len(found)
                for inner in region:
                    visit(inner, (*path, children))
                children += len(found) > before  # a loop without effects may be removed
            for result in op.results:
                terms[result] = term

    visit(module.body.operations[0].regions[0].blocks[0], ())
    return found


@settings(deadline=None, max_examples=100)
@given(st.lists(STATEMENTS, max_size=8))
def test_effects_stay(statements):
    module = ir.Module.parse(program(statements), context())
    result = run_pipeline(module, "remove-dead-ops")
    assert effects(result) == effects(module)


@settings(deadline=None, max_examples=50)
@given(st.lists(STATEMENTS, max_size=8))
def test_a_second_run_finds_nothing(statements):
    once = run_pipeline(ir.Module.parse(program(statements), context()), "remove-dead-ops")
    remarks = Remarks()
    run_pipeline(once, "remove-dead-ops", remarks=remarks)
    assert remarks.records == []


def test_the_comparison_notices_a_load_that_moved_over_a_store():
    load, store = ("load", 0, 0), ("store", 1, 0)
    before, after = (ir.Module.parse(program(p), context()) for p in ([load, store, load], [load, load, store]))
    assert effects(before) != effects(after)
