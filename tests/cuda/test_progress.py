"""Whoever waits for a compiler is told so, on a terminal; nothing of it is left, and nothing is said elsewhere."""
import os
import pty
import subprocess
import sys
import uuid
from pathlib import Path

from cuda_common import in_simulator

import flowedu as flow

pytestmark = in_simulator

# Compiled once without checks, and, inside profile, once more with them; then found again.
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


def said(name, terminal):
    """What a process says on stderr that compiles a kernel nobody has compiled before, twice."""
    ours, theirs = pty.openpty() if terminal else os.pipe()
    environment = {**os.environ, "FLOWEDU_CUDA_CHECK": "0", "PYTHONPATH": str(Path(flow.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", SCRIPT.replace("NAME", name)], stderr=theirs, stdout=subprocess.PIPE,
                          env=environment, timeout=300)
    os.close(theirs)
    text = b""
    while True:
        try:
            piece = os.read(ours, 1 << 16)
        except OSError:                                  # a terminal that nobody holds any longer
            break
        if not piece:
            break
        text += piece
    os.close(ours)
    assert done.returncode == 0, text
    return text.decode()


def seen(text):
    """The lines that stay on a screen, where a line begins anew after \\r and is wiped by \\x1b[K."""
    lines = []
    for line in text.replace("\r\n", "\n").split("\n"):
        last = line.split("\r")[-1]
        lines.append(last.split("\x1b[K")[-1])
    return lines


def test_a_terminal_is_told_what_is_compiled():
    name = uuid.uuid4().hex
    text = said(name, terminal=True)
    assert text.count(f"compiling fill_{name} for the simulator") == 2, text       # once for each variant
    assert seen(text) == ["done", "done", ""], text


def test_nothing_is_said_elsewhere():
    assert said(uuid.uuid4().hex, terminal=False) == "done\ndone\n"
