"""Sandboxed process that runs answers, with the library but without the lines of the exercise's answer.

    python -S .../flowedu_course/teach/worker.py         control messages arrive on file 0

The process imports the library once and forks a child for each answer. Its sources have stubs; the code of
those files comes with the first message. The child removes the functions of the exercise, checks that nothing
of them is left in memory, enters the sandbox, runs the answer's file, and then serves calls of its functions.
It does not judge, except for exercises with `together` (see bench.judge_together).
"""
from __future__ import annotations

import array
import contextlib
import faulthandler
import gc
import importlib
import importlib.abc
import importlib.util
import json
import marshal
import os
import signal
import socket
import struct
import sys
import traceback
import types
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any


def receive_files(control: socket.socket, size: int, files: int) -> tuple[bytes, list[int]]:
    """Return a message and the file descriptors that came with it."""
    data, extra, _, _ = control.recvmsg(size, socket.CMSG_LEN(4 * files))
    descriptors = array.array("i")
    for level, kind, part in extra:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(part[:len(part) - len(part) % descriptors.itemsize])
    return data, list(descriptors)


class _FromMemory(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Importer of modules whose code came in the first message; their files have stubs."""

    def __init__(self, codes: dict[str, types.CodeType]):
        self.codes = codes

    def find_spec(self, name, path, target=None):
        if name not in self.codes:
            return None
        spec = importlib.util.spec_from_loader(name, self, origin=self.codes[name].co_filename)
        spec.has_location = True
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(self.codes.pop(module.__name__), vars(module))


# ---- in the child
def take_out(module: types.ModuleType, paths: list[str], id: str) -> list[str]:
    """Make the library's functions at these paths raise. Return the paths whose code is still in memory."""
    import inspect

    from flowedu.swap import plain, remade, target

    left = []
    for path in paths:
        owner, field, key = target(module, path)
        if hasattr(owner, "rules") and not key and not callable(getattr(owner, field)):
            remade(owner, **{field: []})           # data; an empty list is valid and reveals nothing
            continue
        record = hasattr(owner, "rules")
        if key:
            original = owner.rules[key].f
        else:
            original = getattr(owner, field) if record else inspect.getattr_static(owner, field)
        f = plain(original)
        left.append((path, weakref.ref(f.__code__)))
        raising = _raising(id, ", ".join(inspect.signature(f).parameters) if record else "*args, **kwargs")
        if f.__code__.co_freevars:                 # a closure; the function that made it has its code
            remade(owner, {key: raising} if key else None, **({} if key else {field: raising}))
        else:
            f.__code__ = raising.__code__
        if hasattr(original, "cache_clear"):
            original.cache_clear()
        del f, original
    gc.collect()
    return [path for path, code in left if code() is not None]


def _raising(id: str, parameters: str) -> Callable:
    space: dict[str, Any] = {}
    exec(f"def stub({parameters}):\n    raise NotImplementedError({id + ': your turn'!r})\n", space)
    return space["stub"]


def serve(link: Any, hole: types.SimpleNamespace, request: dict) -> None:
    """Run the answer's file, then serve calls of its functions until the link closes."""
    from flowedu import swap
    from flowedu_course.teach.protocol import Broken, Forwarding, Side, receive, send

    text, name = request["text"], request["name"]
    module = importlib.import_module(hole.module)
    try:
        space = swap.names(module)
        exec(compile(text, name, "exec", dont_inherit=True), space)
        parameters = {f: about(space.get(f), name) for f in hole.functions}
        if all(a["args"] is not None for a in parameters.values()):
            held = swap.taking(hole, space)          # never exited
            held.__enter__()
        send(link, {"made": parameters})
    except BaseException as error:
        send(link, {"raise": raised(error, name)})
        return

    def ask(message: dict) -> Any:
        send(link, message)
        while True:
            said = receive(link)
            if "return" in said:
                return side.unpack(said["return"])[0]
            if "raise" in said:
                raise again(said["raise"])
            send(link, answered(said))

    def answered(said: dict) -> dict:
        if said.get("fresh"):
            side.__init__(False, ask)
        given, named = side.unpack(said)
        f = space[said["run"]] if "run" in said else side.objects[said["call"]]
        try:
            with contextlib.ExitStack() as stack:
                for below in (True, False) if hole.kind != "hunt" else ():       # hunts get plain values
                    stack.enter_context(Forwarding(side, below).on())
                result = f(*given, **named)
                return {"return": side.pack([result], changed="run" in said)}
        except Broken:
            raise
        except BaseException as error:
            return {"raise": raised(error, name)}

    side = Side(False, ask)
    _methods_of_far_ones(side)
    while True:
        try:
            said = receive(link)
        except Broken:
            return
        send(link, answered(said))


def _methods_of_far_ones(side) -> None:
    """Forward FAR_METHODS of the judge's tensors, such as numpy and detach, to the judge."""
    from flowedu.core.eager.tensor import Tensor
    from flowedu_course.teach.proxy import FAR_METHODS

    def far(name: str) -> Callable:
        own = getattr(Tensor, name)
        return lambda x, *args: side.ask({"method": name, **side.pack([[x, *args],
                                                                       {}])}) if x.symbol is not None else \
            own(x, *args)

    for name in FAR_METHODS:
        setattr(Tensor, name, far(name))


def about(f: Any, file: str) -> dict:
    """Return the parameters of a function of the answer."""
    import inspect
    code = getattr(inspect.unwrap(f), "__code__", None) if callable(f) else None
    if code is None:
        return {"args": None}
    f = inspect.unwrap(f)
    n, names = code.co_argcount, code.co_varnames
    more = n + code.co_kwonlyargcount
    return {"args": names[:n], "only": names[n:more], "defaults": len(getattr(f, "__defaults__", None) or ()),
            "rest": names[more] if code.co_flags & 4 else "", "here": code.co_filename == file,
            "more": names[more + bool(code.co_flags & 4)] if code.co_flags & 8 else ""}


def raised(error: BaseException, file: str) -> dict:
    from flowedu_course.teach.proxy import describe_exception
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    return describe_exception(error, lines[-1] if lines else 0)


def again(said: dict) -> BaseException:
    import builtins

    from flowedu import errors
    from flowedu_course.teach.proxy import rebuild_exception
    cls = getattr(errors, said["type"], None) or getattr(builtins, said["type"], RuntimeError)
    return rebuild_exception(cls, said)


# ---- the process that forks the children
def child(files: list[int], request: dict) -> None:
    link, out, where = files
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(out, 1)
    os.dup2(out, 2)
    keep = sorted({link, where})
    at = 3
    for fd in keep:
        os.closerange(at, fd)
        at = fd + 1
    os.closerange(at, 1024)
    from flowedu_course.teach.codec import Link
    from flowedu_course.teach.isolation import shut_in
    hole = types.SimpleNamespace(**request["hole"], functions=request["functions"])
    there = Link(link)
    if request["together"]:                        # laws save the library's functions when imported
        for name in request["hole"]["laws"]:
            importlib.import_module(f"flowedu_course.laws.{name.partition('.')[0]}")
    left = take_out(importlib.import_module(hole.module), hole.objects, hole.id)
    there.sendall(struct.pack("<I", len(left)))    # ready; number of paths left in memory
    # Reports the line when time is up.
    faulthandler.register(signal.SIGALRM, file=where, all_threads=False)
    late = max(0.1, request["seconds"] - 0.5)
    signal.setitimer(signal.ITIMER_REAL, late, late)
    shut_in([Path(p) for p in request["read"]], memory=request["memory"], seconds=request["seconds"],
            landlock=request.get("landlock", True))
    sys.argv, sys.path[:] = [""], [p for p in sys.path if p]
    os.environ.clear()
    (judge if request["together"] else serve)(there, hole, request)


def judge(link: Any, hole: types.SimpleNamespace, request: dict) -> None:
    """Judge the requested texts in this process, because their values cannot be sent (judge_together)."""
    import linecache

    from flowedu import swap
    from flowedu_course import course
    from flowedu_course.judge import judged
    from flowedu_course.teach.protocol import receive, send

    name = request["name"]
    row = {k: tuple(v) if isinstance(v, list) else v for k, v in request["hole"].items()}
    whole = course.Hole(**{**row, "plain": "", "folder": Path(request["folder"])})
    while True:
        asked = receive(link)
        text = asked["text"]
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)

        def load(file: Path, module: types.ModuleType, text: str = text) -> dict[str, Any]:
            space = swap.names(module)
            exec(compile(text, name, "exec", dont_inherit=True), space)
            return space

        verdict = judged(whole, Path(name), asked["seed"], 0, load)
        send(link, {"verdict": vars(verdict), "number": asked["number"]})


def main() -> None:
    control = socket.socket(fileno=0)
    size = struct.unpack("<Q", control.recv(8, socket.MSG_WAITALL))[0]
    first = marshal.loads(control.recv(size, socket.MSG_WAITALL))
    finder = _FromMemory(first["codes"])
    sys.meta_path.insert(0, finder)
    for name in first["modules"]:
        importlib.import_module(name)
    sys.meta_path.remove(finder)
    del finder, first
    gc.collect()
    control.send(b"ready")
    while True:
        head, files = receive_files(control, 4, 3)
        if not head:
            return
        request = json.loads(control.recv(struct.unpack("<I", head)[0], socket.MSG_WAITALL))
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            control.sendall(struct.pack("<i", os.waitstatus_to_exitcode(status)))
            continue
        pid = os.fork()
        if not pid:
            code = 1
            try:
                child(files, request)
                code = 0
            except SystemExit as error:
                sys.stderr.write(f"{error}\n")
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        for f in files:
            os.close(f)
        control.sendall(struct.pack("<i", pid))


if __name__ == "__main__":
    main()
