"""Measures what the model of cost that decides fusions is made of, and how far its estimates are from the twin.

    python benchmarks/cost_figures.py [--write] [--targets ascend910b ascend950] [GRAPH ...]

Each graph of a grid is compiled with its fusions forced and forbidden, and each of its kernels runs on the twin.
`--write` fits the figures of every kind of kernel to that, and writes them with the measurements to
`passes/cost_figures.json`; without, the tables say how far the estimates of the file are from the twin, and which
decisions differ. It exits with 1 where an estimate is off by more than `WITHIN`, or where a decision costs more than
`REGRET` times the better choice.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from fusion import OFF
from jascend.backends.ascend.compile import FUSIONS
from jascend.backends.ascend.targets import target as target_of
from jascend.dialect import make_context
from jascend.passes import cost
from jascend.passes.lower_to_tile import KERNEL
from mlir import ir
from rich.console import Console
from rich.table import Table
from scipy.optimize import least_squares

import jascend as ja

WITHIN = 1.4  # times, of an estimate and the twin's time
REGRET = 1.1  # times, of what is chosen by estimates and the better of the two by the twin
_FORCED, _FORBIDDEN = "with it", "without"
_TARGETS = ("ascend910b", "ascend950")
_ROWS, _LENGTHS, _TOKENS = (1, 4, 16, 48, 100), (1000, 8000, 32000, 128256), (1, 16, 100, 1000)
_BF16, _F32 = ml_dtypes.bfloat16, np.float32
_START = cost.Figures(once=1.0)
_FITTED = ("once", "row", "element", "computed", "reads")

Graph = tuple[Callable, tuple, tuple[str, ...]]  # a function, its arguments, the fusions that are decided


def _penalized(logits, bias, allowed):
    return jnp.where(allowed, (logits.astype(jnp.float32) + bias) / 0.8, -jnp.inf)


def _filtered(logits, bias, allowed, p, k):
    return ja.apply_top_k_top_p(_penalized(logits, bias, allowed), p, k)


def _sampler(logits, p, k, q):
    return ja.top_k_top_p_sample(ja.apply_top_k_top_p(logits, p, k), OFF, 1.0, q, eps=0.0).logits_select_idx


def _sampler_with_key(logits, p, k, key):
    return jax.random.categorical(key, ja.apply_top_k_top_p(logits, p, k).astype(jnp.float32))


def _draw_with_key(logits, key):
    return jax.random.categorical(key, logits.astype(jnp.float32))


def _by_rank(logits, p, k, q):
    return ja.top_k_top_p_sample(logits, k, p, q).logits_select_idx


def _sorted(logits, p, k):
    values, indices = ja.sort(logits)
    return ja.apply_top_k_top_p_with_sorted(values, indices, p, k)


def _routed(experts: int, k: int, **attributes) -> Callable:
    def routed(logits, x):
        chosen = ja.moe_gating_top_k(logits, k, norm_type=1)
        routed = ja.moe_init_routing(x, chosen.expert_idx, expert_num=experts, **attributes)
        return chosen.y, routed.expanded_x, routed.expanded_row_idx, routed.expert_tokens, routed.expanded_scale

    return routed


def graphs(target: str) -> Iterator[tuple[str, Graph]]:
    """The grid of a product, by name; of all but the first one a part."""
    is_first = target == _TARGETS[0]
    rows_of, lengths = (_ROWS, _LENGTHS) if is_first else (_ROWS[::2], _LENGTHS[::2])
    rng = np.random.default_rng(0)
    key = jax.random.key(0)
    for length in lengths:
        for rows in rows_of:
            if rows * length > 6_500_000:
                continue
            dtype = _BF16 if rows in (4, 48) else _F32
            logits = rng.normal(0, 3, (rows, length)).astype(dtype)
            p, k = np.full(rows, 0.9, dtype), np.full(rows, 50, np.int32)
            q = rng.exponential(1, (rows, length)).astype(np.float32)
            wide, size = p.astype(np.float32), f"{rows}x{length}"
            computed = (logits, rng.normal(0, 1, length).astype(np.float32), rng.random((rows, length)) < 0.9)
            yield f"sampler {size}", (_sampler, (logits, p, k, q), ("fuse-sampling",))
            yield f"penalties {size}", (_filtered, (*computed, wide, k), ("fuse-elementwise",))
            if length < 100_000:
                yield f"sampler with a key {size}", (_sampler_with_key, (logits, p, k, key), ("fuse-sampling",))
                yield f"draw with a key {size}", (_draw_with_key, (logits, key), ("fuse-sampling",))
                yield f"by rank {size}", (_by_rank, (logits, p, k, q), ())
                yield f"rows {size}", (_penalized, computed, ())
            if length < 40_000 and rows in (1, 16, 48):
                yield f"sort {size}", (_sorted, (logits, p, k), ("fuse-sampling",))
    for experts, k, hidden in ((256, 8, 7168), (64, 6, 2048), (8, 2, 4096)):
        for tokens in _TOKENS if is_first else _TOKENS[::2]:
            logits = rng.normal(size=(tokens, experts)).astype(np.float32)
            x = rng.normal(size=(tokens, hidden)).astype(_BF16)
            for name, attributes in (("experts", {}), ("experts, quantized", {"quant_mode": 1})):
                routed = _routed(experts, k, **attributes)
                yield f"{name} {tokens}x{hidden} to {k} of {experts}", (routed, (logits, x), ("fuse-moe",))


# -- measuring ------------------------------------------------------------------------------------------------------


def measured(graph: Graph, target: str) -> dict[str, list[tuple[cost.Work, float]]]:
    """What each kernel of a graph has to do and its microseconds on the twin, with its fusions forced and forbidden."""
    function, arguments, decided = graph
    others = tuple(name for name in FUSIONS if name not in decided)
    found = {}
    for label, options in ((_FORCED, {"force": FUSIONS}), (_FORBIDDEN, {"force": others, "forbid": decided})):
        if label == _FORCED or decided:
            program = ja.compile(function, *arguments, target=target, plugins=None, **options)
            report = program.profile(*arguments)
            works = _works(program.ir("fused"), target)
            found[label] = [(works[kernel.name], kernel.seconds * 1e6) for kernel in report.kernels]
    return found


def _works(text: str, target: str) -> dict[str, cost.Work]:
    """What the operator of each kernel has to do."""
    with make_context():
        found = {}
        for function in ir.Module.parse(text).body.operations:
            if KERNEL in function.operation.attributes:
                (op,) = (
                    view.operation for view in function.body.blocks[0] if view.operation.name.startswith("ascend.")
                )
                found[function.name.value] = cost.work_of(op, target)
        return found


# -- fitting --------------------------------------------------------------------------------------------------------


def fitted(points: Sequence[tuple[cost.Work, float]], target: str) -> cost.Figures:
    """The figures with which the estimates for points of one kind are nearest to the twin's, in proportion."""

    def figures(values: Sequence[float], overlaps: bool) -> cost.Figures:
        return replace(_START, overlaps=overlaps, **{name: float(v) for name, v in zip(_FITTED, values)})

    def errors(values: Sequence[float], overlaps: bool) -> list[float]:
        return [np.log(work.microseconds(target, figures(values, overlaps)) / us) for work, us in points]

    start = [getattr(_START, name) for name in _FITTED]
    fits = [
        (least_squares(errors, start, bounds=(0, np.inf), x_scale=np.maximum(start, 1.0), args=(overlaps,)), overlaps)
        for overlaps in (False, True)
    ]
    best, overlaps = min(fits, key=lambda fit: fit[0].cost)
    return figures(best.x, overlaps)


def write(results: dict[str, dict[str, dict]]) -> None:
    """The file of figures, and of what they are fitted to."""
    figures, measurements = {}, {}
    for target, graphs_of in results.items():
        points = defaultdict(list)
        for runs in graphs_of.values():
            for work, us in (point for run in runs.values() for point in run):
                points[work.kind].append((work, us))
        arch = str(target_of(target).npu_arch)
        figures[arch] = {
            kind: {name: v if isinstance(v, bool) else round(v, 3) for name, v in asdict(fitted(those, target)).items()}
            for kind, those in sorted(points.items())
        }
        measurements[target] = {
            name: {label: [[*asdict(work).values(), round(us, 2)] for work, us in run] for label, run in runs.items()}
            for name, runs in graphs_of.items()
        }
    document = {
        "source": "python benchmarks/cost_figures.py --write: the twin's modelled times; docs/cost_model.md",
        "figures": figures,
        "measured": measurements,
    }
    text = json.dumps(document, indent=1)
    text = re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda row: "[" + re.sub(r"\s*\n\s*", " ", row[1]) + "]", text)
    cost.FIGURES_FILE.write_text(
        re.sub(r"\{\s+([^\[\]{}]*?)\s+\}", lambda o: "{" + re.sub(r"\s*\n\s*", " ", o[1]) + "}", text) + "\n"
    )


def written(target: str) -> dict[str, dict[str, list[tuple[cost.Work, float]]]]:
    """The measurements in the file."""
    of_target = json.loads(cost.FIGURES_FILE.read_text())["measured"].get(target, {})
    return {
        name: {label: [(cost.Work(*row[:-1]), row[-1]) for row in run] for label, run in runs.items()}
        for name, runs in of_target.items()
    }


# -- judging --------------------------------------------------------------------------------------------------------


def errors_of(runs: dict[str, list], target: str) -> list[float]:
    """Estimate over the twin's time, of each kernel."""
    return [work.microseconds(target) / us for run in runs.values() for work, us in run]


def regret_of(runs: dict[str, list], target: str) -> float:
    """The twin's time of what is chosen by estimates over that of the better choice."""
    if len(runs) < 2:
        return 1.0
    times = {label: sum(us for _, us in run) for label, run in runs.items()}
    estimates = {label: sum(work.microseconds(target) for work, _ in run) for label, run in runs.items()}
    chosen = _FORCED if estimates[_FORCED] <= estimates[_FORBIDDEN] else _FORBIDDEN
    return times[chosen] / min(times.values())


def _tables(results: dict[str, dict[str, dict]]) -> bool:
    """Prints how good the estimates are; whether they are good enough."""
    table = Table("kind", "target", "kernels", "lowest", "highest", title="Estimates over the twin's times")
    for target, graphs_of in results.items():
        ratios = defaultdict(list)
        for runs in graphs_of.values():
            for work, us in (point for run in runs.values() for point in run):
                ratios[work.kind].append(work.microseconds(target) / us)
        for kind, those in sorted(ratios.items()):
            table.add_row(kind, target, str(len(those)), f"{min(those):.2f}", f"{max(those):.2f}")
    decisions = Table("graph", "target", "with it, twin us", "estimate", "without", "estimate", title="Decisions")
    fine = True
    for target, graphs_of in results.items():
        for name, runs in graphs_of.items():
            fine &= all(1 / WITHIN <= ratio <= WITHIN for ratio in errors_of(runs, target))
            if len(runs) < 2:
                continue
            cells = []
            for run in runs.values():
                cells += [f"{sum(us for _, us in run):.1f}", f"{sum(work.microseconds(target) for work, _ in run):.1f}"]
            wrong = regret_of(runs, target)
            fine &= wrong <= REGRET
            decisions.add_row(name, target, *cells, style="red" if wrong > 1 else None)
    console = Console(width=140)
    console.print(table)
    console.print(decisions)
    return fine


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", nargs="*", help="names, or how they begin; all")
    parser.add_argument("--targets", nargs="+", default=_TARGETS)
    parser.add_argument(
        "--write", action="store_true", help="fit the figures and write the file; with names, the rest stays"
    )
    parser.add_argument("--refit", action="store_true", help="fit the figures to the measurements in the file")
    given = parser.parse_args(words)
    results = {target: written(target) for target in _TARGETS} if given.write or given.refit else {}
    for target in given.targets:
        if not given.refit and not (given.graphs and given.write):
            results[target] = {}
        for name, graph in () if given.refit else graphs(target):
            if not given.graphs or name.startswith(tuple(given.graphs)):
                results[target][name] = measured(graph, target)
                print(
                    target, name, [round(us, 1) for run in results[target][name].values() for _, us in run], flush=True
                )
    if given.write or given.refit:
        write(results)
        cost.figures_of.cache_clear()
    sys.exit(not _tables(results))


if __name__ == "__main__":
    main()
