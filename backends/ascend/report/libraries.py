"""What a call of CANN's libraries takes at least: an estimate from bytes and operations, not a model of its kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from jascend.backends.ascend import targets
from jascend.backends.ascend.plan import LibraryCall, TensorType
from jascend.dialect.libraries import LIBRARY
from jascend.dialect.rules import Shaped

_RATES = {"float32": 0.25, "int8": 2.0}  # of the cube unit, as that of 16-bit floats


@dataclass(frozen=True)
class LibraryEstimate:
    """A call's roofline.

    Attributes:
        name: the operator.
        seconds: launch_seconds, and the longer of what its bytes and its operations take.
        launch_seconds: of it, what launching costs.
        read_bytes, write_bytes: each operand and the result, once; of a gather, the slices that it takes.
        flops: operations of the cube units; 0 where there are none.
        cube_seconds: what they take.
    """

    name: str
    seconds: float
    launch_seconds: float
    read_bytes: int
    write_bytes: int
    flops: int
    cube_seconds: float


def estimate(call: LibraryCall, target: str, cores: int | None = None) -> LibraryEstimate:
    """The estimate of a call on a product with so many vector cores; None: as `targets.py` has it."""
    costs, vector_cores = targets.costs(target), cores or targets.target(target).vector_cores
    operator = LIBRARY[call.callee]
    operands = operator.multiplied([Shaped(t.shape, t.dtype) for t in call.operand_types], call.transposed)
    flops = operator.flops(operands, Shaped(call.type.shape, call.type.dtype))
    read, written = _bytes(call.operand_types), _bytes([call.type])
    if call.callee == "aclnnIndexSelect":
        read = written + _bytes(call.operand_types[1:])
    rate = costs.cube * costs.clock * vector_cores / 2 * _RATES.get(operands[0].dtype, 1.0)
    seconds = costs.launch + max((read + written) / costs.total, flops / rate)
    return LibraryEstimate(call.callee, seconds, costs.launch, read, written, flops, flops / rate)


def _bytes(types: Sequence[TensorType]) -> int:
    return sum(math.prod(t.shape) * np.dtype(getattr(ml_dtypes, t.dtype, t.dtype)).itemsize for t in types)
