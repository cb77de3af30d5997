"""Runs a reader's Cython kernel in a process of its own: it may write anywhere, or never end, and the reader is told.

    outputs = apart(source, [Case([x], [y_shape], ints=[1], threads=2), ...])
"""
from __future__ import annotations

import io
import pickle
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from flowedu.errors import FlowError
from flowedu.learn.build import build
from flowedu.learn.contract import Bound
from flowedu.learn.exercises import Wrong

FENCE = 64                                          # bytes around an output that must stay as they are
FRESH = 0xA5
MARK = b"\0the answer of the other process\0"          # the source may print before


class Case(NamedTuple):
    """One call: input arrays; shapes of the outputs, which are float32; attributes; size of the team."""

    inputs: Sequence[np.ndarray]
    outputs: Sequence[tuple[int, ...]]
    ints: Sequence[int] = ()
    threads: int = 1


def apart(source: str, cases: Sequence[Case], seconds: float = 30) -> list[list[np.ndarray]]:
    """The outputs of each case. `source` is Cython with the kernel's address as `address`.

    Raises Wrong: it is no source, does not compile, crashes, never ends, writes beside its outputs or into its inputs."""
    if not isinstance(source, str):
        raise Wrong(f"this gives {source!r}\n  should be a str: the Cython source of a kernel")
    try:
        done = subprocess.run([sys.executable, "-m", "flowedu.learn.apart"], input=pickle.dumps((source, list(cases))),
                              capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Wrong(f"the kernel had not ended after {seconds:g} s\n  hint: does every loop come to its end?") from None
    if done.returncode or MARK not in done.stdout:
        name = signal.Signals(-done.returncode).name if done.returncode < 0 else f"status {done.returncode}"
        raise Wrong(f"the kernel ended its process ({name})\n  hint: does it read or write memory that is not its own?")
    said = np.load(io.BytesIO(done.stdout[done.stdout.rindex(MARK) + len(MARK):]))      # never a pickle: it is a reader's
    if "wrong" in said:
        raise Wrong(str(said["wrong"]))
    return [[said[f"{i} {k}"] for k in range(len(case.outputs))] for i, case in enumerate(cases)]


def _run(source: str, cases: Sequence[Case]) -> list[list[np.ndarray]] | str:
    """In the other process: all outputs, or what is wrong."""
    try:
        address, found = getattr(build(source), "address", None), []
    except FlowError as error:
        return str(error)
    if type(address) is not int:
        return "the source has no `address`\n  hint: end it with  address = <size_t><void *>NAME_OF_YOUR_KERNEL"
    for number, case in enumerate(cases, 1):
        what = f"call {number}: inputs {', '.join(str(a.shape) for a in case.inputs)}, threads {case.threads}"
        given = [a.copy() for a in case.inputs]
        rooms = [np.full(4 * int(np.prod(s)) + 2 * FENCE, FRESH, np.uint8) for s in case.outputs]
        outs = [r[FENCE:-FENCE].view(np.float32).reshape(s) for r, s in zip(rooms, case.outputs)]
        status = Bound(address, [*case.inputs, *outs], len(case.inputs), ints=case.ints, threads=case.threads)()
        if status:
            return f"{what}\n  gives the status {status}\n  should be FE_OK, which is 0"
        if any((r[:FENCE] != FRESH).any() or (r[-FENCE:] != FRESH).any() for r in rooms):
            return f"{what}\n  the kernel wrote beside its output\n  hint: the last row, the last column"
        if not all(np.array_equal(a, b, equal_nan=True) for a, b in zip(given, case.inputs)):
            return f"{what}\n  the kernel wrote into its input"
        found.append([o.copy() for o in outs])
    return found


if __name__ == "__main__":
    found = _run(*pickle.loads(sys.stdin.buffer.read()))
    answer = io.BytesIO()
    np.savez(answer, **({"wrong": found} if isinstance(found, str) else
                        {f"{i} {k}": a for i, outs in enumerate(found) for k, a in enumerate(outs)}))
    sys.stdout.flush()
    sys.stdout.buffer.write(MARK + answer.getvalue())
