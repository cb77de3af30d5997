"""`launch --nnodes`: unknown clients at machine 0's port, and a shared secret. All connections stay on this
machine.
"""
import contextlib
import json
import os
import signal
import socket
import subprocess
import textwrap
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import HANGS
from dist.ranks import command, environment, launch, mpi
from flowedu.distributed import launch as launcher
from flowedu.distributed import letters, nodes
from flowedu.errors import ArgumentError, CommError


def options(port=0, node=0, nnodes=3, **more):
    words = [f"--{name}={value}" for name, value in more.items()]
    return launcher.parse(["--nnodes", str(nnodes), "--node_rank", str(node), "--master_port", str(port),
                           *words, "x.py"])


@contextlib.contextmanager
def gatherings():
    """Provide begin(...): machine 0 in a thread; its `hosts` when all have joined, or its `error`."""
    made = []

    def begin(**more):
        g = nodes.Gathering(options(**more))
        g.hosts = g.error = None

        def wait():
            try:
                g.hosts = g.wait()
            except Exception as error:
                g.error = error
        g.thread = threading.Thread(target=wait, daemon=True)
        g.thread.start()
        made.append(g)
        return g
    yield begin
    for g in made:
        g.thread.join(HANGS)
        g.end(0)
        assert not g.thread.is_alive()


@pytest.fixture
def gather(monkeypatch):
    monkeypatch.delenv("FLOWEDU_SECRET", raising=False)
    with gatherings() as begin:
        yield begin


def connect(g):
    return socket.create_connection(("127.0.0.1", g.port), timeout=HANGS)


def all_come(g, **more):
    """Assert that the two expected machines join, and machine 0 succeeds."""
    secret = letters.shared_secret(more.get("secret_file", ""))
    came = [nodes.join(options(g.port, node, **more), secret) for node in (1, 2)]
    g.thread.join(HANGS)
    assert g.error is None and g.hosts == [("node0", 1), ("node1", 1), ("node2", 1)]
    return came


def assert_disconnected(s):
    """Assert that machine 0 closes this connection before the test's own timeout."""
    try:
        while s.recv(1 << 16):
            continue
    except ConnectionError:
        pass
    return True


HELLO = json.dumps({"flowedu": 1, "number": "0" * 32}).encode() + b"\n"


def sealed(text):
    """Return a message from a client that uses no secret, and does not have the nonces."""
    return HELLO + json.dumps({"text": text, "seal": "0" * 64}).encode() + b"\n"


STRANGE = {"nothing": b"\n", "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
           "bytes": b"\xff\xfe\x00\x80\n", "list": b"[1, 2]\n",
           "object": b"{}\n", "number": b"7\n", "nested": b"[" * 60000 + b"\n",
           "old": b'{"node": 1, "nnodes": 3, "ranks": 1}\n',
           "greeting": HELLO + b"{}\n", "wrong": b'{"number": 5}\n', "short": b'{"number": "12"}\n',
           "twice": HELLO + HELLO, "forged": sealed('{"node": 1, "nnodes": 3, "ranks": 1}'),
           "nan": HELLO + b"NaN\n", "types": HELLO + b'{"text": 1, "seal": []}\n'}


@pytest.mark.parametrize("kind", STRANGE)
def test_messages_of_an_unknown_client_end_only_its_connection(gather, kind):
    g = gather()
    with connect(g) as s:
        s.sendall(STRANGE[kind])
        assert assert_disconnected(s)
    all_come(g)


def test_unknown_clients_that_leave_or_stay_silent(gather):
    """The silent ones stay connected from before the machines join until after; machine 0 does not wait for
    them.
    """
    g = gather()
    for _ in range(5):
        connect(g).close()
    silent = [connect(g) for _ in range(5)]
    for s in silent[:2]:
        s.sendall(b'{"number": ')
    silent[2].sendall(HELLO)
    all_come(g)
    assert all(assert_disconnected(s) for s in silent)
    for s in silent:
        s.close()


def test_a_silent_client_is_disconnected_after_a_timeout(gather, monkeypatch):
    """Before the machines have joined, and even if they never join."""
    g = gather()
    with monkeypatch.context() as m, connect(g) as s:
        m.setattr(nodes, "PATIENCE", 0.01)
        assert assert_disconnected(s)
    all_come(g)


def test_an_endless_line_is_cut_off(gather):
    g = gather()
    with connect(g) as s, pytest.raises(ConnectionError):
        for _ in range(1 << 14):                 # 1 GB, if not stopped
            s.sendall(b"x" * letters.LIMIT)
    all_come(g)


def test_the_maximum_length_of_a_line():
    """Complete or incomplete lines, in any segmentation."""
    for whole in (b"", b"\n"):
        visitor = letters.Correspondent(None, "first", b"")
        most = b"x" * letters.LIMIT
        assert visitor.lines(most[:9]) == [] and visitor.lines(most[9:] + whole) == [most] * len(whole)
        with pytest.raises(CommError, match="a line without end"):
            visitor.lines(most + b"x" + whole)


def test_many_unknown_clients_do_not_block_the_machines(gather):
    g = gather()
    many = [connect(g) for _ in range(2 * nodes.MOST)]
    all_come(g)
    for s in many:
        s.close()


def test_a_machine_that_sends_invalid_values_or_joins_twice(gather):
    g = gather()
    for wrong in ({"node": True}, {"node": "1"}, {"ranks": 0}, {"ranks": None}, {"ranks": 1.5}):
        visitor = letters.Correspondent(connect(g), "other", b"")
        visitor.greeted(visitor.hear())
        visitor.greet()
        visitor.say(**{"node": 1, "nnodes": 3, "ranks": 1, **wrong})
        assert assert_disconnected(visitor.sock)
        visitor.sock.close()
    for node, nnodes in ((0, 3), (1, 2), (3, 4)):
        with pytest.raises(ArgumentError, match="machines are expected"):
            nodes.join(options(g.port, node if node < nnodes else 0, nnodes), b"")
    one = nodes.join(options(g.port, 1), b"")
    with pytest.raises(ArgumentError, match="node_rank 0, 1 are there"):
        nodes.join(options(g.port, 1), b"")
    one.sock.close()                             # it left: its number is free again
    while True:
        try:
            again = nodes.join(options(g.port, 1), b"")
            break
        except ArgumentError:                    # machine 0 has not noticed yet
            continue
    last = nodes.join(options(g.port, 2), b"")
    g.thread.join(HANGS)
    assert g.hosts is not None
    again.sock.close(), last.sock.close()


# ---- the secret
def test_machines_with_the_same_secret_join(gather, monkeypatch, tmp_path):
    (tmp_path / "word").write_text("open sesame\n")
    g = gather(secret_file=tmp_path / "word")
    came = all_come(g, secret_file=tmp_path / "word")
    g.nodes[1].say(args=["--a", "b"])
    assert nodes._args(came[0]) == ["--a", "b"]
    g.nodes[1].say(code=3)
    assert came[0].decode(came[0].hear()) == {"code": 3}
    monkeypatch.setenv("FLOWEDU_SECRET", "open sesame")
    assert letters.shared_secret() == letters.shared_secret(str(tmp_path / "word"))


@pytest.mark.parametrize("here, there", [("a", "b"), ("a", ""), ("", "b")])
def test_a_different_or_missing_secret_is_refused_on_both_sides(gather, monkeypatch, capsys, here, there):
    monkeypatch.setenv("FLOWEDU_SECRET", here)
    g = gather()
    with pytest.raises(letters.NotSealed, match="does not know the same FLOWEDU_SECRET"):
        nodes.join(options(g.port, 1), there.encode())
    all_come(g)                                  # with the secret `here`, from the environment
    assert "127.0.0.1 was sent away" in capsys.readouterr().err


def pair(secret=b"word"):
    a, b = socket.socketpair()
    first, other = letters.Correspondent(a, "first", secret), letters.Correspondent(b, "other", secret)
    first.greet(), other.greet()
    first.greeted(first.hear()), other.greeted(other.hear())
    return first, other


def test_a_message_is_valid_once_and_in_one_direction():
    first, other = pair()
    first.say(x=1)
    line = other.hear()
    assert other.decode(line) == {"x": 1}
    with pytest.raises(letters.NotSealed):
        other.decode(line)                   # replayed
    with pytest.raises(letters.NotSealed):
        first.decode(line)                   # reflected
    later, _ = pair()
    with pytest.raises(letters.NotSealed):
        later.decode(line)                   # replayed in a later session
    for c in (first, other):
        c.sock.close()


@given(st.data())
def test_a_modified_message_is_rejected(data):
    first, other = pair()
    first.say(args=["--control-port", "a:1"])
    line = other.hear()
    at = data.draw(st.integers(0, len(line) - 1))
    changed = line[:at] + bytes([data.draw(st.integers(0, 255).filter(
        lambda b: b != line[at]))]) + line[at + 1:]
    with contextlib.suppress(CommError):
        assert other.decode(changed) == {"args": ["--control-port",
                                                  "a:1"]}, "only what means the same is believed"
    for c in (first, other):
        c.sock.close()


@given(st.binary(max_size=200))
def test_any_bytes_raise_only_a_comm_error(noise):
    first, other = pair()
    for end in (first, other):
        for read in (end.decode, end.greeted):
            with pytest.raises(CommError):
                read(noise)
        end.sock.close()


def test_unusable_secret_files(tmp_path):
    (tmp_path / "empty").write_text(" \n")
    for name, words in (("empty", "is empty"), ("none", "cannot be read")):
        with pytest.raises(ArgumentError, match=words):
            letters.shared_secret(str(tmp_path / name))


def test_the_secret_is_on_no_command_line(monkeypatch):
    monkeypatch.setenv("FLOWEDU_SECRET", "open sesame")
    monkeypatch.setenv("FLOWEDU_DEBUG_COMM", "1")
    monkeypatch.setattr(launcher, "mpiexec", lambda: "mpiexec")
    cmd, env = launcher.command(options(nnodes=1), [("a", 1), ("b", 1)], True)
    assert ("FLOWEDU_DEBUG_COMM" in cmd and not any("SECRET" in word or "sesame" in word
                                                    for word in (*cmd, *env)))


# ---- whole launches
SCRIPT = "import os\nimport flowedu as flow\nprint(flow.env.get_rank(), os.environ.get('FLOWEDU_SECRET'))\n"


def start(port, node, script, secret, *args):
    words = ["--nnodes", 2, "--master_port", port, "--node_rank", node]
    return subprocess.Popen(command(*words, script, *args), env=environment(FLOWEDU_SECRET=secret),
                            encoding="utf-8",
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture
def port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def reach(port, child):
    """Connect to machine 0 as soon as it listens."""
    while child.poll() is None:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=HANGS)
        except ConnectionError:
            continue
    raise AssertionError(child.communicate())


@mpi
def test_a_launch_with_a_secret_while_unknown_clients_connect(tmp_path, port):
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    children = [start(port, 0, tmp_path / "script.py", "word")]
    with reach(port, children[0]) as silent, reach(port, children[0]) as rude:
        rude.sendall(STRANGE["http"])
        assert assert_disconnected(rude)
        wrong = start(port, 1, tmp_path / "script.py", "another word")
        assert ("does not know the same FLOWEDU_SECRET" in wrong.communicate(timeout=HANGS)[1]
                and wrong.returncode == 2)
        children.append(start(port, 1, tmp_path / "script.py", "word"))
        said = [child.communicate(timeout=HANGS) for child in children]
        assert [child.returncode for child in children] == [0, 0], said
        assert sorted(said[0][0].splitlines()) == ["0 None", "1 None"] and "was sent away" in said[0][1]
        assert assert_disconnected(silent)


@mpi
def test_a_machine_that_disconnects_ends_the_launch(tmp_path, port):
    """It joined, and left before it got its command."""
    (tmp_path / "script.py").write_text("import time\nimport flowedu as "
                                        "flow\nflow.comm.barrier()\ntime.sleep(600)\n")
    child = start(port, 0, tmp_path / "script.py", "")
    reach(port, child).close()
    nodes.join(options(port, 1, 2), b"").sock.close()
    out, err = child.communicate(timeout=HANGS)
    assert child.returncode != 0 and "node_rank 1 at 127.0.0.1 went away" in err, (out, err)


GROUPS = """
    import os, sys, time
    import flowedu as flow
    print("group", os.getpgid(os.getppid()), flush=True)
    flow.comm.barrier()
    time.sleep(float(sys.argv[1]))
"""


@mpi
def test_mpi_cannot_signal_the_callers_process_group(tmp_path, port):
    """If hydra's proxy receives a signal to end before it has started its ranks, it signals process 0, its own
    process group. That once was the shell, the make, and the tests that had started a launch in which a
    machine disconnected.
    """
    (tmp_path / "script.py").write_text(textwrap.dedent(GROUPS), encoding="utf-8")
    children = [start(port, node, tmp_path / "script.py", "", "0") for node in range(2)]
    said = [child.communicate(timeout=HANGS) for child in children]
    groups = [int(line.split()[1]) for line in said[0][0].splitlines() if line.startswith("group ")]
    assert len(groups) == 2 and os.getpgrp() not in groups, said
    alone = launch(tmp_path, GROUPS, 2, args=["0"])
    groups = [int(line.split()[1]) for line in alone.out.splitlines()]
    assert len(groups) == 2 and os.getpgrp() not in groups, alone.err


@mpi
@pytest.mark.parametrize("node", [0, 1])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_one_machine_ends_all(tmp_path, port, node, number):
    (tmp_path / "script.py").write_text(textwrap.dedent(GROUPS), encoding="utf-8")
    children = [start(port, i, tmp_path / "script.py", "", "100000") for i in range(2)]
    for _ in children:
        assert children[0].stdout.readline().startswith("group ")
    children[node].send_signal(number)
    for child in children:
        child.communicate(timeout=HANGS)
        assert child.returncode != 0


def listening(pid):
    """Return the addresses at which a process listens, from /proc."""
    def sockets():
        for link in Path(f"/proc/{pid}/fd").iterdir():
            try:
                yield os.readlink(link)
            except OSError:
                continue
    own = {link[8:-1] for link in sockets() if link.startswith("socket:[")}
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{name}").read_text(encoding="utf-8").splitlines()[1:]:
            words = line.split()
            if words[9] in own and words[3] == "0A":
                yield words[1]


LISTENING = f"""
    import os, sys
    sys.path.insert(0, {str(Path(__file__).parents[1])!r})
    import flowedu as flow
    from dist.test_nodes import listening
    flow.comm.all_reduce(flow.ones(100000))
    print(*listening(os.getpid()), "of mpiexec", *listening(os.getppid()))
    flow.comm.barrier()
"""


@mpi
@pytest.mark.skipif(not os.path.exists("/proc/net/tcp"), reason="Linux tells in /proc who listens where")
def test_ranks_of_one_machine_listen_only_on_loopback(tmp_path):
    """Except mpiexec's own port, which ranks inherit."""
    said = launch(tmp_path, LISTENING, 2, timeout=HANGS)
    assert said.code == 0 and len(said.out.splitlines()) == 2, said.err
    for line in said.out.splitlines():
        rank, _, parent = line.partition("of mpiexec")
        assert (set(parent.split()) and all(a.startswith("0100007F:")
                                            for a in set(rank.split()) - set(parent.split()))), line


@pytest.mark.parametrize("folder", ["/usr/bin", "/a b'ü/bin", '/"x/bin', "/hydra_pmi_proxy y/bin",
                                    "/a\\b/bin"])
def test_the_path_of_the_proxy_is_not_quoted(folder):
    """`mpiexec` prints the path unchanged, whatever the name of the environment's folder."""
    line = f"HYDRA_LAUNCH: {folder}/hydra_pmi_proxy --control-port 127.0.0.1:3451 --usize -1 --proxy-id 1 \n"
    assert nodes.proxy_arguments(line) == ["--control-port", "127.0.0.1:3451", "--usize", "-1", "--proxy-id",
                                           "1"]
