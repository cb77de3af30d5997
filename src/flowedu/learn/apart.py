"""A kernel in Cython runs in a process of its own: who judges it never loads it, and takes nothing from it but numbers.

    yours = Apart("softmax", source)            where laws want a Compiled
    python -m flowedu.learn.apart FD_IN FD_OUT SOURCE         the process; in a grade it stands behind walls

A message is its length, a line of JSON, and the bytes of the arrays, each between fences.
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
from flowedu.errors import ArgumentError, KernelError
from flowedu.learn.contract import KERNEL, bound_with_work
from flowedu.learn.laws.called import FENCE, FRESH, Compiled

DTYPES = {d.code: d.numpy for d in (float32, float64, int32, int64)}
LARGEST = 1 << 31


# ---- where it is judged
class Apart(Compiled):
    """Raises what Compiled does."""

    def __init__(self, name: str, source: str):
        self.name, self.source, self.work = name, source, 0
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "kernel.pyx")
            file.write_text(source)
            (theirs_in, ours_out), (ours_in, theirs_out) = os.pipe(), os.pipe()
            self.process = subprocess.Popen([sys.executable, "-m", "flowedu.learn.apart", str(theirs_in), str(theirs_out),
                                             str(file)], pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL)
            os.close(theirs_in)
            os.close(theirs_out)
            self._to, self._of = os.fdopen(ours_out, "wb"), os.fdopen(ours_in, "rb")
            said, _ = self._heard()
        if "error" in said:
            raise KernelError(str(said["error"])[:200], at="", got="")
        self.rows = said["rows"]
        if "0" not in self.rows.get(name, {}):
            raise ArgumentError(f"the file has no kernel {name}", at="", got="", expected="",
                                fix=f'table() returns {{"{name}": {{FE_F32: (<size_t><void *>{name}, 0)}}}}')
        self._entry = KERNEL(self._entered)            # stays alive as long as the table may have its address
        self.address = ctypes.cast(self._entry, ctypes.c_void_p).value

    def __del__(self):
        if hasattr(self, "process"):
            self.process.kill()
            self.process.wait()
            self._to.close()
            self._of.close()

    def bound(self, arrays: Sequence[np.ndarray], nin: int, ints: Sequence[int], threads: int = 1, name: str = "") -> Far:
        return Far(self, arrays, {"nin": nin, "ints": list(map(int, ints)), "threads": threads, "name": name or self.name})

    def ran(self, arrays: Sequence[np.ndarray], what: dict[str, Any]) -> tuple[dict, bool]:
        """What it says, and whether it wrote beside an array; they are then as it left them."""
        arrays = list(arrays)
        told = {**what, "arrays": [[a.dtype.str, a.shape] for a in arrays]}
        try:
            put(self._to, told, [np.ascontiguousarray(a).tobytes() for a in arrays])
        except OSError:
            self._gone()
        said, data = self._heard()
        beside, at = False, 0
        for a in arrays:
            room = np.frombuffer(data, np.uint8, a.nbytes + 2 * FENCE, at)
            beside |= bool((room[:FENCE] != FRESH).any() or (room[FENCE + a.nbytes:] != FRESH).any())
            a[...] = room[FENCE:FENCE + a.nbytes].view(a.dtype).reshape(a.shape)
            at += room.size
        return said, beside

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


# ---- where it runs
def main(arguments: list[str]) -> None:
    of, to = os.fdopen(int(arguments[0]), "rb"), os.fdopen(int(arguments[1]), "wb")
    from flowedu.learn.build import build, compiled

    source = Path(arguments[2]).read_text()
    try:
        compiled(source)                               # its compilers are done before there are walls
        if os.environ.get("FLOWEDU_WALLS"):
            from flowedu.learn.teach.shut import behind_walls
            behind_walls()
        rows = _rows(build(source))
    except BaseException as error:
        put(to, {"error": f"{type(error).__name__}: {error}"})
        return
    put(to, {"rows": rows})
    while True:
        try:
            what, data = get(of)
        except EOFError:
            return
        put(to, *_run(rows, what, data))


def _rows(made: Any) -> dict[str, dict[str, list[int]]]:
    """table() of a module: {name: {dtype: [address, address of its scratch size]}}; nothing, where it is none."""
    try:
        return {n: {str(int(code)): [*map(int, row)] for code, row in types.items()} for n, types in made.table().items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}


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
