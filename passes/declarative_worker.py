"""The process that `declarative` runs patterns in: a question in JSON on stdin, the answer on stdout.
Needs nothing but MLIR."""

from __future__ import annotations

import json
import sys

from mlir import ir
from mlir import rewrite as mlir_rewrite
from mlir.dialects import irdl
from mlir.dialects.transform import interpreter

_MAIN = "__transform_main"
# Patterns that keep matching their own results would run for ever.
_ITERATIONS, _REWRITES = 20, 2_000


def answer(question: dict) -> dict:
    context = ir.Context()
    context.enable_multithreading(False)
    context.allow_unregistered_dialects = True
    notes: list[tuple[str, str, int, int]] = []

    def collect(diagnostic: ir.Diagnostic) -> bool:
        for each in (diagnostic, *diagnostic.notes):
            message = each.message.partition("\n")[0]
            if not message.startswith("see current operation"):
                notes.append((message, *_place(each.location)))
        return True

    context.emit_error_diagnostics = True  # of calls too: else they are but the text of an exception
    context.attach_diagnostic_handler(collect)
    try:
        with context, ir.Location.unknown():
            for text in question["irdl"]:
                irdl.load_dialects(ir.Module.parse(text))
            module = ir.Module.parse(question["module"])
            _apply(module, ir.Module.parse(question["script"]))
            module.operation.verify()
    except (ir.MLIRError, ValueError, RuntimeError) as error:  # the bindings raise any of them
        reason = notes[0][0] if notes else str(error).partition("\n")[0]
        return {"error": reason, "notes": notes}
    return {"module": module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True)}


def _apply(module: ir.Module, script: ir.Module) -> None:
    main = [op for op in script.body.operations if _symbol(op) == _MAIN]
    if main:
        interpreter.apply_named_sequence(module.operation, main[0], script)
    else:
        config = mlir_rewrite.GreedyRewriteConfig()
        config.max_iterations, config.max_num_rewrites = _ITERATIONS, _REWRITES
        mlir_rewrite.apply_patterns_and_fold_greedily(module, mlir_rewrite.PDLModule(script).freeze(), config)


def _symbol(op: ir.OpView) -> str | None:
    attributes = op.operation.attributes
    return ir.StringAttr(attributes["sym_name"]).value if "sym_name" in attributes else None


def _place(location: ir.Location) -> tuple[str, int, int]:
    while location.is_a_name():
        location = location.child_loc
    return (location.filename, location.start_line, location.start_col) if location.is_a_file() else ("", 0, 0)


if __name__ == "__main__":
    json.dump(answer(json.load(sys.stdin)), sys.stdout)
