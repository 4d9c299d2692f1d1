"""How each op on tiles is said in the Ascend C API: one registered function an op, one file a theme."""

from . import bits, cores, lanes, memory, narrow, scan, sorting, vector  # noqa: F401  (each registers its functions)
from .lowering import LOWERINGS, Lowering, Unsupported, lowers

__all__ = ["LOWERINGS", "Lowering", "Unsupported", "lowers"]
