"""The dialects: what their tables promise, IRDL, op classes, the verifier, the reference pages."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from mlir import ir

import jascend.dialect
from jascend.dialect import DIALECTS, definition
from jascend.dialect.__main__ import main as write_pages
from jascend.dialect.definition import Attribute, Dialect, Op, Operand, Result
from jascend.dialect.elements import type_name

ROOT = Path(__file__).parent.parent


@pytest.fixture
def context():
    with jascend.dialect.make_context() as context, ir.Location.unknown():
        yield context


@pytest.mark.parametrize("name", DIALECTS)
def test_the_reference_page_is_the_definition_s(name):
    """Regenerate with `python -m jascend.dialect docs/dialects`."""
    page = (ROOT / "docs" / "dialects" / f"{name}.md").read_text(encoding="utf-8")
    assert page == DIALECTS[name].reference()


def test_pages_are_written_where_asked(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for wrong in (["--help"], [], ["--pages"]):
        with pytest.raises(SystemExit):
            write_pages(wrong)
    assert not list(tmp_path.iterdir()) and "directory" in capsys.readouterr().out
    write_pages(["pages"])
    assert {page.stem for page in (tmp_path / "pages").iterdir()} == set(DIALECTS)


@pytest.mark.parametrize("name", DIALECTS)
def test_every_op_is_described(name):
    for op in DIALECTS[name].ops:
        assert op.summary.endswith((".", "`")) or op.summary[-1].isalnum(), op.name
        assert len({x.name for x in (*op.operands, *op.attributes)}) == len(op.operands) + len(op.attributes), op.name
        assert f"## `{name}.{op.name}`" in DIALECTS[name].reference()


@pytest.mark.parametrize("name", DIALECTS)
def test_every_op_is_known_to_mlir(name, context):
    for op in DIALECTS[name].ops:
        assert context.is_registered_operation(f"{name}.{op.name}")


FILECHECK = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "tests/filecheck/dialect").glob("*.mlir")}
OPS = [name for dialect in DIALECTS.values() for name in dialect.by_name]


@pytest.mark.parametrize("form", ["", " --mlir-print-op-generic"])
@pytest.mark.parametrize("name", OPS)
def test_every_op_has_a_round_trip(name, form):
    """A FileCheck test prints it, in either form, parses that again, and looks for the op."""
    pipe = rf"^// RUN: jascend-opt %s( --split-input-file --verify-diagnostics)?{form} \| jascend-opt( --split-input-file)? \| FileCheck"
    tests = [text for text in FILECHECK.values() if re.search(pipe, text, re.MULTILINE)]
    assert any(re.search(rf'// CHECK.*"{name}"', text) for text in tests)


@pytest.mark.parametrize("name", OPS)
def test_every_op_has_an_invalid_test(name):
    """One that expects an error, of its own, of the op."""
    error = re.compile(rf'// expected-error@below \{{\{{.+\}}\}}\n[^\n]*"{name}"\(')
    assert any(error.search(text) for text in FILECHECK.values() if "--verify-diagnostics" in text)


def test_every_vector_op_has_a_pipe_and_roles():
    for op in DIALECTS["ascendc"].ops:
        buffers = [operand for operand in op.operands if operand.type == "memref"]
        if buffers and op.name != "view":  # a view is no instruction
            assert op.pipe in ("S", "V", "MTE2", "MTE3"), op.name
            assert all(operand.role in ("in", "out", "inout") for operand in buffers), op.name


def test_optional_operands_and_attributes(context):
    classes = DIALECTS["ascend"].classes
    logits = ir.RankedTensorType.get([2, 8], ir.F32Type.get())
    counts = ir.RankedTensorType.get([2], ir.IntegerType.get_signless(32))
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        sources = ir.Operation.create("builtin.unrealized_conversion_cast", results=[logits, counts])
        x, k = sources.results
        op = classes["ApplyTopKTopP"].build(x, None, k, results=[logits])
    assert op.logits == x
    assert op.p is None
    assert op.k == k
    assert op.target is None
    assert isinstance(module.body.operations[1], classes["ApplyTopKTopP"])
    assert module.operation.verify()
    assert jascend.dialect.verify(module.operation)


def test_building_with_the_wrong_arguments(context):
    cls = DIALECTS["tile"].classes["Extract"]
    with pytest.raises(TypeError, match=r"tile.extract takes 2 operands \(x, position\), got 0"):
        cls.build(results=[ir.F32Type.get()])
    with pytest.raises(TypeError, match="tile.iota has no attribute first"):
        DIALECTS["tile"].classes["Iota"].build(results=[ir.F32Type.get()], first=3)


def test_a_dialect_of_one_s_own():
    """What a plugin does for an operator of its own: a table, and everything else follows."""

    def positive(op):
        if op.amount <= 0:
            raise definition.VerifyError(f"'amount' must be positive, got {op.amount}")

    mine = Dialect(
        "mine",
        "A dialect for a test.",
        (
            Op(
                "shift",
                "Adds a constant.",
                operands=(Operand("x", "tensor"),),
                attributes=(Attribute("amount", "integer"), Attribute("mode", "string", optional=True, values=("up", "down"))),
                results=(Result("y", "tensor"),),
                verify=positive,
            ),
        ),
    )
    irdl = mine.irdl()
    assert "irdl.operation @shift" in irdl
    assert '"amount" =' in irdl
    assert '"mode"' not in irdl  # IRDL has no optional attributes
    from mlir.dialects import irdl as irdl_dialect

    with ir.Context() as context, ir.Location.unknown():
        irdl_dialect.load_dialects(ir.Module.parse(irdl))
        messages = []
        context.attach_diagnostic_handler(lambda d: messages.append(d.message) or True)
        text = 'func.func @f(%x: tensor<4xf32>) {{ %0 = "mine.shift"(%x) {{{0}}} : (tensor<4xf32>) -> tensor<4xf32> return }}'
        for attributes, message in [
            ("amount = 0 : i64", "'mine.shift' op 'amount' must be positive, got 0"),
            ('amount = 1 : i64, mode = "left"', """'mine.shift' op attribute 'mode' must be one of "up", "down", got "left\""""),
            ("amount = 1 : i64, mode = 3 : i64", "'mine.shift' op attribute 'mode' must be a string attribute, got 3 : i64"),
        ]:
            module = ir.Module.parse(text.format(attributes))
            shift = module.body.operations[0].regions[0].blocks[0].operations[0].operation
            assert not mine.verify_op(shift)
            assert messages.pop() == message
        module = ir.Module.parse(text.format('amount = 2 : i64, mode = "up"'))
        shift = module.body.operations[0].regions[0].blocks[0].operations[0].operation
        assert mine.verify_op(shift)
        assert mine.classes["Shift"](shift).amount == 2


def test_no_jax():
    code = "import sys, jascend.dialect; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_verification_of_some_ops_only():
    with jascend.dialect.make_context() as context:
        module = ir.Module.parse(
            'func.func @f() { %x = "ascendc.local_tensor"() {name_hint = "x", offset = 4 : i64} : () -> memref<64xf32, "ub"> '
            "return }"
        )
        found = []
        context.attach_diagnostic_handler(lambda diagnostic: not found.append(diagnostic.message))
        assert jascend.dialect.verify(module.operation, ())
        assert jascend.dialect.verify(module.operation, ("ascendc.view",))
        assert found == []
        assert not jascend.dialect.verify(module.operation, ("ascendc.view", "ascendc.local_tensor"))
        assert not jascend.dialect.verify(module.operation)
        assert len(found) == 2


@pytest.mark.parametrize(
    "good, bad",
    [
        ('"ascendc.view"(%x, %zero)', '"ascendc.view"(%x, %four)'),
        ('"ascendc.view"(%x, %any)', '"ascendc.view"(%x, %four)'),
        ('"ascendc.local_tensor"() {name_hint = "y"}', '"ascendc.local_tensor"() {name_hint = "y", offset = 4 : i64}'),
    ],
)
def test_of_ops_that_look_alike_to_verification_one_is_checked(good, bad):
    types = '(memref<64xf32, "ub">, index)' if "view" in good else "()"
    with jascend.dialect.make_context() as context:
        ops = "\n".join(f'%{i} = {op} : {types} -> memref<32xf32, "ub">' for i, op in enumerate([good, good, bad, good, bad]))
        module = ir.Module.parse(f"""func.func @f(%any: index) {{
            %zero = arith.constant 0 : index
            %four = arith.constant 4 : index
            %x = "ascendc.local_tensor"() {{name_hint = "x"}} : () -> memref<64xf32, "ub">
            {ops}
            return
        }}""")
        found = []
        context.attach_diagnostic_handler(lambda diagnostic: not found.append(diagnostic.message))
        assert module.operation.verify()
        assert not jascend.dialect.verify(module.operation)
        assert len(found) == 2


def test_verification_by_a_plugin_looks_at_every_op():
    """It may ask for what no other one's does."""

    def has_a_constant(op):
        if op.x.owner.name != "arith.constant":
            raise definition.VerifyError("'x' must be a constant")

    mine = Op("asks_much", "", operands=(Operand("x", "index"),), verify=has_a_constant, side_effects=True)
    try:
        DIALECTS["ascend"].define(mine, "plugin.py")
        with jascend.dialect.make_context() as context:
            module = ir.Module.parse("""func.func @f() {
                %zero = arith.constant 0 : index
                %sum = arith.addi %zero, %zero : index
                "ascend.asks_much"(%zero) : (index) -> ()
                "ascend.asks_much"(%sum) : (index) -> ()
                return
            }""")
            found = []
            context.attach_diagnostic_handler(lambda diagnostic: not found.append(diagnostic.message))
            assert not jascend.dialect.verify(module.operation)
            assert found == ["'ascend.asks_much' op 'x' must be a constant"]
    finally:
        DIALECTS["ascend"].forget("plugin.py")


@pytest.mark.parametrize("text", ["f32", "bf16", "i8", "ui8", "si4", "i1", "f8E4M3FN", "f4E2M1FN", "index", "tensor<2xf32>"])
def test_names_of_types(text):
    with jascend.dialect.make_context():
        assert type_name(ir.Type.parse(text)) == text
