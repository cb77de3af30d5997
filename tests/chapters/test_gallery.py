"""The programs of the gallery run with their documented commands on little data and write the images that
they name.
"""
import os
import subprocess
import sys
from pathlib import Path

import pytest

import flowedu as flow
from common import HANGS, few
from doors.test_chapters import not_blank

GALLERY = Path(__file__).parents[2] / "chapters" / "gallery"
PROGRAMS = sorted(p.stem for p in GALLERY.glob("*.py") if p.stem != "curves")


def run(*words) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *map(str, words)], capture_output=True, encoding="utf-8",
                          timeout=HANGS,
                          env={**os.environ, "FLOWEDU_NUM_THREADS": "1",
                               "PYTHONPATH": str(Path(flow.__file__).parents[1])})


def test_there_are_six_short_programs():
    assert len(PROGRAMS) == 6
    for name in PROGRAMS:
        text = (GALLERY / f"{name}.py").read_text(encoding="utf-8")
        assert (len(text.splitlines()) < 150 and "tqdm(" in text
                and f"chapters/gallery/{name}.py" in text), name


@pytest.mark.parametrize("name", few(PROGRAMS, lambda name: name == "reinforce"))
def test_a_program_runs_and_writes_its_image(name, tmp_path):
    done = run(GALLERY / f"{name}.py", "--quick", "--out", tmp_path / "out")
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
    pictures = list((tmp_path / "out").iterdir())
    assert len(pictures) == 1 and str(pictures[0]) in done.stdout
    drawn = pictures[0]
    assert (drawn.read_text(encoding="utf-8").count("<polyline") > 3 if drawn.suffix == ".svg"
            else not_blank(drawn))


@pytest.mark.slow
def test_the_same_file_runs_on_ranks(tmp_path):
    pytest.importorskip("mpi4py")
    program = GALLERY / "parallel_gpt.py"
    alone = run(program, "--quick", "--out", tmp_path / "a")
    ranks = run("-m", "flowedu.distributed.launch", "--nproc_per_node", 4, program, "--quick", "--out",
                tmp_path / "b")
    assert ranks.returncode == 0, ranks.stdout + ranks.stderr
    losses = [done.stdout.splitlines()[0].partition("; largest")[0] for done in (alone, ranks)]
    assert losses[0] == losses[1] and losses[0].startswith("loss of step 1")
