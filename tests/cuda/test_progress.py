"""Progress messages of the compiler: shown only on a terminal and erased afterwards."""
import os
import pty
import subprocess
import sys
import uuid
from pathlib import Path

from cuda_common import in_simulator

import flowedu as flow

pytestmark = in_simulator

# Compiled once without checks and, inside profile, once more with checks; then loaded from the cache.
SCRIPT = """
import io, sys
import numpy as np
import flowedu as flow

source = "__global__ void NAME(float* y) { y[threadIdx.x] = 1; }"
for _ in range(2):
    fill = flow.cuda.kernel(source)
    with flow.cuda.profile(io.StringIO()):
        fill("NAME", 1, 32)(np.zeros(32, np.float32))
    print("done", file=sys.stderr, flush=True)
""".replace("NAME", "fill_NAME")


def read_progress(name, terminal):
    """Return the stderr of a process that compiles a new kernel twice."""
    ours, theirs = pty.openpty() if terminal else os.pipe()
    environment = {**os.environ, "FLOWEDU_CUDA_CHECK": "0", "PYTHONPATH": str(Path(flow.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", SCRIPT.replace("NAME", name)], stderr=theirs,
                          stdout=subprocess.PIPE, env=environment, timeout=300)
    os.close(theirs)
    text = b""
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:                                  # the other end of the terminal is closed
            break
        if not piece:
            break
        text += piece
    os.close(ours)
    assert done.returncode == 0, text
    return text.decode()


def visible_lines(text):
    """Return the lines that remain on a screen, where \\r returns to the start of a line and \\x1b[K erases
    it.
    """
    lines = []
    for line in text.replace("\r\n", "\n").split("\n"):
        last = line.split("\r")[-1]
        lines.append(last.split("\x1b[K")[-1])
    return lines


def test_a_terminal_shows_compilations():
    name = uuid.uuid4().hex
    text = read_progress(name, terminal=True)
    assert text.count(f"compiling fill_{name} for the simulator") == 2, text       # once for each variant
    assert visible_lines(text) == ["done", "done", ""], text


def test_nothing_is_printed_without_a_terminal():
    assert read_progress(uuid.uuid4().hex, terminal=False) == "done\ndone\n"
