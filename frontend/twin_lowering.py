"""`with ja.lowering("twin"):` generated kernels inside `jax.jit`, on the CPU.

Inside the context, each operator of a jitted graph becomes a custom call that runs its generated kernel on the twin,
where XLA would have run the fallback; everything around it stays XLA's. The kernel is the one that `jascend.compile`
makes of the operator alone, for the shapes at hand.

The context is one of JAX's own (`jax.make_user_context`), so that `jax.jit` keeps what it compiled inside and outside
apart. What counts is where a function is lowered: at its first call, or at `.lower()`.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import traceback
from pathlib import Path

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
from jax.interpreters import mlir

from jascend import twin_partition
from jascend.backends.ascend import nibbles
from jascend.errors import Unsupported
from jascend.numerics import bits

_FFI_TARGET = "jascend_twin_launch"

# Whose lines are not the user's, beside this package's.
_LIBRARIES = tuple(Path(file).parent for file in (jax.__file__, jaxlib.__file__, functools.__file__))

# The target to generate kernels for, or None outside the context. Here, before any computation, because JAX may not be
# in use while a user context is made.
_context = jax.make_user_context(None)


@contextlib.contextmanager
def lowering(where: str, *, target: str = "ascend910b"):
    """Where the operators of functions that are jitted inside the context run. Also a decorator.

        with ja.lowering("twin"):
            tokens = jax.jit(next_token)(logits, p, k)

    Functions jitted before are compiled once more, and again for another `target`. Lowerings for other platforms than
    the CPU are as they were.

    Args:
      where: "twin": the generated Ascend C kernels, on the twin of the Ascend C runtime.
      target: the product whose kernels to generate: "ascend910b", "ascend910_93" or "ascend950".

    Raises:
      jascend.errors.Unsupported: another `where` or target; and from the jitted function, when it is compiled, an
        operator that no kernel is generated for.
      jascend.backends.ascend.twin.CompilerNotFound: from the jitted function, when there is no C++ compiler.
      jax.errors.JaxRuntimeError: from the jitted function's call, or where its results are first waited for, if the
        twin's checker has findings; the text lists them.
    """
    from jascend.backends.ascend.targets import TARGETS

    if where != "twin":
        raise Unsupported("lowering", "where", f"must be 'twin', but is {where!r}")
    if target not in TARGETS:
        raise Unsupported("lowering", "target", f"must be one of {', '.join(TARGETS)}, but is {target!r}")
    with _context(target):
        yield


def rule_of(primitive, fallback):
    """A lowering rule: the generated kernel of `primitive` inside the context, and the rule `fallback` outside it."""

    def rule(ctx, *operands, **params):
        target = _context.value
        if target is None or tuple(ctx.platforms or ctx.module_context.platforms) != ("cpu",):
            return fallback(ctx, *operands, **params)
        python = _line()

        def run(*operands):
            avals = tuple((operand.shape, operand.dtype) for operand in operands)
            return _kernels_of(primitive, avals, tuple(sorted(params.items())), target)(python, *operands)

        counts = twin_partition.row_dimensions(primitive.name, ctx.avals_in, params)
        if counts is not None and (over_devices := twin_partition.with_devices(ctx)) is not None:
            ctx, run = over_devices, twin_partition.over_rows(run, ctx.avals_in, counts, ctx.avals_out)
        return mlir.lower_fun(run, multiple_results=True)(ctx, *operands)

    return rule


def _line() -> str:
    """The user's line of the equation that is being lowered, such as "demo.py:24"; of an operator that is jitted as it
    is, the line that calls it. "" where there is none."""
    from jascend.passes.diagnostics import Position, users_line

    equation = jax.make_jaxpr(lambda x: -x)(0.0).eqns[0]  # traced meanwhile, it has the traceback of that equation
    traced = equation.source_info.traceback
    places = [(frame.file_name, frame.line_num) for frame in (traced.frames if traced else ())]
    places += [(frame.f_code.co_filename, line) for frame, line in traceback.walk_stack(None)]
    found = users_line(Position(file, line) for file, line in places if _may_be_users(file))
    return f"{Path(found.file).name}:{found.line}" if found.line else ""


def _may_be_users(file: str) -> bool:
    return file.endswith(".py") and not any(Path(file).is_relative_to(directory) for directory in _LIBRARIES)


@functools.lru_cache(maxsize=256)
def _kernels_of(primitive, avals, params, target: str):
    """`run(python, *operands) -> results`: the operator as calls of its kernels, which are built here. `python` is the
    line that calls it, which findings name."""
    # Not before they are needed: operators must not wait for MLIR and the compiler to load.
    from jascend.backends.ascend import compile as backend
    from jascend.backends.ascend import cache, project
    from jascend.backends.ascend.targets import target as target_of
    from jascend.crossing import parse, trace
    from jascend.passes.pipeline import PipelineError
    from jascend.raising import RAISE_SAMPLING

    if not all(isinstance(size, int) for shape, _ in avals for size in shape):
        shapes = ", ".join(f"{dtype}{list(shape)}" for shape, dtype in avals)
        message = f"kernels are generated for static shapes, but the operands are {shapes}, inside ja.lowering('twin')"
        raise Unsupported(primitive.name, None, message)

    def operator(*operands):
        return primitive.bind(*operands, **dict(params))

    product = target_of(target)
    specs = tuple(jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in avals)
    try:
        traced = trace(operator, specs, {}, forbid=(RAISE_SAMPLING,), target=target)
        compiled = cache.compiled(
            traced.text, target, "operator", (), lambda: backend.compile_module(parse(traced), product, name="operator")
        )
    except PipelineError as error:
        message = f"no kernel can be generated for it on {target}, as ja.lowering('twin') asks:\n{error}"
        raise Unsupported(primitive.name, None, message) from error
    _register_ffi_target()
    calls = {
        kernel.name: _ffi_attributes(kernel, project.build_for_twin(kernel, target), product)
        for kernel in compiled.kernels
        if kernel.blocks  # without rows there is nothing to launch
    }
    fills = {kernel.name: kernel.fill for kernel in compiled.kernels}

    def run(python, *operands):
        def launch(step, operands):
            if step.kernel not in calls:
                return [jnp.asarray(type_.filled(fill)) for type_, fill in zip(step.types, fills[step.kernel])]
            wanted = [jax.ShapeDtypeStruct(t.shape, jnp.dtype(t.dtype)) for t in step.types]
            types = [_packed_type(t) if nibbles.share_bytes(t.dtype) else t for t in wanted]
            operands = [_packed(x) if nibbles.share_bytes(x.dtype) else x for x in operands]
            results = jax.ffi.ffi_call(_FFI_TARGET, types)(*operands, python=python, **calls[step.kernel])
            return [_unpacked(x, t) if nibbles.share_bytes(t.dtype) else x for x, t in zip(results, wanted)]

        return compiled.plan.run(operands, launch)

    return run


def _packed_type(elements: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    """The bytes of elements of 4 bits, of which a kernel has an even number a row."""
    return jax.ShapeDtypeStruct((*elements.shape[:-1], elements.shape[-1] // 2), jnp.uint8)


def _packed(x: jax.Array) -> jax.Array:
    codes = bits.bytes_of_nibbles(x)
    return codes[..., 0::2] | codes[..., 1::2] << 4


def _unpacked(x: jax.Array, elements: jax.ShapeDtypeStruct) -> jax.Array:
    codes = jnp.stack([x & 15, x >> 4], axis=-1).reshape(elements.shape)
    return bits.nibbles_of_bytes(codes, elements.dtype)


def _ffi_attributes(kernel, library, product) -> dict:
    """What the FFI target is told of a launch. Paths, not addresses: see launch.cpp."""
    from jascend.backends.ascend.twin import toolchain

    return {
        "runtime": str(toolchain.runtime_object()),
        "library": str(library.path),
        "kernel": kernel.name,
        "tiling": np.frombuffer(kernel.tiling_bytes, np.uint8),
        "fill": np.array(kernel.fill).astype(np.uint8),  # 0 or -1: every byte of such an element is the same
        "blocks": np.int64(kernel.blocks),
        "workspace_bytes": np.int64(kernel.workspace_bytes),
        "arch": np.int64(product.npu_arch),
        "ub_bytes": np.int64(product.ub_bytes),
        "cores": np.int64(product.vector_cores),
    }


@functools.cache
def _register_ffi_target() -> None:
    """Builds the FFI target and makes it known to XLA. Raises CompilerNotFound where there is no C++ compiler."""
    from jascend.backends.ascend.twin import toolchain

    source = toolchain.INCLUDE.parent / "ffi" / "launch.cpp"
    arguments = ["-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-DNDEBUG", f"-I{toolchain.INCLUDE}"]
    arguments += [f"-I{jax.ffi.include_dir()}", str(source)]
    key = hashlib.sha256()
    # The version of the twin's headers and of the compiler, and the version of XLA's.
    for part in (toolchain.abi_name(), jaxlib.__version__, *arguments, source.read_text(encoding="utf-8")):
        key.update(part.encode() + b"\0")
    path = toolchain.compile_shared(key.hexdigest(), "ffi", arguments, "the twin's FFI target")
    handler = ctypes.CDLL(str(path)).jascend_twin_launch
    jax.ffi.register_ffi_target(_FFI_TARGET, jax.ffi.pycapsule(handler), platform="cpu")
