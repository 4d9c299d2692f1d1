"""MoE routing as its definition reads: a loop over pairs, and quantizers on float64 and `ml_dtypes`.

Shares nothing with the implementation: formats are converted through tables of all their values or by `ml_dtypes`,
powers of two are taken in float64. INT4 is returned as int8, MXFP4 as float4_e2m1fn, scales of MX formats as uint8.
"""

import ml_dtypes
import numpy as np

E5M2, E4M3FN = ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn
LARGEST = {E5M2: 57344.0, E4M3FN: 448.0}
F32 = np.float32


def hifloat8_table():
    """The value of every HiFloat8 code, by listing the numbers of each binade in the order of their codes."""
    positive = [0.0] + [2.0 ** (m - 23) for m in range(1, 8)]
    positive += [1 + m / 8 for m in range(8)]
    exponents = [[1], [-1], [2, 3], [-2, -3], [4, 5, 6, 7], [-4, -5, -6, -7], range(8, 16), range(-8, -16, -1)]
    for group, mantissa in zip(exponents, (8, 8, 8, 8, 4, 4, 2, 2)):
        positive += [2.0**e * (1 + m / mantissa) for e in group for m in range(mantissa)]
    assert len(positive) == 128
    positive = np.array(positive)
    positive[0x6F] = np.inf
    table = np.concatenate([positive, -positive])
    table[0x80] = np.nan
    return table


def hifloat8(x):
    """Nearest code by a search among all values, the greater magnitude where two are equally near."""
    x = np.asarray(x, np.float64)
    values = hifloat8_table()[:128].copy()
    values[0x6F] = 1.5 * 2.0**15
    order = np.argsort(values)
    middles = (values[order][1:] + values[order][:-1]) / 2
    code = order[np.searchsorted(middles, np.abs(x), side="right")].astype(np.uint8)
    code = np.where((x < 0) & (code > 0), code | 0x80, code)
    return np.where(np.isnan(x), 0x80, code).astype(np.uint8)


def fp8(x, dtype):
    return np.clip(x, -LARGEST[dtype], LARGEST[dtype]).astype(F32).astype(dtype)


def blocks(x, length):
    return [x[start : start + length] for start in range(0, len(x), length)]


def even(scales, dtype):
    return np.array(scales + [0] * (len(scales) % 2), dtype)


def power_for(top, limit):
    """The least e with top <= limit * 2^e; limit is 1.75 times a power of two."""
    return int(np.ceil(np.log2(np.float64(top) / limit) - 1e-12))


def mx_fp8(x, dtype, floor):
    codes, scales = [], []
    for block in blocks(x.astype(np.float64), 32):
        top = np.abs(block).max()
        top = F32(top).view(np.uint32) & 0xFFFF0000  # what bfloat16 keeps of it
        if floor:
            top = max(top, 0x38D20000)
        top = np.float64(np.uint32(top).view(F32))
        if top == 0:
            scales.append(0)
            codes.append(np.zeros(len(block), dtype))
            continue
        exponent = max(power_for(top, LARGEST[dtype]), -126)
        scales.append(exponent + 127)
        codes.append(fp8(block * 2.0**-exponent, dtype))
    return np.concatenate(codes or [np.zeros(0, dtype)]), even(scales, np.uint8)


def group_fp8(x, dtype, floor):
    codes, scales = [], []
    for group in blocks(x.astype(np.float64), 128):
        top = np.abs(group).max()
        top = max(top, np.float64(F32(1e-4))) if floor else top
        scale = 0.0 if top == 0 else 2.0 ** max(power_for(top, LARGEST[dtype]), -126)
        scales.append(scale)
        codes.append(fp8(group / scale if scale else group * 0.0 + 0.0, dtype))
        if not scale:
            codes[-1] = np.zeros(len(group), dtype)
    return np.concatenate(codes or [np.zeros(0, dtype)]), np.array(scales, F32)


def block_fp8(x, dtype):
    codes, scales = [], []
    for block in blocks(x.astype(F32), 128):
        scale = normal(np.abs(block).max() / F32(LARGEST[dtype]))
        scales.append(scale)
        codes.append(fp8(block / scale, dtype) if scale else np.zeros(len(block), dtype))
    return np.concatenate(codes or [np.zeros(0, dtype)]), even(scales, F32).reshape(-1, 2)


def mx_fp4(x):
    codes, scales = [], []
    for block in blocks(x.astype(np.float64), 32):
        top = np.abs(block).max()
        exponent = max(int(np.floor(np.log2(top))) - 2 if top else -127, -127)
        scales.append(exponent + 127)
        scaled = np.clip(block * 2.0**-exponent, -6, 6)
        codes.append(scaled.astype(F32).astype(ml_dtypes.float4_e2m1fn))
    return np.concatenate(codes or [np.zeros(0, ml_dtypes.float4_e2m1fn)]), even(scales, np.uint8).reshape(-1, 2)


def normal(scale):
    """The convention for scales that float32 holds only as subnormal numbers."""
    return scale if scale >= F32(2.0**-126) else F32(0)


def dynamic(x, smooth, divisor_of, low, high):
    value = x.astype(F32) if smooth is None else x.astype(F32) * smooth.astype(F32)
    top = np.abs(value).max(initial=F32(0))
    scale = normal(top / F32(127)) if divisor_of == 127 else normal(top * (F32(1) / F32(7)))
    if not scale:
        return np.zeros(len(value), np.int8), scale
    quotient = value / scale if divisor_of == 127 else value * (F32(1) / scale)
    return np.clip(np.rint(quotient), low, high).astype(np.int8), scale


def quantize(x, mode, scale, offset, expert):
    """One row: (codes, scales or None). `expert` counts from the first active one."""
    with np.errstate(all="ignore"):
        if mode == -1:
            return x, scale
        if mode == 0:
            return np.clip(np.rint(x.astype(F32) * scale[0] + offset[0]), -128, 127).astype(np.int8), None
        if mode == 1:
            smooth = None if scale is None else scale[expert if len(scale) > 1 else 0]
            return dynamic(x, smooth, 127, -128, 127)
        if mode == 13:
            return dynamic(x, None if scale is None else scale[0], 7, -8, 7)
        if mode in (2, 3, 16, 17):
            return mx_fp8(x, E5M2 if mode in (2, 16) else E4M3FN, mode > 15)
        if mode in (4, 5, 14, 15):
            return group_fp8(x, E5M2 if mode in (4, 14) else E4M3FN, mode > 13)
        if mode in (11, 12):
            return block_fp8(x, E5M2 if mode == 11 else E4M3FN)
        if mode == 9:
            return mx_fp4(x)
        x = x.astype(F32)
        if mode == 6:
            return hifloat8(x), None
        if mode == 7:
            return hifloat8(np.clip(x * scale[0], -32768, 32768)), None
        assert mode == 8
        top = normal(np.abs(x).max(initial=F32(0)) / F32(32768))
        return hifloat8(np.clip(x / top, -32768, 32768)) if top else np.zeros(len(x), np.uint8), top


def route(
    x, expert_idx, scale=None, offset=None, *, expert_num, active_num=-1, expert_capacity=-1, drop_pad_mode=0,
    expert_tokens_num_type=1, expert_tokens_num_flag=True, quant_mode=-1, active_expert_range=None, row_idx_type=0,
):  # fmt: skip
    """expanded_x, expanded_row_idx, expert_tokens, expanded_scale; None where absent."""
    tokens, slots = expert_idx.shape
    first, end = active_expert_range or (0, expert_num)
    flat = expert_idx.reshape(-1).tolist()
    pairs = sorted((e, p) for p, e in enumerate(flat) if first <= e < end)
    total = tokens * slots
    index = np.full(total, -1, np.int32)
    if drop_pad_mode:
        places, seen = [], {}
        for e, p in pairs:
            rank = seen[e] = seen.get(e, -1) + 1
            if rank < expert_capacity:
                index[p] = e * expert_capacity + rank
                places.append((index[p], e, p))
        rows = expert_num * expert_capacity
    else:
        for i, (_, p) in enumerate(pairs):
            index[(p, i)[row_idx_type]] = (i, p)[row_idx_type]
        rows = min(total, active_num) if active_num > 0 else total
        places = [(i, e, p) for i, (e, p) in enumerate(pairs[:rows])]

    each = [(place, quantize(x[p // slots], quant_mode, scale_of(scale, quant_mode, p // slots), offset, e - first))
            for place, e, p in places]  # fmt: skip
    blank = quantize(np.ones(x.shape[1], x.dtype), quant_mode, scale_of(scale, quant_mode, 0), offset, 0)
    codes, scales = (None if b is None else np.zeros((rows, *np.shape(b)), np.asarray(b).dtype) for b in blank)
    for place, (code, row_scale) in each:
        codes[place] = code
        if scales is not None:
            scales[place] = row_scale
    if drop_pad_mode:
        codes = codes.reshape(expert_num, expert_capacity, -1)

    counts = None
    if expert_tokens_num_flag:
        histogram = np.array([sum(e == i for e in flat) for i in range(first, end)])
        counts = np.cumsum(histogram) if expert_tokens_num_type == 0 else histogram
        if expert_tokens_num_type == 2:
            counts = np.zeros((expert_num, 2), int)
            some = [(i + first, n) for i, n in enumerate(histogram) if n]
            counts[: len(some)] = np.array(some).reshape(-1, 2)
    return codes, index, counts, scales


def scale_of(scale, mode, token):
    return scale if scale is None or mode != -1 else scale[token]
