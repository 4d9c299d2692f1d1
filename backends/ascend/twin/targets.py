"""The products, for those who know the twin only: `backends/ascend/targets.py` states the facts."""

from jascend.backends.ascend.targets import TARGETS, Target

__all__ = ["TARGETS", "Target"]
