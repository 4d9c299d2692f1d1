"""docs/extending.md is run as it stands."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parent.parent / "docs" / "extending.md").read_text(encoding="utf-8")


@pytest.fixture
def section(tmp_path):
    """Writes the files of a section to a directory; its commands, and a function that runs Python there."""

    def take(title):
        text = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
        blocks = re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL)
        for language, content in blocks:
            if language != "sh":
                (tmp_path / content.split()[1]).write_text(content, encoding="utf-8")
        commands = [line for language, content in blocks if language == "sh" for line in content.splitlines()]

        def run(*words):
            done = subprocess.run(
                [sys.executable, *words], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        return commands, run

    return take


def test_your_own_fusion(section, tmp_path):
    commands, run = section("Your own fusion in thirty lines")
    assert len((tmp_path / "filter_once.py").read_text(encoding="utf-8").splitlines()) <= 30
    told = []
    for command in commands:
        program, *words = shlex.split(command)
        assert program == "jascend"
        told.append(run("-m", "jascend.cli", *words))
    explained, report, in_pdll = told
    assert "filter-once: passed: rewrote 'ascend.apply_top_k_top_p'" in explained
    assert re.search(r"launches +\S +1 +\S +2 ", report)
    assert "filter-twice: passed: filter_twice.pdll changed the module" in in_pdll
    assert in_pdll.count("outline-kernels: passed: jascend_filtered_") == 1


def test_your_own_operator(section):
    _, run = section("Your own operator in one file")
    assert re.search(r"near_max, with .*div computed inside", run("use.py"))
