"""What a launch passes to a kernel: arrays, lists of arrays, values."""

import ctypes
from collections.abc import Sequence

import ml_dtypes
import numpy as np


class Array(ctypes.Structure):
    """As in `include/twin/runtime/abi.h`."""

    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_uint64), ("writable", ctypes.c_uint32),
                ("alias", ctypes.c_uint32), ("kind", ctypes.c_uint32), ("members", ctypes.c_uint32)]


ARRAY, VALUE, LIST, MEMBER = range(4)


class Described:
    """The launch's arguments as the runtime takes them.

    Attributes:
        entries: a ctypes array of Array.
        count: how many of them there are: those of lists come after their list.
    """

    def __init__(self, arguments: Sequence, values: Sequence[tuple[str, int] | None]):
        """`values` says of each argument what it is by value, as (kind, bytes) of direct.h, or None for a pointer.

        Raises:
            ValueError: an argument is not what the kernel takes, or arrays that are not contiguous or overlap.
        """
        self._rows: list[Array] = []
        self._extents: list[tuple[int, int]] = []
        self._kept: list = []  # memory that the rows point to
        for i, (argument, value) in enumerate(zip(arguments, values, strict=True)):
            if value is not None:
                self._value(i, argument, *value)
            elif isinstance(argument, (list, tuple)):
                self._list(i, argument)
            else:
                self._array(f"argument {i}", argument, ARRAY, 0)
        self.count = len(self._rows)
        self.entries = (Array * max(self.count, 1))(*self._rows)

    def _array(self, name: str, array, kind: int, members: int) -> None:
        at = len(self._rows)
        if array is None:
            self._add(Array(None, 0, False, at, kind, members))
            return
        if not isinstance(array, np.ndarray):
            raise ValueError(f"{name} is a {type(array).__name__}, not a NumPy array")
        if not array.flags.c_contiguous:
            raise ValueError(f"{name} of shape {array.shape} is not C-contiguous (strides {array.strides}); "
                             "results could not be written in place: pass np.ascontiguousarray(x)")
        if array.dtype.hasobject:
            raise ValueError(f"{name} has dtype {array.dtype}, which holds Python objects")
        begin, alias = array.ctypes.data, at
        extent = (begin, begin + array.nbytes)
        for k, other in enumerate(self._extents):
            if extent == other and array.nbytes:
                alias = int(self._rows[k].alias)
                break
            if extent[0] < other[1] and other[0] < extent[1]:
                raise ValueError(f"arguments {k} and {at} overlap in memory without being the same array")
        self._add(Array(begin, array.nbytes, array.flags.writeable, alias, kind, members), extent)

    def _list(self, i: int, arrays: Sequence) -> None:
        """A table of the arrays' shapes and addresses, as ListTensorDesc reads it, and then the arrays."""
        if not arrays:
            raise ValueError(f"argument {i} is an empty list: a list of tensors has at least one")
        for k, array in enumerate(arrays):
            if not isinstance(array, np.ndarray):
                raise ValueError(f"tensor {k} of argument {i} is a {type(array).__name__}, not a NumPy array")
        ranks = {array.ndim for array in arrays}
        if len(ranks) > 1:
            raise ValueError(f"argument {i} is a list of tensors of {sorted(ranks)} dimensions; the table has one "
                             "number for all")
        rank = ranks.pop()
        if rank:
            words = [word for k, a in enumerate(arrays) for word in (k << 32 | rank, *a.shape)]
        else:
            words = [len(arrays) << 32, 0xFFFFFFFF]
        table = np.array([8 * (1 + len(words)), *words, *[0] * len(arrays)], np.uint64)
        self._kept.append(table)
        row = Array(table.ctypes.data, table.nbytes, False, len(self._rows), LIST, len(arrays))
        self._add(row, (table.ctypes.data, table.ctypes.data + table.nbytes))
        for k, array in enumerate(arrays):
            self._array(f"tensor {k} of argument {i}", array, MEMBER, k)

    def _value(self, i: int, value, kind: str, size: int) -> None:
        data = _bytes_of(i, value, kind, size)
        memory = ctypes.create_string_buffer(data, max(size, 1))
        self._kept.append(memory)
        self._add(Array(ctypes.addressof(memory), size, False, len(self._rows), VALUE, 0))

    def _add(self, row: Array, extent: tuple[int, int] = (0, 0)) -> None:
        self._rows.append(row)
        self._extents.append(extent)


_FLOATS = {"f": np.float32, "h": np.float16, "B": ml_dtypes.bfloat16}
_NAMES = {"i": "a signed integer", "u": "an unsigned integer", "b": "a bool", "f": "a float", "h": "a half",
          "B": "a bfloat16_t", "s": "a struct"}  # fmt: skip


def _bytes_of(i: int, value, kind: str, size: int) -> bytes:
    """A value as the kernel's parameter has it. Python's own numbers convert; NumPy's must have its size."""
    wanted = f"argument {i} is by value {_NAMES[kind]} of {size} bytes"
    if kind == "s":
        data = value if isinstance(value, bytes) else bytes(value) if _is_record(value) else None
        if data is None:
            raise ValueError(f"{wanted}, not a {type(value).__name__}: pass its bytes, a ctypes.Structure or a "
                             "structured NumPy scalar")
        if len(data) != size:
            raise ValueError(f"{wanted}, not of {len(data)}")
        return data
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.generic):
        fits = value.dtype.itemsize == size and value.dtype.kind == (kind if kind in "iub" else value.dtype.kind)
        if not fits or (kind in "fhB" and value.dtype != _FLOATS[kind]):
            raise ValueError(f"{wanted}, not {value.dtype}")
        return value.tobytes()
    if kind in "fhB" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return np.array(value, _FLOATS[kind]).tobytes()
    if kind == "b" and isinstance(value, bool):
        return bytes([value])
    if kind in "iu" and isinstance(value, int) and not isinstance(value, bool):
        try:
            return value.to_bytes(size, "little", signed=kind == "i")
        except OverflowError:
            raise ValueError(f"{wanted}, which {value} does not fit") from None
    raise ValueError(f"{wanted}, not a {type(value).__name__}")


def _is_record(value) -> bool:
    return isinstance(value, (ctypes.Structure, ctypes.Union, np.void, bytearray, memoryview)) or (
        isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.names is not None)
