"""Product facts, each once, with its source. Nothing else in the project states a limit of a product.

Sources: the NPU architecture pages of the public Ascend C programming guide (2201 for the 910B and 910_93 families, 3510
for the 950 family), the platform header's reserved sizes, and the platform configuration files for core counts.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """One product family. Sizes in bytes."""

    name: str
    npu_arch: int  # `__NPU_ARCH__`
    vector_cores: int  # of the family's common bin; a launch may use fewer
    ub_bytes: int  # unified buffer of one vector core, what the runtime keeps for itself taken off
    ub_reserved_bytes: int  # at the end of it: scratch of `Select` against a scalar or a tensor (8 KB on 2201)

    @property
    def ub_usable_bytes(self) -> int:
        """What a kernel's buffers may take."""
        return self.ub_bytes - self.ub_reserved_bytes


_KIB = 1024
_2201 = {"npu_arch": 2201, "ub_bytes": 192 * _KIB - 256, "ub_reserved_bytes": 8 * _KIB}

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        Target("ascend910b", vector_cores=48, **_2201),
        Target("ascend910_93", vector_cores=48, **_2201),
        # 256 KB, less 6 KB stack of vector functions and 2 KB of the API.
        Target("ascend950", npu_arch=3510, vector_cores=64, ub_bytes=248 * _KIB, ub_reserved_bytes=0),
    )
}


def target(name: str) -> Target:
    """The product of that name; ValueError names those there are."""
    if name not in TARGETS:
        raise ValueError(f"unknown target {name!r}: it must be one of {', '.join(TARGETS)}")
    return TARGETS[name]
