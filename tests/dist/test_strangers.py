"""`launch --nnodes` against hostile peers on loopback: unknown clients at machine 0's port, and a hostile
machine 0.
"""
import contextlib
import json
import shutil
import socket
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import HANGS
from dist.test_nodes import (
    HELLO,
    STRANGE,
    all_come,
    assert_disconnected,
    connect,
    gather,
    gatherings,
    options,
)
from flowedu.distributed import letters, nodes
from flowedu.errors import ArgumentError, CommError

__all__ = ["gather"]
SURROGATE = "\ud800"
NUMBERS = [0, -1, 2**31, 2**63, 2**64, 10**400, True, 0.5, float("nan"), float("inf"), -float("inf")]
TEXTS = ["", SURROGATE, SURROGATE * 32, "\udfff" * 64, "\0", "a\x1b[2J", "{}", '"\\ud800"', "0" * 64,
         "é" * 64]
SCALARS = st.sampled_from([None, *NUMBERS, *TEXTS]) | st.text(max_size=8)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
    st.sampled_from(["text", "seal", "number", "node", SURROGATE]) | st.text(max_size=4), inner, max_size=3),
                      max_leaves=5)
RAW = st.binary(max_size=200) | st.sampled_from([
    b"[" * 50000 + b"\n", b'{"a":' * 9000 + b"\n", b"9" * 5000 + b"\n", b'{"number": ' + b"9" * 5000 + b"}\n",
    b"1e99999\n", b"\xed\xa0\x80\n", b"\xff\xfe{\x00}\x00\n", b"\xef\xbb\xbf{}\n", b"\n" * 3000, b"\0" * 3000,
    b"x" * (letters.LIMIT + 1)])


def as_line(value):
    return json.dumps(value).encode() + b"\n"


def greetings():
    return VALUES.map(lambda number: as_line({"flowedu": 1, "number": number})) | st.just(HELLO)


def unsealed():
    """Draw messages with any text and seal, each key up to twice."""
    pairs = st.lists(st.tuples(st.sampled_from(["text", "seal"]), VALUES), max_size=4)

    def write(found):
        return ("{" + ", ".join(f"{json.dumps(key)}: {json.dumps(value)}"
                                for key, value in found) + "}\n").encode()
    return pairs.map(write)


MESSAGES = st.lists(RAW | VALUES.map(as_line) | greetings() | unsealed(), min_size=1,
                    max_size=4).map(b"".join)
ENDS = st.sampled_from(["close", "half-close", "reset", "stay"])


def send(s, data, piece):
    """Send `data` in parts of `piece` bytes. Machine 0 may close the connection at any byte."""
    with contextlib.suppress(OSError):
        for i in range(0, len(data), piece):
            s.sendall(data[i:i + piece])


def end(s, how):
    with contextlib.suppress(OSError):
        if how == "half-close":
            s.shutdown(socket.SHUT_WR)
            assert assert_disconnected(s)
        elif how == "reset":
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if how != "stay":
        s.close()


# ---- unknown clients at machine 0
@given(data=MESSAGES, pieces=st.sampled_from([1 << 20, 1000, 7]), how=ENDS)
def test_bytes_of_an_unknown_client_end_only_its_connection(data, pieces, how):
    with gatherings() as begin:
        g = begin()
        s = connect(g)
        send(s, data, max(pieces, len(data) // 100))
        end(s, how)
        all_come(g)
        s.close()


@given(message=st.dictionaries(st.sampled_from(["node", "ranks", "nnodes"]), VALUES, max_size=3),
       valid=st.booleans())
def test_sealed_messages_with_wrong_values_end_only_their_connection(message, valid):
    """Without FLOWEDU_SECRET, any client can compute the seal. No drawn value of `node` is the number of a
    machine.
    """
    message = ({"node": 0, "ranks": 1, "nnodes": 3, **message} if valid
               else {**message, "node": message.get("node")})
    with gatherings() as begin:
        g = begin()
        visitor = letters.Correspondent(connect(g), "other", b"")
        visitor.greeted(visitor.hear())
        visitor.greet()
        visitor.say(**message)
        assert assert_disconnected(visitor.sock)
        all_come(g)
        visitor.sock.close()


RANKS = [0, -1, 2**31, 2**63, 10**400, True, 1.0, float("nan"), "1", None, [1]]


@pytest.mark.parametrize("ranks", RANKS, ids=range(len(RANKS)))
def test_a_machine_with_an_impossible_number_of_ranks_is_refused(gather, ranks):
    g = gather()
    visitor = letters.Correspondent(connect(g), "other", b"")
    visitor.greeted(visitor.hear())
    visitor.greet()
    visitor.say(node=1, nnodes=3, ranks=ranks)
    assert assert_disconnected(visitor.sock)
    visitor.sock.close()
    all_come(g)


def test_any_exception_in_a_connection_ends_that_connection(gather, monkeypatch):
    """Machine 0 does not list the exceptions that a message can cause."""
    class Unforeseen(Exception):
        pass

    g, original = gather(), nodes.Correspondent.greeted

    def greeted(self, line):
        if b"unforeseen" in line:
            raise Unforeseen
        original(self, line)
    monkeypatch.setattr(nodes.Correspondent, "greeted", greeted)
    with connect(g) as s:
        s.sendall(b"unforeseen\n")
        assert assert_disconnected(s)
    all_come(g)


def test_connections_closed_with_unread_bytes(gather):
    """More connections than machine 0 keeps: it closes the oldest ones before reading their bytes."""
    g, gate = gather(), threading.Event()
    original = g._admit

    def admit():
        gate.wait(HANGS)
        original()
    g._admit = admit
    many = [connect(g) for _ in range(2 * nodes.MOST)]
    for s in many:
        send(s, STRANGE["http"], 1 << 20)
    gate.set()
    assert all(assert_disconnected(s) for s in many)
    all_come(g)
    for s in many:
        s.close()


# ---- a hostile machine 0
@contextlib.contextmanager
def machine_0(serve):
    """Listen, and serve each connection with serve(socket, letters)."""
    def run():
        with contextlib.suppress(OSError):
            while True:
                s, _ = server.accept()
                with s, contextlib.suppress(OSError, CommError, ValueError):
                    s.settimeout(HANGS)
                    serve(s, letters.Correspondent(s, "first", b""))
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join(HANGS)
        assert not thread.is_alive()


def greet(peer):
    peer.greet()
    peer.greeted(peer.hear())
    peer.decode(peer.hear())


@given(data=MESSAGES, greets=st.booleans())
def test_bytes_of_a_hostile_machine_0_do_not_raise_raw_errors_in_join(data, greets):
    def serve(s, peer):
        if greets:
            greet(peer)
        s.sendall(data)
    with machine_0(serve) as port, pytest.raises((ConnectionError, CommError)):
        nodes.join(options(port, 1), b"")


@given(message=st.dictionaries(st.sampled_from(["problem", SURROGATE]) | st.text(max_size=3), VALUES,
                               max_size=2))
def test_answers_of_a_hostile_machine_0_are_errors_of_one_plain_line(message):
    def serve(s, peer):
        greet(peer)
        peer.say(**message)
    with machine_0(serve) as port, pytest.raises((ConnectionError, CommError, ArgumentError)) as error:
        nodes.join(options(port, 1), b"")
    first = str(error.value).splitlines()[0]
    assert first.isprintable() and len(first) < 400, "no control characters reach the terminal"


@pytest.fixture
def hydra(monkeypatch):
    """Write the program that machine 0 starts on the others: here one that ignores its arguments."""
    monkeypatch.setattr(nodes, "proxy", lambda: shutil.which("true"))
    monkeypatch.setattr(nodes.options, "timeout", 0.5)
    monkeypatch.delenv("FLOWEDU_SECRET", raising=False)


def join_and_run(after_welcome):
    """Run `other` against a machine 0 that admits it and continues with after_welcome(socket, letters)."""
    def serve(s, peer):
        greet(peer)
        peer.say(welcome=1)
        after_welcome(s, peer)
    with machine_0(serve) as port:
        return nodes.other(options(port, 1))


ARGS = {"surrogate": [SURROGATE], "NUL": ["a\0b"], "number": [1], "text": "abc", "object": {"a": 1},
        "none": None, "long": ["x" * 60000], "nested": [["a"]]}


@pytest.mark.parametrize("kind", ARGS)
def test_arguments_of_a_hostile_machine_0_are_a_comm_error(hydra, kind):
    code = None
    with contextlib.suppress(CommError):
        code = join_and_run(lambda s, peer: peer.say(args=ARGS[kind]))
    assert code is None or (kind == "long" and code == 1)


CODES = [None, "1", "x", [], {}, True, 0.5, float("nan"), float("inf"), 2**31, 10**400, -2**63, SURROGATE]


@pytest.mark.parametrize("code", CODES, ids=range(len(CODES)))
def test_an_invalid_exit_code_of_a_hostile_machine_0_becomes_1(hydra, code):
    def serve(s, peer):
        peer.say(args=[])
        peer.say(code=code)
    assert join_and_run(serve) == 1


NOISE = [b"", b"\n", b"{}\n", b"\xff\n", b"9" * 5000 + b"\n", as_line({"text": SURROGATE, "seal": ""}),
         as_line({"text": "", "seal": SURROGATE}), b"x" * (letters.LIMIT + 1)]


@pytest.mark.parametrize("noise", NOISE, ids=range(len(NOISE)))
@pytest.mark.parametrize("args", [False, True])
def test_noise_after_the_welcome_is_a_comm_error_or_exit_code_1(hydra, noise, args):
    def serve(s, peer):
        if args:
            peer.say(args=[])
        s.sendall(noise)
    if args:
        assert join_and_run(serve) == 1
    else:
        with pytest.raises(CommError):
            join_and_run(serve)


def test_an_endless_line_takes_no_longer_than_the_time_limit():
    """A peer that keeps sending single bytes does not extend the limit, which applies to the whole line."""
    a, b = socket.socketpair()
    stop = threading.Event()

    def drip():
        with contextlib.suppress(OSError):
            while not stop.wait(0.01):
                b.sendall(b"x")
    thread = threading.Thread(target=drip, daemon=True)
    with a, b:
        a.settimeout(0.5)
        thread.start()
        with pytest.raises(CommError, match="took longer"):
            letters.Correspondent(a, "other", b"").hear()
        assert a.gettimeout() == 0.5
        stop.set()
        thread.join(HANGS)
