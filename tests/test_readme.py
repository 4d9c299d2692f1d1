"""The README's examples are run as they stand."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language, containing):
    (found,) = [b for b in re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL) if containing in b]
    return found


def test_inference_engineer(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", block("python", "ja.compile(")], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "apply_top_k_top_p, with" in done.stdout
    assert list((tmp_path / "build" / "filtered" / "op_kernel").glob("*.cpp"))


def test_inside_jit(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", block("python", "ja.lowering(")], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_command_line(tmp_path):
    (tmp_path / "model.py").write_text(
        "import jascend as ja\n\ndef filtered(logits, p, k):\n    return ja.apply_top_k_top_p(logits, p, k)\n",
        encoding="utf-8",
    )
    commands = block("sh", "jascend compile").splitlines()
    assert len(commands) == 5
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "jascend"
        done = subprocess.run(
            [sys.executable, "-m", "jascend.cli", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    assert (tmp_path / "build" / "report.html").is_file()


def jascend_opt(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "jascend.passes.opt", *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_pass_author(tmp_path):
    text = block("mlir", "RUN:")
    (pipeline,) = re.findall(r"--pass-pipeline='(.*?)'", text)
    file = tmp_path / "fuse.mlir"
    file.write_text(text, encoding="utf-8")
    done = jascend_opt(file, f"--pass-pipeline={pipeline}")
    assert done.returncode == 0, done.stderr
    assert '"ascend.apply_top_k_top_p"(' in done.stdout
    assert "with_sorted" not in done.stdout


@pytest.mark.parametrize(("vocabulary", "kept"), [(1, False), (8, True)])
def test_compiler_researcher(tmp_path, vocabulary, kept):
    plugin = tmp_path / "my_fusion.py"
    plugin.write_text(block("python", "@rewrite("), encoding="utf-8")
    graph = tmp_path / "graph.mlir"
    tensor = f"tensor<2x{vocabulary}xf32>"
    graph.write_text(
        f"func.func @f(%x: {tensor}, %k: tensor<2xi32>) -> {tensor} {{\n"
        f'  %0 = "ascend.apply_top_k_top_p"(%x, %k) {{operandSegmentSizes = array<i32: 1, 0, 1>}} : ({tensor}, tensor<2xi32>) -> {tensor}\n'
        f"  return %0 : {tensor}\n}}\n",
        encoding="utf-8",
    )
    done = jascend_opt(graph, "--plugin", plugin, "--keep-all", "--remarks")
    assert done.returncode == 0, done.stderr
    assert ("apply_top_k_top_p" in done.stdout) == kept
    assert ("rows are longer than one" in done.stderr) == kept


def test_every_make_target_that_is_named_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`?make ([a-z-]+)`?", README):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_folder_of_the_tree_exists():
    for folder in re.findall(r"^\| `([a-z/]+/)`", README, re.MULTILINE):
        assert (ROOT / folder).is_dir(), folder
