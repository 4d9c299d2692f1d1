"""Copies that 950 repeats by SetLoopModePara: both directions, every form of copy, its limits, and what it leaves on."""

import numpy as np
import pytest
from test_twin import cache  # noqa: F401  (a fixture)
from twin_cases import Cases, check

CASES = Cases()
i32 = np.int32
data = np.arange(600, dtype=i32)
IN, OUT = "DataCopyMVType::OUT_TO_UB", "DataCopyMVType::UB_TO_OUT"
# inner 3, outer 2; in GM 200 and 1000 bytes apart, in UB 64 and 256
FROM_GM, TO_GM = "LoopModeParams(3, 2, 200, 64, 1000, 256)", "LoopModeParams(3, 2, 64, 200, 256, 1000)"


def case(name, body, expected, inputs=(data,), before=None, findings=()):
    CASES.case(name, body, list(inputs), np.asarray(expected, i32), before, target="ascend950", findings=list(findings))


def looped(copy, start, steps, size=(3, 2)):
    """`copy(j)` for each j, the element that a copy starts with."""
    for outer in range(size[1]):
        for inner in range(size[0]):
            copy(start + outer * steps[1] + inner * steps[0], outer * 64 + inner * 16)


def read(pieces, length):
    """What arrives in 128 elements of UB, zero before: of each copy the pieces (in GM, in UB), `length` elements each."""
    y = np.zeros(128, i32)

    def copy(gm, ub):
        for a, b in pieces:
            y[ub + b : ub + b + length] = data[gm + a : gm + a + length]

    looped(copy, 0, (50, 250))
    return y


def written(pieces, length):
    """What arrives in 500 elements of GM, -1 before."""
    y = np.full(500, -1, i32)

    def copy(gm, ub):
        for a, b in pieces:
            y[gm + a : gm + a + length] = data[ub + b : ub + b + length]

    looped(copy, 0, (50, 250))
    return y


def around(mode, direction, copy):
    return f"SetLoopModePara({mode}, {direction}); {copy} ResetLoopModePara({direction});"


PAD = "DataCopyPad(y, gx0, DataCopyExtParams{2, 20, 12, 0, 0}, DataCopyPadExtParams<int32_t>{true, 0, 3, 7});"
padded = read([(0, 0), (8, 8)], 5)
for start in [o * 64 + i * 16 + b for o in range(2) for i in range(3) for b in (0, 8)]:
    padded[start + 5 : start + 8] = 7
case("pad_in", around(FROM_GM, IN, PAD), padded)
case("count_in", around(FROM_GM, IN, "DataCopy(y, gx0, 16);"), read([(0, 0)], 16))
case("blocks_in", around(FROM_GM, IN, "DataCopy(y, gx0, DataCopyParams(2, 1, 1, 0));"), read([(0, 0), (16, 8)], 8))
# what the kernel around a case writes back from y is what it read before
BACK = ("PipeBarrier<PIPE_ALL>(); DataCopyPad(y, gy, DataCopyExtParams{1, 2000, 0, 0, 0}, "
        "DataCopyPadExtParams<int32_t>{false, 0, 0, 0});")
blank = np.full(500, -1, i32)
case("pad_out", around(TO_GM, OUT, "DataCopyPad(gy, x0, DataCopyExtParams{2, 20, 0, 12, 0});") + BACK,
     written([(0, 0), (8, 8)], 5), before=blank)
case("count_out", around(TO_GM, OUT, "DataCopy(gy, x0, 16);") + BACK, written([(0, 0)], 16), before=blank)
case("blocks_out", around(TO_GM, OUT, "DataCopy(gy, x0, DataCopyParams(2, 1, 0, 1));") + BACK,
     written([(0, 0), (16, 8)], 8), before=blank)
case("other_direction", around(TO_GM, OUT, "DataCopy(y, gx0, 16);"), np.r_[data[:16], np.zeros(112, i32)])
case("reset", around(FROM_GM, IN, "") + "DataCopy(y, gx0, 16);", np.r_[data[:16], np.zeros(112, i32)])
case("no_times", around("LoopModeParams()", IN, "DataCopy(y, gx0, 16);"), np.zeros(16))

# limits
ONCE = data[:8]
for name, mode, direction in [
    ("in_unaligned", "LoopModeParams(1, 1, 4, 48, 0, 0)", IN), ("in_far", "LoopModeParams(1, 1, 4, 0, 0, 1 << 21)", IN),
    ("out_unaligned", "LoopModeParams(1, 1, 0, 0, 48, 4)", OUT), ("out_far", "LoopModeParams(1, 1, 1 << 21, 4, 0, 0)", OUT),
    ("in_gm", "LoopModeParams(1, 1, 1ull << 40, 0, 0, 0)", IN),
]:  # fmt: skip
    case(f"limit_{name}", around(mode, direction, "") + "DataCopy(y, gx0, 8);", ONCE, findings=["copy-limit"])
case("limit_size", around("LoopModeParams(1 << 21, 1, 0, 0, 0, 0)", IN, "") + "DataCopy(y, gx0, 8);", ONCE, findings=["copy-limit"])
case("bounds_gm", around("LoopModeParams(2, 1, 4000, 32, 0, 0)", IN, "DataCopy(y, gx0, 8);"), np.zeros(8),
     findings=["gm-out-of-bounds"])
case("bounds_ub", around("LoopModeParams(2, 1, 32, 24576, 0, 0)", IN, "DataCopy(x0[8], gx0, 8);") + "DataCopy(y, gx0, 8);", ONCE,
     findings=["buffer-overflow"])
case("left_on", "DataCopy(y, gx0, 8); SetLoopModePara(LoopModeParams(2, 1, 32, 32, 0, 0), DataCopyMVType::OUT_TO_UB);", ONCE,
     findings=["loop-mode-left-on"])


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    return CASES.libraries(tmp_path_factory.mktemp("loop_mode"))


@pytest.mark.parametrize("c", CASES, ids=CASES.ids())
def test_against_numpy(libraries, c):
    check(libraries(c.target), c)
