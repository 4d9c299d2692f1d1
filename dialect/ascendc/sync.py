"""What a launch tells a core, and what orders its pipes."""

from __future__ import annotations

from ..definition import Attribute, Op, Result, VerifyError

PIPES = ("S", "V", "MTE2", "MTE3")
EVENTS = tuple(f"{a}_{b}" for a in PIPES for b in PIPES if a != b)
EVENT_IDS = range(6)  # 6 and 7 are the framework's

_EVENT = Attribute("event", "string", "`HardEvent`: the pipe that sets, the pipe that waits", values=EVENTS)
_EVENT_ID = Attribute("event_id", "integer", "0 to 5, per direction")


def _verify_flag(op) -> None:
    if op.event_id not in EVENT_IDS:
        raise VerifyError(
            f"'event_id' must be {EVENT_IDS[0]} to {EVENT_IDS[-1]} (6 and 7 are reserved), got {op.event_id}"
        )


SYNC = (
    Op(
        "block_idx",
        "`GetBlockIdx()`: which core this is.",
        results=(Result("value", "index", ""),),
    ),
    Op(
        "block_num",
        "`GetBlockNum()`: how many cores the launch has.",
        results=(Result("value", "index", ""),),
    ),
    Op(
        "tiling",
        "A field of the tiling data.",
        attributes=(Attribute("field", "string", "the field's name"),),
        results=(Result("value", "index", ""),),
    ),
    Op(
        "set_flag",
        "`SetFlag<HardEvent::event>(event_id)`.",
        attributes=(_EVENT, _EVENT_ID),
        verify=_verify_flag,
        side_effects=True,
    ),
    Op(
        "wait_flag",
        "`WaitFlag<HardEvent::event>(event_id)`.",
        attributes=(_EVENT, _EVENT_ID),
        verify=_verify_flag,
        side_effects=True,
    ),
    Op(
        "pipe_barrier",
        "`PipeBarrier<PIPE_pipe>()`.",
        attributes=(
            Attribute(
                "pipe", "string", "the pipe that waits for itself; ALL: every pipe", values=("V", "MTE2", "MTE3", "ALL")
            ),
        ),
        side_effects=True,
    ),
    Op(
        "sync_all",
        "`SyncAll()`: every core has got here, and all pipes are done; what was written to GM is visible to all.",
        description="The hardware form, for which the kernel's type is `KERNEL_TYPE_MIX_AIV_1_0`.",
        side_effects=True,
    ),
)
