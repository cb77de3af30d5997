"""The actions of a student in an exported tree, each in its own process."""
import json
import os
import re
import subprocess
import sys

from common import HANGS
from flowedu_course import course
from flowedu_course.teach import stubs, tree

HOLES = course.holes()
LAST = course.chapters()[-1].number


def handed_out(folder, upto=LAST):
    """Export a tree with the compiled files, so that nothing is compiled again."""
    return tree.export(folder / "handout", upto, built=True).folder


def run_in_home(home, *arguments, **more):
    env = {**os.environ, "PYTHONPATH": f"{home / 'src'}{os.pathsep}{home / 'course'}",
           "FLOWEDU_NUM_THREADS": "1"}
    env.pop("FLOWEDU_HOLES", None)
    env |= more
    done = subprocess.run([sys.executable, *arguments], cwd=home, capture_output=True,
                          encoding="utf-8", timeout=HANGS, env=env)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def learn(home, *lines):
    """Run `python -m flowedu_course LINE` for each line in one process; return [(exit status, output)]."""
    code = ("import sys; from flowedu_course import runner\n"
            "for line in sys.argv[1:]: print('====', runner.main(line.split()), flush=True)")
    done = run_in_home(home, "-c", code.replace("'====',", "'\\n====',"), *lines)
    assert not done.stderr, done.stderr
    said = re.split(r"^==== (\d)\n", done.stdout, flags=re.MULTILINE)
    return [(int(code), text) for text, code in zip(said[::2], said[1::2])]


def answer_of(hole):
    """Return the text of a correct work file for this exercise."""
    return stubs.library(hole)


def answered(home, holes, right=(), folder="work"):
    """Write a folder of answers, recording those of `right` as passed and all others as not begun."""
    (home / folder).mkdir(exist_ok=True)
    for hole in holes:
        (home / folder / hole.file).write_text(answer_of(hole), encoding="utf-8")
    rows = {i: {**course.EMPTY, "state": "right"} for i in right}
    (home / folder / ".course.json").write_text(json.dumps({"version": course.VERSION, "holes": rows}),
                                                encoding="utf-8")
    return f"--work {folder}"


def lessons(home, folder, *where):
    """Run a lesson with the answers of this folder to its end and return its output."""
    (home / folder).mkdir(exist_ok=True)
    done = run_in_home(home, "-m", "flowedu_course.lesson", *where, FLOWEDU_HOLES=folder, COLUMNS="200")
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-500:]
    return done.stdout
