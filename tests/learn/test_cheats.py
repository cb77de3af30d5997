"""Answers that cheat by reading the library's code or by attacking the judge or the machine. None gets points
or escapes the sandbox, and later answers are judged correctly.
"""
import ctypes
import os
import pickle
import re
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest

from common import HANGS, few
from flowedu import errors
from flowedu.cuda.modules import own_file
from flowedu.cuda.sim import compiler
from flowedu.cuda.source import prepared
from flowedu.errors import KernelError
from flowedu_course import apart, authors, course, handout, kernels, limits, simulated
from flowedu_course.teach import proxy, stubs, together, worker, wrong
from flowedu_course.teach.bench import Bench, _children

STRIDES, PLACE = course.find("1.1"), course.find("4.3")
OWN = str(course.file_of(STRIDES.module))
LOOK = """
def row_major(shape):
    for f in found:
        try:
            if f is not row_major and tuple(f((2, 3))) == (3, 1):
                return f(shape)
        except Exception:
            pass
    raise LookupError("nothing is to be had")
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    with Bench(tmp_path_factory.mktemp("bench") / "tree", seconds=4.0, memory=512 << 20) as b:
        yield b


def verdict(bench, folder, text, hole=STRIDES):
    file = folder / hole.file
    file.write_text(text, encoding="utf-8")
    return bench.judged(hole, file)


# name: (text, regular expression for the verdict or the output)
READING = {
    "the source by inspect": (
        "import inspect\nfrom flowedu.core.values import spec\nexec(inspect.getsource(spec.row_major))\n",
        "OSError"),
    "the file of the library": (f"exec(open({OWN!r}).read())\n", "PermissionError"),
    "the folder of git": (f"import os\nfound = os.listdir({str(course.HOME)!r})\n" + LOOK, "PermissionError"),
    "a file of the machine": ("print(open('/etc/passwd').read())\n" + LOOK, "PermissionError"),
    "the memory of the process": ("found = open('/proc/self/mem', 'rb')\n" + LOOK, "PermissionError"),
    "the module once more": (
        "import importlib\nfrom flowedu.core.values import spec as s\nfound = "
        "[importlib.reload(s).row_major]\n"
        + LOOK, "LookupError"),
    "the module under another name": (
        "import importlib.util\nfrom flowedu.core.values import spec as s\n"
        "t = importlib.util.spec_from_file_location('other', s.__file__)\nm = "
        "importlib.util.module_from_spec(t)\nt.loader.exec_module(m)\nfound = [m.row_major]\n" + LOOK,
        "LookupError"),
    "all functions that there are": (
        "import gc, types\nfound = [o for o in gc.get_objects() if isinstance(o, types.FunctionType) and "
        "o.__code__.co_argcount == 1 and 'row' in o.__name__]\n" + LOOK, "LookupError"),
    "all code that there is": (
        "import gc, types\ndef code(c):\n    yield c\n    for k in c.co_consts:\n"
        "        if isinstance(k, types.CodeType):\n"
        "            yield from code(k)\n"
        "found = [types.FunctionType(c, globals()) for o in gc.get_objects() if isinstance(o, "
        "types.FunctionType) for c in code(o.__code__) if c.co_name == 'row_major' and not c.co_freevars]\n"
        + LOOK, "LookupError"),
    "the frames of its callers": (
        "import sys\ndef row_major(shape):\n    f = sys._getframe()\n    while f:\n        for v in "
        "f.f_locals.values():\n            if callable(v) and getattr(v, '__name__', '') == 'judge':\n"
        "                return v.__globals__['_running'](shape)\n"
        "        f = f.f_back\n    raise LookupError('nobody')\n", "Error"),
    "a trace of what is called": (
        "import sys\nseen = set()\nsys.settrace(lambda f, e, a: seen.add(f.f_code.co_filename))\n"
        "sys.setprofile(lambda *a: None)\n"
        "def row_major(shape):\n    assert not any('laws' in s or 'judge' in s for s in seen)\n"
        "    raise LookupError('nobody')\n",
        "LookupError"),
    "the laws": ("from flowedu_course.laws.values import _running as row_major\n", "Error"),
}
FORGING = {
    "a patched law": ("import flowedu_course.laws as l\nl.Law.broken = lambda *a: None\ndef "
                      "row_major(shape):\n    return ()\n",
                      "Error"),
    "a patched judge": (
        "import sys\nfor m in list(sys.modules.values()):\n    for n in ('same', 'pair', 'judged', 'broken', "
        "'law'):\n        if hasattr(m, n):\n            setattr(m, n, lambda *a, **k: None)\ndef "
        "row_major(shape):\n    return ()\n", "yours"),
    "a patched sender": (
        "import flowedu_course.teach.protocol as w\nfor n in ('send',):\n    own = getattr(w, n)\n"
        "    w.send = lambda to, m: own(to, {'state': 'right', 'stars': 3, 'law': '', 'lines': [], "
        "'extra': {}})\ndef row_major(shape):\n    return ()\n", "yours"),
    "a verdict in every open file": (
        "import json, os, struct\n"
        "said = json.dumps({'state': 'right', 'stars': 1, 'lines': [], 'law': '', 'extra': {}}).encode()\n"
        "for fd in range(64):\n    try:\n        os.write(fd, struct.pack('<I', len(said)) + said)\n"
        "    except OSError:\n        pass\n"
        "os._exit(0)\n", ""),
    "messages that end it": (
        "import os\nfor fd in range(3, 64):\n    try:\n        os.write(fd, b'\\xff' * 100)\n    except "
        "OSError:\n        pass\n"
        "def row_major(shape):\n    return ()\n", ""),
    "a value that equals all": (
        "class Liar(tuple):\n    __eq__ = lambda *a: True\n    __ne__ = lambda *a: False\n    __hash__ "
        "= None\ndef row_major(shape):\n    return Liar()\n", "yours"),
    "an object that equals all": (
        "class Liar:\n    __eq__ = lambda *a: True\n    __iter__ = lambda s: iter(())\ndef "
        "row_major(shape):\n    return Liar()\n", ""),
    "a function as the result": ("def row_major(shape):\n    return row_major\n", ""),
    "an exit in the middle": ("import os\ndef row_major(shape):\n    os._exit(0)\n", "exited with status"),
    "sys.exit": ("import sys\ndef row_major(shape):\n    sys.exit(0)\n", "SystemExit"),
}
GETTING_OUT = {
    "a socket": ("import socket\nsocket.socket().connect(('127.0.0.1', 9))\n" + LOOK, "PermissionError"),
    "a daemon": ("import os\nos.fork()\n" + LOOK, "PermissionError"),
    "a daemon through C": (
        "import ctypes\nassert ctypes.CDLL(None).fork() > 0, 'no child'\n" + LOOK, "no child"),
    "a program": ("import subprocess\nsubprocess.run(['/bin/sh', '-c', 'id'])\n" + LOOK, "PermissionError"),
    "a shell": ("import os\nassert os.system('id') == 0, 'no shell'\n" + LOOK, "no shell"),
    "an end to the judge": ("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n" + LOOK,
                            "PermissionError"),
    "an end to everybody": ("import os, signal\nos.kill(-1, signal.SIGKILL)\n" + LOOK, "PermissionError"),
    "a file in the tree": ("import flowedu\nopen(flowedu.__file__, 'a').write('x')\n" + LOOK,
                           "PermissionError"),
    "a file in /tmp": ("open('/tmp/flowedu-was-here', 'w')\n" + LOOK, "PermissionError"),
    "more rights": ("import os\nos.setuid(0)\nos.chroot('/')\n" + LOOK, "PermissionError"),
    "higher limits": (
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))\n" + LOOK, "Error"),
    "10 GB": ("x = bytearray(10 << 30)\n" + LOOK, "MemoryError"),
    "10 GB, bit by bit": ("x = []\nwhile True:\n    x.append(bytearray(1 << 24))\n", "MemoryError"),
    "an endless loop": ("def row_major(shape):\n    while True:\n        pass\n",
                        "no result after 4 seconds"),
    "an endless loop in C": ("def row_major(shape):\n    return sum(iter(int, 1))\n",
                             "no result after 4 seconds"),
    "a loop that holds the interpreter": ("def row_major(shape):\n    return pow(3, 10 ** 10)\n", ""),
    "a flood": ("def row_major(shape):\n    while True:\n        print('x' * 1000)\n",
                "printed more than 1,048,576 bytes"),
    "a message of a gigabyte": ("def row_major(shape):\n    return 'x' * (100 << 20)\n", ""),
    "threads without end": (
        "import threading, time\ndef row_major(shape):\n    while True:\n"
        "        threading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n", ""),
}


@pytest.mark.parametrize("name", few([*READING, *FORGING, *GETTING_OUT], lambda name: "loop" not in name))
def test_a_cheat_earns_no_points(bench, tmp_path, name):
    text, words = {**READING, **FORGING, **GETTING_OUT}[name]
    said = verdict(bench, tmp_path, text)
    assert said.state != "right" and said.stars == 0, said
    assert words in " ".join([said.state, *said.lines, said.output]), said
    assert len(said.lines) <= 11 and not Path("/tmp/flowedu-was-here").exists()
    assert "GB" in name or not re.search("GiB|after 4 seconds", "".join(said.lines)) or "loop" in name, said


def test_right_answers_pass_after_all_cheats(bench, tmp_path):
    for text in (GETTING_OUT["an end to everybody"][0], FORGING["a verdict in every open file"][0]):
        verdict(bench, tmp_path, text)
        assert verdict(bench, tmp_path, stubs.answer_text(STRIDES)).state == "right"


def test_nothing_is_left_running(bench, tmp_path):
    """The process of a sleeping answer, with or without threads, has ended when the verdict is returned."""
    said = verdict(bench, tmp_path, "import os, threading, time\nprint('pid', os.getpid())\n"
                                    "threading.Thread(target=time.sleep, args=(999,)).start()\n"
                       + stubs.answer_text(STRIDES))
    pid = int(said.output.split("pid ")[1].split()[0])
    end = time.monotonic() + HANGS
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    assert said.state == "right"


def test_modified_arguments_do_not_affect_the_verdict(bench, tmp_path):
    """Smaller buffers overlap less; a judge that used the modified buffers would give three stars."""
    said = verdict(bench, tmp_path, "def place(buffers):\n    for b in buffers:\n        b.nbytes, b.offset "
                   "= 0, 0\n    return 0\n", PLACE)
    assert said.state == "wrong" and "more of a buffer" in said.lines[1]


def test_stars_are_computed_from_the_checked_results(bench, tmp_path):
    """A wasteful answer that reports a small arena after the laws have run gets no stars."""
    said = verdict(bench, tmp_path, "calls = 0\ndef place(buffers):\n    global calls\n    calls += 1\n    "
                   "end = 0\n    for b in buffers:\n        b.offset = 0 if calls > 260 else end\n"
                                    "        end += rounded(b.nbytes)\n    return 64 if calls > 260 else "
                   "end\n", PLACE)
    assert said.stars == 0


def test_without_landlock_no_file_is_opened(tmp_path):
    with Bench(tmp_path / "tree", landlock=False) as b:
        assert verdict(b, tmp_path, stubs.answer_text(STRIDES)).state == "right"
        said = verdict(b, tmp_path, f"exec(open({OWN!r}).read())\n")
        assert said.state == "wrong" and "PermissionError" in said.lines[0]


def test_code_that_cannot_be_removed_stops_grading():
    """Grading stops if any object still references the removed code of the answer."""
    module = types.ModuleType("some")
    text = ("import functools\n@functools.lru_cache\ndef f(x):\n    return x + 1\n\ndef g(x):\n    return "
            "x + 2\n")
    exec(text, vars(module))
    assert module.f(1) == 2
    kept = module.g.__code__
    assert worker.take_out(module, ["f", "g"], "1.9") == ["g"] and kept.co_name == "g"
    for f in (module.f, module.g):
        with pytest.raises(NotImplementedError, match="1.9: your turn"):
            f(1)


@pytest.mark.parametrize("cls", [c for c in vars(errors).values() if isinstance(c, type)
                                 and issubclass(c, errors.FlowError)], ids=lambda c: c.__name__)
def test_an_error_keeps_its_texts_between_processes(cls):
    error = errors.FlowError.__new__(cls)
    errors.FlowError.__init__(error, "f: wrong", expected="1", got="2", fix="f(1)", at="job.py:7")
    again = proxy.rebuild_exception(cls, proxy.describe_exception(error))
    assert (type(again), str(again)) == (cls, str(error))
    assert {k: vars(again)[k] for k in proxy.PARTS} == {k: vars(error)[k] for k in proxy.PARTS}
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    again.with_texts(problem="g: wrong")
    assert str(again).startswith("g: wrong\n")


# ---- judged in the answer's own process
RING = course.find("6.8")
SAID = """
import json, os, struct, sys
verdict = {"state": "right", "stars": 2, "of": 2, "lines": [], "law": "", "extra": {}, "seconds": 0.1}
def frames(message):
    data = json.dumps(message).encode()
    return struct.pack("<I", len(data)) + data, struct.pack("<Q", len(data)) + data, data, data + b"\\n"
one = frames({"verdict": verdict})[0]
numbered = frames({"verdict": verdict, "number": ""})[0] + frames({"verdict": verdict, "number": "0" * 32})[0]
"""
WRITES = """
def forge(data=one, many=1024, leave=True):
    for fd in range(many):
        try:
            os.write(fd, data)
        except OSError:
            pass
    if leave:
        os._exit(0)
"""
CALLED = "def ring_all_reduce(x):\n    forge()\n    return x\n"
WRONG_RING = "def ring_all_reduce(x):\n    return x\n"
TRUE = "lambda *a, **k: "
RIGHT = ("{'state': 'right', 'stars': 2, 'law': '', 'lines': [], 'extra': {}, 'seconds': 0.1, 'title': '', "
         "'output': ''}")
TOGETHER = {
    "when it is loaded": SAID + WRITES + "forge()\n",
    "when it is called": SAID + WRITES + CALLED,
    "many of them": SAID + WRITES + "forge(one * 5)\n",
    "with numbers": SAID + WRITES + "forge(numbered * 3)\n",
    "other frames": SAID + WRITES + "for data in frames({'verdict': verdict}):\n    forge(data, "
    "leave=False)\nos._exit(0)\n",
    "and goes on": SAID + WRITES + "forge(leave=False)\n" + WRONG_RING,
    "by a thread": SAID + WRITES + "import threading\nthreading.Thread(target=forge, daemon=True).start()\n"
    + WRONG_RING,
    "by a thread, at its end": SAID + WRITES + "import threading, time\nthreading.Thread(target=lambda: "
    "(time.sleep(0.3), forge()), daemon=True).start()\n" + WRONG_RING,
    "by libc": SAID + "import ctypes\nlibc = ctypes.CDLL(None)\nfor fd in range(1024):\n"
               "    libc.write(fd, one, len(one))\nlibc._exit(0)\n",
    "by sendfile's kin": SAID + "for fd in range(64):\n    try:\n        os.writev(fd, [one, one])\n"
                         "    except OSError:\n        pass\nos._exit(0)\n",
    "by a child": SAID + WRITES + "if os.fork() == 0:\n    forge()\n" + WRONG_RING,
    "at the exit": SAID + WRITES + "import atexit\natexit.register(forge)\ndef ring_all_reduce(x):\n    "
    "sys.exit(0)\n",
    "by standard output": SAID + "sys.stdout.buffer.write(one)\nsys.stdout.flush()\nos._exit(0)\n",
    "a patched json": "import json\nown = json.dumps\njson.dumps = lambda m, *a, **k: own({**m, 'verdict': "
    + RIGHT +
                      "} if 'verdict' in m else m, *a, **k)\n" + WRONG_RING,
    "a patched write": SAID + "own = os.write\nos.write = lambda fd, data: own(fd, one) and len(data)\n"
    + WRONG_RING,
    "a patched law": "import flowedu_course.laws as l\nl.Law.broken = " + TRUE + "None\n" + WRONG_RING,
    "a patched case": "import flowedu_course.laws as l\nl.Law._tried = " + TRUE + "None\n" + WRONG_RING,
    "a patched judge": "import flowedu_course.judge as j\nj.judged = " + TRUE + RIGHT + "\nj._check_laws = "
    + TRUE + "{}\nj.measured = " + TRUE + "{'sent': 0}\n" + WRONG_RING,
    "all modules patched": "import sys\nfor m in list(sys.modules.values()):\n    for n in dir(m):\n"
                           "        if n in ('judged', '_judged', '_check_laws', '_sums_judged', 'same', "
    "'pair', 'broken'):\n"
                           "            setattr(m, n, " + TRUE + "None)\n" + WRONG_RING,
    "a patched NumPy": "import numpy\nnumpy.array_equal = " + TRUE + "True\n" + WRONG_RING,
    "patched builtins": "import builtins\nbuiltins.getattr, builtins.all, builtins.map = " + TRUE + "True, "
    + TRUE +
                        "True, " + TRUE + "[]\n" + WRONG_RING,
    "a trace": SAID + WRITES + "sys.settrace(lambda f, e, a: forge() if f.f_code.co_name == 'broken' else "
    "None)\n" +
               WRONG_RING,
    "a profile": SAID + WRITES + "sys.setprofile(lambda f, e, a: e == 'return' and f.f_code.co_name == "
    "'judged' and forge())\n" + WRONG_RING,
    "the sender in a frame": SAID + "f = sys._getframe()\nwhile f:\n    link = f.f_locals.get('link')\n    "
    "if link:\n        f.f_globals['os'].write(link.fd, one)\n    f = f.f_back\nos._exit(0)\n",
    "the sender among all objects": SAID + "import gc\nfor o in gc.get_objects():\n    if type(o).__name__ "
    "== 'Link':\n        o.sendall(one * 2)\nos._exit(0)\n",
    "the number in a frame": SAID + "f, number = sys._getframe(), ''\nwhile f:\n"
                             "    number = f.f_locals.get('asked', {}).get('number', number)\n"
                             "    link = f.f_locals.get('link')\n    if link and number:\n"
                             "        link.sendall(frames({'verdict': verdict, 'number': number})[0])\n    f "
    "= f.f_back\nos._exit(0)\n",
    "a patched sender": "import flowedu_course.teach.protocol as p\nown = p.send\np.send = lambda to, m: "
    "own(to, {**m, 'verdict': " + RIGHT + "})\n" + WRONG_RING}


@pytest.mark.parametrize("name", few(sorted(TOGETHER), lambda name: name in (
    "when it is loaded", "when it is called", "a patched judge", "the number in a frame",
    "by a thread, at its end")))
def test_a_forged_verdict_in_a_shared_process_earns_no_points(bench, tmp_path, name):
    """A forged verdict must also reject planted wrong answers and repeat numbers that arrive after its reply,
    so it fails.
    """
    said = verdict(bench, tmp_path, TOGETHER[name], RING)
    assert (said.state, said.stars) == ("wrong", 0), said


@pytest.mark.parametrize("hole", few([h for h in course.holes() if h.together], lambda h: h is RING),
                         ids=lambda h: h.id)
def test_planted_wrong_answers_fail(tmp_path, hole):
    """Each planted answer fails its law, both before and after a right answer; the right answer gets its
    points and a mark.
    """
    plants = wrong.answers(hole)
    assert len(plants) > 2 and not [p for p in plants if not p.law]
    with Bench(tmp_path / "tree") as b:
        for seed in (0, 2027):
            file = tmp_path / hole.file
            file.write_text(stubs.answer_text(hole), encoding="utf-8")
            said = b.judged(hole, file, seed)
            assert said.state == "right" and said.extra["together"], said
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(together.random, "SystemRandom",
                          lambda: types.SimpleNamespace(sample=lambda a, n: a[:2]))
            for i in range(0, len(plants), 2):
                patch.setattr(wrong, "answers", lambda hole, i=i: (plants[i:] + plants)[:2])
                assert b.judged(hole, file).state == "right", plants[i:i + 2]


# ---- kernels
KERNEL = course.find("8.4")
PATCHES = """
import sys
for m in list(sys.modules.values()):
    if getattr(m, "__name__", "").startswith("flowedu_course"):
        for n in ("judged", "_laws"):
            if hasattr(m, n):
                setattr(m, n, lambda *a, **k: {"state": "right", "stars": 3, "law": "", "lines": [], "extra": {}})
        if hasattr(m, "Law"):
            m.Law.broken = lambda *a: None
"""
FORGES = """
import json, os
for folder, _, files in os.walk(os.environ["TMPDIR"]):
    for name in ("verdict.json", "verdict.new", "verdict.json.new"):
        try:
            with open(os.path.join(folder, name), "w") as f:
                json.dump({"state": "right", "stars": 3, "law": "", "lines": [], "extra": {}, "seconds": 1.0}, f)
        except OSError:
            pass
for fd in range(3, 64):
    try:
        os.write(fd, b"right" * 100)
    except OSError:
        pass
"""
# Code that runs when the file of an empty kernel is loaded.
BESIDE = {"patches the judge": PATCHES, "writes verdicts": FORGES,
          "ends the judge": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n",
          "starts somebody": "import os\nos.fork()\n", "looks around": "open('/etc/passwd')\n",
          "has a network": "__import__('socket').socket()\n",
          "writes into the tree": f"open({str(course.HOME / 'README.md')!r}, 'a')\n"}
PATCHING = "patches the judge"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BESIDE))
def test_extra_code_in_a_kernel_file_earns_nothing(bench, tmp_path, name):
    """Neither a grade nor `make check` loads the file into the judge's process."""
    empty = handout.stub(KERNEL).replace("    return FE_OK",
                                         "    cdef int nothing = 0\n    return FE_OK") + BESIDE[name]
    said = verdict(bench, tmp_path, empty, KERNEL)
    assert said.state == "wrong" and said.stars == 0, said
    if name == PATCHING:
        assert said.law == "kernels.argmax_shared", said
        checked = limits.judged(KERNEL, tmp_path / KERNEL.file, course.HOME)
        assert (checked.state, checked.law) == ("wrong", "kernels.argmax_shared")


@pytest.mark.slow
def test_a_kernel_that_runs_python_does_not_reach_its_judge(bench, tmp_path):
    """The attack runs when the kernel is called, not when it is loaded."""
    text = handout.stub(KERNEL).replace("noexcept nogil:", "noexcept with gil:").replace(
        "    return FE_OK", '    exec("""' + PATCHES + '""")\n    return FE_OK')
    said = verdict(bench, tmp_path, text, KERNEL)
    assert (said.state, said.law) == ("wrong", "kernels.argmax_shared"), said


@pytest.mark.slow
def test_kernels_are_judged_in_the_sandbox(bench, tmp_path):
    """Kernels are compiled and run in the sandbox; a wrong one fails its law."""
    said = verdict(bench, tmp_path, authors.library(KERNEL), KERNEL)
    assert said.state == "right" and "together" not in said.extra, said
    answer = wrong.answers(KERNEL)[0]
    said = verdict(bench, tmp_path, answer.text, KERNEL)
    assert (said.state, said.law) == ("wrong", answer.law)
    said = verdict(bench, tmp_path, f"{authors.library(KERNEL)}\nopen('/etc/passwd')\n", KERNEL)
    assert said.state == "wrong" and "PermissionError" in "".join(said.lines), said


@pytest.mark.slow
def test_no_process_of_a_kernel_is_left_running(bench, tmp_path):
    """A kernel that ends its own process also leaves none behind."""
    before = _children()
    for beside in ("", "\nimport os\nos._exit(0)\n"):
        said = verdict(bench, tmp_path, authors.library(KERNEL) + beside, KERNEL)
        assert said.state == ("wrong" if beside else "right") and _children() <= before, said


# kernels of other authors
QUICK_OTHER = "the library's kernel in the table"
OF_OTHERS = {
    QUICK_OTHER: ("8.4", handout.stub(KERNEL).partition("def table")[0] + "from flowedu._kernels import "
                  "TABLE\n\n\ndef table():\n    return {'argmax': {0: TABLE['argmax', 0]}}\n"),
    "the library's file": ("8.4", 'include "flowedu/_kernels/ops/argmax.pyx"\n'),
    "the library's file, in a block of C": ("8.4", 'cdef extern from *:\n    """\n#inc\\\nlude '
                                            '"../x/argmax.c"\n    """\n'),
    "a step of the ladder": ("8.9", '#include "lessons/softmax_warp.cu"\n'),
    "the answer that is kept back": ("8.7", '#include "../../../chapters/08_kernels/answers/8.7_guard.cu"\n'),
    "the answer, by a word for its name": ("8.7",
                                           '#define IT "../../../chapters/08_kernels/answers/8.7_guard.cu"\n'
                                           "#include IT\n"),
    "the answer, as another does": ("8.1",
                                    '#include_next "../../../../chapters/08_kernels/answers/8.1_snake.h"\n'),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", few(sorted(OF_OTHERS), lambda name: name in ("a step of the ladder",
                                                                              QUICK_OTHER),
                                     simulated=lambda name: course.find(OF_OTHERS[name][0]).language
                                     == "cuda"))
def test_calling_an_existing_kernel_is_no_answer(tmp_path, name):
    hole, text = course.find(OF_OTHERS[name][0]), OF_OTHERS[name][1]
    file = tmp_path / hole.file
    file.write_text(text, encoding="utf-8")
    said = limits.judged(hole, file, course.HOME)
    assert (said.state, said.stars) == ("wrong", 0), said
    lines = " ".join(line.strip() for line in said.lines)
    assert "an answer may include only headers" in lines or "has no kernel" in lines, said


GUARD = course.find("8.7")
ADD = kernels.answer(GUARD)
IN_IT = "if (i < n) z[i] = x[i] + y[i];"
assert ADD.count(IN_IT) == 1
# Extra code in a CUDA C file, and the word that is refused.
NATIVE = {
    "a function that runs first": ("__attribute__((constructor)) static void first() {}", "__attribute__"),
    "it, by another spelling": ("[[gnu::constructor]] static void first() {}", "[["),
    "it, over two lines": ("__attri\\\nbute__((constructor)) static void first() {}", "__attribute__"),
    "it, by words put together": ("#define J(a, b) a##b\nJ(__attri, bute__)((constructor)) static void "
                                  "first() {}", "##"),
    "a function without checks": ('__attribute__((no_sanitize("thread"))) void quiet() {}', "__attribute__"),
    "an assembler's words": ('void quiet() { asm("nop"); }', "asm"),
    "a pragma": ('#pragma GCC optimize("O3")', "#pragma"),
    "a pragma in words": ('_Pragma("GCC optimize(3)")', "_Pragma"),
    "checks of its own": ('extern "C" void __tsan_read4(void *) {}', "__tsan_read4"),
    "the simulator's counters": ('extern "C" void cudasim_profile_start();', "cudasim_profile_start"),
}


@pytest.mark.parametrize("name", NATIVE)
def test_refused_cuda_c_constructs_are_named(name):
    beside, word = NATIVE[name]
    with pytest.raises(KernelError, match=re.escape(f"{word} is not allowed in an answer")):
        kernels.alone(GUARD, ADD + beside)


def test_the_line_of_a_refused_construct_is_reported():
    with pytest.raises(KernelError) as e:
        kernels.alone(GUARD, "/* one\n   two */\n#define THREE \\\n    4\nint five;\nvoid six() { "
                      "asm(\"nop\"); }\n")
    assert e.value.at == 'kernel.cu:6: void six() { asm("nop"); }'


def test_plain_cuda_c_is_accepted():
    """The library's own kernels and arbitrary comments are accepted."""
    own = sorted((course.file_of("flowedu").parent / "_kernels" / "cuda" / "lessons").glob("*.cu"))
    texts = [f.read_text(encoding="utf-8").replace("lessons/", "") for f in own]
    for text in [*texts, ADD + "// asm, __attribute__\n", "#include <math.h>\n" + ADD]:
        kernels.alone(GUARD, text)
    assert len(own) > 10


# Compiled code that runs before the kernel or is called by it: {name: (text, error)}.
COMPILED = {
    "a variable made first": (ADD + "int *made = new int(1);\n", "cannot call|runs before"),
    "it, without help": (ADD + "int first();\nint made = first(), twice = first();\n__device__ __noinline__ "
                         "int first() { return blockIdx.x; }\n", "initialized by code that runs before"),
    "a program": ('extern "C" int system(const char *);\n' + ADD.replace(IN_IT,
                                                                         f'if (n < 0) system("id"); {IN_IT}'),
                  "cannot call system"),
    "the simulator itself": ('extern "C" void *dlsym(void *, const char *);\n' + ADD.replace(
        IN_IT, f'if (n < 0) dlsym(0, "x"); {IN_IT}'), "cannot call dlsym"),
}


@pytest.mark.simulator
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_code_is_inspected(name, tmp_path, monkeypatch):
    """The simulator's compiler normally refuses host calls first. That check is disabled here, as if an
    attack had evaded it.
    """
    text, words = COMPILED[name]
    monkeypatch.setattr(compiler, "find_host_call", lambda made, source: None)
    # Not into the cache.
    made = compiler.build(prepared(own_file(text)), tmp_path / "kernel.so", "checked", ())
    with pytest.raises(KernelError, match=words):
        simulated.refuse_symbols(made.read_bytes())


@pytest.mark.simulator
def test_math_functions_and_constants_are_accepted():
    text = "__constant__ float scale = 0.5f;\n" + ADD.replace("x[i] + y[i]",
                                                              "scale * fmaxf(expf(x[i]), __sinf(y[i]))")
    simulated.refuse_symbols(compiler.compiled(prepared(own_file(text)), checked=True))


@pytest.mark.simulator
def test_a_judge_of_cuda_c_never_loads_it(tmp_path):
    """The judge's process receives the results and maps no module of the answer, so a crash ends only the
    answer's process.
    """
    program = """
import sys
from pathlib import Path
from flowedu_course.simulated import Simulated
yours = Simulated("add", Path(sys.argv[1]).read_text())
ran = yours.run((70,))
here = [t for t in Path("/proc/self/maps").read_text().splitlines() if "flowedu-cuda-" in t]
there = [t for t in Path(f"/proc/{yours.other.process.pid}/maps").read_text().splitlines() if "flowedu-cuda-" in t]
print(ran.output.shape, ran.counts["launches"], bool(here), bool(there))
"""
    (tmp_path / "add.cu").write_text(ADD, encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "add.cu"], capture_output=True,
                          encoding="utf-8", env={**os.environ, **kernels.environment(GUARD)})
    assert done.stdout == "(70,) 1 False True\n", done


@pytest.mark.simulator
def test_cuda_c_runs_in_the_sandbox(tmp_path, monkeypatch):
    """The sandbox stops native code that passed all inspections and finds C library functions by their offset
    from an allowed one.
    """
    libc = ctypes.CDLL("libc.so.6")

    def address(name):
        return ctypes.cast(getattr(libc, name), ctypes.c_void_p).value

    calls = 'extern "C" int puts(const char *);\n'
    for name, signature in {"open": "const char *, int, ...", "socket": "int, int, int",
                            "kill": "int, int"}.items():
        calls += f"#define {name} ((int (*)({signature}))((char *)&puts + ({address(name) - address('puts')}ll)))\n"
    kernel = 'if (i < n) z[i] = open("/etc/passwd", 0) + socket(2, 1, 0) + kill(1, 0);'
    for name, value in {**kernels.environment(GUARD), "FLOWEDU_WALLS": "1", "TMPDIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    other = apart.Other("flowedu_course.simulated", calls + ADD.replace(IN_IT, kernel), "add")
    x = np.zeros(3, np.float32)
    said, data = other.ask({"shapes": [x.shape, x.shape], "order": 0}, [x.tobytes(), x.tobytes()])
    assert np.frombuffer(data, np.float32).tolist() == [-3, -3, -3], said
    del other


@pytest.mark.slow
@pytest.mark.simulator
def test_cuda_c_is_judged_in_a_separate_process(bench, tmp_path):
    for hole in (h for h in course.holes() if h.language == "cuda"):
        said = verdict(bench, tmp_path, authors.library(hole), hole)
        assert said.state == "right" and said.stars == said.of and "together" not in said.extra, said
