"""The output of python -m flowedu is true."""
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import flowedu as flow
from common import HANGS
from flowedu import _kernels
from flowedu.show.about import EXTRAS, about

ROOT = Path(flow.__file__).parents[2]
# extras for developers, which make installs
DEVELOPERS = {"test", "bench", "lint", "near", "book", "notebooks", "array-api"}


def test_the_output_is_true():
    said = about()
    assert (said["flowedu"].startswith(flow.__version__ + ",")
            and said["threads"].startswith(f"{flow.get_num_threads()} "))
    assert said["instruction set"].startswith(_kernels.ISA + ",")
    there, missing = (said["extras"].split(", "), [part.partition(":")[0]
                                                   for part in said["not installed"].split("; ")])
    assert sorted(n for n in [*there, *missing] if n and n != "none") == sorted(EXTRAS)
    assert "plot" in there and "image" in there                 # the tests need these


def test_every_extra_is_listed():
    if (ROOT / "pyproject.toml").exists():
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text(
            encoding="utf-8"))["project"]["optional-dependencies"]
        assert set(extras) - DEVELOPERS == set(EXTRAS)


def test_the_command_prints_the_table():
    done = subprocess.run([sys.executable, "-m", "flowedu"], capture_output=True, encoding="utf-8",
                          timeout=HANGS,
                          env={**os.environ, "FLOWEDU_NUM_THREADS": "1", "FLOWEDU_ISA": "base"})
    assert done.returncode == 0 and not done.stderr, done.stderr
    lines = {line[:16].strip(): line[16:] for line in done.stdout.splitlines()}
    assert lines["threads"].startswith("1 ") and lines["instruction set"].startswith("base,")
