"""Pipelines as text and as data, and how they run."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jascend.dialect import make_context
from jascend.passes import (
    PassFailure,
    Pipeline,
    PipelineError,
    PipelineSyntaxError,
    Remarks,
    Timing,
    emit_error,
    ir_dumper,
    option,
    pipeline,
    register_pass,
    run_pipeline,
)
from mlir import ir
from mlir.passmanager import PassManager


@register_pass("test-options")
@dataclass(frozen=True)
class Options:
    count: int = option(1, "")
    ratio: float = option(0.5, "")
    enable_it: bool = option(False, "")
    text: str = option("", "")

    def run(self, module, remarks):
        remarks.add(module, "analysis", repr(self))


@register_pass("test-set")
@dataclass(frozen=True)
class Set:
    """Sets an attribute on what it runs on."""

    name: str = option("test.seen", "")

    def run(self, module, remarks):
        module.attributes[self.name] = ir.UnitAttr.get()


@register_pass("test-break")
@dataclass(frozen=True)
class Break:
    """Fails in the way it is told, or leaves IR that is invalid for upstream or for our dialects."""

    how: str = option("", "")

    def run(self, module, remarks):
        remarks.add(module, "missed", "about to break")
        func = module.regions[0].blocks[0].operations[0]
        if self.how == "emit":
            emit_error(func, "no good", notes=[(ir.Location.file("other.py", 7, 1), "because of this")])
        elif self.how == "fail":
            emit_error(func, "no good")
            raise PassFailure
        elif self.how == "fail-silently":
            raise PassFailure
        elif self.how == "raise":
            raise RuntimeError("a bug")
        elif self.how == "call":
            ir.Type.parse("no such type")
        elif self.how == "caught":
            try:
                ir.Type.parse("no such type")
            except ir.MLIRError:
                func.attributes["test.tried"] = ir.UnitAttr.get()
        elif self.how == "upstream":
            func.attributes["function_type"] = ir.TypeAttr.parse("() -> i64")
        elif self.how == "ours":
            with ir.InsertionPoint.at_block_begin(func.regions[0].blocks[0]), func.location:
                ir.Operation.create("tile.iota", results=[ir.Type.parse("tensor<8xi8>")])


FUNC = "func.func @f() -> i32 {\n  %0 = arith.constant 1 : i32\n  return %0 : i32\n}\n"


def parse(text: str) -> ir.Module:
    context = make_context()
    context.allow_unregistered_dialects = True  # for the attributes of `test-set`
    return ir.Module.parse(textwrap.dedent(text), context)


# -- text ------------------------------------------------------------------------------------------------------------

OURS = st.builds(
    lambda **options: pipeline.OurPass("test-options", Options(**options)),
    count=st.integers(),
    ratio=st.floats(allow_nan=False),
    enable_it=st.booleans(),
    text=st.text(),
)
UPSTREAM = st.sampled_from([
    pipeline.UpstreamPass("canonicalize"),
    pipeline.UpstreamPass("cse"),
    pipeline.UpstreamPass("canonicalize", "max-iterations=3 region-simplify=disabled"),
    pipeline.UpstreamPass("inline", "default-pipeline=canonicalize max-iterations=2"),
    pipeline.UpstreamPass("any(cse,canonicalize)"),
])  # fmt: skip
ELEMENTS = st.recursive(
    OURS | UPSTREAM,
    lambda inner: st.builds(
        pipeline.Nested,
        st.sampled_from(["func.func", "builtin.module", "gpu.module"]),
        st.lists(inner, max_size=3).map(tuple),
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(st.lists(ELEMENTS, max_size=4).map(tuple).map(Pipeline))
def test_text_parses_to_the_same_pipeline(generated):
    assert Pipeline.parse(str(generated)) == generated


@settings(deadline=None)
@given(st.text("abcdefgiklmnorstu-.,(){}=\"'\\ 01\n", max_size=40) | st.sampled_from(["cse", "any", "func.func"]))
def test_any_text_is_a_pipeline_or_a_syntax_error(text):
    try:
        parsed = Pipeline.parse(text)
    except PipelineSyntaxError as error:
        position = error.diagnostics[0].position
        assert position.file == "<pass-pipeline>"
        assert 1 <= position.line <= text.count("\n") + 1
    else:
        assert Pipeline.parse(str(parsed)) == parsed


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("cse", "builtin.module(cse)"),
        (" cse , func.func( canonicalize ) ", "builtin.module(cse,func.func(canonicalize))"),
        ("builtin.module()", "builtin.module()"),
        ("builtin.module(builtin.module(cse))", "builtin.module(builtin.module(cse))"),
        ("canonicalize{ max-iterations=3 }", "builtin.module(canonicalize{max-iterations=3})"),
        ("canonicalize{}", "builtin.module(canonicalize)"),
        ("test-options{count=1 ratio=0.5}", "builtin.module(test-options)"),  # the defaults
        ("test-options{enable_it=true}", "builtin.module(test-options{enable-it=true})"),
        ("test-options{enable-it=true count=-7}", "builtin.module(test-options{count=-7 enable-it=true})"),
        ("test-options{text='a b'}", 'builtin.module(test-options{text="a b"})'),
        (r'test-options{text="}\"{"}', r'builtin.module(test-options{text="}\"{"})'),
        ("test-options{text=x=y}", "builtin.module(test-options{text=x=y})"),
    ],
)
def test_printed_form(text, printed):
    assert str(Pipeline.parse(text)) == printed
    assert str(Pipeline.parse(printed)) == printed


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("", 0, "expected the name of a pass"),
        ("cse,", 4, "expected the name of a pass"),
        ("cse,,cse", 4, "expected the name of a pass"),
        ("cse cse", 4, "unexpected 'c' after the pipeline"),
        ("cse)", 3, "unexpected ')' after the pipeline"),
        ("builtin.module(cse),cse", 19, "unexpected ',' after the pipeline"),
        ("builtin.module(cse", 14, "missing ')'"),
        ("builtin.module(func.func(cse)", 14, "missing ')'"),
        ("cse{a=1", 3, "missing '}'"),
        ("test-options{text='}", 18, "missing closing quote"),
        ("test-option", 0, "no pass is called 'test-option'; did you mean 'test-options'?"),
        ("canonicalise", 0, "no pass is called 'canonicalise'; did you mean 'canonicalize'?"),
        ("func.func(cse,quixotic)", 14, "no pass is called 'quixotic'"),
        ("fun.func(cse)", 0, "no operation is called 'fun.func'"),
        ("func.fun(cse)", 0, "no operation is called 'func.fun'"),
        ("any(test-set)", 0, "pass 'test-set' cannot run on 'any'; name the operation"),
        ("any(func.func(test-set))", 0, "pass 'test-set' cannot run on 'any'; name the operation"),
        ("canonicalize{depth=3}", 0, "pass 'canonicalize': no such option depth"),
        ("func.func(convert-func-to-llvm)", 10, "pass 'convert-func-to-llvm': Can't add pass"),
        (
            "test-options{depth=3}",
            0,
            "pass 'test-options' has no option 'depth' (options: count, ratio, enable-it, text)",
        ),
        ("test-options{count=x}", 0, "option 'count' expects an integer, got 'x'"),
        ("test-options{ratio=x}", 0, "option 'ratio' expects a number, got 'x'"),
        ("test-options{enable-it=1}", 0, "option 'enable-it' expects true or false, got '1'"),
        ("test-options{count=1 text}", 21, "expected 'text=value'"),
    ],
)
def test_syntax_error(text, at, message):
    with pytest.raises(PipelineSyntaxError) as caught:
        Pipeline.parse(text)
    first, *quoted = str(caught.value).splitlines()
    assert first.startswith(f"<pass-pipeline>:1:{at + 1}: error: {message}")
    assert "\n".join(quoted) == f"{text}\n{' ' * at}^"


@pytest.mark.parametrize("name", pipeline.UPSTREAM_PASSES)
def test_suggested_upstream_passes_exist(name):
    def parses(anchor):
        try:
            return bool(PassManager.parse(f"{anchor}({name})", make_context()))
        except ValueError:
            return False

    assert any(map(parses, ("builtin.module", "func.func")))


# -- running ---------------------------------------------------------------------------------------------------------


def test_passes_run_in_order_on_what_they_are_nested_in():
    module = parse("func.func @f() { return }\nmodule { func.func @g() { return } }")
    result = run_pipeline(
        module, "test-set{name=t.a},builtin.module(test-set{name=t.b},func.func(test-set{name=t.c})),cse"
    )
    text = str(result)
    assert "module attributes {t.a} {" in text
    assert "module attributes {t.b} {" in text
    assert "func.func @g() attributes {t.c}" in text
    assert "func.func @f() {" in text


def test_the_argument_stays_as_it_was():
    module = parse("module @name attributes {t.kept = 1 : i32} { func.func @f() attributes {t.a} { return } }")
    before = str(module)
    result = run_pipeline(module, "test-set,func.func(test-set)")
    assert str(module) == before
    assert str(result) != before
    assert "module @name attributes {t.kept = 1 : i32, test.seen} {" in str(result)
    assert result.context == module.context


def test_locations_and_a_parsed_pipeline():
    module = parse('module { func.func @f() { return loc("model.py":3:4) } loc("model.py":1:2) } loc("model.py":1:1)')
    result = run_pipeline(module, Pipeline.parse("canonicalize"))
    assert result.operation.get_asm(enable_debug_info=True) == module.operation.get_asm(enable_debug_info=True)


def test_remarks_are_records_of_the_pass_that_made_them():
    remarks = Remarks()
    module = parse('module {} loc(callsite("f"("model.py":3:4) at "caller.py":1:1))')
    run_pipeline(module, "cse,test-options{count=2}", remarks=remarks)
    (remark,) = remarks.records
    assert (remark.pass_name, remark.kind, remark.location) == ("test-options", "analysis", "model.py:3:4")
    assert remark.text == "Options(count=2, ratio=0.5, enable_it=False, text='')"
    with pytest.raises(ValueError, match="remark kind must be one of passed, missed, analysis, got 'done'"):
        remarks.add(module.operation, "done", "")


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("fail", "-:1:1: error: no good"),
        ("emit", "-:1:1: error: no good\nother.py:7:1: note: because of this"),
        ("fail-silently", "<unknown>:0: error: pass 'test-break' failed"),
        (
            "raise",
            "<unknown>:0: error: pass 'test-break' failed: RuntimeError: a bug\n.*test_pass_pipeline.py:.*raised here",
        ),
        (
            "call",
            "<unknown>:0: error: pass 'test-break' failed: MLIRError: Unable to parse type:\nerror: \"no such type\"",
        ),
        ("upstream", "-:3:3: error: type of return operand 0 .*\n(.*\n)*.*invalid after pass 'test-break'"),
        (
            "ours",
            "-:1:1: error: 'tile.iota' op a ramp has elements .*\n.*: note: the IR is invalid after pass 'test-break'",
        ),
    ],
)
def test_failure_names_the_pass_and_carries_its_diagnostics(how, text, monkeypatch):
    monkeypatch.delenv("JASCEND_DEBUG", raising=False)
    remarks, timing, module = Remarks(), Timing(), parse(FUNC)
    with pytest.raises(PipelineError) as caught:
        run_pipeline(module, f"cse,test-break{{how={how}}},canonicalize", remarks=remarks, timing=timing)
    assert caught.value.pass_name == "test-break"
    assert re.match(text, str(caught.value))
    assert [d.severity for d in caught.value.diagnostics] == ["error"]
    assert [remark.text for remark in remarks.records] == ["about to break"]
    assert list(timing.seconds) == ["cse", "test-break"]
    assert str(module) == str(parse(FUNC))


def test_errors_that_a_pass_catches_are_its_own_business():
    assert "attributes {test.tried}" in str(run_pipeline(parse(FUNC), "test-break{how=caught}"))


def test_failure_of_an_upstream_pass():
    with pytest.raises(PipelineError, match="does not define a symbol table") as caught:
        run_pipeline(parse(FUNC), "func.func(cse,symbol-dce)")
    assert caught.value.pass_name == "symbol-dce"


def test_without_verify_each_the_result_is_verified():
    seen = []
    with pytest.raises(PipelineError, match="the IR is invalid after the pipeline"):
        run_pipeline(
            parse(FUNC), "test-break{how=ours},symbol-dce", verify_each=False,
            print_after_all=lambda name, op: seen.append((name, str(op))),
        )  # fmt: skip
    assert [("tensor<8xi8>" in text) for _, text in seen] == [True, True]


def test_handlers_of_the_caller_see_warnings_but_not_the_errors_that_are_raised():
    module, seen = parse(FUNC), []
    handler = module.context.attach_diagnostic_handler(lambda d: seen.append(d.message) or True)
    with pytest.raises(PipelineError):
        run_pipeline(module, "test-break{how=fail}")
    ir.Location.unknown(module.context).emit_error("after")
    handler.detach()
    assert seen == ["after"]


def test_print_after_all():
    stream = io.StringIO()
    with pytest.raises(PipelineError):
        run_pipeline(
            parse(FUNC),
            "func.func(cse),test-break{how=fail}",
            print_after_all=ir_dumper(stream, enable_debug_info=True),
        )
    dumps = re.split(r"^// -----// IR Dump After (.*) //----- //\n", stream.getvalue(), flags=re.MULTILINE)
    assert dumps[1::2] == ["cse", "test-break Failed"]
    assert dumps[2].startswith("func.func @f()")
    assert dumps[4].startswith("module {")
    assert "loc(" in dumps[2]


def test_timing_adds_up_runs_of_one_pass():
    timing = Timing()
    module = parse("func.func @f() { return }\nfunc.func @g() { return }")
    run_pipeline(module, "func.func(cse),test-set", timing=timing)
    assert list(timing.seconds) == ["cse", "test-set"]
    assert all(seconds > 0 for seconds in timing.seconds.values())
    timing = Timing({"a": 0.75})
    timing.add("b", 0.125)
    timing.add("b", 0.125)
    assert "\n  Total Execution Time: 1.0000 seconds\n" in timing.report()
    assert timing.report().endswith("    0.7500 ( 75.0%)  a\n    0.2500 ( 25.0%)  b\n    1.0000 (100.0%)  Total\n")


# -- what must hold of the process -----------------------------------------------------------------------------------


def python(program: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_handles_from_before_a_run_can_be_touched_after_it():
    """With the bindings alone this reads freed memory and takes the interpreter down."""
    run = python("""
        import gc
        from jascend.dialect import make_context
        from jascend.passes import run_pipeline
        from mlir import ir

        module = ir.Module.parse('''func.func @f() -> i32 {
          %one = arith.constant 1 : i32
          %two = arith.addi %one, %one : i32
          return %two : i32
        }''', make_context())
        one = module.body.operations[0].regions[0].blocks[0].operations[0]
        for _ in range(3):
            module = run_pipeline(module, "canonicalize,func.func(cse),remove-dead-ops")
            gc.collect()
        assert "arith.constant 2" in str(module) and "arith.constant 1" not in str(module)
        print(one, one.location, one.result.type, len(list(one.result.uses)))
    """)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == '%c1_i32 = arith.constant 1 : i32 loc("-":2:10) i32 2\n'


def test_passes_start_without_jax():
    run = python("""
        import sys
        import jascend.passes.opt
        assert "remove-dead-ops" in jascend.passes.all_passes()
        print(sorted(name for name in sys.modules if name.partition(".")[0] in ("jax", "jaxlib")))
    """)
    assert (run.returncode, run.stdout, run.stderr) == (0, "[]\n", "")


def test_no_context_outlives_its_module():
    run = python("""
        import gc
        from jascend.dialect import make_context
        from jascend.passes import PipelineError, Pipeline, run_pipeline
        from mlir import ir

        Pipeline.parse("cse")  # the context that names are checked in stays
        gc.collect()
        before = ir.Context._get_live_count()
        module = ir.Module.parse("func.func @f() { return }", make_context())
        result = run_pipeline(module, "canonicalize,remove-dead-ops")
        try:
            run_pipeline(result, "func.func(symbol-dce)")
        except PipelineError as error:
            print(error.pass_name)
        del module, result
        gc.collect()
        print(ir.Context._get_live_count() - before)
    """)
    assert (run.returncode, run.stdout, run.stderr) == (0, "symbol-dce\n0\n", "")
