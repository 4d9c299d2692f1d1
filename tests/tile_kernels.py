"""Kernels written as tiles, run twice: by the interpreter, and as generated Ascend C on the twin with its checker on."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from mlir import ir

import jascend.dialect
from jascend.backends.ascend import nibbles, twin
from jascend.backends.ascend.codegen import kernel as emitter
from jascend.backends.ascend.codegen import tiling
from jascend.passes.interpreter import run_kernel
from jascend.passes.lower_to_tile import KERNEL
from jascend.passes.pipeline import run_pipeline

TARGETS = ("ascend910b", "ascend950")


def interpreted(text: str, inputs: Sequence[np.ndarray], cores: int = 1) -> list[np.ndarray]:
    """The outputs of the kernel `@k`."""
    with jascend.dialect.make_context():
        return run_kernel(ir.Module.parse(text), "k", inputs, cores)


def source(text: str, target: str) -> emitter.KernelSource:
    """The Ascend C of the kernel `@k`."""
    with jascend.dialect.make_context():
        at = f"{{target={target}}}"
        passes = f"lower-to-ascendc{at},allocate-ub{at},insert-sync{at},verify-ascendc{at}"
        module = run_pipeline(ir.Module.parse(text), passes)
        op = next(op.operation for op in module.body.operations if KERNEL in op.operation.attributes)
        return emitter.emit(op, target=target, title="k")


def on_twin(text: str, inputs: Sequence[np.ndarray], like: Sequence[np.ndarray], target: str, cores: int = 1):
    """The outputs of the kernel `@k`, of the shapes of `like`; and the report of the run."""
    kernel = source(text, target)
    outputs = [np.frombuffer(b"\xff" * _bytes(x), np.uint8).copy() for x in like]
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / kernel.tiling_file).write_text(kernel.tiling_header)
        file = Path(directory) / "k.cpp"
        file.write_text(kernel.source)
        library = twin.build(file, include_dirs=(directory,), target=target)
        rows = inputs[0].shape[0]
        fields, blocks = kernel.shape.data(rows, cores), kernel.shape.blocks(rows, cores)
        scratch = kernel.shape.workspace_bytes(rows, cores)
        run = library.launch(
            "k", [*inputs, *outputs], tiling=tiling.pack(fields), blocks=blocks, workspace_bytes=scratch
        )
    assert not run.findings, run.describe()
    return [_of_bytes(output, x) for output, x in zip(outputs, like)], run.report


def agree(text: str, inputs: Sequence[np.ndarray], cores: int = 1, targets: Sequence[str] = TARGETS) -> list[np.ndarray]:
    """Runs the kernel both ways on every target; the outputs, which are the same bit for bit, payloads of NaN apart."""
    expected = interpreted(text, inputs, cores)
    for target in targets:
        actual, _ = on_twin(text, inputs, expected, target, cores)
        for number, (a, e) in enumerate(zip(actual, expected)):
            np.testing.assert_array_equal(_bits(a), _bits(e), err_msg=f"output {number} on {target}")
    return expected


def _bits(x: np.ndarray) -> np.ndarray:
    x = np.ascontiguousarray(x)
    unsigned = x.view(f"u{x.dtype.itemsize}").copy()
    if x.dtype.kind in "fV":
        with np.errstate(all="ignore"):
            unsigned[np.isnan(x.astype(np.float32))] = ~np.zeros((), unsigned.dtype)
    return unsigned


def _bytes(x: np.ndarray) -> int:
    """In a kernel's memory, where two 4-bit elements share a byte."""
    return x.size // 2 if nibbles.share_bytes(x.dtype) else x.nbytes


def _of_bytes(raw: np.ndarray, like: np.ndarray) -> np.ndarray:
    if nibbles.share_bytes(like.dtype):
        return nibbles.unpack(raw, like)
    return raw.view(like.dtype).reshape(like.shape)
