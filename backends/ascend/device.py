"""Runs a program's plan on an NPU: the built package's operators and CANN's, through acl and aclnn, from this process.

A value is an array in the device's memory from the step that makes it on; only arguments and outputs are copied. Every
operator is called in aclnn's two phases, as `test/graph.cpp` of a written project does. The functions are those of
acl's and aclnn's documentation; nothing here has run on a device: tests use stand-ins for the libraries.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jascend.dialect.libraries import LIBRARY

from . import nibbles
from .codegen.aclnn import memory
from .codegen.op_host import DTYPES, operator_type
from .plan import Launch, LibraryCall, Part, Plan, Reshape, TensorType

_RUNTIME = ("libascendcl.so", "libnnopbase.so")
_LIBRARIES = "libopapi.so"  # CANN's own operators
_OPERATORS = "op_api/lib/libcust_opapi.so"  # those of a package

# aclDataType, aclFormat, aclrtMemMallocPolicy and aclrtMemcpyKind.
_CODES = {
    "FLOAT": 0, "FLOAT16": 1, "INT8": 2, "INT32": 3, "UINT8": 4, "INT16": 6, "INT64": 9, "BOOL": 12, "BF16": 27,
    "INT4": 29, "FLOAT8_E5M2": 35, "FLOAT8_E4M3FN": 36, "FLOAT8_E8M0": 37, "FLOAT4_E2M1": 40,
}  # fmt: skip
_ND, _HUGE_FIRST, _TO_DEVICE, _TO_HOST = 2, 0, 1, 2
_INITIALIZED_BEFORE = 100002

#: What acl and aclnn call their return codes, of those that a user is likely to meet.
NAMES = {
    100000: "ACL_ERROR_INVALID_PARAM", 100001: "ACL_ERROR_UNINITIALIZE", 100002: "ACL_ERROR_REPEAT_INITIALIZE",
    107000: "ACL_ERROR_RT_PARAM_INVALID", 107001: "ACL_ERROR_RT_INVALID_DEVICEID", 107002: "ACL_ERROR_RT_CONTEXT_NULL",
    107003: "ACL_ERROR_RT_STREAM_CONTEXT", 207001: "ACL_ERROR_RT_MEMORY_ALLOCATION",
    507015: "ACL_ERROR_RT_AICORE_EXCEPTION", 507035: "ACL_ERROR_RT_VECTOR_CORE_EXCEPTION",
    161001: "ACLNN_ERR_PARAM_NULLPTR", 161002: "ACLNN_ERR_PARAM_INVALID", 361001: "ACLNN_ERR_RUNTIME_ERROR",
    561000: "ACLNN_ERR_INNER", 561002: "ACLNN_ERR_INNER_TILING_ERROR", 561003: "ACLNN_ERR_INNER_FIND_KERNEL_ERROR",
    561112: "ACLNN_ERR_INNER_OPP_KERNEL_PKG_NOT_FOUND",
}  # fmt: skip


_OPEN: list[int] = []  # the numbers of the devices that this process uses, as often as it does


class DeviceError(RuntimeError):
    """Something that a run on a device needs is not there, or a call of acl or aclnn failed; the text says which."""


@dataclass(frozen=True)
class _Value:
    """A tensor on the device."""

    address: int | None  # None: no bytes
    type: TensorType


def _part_of(value: _Value, step: Part) -> _Value:
    dtype = TensorType((), step.type.dtype).filled(0).dtype
    offset = step.first // 2 if nibbles.share_bytes(dtype) else step.first * dtype.itemsize
    return _Value(None if value.address is None else value.address + offset, step.type)


def device_count(home: Path) -> int:
    """How many devices there are for the runtime of a toolkit;
    0 also where it cannot be loaded, as without a driver."""
    count = ctypes.c_uint32(0)
    try:
        library = _load(home, _RUNTIME[0])
        return count.value if library.aclrtGetDeviceCount(ctypes.byref(count)) == 0 else 0
    except (DeviceError, AttributeError):
        return 0


def _load(home: Path, name: str) -> ctypes.CDLL:
    path = home / "lib64" / name
    try:
        return ctypes.CDLL(str(path) if path.exists() else name, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise DeviceError(
            f"{name} of CANN's runtime cannot be loaded: {error}; source the set_env.sh of the toolkit and "
            "of the driver"
        ) from None


class Device:
    """A device, with the operators of an installed package.

    Args:
      home: the toolkit's directory.
      vendor: the package's directory, `vendors/jascend` where it was installed to; None where a plan has no kernels.
      number: of the device.
    Raises: DeviceError.
    """

    def __init__(self, home: Path, vendor: Path | None, number: int = 0):
        self.number, self._stream, self._is_open = number, ctypes.c_void_p(), False
        self._libraries = [_load(home, name) for name in _RUNTIME]
        self._home = home
        if vendor is not None:
            path = vendor / _OPERATORS
            if not path.exists():
                raise DeviceError(f"no '{path}': the package was not installed, or has no operators")
            # Where the operators' kernels are: read when acl is initialized.
            others = [
                p for p in os.environ.get("ASCEND_CUSTOM_OPP_PATH", "").split(os.pathsep) if p and p != str(vendor)
            ]
            os.environ["ASCEND_CUSTOM_OPP_PATH"] = os.pathsep.join([str(vendor), *others])
            try:
                self._libraries.append(ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL))
            except OSError as error:
                raise DeviceError(f"the package's operators cannot be loaded: {error}") from None
        self._check("aclInit", self._function("aclInit")(None), _INITIALIZED_BEFORE)
        count = ctypes.c_uint32(0)
        self._call("aclrtGetDeviceCount", ctypes.byref(count))
        if not number < count.value:
            raise DeviceError(
                f"there is no device {number}: the runtime finds {count.value}; `npu-smi info` lists them"
            )
        self._call("aclrtSetDevice", ctypes.c_int32(number))
        self._call("aclrtCreateStream", ctypes.byref(self._stream))
        self._is_open = True
        _OPEN.append(number)

    def close(self) -> None:
        """Gives the device back, where no other program of the process uses it."""
        if self._is_open:
            self._is_open = False
            _OPEN.remove(self.number)
            self._call("aclrtSetDevice", ctypes.c_int32(self.number))
            self._call("aclrtDestroyStream", self._stream)
            if self.number not in _OPEN:
                self._call("aclrtResetDevice", ctypes.c_int32(self.number))
            if not _OPEN:
                self._call("aclFinalize")

    # -- a run --------------------------------------------------------------------------------------------------

    def run(
        self,
        plan: Plan,
        arguments: Sequence[np.ndarray],
        fills: Mapping[str, Sequence[int]],
        is_empty: Callable[[Launch], bool],
    ) -> list[np.ndarray]:
        """The outputs of a plan for these arguments.

        `fills` has for each kernel what its outputs hold where it does not write; `is_empty` says which launches have
        nothing to do."""
        if not self._is_open:
            raise DeviceError("the device has been given back")
        with contextlib.ExitStack() as made:
            self._call("aclrtSetDevice", ctypes.c_int32(self.number))  # of this thread
            values = {i: self._value(made, x) for i, x in enumerate(arguments)}
            for step in plan.steps:
                if isinstance(step, Reshape):
                    values[step.result] = _Value(values[step.operand].address, step.type)
                elif isinstance(step, Part):
                    values[step.result] = _part_of(values[step.operand], step)
                elif isinstance(step, LibraryCall):
                    values[step.result] = self._library(made, step, [values[i] for i in step.operands])
                else:
                    results = [
                        self._value(made, type_.filled(fill)) for type_, fill in zip(step.types, fills[step.kernel])
                    ]
                    values.update(zip(step.results, results))
                    if not is_empty(step):
                        name = f"aclnn{operator_type(step.kernel)}"
                        tensors = [
                            self._tensor(made, value) for value in (*(values[i] for i in step.operands), *results)
                        ]
                        self._two_phases(made, name, tensors)
            return [self._read(values[i]) for i in plan.outputs]

    def _library(self, made: contextlib.ExitStack, step: LibraryCall, operands: Sequence[_Value]) -> _Value:
        operator = LIBRARY[step.callee]
        if not any(library._name.endswith(_LIBRARIES) for library in self._libraries):
            self._libraries.append(_load(self._home, _LIBRARIES))
        result = self._value(made, step.type.filled(0))
        operands = list(operands)
        if operator.index is not None and operands[operator.index].type.dtype != "int64":
            operands[operator.index] = self._as_int64(made, operands[operator.index])
        flags = step.transposed or (0,) * len(operands)

        def tensors(token: str) -> list[tuple[_Value, int]]:
            named = {f"x{i}": pair for i, pair in enumerate(zip(operands, flags))} | {"out": (result, 0)}
            return list(zip(operands, flags)) if token == "x" else [named[token]] if token in named else []

        def parameter(token: str):
            if token == "dim":
                return ctypes.c_int64(step.dims[0])
            if token == "dims" or token.startswith("{"):
                return self._integers(made, step.dims if token == "dims" else [step.dims[int(token[1:-1])]])
            if token == "scalar":
                return self._scalar(made, step.dims[0])
            if token == "dtype":
                return ctypes.c_int(_CODES[DTYPES[step.type.dtype]])
            if token.startswith("["):
                return self._list(made, tensors(token[1:-1]))
            return self._tensor(made, *tensors(token)[0]) if tensors(token) else _LITERALS[token]

        self._two_phases(made, step.callee, [parameter(token) for token in operator.parameters])
        return result

    def _as_int64(self, made: contextlib.ExitStack, value: _Value) -> _Value:
        wide = self._value(made, TensorType(value.type.shape, "int64").filled(0))
        given = [self._tensor(made, value), ctypes.c_int(_CODES["INT64"]), self._tensor(made, wide)]
        self._two_phases(made, "aclnnCast", given)
        return wide

    def _two_phases(self, made: contextlib.ExitStack, name: str, parameters: Sequence) -> None:
        size, executor = ctypes.c_uint64(0), ctypes.c_void_p()
        self._call(f"{name}GetWorkspaceSize", *parameters, ctypes.byref(size), ctypes.byref(executor))
        with contextlib.ExitStack() as scratch:
            workspace = self._allocate(scratch, size.value)
            self._call(name, ctypes.c_void_p(workspace), size, executor, self._stream)
            # before the workspace goes, and to say which call failed
            self._call("aclrtSynchronizeStream", self._stream)

    # -- memory and handles -------------------------------------------------------------------------------------

    def _allocate(self, made: contextlib.ExitStack, size: int) -> int | None:
        if size == 0:
            return None
        address = ctypes.c_void_p()
        self._call("aclrtMalloc", ctypes.byref(address), ctypes.c_size_t(size), ctypes.c_int(_HUGE_FIRST))
        made.callback(self._call, "aclrtFree", address)
        return address.value

    def _value(self, made: contextlib.ExitStack, array: np.ndarray) -> _Value:
        content = memory(array)
        address = self._allocate(made, len(content))
        if address is not None:
            size = ctypes.c_size_t(len(content))
            self._call(
                "aclrtMemcpy", ctypes.c_void_p(address), size, ctypes.c_char_p(content), size, ctypes.c_int(_TO_DEVICE)
            )
        return _Value(address, TensorType(array.shape, array.dtype.name))

    def _read(self, value: _Value) -> np.ndarray:
        empty = value.type.filled(0)
        packed = nibbles.pack(empty) if nibbles.share_bytes(empty.dtype) else empty
        if value.address is not None:
            size = ctypes.c_size_t(packed.nbytes)
            to = ctypes.c_void_p(packed.ctypes.data)
            self._call("aclrtMemcpy", to, size, ctypes.c_void_p(value.address), size, ctypes.c_int(_TO_HOST))
        return nibbles.unpack(packed, empty) if nibbles.share_bytes(empty.dtype) else packed

    def _create(self, value: _Value, transposed: int = 0) -> ctypes.c_void_p:
        stored = list(value.type.shape)
        dims, strides = list(stored), [1] * len(stored)
        for i in range(len(stored) - 1, 0, -1):
            strides[i - 1] = strides[i] * stored[i]
        if transposed:
            dims[-2:], strides[-2:] = dims[:-3:-1], strides[:-3:-1]
        rank = ctypes.c_uint64(len(stored))
        create = self._function("aclCreateTensor")
        create.restype = ctypes.c_void_p
        handle = create(
            _int64s(dims), rank, ctypes.c_int(_CODES[DTYPES[value.type.dtype]]), _int64s(strides), ctypes.c_int64(0),
            ctypes.c_int(_ND), _int64s(stored), rank, ctypes.c_void_p(value.address),
        )  # fmt: skip
        return self._made("aclCreateTensor", handle)

    def _tensor(self, made: contextlib.ExitStack, value: _Value, transposed: int = 0) -> ctypes.c_void_p:
        handle = self._create(value, transposed)
        made.callback(self._call, "aclDestroyTensor", handle)
        return handle

    def _list(self, made: contextlib.ExitStack, given: Sequence[tuple[_Value, int]]) -> ctypes.c_void_p:
        handles = [self._create(*one) for one in given]  # destroyed with the list
        create = self._function("aclCreateTensorList")
        create.restype = ctypes.c_void_p
        array = (ctypes.c_void_p * len(handles))(*(handle.value for handle in handles))
        handle = self._made("aclCreateTensorList", create(array, ctypes.c_uint64(len(handles))))
        made.callback(self._call, "aclDestroyTensorList", handle)
        return handle

    def _integers(self, made: contextlib.ExitStack, numbers: Sequence[int]) -> ctypes.c_void_p:
        create = self._function("aclCreateIntArray")
        create.restype = ctypes.c_void_p
        handle = self._made("aclCreateIntArray", create(_int64s(numbers), ctypes.c_uint64(len(numbers))))
        made.callback(self._call, "aclDestroyIntArray", handle)
        return handle

    def _scalar(self, made: contextlib.ExitStack, number: int) -> ctypes.c_void_p:
        create = self._function("aclCreateScalar")
        create.restype = ctypes.c_void_p
        value = ctypes.c_int32(number)
        handle = self._made("aclCreateScalar", create(ctypes.byref(value), ctypes.c_int(_CODES["INT32"])))
        made.callback(self._call, "aclDestroyScalar", handle)
        return handle

    # -- calls --------------------------------------------------------------------------------------------------

    def _function(self, name: str):
        for library in reversed(self._libraries):
            with contextlib.suppress(AttributeError):
                return getattr(library, name)
        searched = ", ".join(Path(library._name).name for library in self._libraries)
        raise DeviceError(
            f"no function '{name}' in {searched}: the toolkit or the package is another version's; build again"
        )

    def _call(self, name: str, *parameters) -> None:
        function = self._function(name)
        function.restype = ctypes.c_int32
        self._check(name, function(*parameters))

    def _check(self, name: str, status: int, *fine: int) -> None:
        if status == 0 or status in fine:
            return
        recent = self._function("aclGetRecentErrMsg")
        recent.restype = ctypes.c_char_p
        said = (recent() or b"").decode(errors="replace").strip()
        raise DeviceError(
            f"{name} failed with {status} ({NAMES.get(status, 'no name known')})" + (f": {said}" if said else "")
        )

    def _made(self, name: str, handle: int | None) -> ctypes.c_void_p:
        if not handle:
            raise DeviceError(f"{name} made nothing")
        return ctypes.c_void_p(handle)


_LITERALS = {
    "nullptr": ctypes.c_void_p(), "false": ctypes.c_bool(False), "static_cast<int8_t>(0)": ctypes.c_int8(0),
    **{str(number): ctypes.c_int64(number) for number in range(4)},
}  # fmt: skip


def _int64s(numbers: Sequence[int]) -> ctypes.Array:
    return (ctypes.c_int64 * len(numbers))(*numbers)
