"""Programs run without the twin, and their results beside those of JAX."""

import jascend.dialect
import jax
import numpy as np
from jascend import keys, libraries
from jascend.passes.interpreter import run_kernel
from mlir import ir


def on_tiles(program, *arguments):
    """The program's results, its kernels run by the interpreter of tiles: the twin costs a compilation each."""
    kernels = {kernel.name: kernel for kernel in program._kernels_for(arguments)}
    with jascend.dialect.make_context():
        module = ir.Module.parse(program.ir("tile"))

        def launch(step, operands):
            kernel = kernels[step.kernel]
            return run_kernel(
                module, step.kernel, operands, kernel.blocks, rows=step.rows(kernel.rows_of),
                leading=[type_.shape[0] for type_ in step.types],
            )  # fmt: skip

        def call(step, operands):
            return np.asarray(libraries.run(step.callee, operands, step.dims, step.transposed, step.type.dtype))

        words = (np.asarray(keys.words(argument)) for argument in jax.tree.leaves(arguments))
        arrays = [*(x.view(np.int32) if x.dtype == np.uint32 else x for x in words), *program.constants]
        return program._plan_for(arrays).run(arrays, launch, call)


def beside_jax(results, function, *arguments):
    """Each result of a program with that of the function in JAX; the two have one shape and dtype."""
    references = jax.tree.leaves(jax.jit(function)(*arguments))
    for actual, expected in zip(jax.tree.leaves(results), references, strict=True):
        assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
        yield actual, expected
