"""Reports: what a run on the twin would cost on the product, by a model whose constants name their sources.

    report = program.profile(*args)                      # a compiled program
    report = profile_launch(library, "entry", arrays)    # any kernel the twin builds
    print(report.microseconds, report.roofline_ratio)
    report.to_html("report.html")

`targets.py` has the constants, `instructions.py` what a step costs, `timeline.py` when it runs, `memory.py` what cores
share, `profile.py` puts a launch together.
"""

from jascend.backends.ascend.report.libraries import LibraryEstimate, estimate
from jascend.backends.ascend.report.needed import needed_bytes
from jascend.backends.ascend.report.profile import KernelProfile, Line, profile_kernel
from jascend.backends.ascend.report.report import Report, profile_launch, profile_run
from jascend.backends.ascend.report.roofline import Roofline, operator_cycles, roofline

__all__ = ["KernelProfile", "LibraryEstimate", "Line", "Report", "Roofline", "estimate", "needed_bytes",
           "operator_cycles", "profile_kernel", "profile_launch", "profile_run", "roofline"]  # fmt: skip
