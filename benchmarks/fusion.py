"""What fusion buys a sampler: logits to token ids in one launch, and in two.

    python benchmarks/fusion.py [--check] [CASE ...]

The graph: logits, a bias, a mask of what is allowed, temperature, top-k and top-p, softmax over q, argmax. Apart, the
filter is one kernel and the draw another, both with the elementwise work before them computed where they load, also
where that does not pay. With a key, the numbers of `jax.random.categorical` are a third; fused, they are drawn for what
the filter keeps. The figures are those of the twin's cost model, see docs/cost_model.md. With `--check` it exits with 1
where the fused graph does not need 3 times fewer bytes of global memory and cycles.
"""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from rich.console import Console
from rich.table import Table

import jascend as ja

FACTOR = 3.0
OFF = 1 << 20  # a k that turns top-k off
# name: rows, vocabulary, dtype of logits, k, p, vector cores
CASES = {
    "a core a row": (48, 128256, ml_dtypes.bfloat16, 50, 0.9, 48),
    "a core a row, shorter": (48, 32000, ml_dtypes.bfloat16, 50, 0.9, 48),
    "few rows": (4, 128256, ml_dtypes.bfloat16, 50, 0.9, 48),
    "a core a row, with a key": (48, 32000, ml_dtypes.bfloat16, 50, 0.9, 48),
    "few rows, with a key": (4, 32000, ml_dtypes.bfloat16, 50, 0.9, 48),
}


def filtered(logits, bias, allowed, temperature, p, k):
    x = (logits.astype(jnp.float32) + bias) / temperature[:, None]
    x = jnp.where(allowed, x, -jnp.inf)
    return ja.apply_top_k_top_p(x, p, k)


def sampler(*arrays):
    *others, q = arrays
    return ja.top_k_top_p_sample(filtered(*others), OFF, 1.0, q, eps=0.0).logits_select_idx


def sampler_with_key(*arrays):
    *others, key = arrays
    return jax.random.categorical(key, filtered(*others))


def arguments(rows, vocabulary, dtype, k, p):
    rng = np.random.default_rng(0)
    return (
        rng.normal(0, 3, (rows, vocabulary)).astype(dtype), rng.normal(0, 1, vocabulary).astype(np.float32),
        rng.random((rows, vocabulary)) < 0.9, np.full(rows, 0.8, np.float32), np.full(rows, p, np.float32),
        np.full(rows, k, np.int32), rng.exponential(1, (rows, vocabulary)).astype(np.float32),
    )  # fmt: skip


def main() -> None:
    words = [word for word in sys.argv[1:] if word != "--check"]
    table, missed = Table("", "", "launches", "modelled, us", "cycles", "GM bytes a logit", "roofline, us"), []
    for name in words or CASES:
        *case, cores = CASES[name]
        arrays, reports, draw = arguments(*case), [], sampler
        if name.endswith("with a key"):
            arrays, draw = (*arrays[:-1], jax.random.key(0)), sampler_with_key
        for label, options in (
            ("fused", {"force": ("fuse-sampling", "fuse-elementwise")}),
            ("apart", {"forbid": "fuse-sampling", "force": "fuse-elementwise"}),
        ):
            report = ja.compile(draw, *arrays, **options).profile(*arrays, cores=cores)
            reports.append((report.gm_read_bytes + report.gm_write_bytes, report.cycles))
            table.add_row(
                f"{name}: {case[0]} x {case[1]}" if label == "fused" else "", label, str(report.launches),
                f"{report.microseconds:.1f}", f"{report.cycles:,.0f}", f"{reports[-1][0] / arrays[0].size:.2f}",
                f"{report.roofline_microseconds:.1f}",
            )  # fmt: skip
        times = [apart / fused for fused, apart in zip(*reports)]
        table.add_row("", "times fewer", "", "", f"{times[1]:.2f}", f"{times[0]:.2f}", "", end_section=True)
        missed += [name] * (min(times) < FACTOR)
    Console(width=120).print(table)
    if missed and "--check" in sys.argv:
        sys.exit(f"below {FACTOR:g} times: {', '.join(missed)}")


if __name__ == "__main__":
    main()
