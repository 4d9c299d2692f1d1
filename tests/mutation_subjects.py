"""Kernels to break on purpose: every kind that is generated, each with launches that together take every path through it.

A call is a dict of arrays; every subject is launched for all of its calls, on one core and on several.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable

import jax
import jax.numpy as jnp
import ml_dtypes
import mutations
import numpy as np
from mlir import ir

import jascend as ja
import jascend.dialect
from jascend.backends.ascend.codegen import kernel as emitter
from jascend.backends.ascend.codegen import tiling
from jascend.passes.lower_to_tile import KERNEL
from jascend.passes.pipeline import run_pipeline

BF16, F32 = ml_dtypes.bfloat16, np.float32
ROWS = 2
SHORT = 1000  # short enough that nearly all of the kernel runs
LONG = 17000  # three chunks
SUBJECTS: dict[str, Callable[[], mutations.Subject]] = {}


def subject(function=None, *, targets=("ascend910b",)):
    """Registers a function of the target; one name for each of the targets."""
    if function is None:
        return functools.partial(subject, targets=targets)
    for target in targets:
        name = function.__name__ + ("_on_950" if target == "ascend950" else "")
        SUBJECTS[name] = functools.partial(function, target)
    return function


def target_of(name: str) -> str:
    return SUBJECTS[name].args[0]


BOTH = ("ascend910b", "ascend950")

# -- data -------------------------------------------------------------------------------------------------------------


def rng_of(*key) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def logits_of(kind: str, vocabulary: int, dtype=F32, rows: int = ROWS) -> np.ndarray:
    rng = rng_of(kind, vocabulary)
    shape = rows, vocabulary
    drawn = {
        "normal": lambda: np.where(np.arange(vocabulary) == vocabulary - 1, 12, rng.normal(0, 4, shape)),  # the last counts
        "last": lambda: np.where(np.arange(vocabulary) == vocabulary - 1, 40, rng.normal(0, 4, shape)),
        "some ties": lambda: np.round(rng.normal(0, 2, shape) * 2) / 2,
        "pairs": lambda: rng.permuted(np.repeat(rng.normal(0, 1, (rows, vocabulary // 2)), 2, axis=1), axis=1),
        "flat": lambda: rng.normal(0, 0.01, shape),
        "flat and high": lambda: rng.normal(5, 0.01, shape),
        "ties": lambda: rng.integers(-40, 40, shape) / 4,
        "same": lambda: np.ones(shape),
        "none": lambda: np.where(np.arange(rows)[:, None] == 0, -np.inf, rng.normal(0, 4, shape)),  # in the first row
        "few": lambda: np.where(rng.random(shape) < 0.002, 5, rng.normal(0, 1, shape)),
        # What only the first chunk has: NaN, or copies of a value.
        "early nan": lambda: np.where(np.isin(np.arange(vocabulary), (7, 3000)), np.nan, rng.normal(0, 4, shape)),
        "half nan": lambda: np.where(rng.random(shape) < 0.5, np.nan, rng.normal(0, 4, shape)),
        # What is above the rest is only in some columns mod 256, the width of a fold; or it is so few that copies follow.
        "few columns": lambda: rng.normal(0, 1, shape) + 10 * (np.arange(vocabulary) % 256 < 90),
        "few above": lambda: np.where(np.arange(vocabulary) % 700 == 7, 5.0, np.ones(shape)),
        "early run": lambda: np.where(np.arange(vocabulary) < 4096, 0.0, rng.normal(0, 4, shape) ** 3 + 0.01),
        "special": lambda: rng.choice([0.0, 1.0, -300.0, np.inf, -np.inf, np.nan], shape),
        "rising": lambda: np.sort(rng.normal(0, 4, shape), axis=1),
        "falling": lambda: -np.sort(rng.normal(0, 4, shape), axis=1),
        "steps": lambda: np.repeat(rng.permutation(vocabulary // 100 + 1), 100)[:vocabulary] / 8 * np.ones((rows, 1)),
        # Rows whose sample misleads: the elements that it takes are the largest ones, or the smallest; the largest of
        # all is not among them.
        "sampled high": lambda: rng.normal(0, 1, shape) + 20 * is_sampled(vocabulary),
        "sampled low": lambda: rng.normal(0, 1, shape) - 20 * is_sampled(vocabulary),
        # Near the maximum the rest is 1.6 times as dense as what is sampled: long batches.
        "sampled thinly": lambda: rng.random(shape) ** np.where(is_sampled(vocabulary), 1, 0.6) / 100,
        "outlier": lambda: np.where(np.arange(vocabulary) == vocabulary // 64 * 30 + 100, 300.0, rng.normal(0, 1, shape)),
    }
    return drawn[kind]().astype(dtype)


def is_sampled(vocabulary: int) -> np.ndarray:
    """What the search for thresholds samples of a row: 64 runs of 16."""
    return np.arange(vocabulary) % (vocabulary // 64) < 16


def sums_of(logits: np.ndarray) -> np.ndarray:
    """Probabilities up to each rank, in descending order."""
    weights = np.exp(-np.sort(-logits.astype(np.float64), axis=1))
    return np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True)


def p_for(logits: np.ndarray, *numbers: int) -> np.ndarray:
    """For each row a top-p whose nucleus has so many elements."""
    return np.array([sums[n - 2 : n].mean() for sums, n in zip(sums_of(logits), numbers)], F32)


def q_at_edge(logits: np.ndarray, p, by_rank: bool = False) -> np.ndarray:
    """Exponential numbers, of elements or of their ranks, by which the last element of the nucleus is drawn; in every other
    row the first one behind it, if the nucleus had that."""
    q = rng_of("edge", list(p)).exponential(size=logits.shape).astype(F32)
    for i, number in enumerate((sums_of(logits) < np.array(p)[:, None]).sum(axis=1)):
        rank = min(number + i % 2, logits.shape[1] - 1)
        q[i, rank if by_rank else np.argsort(-logits[i], kind="stable")[rank]] = 1e-6
    return q


def row(values, dtype=F32) -> np.ndarray:
    return np.array(values, F32).astype(dtype)


def normal(*shape, dtype=F32) -> np.ndarray:
    return rng_of("normal", shape).normal(0, 1, shape).astype(dtype)


def ints(values) -> np.ndarray:
    return np.array(values, np.int32)


# -- filters ----------------------------------------------------------------------------------------------------------


def scaled_filter(logits, temperature, p, k):
    return ja.apply_top_k_top_p(logits / temperature[:, None], p, k)


def top_k_top_p(logits, p, k):
    return ja.apply_top_k_top_p(logits, p, k)


def top_k(logits, k):
    return ja.apply_top_k_top_p(logits, None, k)


def top_p(logits, p):
    return ja.apply_top_k_top_p(logits, p, None)


# Ties at the boundary of the nucleus or none, top-k off, by list and by search, rows that are special.
FILTER_CALLS = [
    ("ties", [0.9, 0.5], [500, 0]), ("normal", [0.9, 0.5], [50, 0]), ("flat", [0.99, 1.0], [9000, 0]),
    ("flat", [0.3, 0.9], [0, 12000]), ("same", [0.5, 0.1], [3, 0]), ("special", [0.5, 0.9], [0, 100]),
    ("normal", [0.0, 1.5], [1, 8000]), ("few", [0.1, 0.05], [0, 20]), ("none", [0.9, 0.5], [0, 100]),
]  # fmt: skip


@subject(targets=BOTH)
def filter_scaled(target):
    calls = [
        {"logits": logits_of(kind, SHORT, BF16), "temperature": row([1, 2], BF16), "p": row(p, BF16), "k": ints(k)}
        for kind, p, k in FILTER_CALLS
    ]
    return mutations.of_program(scaled_filter, *calls, cores=(1, 4), target=target)


@subject
def filter_by_k(target):
    calls = [("normal", [50, 700]), ("ties", [9000, 0]), ("flat", [12000, 1]), ("special", [5, 4000])]
    calls = [{"logits": logits_of(kind, SHORT), "k": ints(k)} for kind, k in calls]
    return mutations.of_program(top_k, *calls, cores=(1, 4), target=target)


@subject
def filter_by_p(target):
    calls = [("normal", [0.5, 0.9]), ("ties", [0.3, 1.0]), ("flat", [0.99, 0.1]), ("special", [0.9, 0.5])]
    calls = [{"logits": logits_of(kind, SHORT), "p": row(p)} for kind, p in calls]
    return mutations.of_program(top_p, *calls, cores=(1, 4), target=target)


def filter_of_masked(logits, seen, allowed, counts, flags, k):
    x = logits.astype(jnp.float32) - 0.5 * counts.astype(jnp.float32)
    return ja.apply_top_k_top_p(jnp.where(allowed & ~seen | flags[:, None], x, x - 3), None, k)


@subject
def filter_of_computed(target):
    """Rows that are computed where they are loaded, of bytes and integers too, and of one row for all."""
    rng = rng_of("masks")
    masks = {
        "seen": rng.random((ROWS, SHORT)) < 0.3, "allowed": rng.random(SHORT) < 0.9,
        "counts": rng.integers(0, 3, (ROWS, SHORT)).astype(np.int32),
    }  # fmt: skip
    masks["seen"][:, -1], masks["allowed"][-1] = (False, True), True  # the last counts
    calls = [("normal", [50, 700]), ("ties", [900, 0]), ("flat", [800, 1]), ("special", [5, 400])]
    calls = [
        {"logits": logits_of(kind, SHORT, BF16), "k": ints(k), "flags": np.full(ROWS, kind == "ties")} | masks
        for kind, k in calls
    ]
    return mutations.of_program(filter_of_masked, *calls, cores=(1, 4), target=target)


LONG_CALLS = [
    *FILTER_CALLS, ("rising", [0.9, 1.0], [50, 5000]), ("falling", [0.5, 0.99], [2000, 0]), ("steps", [0.6, 0.3], [300, 0]),
    ("normal", [1.0, 0.95], [4096, 17000]), ("same", [0.99, 1.0], [0, 16999]), ("ties", [1.0, 0.99], [6000, 3000]),
    ("sampled high", [0.9, 0.5], [5000, 0]), ("sampled low", [0.99, 0.9], [9000, 0]), ("outlier", [0.9, 1.0], [12000, 9000]),
    ("outlier", [0.5, 0.99], [0, 0]), ("outlier", [0.9, 0.99], [2000, 3000]), ("some ties", [0.6, 0.35], [60, 40]),
    ("some ties", [0.5, 0.8], [50, 70]),
    # Lists that are a little longer than a tile of 8192.
    ("normal", [1.0, 1.0], [7000, 7200]), ("normal", [1.0, 1.0], [7400, 7600]), ("normal", [1.0, 1.0], [7800, 8000]),
    ("pairs", [1.0, 1.0], [7001, 7401]),  # one of two that are equal stays
]  # fmt: skip


@subject(targets=BOTH)
def filter_long(target):
    calls = [{"logits": logits_of(kind, LONG), "p": row(p), "k": ints(k)} for kind, p, k in LONG_CALLS]
    return mutations.of_program(top_k_top_p, *calls, cores=(1, 18), target=target)


@subject
def filter_long_by_k(target):
    calls = [{"logits": logits_of(kind, LONG, BF16), "k": ints(k)} for kind, _, k in LONG_CALLS]
    return mutations.of_program(top_k, *calls, cores=(1, 4), target=target)


FUSED = ("fuse-sampling",)  # whether it pays or not


def filter_and_draw(logits, p, k, q):
    drawn = jax.nn.softmax(ja.apply_top_k_top_p(logits, p, k), axis=-1) / jnp.maximum(q, 1e-10)
    return jnp.argmax(drawn, axis=-1)


def draws_of(calls, vocabulary, dtype=F32):
    q = rng_of("q", vocabulary).exponential(size=(ROWS, vocabulary)).astype(F32)
    return [
        {"logits": logits_of(kind, vocabulary, dtype), "p": row(p, dtype), "k": ints(k), "q": q} for kind, p, k in calls
    ]


@subject(targets=BOTH)
def filter_sample(target):
    draws = draws_of(FILTER_CALLS, SHORT)
    for kind in ("normal", "flat"):
        (call,) = draws_of([(kind, [0.9, 0.6], [0, 0])], SHORT)
        draws.append(call | {"q": q_at_edge(call["logits"], call["p"])})
    return mutations.of_program(filter_and_draw, *draws, cores=(1, 4), target=target, force=FUSED)


@subject
def filter_sample_long(target):
    draws = draws_of(LONG_CALLS, LONG)
    return mutations.of_program(filter_and_draw, *draws, cores=(1, 4), target=target, force=FUSED)


def filter_and_draw_by_key(logits, p, k, key):
    return jax.random.categorical(key, ja.apply_top_k_top_p(logits, p, k))


def filter_and_draw_by_keys(logits, p, key):
    return jax.vmap(jax.random.categorical)(key, top_p(logits, p))


def by_key(calls, vocabulary):
    return [
        {"logits": logits_of(kind, vocabulary), "p": row(p), "k": ints(k), "key": jax.random.key(i)}
        for i, (kind, p, k) in enumerate(calls)
    ]


@subject(targets=BOTH)
def filter_sample_by_key(target):
    draws = by_key(FILTER_CALLS, SHORT)
    return mutations.of_program(filter_and_draw_by_key, *draws, cores=(1, 4), target=target, force=FUSED)


@subject
def filter_sample_by_keys(target):
    """Top-p alone, and a key for each row."""
    draws = [
        {"logits": call["logits"], "p": call["p"], "key": jax.random.split(call["key"], ROWS)}
        for call in by_key(FILTER_CALLS, SHORT)
    ]
    return mutations.of_program(filter_and_draw_by_keys, *draws, cores=(1, 4), target=target, force=FUSED)


@subject
def filter_sample_long_by_key(target):
    draws = by_key(LONG_CALLS, LONG)
    return mutations.of_program(filter_and_draw_by_key, *draws, cores=(1, 4), target=target, force=FUSED)


# -- samplers ---------------------------------------------------------------------------------------------------------


def sample(logits, top_k, top_p, q):
    return ja.top_k_top_p_sample(logits, top_k, top_p, q)


def sample_with_rows(logits, top_k, top_p, min_ps):
    return ja.top_k_top_p_sample(
        logits, top_k, top_p, None, min_ps, is_need_logits=True, is_need_sample_result=True
    )


SAMPLER_CALLS = [
    ("normal", [50, 0], [0.9, 0.95]), ("flat", [1000, 7], [0.999, 1.0]), ("ties", [0, 0], [1.0, 0.3]),
    ("flat", [0, 0], [0.9, 0.5]), ("same", [0, 900], [0.9, 0.9]), ("flat", [0, 0], [0.01, 0.2]),
    ("flat", [0, 0], [0.999, 0.98]), ("ties", [1024, 1], [0.9, 1.0]),
]  # fmt: skip


# Lists that are too short or long, folds and samples that mislead, runs up to the end of a row, batches of nothing.
LONG_SAMPLER_CALLS = [
    *SAMPLER_CALLS, ("outlier", [0, 0], [0.9, 1.0]), ("same", [0, 7], [0.99, 0.9]), ("half nan", [0, 900], [0.9, 0.95]),
    ("half nan", [7, 0], [0.5, 1.0]), ("flat", [900, 100], [1.0, 1.0]), ("few columns", [100, 0], [0.9, 0.99]),
    ("few above", [7, 100], [0.9, 1.0]), ("sampled thinly", [0, 0], [0.9, 0.99]),
]  # fmt: skip


def sampler_calls(vocabulary, calls=SAMPLER_CALLS, **others):
    return [{"logits": logits_of(kind, vocabulary), "top_k": ints(k), "top_p": row(p)} | others for kind, k, p in calls]


def at_end_of_batch(logits: np.ndarray) -> np.ndarray:
    """For each row a top-p that ends its nucleus with the last but one element of those that are sorted first: all that
    reach a certain element of a sample, or 1024."""
    sampled = -np.sort(-logits[:, is_sampled(logits.shape[1])][:, :1024], axis=1)
    number = np.minimum((logits >= sampled[:, 127:128]).sum(axis=1), 1024)
    return p_for(logits, *(number - 1))


@subject(targets=BOTH)
def sampler(target):
    q = rng_of("sampler").exponential(size=(ROWS, SHORT)).astype(F32)
    calls = sampler_calls(SHORT, q=q) + sampler_calls(SHORT, [("normal", [0, 0], [1.0, 1.0])], q=np.ones_like(q))
    for kind in ("normal", "flat"):
        (call,) = sampler_calls(SHORT, [(kind, [0, 0], [0.9, 0.6])])
        calls.append(call | {"q": q_at_edge(call["logits"], call["top_p"], by_rank=True)})
    return mutations.of_program(sample, *calls, cores=(1, 4), target=target)


@subject
def sampler_long(target):
    q = rng_of("sampler").exponential(size=(ROWS, 9000)).astype(F32)
    calls = sampler_calls(9000, LONG_SAMPLER_CALLS, q=q)
    flat = logits_of("flat", 9000)
    calls.append({"logits": flat, "top_k": ints([0, 0]), "top_p": at_end_of_batch(flat), "q": q})
    for kind, k in (("normal", [0, 0]), ("flat", [0, 0]), ("flat", [100, 900]), ("flat", [900, 100])):
        (call,) = sampler_calls(9000, [(kind, k, [1.0, 1.0] if any(k) else [0.9, 0.6])])
        ends = p_for(call["logits"], *k) if any(k) else call["top_p"]
        calls.append(call | {"q": q_at_edge(call["logits"], ends, by_rank=True)})
    calls += sampler_calls(9000, [("last", [50, 7], [0.9, 0.9])], q=np.ones_like(q))  # the last element is the greatest
    return mutations.of_program(sample, *calls, cores=(1, 4), target=target)


@subject
def sampler_with_rows(target):
    calls = sampler_calls(SHORT, min_ps=row([0.05, 0.0])) + sampler_calls(SHORT, min_ps=row([0.0, 0.9]))
    flat = logits_of("flat", SHORT)
    for p in ([0.99999, 0.5], [1.0, 1.0]):  # all of a row survives
        calls.append({"logits": flat, "top_k": ints([0, 0]), "top_p": row(p), "min_ps": row([0.05, 0.05])})
    for m in ([0.0, 0.0], [1.2e-38, 1.2e-38]):  # as they are; and with a bound of zero, which lanes behind the row reach
        calls.append({"logits": flat, "top_k": ints([0, 0]), "top_p": row([1.0, 1.0]), "min_ps": row(m)})
    return mutations.of_program(sample_with_rows, *calls, cores=(1, 4), target=target)


# -- random numbers ---------------------------------------------------------------------------------------------------


def exponential(key):
    return jax.random.exponential(key, (3, 5000))


def of_folded_keys(key, count):
    return jax.vmap(lambda key, count: jax.random.exponential(jax.random.fold_in(key, count), (70,)))(key, count)


def folded(rows: int) -> dict:
    return {"key": jax.random.split(jax.random.key(2), rows), "count": np.arange(rows, dtype=np.int32)}


@subject(targets=BOTH)
def random_numbers(target):
    return mutations.of_program(exponential, {"key": jax.random.key(1)}, cores=(1, 3, 12), target=target)


@subject
def random_numbers_of_keys(target):
    return mutations.of_program(of_folded_keys, folded(5), cores=(1, 2), target=target, kernel="random_exponential")


@subject
def random_keys(target):
    return mutations.of_program(of_folded_keys, folded(5), cores=(1, 2), target=target, kernel="random_key")


# -- sorts ------------------------------------------------------------------------------------------------------------


def descending(x):
    return ja.sort(x, descending=True)


def ascending(x):
    return ja.sort(x)


SORTED = ("normal", "ties", "same", "special", "rising", "early nan", "half nan", "early run")


@subject(targets=BOTH)
def sort(target):
    return mutations.of_program(
        descending, *({"x": logits_of(kind, SHORT)} for kind in SORTED), cores=(1, 4), target=target
    )


def filter_sorted(values, indices, p, k):
    return ja.apply_top_k_top_p_with_sorted(values, indices, p, k)


def filtered_when_sorted(target, vocabulary, calls):
    made = []
    for kind, p, k in calls:
        values, indices = ja.sort(logits_of(kind, vocabulary))
        made.append({"values": np.asarray(values), "indices": np.asarray(indices), "p": row(p), "k": ints(k)})
    return mutations.of_program(filter_sorted, *made, cores=(1, 4), target=target)


@subject(targets=BOTH)
def filter_of_sorted(target):
    # The k-th largest has copies, and is greater or less than 0.
    return filtered_when_sorted(target, SHORT, [*FILTER_CALLS, ("ties", [1.0, 1.0], [100, 900])])


@subject(targets=BOTH)
def filter_of_sorted_long(target):
    calls = [*FILTER_CALLS, ("normal", [0.9, 1.0], [50, 3000]), ("ties", [1.0, 1.0], [1000, 8000])]
    # The nucleus begins with the last element of a piece of 1024, or the first.
    calls.append(("flat and high", p_for(logits_of("flat and high", 9001), 9001 - 4095, 9001 - 5120), [0, 0]))
    return filtered_when_sorted(target, 9001, calls)


@subject
def sort_long(target):
    return mutations.of_program(
        ascending, *({"x": logits_of(kind, 9001, BF16)} for kind in SORTED), cores=(1, 2), target=target
    )


@subject
def sort_long_alone(target):
    """Each row by one core, all its bands."""
    calls = [{"x": logits_of(kind, 9001)} for kind in SORTED]
    return mutations.of_program(descending, *calls, cores=(1, 2), target=target, rows=48)


# -- a kernel by hand: two cores that read what the other one wrote ---------------------------------------------------

MEETING = """
func.func @k(%x: memref<?x64xf32, "gm">, %out: memref<?x64xf32, "gm">) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %rows = memref.dim %x, %c0 : memref<?x64xf32, "gm">
  %first, %last, %part, %rounds = "tile.block_rows"(%rows) : (index) -> (index, index, index, index)
  %shared = "tile.workspace"() {name = "shared", elements = 512 : i64, per = "launch"} : () -> memref<512xf32, "gm">
  scf.for %row = %first to %last step %c1 {
    %at = arith.muli %row, %c64 : index
    %a = "tile.load"(%x, %at, %c64) : (memref<?x64xf32, "gm">, index, index) -> tensor<64xf32>
    %e = math.exp %a : tensor<64xf32>
    "tile.store"(%e, %shared, %at, %c64) : (tensor<64xf32>, memref<512xf32, "gm">, index, index) -> ()
  }
  "tile.sync_all"() : () -> ()
  %end = arith.subi %rows, %c1 : index
  scf.for %row = %first to %last step %c1 {
    %other = arith.subi %end, %row : index
    %from = arith.muli %other, %c64 : index
    %b = "tile.load"(%shared, %from, %c64) : (memref<512xf32, "gm">, index, index) -> tensor<64xf32>
    %s = arith.addf %b, %b : tensor<64xf32>
    %at = arith.muli %row, %c64 : index
    "tile.store"(%s, %out, %at, %c64) : (tensor<64xf32>, memref<?x64xf32, "gm">, index, index) -> ()
  }
  return
}
"""


@subject
def meeting(target):
    rows, cores = 6, 2
    passes = "pipeline-loads{min-gain=-100},lower-to-ascendc,allocate-ub,insert-sync"
    with jascend.dialect.make_context():
        module = run_pipeline(ir.Module.parse(MEETING), passes)
        op = next(op.operation for op in module.body.operations if KERNEL in op.operation.attributes)
        kernel = emitter.emit(op, target=target, title="k")
    x = normal(rows, 64)
    fields, scratch = tiling.pack(kernel.shape.data(rows, cores)), kernel.shape.workspace_bytes(rows, cores)
    launch = mutations.Launch(fields, (x,), (x,), cores, scratch)
    return mutations.Subject("k", kernel.source, kernel.tiling_file, kernel.tiling_header, (launch,))
