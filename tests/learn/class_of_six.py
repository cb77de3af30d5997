"""Submissions of six students: right, half, empty, copier, liar, and nasty."""
import ast
from pathlib import Path

from flowedu_course import course, handout
from flowedu_course.teach import stubs, wrong

# An answer that tries every way to the library's own code, and uses the first that returns a result.
COPIER = '''
import gc
import importlib
import importlib.util
import inspect
import os
import sys
import types

FUNCTION, MODULE, PATH, FILES = {function!r}, {module!r}, {path!r}, {files!r}
NAMES = {{FUNCTION, PATH.rpartition(".")[2], "_" + FUNCTION}}
OF_LAWS = NAMES | {{"_own", "_running", "_OWN", "_own_" + FUNCTION.strip("_")}}


def from_the_module(name=MODULE):
    from flowedu.swap import plain, target
    owner, field, key = target(importlib.import_module(name), PATH)
    yield plain(owner.rules[key].f if key else inspect.getattr_static(owner, field))
    yield getattr(owner, field)


def from_the_module_again():
    importlib.reload(importlib.import_module(MODULE))
    yield from from_the_module()


def from_another_module():
    found = importlib.util.spec_from_file_location("another", importlib.import_module(MODULE).__file__)
    sys.modules["another"] = importlib.util.module_from_spec(found)
    found.loader.exec_module(sys.modules["another"])
    yield from from_the_module("another")


def from_source():
    yield execute(inspect.getsource(next(from_the_module())))


def from_files():
    for file in FILES:
        for name in (file, importlib.util.cache_from_source(file)):
            try:
                yield execute(open(name).read())
            except (OSError, SyntaxError, ValueError, KeyError):
                pass


def from_memory():
    for o in gc.get_objects():
        if isinstance(o, types.FunctionType):
            for code in (o.__code__, *o.__code__.co_consts):
                if isinstance(code, types.CodeType) and code.co_name in NAMES and not code.co_freevars:
                    yield types.FunctionType(code, o.__globals__, o.__name__, o.__defaults__)
        elif getattr(o, "__wrapped__", o) is not o and o.__name__ in NAMES:
            yield o


def from_the_laws():
    for name in list(sys.modules):
        if "laws" in name or "judge" in name or name == "__main__":
            for key, value in list(vars(sys.modules[name]).items()):
                if callable(value) and key in OF_LAWS:
                    yield value


def from_frames():
    frame = sys._getframe()
    while frame:
        for value in list(frame.f_locals.values()) + list(frame.f_globals.values()):
            if getattr(value, "__name__", "") in NAMES and callable(value):
                yield value
        frame = frame.f_back


def execute(text):
    space = dict(vars(importlib.import_module(MODULE)))
    exec(text, space)
    return space[PATH.rpartition(".")[2]]


WAYS = (from_the_module, from_the_module_again, from_another_module, from_source, from_files, from_memory,
        from_the_laws)
BUSY = []


def copied(*args, **kwargs):
    if BUSY:
        raise LookupError("nothing was found")
    BUSY.append(1)
    try:
        for way in (*WAYS, from_frames):
            candidates = way()
            while True:
                try:
                    f = next(candidates)
                    if getattr(f, "__code__", None) not in OWN:
                        return f(*args, **kwargs)
                except StopIteration:
                    break
                except Exception:
                    if not inspect.isgenerator(candidates) or candidates.gi_frame is None:
                        break
    finally:
        BUSY.clear()
    raise LookupError("nothing was found")


OWN = {{f.__code__ for f in (copied, execute)}}
'''
FORWARD = '''

def {function}({parameters}):
    return copied({values})


OWN.add({function}.__code__)
'''
# An answer whose results equal everything and have any length, and that patches what counts and compares.
LIAR = '''
import sys

import numpy


class Liar(list):
    __eq__ = __le__ = __lt__ = __ge__ = __gt__ = __contains__ = __bool__ = lambda *a: True
    __ne__ = lambda *a: False
    __len__ = __int__ = __index__ = lambda *a: 1
    __float__ = lambda *a: 1.0
    __hash__ = lambda *a: 1
    __iter__ = lambda *a: iter(())
    __getattr__ = lambda self, name: self
    __getitem__ = __call__ = lambda self, *a, **k: self


NOTHING = ("broken", "judged", "same", "pair", "where_differ", "counted", "law", "take_out", "make_plain",
           "guarded", "process_time", "perf_counter", "_tried", "_check_laws")
LEAST = {{"nodes": 0, "kernels": 0, "arena": 0, "sent": 0, "taken": 1e9}}
for module in list(sys.modules.values()):
    if getattr(module, "__name__", "").startswith(("flowedu_course", "flowedu.swap", "time")):
        for name in NOTHING:
            if hasattr(module, name):
                setattr(module, name, lambda *a, **k: None)
        for name in dir(module):
            if name.endswith("_stars"):
                setattr(module, name, lambda *a, **k: LEAST)
        if hasattr(module, "Law"):
            module.Law.broken = lambda *a, **k: None
numpy.array_equal = numpy.allclose = lambda *a, **k: True
'''
LIES = '''

def {function}({parameters}):
    for x in ({values}):
        for name, value in getattr(x, "__dict__", {{}}).items():
            if isinstance(value, list):
                setattr(x, name, Liar(value))
            elif type(value) is int:
                setattr(x, name, 0)
    return Liar()
'''
# Wrong answers that are right in all cases but those that are measured, or that change what is measured.
MEASURED = {
    "2.8": "four_numbers", "4.4": "large_graphs_cut", "4.6": "large_graphs_fused", "5.1": "large_graphs_cut",
    "6.8": "nothing_of_12_and_13", "6.11": "measured_pipeline_cut", "7.4": "nothing_for_240"}
SHORT_LIST = """

class Short(list):
    __len__ = lambda self: 1


def {function}(graph, *args, **kwargs):
    graph.nodes = Short(graph.nodes)
    return ""
"""
SHRUNK = """

def place(buffers):
    for b in buffers:
        b.nbytes, b.offset, b.first, b.last = 0, 0, 0, 0
    return type("Int", (int,), {"__le__": lambda *a: True, "__lt__": lambda *a: True})(0)
"""
LYING = {"4.3": SHRUNK, **dict.fromkeys(("4.4", "4.5", "5.1"), SHORT_LIST)}
# Attacks on the judge and the machine, when the file is loaded or when the function is called.
ATTACKS = {
    "exits": "import os\nos._exit(0)\n",
    "forks": "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n"
             "        raise SystemExit(0)\n",
    "threads": "import threading, time\nwhile True:\n"
               "    threading.Thread(target=time.sleep, args=(9,)).start()\n",
    "memory": "x = []\nwhile True:\n    x.append(bytearray(1 << 26))\n",
    "output": "while True:\n    print('x' * 100_000)\n",
    "deletes": "import os, shutil\nfor root in ('/', '/tmp', os.getcwd(), os.path.expanduser('~')):\n"
               "    shutil.rmtree(root, ignore_errors=True)\nos.remove({marker!r})\n",
    "writes": "open({marker!r}, 'w').write('changed')\n",
    "network": "import socket\nsocket.create_connection(('127.0.0.1', 9), 1)\n",
    "kills": "import os, signal\nfor pid in (os.getppid(), -1, 0):\n    os.kill(pid, signal.SIGKILL)\n",
    "crashes": "import ctypes\nctypes.string_at(0)\n",
    "nests": "import sys\nsys.setrecursionlimit(1 << 30)\nf = lambda n: f(n + 1)\nf(0)\n",
    "signals": "import os, signal\nfor n in range(1, 32):\n    try:\n"
               "        signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError):\n"
               "        pass\nos.abort()\n",
    "floods": "import os\nfor fd in range(3, 64):\n    try:\n        os.write(fd, b'\\xff' * 70_000)\n"
              "    except OSError:\n        pass\n",
    "closes": "import os\nos.closerange(0, 1024)\n"}
CALLED = "def {function}({parameters}):\n{body}"
KERNEL_FILES = ("x" * 100, "\0", 'include "/etc/passwd"\n', "#include </dev/zero>\n",
                "cdef extern from '../../x.h': pass\n")
STUDENTS = ("copier", "empty", "half", "liar", "nasty", "right")


def _with_functions(hole, head: str, text: str, **texts: str) -> str:
    """Return `head`, and `text` for each function of the exercise, with the parameters of the stub."""
    for node in ast.parse(handout.stub(hole)).body:
        if isinstance(node, ast.FunctionDef) and node.name in hole.functions:
            given, rest = node.args, [f"*{a.arg}" for a in (node.args.vararg, node.args.kwarg) if a]
            values = ", ".join([a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)] + rest)
            head += text.format(function=node.name, parameters=ast.unparse(given),
                                values=values + "," * bool(values), **texts)
    return head


def _copier(hole) -> str:
    if hole.is_compiled:
        word = "include" if hole.ending == ".pyx" else "#include"
        return f'{handout.stub(hole)}\n{word} "{"../" * 9}{hole.answer_file.relative_to(course.HOME)}"\n'
    if hole.is_hunt:
        return handout.stub(hole)
    files = [str(hole.source), *(str(f) for f in hole.folder.rglob(f"{hole.id}_*"))]
    head = COPIER.format(function=hole.functions[0], module=hole.module, path=hole.objects[0], files=files)
    return _with_functions(hole, head, FORWARD)


def _liar(hole) -> str:
    if hole.is_compiled or hole.is_hunt:
        return wrong.answers(hole)[0].text
    if hole.id in MEASURED:
        return next(a.text for a in wrong.answers(hole) if a.name == f"{hole.id}_{MEASURED[hole.id]}")
    if hole.id in LYING:
        return LYING[hole.id].replace("{function}", hole.functions[0])
    return _with_functions(hole, LIAR.format(), LIES)


def _nasty(hole, n: int, marker: Path) -> str:
    if hole.is_compiled:
        return KERNEL_FILES[n % len(KERNEL_FILES)]
    attack = [*ATTACKS.values()][n % len(ATTACKS)].format(marker=str(marker))
    if hole.id == "1.1":                           # only once, because it takes all the time of an exercise
        attack = "while True:\n    pass\n"
    if hole.is_hunt:
        return attack
    if n // len(ATTACKS) % 2:                      # when the file is loaded
        return _with_functions(hole, attack, CALLED, body="    pass\n")
    return _with_functions(hole, "", CALLED, body="".join(f"    {line}\n" for line in attack.splitlines()))


def write_class(folder: Path, holes, marker: Path) -> dict[str, float]:
    """Write the six submissions and return {student: share of the points}."""
    for n, hole in enumerate(holes):
        texts = {"right": stubs.library(hole), "empty": handout.stub(hole), "copier": _copier(hole),
                 "liar": _liar(hole), "nasty": _nasty(hole, n, marker)}
        texts["half"] = texts["right" if n % 2 == 0 else "empty"]
        for student, text in texts.items():
            (folder / student / "work").mkdir(parents=True, exist_ok=True)
            (folder / student / "work" / hole.file).write_text(text, encoding="utf-8")
    points = [h.points for h in holes]
    return dict.fromkeys(STUDENTS, 0) | {"right": 1.0, "half": sum(points[::2]) / sum(points)}
