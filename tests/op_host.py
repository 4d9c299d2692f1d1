"""The host side of generated operator projects, compiled against the stand-ins of `data/op_host`."""

import ctypes
import subprocess
from pathlib import Path

from jascend.backends.ascend.twin.toolchain import compiler

DATA = Path(__file__).parent / "data" / "op_host"
SUCCESS, FAILED, PARAM_INVALID = 0, 0xFFFFFFFF, 50331649
WARNINGS = ("-std=c++17", "-Wall", "-Wextra", "-Wconversion", "-Werror")
SYSTEM_WORKSPACE = 16 << 20  # what the stand-in of the platform says

#: ge::DataType
DTYPES = {
    "float32": 0, "float16": 1, "int8": 2, "int32": 3, "uint8": 4, "int16": 6, "int64": 9, "bool": 12, "bfloat16": 27,
    "int4": 29, "float8_e5m2": 35, "float8_e4m3fn": 36, "float8_e8m0fnu": 37, "float4_e2m1fn": 40,
}  # fmt: skip


class Tiled(ctypes.Structure):
    _fields_ = [
        ("workspace", ctypes.c_uint64), ("data_size", ctypes.c_uint64), ("blocks", ctypes.c_uint32),
        ("schedule_mode", ctypes.c_uint32), ("data", ctypes.c_uint32 * 16),
    ]  # fmt: skip


def _flat(shapes):
    numbers = [n for shape in shapes for n in (len(shape), *shape)]
    return (ctypes.c_int64 * max(1, len(numbers)))(*numbers)


class Host:
    """One operator's host functions."""

    def __init__(self, source: Path, library: Path):
        # Hidden, so that operators which are loaded at the same time do not share the stand-ins' registry.
        command = [
            *compiler(),
            *WARNINGS,
            "-O0",
            "-fPIC",
            "-fvisibility=hidden",
            "-shared",
            "-I",
            str(DATA / "include"),
            "-o",
            str(library),
        ]
        done = subprocess.run([*command, str(source), str(DATA / "driver.cpp")], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        self.library = ctypes.CDLL(str(library))
        for function in (self.library.Tiling, self.library.InferShapes, self.library.InferDataTypes):
            function.restype = ctypes.c_uint32

    def definition(self) -> list[str]:
        text = ctypes.create_string_buffer(1 << 16)
        length = self.library.Definition(text, ctypes.c_size_t(len(text)))
        return text.raw[:length].decode().splitlines()

    def tiling(self, inputs, outputs, cores, capacity=2048):
        """The status and, where it is a success, block dimension, fields, workspace and schedule mode."""
        tiled = Tiled()
        status = self.library.Tiling(
            _flat(inputs), ctypes.c_size_t(len(inputs)), _flat(outputs), ctypes.c_size_t(len(outputs)),
            ctypes.c_uint32(cores), ctypes.c_size_t(capacity), ctypes.byref(tiled),
        )  # fmt: skip
        return status, tiled.blocks, list(tiled.data)[: tiled.data_size // 4], tiled.workspace, tiled.schedule_mode

    def infer_shapes(self, inputs, outputs: int):
        found = (ctypes.c_int64 * (9 * outputs))()
        status = self.library.InferShapes(_flat(inputs), ctypes.c_size_t(len(inputs)), ctypes.c_size_t(outputs), found)
        shapes, at = [], 0
        for _ in range(outputs):
            rank = found[at]
            shapes.append(tuple(found[at + 1 : at + 1 + rank]))
            at += 1 + rank
        return status, shapes

    def infer_dtypes(self, inputs, outputs: int):
        given = (ctypes.c_int32 * len(inputs))(*(DTYPES[dtype] for dtype in inputs))
        found = (ctypes.c_int32 * outputs)()
        status = self.library.InferDataTypes(given, ctypes.c_size_t(len(inputs)), ctypes.c_size_t(outputs), found)
        return status, list(found)
