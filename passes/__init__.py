"""The passes of jascend, and what it takes to write and run one.

One pass a file, named after its flag; see `registry` for how to write one, `rewriting` for rewrites of one op,
`lowerings.lowering` for operators, `pipeline` for how passes run, and `plugins` for those of others.
"""

from .diagnostics import Diagnostic, PassFailure, Position, Remark, Remarks, emit_error, resolve
from .elementwise import elementwise
from .lowerings.lowering import lowering
from .pipeline import Pipeline, PipelineError, PipelineSyntaxError, Timing, ir_dumper, run_pipeline
from .plugins import Plugin, PluginError, load_plugin
from .registry import all_passes, find_pass, option, register_pass
from .rewriting import Rewriter, rewrite

__all__ = [
    "Diagnostic", "PassFailure", "Pipeline", "PipelineError", "PipelineSyntaxError", "Plugin", "PluginError",
    "Position", "Remark", "Remarks", "Rewriter", "Timing", "all_passes", "elementwise", "emit_error", "find_pass",
    "ir_dumper", "load_plugin", "lowering", "option", "register_pass", "resolve", "rewrite", "run_pipeline",
]  # fmt: skip
