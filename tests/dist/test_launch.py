"""python -m flowedu.distributed.launch: environment of ranks, exit codes, signals, several machines."""
import json
import math
import mmap
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common import HANGS
from dist.ranks import command, environment, has_mpi, launch, mpi, run_command
from flowedu.distributed import launch as launcher
from flowedu.distributed import watcher
from flowedu.distributed.deaths import LINUX, WATCHED, Deaths
from flowedu.distributed.watcher import find_crash, sweep, tell
from flowedu.errors import ArgumentError
from flowedu.errors.extras import install

ENGINES = [pytest.param("threads", id="threads"), pytest.param("mpi", id="mpi", marks=[
    pytest.mark.mpi, pytest.mark.skipif(not has_mpi(), reason="needs flowedu[mpi]")])]
TELL = """
    import json, os, sys
    import flowedu as flow
    names = ("WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS", "FLOWEDU_NUM_THREADS")
    print(json.dumps({"rank": flow.env.get_rank(), "size": flow.env.get_world_size(),
                      "local": flow.env.get_local_rank(), "nodes": flow.env.get_node_size(),
                      "threads": flow.get_num_threads(), "argv": sys.argv[1:], "name": __name__,
                      "file": os.path.basename(__file__), "env": [os.environ[n] for n in names],
                      "own": [os.environ.get("RANK"), os.environ.get("LOCAL_RANK")]}))
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_environment_of_ranks(tmp_path, engine):
    said = launch(tmp_path, TELL, 3, "--engine", engine, "--master_port", 29777, args=["--lr", "0.1", "-m"])
    assert said.code == 0, said.err
    found = sorted(map(json.loads, said.out.splitlines()), key=lambda d: d["rank"])
    each = max(1, len(os.sched_getaffinity(0)) // 3)
    for r, d in enumerate(found):
        # the environment is that of the process
        assert d["own"] == ([str(r), str(r)] if engine == "mpi" else [None, None])
        assert d == {"rank": r, "size": 3, "local": r, "nodes": 1, "threads": each,
                     "argv": ["--lr", "0.1", "-m"], "name": "__main__", "file": "script.py", "own": d["own"],
                     "env": ["3", "127.0.0.1", "29777", str(each), str(each)]}
    assert len(found) == 3


@pytest.mark.parametrize("engine", ENGINES)
# the last two have a meaning in loops and generators
@pytest.mark.parametrize("error", ["ValueError", "StopIteration", "GeneratorExit"])
def test_one_raises(tmp_path, engine, error):
    said = launch(tmp_path, f"""
        import flowedu as flow
        if flow.env.get_rank() == 1:
            raise {error}("mine")
        flow.comm.barrier()
    """, 2, "--engine", engine)
    assert said.code == 1
    assert f"[rank 1] {error}: mine" in said.err and "worker.py" not in said.err and "rank 0]" not in said.err


@pytest.mark.parametrize("engine", ENGINES)
def test_output_lines_are_not_mixed(tmp_path, engine):
    said = launch(tmp_path, """
        import flowedu as flow
        for i in range(50):
            print("rank", flow.env.get_rank(), end=" ")
            print("line", i)
    """, 3, "--engine", engine)
    assert sorted(said.out.splitlines()) == sorted(f"rank {r} line {i}" for r in range(3) for i in range(50))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_module_is_launched_with_its_package(tmp_path, engine):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "__main__.py").write_text("from . import other\n")
    (tmp_path / "package" / "other.py").write_text("print('other')\n")
    done = run_command(command("--engine", engine, "--nproc_per_node", 2, "-m", "package"), cwd=tmp_path)
    assert done.returncode == 0 and "other" in done.stdout, done.stderr


def test_diverging_threads_and_exit(tmp_path):
    said = launch(tmp_path, """
        import sys
        import flowedu as flow
        x = flow.ones(3)
        flow.comm.all_reduce(x)
        if sys.argv[1:]:
            sys.exit(5) if flow.env.get_rank() else flow.comm.barrier()
        if flow.env.get_rank() == 0:
            flow.comm.all_reduce(x)
    """, 2, "--engine", "threads")
    assert said.code == 1 and said.err.count("CommError") == 1 and "rank 1 has finished" in said.err
    assert "script.py:9: flow.comm.all_reduce(x)" in said.err
    done = run_command(command("--engine", "threads", "--nproc_per_node", 2, tmp_path / "script.py", "go"))
    assert done.returncode == 5 and "[rank 1] exited with code 5" in done.stderr


@mpi
def test_logs_and_a_program(tmp_path):
    said = launch(tmp_path, """
        import os, sys
        print("hello", os.environ["RANK"], os.path.basename(os.environ["GLOG_log_dir"]))
        print("oh", file=sys.stderr)
    """, 2, "--redirect_stdout_and_stderr", "--logdir", tmp_path / "logs")
    assert said.code == 0 and said.out == ""
    for r in range(2):
        folder = tmp_path / "logs" / f"local_rank_{r}"
        assert (folder / "stdout").read_text("utf-8") == f"hello {r} local_rank_{r}\n"
        assert "oh" in (folder / "stderr").read_text("utf-8")
    done = run_command(command("--no_python", "--nproc_per_node", 2, "echo", "hi"))
    assert done.returncode == 0 and done.stdout == "hi\nhi\n"


@mpi
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all(tmp_path, number):
    (tmp_path / "script.py").write_text("import os, time\nprint('pid', os.getpid(), "
                                        "flush=True)\ntime.sleep(1e5)\n")
    child = subprocess.Popen(command("--nproc_per_node", 2, tmp_path / "script.py"), stdout=subprocess.PIPE,
                             encoding="utf-8",
                             stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=environment())
    pids = [int(child.stdout.readline().split()[1]) for _ in range(2)]
    child.send_signal(number)
    assert child.wait(HANGS) != 0
    limit = time.monotonic() + HANGS
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < limit
        time.sleep(0.05)
    child.stdout.close()


@mpi
@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT"])
def test_a_rank_that_crashes_is_reported_with_its_signal_and_line(tmp_path, name):
    done = launch(tmp_path, f"""
        import os, signal, time
        import flowedu as flow
        if flow.env.get_rank() == 1:
            os.kill(os.getpid(), signal.{name})
        time.sleep(1e5)
    """, 3)
    assert "launch: rank 1 " in done.err and f"({name}); all ranks have ended" in done.err, done.err
    assert "script.py\", line 5" in done.err, done.err


@pytest.mark.parametrize("name, text", [("SIGSEGV", "Segmentation fault"), ("SIGABRT", "Aborted"),
                                        ("SIGBUS", "Bus error"),
                                        ("SIGILL", "Illegal instruction"), ("SIGFPE",
                                                                            "Floating-point exception"),
                                        ("SIGFPE", "Floating point exception")])
def test_a_crash_is_attributed_if_mpiexec_names_another_rank(name, text, capfd):
    crash = find_crash(f"what ranks print\nFatal Python error: {text}\n\nCurrent thread 0x00\n".encode())
    assert crash == getattr(signal, name)
    tell(1, 77, "vm", crash)
    tell(1, 77, "vm", 128 + crash)                           # status of a process that left a core dump
    assert capfd.readouterr().err.count(f"rank 1 (process 77 on vm) was killed by signal {crash.real} "
                                        f"({name})") == 2
    assert find_crash(b"Fatal Python error: init_sys_streams") == find_crash(b"") == 0


@mpi
def test_machines_started_by_hand(tmp_path, unused_port):
    (tmp_path / "script.py").write_text(
        "import flowedu as flow\nx = flow.ones(2) * flow.env.get_rank()\nflow.comm.all_reduce(x)\n"
        "print(flow.env.get_rank(), flow.env.get_node_rank(), flow.env.get_node_size(), int(x[0].item()))\n")
    words = ["--nnodes", 2, "--nproc_per_node", 2, "--master_port", unused_port]
    other = subprocess.Popen(command(*words, "--node_rank", 1, tmp_path / "script.py"), env=environment(),
                             stdin=subprocess.DEVNULL)
    done = run_command(command(*words, "--node_rank", 0, tmp_path / "script.py"))
    assert (done.returncode, other.wait(HANGS)) == (0, 0), done.stderr
    assert sorted(done.stdout.splitlines()) == ["0 0 2 6", "1 0 2 6", "2 1 2 6", "3 1 2 6"]


@pytest.fixture
def unused_port():
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# ---- arguments
def test_hosts_are_read_from_arguments_and_files(tmp_path):
    assert launcher.hosts(launcher.parse(["--nproc_per_node", "3", "--hosts", "a,b:2",
                                          "x.py"])) == [("a", 3), ("b", 2)]
    (tmp_path / "hosts").write_text("# machines\na slots=4\nb 2\n\nc\n")
    assert launcher.hosts(launcher.parse(["--hostfile", str(tmp_path / "hosts"),
                                          "x.py"])) == [("a", 4), ("b", 2), ("c", 1)]
    with pytest.raises(ArgumentError, match="not a machine"):
        launcher.hosts(launcher.parse(["--hosts", "a:x", "x.py"]))


@pytest.mark.parametrize("args", [["--nproc_per_node", "0", "x.py"], ["--nnodes", "2", "--node_rank", "2",
                                                                      "x.py"], []])
def test_bad_arguments(args, capsys):
    with pytest.raises(SystemExit):
        launcher.parse(args)
    assert "usage:" in capsys.readouterr().err


@pytest.mark.parametrize("args, words", [
    (["--engine", "threads", "none.py"], "launch: cannot read none.py"),
    (["--engine", "threads", "-m", "no_such_module"], "no module no_such_module"),
    (["--engine", "threads", "--nnodes", "2", "x.py"], "the ranks are threads of one process"),
])
def test_programs_that_cannot_be_started_are_reported(args, words, capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(os, "environ", dict(os.environ))
    from flowedu import get_num_threads, set_num_threads

    threads = get_num_threads()
    try:
        assert launcher.main(args) == 2
    finally:
        set_num_threads(threads)
    assert words in capsys.readouterr().err


def test_unmapped_shared_memory_is_removed(tmp_path):
    """MPICH leaves its shared memory behind when ranks are killed."""
    left, used, other = (tmp_path / n for n in ("mpich_shm_a", "mpich_shm_b", "something"))
    since = time.time() - 1
    for f in (left, used, other):
        f.write_bytes(b"x" * 4096)
    with used.open("r+b") as file, mmap.mmap(file.fileno(), 0):
        sweep(time.time() + 60, folder=str(tmp_path))
        sweep(until=since, folder=str(tmp_path))
        assert left.exists()                               # created before or after: other files are kept
        sweep(since, folder=str(tmp_path))
        assert not left.exists() and used.exists() and other.exists()
    sweep(since, folder=str(tmp_path / "nowhere"))


def test_a_launch_removes_files_of_earlier_launches(tmp_path, monkeypatch):
    """A killed launcher cannot clean up. Recent files may belong to ranks that are just starting."""
    left = tmp_path / "mpich_shm_a"
    left.write_bytes(b"x")
    monkeypatch.setattr(watcher, "watch", lambda cmd, env, start: 0)
    monkeypatch.setattr(launcher, "mpiexec", lambda: "mpiexec")
    monkeypatch.setattr(watcher.sweep, "__defaults__", (0, math.inf, str(tmp_path), 5))
    words = launcher.parse(["x.py"])
    assert launcher._run(words, []) == 0 and left.exists()
    monkeypatch.setattr(launcher, "STARTING", -60)
    assert launcher._run(words, []) == 0 and not left.exists()


@pytest.mark.parametrize("ranks, code", [(1, 0), (2, 2)])
def test_one_rank_needs_no_mpi(tmp_path, ranks, code):
    """Without mpi4py (here: hidden), several ranks are refused with a workaround."""
    (tmp_path / "script.py").write_text("import flowedu as flow\nprint('rank', flow.env.get_rank())\n")
    hide = "import sys, runpy; sys.modules['mpi4py'] = None; sys.argv[0] = 'launch'; " \
        "runpy.run_module('flowedu.distributed.launch', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", hide, "--nproc_per_node", str(ranks),
                           str(tmp_path / "script.py")],
                          env=environment(), capture_output=True, encoding="utf-8", timeout=HANGS)
    assert done.returncode == code
    if code:
        assert install("mpi") + ", or launch with --engine threads" in done.stderr
    else:
        assert "rank 0" in done.stdout


@pytest.mark.skipif(not LINUX, reason="needs Linux")
def test_a_rank_that_exits_before_its_message_is_read_ended_first():
    """A busy launcher learns late which process is which rank."""
    dead, alive = subprocess.Popen(["true"]), subprocess.Popen(["sleep", "100"])
    dead.wait()
    deaths = Deaths()
    for p in (alive, dead):
        deaths.expect(p.pid, deaths.host)
    alive.kill()
    alive.wait()
    assert deaths.order() == [dead.pid, alive.pid]


@pytest.mark.skipif(not LINUX, reason="needs Linux")
@settings(max_examples=10)
@given(st.permutations(range(4)), st.integers(0, 4))
def test_the_first_death_is_identified_with_delay(order, n):
    """`mpiexec` kills the other ranks when one dies, and under load it may name one of them."""
    deaths, processes = Deaths(), [subprocess.Popen(["sleep", "100"]) for _ in order]
    try:
        for p in processes:
            deaths.expect(p.pid, deaths.host)
        deaths.expect(processes[0].pid, b"another machine")
        for i in order[:n]:
            processes[i].kill()
            os.waitid(os.P_PID, processes[i].pid, os.WEXITED | os.WNOWAIT)
        assert deaths.order() == [processes[i].pid for i in order[:n]]
    finally:
        for p in processes:
            p.kill()
            p.wait()


@pytest.mark.skipif(not LINUX, reason="needs Linux")
def test_the_end_of_a_process_is_when_it_closes_the_launchers_socket():
    """Other ranks notice a closed MPI socket before the process is gone, and may end by then. A process that
    has closed its files but still exists counts as ended before the ranks that ended in the meantime.
    """
    deaths = Deaths()
    drops = """
import os
from flowedu.distributed.deaths import die_in_order
die_in_order()
print(flush=True)
input()
os.close(max(int(n) for n in os.listdir("/dev/fd") if os.path.exists(f"/proc/self/fd/{n}")))
print(flush=True)
input()
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    slow, quick = (subprocess.Popen([sys.executable, "-c", drops], env={**os.environ,
                                                                        WATCHED: deaths.address}, **pipes)
                   for _ in range(2))
    with slow, quick:
        for p in (slow, quick):
            p.stdout.readline()
        for p in (slow, quick):
            deaths.expect(p.pid, deaths.host)
        slow.stdin.write("\n")
        slow.stdin.flush()
        slow.stdout.readline()
        quick.kill()
        quick.wait()
        slow.kill()
        slow.wait()
        assert deaths.order() == [slow.pid, quick.pid]


@mpi
def test_the_launchers_socket_closes_first(tmp_path):
    """Files of a dead process close from the highest number down: the launcher's socket is above MPI's, which
    is above the pipes of stdout and stderr.
    """
    said = launch(tmp_path, """
        import os
        files = {}
        for f in os.listdir("/proc/self/fd"):
            if os.path.lexists(f"/proc/self/fd/{f}"):
                files.setdefault(os.readlink(f"/proc/self/fd/{f}"), []).append(int(f))
        of = lambda f: max(files[os.readlink(f"/proc/self/fd/{f}")])
        assert of(os.environ["PMI_FD"]) > max(of(1), of(2))
        top = max(int(f) for fs in files.values() for f in fs)
        assert top > of(os.environ["PMI_FD"]) and os.readlink(f"/proc/self/fd/{top}").startswith("socket:")
        """, 3)
    assert said.code == 0, said.err
