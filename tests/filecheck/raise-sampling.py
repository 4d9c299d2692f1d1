# RUN: %python %s | FileCheck %s

"""What the imported graph looks like after `raise-sampling`, and what it says of code that it leaves alone."""

import jax
import jax.numpy as jnp
from jax import lax

import jascend as ja
from jascend.crossing import parse, trace
from jascend.passes.diagnostics import render
from jascend.passes.pipeline import run_pipeline

LOGITS, P = jax.ShapeDtypeStruct((4, 300), jnp.float32), jax.ShapeDtypeStruct((4,), jnp.float32)
TOKENS, IDS = jax.ShapeDtypeStruct((6, 64), jnp.bfloat16), jax.ShapeDtypeStruct((6, 2), jnp.int32)
SCORES, BIAS = jax.ShapeDtypeStruct((16, 64), jnp.float32), jax.ShapeDtypeStruct((64,), jnp.float32)


def show(fn, *specs, imported=True):
    traced = trace(fn, specs, {})
    print(f"TEST: {fn.__name__}")
    if imported:
        print(run_pipeline(parse(traced), "inline-calls,import,canonicalize,cse"))
    print(render(remark.diagnostic() for remark in traced.remarks))


# CHECK-LABEL: TEST: top_k_and_top_p
# CHECK:         func.func public @main(%[[LOGITS:[a-z0-9]+]]: tensor<4x300xf32>, %[[P:[a-z0-9]+]]: tensor<4xf32>)
# CHECK:           %[[TWENTY:.*]] = arith.constant dense<20> : tensor<i32>
# CHECK:           %[[K:.*]] = linalg.generic {{.*}} ins(%[[TWENTY]] : tensor<i32>)
# CHECK:           %[[OUT:.*]] = "ascend.apply_top_k_top_p"(%[[LOGITS]], %[[P]], %[[K]])
# CHECK-NEXT:      return %[[OUT]]
# CHECK:         raise-sampling.py:[[# @LINE + 13]]:{{.*}}: raise-sampling: passed: top-k, top-p, as apply_top_k_top_p
# CHECK-NEXT:      return jnp.where(removed, -jnp.inf, logits)
# CHECK-NOT:     missed


def top_k_and_top_p(logits, p):
    kth = lax.top_k(logits, 20)[0][..., -1:]
    logits = jnp.where(logits < kth, -jnp.inf, logits)
    order = jnp.argsort(logits, axis=-1)[:, ::-1]
    ordered = jnp.take_along_axis(logits, order, axis=-1)
    removed = jnp.cumsum(jax.nn.softmax(ordered, axis=-1), axis=-1) > p[:, None]
    removed = jnp.roll(removed, 1, axis=-1).at[:, 0].set(False)
    removed = jnp.zeros_like(removed).at[jnp.arange(4)[:, None], order].set(removed)
    return jnp.where(removed, -jnp.inf, logits)


show(top_k_and_top_p, LOGITS, P)


# CHECK-LABEL: TEST: gate
# CHECK:         %[[GATING:.*]]:2 = "ascend.moe_gating_top_k"
# CHECK-SAME:      eps = 9.99999968E-21 : f32
# CHECK-SAME:      k = 8 : i64
# CHECK-SAME:      norm_type = 1 : i64
# CHECK-SAME:      routed_scaling_factor = 2.500000e+00 : f32
# CHECK-NEXT:    return %[[GATING]]#0, %[[GATING]]#1


def gate(x, bias):
    scores = jax.nn.sigmoid(x)
    _, ids = lax.top_k(scores + bias, 8)
    weights = jnp.take_along_axis(scores, ids, axis=-1)
    return weights / (weights.sum(axis=-1, keepdims=True) + 1e-20) * 2.5, ids


show(gate, SCORES, BIAS)


# CHECK-LABEL: TEST: quantized_rows
# CHECK:         func.func public @main(%[[X:[a-z0-9]+]]: tensor<6x64xbf16>, %[[IDS:[a-z0-9]+]]: tensor<6x2xi32>)
# CHECK-NEXT:      %[[ROUTED:.*]]:4 = "ascend.moe_init_routing"(%[[X]], %[[IDS]])
# CHECK-SAME:        quant_mode = 1 : i64
# CHECK:           return %[[ROUTED]]#0, %{{.*}}, %[[ROUTED]]#1
# CHECK:         raise-sampling.py:[[# @LINE + 8]]:{{.*}}: raise-sampling: passed: rows routed with dynamic quantization
# CHECK-NOT:     missed


def quantized_rows(x, ids):
    routed = ja.moe_init_routing(x, ids, expert_num=8)
    rows = routed.expanded_x.astype(jnp.float32)
    scale = jnp.max(jnp.abs(rows), axis=-1, keepdims=True) / 127
    return jnp.round(rows / scale).astype(jnp.int8), scale, routed.expanded_row_idx


show(quantized_rows, TOKENS, IDS)


# CHECK-LABEL: TEST: least_scale
# CHECK-NOT:     passed
# CHECK:         raise-sampling.py:[[# @LINE + 6]]:{{.*}}: raise-sampling: missed: its scales, or what they are made of, are at least 1e-06


def least_scale(x, ids):
    rows = ja.moe_init_routing(x, ids, expert_num=8).expanded_x.astype(jnp.float32)
    scale = jnp.maximum(jnp.max(jnp.abs(rows), axis=-1, keepdims=True) / 127, 1e-6)
    return jnp.round(rows / scale).astype(jnp.int8), scale


show(least_scale, TOKENS, IDS, imported=False)


# CHECK-LABEL: TEST: cut_at_a_value
# CHECK-NOT:     passed
# CHECK:         raise-sampling.py:[[# @LINE + 7]]:{{.*}}: raise-sampling: missed: it keeps every copy of the logit


def cut_at_a_value(logits, p):
    ordered = jnp.sort(logits, axis=-1)[:, ::-1]
    sums = jnp.cumsum(jax.nn.softmax(ordered, axis=-1), axis=-1)
    cutoff = jnp.take_along_axis(ordered, jnp.sum(sums < p[:, None], axis=-1, keepdims=True), axis=-1)
    return jnp.where(logits < cutoff, -jnp.inf, logits)


show(cut_at_a_value, LOGITS, P, imported=False)
