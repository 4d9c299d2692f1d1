"""A repetition penalty for jascend: the operator `ascend.repetition_penalty`,
and the fusion `fold-repetition-penalty`."""

from . import fusion
from .operator import repetition_penalty

__all__ = ["fusion", "repetition_penalty"]
