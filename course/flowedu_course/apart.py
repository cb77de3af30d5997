"""Cython kernels in a separate process. The judge never loads a kernel and reads only its arrays.

    yours = Apart("softmax", source)            used by the laws like a Compiled
    python -m flowedu_course.apart FD_IN FD_OUT SOURCE  the process, in a sandbox while a submission is graded

A message has its length, a line of JSON, and the bytes of the arrays. Each array is between guard bytes.
simulated.py does the same for CUDA C.
"""
from __future__ import annotations

import ctypes
import functools
import json
import os
import struct
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flowedu.core.values.dtype import float32, float64, int32, int64
from flowedu.errors import ArgumentError, FlowError, KernelError
from flowedu.swap.contract import KERNEL, bound_with_work
from flowedu_course.laws.called import FENCE, FRESH, Compiled

DTYPES = {d.code: d.numpy for d in (float32, float64, int32, int64)}
LARGEST = 1 << 31


# ---- in the judge's process
class Other:
    """The process in which an answer runs: python -m MODULE FD_IN FD_OUT SOURCE NAME.

    Raises KernelError if the process cannot load the answer.
    """

    def __init__(self, module: str, source: str, name: str):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "kernel")
            file.write_text(source, encoding="utf-8")
            (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
            what = map(str, (theirs_in, theirs_out, file, name))
            self.process = subprocess.Popen([sys.executable, "-m", module, *what],
                                            pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL)
            os.close(theirs_in)
            os.close(theirs_out)
            self._to, self._of = os.fdopen(ours_out, "wb"), os.fdopen(ours_in, "rb")
            self.said, _ = self._heard()
        if "error" in self.said:
            raise again(self.said["error"])

    def __del__(self):
        if hasattr(self, "process"):
            self.process.kill()
            self.process.wait()
            self._to.close()
            self._of.close()

    def ask(self, told: dict, parts: Sequence[bytes]) -> tuple[dict, bytes]:
        try:
            put(self._to, told, parts)
        except OSError:
            self._end_like_child()
        return self._heard()

    def _heard(self) -> tuple[dict, bytes]:
        try:
            return get(self._of)
        except EOFError:
            self._end_like_child()

    def _end_like_child(self) -> None:
        """End this process with the exit status or signal of the other one, which the parent reports."""
        code = self.process.wait()
        sys.stdout.flush()
        if code < 0:
            os.kill(os.getpid(), -code)
        os._exit(code)


class Apart(Compiled):
    """A Compiled kernel that runs in another process. Raises the same errors as Compiled."""

    def __init__(self, name: str, source: str):
        self.name, self.source, self.work = name, source, 0
        self.other = Other("flowedu_course.apart", source, name)
        self.rows = self.other.said["rows"]
        if "0" not in self.rows.get(name, {}):
            raise ArgumentError(f"the file has no kernel {name}", at="", got="", expected="",
                                fix=f'table() returns {{"{name}": {{FE_F32: (<size_t><void *>{name}, 0)}}}}')
        self._entry = KERNEL(self._entered)            # must exist while the table may have its address
        self.address = ctypes.cast(self._entry, ctypes.c_void_p).value

    def bound(self, arrays: Sequence[np.ndarray], nin: int, ints: Sequence[int], threads: int = 1,
              name: str = "") -> Far:
        return Far(self, arrays, {"nin": nin, "ints": list(map(int, ints)), "threads": threads,
                                  "name": name or self.name})

    def ran(self, arrays: Sequence[np.ndarray], what: dict[str, Any]) -> tuple[dict, bool]:
        """Run the kernel on arrays, in place. Return (its reply, True if it wrote outside an array)."""
        arrays = list(arrays)
        message = {**what, "arrays": [[a.dtype.str, a.shape] for a in arrays]}
        said, data = self.other.ask(message, [np.ascontiguousarray(a).tobytes() for a in arrays])
        beside, at = False, 0
        for a in arrays:
            room = np.frombuffer(data, np.uint8, a.nbytes + 2 * FENCE, at)
            beside |= bool((room[:FENCE] != FRESH).any() or (room[FENCE + a.nbytes:] != FRESH).any())
            a[...] = room[FENCE:FENCE + a.nbytes].view(a.dtype).reshape(a.shape)
            at += room.size
        return said, beside

    def _entered(self, call: Any, team: Any, tag: Any) -> int:
        """Run the kernel for a call of the engine."""
        c = call.contents
        arrays = [_array(c.args[i]) for i in range(c.nargs)]
        ints = [c.ints[i] for i in range(8)] if c.ints else []
        alone = {"alone": team.contents.tid} if team.contents.nt > 1 else {}
        what = {"nin": c.nin, "ints": ints, "threads": team.contents.nt, "name": self.name, **alone}
        return int(self.ran(arrays, what)[0]["status"])


class Far:
    """A kernel in another process with bound arrays, like contract.Bound.

    `beside` is True if the kernel wrote outside an array.
    """

    def __init__(self, of: Apart, arrays: Sequence[np.ndarray], what: dict[str, Any]):
        self._of, self._arrays, self._what, self.beside = of, arrays, what, False

    def __call__(self) -> int:
        said, self.beside = self._of.ran(self._arrays, self._what)
        return int(said["status"])

    def alone(self, tid: int) -> int:
        return int(self._of.ran(self._arrays, {**self._what, "alone": tid})[0]["status"])

    def measure_seconds(self, number: int) -> float:
        """Return the seconds of `number` runs, measured in the other process."""
        return float(self._of.ran(self._arrays, {**self._what, "number": number})[0]["seconds"])


def _array(view: Any) -> np.ndarray:
    """Return the array that a view of the engine describes."""
    dtype, shape = np.dtype(DTYPES[view.dtype]), tuple(view.shape[:view.ndim])
    strides = tuple(s * dtype.itemsize for s in view.stride[:view.ndim])
    if 0 in shape:
        return np.empty(shape, dtype)
    far = sum((n - 1) * s for n, s in zip(shape, strides)) + dtype.itemsize
    raw = (ctypes.c_char * far).from_address(view.data)
    return np.ndarray(shape, dtype, raw, 0, strides)


# ---- messages
def put(to: Any, said: dict, parts: Sequence[bytes] = ()) -> None:
    head = json.dumps(said).encode()
    to.write(struct.pack("<QQ", len(head), sum(map(len, parts))) + head)
    for part in parts:
        to.write(part)
    to.flush()


def get(of: Any) -> tuple[dict, bytes]:
    """Read a message. Raises EOFError if the other process has ended."""
    lengths = of.read(16)
    if len(lengths) < 16:
        raise EOFError
    head, body = struct.unpack("<QQ", lengths)
    if head + body > LARGEST:
        raise EOFError
    text, data = of.read(head), of.read(body)
    if len(data) < body:
        raise EOFError
    return json.loads(text), data


def failure(error: BaseException) -> list[str]:
    """Return an answer's error as lines of a message."""
    if isinstance(error, FlowError):
        return [error.problem, str(error.at or ""), str(error.got or "")]
    return [f"{type(error).__name__}: {error}", "", ""]


def again(said: Sequence[str]) -> KernelError:
    problem, at, got = (plain(t, 2000) for t in said)
    return KernelError(problem, at=at, got=got)


def plain(said: Any, most: int = 200) -> str:
    """Return a text of the other process without control characters, cut to `most` characters."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in str(said)[:most])


# ---- in the kernel's process
def serve(arguments: list[str], prepare: Callable[[], tuple[dict, Callable]]) -> None:
    """Send the reply or the error of prepare(), then the result of its function for each message."""
    of, to = os.fdopen(int(arguments[0]), "rb"), os.fdopen(int(arguments[1]), "wb")
    try:
        first, run = prepare()
    except BaseException as error:
        put(to, {"error": failure(error)})
        return
    put(to, first)
    while True:
        try:
            what, data = get(of)
        except EOFError:
            return
        put(to, *run(what, data))


def _prepare(source: str) -> tuple[dict, Callable]:
    from flowedu.swap.build import build, compiled

    compiled(source)                               # compile before the sandbox starts
    walls()
    rows = _rows(build(source))
    return {"rows": rows}, functools.partial(_run, rows)


def walls() -> None:
    """Start the sandbox if a submission is being graded."""
    if os.environ.get("FLOWEDU_WALLS"):
        from flowedu_course.teach.isolation import behind_walls
        behind_walls()


def _rows(made: Any) -> dict[str, dict[str, list[int]]]:
    """Return table() of a module as {name: {dtype: [kernel, scratch size]}} of addresses, or {} if invalid.

    Kernels of the library, whose addresses an answer could also return, are left out.
    """
    try:
        return {n: {str(int(code)): [*map(int, row)] for code, row in types.items()
                    if _stands_in(made.__file__, *row)}
                for n, types in made.table().items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}


def _stands_in(file: str, *addresses: int) -> bool:
    info = Found()
    return all(not a or ctypes.CDLL(None).dladdr(ctypes.c_void_p(int(a)), ctypes.byref(info)) and
               info.file == os.fsencode(file) for a in addresses)


class Found(ctypes.Structure):
    """The struct Dl_info of dlfcn.h."""

    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p),
                ("at", ctypes.c_void_p)]


def _run(rows: dict, what: dict, data: bytes) -> tuple[dict, list[bytes]]:
    rooms, arrays, at = [], [], 0
    for dtype, shape in what["arrays"]:
        many = np.dtype(dtype).itemsize * int(np.prod(shape))
        room = np.full(many + 2 * FENCE, FRESH, np.uint8)
        room[FENCE:FENCE + many] = np.frombuffer(data, np.uint8, many, at)
        rooms.append(room)
        arrays.append(room[FENCE:FENCE + many].view(dtype).reshape(shape))
        at += many
    row = rows[what["name"]][str(int(arrays[0].dtype == np.float64))]
    bound = bound_with_work(row[0], row[1], arrays, what["nin"], what["ints"], what["threads"])
    said: dict[str, Any] = {"status": 0}
    if "number" in what:
        said["seconds"] = timeit.timeit(bound, number=what["number"])
        for room in rooms[what["nin"]:]:               # the judge compares what one more run writes
            room[FENCE:-FENCE] = FRESH
        bound()
    else:
        said["status"] = bound.alone(what["alone"]) if "alone" in what else bound()
    return said, [r.tobytes() for r in rooms]


if __name__ == "__main__":
    serve(sys.argv[1:], lambda: _prepare(Path(sys.argv[3]).read_text(encoding="utf-8")))
