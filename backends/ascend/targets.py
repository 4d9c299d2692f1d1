"""Product facts, each once, with its source. Nothing else in the project states a limit of a product.

Sources: the NPU architecture pages of the public Ascend C programming guide (2201 for the 910B and 910_93 families,
3510 for the 950 family), the platform header's reserved sizes, and the platform configuration files for core counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Target:
    """One product family. Sizes in bytes."""

    name: str
    npu_arch: int  # `__NPU_ARCH__`
    vector_cores: int  # of the family's common bin; a launch may use fewer
    ub_bytes: int  # unified buffer of one vector core, what the runtime keeps for itself taken off
    ub_reserved_bytes: int  # at the end of it: scratch of `Select` against a scalar or a tensor (8 KB on 2201)
    socs: tuple[str, ...]  # what toolkits call it, the newest name first
    vector_waits: bool = False  # a vector instruction waits for those before it, without a barrier
    newer_names: Mapping[str, str] = field(default_factory=dict)  # of APIs, by the older ones; of its newest toolkits

    @property
    def ub_usable_bytes(self) -> int:
        """What a kernel's buffers may take."""
        return self.ub_bytes - self.ub_reserved_bytes


_KIB = 1024
# The API reference's table of changed interfaces. Toolkits from 9.0 on have both names, and those for 910B and 910_93
# before them only the older. (The newer names of reductions, `ReduceRepeat` and `ReduceDataBlock`, came with 9.1.)
_SINCE_9_0 = {"CompareScalar": "Compares"}
_2201 = {"npu_arch": 2201, "ub_bytes": 192 * _KIB - 256, "ub_reserved_bytes": 8 * _KIB}

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target("ascend910b", vector_cores=48, socs=("ascend910b",), **_2201),
        Target("ascend910_93", vector_cores=48, socs=("ascend910_93",), **_2201),
        # 256 KB, less 6 KB stack of vector functions and 2 KB of the API.
        Target(
            "ascend950", npu_arch=3510, vector_cores=64, ub_bytes=248 * _KIB, ub_reserved_bytes=0,
            socs=("ascend950", "ascend910_95"), vector_waits=True, newer_names=_SINCE_9_0,
        ),
    )
}  # fmt: skip


def target(name: str) -> Target:
    """The product of that name; ValueError names those there are."""
    if name not in TARGETS:
        raise ValueError(f"unknown target {name!r}: it must be one of {', '.join(TARGETS)}")
    return TARGETS[name]


# ---- what things cost, for the model in `report` ----

_ADD = "Add sample of the guide's best practices (add_high_performance)"
_COPY = "copy sample of the guide's best practices (data_copy)"
_BANK = "bank-conflict sample of the guide's best practices (bank_conflict_ub)"
_BENCH = "public baseline durations of the hand-written kernels (cann-bench, 910B3)"


@dataclass(frozen=True)
class Fact:
    """One number of the cost model.

    `kind`: "documented" (a page says it), "measured" (a page prints the measurement), "derived" (our arithmetic on
    such), or "guess" (no source; plausible).
    """

    value: float
    unit: str
    kind: str
    source: str


@dataclass(frozen=True)
class Costs:
    """What things cost on one architecture: each fact by name, and cycles of vector work.

    Attributes:
        facts: the numbers with units and sources; `costs.clock` reads the value of the fact "clock".
        vector: cycles for each 256 bytes ("repeat") of an API, for elements of 4 and of 2 bytes.
        vector_source: where that table is from.
        chained: APIs that the product builds as a chain, in which every repeat waits for the one before.
    """

    facts: dict[str, Fact]
    vector: dict[str, tuple[float, float]]
    vector_source: str
    chained: frozenset[str]

    def __getattr__(self, name: str) -> float:
        try:
            return object.__getattribute__(self, "facts")[name].value
        except KeyError:
            raise AttributeError(f"no cost {name!r}; there are {', '.join(self.facts)}") from None


_FACTS_2201 = {
    "clock": Fact(1.85e9, "cycles/s", "documented", _ADD),
    "launch": Fact(4e-6, "s", "derived", "launch and end of a kernel; small ones suggest 2 to 12 us; " + _BENCH),
    "tiling_copy": Fact(1e-6, "s", "guess", "tiling data, copied to every core at the start; the guide puts it in the "
                        "1 us class, its growth with the size is not modelled"),
    "sync_all": Fact(2e-6, "s", "guess", "one SyncAll of all cores; 1 to 3 us are plausible"),
    "read": Fact(43.2e9, "B/s", "measured", "one core, GM to UB, 268 MB in 6209 us; " + _ADD),
    "write": Fact(51.4e9, "B/s", "derived", "one core, UB to GM, 134 MB in 2613 us; " + _ADD),
    "read_l2": Fact(114e9, "B/s", "derived", "one core, data in L2: 906 MB in 165 us on 48 cores; " + _COPY),
    "total": Fact(1.5e12, "B/s", "measured", "all cores in one direction, 1.456e12 read with 32 KB copies; " + _ADD),
    "total_both": Fact(2.35e12, "B/s", "measured", "all cores, reads and writes that overlap; " + _ADD),
    "total_l2": Fact(5.2e12, "B/s", "documented", "L2 peak, tuning pages of the guide"),
    "l2": Fact(192 * 2**20, "B", "documented", "size of L2; architecture page 2201 (the smallest bin has 96 MB)"),
    "copy_issue": Fact(21, "cycles", "derived", "copies in a row start 11.2 ns apart, 128 B each; " + _COPY),
    "read_latency": Fact(270, "cycles", "guess", "370 cycles a copy that the scalar unit waits for in the sampler, "
                         "less flags and scalar accesses; " + _BENCH),
    "write_latency": Fact(100, "cycles", "guess", "until a write is taken over; fenced 4-byte writes leave about 260 "
                          "in the sampler and below 60 in routing; " + _BENCH),
    "copy_piece": Fact(8, "cycles", "derived", "64 pieces of 128 B a copy: 302 MB in 221 us on 48 cores; " + _COPY),
    "unaligned": Fact(1.28, "times", "measured", "rows that do not start on 32 B of GM take as much longer; " + _COPY),
    "vector_start": Fact(24, "cycles", "derived", "88 cycles for an Add of 64 repeats; " + _BANK),
    "vector_follow": Fact(0.2, "times", "guess", "share of the start-up that independent instructions in a row pay"),
    "issue": Fact(6, "cycles", "guess", "scalar unit, one instruction: 4 to set the mask (documented), 2 for the rest"),
    "scalar": Fact(2, "cycles", "guess", "scalar unit, for one flag or barrier"),
    "flag": Fact(10, "cycles", "derived", "from a set to its wait, between copies and vector unit: what 16384 tiles of "
                 "one core leave beside copies and additions, bank conflicts left aside; " + _ADD),
    "flag_scalar": Fact(40, "cycles", "guess", "the same where the scalar unit sets or waits; 50 to 200 a round trip"),
    "bank_read": Fact(1.03, "cycles", "measured", "a repeat whose two operands are in one bank group: Add of 64 "
                      "repeats in 83.3 ns instead of 47.8; " + _BANK),
    "bank_write": Fact(0.79, "cycles", "measured", "a repeat that writes to a bank which it reads: 75.0 ns; " + _BANK),
    "scalar_ub": Fact(10, "cycles", "derived", "one GetValue or SetValue on UB: 18.5 ns for three and a sum; " + _ADD),
    "cube": Fact(8192, "operations/cycle", "derived", "one cube core, half as many as vector cores, 16-bit floats: 16 "
                 "x 16 x 16 multiply-adds; architecture page 2201"),
    "scalar_gm": Fact(100, "cycles", "guess", "one GetValue or SetValue on GM, through the scalar unit's cache"),
}  # fmt: skip

_FACTS_3510 = _FACTS_2201 | {
    "clock": Fact(1.65e9, "cycles/s", "documented", _ADD),
    "launch": Fact(4.3e-6, "s", "derived", "smallest kernels of " + _BENCH.replace("910B3", "950PR")),
    "read": Fact(35e9, "B/s", "derived", "one core, GM to UB; " + _ADD),
    "write": Fact(42e9, "B/s", "guess", "as much faster than reading as on 2201"),
    "read_l2": Fact(81e9, "B/s", "guess", "L2 peak over 64 cores"),
    "total": Fact(1.454e12, "B/s", "measured", "all cores read, 43 KB copies, 64 cores; " + _ADD),
    "total_both": Fact(2.26e12, "B/s", "measured", "all cores, reads and writes that overlap; " + _ADD),
    "l2": Fact(128 * 2**20, "B", "documented", "size of L2; architecture page 3510"),
    "copy_issue": Fact(39, "cycles", "derived", "copies in a row start 24 ns apart; " + _COPY),
    "read_latency": Fact(270, "cycles", "guess", "as on 2201"),
    "write_latency": Fact(100, "cycles", "guess", "as on 2201"),
    "copy_piece": Fact(8, "cycles", "guess", "as on 2201"),
    "unaligned": Fact(1.02, "times", "measured", "rows that do not start on 32 B of GM; " + _COPY),
    "cube": Fact(8192, "operations/cycle", "guess", "as on 2201"),
    "bank_read": Fact(0, "cycles", "documented", "two reads a group and cycle; architecture page 3510"),
    "bank_write": Fact(0, "cycles", "documented", "a read and a write a group and cycle; architecture page 3510"),
    "vector_start": Fact(26, "cycles", "guess", "a round trip through UB takes 16 ns in a third party's measurement"),
}

_ONE_CYCLE = (
    "Add", "Sub", "Mul", "Max", "Min", "Adds", "Muls", "Maxs", "Mins", "Abs", "Relu", "Rsqrt", "Reciprocal",
    "Compare", "CompareScalar", "Compares", "Select", "Duplicate", "ShiftLeft", "ShiftRight", "Axpy", "FusedMulAdd",
    "And", "Or", "Not", "Neg", "Cast", "CreateVecIndex", "ArithProgression", "CumSum", "Brcb", "Transpose",
    "TransDataTo5HD", "PairReduceSum", "ReducePairElem", "Copy", "DataCopy", "DataCopyPad", "Extract", "Round", "Rint",
    "AscendQuant", "Floor", "Ceil", "Trunc", "Frac", "Sign", "GetCmpMask", "SetCmpMask", "Subs", "Ands", "Ors",
    "AddRelu", "SubRelu", "FusedMulAddRelu",
)  # fmt: skip

# High-level functions that hold an Exp, an Ln or a Div among simpler steps, and count them all: as Sigmoid, a guess.
_FUNCTIONS = (
    "Sigmoid", "Gelu", "Silu", "Tanh", "Sinh", "Cosh", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Asinh", "Acosh",
    "Atanh", "Erf", "Erfc", "Log2", "Log10", "Power",
)  # fmt: skip

# Sort32, MrgSort, Sort and TopK count 32 pairs a repeat. Sigmoid, Round, AscendQuant and SoftMax (a maximum, a
# difference, Exp, a sum, a quotient, a copy) count all their steps, so that their figures are means.
_VECTOR_2201 = dict.fromkeys(_ONE_CYCLE, (1, 1)) | {
    **dict.fromkeys(("Exp", "Ln", "Log", "Sqrt", "Div", "Divs"), (2, 4)),
    "MulAddDst": (2, 2),
    **dict.fromkeys(_FUNCTIONS, (1.5, 2.5)),
    "SoftMax": (3.3, 3.7),
    "GatherMask": (2, 2),
    "Gather": (12.8, 25.6),
    "Gatherb": (3, 3),
    **dict.fromkeys(("WholeReduceMax", "WholeReduceMin", "WholeReduceSum", "ReduceRepeat"), (7, 7)),
    **dict.fromkeys(("ReduceMax", "ReduceMin", "ReduceSum"), (7, 7)),
    **dict.fromkeys(("BlockReduceMax", "BlockReduceMin", "BlockReduceSum", "ReduceDataBlock"), (1, 7)),
    **dict.fromkeys(("Sort32", "MrgSort", "Sort", "TopK"), (16, 16)),
}
# Of these the repeats read and write where the trace says: element by element, at fixed strides.
BANKED = frozenset(
    ("Add", "Sub", "Mul", "Div", "Max", "Min", "And", "Or", "Not", "Adds", "Muls", "Maxs", "Mins", "Exp", "Ln", "Sqrt",
     "Abs", "Relu", "ShiftLeft", "ShiftRight", "Compare", "CompareScalar", "Compares", "Select", "Axpy", "Copy")
)  # fmt: skip

# Sort by radix counts 256 elements and a byte of their keys a repeat: some 128 instructions in its published source
# (histogram, four passes of 2 bits, the gathers), a guess at one cycle each.
_VECTOR_3510 = _VECTOR_2201 | {
    **dict.fromkeys(("Exp", "Ln", "Log", "Sqrt", "Div", "Divs"), (4, 4)),
    **dict.fromkeys(_FUNCTIONS, (2.5, 2.5)),
    "GatherMask": (5, 5),
    **dict.fromkeys(("Gather", "Scatter"), (2, 2)),
    "Sort<RADIX_SORT>": (128, 128),
    "Sort<MERGE_SORT>": (16, 16),
}

COSTS: dict[int, Costs] = {
    2201: Costs(_FACTS_2201, _VECTOR_2201, "the guide's table of theoretical vector performance",
                frozenset({"CreateVecIndex", "ArithProgression", "CumSum"})),
    3510: Costs(_FACTS_3510, _VECTOR_3510, "the guide's table for register-level vector instructions; reductions and "
                "sorts as on 2201", frozenset({"CumSum"})),
}  # fmt: skip


def costs(name: str) -> Costs:
    """What things cost on the product of that name. A3 is taken as A2: no page gives its clock."""
    return COSTS[target(name).npu_arch]


# Cycles of vector work that an operator needs at least, on the product's vector units: (cycles, for each).
#   the filter and the sampler: read, compare, select and add each element once, 4 instructions of 64 lanes;
#   gating: sigmoid 28, group scores 20, group choice 30, one Sort32 128, merges 160 for a row of 256 experts;
#   routing: copies only, and where it quantizes 8 instructions of 64 lanes.
ROOFLINE_CYCLES: dict[str, tuple[float, str]] = {
    "apply_top_k_top_p": (4, "64 elements"),
    "apply_top_k_top_p_with_sorted": (4, "64 elements"),
    "filter_sample": (4, "64 elements"),
    "top_k_top_p_sample": (4, "64 elements"),
    "sort": (0, "64 elements"),
    "moe_gating_top_k": (370, "row"),
    "moe_init_routing": (0, "64 elements"),
    "moe_init_routing quantized": (8, "64 elements"),
}
