"""Routing kernels for any number of tokens beside those for a fixed one: modelled times.

    python benchmarks/kernels_tokens.py [--tokens 1 16 64 ...] [CASE ...]

A kernel for any number of tokens (`jax.export.symbolic_shape`) has one way for few tokens and one for more, each with
tiles of a fixed size. What that costs shows where a fixed number would have smaller tiles. Each kernel runs once on the
twin.
"""

from __future__ import annotations

import argparse

import jax
import ml_dtypes
import numpy as np
from rich.console import Console
from rich.table import Table

import jascend as ja

BF16, F32 = ml_dtypes.bfloat16, np.float32
EXPERTS, K, SIZE = 256, 8, 2048
GATING = dict(bias=None, norm_type=1, group_count=8, k_group=4, group_select_mode=1)


def copy(x, ids):
    return ja.moe_init_routing(x, ids, expert_num=EXPERTS)


def codes(x, ids):
    return ja.moe_init_routing(x, ids, expert_num=EXPERTS, quant_mode=1)


def gated_codes(x, logits):
    gate = ja.moe_gating_top_k(logits, K, **GATING)
    return gate.y, ja.moe_init_routing(x, gate.expert_idx, expert_num=EXPERTS, quant_mode=1)


CASES = {"copy": copy, "dynamic int8": codes, "gating and dynamic int8": gated_codes}


def operands(function, tokens: int):
    rng = np.random.default_rng(tokens)
    x, logits = rng.normal(size=(tokens, SIZE)).astype(BF16), rng.normal(size=(tokens, EXPERTS)).astype(F32)
    return x, logits if function is gated_codes else np.argsort(logits, axis=1)[:, :K].astype(np.int32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 16, 17, 64, 127, 128, 512, 4096])
    parser.add_argument("cases", nargs="*", help="those whose names contain one of these; all by default")
    arguments = parser.parse_args()
    (symbol,) = jax.export.symbolic_shape("tokens")
    table = Table("routing, H = 2048, k = 8 of 256", "tokens", "any number, us", "fixed number, us", "ratio")
    for name, function in CASES.items():
        if arguments.cases and not any(word in name for word in arguments.cases):
            continue
        specs = [jax.ShapeDtypeStruct((symbol, *a.shape[1:]), a.dtype) for a in operands(function, 1)]
        any_number = ja.compile(function, *specs)
        for tokens in arguments.tokens:
            given = operands(function, tokens)
            any_us, fixed_us = (
                program.profile(*given).microseconds for program in (any_number, ja.compile(function, *given))
            )
            table.add_row(name, str(tokens), f"{any_us:.1f}", f"{fixed_us:.1f}", f"{any_us / fixed_us:.2f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
