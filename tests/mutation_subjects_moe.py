"""Kernels of mixtures of experts to break on purpose: gating, routing, and both in one."""

from __future__ import annotations

import dataclasses

import mutations
import numpy as np
from mutation_subjects import BF16, BOTH, F32, ints, normal, rng_of, row, subject

import jascend as ja
from jascend.backends.ascend.codegen import tiling

# -- gating -----------------------------------------------------------------------------------------------------------

DEEPSEEK = dict(k=8, norm_type=1, group_count=8, k_group=4, out_flag=True)


def gate(x, bias):
    return ja.moe_gating_top_k(x, bias=bias, group_select_mode=1, **DEEPSEEK)


def gate_by_maxima(x, bias):
    return ja.moe_gating_top_k(x, bias=bias, group_select_mode=0, **DEEPSEEK)


def gate_by_softmax(x):
    return ja.moe_gating_top_k(x, 6, renorm=0, norm_type=0)


def gate_by_table(x, input_ids, tid2eid):
    return ja.moe_gating_top_k(x, 8, input_ids=input_ids, tid2eid=tid2eid, norm_type=1)


def gate_with_mask(x, bias, additional_bias, additional_token_mask):
    return ja.moe_gating_top_k(
        x, 5, bias=bias, additional_bias=additional_bias, additional_token_mask=additional_token_mask, norm_type=2
    )


def gating(function, target, rows, **call):
    """On one core, on some, on many, and on one more than there are rows; once with many ties. The last expert counts."""
    if "bias" in call:
        call["bias"][-1] = 3
    tied = {name: np.round(a) if a.dtype.kind not in "bi" else a for name, a in call.items()}
    broken = mutations.of_program(function, call, tied, cores=(1, 3, min(rows, 40)), target=target)
    idle = tiling.pack({"rows_per_core": 0, "extra_rows": rows})
    launch = dataclasses.replace(broken.launches[0], tiling=idle, blocks=rows + 1)
    return dataclasses.replace(broken, launches=(*broken.launches, launch))


@subject(targets=BOTH)
def gating_in_groups(target):
    return gating(gate, target, 70, x=normal(70, 256), bias=normal(256))


@subject
def gating_by_maxima(target):
    return gating(gate_by_maxima, target, 40, x=normal(40, 256, dtype=BF16), bias=normal(256, dtype=BF16))


@subject
def gating_by_softmax(target):
    return gating(gate_by_softmax, target, 40, x=normal(40, 64))


@subject
def gating_of_many(target):
    return gating(gate_by_softmax, target, 9, x=normal(9, 1000, dtype=np.float16))


@subject(targets=BOTH)
def gating_by_table(target):
    table = np.stack([rng_of(i).permutation(64)[:8] for i in range(30)]).astype(np.int32)
    ids = ints(np.arange(20) * 7 % 33 - 1)  # some are not in the table
    return gating(gate_by_table, target, 20, x=normal(20, 64), input_ids=ids, tid2eid=table)


@subject
def gating_with_mask(target):
    mask = np.arange(20) % 3 == 0
    return gating(
        gate_with_mask, target, 20, x=normal(20, 200), bias=normal(200), additional_bias=normal(200) * 2,
        additional_token_mask=mask,
    )  # fmt: skip


# -- routing ----------------------------------------------------------------------------------------------------------


def routing(target, size=200, dtype=F32, others=None, tokens=40, slots=8, cores=(1, 2, 3, 5), **attributes):
    """Ids that are all there, ids of which many are no expert's, and ids of which only the last are one's."""

    def route(x, expert_idx, **others):
        return ja.moe_init_routing(x, expert_idx, expert_num=16, **others, **attributes)

    rng = rng_of("routing")
    x = (normal(tokens, size) * 20).astype(dtype)
    late = np.where(np.arange(tokens)[:, None] < tokens - 20, -1, rng.integers(0, 16, (tokens, slots)))
    ids = rng.integers(0, 16, (tokens, slots)), rng.integers(-2, 3, (tokens, slots)), late
    calls = [{"x": x, "expert_idx": ints(i), **(others or {})} for i in ids]
    return mutations.of_program(route, *calls, cores=cores, target=target)


@subject(targets=BOTH)
def routing_copy(target):
    return routing(target)


@subject
def routing_of_long_rows(target):
    return routing(target, 60113, tokens=3, slots=2, cores=(1, 2))


@subject
def routing_scaled(target):
    return routing(target, 77, BF16, {"scale": normal(40)}, expert_tokens_num_type=0, row_idx_type=1)


@subject(targets=BOTH)
def routing_dropped(target):
    return routing(target, 64, drop_pad_mode=1, expert_capacity=12)


@subject(targets=BOTH)
def routing_of_a_range(target):
    return routing(target, active_expert_range=(3, 11), expert_tokens_num_type=2, row_idx_type=1)


@subject
def routing_of_some(target):
    return routing(target, dtype=np.int8, active_num=33)


@subject(targets=BOTH)
def routing_codes(target):
    return routing(target, dtype=BF16, tokens=300, quant_mode=1)


@subject
def routing_codes_by_expert(target):
    return routing(target, 64, BF16, {"scale": np.abs(normal(16, 64)) + 1}, tokens=300, quant_mode=1, row_idx_type=1)


@subject
def routing_codes_dropped(target):
    return routing(target, 24, np.float16, tokens=300, quant_mode=1, drop_pad_mode=1, expert_capacity=30)


@subject
def routing_static_codes(target):
    return routing(target, others={"scale": row([3]), "offset": row([1.5])}, tokens=300, quant_mode=0)


@subject(targets=("ascend950",))
def routing_float_codes(target):
    return routing(target, 256, BF16, tokens=300, quant_mode=6)


@subject(targets=BOTH)
def routing_of_any_number(target):
    """Up to 15 tokens every core orders all pairs, and of more the cores meet; without tokens one writes the counts. Rows are
    read that are fewer than are read at once, and blocks have no rows, by their ids or because there are enough."""

    def route(x, expert_idx):
        most = -1 if target == "ascend950" else 700  # only that, there
        return ja.moe_init_routing(x, expert_idx, expert_num=16, quant_mode=1, active_num=most)

    rng = rng_of("tokens")
    calls = [
        {"x": normal(n, 64, dtype=BF16) * 20, "expert_idx": ints(rng.integers(-2, 18, (n, 64)))} for n in (2, 15, 20, 130)
    ]  # fmt: skip
    calls[-1]["expert_idx"][:70] = -1
    return mutations.of_program(route, *calls, cores=(1, 3, 5, 24), target=target, any_rows=True)


# -- both in one ------------------------------------------------------------------------------------------------------


def gating_and_routing(target, tokens, experts, size, k, gating, routing, cores, logits=F32, **others):
    def moe(logits, x, others):
        others, scale = dict(others), others.get("scale")
        others.pop("scale", None)
        gate = ja.moe_gating_top_k(logits, k, **others, **gating)
        return gate.y, gate.expert_idx, ja.moe_init_routing(x, gate.expert_idx, scale, expert_num=experts, **routing)

    scores = np.round(rng_of("gating and routing", tokens).normal(0, 2, (tokens, experts)), 1).astype(logits)
    call = {"logits": scores, "x": normal(tokens, size, dtype=BF16), "others": others}
    equal_groups = np.broadcast_to(-(np.arange(experts) % 8), scores.shape).astype(logits)
    tied = call | {"logits": equal_groups, "others": {name: array * 0 for name, array in others.items()}}
    call["x"][::3] = 0
    return mutations.of_program(moe, call, tied, cores=cores, target=target)


GROUPS = dict(norm_type=1, group_count=8, k_group=4, group_select_mode=1, routed_scaling_factor=2.5)


@subject
def gating_and_routing_of_few(target):
    """Every core gates all tokens, and nobody waits."""
    routing = dict(quant_mode=1, drop_pad_mode=1, expert_capacity=2)
    return gating_and_routing(target, 7, 64, 40, 8, GROUPS, routing, cores=(1, 3, 9), bias=normal(64) / 4)


@subject(targets=BOTH)
def gating_and_routing_of_many(target):
    """On many cores some have no tokens, and others one block; some blocks have no expert that is active."""
    routing = dict(quant_mode=1, active_expert_range=(3, 8))
    return gating_and_routing(target, 26, 64, 40, 8, GROUPS, routing, cores=(1, 3, 9, 20, 40), bias=normal(64) / 4)


@subject
def gating_and_routing_of_all(target):
    """No expert is left out: there is no block without rows."""
    return gating_and_routing(target, 26, 64, 40, 8, GROUPS, {}, cores=(1, 3, 5, 6, 40), bias=normal(64) / 4)


@subject
def gating_and_routing_of_a_range(target):
    """Few cores have many blocks; three experts a token are no whole blocks of lanes."""
    routing = dict(active_expert_range=(3, 31), row_idx_type=1, expert_tokens_num_type=2, active_num=50)
    return gating_and_routing(target, 26, 40, 24, 3, dict(norm_type=0), routing, cores=(1, 3, 20, 40))


@subject(targets=BOTH)
def gating_and_routing_of_any_number(target):
    """Up to 15 tokens every core gates all of them, and of more the cores meet; some blocks have no expert that is active."""

    def moe(logits, x):
        gate = ja.moe_gating_top_k(logits, 8, **GROUPS)
        routed = ja.moe_init_routing(x, gate.expert_idx, expert_num=64, quant_mode=1, active_expert_range=(3, 40))
        return gate.y, gate.expert_idx, routed

    rng = rng_of("gated tokens")
    calls = [
        {"logits": np.round(rng.normal(0, 2, (n, 64)), 1).astype(F32), "x": normal(n, 40, dtype=BF16) * 20}
        for n in (2, 15, 26, 130)
    ]  # fmt: skip
    for call in calls[1:3]:
        call["logits"][1] = -(np.arange(64) % 8)  # all groups are equal
    calls[-1]["logits"][:50, :40] -= 9  # whole blocks choose other experts
    return mutations.of_program(moe, *calls, cores=(1, 2, 9, 40), target=target, any_rows=True)
