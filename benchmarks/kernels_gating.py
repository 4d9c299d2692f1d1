"""Modelled times of the generated gating kernels, against targets and the roofline of the operator.

    python benchmarks/kernels_gating.py [CASE ...]

The figures are the cost model's, for kernels that ran on the twin with its checker on; see docs/cost_model.md. Exits
with 1 where a target is missed or the checker has findings.
"""

import sys

import ml_dtypes
import numpy as np
from rich.console import Console
from rich.table import Table

import jascend as ja

DEEPSEEK = dict(norm_type=1, group_count=8, k_group=4, group_select_mode=1, routed_scaling_factor=2.5)
# name: tokens, experts, k, dtype, attributes, product, vector cores, target in microseconds
CASES = {
    "DeepSeek-V3, prefill": (4096, 256, 8, ml_dtypes.bfloat16, DEEPSEEK, "ascend910b", 48, 35.0),
    "the same on 40 cores": (4096, 256, 8, ml_dtypes.bfloat16, DEEPSEEK, "ascend910b", 40, None),
    "the same on 950": (4096, 256, 8, ml_dtypes.bfloat16, DEEPSEEK, "ascend950", 64, None),
    "DeepSeek-V4": (64, 384, 6, ml_dtypes.bfloat16, dict(norm_type=2), "ascend910b", 48, 10.0),
    "DeepSeek-V3, decoding": (64, 256, 8, np.float32, DEEPSEEK, "ascend910b", 48, None),
    "Kimi-K2, prefill": (4096, 384, 8, np.float32, dict(norm_type=1), "ascend910b", 48, None),
    "Qwen3, prefill": (4096, 128, 8, ml_dtypes.bfloat16, dict(norm_type=0), "ascend910b", 48, None),
    "one token": (1, 256, 8, ml_dtypes.bfloat16, DEEPSEEK, "ascend910b", 48, None),
}


def profile(tokens, experts, k, dtype, attributes, target, cores):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(tokens, experts)).astype(dtype)
    bias = (rng.normal(size=experts) / 4).astype(dtype)

    def gate(x, bias):
        return ja.moe_gating_top_k(x, k, bias=bias, **attributes)

    return ja.compile(gate, x, bias, target=target).profile(x, bias, cores=cores)


def main():
    columns = ("", "shape", "modelled, µs", "target", "", "roofline", "times", "vector unit", "cycles a row")
    table = Table(*columns, title="Gating")
    missed = []
    for name in sys.argv[1:] or CASES:
        tokens, experts, k, dtype, attributes, target, cores, wanted = CASES[name]
        report = profile(tokens, experts, k, dtype, attributes, target, cores)
        kernel, bound = report.kernels[0], report.roofline.seconds * 1e6
        rows = -(-tokens // cores)
        is_missed = bool(kernel.findings) or (wanted is not None and report.microseconds > wanted)
        if is_missed:
            missed.append(name)
        table.add_row(
            name, f"{np.dtype(dtype).name}[{tokens}, {experts}], k={k}", f"{report.microseconds:.1f}",
            f"{wanted:.0f}" if wanted else "", "missed" if is_missed else "ok" if wanted else "", f"{bound:.1f}",
            f"{report.microseconds / bound:.2f}",
            f"{kernel.pipes['V']:.0%}", f"{kernel.cycles / rows:.0f}",
        )  # fmt: skip
    Console(width=140).print(table)
    if missed:
        sys.exit(f"missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
