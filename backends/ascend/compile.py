"""The compiler behind the frontend: from a level-1 module to kernels as text, stage by stage."""

from __future__ import annotations

import gc
import io
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from jascend.dialect import make_context
from mlir import ir

from jascend.passes.diagnostics import Diagnostic, Remark, Remarks, collect, render
from jascend.passes.lower_to_tile import FILL, KERNEL, candidates, pass_buffers
from jascend.passes.lowerings.site import ANY_ROWS, ROWS_OF
from jascend.passes.pipeline import PipelineError, copy_of, run_pipeline
from jascend.passes.registry import find_pass

from .codegen import kernel as emitter
from .codegen import tiling
from .plan import Launch, Plan, TensorType, plan_of
from .signature import Signature, signature
from .targets import Target

# The passes of each stage. `program.ir(stage)` shows what a stage leaves behind.
_CLEAN = "symbol-dce,canonicalize,cse"
FUSIONS = ("fuse-sampling", "fuse-moe", "fuse-elementwise")


def _graph_stages(prefix: str, plugin_passes: Sequence[str], chosen: Callable[[str], str]) -> dict[str, str]:
    """The passes on the graph; `chosen` gives those that can be left out, decided by cost, or forced,
    as they are to run."""
    before, after = "".join(map(chosen, (*_at("graph", plugin_passes), *FUSIONS[:-1]))), chosen(FUSIONS[-1])
    return {
        "import": f"inline-calls,fold-scalars,canonicalize,call-libraries,import,{_CLEAN}",
        "fused": (
            f"{before}fold-transposes,remove-dead-ops,cluster-rows{{operands=true}},{after}outline-kernels{{prefix={prefix}}},"
            "symbol-dce"
        ),
    }


class AnyRows(NamedTuple):
    """The number that stands for any number of rows, or 0; and how many these are at most, or 0."""

    number: int = 0
    most: int = 0


_KERNEL_STAGES = ("tile", "ascendc")


def _kernel_stages(
    target: str, candidate: int, plugin_passes: Sequence[str], any_rows: AnyRows
) -> Iterator[tuple[str, str]]:
    on_tiles, on_buffers = ("".join(f"{name}," for name in _at(stage, plugin_passes)) for stage in _KERNEL_STAGES)
    passes = (
        f"lower-to-tile{{target={target} candidate={candidate} any-rows={any_rows.number} most-rows={any_rows.most}}},"
        f"{on_tiles}remove-dead-ops{{merge=false}},pipeline-loads{{target={target}}}",
        f"lower-to-ascendc{{target={target}}},{on_buffers}allocate-ub{{target={target}}},"
        f"insert-sync{{target={target}}},verify-ascendc{{target={target}}},outline-stages",
    )
    return zip(_KERNEL_STAGES, passes, strict=True)


def _at(stage: str, plugin_passes: Sequence[str]) -> list[str]:
    return [name for name in plugin_passes if find_pass(name).stage == stage]


@dataclass(frozen=True)
class Kernel:
    """One generated kernel.

    Attributes:
      name: of its entry function.
      parameters: its tensors, inputs before outputs.
      source: the Ascend C text; it includes `tiling_file`.
      tiling_file, tiling_header: the tiling struct's header.
      tiling: the tiling data of the launch that was compiled, by field.
      blocks: how many cores that launch uses.
      workspace_bytes: how much scratch memory it needs.
      shape: how these three follow from a launch's rows.
      rows_of: the parameter whose leading dimension is the rows that are dealt out to the cores.
      fill: for each output, what its elements hold that the kernel does not write.
      signature: shapes and dtypes of its tensors, for any number of rows.
    """

    name: str
    parameters: tuple[emitter.Parameter, ...]
    source: str
    tiling_file: str
    tiling_header: str
    tiling: dict[str, int]
    blocks: int
    workspace_bytes: int
    shape: tiling.Shape
    rows_of: int
    fill: tuple[int, ...]
    signature: Signature

    @property
    def tiling_bytes(self) -> bytes:
        return tiling.pack(self.tiling)

    @property
    def cores_wait(self) -> bool:
        """Whether its cores wait for each other, so that all of a launch have to run at the same time."""
        return "SyncAll();" in self.source

    def on_cores(self, launch: Launch, cores: int) -> Kernel:
        """The same kernel with the launch's rows dealt out to as many cores. Raises the operator's error for too few or
        too many rows."""
        rows = launch.rows(self.rows_of)
        self.signature.check_rows(self.name, rows)
        return self.of_rows(rows, cores)

    def of_rows(self, rows: int, cores: int) -> Kernel:
        """The same kernel with so many rows dealt out, be they too many or not."""
        return replace(
            self,
            tiling=self.shape.data(rows, cores),
            blocks=self.shape.blocks(rows, cores),
            workspace_bytes=self.shape.workspace_bytes(rows, cores),
        )


class Stages(Mapping[str, str]):
    """The text of modules by name. They are kept as bytecode and printed when they are asked for: to print a kernel
    takes a tenth of what it takes to compile it."""

    def __init__(self):
        self._bytecode: dict[str, bytes] = {}

    def add(self, name: str, module: ir.Module) -> None:
        stream = io.BytesIO()
        module.operation.write_bytecode(stream)
        self._bytecode[name] = stream.getvalue()

    def __getitem__(self, name: str) -> str:
        context = make_context()
        context.allow_unregistered_dialects = True
        return str(ir.Module.parse(self._bytecode[name], context))

    def __iter__(self) -> Iterator[str]:
        return iter(self._bytecode)

    def __len__(self) -> int:
        return len(self._bytecode)


@dataclass
class Compiled:
    """What the compiler hands over: the IR after each stage, the kernels, how to run them,
    and why it looks like that."""

    stages: Stages = field(default_factory=Stages)
    kernels: list[Kernel] = field(default_factory=list)
    plan: Plan | None = None
    remarks: Remarks = field(default_factory=Remarks)


@contextmanager
def _no_collections() -> Iterator[None]:
    """The passes leave few cycles behind, and a full collection goes through all that JAX keeps:
    0.1 s, now and then."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@_no_collections()
def compile_module(
    module: ir.Module,
    target: Target,
    *,
    name: str,
    plugin_passes: Sequence[str] = (),
    forbid: Collection[str] = (),
    force: Collection[str] = (),
    any_rows: AnyRows = AnyRows(),
) -> Compiled:
    """Compiles a module as it came from JAX; `plugin_passes` run each at its stage, on the graph before our own
    fusions, those in `forbid` not at all; those in `force` keep what they do also where it does not pay. `any_rows` is
    what stands for any number of rows. Raises `PipelineError` with the diagnostics where a pass refuses."""
    attempt = partial(_compile, module, target, name, plugin_passes, forbid, force, any_rows)
    try:
        return attempt(partial(run_pipeline, verify_each=False))
    except PipelineError:
        return attempt(run_pipeline)  # fails too, and knows which pass left IR that is wrong


def _compile(
    module: ir.Module,
    target: Target,
    name: str,
    plugin_passes: Sequence[str],
    forbid: Collection[str],
    force: Collection[str],
    any_rows: AnyRows,
    run: Callable[..., ir.Module],
) -> Compiled:
    """As `compile_module`; `run` runs a pipeline."""

    def chosen(name: str) -> str:
        if name in forbid:
            return ""
        options = f"target={target.name} force={str(name in force).lower()} any-rows={any_rows.number}"
        by_cost = f"{{{options}}}" if find_pass(name).by_cost else ""
        return f"{name}{by_cost},"

    compiled = Compiled()
    plugin_passes = [name for name in plugin_passes if name not in forbid]
    for stage, pipeline in _graph_stages(f"jascend_{name}", plugin_passes, chosen).items():
        module = run(module, pipeline, remarks=compiled.remarks)
        compiled.stages.add(stage, module)
    compiled.plan = plan_of(_function(module, "main"))
    fused, module = module, _lower_kernels(module, target, compiled, plugin_passes, any_rows, run)
    launches = {step.kernel: step for step in compiled.plan.steps if isinstance(step, Launch)}
    with collect(module.context) as problems:
        try:
            for op in module.body.operations:
                if _is_kernel(op):
                    kernel_name = op.operation.attributes["sym_name"].value
                    outlined = _function(fused, kernel_name).operation
                    compiled.kernels.append(_kernel(op.operation, outlined, launches[kernel_name], target))
        except Exception as error:
            if problems:
                raise PipelineError("emit", problems) from error
            raise
    return compiled


def _lower_kernels(
    module: ir.Module,
    target: Target,
    compiled: Compiled,
    plugin_passes: Sequence[str],
    any_rows: AnyRows,
    run: Callable[..., ir.Module],
) -> ir.Module:
    """Down to Ascend C, kernel by kernel: what one of them has no room for is nothing to the others."""
    names = [op.operation.attributes["sym_name"].value for op in module.body.operations if _is_kernel(op)]
    lowered = [_lower_kernel(module, name, target, compiled.remarks, plugin_passes, any_rows, run) for name in names]
    for stage in _KERNEL_STAGES:
        whole = copy_of(module)
        with whole.operation.location:
            for name in names:
                pass_buffers(whole.operation, name)
        for name, stages in zip(names, lowered):
            old = _function(whole, name).operation
            for op in [*stages[stage].body.operations]:  # the kernel, and the functions of its stages
                op.operation.move_before(old)
            old.erase()
        compiled.stages.add(stage, whole)
    return whole


def _lower_kernel(
    module: ir.Module,
    name: str,
    target: Target,
    remarks: Remarks,
    plugin_passes: Sequence[str],
    any_rows: AnyRows,
    run: Callable[..., ir.Module],
) -> dict[str, ir.Module]:
    """One kernel after each stage, with the first size of tiles whose buffers fit. What did not is told."""
    kernel = copy_of(module, lambda op: op.operation.attributes["sym_name"].value == name)
    last = len(candidates(_function(kernel, name).operation)) - 1
    for candidate in range(last + 1):
        of_candidate, stages, lowered = Remarks(), {}, kernel
        try:
            for stage, pipeline in _kernel_stages(target.name, candidate, plugin_passes, any_rows):
                lowered = stages[stage] = run(lowered, pipeline, remarks=of_candidate)
        except PipelineError as error:
            if error.pass_name != "allocate-ub":
                raise
            first = error.diagnostics[0]
            if candidate == last:
                note = Diagnostic("note", f"with the smallest of {last + 1} sizes of tiles", first.position)
                told = replace(first, notes=(note, *first.notes))
                raise PipelineError(error.pass_name, [told, *error.diagnostics[1:]]) from error
            what = f"size of tiles number {candidate + 1} of {last + 1}: {first.message}"
            remarks.records.append(Remark("allocate-ub", "missed", what, first.position, detail=candidate > 0))
        else:
            remarks.records += of_candidate.records
            return stages
    raise AssertionError("the last candidate returns or raises")


def _is_kernel(op: ir.OpView) -> bool:
    return KERNEL in op.operation.attributes


def _kernel(op: ir.Operation, outlined: ir.Operation, launch: Launch, target: Target) -> Kernel:
    """The kernel of a lowered function; `outlined` is what it was lowered from."""
    text = emitter.emit(op, target=target.name, title=_title(launch))
    rows_of, fill = op.attributes[ROWS_OF].value, tuple(op.attributes[FILL])
    names = [parameter.name for parameter in text.parameters]
    kernel = Kernel(
        text.name, text.parameters, text.source, text.tiling_file, text.tiling_header, {}, 0, 0,
        text.shape, rows_of, fill,
        signature(
            outlined, launch, names, rows_of, op.attributes[ANY_ROWS].value if ANY_ROWS in op.attributes else None,
        ),
    )  # fmt: skip
    return kernel.of_rows(launch.rows(rows_of), target.vector_cores)


def _title(launch: Launch) -> str:
    """The first line of the text: name, operands and results; the leading dimension, any number, is left open."""

    def show(types: tuple[TensorType, ...]) -> str:
        return ", ".join(f"{t.dtype}[{', '.join(['*', *map(str, t.shape[1:])][: len(t.shape)])}]" for t in types)

    return f"{launch.kernel}: {show(launch.operand_types)} -> {show(launch.types)}"


def _function(module: ir.Module, name: str) -> ir.OpView:
    return next(op for op in module.body.operations if op.operation.attributes["sym_name"].value == name)


def explain(remarks: Iterable[Remark]) -> str:
    """The decisions of the passes as text, a line each with the place in the user's source."""
    return render(remark.diagnostic() for remark in remarks).rstrip()
