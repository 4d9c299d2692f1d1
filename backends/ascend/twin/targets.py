"""The products a kernel can be built for, as far as the twin tells them apart.

Source: the architecture pages of the CANN documentation (NPU architecture versions 2201 and 3510).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """One product.

    Attributes:
        arch: `__NPU_ARCH__`.
        ub_bytes: unified buffer of a vector core that a kernel may address, in bytes.
        vector_cores: physical vector cores; more blocks than these cannot meet in a SyncAll.
    """

    arch: int
    ub_bytes: int
    vector_cores: int


TARGETS = {
    "ascend910b": Target(arch=2201, ub_bytes=192 * 1024 - 256, vector_cores=48),
    "ascend910_93": Target(arch=2201, ub_bytes=192 * 1024 - 256, vector_cores=50),
    "ascend950": Target(arch=3510, ub_bytes=248 * 1024, vector_cores=72),
}


def target_of(name: str) -> Target:
    """The target of that name; ValueError names the known ones."""
    try:
        return TARGETS[name]
    except KeyError:
        raise ValueError(f"unknown target {name!r}; the twin knows {', '.join(sorted(TARGETS))}") from None
