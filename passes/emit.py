"""Writes kernels as Ascend C text.

Each kernel of the module, down to the `ascendc` dialect with addresses and synchronisation, becomes one source file and
one header with its tiling struct. Without a directory the text goes to standard output. The module stays as it is.

    jascend-opt kernel.mlir --lower-to-tile --lower-to-ascendc --allocate-ub --insert-sync --emit='directory=out' -o /dev/null

Before:

    "ascendc.exp"(%y, %x) : (memref<64xf32, "ub">, memref<64xf32, "ub">) -> ()

After:

    Exp(yLocal, xLocal, 64);
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from mlir import ir

from jascend.backends.ascend.targets import TARGETS

from .diagnostics import PassFailure, emit_error
from .lower_to_tile import KERNEL
from .registry import option, register_pass


@register_pass("emit")
@dataclass(frozen=True)
class Emit:
    target: str = option("ascend910b", "the product the text is for")
    directory: str = option("", "where the files go; empty: print the sources")

    def run(self, module: ir.Operation, remarks) -> None:
        from jascend.backends.ascend.codegen import kernel as emitter  # it imports passes

        if self.target not in TARGETS:
            emit_error(module, f"option 'target' of emit must be one of {', '.join(TARGETS)}, got '{self.target}'")
            raise PassFailure
        for op in module.regions[0].blocks[0].operations:
            if KERNEL not in op.operation.attributes:
                continue
            name = op.operation.attributes["sym_name"].value
            text = emitter.emit(op.operation, target=self.target, title=name)
            if not self.directory:
                sys.stdout.write(text.source)
                continue
            directory = Path(self.directory)
            directory.mkdir(parents=True, exist_ok=True)
            (directory / f"{name}.cpp").write_text(text.source, encoding="utf-8")
            (directory / text.tiling_file).write_text(text.tiling_header, encoding="utf-8")
            remarks.add(op, "passed", f"wrote {directory / name}.cpp")
