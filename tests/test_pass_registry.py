"""Registering passes and rewrites, and finding them."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

import pytest
from jascend.dialect import make_context
from jascend.passes import (
    PipelineError,
    PluginError,
    Remarks,
    all_passes,
    find_pass,
    load_plugin,
    option,
    register_pass,
    registry,
    rewrite,
    rewriting,
    run_pipeline,
)
from mlir import ir
from mlir.dialects import arith


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    all_passes()  # a module registers its passes once a process: they must not end up in the copy alone
    monkeypatch.setattr(registry, "_passes", dict(registry._passes))


def parse(text: str) -> ir.Module:
    context = make_context()
    context.allow_unregistered_dialects = True
    return ir.Module.parse(textwrap.dedent(text), context)


def ops(module: ir.Module) -> list[str]:
    return [str(op.operation) for op in module.body.operations]


# -- passes ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Example:
    tile_size: int = option(64, "elements")
    scale: float = option(1.0, "factor")
    fast: bool = option(True, "skip checks")
    target: str = option("ascend910b", "product")

    def run(self, module, remarks):
        pass


def test_what_is_known_of_a_pass():
    assert register_pass("an-example")(Example) is Example
    info = find_pass("an-example")
    assert Example.name == info.name == "an-example"
    assert info.summary == "Registering passes and rewrites, and finding them."
    assert [(o.name, o.type, o.default, o.doc) for o in info.options] == [
        ("tile-size", int, 64, "elements"),
        ("scale", float, 1.0, "factor"),
        ("fast", bool, True, "skip checks"),
        ("target", str, "ascend910b", "product"),
    ]


def test_options_from_text():
    register_pass("an-example")(Example)
    make = find_pass("an-example").make
    assert make({}) == Example()
    assert make({"tile-size": "-3", "scale": "1e-3", "fast": "false", "target": "x y"}) == Example(
        -3, 1e-3, False, "x y"
    )
    assert make({"tile_size": "3"}) == Example(3)
    with pytest.raises(ValueError, match="option 'tile-size' expects an integer, got '3.5'"):
        make({"tile-size": "3.5"})
    with pytest.raises(
        ValueError, match=r"pass 'an-example' has no option 'tile' \(options: tile-size, scale, fast, target\)"
    ):
        make({"tile": "3"})


class NotADataclass:
    def run(self, module, remarks):
        pass


@dataclass
class NotFrozen(NotADataclass):
    pass


@dataclass(frozen=True)
class NoRun:
    size: int = 1


@dataclass(frozen=True)
class NoDefault:
    size: int

    def run(self, module, remarks):
        pass


@dataclass(frozen=True)
class WrongType:
    sizes: tuple = ()

    def run(self, module, remarks):
        pass


@pytest.mark.parametrize(
    ("name", "cls", "error", "message"),
    [
        ("bad", NotADataclass, TypeError, "pass 'bad': NotADataclass must be a frozen dataclass"),
        ("bad", NotFrozen, TypeError, "pass 'bad': NotFrozen must be a frozen dataclass"),
        ("bad", NoRun, TypeError, "pass 'bad': NoRun has no method run"),
        ("bad", NoDefault, TypeError, "pass 'bad': option 'size' needs a default"),
        ("bad", WrongType, TypeError, "pass 'bad': option 'sizes' must be an int, str, bool or float"),
        ("Bad_Name", Example, ValueError, "a pass name is in kebab case, got 'Bad_Name'"),
        (
            "remove-dead-ops",
            Example,
            ValueError,
            "pass 'remove-dead-ops' of .* is already registered by .*remove_dead_ops.py",
        ),
    ],
)
def test_registration_error(name, cls, error, message):
    with pytest.raises(error, match=message):
        register_pass(name)(cls)


def test_passes_are_found_by_file_name():
    assert find_pass("remove-dead-ops").file.endswith("/passes/remove_dead_ops.py")
    assert find_pass("canonicalize") is None
    assert find_pass("registry") is None  # a module of ours without a pass
    assert find_pass("../opt") is None


def test_every_pass_of_ours_is_documented_and_in_the_file_of_its_name():
    ours = {name: info for name, info in all_passes().items() if "/passes/" in info.file}
    assert "remove-dead-ops" in ours
    for name, info in ours.items():
        assert info.file.endswith(f"/passes/{name.replace('-', '_')}.py")
        assert "Before:" in info.doc and "After:" in info.doc, name
        assert info.summary.endswith("."), name
        assert all(option.doc for option in info.options), name


# -- rewrites --------------------------------------------------------------------------------------------------------


def test_rewrite_runs_to_a_fixpoint():
    @rewrite("test.count")
    def count_to_fifty(op, rewriter):
        value = ir.IntegerAttr(op.attributes["n"])
        if value.value == 50:
            return True
        op.attributes["n"] = ir.IntegerAttr.get(value.type, value.value + 1)

    remarks = Remarks()
    result = run_pipeline(parse('"test.count"() {n = 3 : i64} : () -> ()'), "count-to-fifty", remarks=remarks)
    assert ops(result) == ['"test.count"() {n = 50 : i64} : () -> ()']
    assert [(r.pass_name, r.kind, r.text, r.location) for r in remarks.records] == [
        ("count-to-fifty", "passed", "rewrote 'test.count'", "-:1:1")
    ] * 47


def test_the_higher_benefit_is_tried_first():
    tried = []

    @rewrite("test.op", pass_name="choose")
    def plain(op, rewriter):
        tried.append("plain")
        rewriter.erase_op(op.operation)

    @rewrite("test.op", benefit=2, pass_name="choose")
    def special(op, rewriter):
        tried.append("special")
        return "special" not in op.attributes or rewriter.erase_op(op.operation)

    result = run_pipeline(parse('"test.op"() : () -> ()\n"test.op"() {special} : () -> ()'), "choose")
    assert ops(result) == []
    assert find_pass("choose").summary == "Registering passes and rewrites, and finding them."
    assert sorted(tried) == ["plain", "special", "special"]
    assert tried.index("special") < tried.index("plain")


def test_new_ops_go_before_the_old_one_and_get_its_location():
    @rewrite("arith.muli")
    def multiply_by_adding(op, rewriter):
        rewriter.replace_op(op, arith.AddIOp(op.lhs, op.rhs))

    module = parse("""
        func.func @f(%a: i32) -> i32 {
          %0 = arith.muli %a, %a : i32 loc("model.py":3:4)
          return %0 : i32
        }""")
    text = run_pipeline(module, "func.func(multiply-by-adding)").operation.get_asm(
        enable_debug_info=True, use_local_scope=True
    )
    assert 'arith.addi %arg0, %arg0 : i32 loc("model.py":3:4)' in text
    assert "arith.muli" not in text


def test_rewrite_that_does_not_match_changes_nothing():
    @rewrite("test.op")
    def never(op, rewriter):
        return True

    remarks = Remarks()
    module = parse('"test.op"() : () -> ()')
    assert str(run_pipeline(module, "never", remarks=remarks)) == str(module)
    assert remarks.records == []


def test_reason_for_not_matching_is_a_remark():
    @rewrite("test.op")
    def only_large(op, rewriter):
        size = ir.IntegerAttr(op.attributes["n"]).value
        if size < 8:
            return f"{size} elements are too few"
        rewriter.erase_op(op.operation)

    remarks = Remarks()
    module = parse('"test.op"() {n = 9 : i64} : () -> ()\n"test.op"() {n = 3 : i64} : () -> ()')
    assert ops(run_pipeline(module, "only-large", remarks=remarks)) == ['"test.op"() {n = 3 : i64} : () -> ()']
    assert [(r.kind, r.text, r.location) for r in remarks.records] == [
        ("passed", "rewrote 'test.op'", "-:1:1"),
        ("missed", "3 elements are too few", "-:2:1"),
    ]


def test_exception_in_a_rewrite_stops_it_and_is_a_diagnostic(monkeypatch):
    monkeypatch.delenv("JASCEND_DEBUG", raising=False)
    calls = []

    @rewrite("test.op")
    def explode(op, rewriter):
        calls.append(op)
        raise KeyError("boo")

    with pytest.raises(
        PipelineError, match="pass 'explode' failed: KeyError: 'boo'\n.*test_pass_registry.py:.*raised here"
    ):
        run_pipeline(parse('"test.op"() : () -> ()\n"test.op"() : () -> ()'), "explode")
    assert len(calls) == 1


def test_interrupt_in_a_rewrite_gets_through():
    @rewrite("test.op")
    def interrupted(op, rewriter):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_pipeline(parse('"test.op"() : () -> ()'), "interrupted")


def test_rewrite_without_end_is_stopped(monkeypatch):
    monkeypatch.setattr(rewriting, "_MAX_REWRITES", 100)

    @rewrite("test.op")
    def again(op, rewriter):
        rewriter.replace_op(op, ir.Operation.create("test.op"))

    with pytest.raises(PipelineError, match="'again' reaches no fixpoint: stopped after 100 rewrites") as caught:
        run_pipeline(parse('"test.op"() : () -> ()'), "again")
    assert caught.value.pass_name == "again"


# -- plugins ---------------------------------------------------------------------------------------------------------

PLUGIN = """
from jascend.passes import rewrite

@rewrite("test.op")
def drop_{what}(op, rewriter):
    "Drops {what}."
    rewriter.erase_op(op.operation)
"""


def test_plugin_is_replaced_when_loaded_again(tmp_path):
    file = tmp_path / "plugin.py"
    file.write_text(PLUGIN.format(what="this"))
    assert load_plugin(file) == ("drop-this",)
    assert find_pass("drop-this").summary == "Drops this."
    assert load_plugin(file) == ("drop-this",)
    assert len(find_pass("drop-this").make({}).rewrites) == 1
    file.write_text(PLUGIN.format(what="that_thing"))  # of another length: Python tells changed files by time and size
    assert load_plugin(file) == ("drop-that-thing",)
    assert find_pass("drop-this") is None


def test_plugin_cannot_take_the_name_of_a_pass_there_is(tmp_path):
    (tmp_path / "one.py").write_text(PLUGIN.format(what="this"))
    (tmp_path / "two.py").write_text(PLUGIN.format(what="this"))
    load_plugin(tmp_path / "one.py")
    with pytest.raises(PluginError, match=r"two.py:1:1: error: cannot load plugin .* already registered by .*one.py"):
        load_plugin(tmp_path / "two.py")
    assert find_pass("drop-this").file == str(tmp_path / "one.py")


def test_plugin_that_fails_leaves_nothing_behind(tmp_path):
    (tmp_path / "half.py").write_text(PLUGIN.format(what="half") + "\n1 / 0\n")
    with pytest.raises(PluginError, match="ZeroDivisionError: division by zero") as caught:
        load_plugin(tmp_path / "half.py")
    assert caught.value.diagnostic.notes[0].position == (str(tmp_path / "half.py"), 9, 1)
    assert find_pass("drop-half") is None


@pytest.mark.parametrize("name", ["missing.py", "passes.txt", "."])
def test_plugin_that_is_no_file_of_a_known_kind(tmp_path, name):
    (tmp_path / "passes.txt").write_text("")
    with pytest.raises(PluginError, match="no such file"):
        load_plugin(tmp_path / name)
