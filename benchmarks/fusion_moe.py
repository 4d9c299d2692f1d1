"""What fusion buys a mixture of experts: gating, routing and dynamic quantization, in one launch and apart.

    python benchmarks/fusion_moe.py [--tokens 1 64 4096] [--check]

The graph is that of DeepSeek-V3: float32 logits of 256 experts in 8 groups of which 4 stay, k = 8, bfloat16 tokens of
7168, codes of int8 with a scale a row, in plain code after the routing. `fused` is what `ja.compile` makes of it,
`nothing fused` what it makes with `forbid=("raise-sampling", "fuse-moe")`. Beside them the best that our kernels do
apart:

  as written       gating; routing, which copies; a kernel that quantizes the copies: a routing of them to one expert
  tokens first     gating; a kernel that quantizes tokens, likewise; routing of codes and scales
  in the routing   gating; routing with quant_mode=1: what a graph needs that asks for it by name

All run once on the twin; its cost model gives times and bytes. `--check` exits with 1 where the fused graph does not
need 1.5 times fewer bytes of global memory and cycles than as written.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from rich.console import Console
from rich.table import Table

import jascend as ja

EXPERTS, K, SIZE = 256, 8, 7168
GATING = dict(norm_type=1, group_count=8, k_group=4, group_select_mode=1, routed_scaling_factor=2.5)
FACTOR = 1.5  # what the fused graph is to need less
FUSED, WRITTEN = "fused", "as written"


def gate(logits, bias):
    chosen = ja.moe_gating_top_k(logits, K, bias=bias, **GATING)
    return chosen.y, chosen.expert_idx


def route(x, experts, scale=None, **attributes):
    return ja.moe_init_routing(x, experts, scale, expert_num=EXPERTS, **attributes)


def moe(logits, bias, x):
    """The graph as people write it."""
    y, experts = gate(logits, bias)
    routed = route(x, experts)
    rows = routed.expanded_x.astype(jnp.float32)
    scale = jnp.max(jnp.abs(rows), axis=-1, keepdims=True) / 127.0
    codes = jnp.clip(jnp.round(rows / scale), -128, 127).astype(jnp.int8)
    return y, codes, routed.expanded_row_idx, routed.expert_tokens, scale[:, 0]


class Launches:
    """Programs one after the other, and what they need together."""

    def __init__(self):
        self.reports = []

    def __call__(self, function: Callable, *arrays, forbid: Sequence[str] = ()):
        report = ja.compile(function, *arrays, forbid=forbid).profile(*arrays)
        self.reports.append(report)
        return jax.tree.map(np.asarray, report.outputs)

    @property
    def megabytes(self) -> float:
        return sum(report.gm_read_bytes + report.gm_write_bytes for report in self.reports) / 1e6

    @property
    def cycles(self) -> float:
        return sum(report.cycles for report in self.reports)

    @property
    def microseconds(self) -> float:
        return sum(report.microseconds for report in self.reports)

    @property
    def launches(self) -> int:
        return sum(report.launches for report in self.reports)


def fused(run, logits, bias, x):
    return run(moe, logits, bias, x)


def nothing_fused(run, logits, bias, x):
    return run(moe, logits, bias, x, forbid=("raise-sampling", "fuse-moe"))


def as_written(run, logits, bias, x):
    y, experts = run(gate, logits, bias)
    routed = run(route, x, experts)
    codes, scale = run(quantize, routed.expanded_x, np.zeros((len(routed.expanded_x), 1), np.int32))
    return y, codes, routed.expanded_row_idx, routed.expert_tokens, scale


def tokens_first(run, logits, bias, x):
    y, experts = run(gate, logits, bias)
    codes, scale = run(quantize, x, np.zeros((len(x), 1), np.int32))
    routed = run(route, codes, experts, scale)
    return y, routed.expanded_x, routed.expanded_row_idx, routed.expert_tokens, routed.expanded_scale


def in_the_routing(run, logits, bias, x):
    y, experts = run(gate, logits, bias)
    routed = run(route_quantized, x, experts)
    return y, routed.expanded_x, routed.expanded_row_idx, routed.expert_tokens, routed.expanded_scale


def route_quantized(x, experts):
    return route(x, experts, quant_mode=1)


def quantize(rows, expert):
    """Rows to one expert: quantized where they stand."""
    routed = ja.moe_init_routing(rows, expert, expert_num=1, quant_mode=1, expert_tokens_num_flag=False)
    return routed.expanded_x, routed.expanded_scale


WAYS = {FUSED: fused, "nothing fused": nothing_fused, WRITTEN: as_written}
WAYS |= {"tokens first": tokens_first, "in the routing": in_the_routing}


def measured(tokens: int) -> dict[str, Launches]:
    """Each way's launches; all give the same bits."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(tokens, EXPERTS)).astype(np.float32)
    bias = (rng.normal(size=EXPERTS) / 4).astype(np.float32)
    x = rng.normal(size=(tokens, SIZE)).astype(ml_dtypes.bfloat16)
    found, first = {}, None
    for name, way in WAYS.items():
        found[name] = Launches()
        results = jax.tree.leaves(way(found[name], logits, bias, x))
        first = first or results
        for result, expected in zip(results, first, strict=True):
            np.testing.assert_array_equal(result, expected, err_msg=name)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 64, 4096])
    parser.add_argument("--check", action="store_true", help="exit with 1 where fusion buys less than it should")
    arguments = parser.parse_args(arguments)
    columns = ("tokens", "graph", "launches", "µs", "cycles", "MB", "µs / fused", "cycles / fused", "MB / fused")
    table = Table(*columns, title="Gating, routing and dynamic quantization on 910B, modelled")
    missed = []
    for tokens in arguments.tokens:
        found = measured(tokens)
        least = found[FUSED]
        for name, way in found.items():
            times = way.microseconds / least.microseconds, way.cycles / least.cycles, way.megabytes / least.megabytes
            table.add_row(
                str(tokens), name, str(way.launches), f"{way.microseconds:.1f}", f"{way.cycles:.0f}",
                f"{way.megabytes:.2f}", *(f"{ratio:.2f}" for ratio in times), end_section=name == list(found)[-1],
            )  # fmt: skip
            if name == WRITTEN and min(times[1:]) < FACTOR:
                missed.append(tokens)
    Console(width=140).print(table)
    if arguments.check and missed:
        raise SystemExit(f"less than {FACTOR} times at {', '.join(map(str, missed))} tokens")


if __name__ == "__main__":
    main()
