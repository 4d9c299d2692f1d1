"""MoE routing on the CPU, beside plain PyTorch code for the same result.

    pip install torch && python benchmarks/routing.py

Both sides run in turn, in one process, on the same number of threads; their results are compared before that.
Times are the medians of the rounds, and the ratio is the median of the ratios within a round.
"""

import os
import time
from typing import Annotated

import typer

THREADS = 2
if hasattr(os, "sched_setaffinity"):  # XLA starts a thread for each core it is given
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import jascend as ja  # noqa: E402


def torch_order(expert_idx, experts):
    flat = expert_idx.flatten()
    order = torch.argsort(flat, stable=True)
    row_idx = torch.empty_like(flat)
    row_idx[order] = torch.arange(flat.numel(), dtype=flat.dtype)
    return order // expert_idx.shape[1], row_idx, torch.bincount(flat, minlength=experts)


def torch_copy(x, expert_idx, experts):
    token, row_idx, counts = torch_order(expert_idx, experts)
    return x.index_select(0, token), row_idx, counts


def torch_int8(x, expert_idx, experts):
    token, row_idx, counts = torch_order(expert_idx, experts)
    value = x.float()
    scale = value.abs().amax(dim=1, keepdim=True) / 127
    codes = (value / scale).round_().clamp_(-128, 127).to(torch.int8)
    return codes.index_select(0, token), row_idx, counts, scale[:, 0].index_select(0, token)


CASES = {"copy": (-1, torch_copy), "dynamic int8": (1, torch_int8)}


def seconds(call):
    start = time.perf_counter()
    result = call()
    elapsed = time.perf_counter() - start
    del result  # gives the memory back before the other side runs
    return elapsed


def same(ours, theirs):
    ours = [np.asarray(a) for a in ours if a is not None]
    theirs = [(b.view(torch.int16) if b.dtype == torch.bfloat16 else b).numpy() for b in theirs]
    ours = [a.view(b.dtype) if a.itemsize == b.itemsize else a for a, b in zip(ours, theirs, strict=True)]
    return all(map(np.array_equal, ours, theirs))


def main(
    tokens: int = 4096,
    hidden: int = 7168,
    slots: int = 8,
    experts: int = 256,
    rounds: Annotated[int, typer.Option(help="how often both sides run")] = 7,
):
    """Prints a table of both sides."""
    torch.set_num_threads(THREADS)
    random = np.random.default_rng(0)
    x = jnp.asarray(random.normal(size=(tokens, hidden)).astype(np.float32)).astype(jnp.bfloat16)
    expert_idx = np.stack([random.permutation(experts)[:slots] for _ in range(tokens)]).astype(np.int32)
    torch_x = torch.from_numpy(np.asarray(x).view(np.int16).copy()).view(torch.bfloat16)
    torch_idx, expert_idx = torch.from_numpy(expert_idx), jnp.asarray(expert_idx)

    table = Table(title=f"routing {tokens} x {hidden} bfloat16, k = {slots}, {experts} experts, {THREADS} threads")
    for column in ("", "jascend, ms", "PyTorch, ms", "ratio"):
        table.add_column(column, justify="right" if column else "left")
    for name, (mode, reference) in CASES.items():
        routing = jax.jit(lambda x, e, mode=mode: ja.moe_init_routing(x, e, expert_num=experts, quant_mode=mode))
        ours = lambda: jax.block_until_ready(routing(x, expert_idx))  # noqa: B023
        theirs = lambda: reference(torch_x, torch_idx, experts)  # noqa: B023
        if not same(ours(), theirs()):
            raise SystemExit(f"{name}: the results differ")
        times = np.array([(seconds(ours), seconds(theirs)) for _ in range(rounds)])
        mine, other = np.median(times, axis=0) * 1e3
        table.add_row(name, f"{mine:.1f}", f"{other:.1f}", f"{np.median(times[:, 0] / times[:, 1]):.2f}")
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
