"""The prose check of `make lint`: its patterns, and how it splits files into sentences."""
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from common import load_tool

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def prose():
    return load_tool("check_prose")


def test_patterns_match_their_examples(prose):
    for name, settings in prose.SETTINGS["patterns"].items():
        pattern, _ = prose.PATTERNS[name]
        assert pattern.search(settings["before"]), f"{name} does not match its example"
        for other, (each, _) in prose.PATTERNS.items():
            assert not each.search(settings["after"]), f"{other} flags the correction of {name}"


def test_sentences_end_at_periods_blank_lines_and_list_items(prose):
    text = ("Return the sum. It is `a. B` long.\n\nA second block has a verb\n- an item of a list\nthat "
            "continues here\n- two words")
    assert prose.split_sentences(text) == ["Return the sum.", "It is X long.", "A second block has a verb",
                                           "an item of a list that continues here"]


def test_each_kind_of_text_is_read(prose, tmp_path):
    python = tmp_path / "a.py"
    python.write_text('"""First line here.\n\nMore text follows it."""\n# A comment has\n# two lines.\n'
                      'x = 1   # units are bytes\nraise ValueError(f"op: {x} is wrong here")\n',
                      encoding="utf-8")
    cython = tmp_path / "a.pyx"
    cython.write_text('"""Kernel of the sum."""\ncdef int n\n# Blocks have eight rows.\n', encoding="utf-8")
    header = tmp_path / "a.h"
    header.write_text("/* A block comment here */\nint n;   // bytes of a row\n", encoding="utf-8")

    def texts(path, part):
        return [" ".join(text.split()) for kind, _, text in prose.read_file(
            path) if kind == part and text.strip()]
    assert texts(python, "first") == ["First line here."]
    assert texts(python, "comment") == ["First line here. More text follows it.",
                                        "A comment has two lines. units are bytes"]
    assert texts(python, "error") == ["op: X is wrong here"]
    assert texts(cython, "comment") == ["Kernel of the sum.", "Blocks have eight rows."]
    assert texts(header, "comment") == ["A block comment here", "bytes of a row"]


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_a_rate_above_its_limit_fails_and_names_the_command(tmp_path):
    for name in ("check_prose.py", "prose.toml"):
        (tmp_path / "tools").mkdir(exist_ok=True)
        shutil.copy(ROOT / "tools" / name, tmp_path / "tools")
    page = tmp_path / "README.md"

    def check(text):
        page.write_text(text, encoding="utf-8")
        subprocess.run(["git", "add", "README.md"], cwd=tmp_path, check=True)
        command = [sys.executable, tmp_path / "tools" / "check_prose.py", "--check"]
        return subprocess.run(command, capture_output=True, encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert check("The buffer is stored after the weights.\n").returncode == 0
    failed = check("The buffer lies behind the weights.\n")
    assert failed.returncode == 1 and "pages" in failed.stdout and "--show FILE" in failed.stdout
