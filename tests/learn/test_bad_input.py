"""Damaged work files, work folders, and state files produce one clear line, lose nothing, and leave the next
check working.
"""
import errno
import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from common import HANGS, few
from flowedu_course import course, limits
from flowedu_course.course import Progress
from flowedu_course.runner import Runner, main
from flowedu_course.watch import settled

STRIDES = course.find("1.1")
RIGHT = "def row_major(shape):\n    out, step = [], 1\n    for n in reversed(shape):\n        out.append(step)\n" \
        "        step *= max(n, 1)\n    return tuple(reversed(out))\n"


@pytest.fixture
def runner(tmp_path):
    r = Runner(course.HOME, tmp_path / "work")
    r.start(1)
    return r


def said_of(runner, content: bytes):
    runner.file(STRIDES).write_bytes(content)
    right, lines = runner.check(STRIDES)
    assert len(lines) <= 12 and not any("Traceback" in t or len(t) > 100 for t in lines), lines
    return right, "\n".join(lines)


def command(work, *arguments, **more):
    return subprocess.run([sys.executable, "-m", "flowedu_course", *arguments, "--work", str(work)],
                          capture_output=True, text=True, timeout=HANGS, **more)


@pytest.mark.parametrize("content, words", few([
    (b"", "has no function row_major"),
    (b"def row_major(shape)\n    return ()\n", "SyntaxError"),
    (b"def row_major(shape):\n\tif shape:\n        return ()\n", "TabError"),
    (b"def row_major(shape):\n    return 'gr\xfc\xdfe'\n", "utf-8"),
    (b"def row_major(shape):\n    return ()\n\0", "null bytes"),
    (b"row_major = 3\n", "has no function row_major"),
    (b"from flowedu.core.values.spec import row_major\n", "has no function row_major"),
    (b"class row_major:\n    pass\n", "has no function row_major"),
    (b"def row_major(shape, more):\n    return ()\n", "TypeError"),
    (b"def row_major(*, shape):\n    return ()\n", "keep the parameters"),
    (b"import no_such_module\n", "no_such_module"),
    (b"def row_major(shape):\n    return row_major(shape)\n", "RecursionError"),
    (b"def row_major(shape):\n    raise KeyboardInterrupt\n", "KeyboardInterrupt"),
    (b"def row_major(shape):\n    raise BaseException('a' * 9999)\n", "BaseException: aaa"),
    (b"def row_major(shape):\n    return None\n", "yours           None"),
    (b"def row_major(shape):\n    yield 1\n", "yours"),
    (b"async def row_major(shape):\n    return ()\n", "yours"),
    (b"class A:\n    def __repr__(self): raise ValueError('no repr')\ndef row_major(shape):\n    return A()\n", "no repr"),
    (b"import sys\nsys.stdout.close(); sys.stderr.close()\ndef row_major(shape):\n    return ()\n", "smallest case"),
    (b"import threading\nthreading.Thread(target=lambda: [None for _ in iter(int, 1)]).start()\n"
     # depends on timing
     b"def row_major(shape):\n    return ()\n", "smallest case|no result after|GiB of memory"),
], lambda row: row[1] in ("SyntaxError", "yours           None")))
@pytest.mark.slow
def test_a_work_file_of_any_kind(runner, content, words):
    right, said = said_of(runner, content)
    assert not right and re.search(words, said), said
    assert runner.file(STRIDES).read_bytes() == content                # the file is unchanged
    assert said_of(runner, RIGHT.encode())[0]


@pytest.mark.parametrize("content", few([b"\xef\xbb\xbf" + RIGHT.encode(),
                                         RIGHT.replace("\n", "\r\n").encode(),
                                         RIGHT.replace("    ", "\t").encode(),
                                         b"# -*- coding: latin-1 -*-\n# gr\xfc\xdfe\n" + RIGHT.encode()],
                                        lambda content: b"\r\n" in content),
                         ids=["mark of the byte order", "line ends of Windows", "tabs", "latin-1, declared"])
def test_a_right_answer_in_any_encoding_or_layout_is_right(runner, content):
    assert said_of(runner, content)[0]


@pytest.mark.slow
def test_the_time_limit_is_processor_time(runner):
    """Other programs may take the processor for longer than the limit, without making a right answer wrong."""
    file = runner.file(STRIDES)
    file.write_text(f"import time\ntime.sleep(11)\n{RIGHT}", encoding="utf-8")
    assert limits.judged(STRIDES, file, course.HOME, seconds=10.0).state == "right"


@pytest.mark.slow
@pytest.mark.parametrize("loop", ["sum(range(10 ** 12))",
                                  "list(iter(int, 1)) if False else all(iter(lambda: 1, 0))",
                                  "__import__('time').sleep(1000)",
                                  "__import__('os').kill(__import__('os').getpid(), 19)"])
def test_an_endless_call_into_c_is_stopped_and_located(runner, loop):
    file = runner.file(STRIDES)
    file.write_text(f"def row_major(shape):\n    return {loop}\n", encoding="utf-8")
    verdict = limits.judged(STRIDES, file, course.HOME, seconds=6.0)
    assert verdict.state == "wrong" and "no result after 6 seconds" in verdict.lines[0], verdict
    if "19" not in loop:                                               # a stopped process prints nothing more
        assert verdict.lines[1].split()[:2] == ["line", "2"], verdict


def test_a_crash_after_the_time_limit_counts_as_endless(tmp_path):
    """A crash after the time limit is reported as the time limit."""
    file = tmp_path / "answer.py"
    file.write_text(RIGHT, encoding="utf-8")
    where = f'Stack (most recent call first):\n  File "{file}", line 2 in row_major\n'
    said = limits.reason(-signal.SIGSEGV, where, file, "", 6)
    assert "no result after 6 seconds" in said[0] and "line 2" in said[1]
    assert "SIGSEGV" in limits.reason(-signal.SIGSEGV, "", file, "", 6)[0]


@pytest.mark.parametrize("flood", few(["print('x' * 100)", "import sys; sys.stderr.write('x' * 100)",
                                       "print(shape, end='')", "import os; os.write(1, b'x' * 100)"],
                                      lambda flood: flood == "print('x' * 100)"))
def test_too_much_output_is_reported(runner, flood):
    """Check a right answer that also prints a lot, with each way of printing."""
    many = f"def row_major(shape):\n    for _ in range(10 ** 5):\n        {flood}"
    runner.file(STRIDES).write_text(RIGHT.replace("def row_major(shape):", many, 1), encoding="utf-8")
    right, said = runner.check(STRIDES)
    said = "\n".join(said)
    assert not right and "line 3" in said and "printed more than 1,048,576 bytes" in said, said


def test_ten_gigabytes(runner):
    _, said = said_of(runner, b"def row_major(shape):\n    x = [0] * (10 << 30)\n    return x\n")
    assert "MemoryError" in said or "memory" in said


def test_a_work_file_that_is_gone_or_is_a_folder(runner, capsys):
    file, work = runner.file(STRIDES), str(runner.work)
    file.unlink()
    assert (main(["check", "1.1", "--work", work]) == 1
            and "not begun   `make start CH=1` makes" in capsys.readouterr().out)
    file.mkdir()
    assert main(["check", "1.1", "--work", work]) == 2
    said = capsys.readouterr().err
    assert "Is a directory" in said and str(file) in said and said.count("\n") == 1
    file.rmdir()
    assert main(["start", "1", "--work", work]) == 0 and said_of(runner, RIGHT.encode())[0]


def test_a_work_folder_that_is_a_file(tmp_path, capsys):
    (tmp_path / "work").write_text("mine")
    for what in ("start", "check", "list", "hint"):
        assert main([what, *(["1.1"] if what in ("check", "hint") else []), "--work",
                     str(tmp_path / "work")]) in (0, 1, 2)
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
    assert (tmp_path / "work").read_text(encoding="utf-8") == "mine"


@pytest.mark.slow
@pytest.mark.parametrize("text", few(["", "{", "[]", "null", '{"version": 1}', '{"version": 2, "holes": {}}',
                                  '{"version": 1, "holes": []}', '{"version": 1, "holes": {"1.1": 3}}',
                                  '{"version": 1, "holes": {"1.1": {"state": "best"}}}',
                                  '{"version": 1, "holes": {"1.1": {"checks": "many"}}}', "\udcff"],
                                     lambda text: text == "{"))
def test_a_state_file_of_any_kind_is_put_aside(runner, text):
    said_of(runner, RIGHT.encode())
    runner.progress.file.write_bytes(text.encode(errors="surrogateescape"))
    done = command(runner.work, "check", "1.1")
    assert done.returncode == 0 and "could not be read" in done.stdout and "right." in done.stdout, done
    assert runner.work.joinpath(".course.broken").read_bytes() == text.encode(errors="surrogateescape")
    assert json.loads(runner.progress.file.read_text(encoding="utf-8"))["holes"]["1.1"]["state"] == "right"


@pytest.mark.slow
def test_an_unwritable_state_file_does_not_lose_the_verdict(runner, monkeypatch):
    def full(*a):
        raise OSError(28, "No space left on device")

    said_of(runner, RIGHT.encode())
    before = runner.progress.file.read_text(encoding="utf-8")
    monkeypatch.setattr(os, "replace", full)
    right, said = said_of(runner, RIGHT.encode())
    assert right and "right." in said and "could not be saved: No space left on device" in said
    assert "No space left" in "\n".join(runner.hint(STRIDES))
    monkeypatch.undo()
    assert runner.progress.file.read_text("utf-8") == before
    assert sorted(p.suffix for p in runner.work.glob(".*")) == [".json"]
    assert said_of(runner, RIGHT.encode())[0]


@pytest.mark.parametrize("code", [getattr(errno, n)
                                  for n in "ENOENT EACCES EROFS EISDIR ENOTDIR ENOSPC EFBIG EIO".split()],
                         ids=errno.errorcode.get)
def test_operating_system_errors_report_a_fix(runner, monkeypatch, capsys, code):
    def refused(*_):
        raise OSError(code, os.strerror(code), str(runner.work / "x"))
    monkeypatch.setattr(Runner, "check", refused)
    assert main(["check", "1.1", "--work", str(runner.work)]) == 2
    said = capsys.readouterr().err
    assert (said.startswith(f"{os.strerror(code)}: {runner.work}/x; ") and "try again" not in said
            and said.count("\n") == 1)
    assert code == errno.EIO or "tree" in said or "WORK=" in said or "space" in said


@pytest.mark.slow
def test_a_full_disk_leaves_no_partial_files(runner):
    """Limit files to ten bytes, then to the size of a verdict: no partial file remains, and existing files
    are unchanged.
    """
    said_of(runner, RIGHT.encode())
    before = {p.name: p.read_bytes() for p in runner.work.iterdir()}

    def small(limit):
        return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = command(runner.work, "start", "2", preexec_fn=small(10))
    assert done.returncode == 2 and done.stderr.startswith("File too large") and done.stderr.count("\n") == 1
    assert {p.name: p.read_bytes() for p in runner.work.iterdir()} == before
    done = command(runner.work, "hint", "1.2", preexec_fn=small(10))
    assert done.returncode == 0 and "hint 1 of 3" in done.stdout and "could not be saved" in done.stdout
    done = command(runner.work, "check", "1.1", preexec_fn=small(4096))
    assert done.returncode == 0 and "right." in done.stdout, done


def test_concurrent_checks_keep_both_results(runner):
    one, two = Runner(course.HOME, runner.work), Runner(course.HOME, runner.work)
    one.hint(STRIDES)
    two.hint(course.find("1.2"))
    two.hint(course.find("1.2"))
    one.hint(STRIDES)
    rows = Progress(runner.work).rows
    assert (rows["1.1"]["hints"], rows["1.2"]["hints"]) == (2, 2)


@pytest.mark.slow
def test_ctrl_c_in_a_check(runner):
    runner.file(STRIDES).write_text("print('begun', flush=True)\nwhile True: pass\n")
    child = subprocess.Popen([sys.executable, "-m", "flowedu_course", "check", "1.1", "--work",
                              str(runner.work)],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                             start_new_session=True)
    limit = time.monotonic() + HANGS
    while not (kids := Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text(
            encoding="utf-8").split()):
        assert time.monotonic() < limit and child.poll() is None
        time.sleep(0.02)
    os.kill(child.pid, signal.SIGINT)
    _, err = child.communicate(timeout=HANGS)
    assert child.returncode == 130 and err.strip() == "stopped; nothing was lost"
    assert not any(Path(f"/proc/{k}").exists() for k in kids)          # the answer's process also ends
    assert said_of(runner, RIGHT.encode())[0]


@pytest.mark.slow
def test_ctrl_c_in_watch(runner):
    terminal, theirs = pty.openpty()
    child = subprocess.Popen([sys.executable, "-m", "flowedu_course", "watch", "--work", str(runner.work)],
                             stdin=theirs,
                             stdout=theirs, stderr=subprocess.PIPE, env={**os.environ, "NO_COLOR": "1"},
                             encoding="utf-8")
    os.close(theirs)
    seen = ""
    while "not begun" not in seen:
        seen += os.read(terminal, 4096).decode()
    os.kill(child.pid, signal.SIGINT)
    assert child.communicate(timeout=HANGS)[1] == "" and child.returncode == 0
    os.close(terminal)


def test_a_file_saved_in_two_steps_is_read_when_complete(tmp_path):
    import threading
    file = tmp_path / "answer.py"
    file.write_text("old")

    def save():
        file.write_text("")
        time.sleep(0.1)
        file.write_text(RIGHT, encoding="utf-8")

    thread = threading.Thread(target=save)
    thread.start()
    while file.stat().st_size == 3:
        time.sleep(0.001)
    assert settled(file, patience=HANGS)[1] == len(RIGHT)
    thread.join()
    file.unlink()
    assert settled(file, patience=0.1) is None


@pytest.mark.parametrize("arguments, environment, words", [
    (["start", "four"], {}, "CH is not a number"),
    (["check", "1.1"], {"SEED": "x"}, "SEED is not a number"),
    (["check", "strides"], {}, "there is no exercise strides"),
    (["solution", "99.1"], {}, "there is no exercise 99.1"),
])
def test_arguments(tmp_path, capsys, monkeypatch, arguments, environment, words):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert main([*arguments, "--work", str(tmp_path)]) == 2
    assert words in capsys.readouterr().err


def test_a_closed_output_pipe_is_no_error(runner):
    done = subprocess.Popen([sys.executable, "-u", "-m", "flowedu_course", "list", "--work",
                             str(runner.work)],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    done.stdout.close()
    assert done.stderr.read() == b"" and done.wait() == 1


def test_a_broken_answer_does_not_run_as_part_of_the_library(runner):
    runner.file(STRIDES).write_text("def row_major(shape)\n")
    done = subprocess.run([sys.executable, "-c", "import flowedu"], capture_output=True, encoding="utf-8",
                          env={**os.environ, "FLOWEDU_HOLES": str(runner.work)})
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert ("SyntaxError" in done.stderr and "make check EX=1.1" in done.stderr
            and str(runner.file(STRIDES)) in done.stderr)
