"""Shape and dtype rule of `moe_init_routing`.

The checks come in the order in which CANN makes them: the API, shape inference, dtype inference, then the tiling of the
product. Without a target it is the tiling of A2 and A3, with the modes and dtypes of all products.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jascend.dialect.errors import ParamInvalid, TilingError
from jascend.dialect.rules.shaped import (
    INT32_MAX,
    Shaped,
    check_dtype,
    check_present,
    check_rank,
    check_target,
    same_shape,
    same_size,
)

MAX_EXPERTS = 10240
MAX_EXPERTS_KEY_VALUE = 5120  # with expert_tokens_num_type 2

_OP = "moe_init_routing"
_PLAIN = ("float16", "bfloat16", "float32", "int8")  # all that A2 and A3 know
_WITH_BLOCK_SCALES = ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn")
_HIFLOAT8 = "uint8"
_HALF = ("float16", "bfloat16")
_SCALES = ("float32", "float8_e8m0fnu")


class _Quantization(NamedTuple):
    """What a quant_mode takes and gives: dtypes of x, of rows, of their scales (or None), and the scales of a row."""

    x: tuple[str, ...]
    result: str | None
    scale: str | None = None
    scale_shape: Callable[[Any], tuple] = lambda size: ()


def _up(size: Any, divisor: int) -> Any:
    return None if size is None else -(-size // divisor)


def _even(size: Any) -> Any:
    return None if size is None else _up(size, 2) * 2


_BLOCKS_OF_32 = ("float8_e8m0fnu", lambda size: (_even(_up(size, 32)),))
_GROUPS_OF_128 = ("float32", lambda size: (_up(size, 128),))
_BLOCKS_OF_128 = ("float32", lambda size: (_up(size, 256), 2))

#: The quantization modes. There is no mode 10.
QUANTIZATIONS = {
    -1: _Quantization((*_PLAIN, *_WITH_BLOCK_SCALES, _HIFLOAT8), None),
    0: _Quantization((*_HALF, "float32"), "int8"),
    1: _Quantization((*_HALF, "float32"), "int8", "float32"),
    2: _Quantization(_HALF, "float8_e5m2", *_BLOCKS_OF_32),
    3: _Quantization(_HALF, "float8_e4m3fn", *_BLOCKS_OF_32),
    4: _Quantization(_HALF, "float8_e5m2", *_GROUPS_OF_128),
    5: _Quantization(_HALF, "float8_e4m3fn", *_GROUPS_OF_128),
    6: _Quantization(_HALF, _HIFLOAT8),
    7: _Quantization(_HALF, _HIFLOAT8),
    8: _Quantization(_HALF, _HIFLOAT8, "float32"),
    9: _Quantization(_HALF, "float4_e2m1fn", "float8_e8m0fnu", lambda size: (_up(size, 64), 2)),
    11: _Quantization(_HALF, "float8_e5m2", *_BLOCKS_OF_128),
    12: _Quantization(_HALF, "float8_e4m3fn", *_BLOCKS_OF_128),
    13: _Quantization(("float32", "bfloat16"), "int4", "float32"),
    14: _Quantization(_HALF, "float8_e5m2", *_GROUPS_OF_128),
    15: _Quantization(_HALF, "float8_e4m3fn", *_GROUPS_OF_128),
    16: _Quantization(_HALF, "float8_e5m2", *_BLOCKS_OF_32),
    17: _Quantization(_HALF, "float8_e4m3fn", *_BLOCKS_OF_32),
}


class _Attributes(NamedTuple):
    expert_num: int
    active_num: int
    expert_capacity: int
    drop_pad_mode: int
    expert_tokens_num_type: int
    expert_tokens_num_flag: bool
    quant_mode: int
    active_expert_range: Sequence[int]
    row_idx_type: int


def moe_init_routing(
    x: Shaped | None,
    expert_idx: Shaped | None,
    scale: Shaped | None = None,
    offset: Shaped | None = None,
    *,
    expert_num: int,
    active_num: int = -1,
    expert_capacity: int = -1,
    drop_pad_mode: int = 0,
    expert_tokens_num_type: int = 1,
    expert_tokens_num_flag: bool = True,
    quant_mode: int = -1,
    active_expert_range: Sequence[int] = (),
    row_idx_type: int = 0,
    index_dtype: str = "int64",
    target: str | None = None,
    smaller: Callable[[Any, Any], Any] = min,
) -> tuple[Shaped, Shaped, Shaped | None, Shaped | None]:
    """Rows, row index, counts and scales; None for what the call does not have.

    `smaller` gives the smaller of two sizes, for callers whose sizes can be symbolic.
    """
    a = _Attributes(
        expert_num, active_num, expert_capacity, drop_pad_mode, expert_tokens_num_type, expert_tokens_num_flag,
        quant_mode, active_expert_range, row_idx_type,
    )  # fmt: skip
    check_target(_OP, target)
    check_present(_OP, "x", x)
    check_present(_OP, "expert_idx", expert_idx)
    if target in (None, "ascend950"):
        _check_dtypes(x, expert_idx, scale, offset, QUANTIZATIONS[-1].x, _SCALES)
    _infer_shapes(a, x, expert_idx, scale, offset)
    _infer_dtypes(a, x, scale)
    if target == "ascend950":
        _tile_950(a, x, expert_idx, scale)
    else:
        _tile_a2(a, x, expert_idx, scale, every_mode=target is None)
        if target is not None:
            _check_dtypes(x, expert_idx, scale, offset, _PLAIN, ("float32",))

    _check_index_range(a, expert_idx)
    limit = a.active_num if target != "ascend950" else -1
    return _results(a, x, expert_idx, scale, limit, index_dtype, smaller)


def _check_dtypes(x, expert_idx, scale, offset, x_dtypes, scale_dtypes) -> None:
    check_dtype(_OP, "x", x, x_dtypes)
    check_dtype(_OP, "expert_idx", expert_idx, ("int32",))
    if scale is not None:
        check_dtype(_OP, "scale", scale, scale_dtypes)
    if offset is not None:
        check_dtype(_OP, "offset", offset, ("float32",))


def _refuse(argument: str, message: str) -> None:
    raise TilingError(_OP, argument, message)


def _check_one_of(argument: str, value: Any, allowed: Sequence[Any], where: str = "") -> None:
    if value not in allowed:
        _refuse(argument, f"must be {' or '.join(map(str, allowed))}{where}, but is {value}")


def _infer_shapes(a: _Attributes, x, expert_idx, scale, offset) -> None:
    if not 1 <= a.expert_num <= MAX_EXPERTS:
        _refuse("expert_num", f"must be from 1 to {MAX_EXPERTS}, but is {a.expert_num}")
    if len(a.active_expert_range) not in (0, 2):
        _refuse("active_expert_range", f"must be [first, last + 1] or empty, but is {list(a.active_expert_range)}")
    if a.active_expert_range:
        first, end = a.active_expert_range
        if not 0 <= first < end <= MAX_EXPERTS:
            _refuse("active_expert_range", f"must be rising, from 0 to at most {MAX_EXPERTS}, but is {[first, end]}")
    _check_one_of("drop_pad_mode", a.drop_pad_mode, (0, 1))
    if not a.drop_pad_mode and a.active_num < -1:
        _refuse("active_num", f"must be at least -1, but is {a.active_num}")
    if a.drop_pad_mode and x.shape:
        _check_capacity(a, x)
    _check_one_of("expert_tokens_num_type", a.expert_tokens_num_type, (0, 1, 2))
    if a.quant_mode not in QUANTIZATIONS:
        _refuse("quant_mode", f"must be -1 to 9 or 11 to 17, but is {a.quant_mode}")
    _check_one_of("row_idx_type", a.row_idx_type, (0, 1))
    if a.drop_pad_mode:
        _check_one_of("row_idx_type", a.row_idx_type, (0,), " with drop_pad_mode 1")
    check_rank(_OP, "x", x, 2, "[N, H]", TilingError)
    check_rank(_OP, "expert_idx", expert_idx, 2, "[N, K]", TilingError)
    _check_scale(a, x, scale)
    if a.quant_mode == 0:
        _check_parameter("offset", offset, [(1,)], "[1] with quant_mode 0", required=True)


def _check_capacity(a: _Attributes, x: Shaped) -> None:
    rows = x.shape[0]
    if isinstance(rows, int) and a.expert_capacity > rows:
        _refuse("expert_capacity", f"must be at most the number of rows ({rows}), but is {a.expert_capacity}")


def _check_scale(a: _Attributes, x: Shaped, scale: Shaped | None) -> None:
    (rows, size), mode = x.shape, a.quant_mode
    if mode in (0, 7):
        _check_parameter("scale", scale, [(1,)], f"[1] with quant_mode {mode}", required=True)
    elif mode == 1:
        smooth = f"[{_experts(a)}, {size}] (active experts, H) or [1, {size}] with quant_mode 1"
        _check_parameter("scale", scale, [(_experts(a), size), (1, size)], smooth)
    elif mode == 13:
        _check_parameter("scale", scale, [(1, size)], f"[1, {size}] with quant_mode 13")
    elif mode != -1 and scale is not None:
        _refuse("scale", f"must be None with quant_mode {mode}, which computes its own, but is {scale}")
    elif mode == -1 and scale is not None and scale.dtype == "float8_e8m0fnu":
        blocks = (rows, _up(size, 64), 2)
        _check_parameter("scale", scale, [blocks], f"{Shaped(blocks, scale.dtype)} for x {x}")
    elif mode == -1:
        _check_parameter("scale", scale, [(rows,)], f"[{rows}], one element a row of x, with quant_mode -1")


def _check_parameter(argument, value, shapes, layout, *, required=False) -> None:
    if value is None and required:
        _refuse(argument, f"must have shape {layout}, but is None")
    if value is not None and not any(same_shape(value.shape, shape) for shape in shapes):
        _refuse(argument, f"must have shape {layout}, but is {value}")


def _experts(a: _Attributes) -> int:
    first, end = a.active_expert_range or (0, a.expert_num)
    return end - first


def _infer_dtypes(a: _Attributes, x: Shaped, scale: Shaped | None) -> None:
    allowed = QUANTIZATIONS[a.quant_mode].x
    if x.dtype not in allowed:
        message = f"must be {' or '.join(allowed)} with quant_mode {a.quant_mode}, but is {x}"
        raise ParamInvalid(_OP, "x", message)
    if scale is None or scale.dtype == "float32" and x.dtype != _HIFLOAT8:
        return
    if x.dtype == _HIFLOAT8:
        raise ParamInvalid(_OP, "scale", f"must be None for HiFloat8 x {x}, but is {scale}")
    if a.quant_mode != -1 or x.dtype not in _WITH_BLOCK_SCALES:
        raise ParamInvalid(_OP, "scale", f"must be float32 with quant_mode {a.quant_mode} and x {x}, but is {scale}")


def _check_range(a: _Attributes, most: int) -> None:
    if a.active_expert_range and a.active_expert_range[1] > a.expert_num:
        message = f"must end within expert_num {a.expert_num}, but is {list(a.active_expert_range)}"
        _refuse("active_expert_range", message)
    if (a.active_expert_range[1] if a.active_expert_range else a.expert_num) > most:
        _refuse("active_expert_range", f"must end within {most} with expert_tokens_num_type {a.expert_tokens_num_type}")


def _check_full_range(a: _Attributes) -> None:
    if a.active_expert_range and tuple(a.active_expert_range) != (0, a.expert_num):
        allowed = f"[0, {a.expert_num}], all experts, with drop_pad_mode 1"
        _refuse("active_expert_range", f"must be {allowed}, but is {list(a.active_expert_range)}")


def _check_capacity_is_positive(a: _Attributes) -> None:
    if a.expert_capacity < 1:
        _refuse("expert_capacity", f"must be at least 1 with drop_pad_mode 1, but is {a.expert_capacity}")


def _most_experts(a: _Attributes) -> int:
    return MAX_EXPERTS_KEY_VALUE if a.expert_tokens_num_type == 2 else MAX_EXPERTS


def _check_rows(x: Shaped, expert_idx: Shaped) -> None:
    if not same_size(x.shape[0], expert_idx.shape[0]):
        _refuse("expert_idx", f"must have one row for each row of x {x}, but is {expert_idx}")


def _check_pairs_of_nibbles(a: _Attributes, x: Shaped) -> None:
    """Two elements of 4 bits share a byte along H."""
    size = x.shape[1]
    four_bits = "float4_e2m1fn" in (x.dtype, QUANTIZATIONS[a.quant_mode].result) or a.quant_mode == 13
    if four_bits and isinstance(size, int) and size % 2:
        _refuse("x", f"must have an even number of columns for 4-bit rows, but is {x}")


def _tile_a2(a: _Attributes, x, expert_idx, scale, *, every_mode: bool) -> None:
    if a.active_num < -1:
        _refuse("active_num", f"must be at least -1, but is {a.active_num}")
    if a.drop_pad_mode:
        _check_capacity_is_positive(a)
        _check_full_range(a)
        if a.expert_tokens_num_flag:
            _check_one_of("expert_tokens_num_type", a.expert_tokens_num_type, (1,), " with drop_pad_mode 1")
    _check_range(a, _most_experts(a))
    if a.drop_pad_mode or not every_mode:
        where = " with drop_pad_mode 1" if every_mode else " on A2 and A3"
        _check_one_of("quant_mode", a.quant_mode, (-1, 0, 1), where)
    _check_rows(x, expert_idx)
    _check_pairs_of_nibbles(a, x)
    if a.drop_pad_mode:
        _check_padded_dtype(x)


def _tile_950(a: _Attributes, x, expert_idx, scale) -> None:
    if a.drop_pad_mode:
        _check_one_of("expert_tokens_num_type", a.expert_tokens_num_type, (1,), " with drop_pad_mode 1")
    if a.expert_num > _most_experts(a):
        message = f"must be at most {_most_experts(a)} with expert_tokens_num_type 2, but is {a.expert_num}"
        _refuse("expert_num", message)
    if a.drop_pad_mode:
        _check_capacity_is_positive(a)
    if not a.expert_tokens_num_flag:
        _refuse("expert_tokens_num_flag", "must be True on ascend950, but is False")
    if a.drop_pad_mode:
        _check_one_of("quant_mode", a.quant_mode, (-1,), " with drop_pad_mode 1 on ascend950")
    _check_range(a, _most_experts(a))
    if a.drop_pad_mode:
        _check_full_range(a)
        _check_padded_dtype(x)
    _check_rows(x, expert_idx)
    if a.quant_mode == 1:
        smooth = (_experts(a), x.shape[1])
        _check_parameter("scale", scale, [smooth], f"[{smooth[0]}, {smooth[1]}] (active experts, H) on ascend950")
    _check_pairs_of_nibbles(a, x)
    rows, slots = expert_idx.shape
    known = isinstance(rows, int) and isinstance(slots, int)
    if known and a.active_num not in (-1, 0, rows * slots):
        _refuse("active_num", f"must be -1, 0 or {rows * slots} (rows x slots) on ascend950, but is {a.active_num}")


def _check_padded_dtype(x: Shaped) -> None:
    if x.dtype in _WITH_BLOCK_SCALES:
        raise ParamInvalid(_OP, "x", f"must be {' or '.join((*_PLAIN, _HIFLOAT8))} with drop_pad_mode 1, but is {x}")


def _check_index_range(a: _Attributes, expert_idx: Shaped) -> None:
    """Pairs of row and slot, and places in the padded result, are numbered in int32."""
    rows, slots = expert_idx.shape
    if isinstance(rows, int) and isinstance(slots, int) and rows * slots > INT32_MAX:
        _refuse("expert_idx", f"may have at most {INT32_MAX} elements (int32 indices), but is {expert_idx}")
    if a.drop_pad_mode and a.expert_num * a.expert_capacity > INT32_MAX:
        message = f"must be at most {INT32_MAX // a.expert_num} with {a.expert_num} experts (int32 indices)"
        _refuse("expert_capacity", f"{message}, but is {a.expert_capacity}")


def _results(a: _Attributes, x, expert_idx, scale, limit, index_dtype, smaller):
    size, quantization = x.shape[1], QUANTIZATIONS[a.quant_mode]
    rows, slots = expert_idx.shape
    pairs = 0 if 0 in (rows, slots) else None if None in (rows, slots) else rows * slots
    if a.drop_pad_mode:
        lead, count = (a.expert_num, a.expert_capacity), a.expert_num * a.expert_capacity
    else:
        count = pairs if limit <= 0 or pairs is None else smaller(pairs, limit)
        lead = (count,)
    counts = None
    if a.expert_tokens_num_flag:
        counts = Shaped((a.expert_num, 2) if a.expert_tokens_num_type == 2 else (_experts(a),), index_dtype)
    if a.quant_mode == -1:
        scales = None if scale is None else Shaped((count, *scale.shape[1:]), scale.dtype)
    else:
        scales = quantization.scale and Shaped((count, *quantization.scale_shape(size)), quantization.scale)
    return Shaped((*lead, size), quantization.result or x.dtype), Shaped((pairs,), "int32"), counts, scales
