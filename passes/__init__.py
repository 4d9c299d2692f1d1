"""The passes of jascend, and what it takes to write and run one.

One pass a file, named after its flag; see `registry` for how to write one and `pipeline` for how they run.
"""

from .diagnostics import Diagnostic, PassFailure, Position, Remark, Remarks, emit_error, resolve
from .pipeline import Pipeline, PipelineError, PipelineSyntaxError, Timing, ir_dumper, run_pipeline
from .registry import PluginError, all_passes, find_pass, load_plugin, option, register_pass, rewrite

__all__ = [
    "Diagnostic", "PassFailure", "Pipeline", "PipelineError", "PipelineSyntaxError", "PluginError", "Position",
    "Remark", "Remarks", "Timing", "all_passes", "emit_error", "find_pass", "ir_dumper", "load_plugin", "option",
    "register_pass", "resolve", "rewrite", "run_pipeline",
]  # fmt: skip
