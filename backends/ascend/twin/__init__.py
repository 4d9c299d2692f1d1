"""A twin of the Ascend C runtime: compiles Ascend C kernels with the host's C++ compiler and runs them checked.

    library = twin.build("kernel.cpp", target="ascend910b")
    run = library.launch("my_kernel", [x, y], tiling=tiling_bytes, blocks=8)
    assert not run.findings, run.describe()

The headers in `include/` are ours, written from the public API reference; a kernel that compiles here is meant to
compile unchanged with CANN's compiler. What the checker looks at is in `include/twin/runtime/`.
"""

from jascend.backends.ascend.targets import TARGETS, Target
from jascend.backends.ascend.twin.library import PIPES, STEPS, Finding, Library, Run, Trace, build
from jascend.backends.ascend.twin.toolchain import CompileError, CompilerNotFound

__all__ = ["PIPES", "STEPS", "TARGETS", "CompileError", "CompilerNotFound", "Finding", "Library", "Run", "Target",
           "Trace", "build"]
