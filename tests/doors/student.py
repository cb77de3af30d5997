"""What a student does in a tree that is handed out, in processes of its own."""
import json
import os
import re
import subprocess
import sys

from common import HANGS
from flowedu.learn import authors, course, progress
from flowedu.learn.teach import stubs, tree

HOLES = course.holes()
LAST = course.chapters()[-1].number


def handed_out(folder, upto=LAST):
    """A tree with what was compiled, so that nothing is compiled again."""
    return tree.export(folder / "handout", upto, built=True).folder


def inside(home, *arguments, **more):
    env = {**os.environ, "PYTHONPATH": str(home / "src"), "FLOWEDU_NUM_THREADS": "1"}
    env.pop("FLOWEDU_HOLES", None)
    env |= more
    done = subprocess.run([sys.executable, *arguments], cwd=home, capture_output=True,
                          encoding="utf-8", timeout=HANGS, env=env)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def learn(home, *lines):
    """[(exit status, what was said)] of `python -m flowedu.learn LINE`, one after the other in one process."""
    code = ("import sys; from flowedu.learn import runner\n"
            "for line in sys.argv[1:]: print('====', runner.main(line.split()), flush=True)")
    done = inside(home, "-c", code.replace("'====',", "'\\n====',"), *lines)
    assert not done.stderr, done.stderr
    said = re.split(r"^==== (\d)\n", done.stdout, flags=re.MULTILINE)
    return [(int(code), text) for text, code in zip(said[::2], said[1::2])]


def answer_of(hole):
    """What an instructor would write into the work file."""
    return authors.library(hole) if hole.kind == "kernel" else stubs.answer_text(hole)


def answered(home, holes, right=(), folder="work"):
    """A folder of answers; those of `right` are noted as such, all others as not begun."""
    (home / folder).mkdir(exist_ok=True)
    for hole in holes:
        (home / folder / hole.file).write_text(answer_of(hole), encoding="utf-8")
    rows = {i: {**progress.EMPTY, "state": "right"} for i in right}
    (home / folder / ".course.json").write_text(json.dumps({"version": progress.VERSION, "holes": rows}), encoding="utf-8")
    return f"--work {folder}"


def lessons(home, folder, *where):
    """What a lesson shows that runs on the answers of this folder; it has come to its end."""
    (home / folder).mkdir(exist_ok=True)
    done = inside(home, "-m", "flowedu.learn.lesson", *where, FLOWEDU_HOLES=folder, COLUMNS="200")
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-500:]
    return done.stdout
