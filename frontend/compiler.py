"""`jascend.compile`: a JAX function as a program of generated Ascend C kernels."""

from __future__ import annotations

import functools
import os
import re
import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jascend import keys, libraries
from jascend.backends.ascend import compile as backend
from jascend.backends.ascend import cache, nibbles, project, report, toolkit, twin
from jascend.backends.ascend import device as npu
from jascend.backends.ascend.codegen.graph import RowsInCpp
from jascend.backends.ascend.codegen.op_host import entry_name, operator_type
from jascend.backends.ascend.plan import Launch, LibraryCall, Part, Plan, Reshape, TensorType
from jascend.backends.ascend.targets import target as target_of
from jascend.crossing import Traced, parse, trace
from jascend.errors import Unsupported
from jascend.passes.pipeline import PipelineError
from jascend.passes.plugins import Plugin, entry_points, load
from jascend.raising import RAISE_SAMPLING

_ROWS_OF_CALLERS = 16  # of programs for any batch, where there is no data to show the rows
STAGES = ("import", "fused", "tile", "ascendc")


class Program:
    """A compiled function. Call it with arrays of the shapes and dtypes it was compiled for.

    Attributes:
      kernels: the generated kernels, each with `name`, `source` and `tiling`.
      library_calls: the calls of CANN's libraries between them, each with `callee`, `operand_types` and `type`.
      constants: the arrays that belong to it: what the function captures, or computes from no argument.
      target: the product it was compiled for.
      remarks: what the passes decided, each with `pass_name`, `kind`, `text` and `position`; `explain` prints them.
    """

    def __init__(self, traced: Traced, compiled: backend.Compiled, target: str):
        self._traced, self._compiled = traced, compiled
        self.name = traced.name
        self.target = target
        self.kernels = tuple(compiled.kernels)
        self.library_calls = tuple(step for step in compiled.plan.steps if isinstance(step, LibraryCall))
        self.constants = traced.constants
        self._device: npu.Device | None = None
        self.remarks = (*traced.remarks, *compiled.remarks.records)

    def __repr__(self) -> str:
        kernels = ", ".join(kernel.name for kernel in self.kernels)
        return f"<jascend.Program {self.name} for {self.target}: {kernels}>"

    def __call__(self, *args, **kwargs):
        """Runs the kernels: on the NPU that `load` has given the program, else on the twin.

        Args: as the function's, with the shapes and dtypes it was compiled for.
        Returns: what the function returns, as JAX arrays.
        Raises:
          jascend.backends.ascend.device.DeviceError: a call on the device failed.
          TypeError, ValueError: the arguments differ from those it was compiled for.
          jascend.backends.ascend.twin.CompilerNotFound: there is no C++ compiler.
          RuntimeError: the twin's checker has findings; the text lists them.
        """
        if self._device is not None:
            return self._on_device(args, kwargs)
        return self._run(args, kwargs, _raise_findings)

    @property
    def device(self) -> str:
        """Where calls run: "twin", or "npu:" with a device's number."""
        return "twin" if self._device is None else f"npu:{self._device.number}"

    def load(self, package: str | os.PathLike, *, device: int = 0) -> None:
        """Installs a package that `build` made of this program beside its project: from now on, calls run on an NPU.

        Args: `package`: as `build` returns it; `device`: the number of the NPU.
        Raises:
          jascend.backends.ascend.toolkit.ToolkitNotFound, BuildFailed: the runtime is missing, or the package cannot be
            installed.
          jascend.backends.ascend.device.DeviceError: there is no such device, or a library or a function is missing.
        """
        home, package = toolkit.home(runtime=True), Path(package).resolve()
        vendor = toolkit.install(package.parent.parent, package) if self.kernels else None
        loaded = npu.Device(home, vendor, device)
        self.unload()
        self._device = loaded

    def unload(self) -> None:
        """Gives the NPU back: calls run on the twin again."""
        if self._device is not None:
            self._device, device = None, self._device
            device.close()

    def _on_device(self, args, kwargs):
        inputs = self._inputs(args, kwargs)
        plan, kernels = self._plan_for(inputs), {kernel.name: kernel for kernel in self.kernels}
        for step in plan.steps:
            if isinstance(step, Launch):  # what tiling refuses is refused before anything is copied
                kernels[step.kernel].on_cores(step, target_of(self.target).vector_cores)
        outputs = self._device.run(
            plan, inputs, {name: kernel.fill for name, kernel in kernels.items()},
            lambda step: step.rows(kernels[step.kernel].rows_of) == 0,
        )  # fmt: skip
        return self._returned(outputs)

    def profile(self, *args, cores: int | None = None, **kwargs) -> report.Report:
        """Runs the kernels on the twin with its cost model on.

        Args: as the function's. `cores` is the number of vector cores of the product, 40 for a 910B3: rows are dealt
          out to as many. None takes the target's.
        Returns: a `jascend.backends.ascend.report.Report`: time (of library calls, an estimate), bytes, pipes, the
          roofline of the operators, what the checker found, and `outputs`, what the program returns.
        Raises: as `__call__`, but for findings, which the report has.
        """
        kernels = []

        def observe(kernel: backend.Kernel, run: twin.Run) -> None:
            kernels.append(report.profile_kernel(run, self.target, name=kernel.name, cores=cores))

        outputs = self._run(args, kwargs, observe, trace=True, cores=cores)
        vector_cycles = report.operator_cycles(self.ir("fused"))
        steps = self._plan_for(self._inputs(args, kwargs)).steps
        calls = tuple(report.estimate(step, self.target, cores) for step in steps if isinstance(step, LibraryCall))
        bytes_once, cube = self._compulsory_bytes(args, kwargs, outputs), sum(call.cube_seconds for call in calls)
        bound = report.roofline(self.target, bytes_once, vector_cycles, cores, cube)
        return report.Report(self.name, self.target, tuple(kernels), bound, outputs, calls)

    def _compulsory_bytes(self, args, kwargs, outputs) -> int:
        """Each argument that a kernel or a library call reads, as far as it needs it, and each output, once."""
        inputs, fused = self._inputs(args, kwargs), self.ir("fused")
        needed = [0] * len(inputs)
        aliases = {i: i for i in range(self._compiled.plan.arguments)}  # reshapes and parts of arguments are they
        for step in self._compiled.plan.steps:
            if isinstance(step, Reshape | Part):
                aliases[step.result] = aliases.get(step.operand, -1)
                continue
            places = [aliases.get(i, -1) for i in step.operands]
            arrays = [inputs[i] if i >= 0 else None for i in places]
            parts = (
                report.needed_bytes(fused, step.kernel, arrays) if isinstance(step, Launch) else [None] * len(arrays)
            )
            for place, array, part in zip(places, arrays, parts):
                if array is not None:
                    needed[place] = max(needed[place], array.nbytes if part is None else part)
        return sum(needed) + sum(keys.words(x).nbytes for x in jax.tree.leaves(outputs))

    def _run(
        self,
        args,
        kwargs,
        observe: Callable,
        trace: bool = False,
        cores: int | None = None,
        keep: Callable | None = None,
    ):
        """Runs the plan on the twin, on as many cores. `observe` is called with each kernel and its run, `keep` with
        each kernel that ran, its inputs and its outputs."""
        arguments = self._inputs(args, kwargs)
        plan = self._plan_for(arguments)
        kernels = {kernel.name: kernel for kernel in self.kernels}

        def launch(step: Launch, operands: list[np.ndarray]) -> list[np.ndarray]:
            kernel = kernels[step.kernel]
            if cores is not None or plan is not self._compiled.plan:
                kernel = kernel.on_cores(step, cores or target_of(self.target).vector_cores)
            results = self._launch(kernel, step, operands, observe, trace)
            if keep is not None and kernel.blocks:
                keep(kernel, operands, results)
            return results

        outputs = plan.run(arguments, launch, _call_library)
        return self._returned(outputs)

    def _returned(self, outputs: list[np.ndarray]):
        """The plan's outputs as the function returns them."""
        arrays = [
            keys.wrapped(jnp.asarray(x.view(np.uint32) if wanted.dtype == np.uint32 else x), key)
            for x, wanted, key in zip(outputs, self._traced.results, self._traced.result_keys)
        ]
        return jax.tree.unflatten(self._traced.out_tree, arrays)

    def _inputs(self, args, kwargs) -> list[np.ndarray]:
        """What the plan takes: the arguments, then what is bound to the program."""
        return [_signed(x) for x in (*self._checked(args, kwargs), *self._traced.constants)]

    def _checked(self, args, kwargs) -> list[np.ndarray]:
        traced = self._traced
        leaves, tree = jax.tree.flatten((args, kwargs))
        if tree != traced.in_tree:
            raise TypeError(f"{self.name} was compiled for arguments of structure {traced.in_tree}, got {tree}")
        arrays, batch, rows = [], traced.batch, None
        for leaf, wanted, name, key in zip(leaves, traced.arguments, traced.names, traced.argument_keys):
            if key is not None and key == keys.implementation(leaf):
                leaf = keys.words(leaf)
            given = jax.typeof(leaf)
            shape, shown = wanted.shape, str(list(wanted.shape))
            if batch is not None:
                shown = batch.show(shape)
                if rows is None and shape[:1] == (batch.rows,) and given.shape:
                    rows = given.shape[0]
                    batch.check(self.name, name, rows)
                shape = batch.shape(shape, batch.rows if rows is None else rows)
            if (given.shape, given.dtype) != (shape, wanted.dtype):
                where = f" with {batch.symbol} = {rows}" if batch is not None and rows is not None else ""
                of = f", the words of a key of {key}" if key is not None else ""
                raise ValueError(
                    f"{self.name}: {name} must be {wanted.dtype}{shown}{of}{where}, as compiled, "
                    f"but is {given.dtype}{list(given.shape)}"
                )
            array = np.asarray(leaf, dtype=wanted.dtype, order="C")
            if isinstance(leaf, np.ndarray) and array.base is not None:
                array = array.copy()  # a view may overlap with another argument
            arrays.append(array)
        return arrays

    def _plan_for(self, arguments: Sequence[np.ndarray] | None) -> Plan:
        """The plan with the number of rows that the arguments have, see `_rows_of`."""
        batch, plan = self._traced.batch, self._compiled.plan
        if batch is None:
            return plan
        rows = self._rows_of(arguments)
        return plan.at(lambda shape: batch.shape(shape, rows))

    def _rows_of(self, arguments: Sequence[np.ndarray] | None) -> int:
        """The number of rows of a call; without one, that of programs that are written without data."""
        batch = self._traced.batch
        if arguments is not None:
            leading = (i for i, wanted in enumerate(self._traced.arguments) if wanted.shape[:1] == (batch.rows,))
            return arguments[next(leading)].shape[0]
        least = [bound.rows for kernel in self.kernels for bound in kernel.signature.least]
        rows = max(_ROWS_OF_CALLERS, batch.least, *least)
        return rows if batch.most is None else min(rows, batch.most)

    def _graph(self, run: tuple | None) -> project.Graph:
        """The whole program for a written project, with the rows of a run, if there was one,
        where it is not told others."""
        batch, any_rows = self._traced.batch, None
        constants = tuple(map(_signed, self._traced.constants))
        types = [TensorType(x.shape, _plan_dtype(x.dtype)) for x in (*self._traced.arguments, *constants)]
        if batch is not None:
            any_rows = RowsInCpp(batch.in_cpp, self._rows_of(None if run is None else run[0]))
        return project.Graph(self._compiled.plan, types, run, constants, any_rows)

    def _kernels_for(self, arguments: tuple | None) -> tuple[backend.Kernel, ...]:
        """The kernels as a call with these arguments launches them; without arguments, as they were compiled."""
        batch = self._traced.batch
        if batch is None:
            return self.kernels
        plan = self._plan_for(None if arguments is None else self._inputs(arguments, {}))
        launches = {step.kernel: step for step in plan.steps if isinstance(step, Launch)}
        cores = target_of(self.target).vector_cores
        return tuple(
            replace(
                kernel.on_cores(launches[kernel.name], cores),
                signature=replace(kernel.signature, rows=launches[kernel.name].rows(kernel.rows_of)),
            )
            for kernel in self.kernels
        )

    def _launch(
        self, kernel: backend.Kernel, step: Launch, operands: list[np.ndarray], observe: Callable, trace: bool
    ) -> list[np.ndarray]:
        results = [type_.filled(fill) for type_, fill in zip(step.types, kernel.fill)]
        if not kernel.blocks:  # no rows: there is nothing to launch
            return results
        arrays = [nibbles.pack(x) if nibbles.share_bytes(x.dtype) else x for x in (*operands, *results)]
        run = project.build_for_twin(kernel, self.target).launch(
            kernel.name, arrays, tiling=kernel.tiling_bytes, blocks=kernel.blocks,
            workspace_bytes=kernel.workspace_bytes, trace=trace,
        )  # fmt: skip
        observe(kernel, run)
        written = arrays[len(operands) :]
        return [nibbles.unpack(w, x) if nibbles.share_bytes(x.dtype) else w for w, x in zip(written, results)]

    def ir(self, stage: str) -> str:
        """The IR after a stage: "import" (level 1), "fused" (level 1, cut into kernels), "tile" or "ascendc"."""
        if stage not in STAGES:
            raise ValueError(f"stage must be one of {', '.join(STAGES)}, got {stage!r}")
        return self._compiled.stages[stage]

    def explain(self, details: bool = False) -> str:
        """What the passes decided and why, a line each, with the place in the source; with `details` also what matters
        to nobody but who works on the passes."""
        return backend.explain(remark for remark in self.remarks if details or not remark.detail)

    def write(
        self,
        directory: str | os.PathLike,
        project: str = "custom_op",
        *,
        soc: str | None = None,
        arguments: tuple | None = None,
    ) -> Path:
        """Writes the generated project. The same program gives the same bytes.

        Args:
          directory: where; made if it is not there. An earlier project there goes, and what it has no file for stays.
            While a project is not whole, it has no CMakeLists.txt.
          project: "custom_op": a complete operator package, each kernel an operator `Jascend...`: `op_host/`
            (definition; tiling and inference of shapes and dtypes, in C++), `op_kernel/`, CMake files with presets,
            `build.sh`, callers through aclnn in `test/`, and a prototype for `msopgen`. "direct": the light project, a
            program a kernel that launches it with `<<<>>>`, in one `.asc` file, and compares.
          soc: what the toolkit calls the product, where toolkits differ: for `ascend950`, "ascend950" (the default) or
            "ascend910_95" (older ones).
          arguments: arrays as for a call of the program. It runs on the twin, and what each kernel took and gave
            becomes the data of its caller, in `test/data/` (direct: `data/`). None: there is no data.
        Returns: the directory.
        Raises:
          jascend.errors.Unsupported: another kind of project, or a name that no toolkit has for the product.
          TypeError, ValueError, RuntimeError, CompilerNotFound: as a call of the program, where there are arguments.
        """
        return _write(self, directory, project, soc, arguments)

    def build(
        self, directory: str | os.PathLike, *, soc: str | None = None, arguments: tuple | None = None, jobs: int = 4
    ) -> Path:
        """Writes the custom operator project and builds it with CANN's compiler. Where there is an NPU, the package is
        loaded: calls then run there.

        Args: `directory`, `soc` and `arguments` as of `write`; `jobs`: how many to build at a time.
        Returns: the package, `build_out/custom_opp_<os>_<architecture>.run` in the directory.
        Raises:
          jascend.backends.ascend.toolkit.ToolkitNotFound: the toolkit, or a piece of it, is missing; the text lists
            all.
          jascend.backends.ascend.toolkit.BuildFailed: the build failed; the text has its last lines.
          As `write` and, where there is an NPU, `load` otherwise.
        """
        home = toolkit.home()  # before there is anything to clean up
        project = self.write(directory, soc=soc, arguments=arguments)
        package = toolkit.build(project.resolve(), soc=soc or target_of(self.target).socs[0], jobs=jobs)
        if npu.device_count(home):
            self.load(package)
        return package


def _plan_dtype(dtype: np.dtype) -> str:
    """Of an argument or a result in the plan: words have no sign there, see the pass `import`."""
    return "int32" if dtype == np.uint32 else dtype.name


def _signed(array: np.ndarray) -> np.ndarray:
    """An argument or a result as the plan has it."""
    return array.view(np.int32) if array.dtype == np.uint32 else array


def _call_library(step: LibraryCall, operands: list[np.ndarray]) -> np.ndarray:
    """The libraries are CANN's: on the host, JAX computes what they would."""
    return np.asarray(libraries.run(step.callee, operands, step.dims, step.transposed, step.type.dtype))


def _raise_findings(kernel: backend.Kernel, run: twin.Run) -> None:
    if run.findings:
        found = "\n".join(map(str, run.findings))
        raise RuntimeError(f"the twin's checker rejects kernel {kernel.name}:\n{found}")


def _write(program: Program, directory, kind: str, soc: str | None, arguments: tuple | None) -> Path:
    if kind not in project.KINDS:
        kinds = " or ".join(map(repr, project.KINDS))
        raise Unsupported("Program.write", "project", f"must be {kinds}, but is {kind!r}")
    socs = target_of(program.target).socs
    soc = socs[0] if soc is None else soc
    if soc not in socs:
        names = " or ".join(map(repr, socs))
        raise Unsupported("Program.write", "soc", f"must be {names} for {program.target}, but is {soc!r}")
    data: dict = {}
    run = None
    if arguments is not None:
        out = program._run(arguments, {}, _raise_findings, keep=lambda kernel, *io: data.setdefault(kernel.name, io))
        run = program._inputs(arguments, {}), [_signed(np.asarray(keys.words(x))) for x in jax.tree.leaves(out)]
    directory, target, why = Path(directory), target_of(program.target), program.explain()
    kernels = [project.for_toolkit(kernel, target, soc) for kernel in program._kernels_for(arguments)]
    stages = {stage: program.ir(stage) for stage in STAGES}
    if kind == "direct":
        return project.write_direct(directory, kernels, stages, target, why, data=data)
    return project.write(directory, kernels, stages, target, why, soc=soc, data=data, whole=program._graph(run))


def compile(  # noqa: A001
    fn: Callable, *args, target: str = "ascend910b", plugins=(), forbid=(), force=(), **kwargs
) -> Program:
    """Compiles a function for an Ascend product. The result is kept on disk, under `JASCEND_CACHE_DIR` or
    `~/.cache/jascend`, and found again for the same graph, target, plugins and version of jascend.

    Args:
      fn: a function of arrays, plain or jitted.
      *args, **kwargs: its arguments: arrays, or `jax.ShapeDtypeStruct`s. Their leading dimension may be a symbol of
        `jax.export.symbolic_shape`: the program then serves any batch.
      target: "ascend910b", "ascend910_93" or "ascend950".
      plugins: passes and operators of your own, in order: paths of `.py`, `.pdll` or `.mlir` files, modules, or names
        of installed modules, see docs/extending.md. Passes run on the imported graph, before the fusions that come with
        jascend, or on the level that they ask for. Those of installed packages (entry points in the group
        `jascend.passes`) take part unasked, before the others; None leaves these out, alone or as the first of several.
      forbid: names of passes that must not run: "raise-sampling", "fuse-sampling", "fuse-moe", "fuse-elementwise", or
        one of a plugin.
      force: names of passes that are to do what they can also where it does not pay by the model of cost.

    Returns:
      A `Program`.

    Raises:
      jascend.errors.Unsupported: the graph holds operations that no kernel computes; the text lists each with its line,
        and what was not raised to an operator. Or `target` or `forbid` has another name.
      jascend.errors.OperatorError: an operator's arguments break a limit of the target.
      jascend.passes.PluginError: a plugin cannot be loaded.
    """
    try:
        product = target_of(target)
    except ValueError as error:
        raise Unsupported("compile", "target", str(error)) from None
    loaded = _plugins(plugins)
    plugin_passes = list(dict.fromkeys(name for plugin in loaded for name in plugin.passes))
    forbid, force = _names(forbid), _names(force)
    optional = (RAISE_SAMPLING, *backend.FUSIONS, *plugin_passes)
    for what, names in (("forbid", forbid), ("force", force - forbid)):
        if not names.issubset(optional):
            unknown = ", ".join(map(repr, sorted(names.difference(optional))))
            raise Unsupported("compile", what, f"must name passes among {', '.join(optional)}, but has {unknown}")
    if force & forbid:
        both = ", ".join(map(repr, sorted(force & forbid)))
        raise Unsupported("compile", "force", f"and forbid exclude each other, but both have {both}")
    traced = trace(fn, args, kwargs, forbid, target)
    name = identifier(traced.name)

    batch = traced.batch
    any_rows = backend.AnyRows() if batch is None else backend.AnyRows(batch.rows, batch.most or 0)

    def build() -> backend.Compiled:
        return backend.compile_module(
            parse(traced),
            product,
            name=name,
            plugin_passes=plugin_passes,
            forbid=forbid,
            force=force,
            any_rows=any_rows,
        )

    try:
        compiled = cache.compiled(traced.text, target, name, loaded, build, forbid, force, any_rows)
    except PipelineError as error:
        missed = backend.explain(remark for remark in traced.remarks if remark.kind == "missed")
        text = f"{traced.name} cannot be compiled for {target}:\n{error}" + (f"\n{missed}" if missed else "")
        raise Unsupported("compile", None, text) from error
    if traced.batch is not None:
        _check_any_rows(traced, compiled)
    return Program(traced, compiled, target)


def _check_any_rows(traced: Traced, compiled: backend.Compiled) -> None:
    """Raises Unsupported where a kernel that has to do with the batch serves one number of rows only."""
    batch, fixed = traced.batch, {kernel.name for kernel in compiled.kernels if not kernel.signature.any_rows}
    for step in compiled.plan.steps:
        if not isinstance(step, Launch):
            continue
        sizes = [dim for type_ in (*step.operand_types, *step.types) for dim in type_.shape[1:]]
        leads = any(batch.leads(type_.shape) for type_ in step.types)
        if any(dim and dim % batch.rows == 0 for dim in sizes) or (leads and step.kernel in fixed):
            given = any(batch.leads(type_.shape) for type_ in step.operand_types)
            why = "where one row goes depends on how many there are" if given else "no operand has the rows"
            what = (
                f"{step.kernel} serves one number of rows only, not any {batch.symbol}: {why}. "
                "Compile the function for "
            )
            raise Unsupported("compile", None, f"{what}each number of rows, as `ja.jit` does")


def _names(given) -> frozenset[str]:
    return frozenset((given,) if isinstance(given, str) else given)


def _plugins(given) -> list[Plugin]:
    """The plugins of installed packages, where they take part, and those that a call names."""
    given = (given,) if given is None or isinstance(given, (str, os.PathLike, types.ModuleType)) else tuple(given)
    unasked = () if given[:1] == (None,) else entry_points()
    return [*unasked, *(load(plugin) for plugin in given if plugin is not None)]


_LONGEST_NAME = 80  # of a function, in the names of its kernels and their files


def identifier(name: str) -> str:
    """A C identifier in snake case for any name, one that CANN finds again from the operator's type."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    word = re.sub(r"_+", "_", re.sub(r"[^0-9A-Za-z]", "_", words)).strip("_").lower()[:_LONGEST_NAME].strip("_") or "fn"
    word = f"f{word}" if word[0].isdigit() else word
    while (found := entry_name(operator_type(word))) != word:
        word = found
    return word


def jit(fn: Callable | None = None, *, target: str = "ascend910b", plugins=(), forbid=(), force=()):
    """A function that compiles itself for an Ascend product, once per structure, shapes and dtypes of its arguments.

    Use as `ja.jit(fn, target=...)` or as the decorator `@ja.jit(target=...)`. The compiled kernels of the twin are kept
    on disk, under `JASCEND_CACHE_DIR` or `~/.cache/jascend`.
    """
    if fn is None:
        return functools.partial(jit, target=target, plugins=plugins, forbid=forbid, force=force)
    programs: dict = {}

    @functools.wraps(fn)
    def call(*args, **kwargs):
        leaves, tree = jax.tree.flatten((args, kwargs))
        key = (tree, tuple((jnp.shape(x), getattr(x, "dtype", None) or jnp.result_type(x)) for x in leaves))
        if key not in programs:
            options = {"target": target, "plugins": plugins, "forbid": forbid, "force": force}
            programs[key] = compile(fn, *args, **options, **kwargs)
        return programs[key](*args, **kwargs)

    return call
