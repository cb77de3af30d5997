"""Kernels in Cython in a separate process. The judge never loads a kernel, and reads only arrays from its process.

    yours = Apart("softmax", source)            in the role of a Compiled in the laws
    python -m flowedu.learn.apart FD_IN FD_OUT SOURCE         the process, in a sandbox while a submission is graded

A message consists of its length, a line of JSON, and the bytes of the arrays, each between guard bytes. simulated.py does
the same for CUDA C.
"""
from __future__ import annotations

import ctypes
import json
import os
import struct
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flowedu.core.values.dtype import float32, float64, int32, int64
from flowedu.errors import ArgumentError, FlowError, KernelError
from flowedu.learn.contract import KERNEL, bound_with_work
from flowedu.learn.laws.called import FENCE, FRESH, Compiled

DTYPES = {d.code: d.numpy for d in (float32, float64, int32, int64)}
LARGEST = 1 << 31


# ---- where it is judged
class Other:
    """The process in which an answer runs: python -m MODULE FD_IN FD_OUT SOURCE NAME.

    Raises KernelError: it could not be loaded there."""

    def __init__(self, module: str, source: str, name: str):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "kernel")
            file.write_text(source, encoding="utf-8")
            (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
            what = map(str, (theirs_in, theirs_out, file, name))
            self.process = subprocess.Popen([sys.executable, "-m", module, *what], pass_fds=(theirs_in, theirs_out),
                                            stdin=subprocess.DEVNULL)
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
            self._gone()
        return self._heard()

    def _heard(self) -> tuple[dict, bytes]:
        try:
            return get(self._of)
        except EOFError:
            self._gone()

    def _gone(self) -> None:
        """It ended: so does this one, in the same way, and whoever started it says what that means."""
        code = self.process.wait()
        sys.stdout.flush()
        if code < 0:
            os.kill(os.getpid(), -code)
        os._exit(code)


class Apart(Compiled):
    """Raises what Compiled does."""

    def __init__(self, name: str, source: str):
        self.name, self.source, self.work = name, source, 0
        self.other = Other("flowedu.learn.apart", source, name)
        self.rows = self.other.said["rows"]
        if "0" not in self.rows.get(name, {}):
            raise ArgumentError(f"the file has no kernel {name}", at="", got="", expected="",
                                fix=f'table() returns {{"{name}": {{FE_F32: (<size_t><void *>{name}, 0)}}}}')
        self._entry = KERNEL(self._entered)            # stays alive as long as the table may have its address
        self.address = ctypes.cast(self._entry, ctypes.c_void_p).value

    def bound(self, arrays: Sequence[np.ndarray], nin: int, ints: Sequence[int], threads: int = 1, name: str = "") -> Far:
        return Far(self, arrays, {"nin": nin, "ints": list(map(int, ints)), "threads": threads, "name": name or self.name})

    def ran(self, arrays: Sequence[np.ndarray], what: dict[str, Any]) -> tuple[dict, bool]:
        """What it says, and whether it wrote beside an array; they are then as it left them."""
        arrays = list(arrays)
        told = {**what, "arrays": [[a.dtype.str, a.shape] for a in arrays]}
        said, data = self.other.ask(told, [np.ascontiguousarray(a).tobytes() for a in arrays])
        beside, at = False, 0
        for a in arrays:
            room = np.frombuffer(data, np.uint8, a.nbytes + 2 * FENCE, at)
            beside |= bool((room[:FENCE] != FRESH).any() or (room[FENCE + a.nbytes:] != FRESH).any())
            a[...] = room[FENCE:FENCE + a.nbytes].view(a.dtype).reshape(a.shape)
            at += room.size
        return said, beside

    def _entered(self, call: Any, team: Any, tag: Any) -> int:
        """The kernel, as the engine calls it."""
        c = call.contents
        arrays = [_array(c.args[i]) for i in range(c.nargs)]
        ints = [c.ints[i] for i in range(8)] if c.ints else []
        alone = {"alone": team.contents.tid} if team.contents.nt > 1 else {}
        what = {"nin": c.nin, "ints": ints, "threads": team.contents.nt, "name": self.name, **alone}
        return int(self.ran(arrays, what)[0]["status"])


class Far:
    """As contract.Bound, of a kernel in another process. beside: whether it wrote outside of its arrays."""

    def __init__(self, of: Apart, arrays: Sequence[np.ndarray], what: dict[str, Any]):
        self._of, self._arrays, self._what, self.beside = of, arrays, what, False

    def __call__(self) -> int:
        said, self.beside = self._of.ran(self._arrays, self._what)
        return int(said["status"])

    def alone(self, tid: int) -> int:
        return int(self._of.ran(self._arrays, {**self._what, "alone": tid})[0]["status"])

    def spent(self, number: int) -> float:
        """Seconds of so many runs, by its own clock."""
        return float(self._of.ran(self._arrays, {**self._what, "number": number})[0]["seconds"])


def _array(view: Any) -> np.ndarray:
    """The memory of a view."""
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
    """Raises EOFError: nobody is there."""
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
    """What became of an answer there, as it is sent."""
    if isinstance(error, FlowError):
        return [error.problem, str(error.at or ""), str(error.got or "")]
    return [f"{type(error).__name__}: {error}", "", ""]


def again(said: Sequence[str]) -> KernelError:
    problem, at, got = (plain(t, 2000) for t in said)
    return KernelError(problem, at=at, got=got)


def plain(said: Any, most: int = 200) -> str:
    """A text of the other process: no marks of a terminal in it, and not too long."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in str(said)[:most])


# ---- where it runs
def main(arguments: list[str]) -> None:
    of, to = os.fdopen(int(arguments[0]), "rb"), os.fdopen(int(arguments[1]), "wb")
    from flowedu.learn.build import build, compiled

    source = Path(arguments[2]).read_text(encoding="utf-8")
    try:
        compiled(source)                               # its compilers are done before there are walls
        walls()
        rows = _rows(build(source))
    except BaseException as error:
        put(to, {"error": failure(error)})
        return
    put(to, {"rows": rows})
    while True:
        try:
            what, data = get(of)
        except EOFError:
            return
        put(to, *_run(rows, what, data))


def walls() -> None:
    """In a grade they go up here."""
    if os.environ.get("FLOWEDU_WALLS"):
        from flowedu.learn.teach.isolation import behind_walls
        behind_walls()


def _rows(made: Any) -> dict[str, dict[str, list[int]]]:
    """table() of a module: {name: {dtype: [address, address of its scratch size]}}; nothing, where it is none. A kernel of
    the library's, whose address is to be had, too, is no answer."""
    try:
        return {n: {str(int(code)): [*map(int, row)] for code, row in types.items() if _stands_in(made.__file__, *row)}
                for n, types in made.table().items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}


def _stands_in(file: str, *addresses: int) -> bool:
    found = Found()
    return all(not a or ctypes.CDLL(None).dladdr(ctypes.c_void_p(int(a)), ctypes.byref(found)) and
               found.file == os.fsencode(file) for a in addresses)


class Found(ctypes.Structure):
    """Dl_info of dlfcn.h."""

    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("at", ctypes.c_void_p)]


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
    else:
        said["status"] = bound.alone(what["alone"]) if "alone" in what else bound()
    return said, [r.tobytes() for r in rooms]


if __name__ == "__main__":
    main(sys.argv[1:])
