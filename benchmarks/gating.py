"""`jascend.moe_gating_top_k` on the CPU against plain PyTorch code for the same result.

Needs PyTorch, which the project does not: `pip install torch`, then `python benchmarks/gating.py`. Both run on two
threads, by turns, in one process; the ratio is that of the medians.
"""

import os
import statistics
import time

THREADS = 2
os.environ["OMP_NUM_THREADS"] = str(THREADS)
os.environ["OMP_WAIT_POLICY"] = "passive"  # idle threads of one must not spin on the cores of the other
os.environ["NPROC"] = str(THREADS)  # XLA's thread pool
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])

import jax  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import jascend as ja  # noqa: E402

REPEATS = 30
CASES = {
    "DeepSeek-V3": dict(
        tokens=4096, experts=256, k=8, norm_type=1, group_count=8, k_group=4, routed_scaling_factor=2.5
    ),
    "DeepSeek-V3, decoding": dict(tokens=64, experts=256, k=8, norm_type=1, group_count=8, k_group=4),
    "Kimi-K2": dict(tokens=4096, experts=384, k=8, norm_type=1, routed_scaling_factor=2.827),
    "DeepSeek-V4": dict(tokens=4096, experts=384, k=6, norm_type=2, routed_scaling_factor=1.5),
    "Qwen3": dict(tokens=4096, experts=128, k=8, norm_type=0),
}


def in_torch(x, bias, k, norm_type, group_count=1, k_group=1, routed_scaling_factor=1.0):
    scores = [lambda x: x.softmax(-1), torch.sigmoid, lambda x: torch.nn.functional.softplus(x).sqrt()][norm_type](x)
    biased = scores + bias
    if group_count > 1:
        grouped = biased.view(x.shape[0], group_count, -1)
        group = grouped.topk(2, dim=-1).values.sum(-1)
        kept = torch.zeros_like(group, dtype=torch.bool).scatter_(1, group.topk(k_group, dim=-1).indices, True)
        biased = grouped.masked_fill(~kept[..., None], -torch.inf).view_as(biased)
    ids = biased.topk(k, dim=-1).indices
    weights = scores.gather(1, ids)
    if norm_type != 0:
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
    return weights * routed_scaling_factor, ids.int()


def milliseconds(run):
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e3


def measure(tokens, experts, **static):
    """Median milliseconds of both, run by turns."""
    random = np.random.default_rng(0)
    x, bias = (
        random.normal(size=(tokens, experts)).astype(np.float32),
        random.normal(size=experts).astype(np.float32) / 10,
    )
    tensors, arrays = (torch.tensor(x), torch.tensor(bias)), (jax.numpy.asarray(x), jax.numpy.asarray(bias))
    gate = jax.jit(lambda x, bias: ja.moe_gating_top_k(x, bias=bias, group_select_mode=1, **static))
    theirs, ours = lambda: in_torch(*tensors, **static), lambda: jax.block_until_ready(gate(*arrays))
    np.testing.assert_array_equal(ours().expert_idx, theirs()[1])
    np.testing.assert_allclose(ours().y, theirs()[0], rtol=1e-5)
    times = [(milliseconds(theirs), milliseconds(ours)) for _ in range(REPEATS)]
    return tuple(map(statistics.median, zip(*times)))


def main():
    torch.set_num_threads(THREADS)
    table = Table(
        "", "tokens", "experts", "PyTorch, ms", "jascend, ms", "ratio", title=f"Gating, {THREADS} threads, float32"
    )
    for name, case in CASES.items():
        theirs, ours = measure(**case)
        sizes = str(case["tokens"]), str(case["experts"])
        table.add_row(name, *sizes, f"{theirs:.2f}", f"{ours:.2f}", f"{ours / theirs:.2f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
