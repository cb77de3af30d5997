"""Authenticated messages between the machines of `launch --nnodes`, signed with FLOWEDU_SECRET.

Each side starts with a random number. A message is {"text": content, "seal": its HMAC under the secret}. The
seal covers both random numbers, the sender, and the count of earlier messages, so a message cannot be
changed, replayed, or reflected. Without a secret the key is empty and the seal protects nothing; nothing is
encrypted in either case.
"""
from __future__ import annotations

import hmac
import json
import os
import secrets
import socket
import time

from flowedu.errors import ArgumentError, CommError

LIMIT = 1 << 16                                    # bytes of a line


class NotSealed(CommError):
    """Error for a message written without the secret."""


class Correspondent:
    """One end of a connection, which decodes received bytes. `who` is "first" (machine 0) or "other"."""

    def __init__(self, sock: socket.socket, who: str, secret: bytes):
        self.sock, self.who, self.secret = sock, who, secret
        self.own, self.theirs = secrets.token_hex(16), ""
        self.sent = self.heard = 0
        self.buffer = b""

    def greet(self) -> None:
        self._line({"flowedu": 1, "number": self.own})

    def greeted(self, line: bytes) -> None:
        number = self._object(line).get("number")
        if not isinstance(number, str) or len(number) != len(self.own):
            raise CommError("launch: not the greeting of flowedu.distributed.launch", got=repr(line[:60]),
                            at="")
        self.theirs = number

    def say(self, **message) -> None:
        text = json.dumps(message)
        self._line({"text": text, "seal": self._seal(self.who, self.sent, text)})
        self.sent += 1

    def decode(self, line: bytes) -> dict:
        """Return the message in a line.

        Raise CommError if it is not a message, and NotSealed if it was written without the secret.
        """
        letter = self._object(line)
        text, seal = letter.get("text"), letter.get("seal")
        if not isinstance(text, str) or not isinstance(seal, str):
            raise CommError("launch: not a message of flowedu.distributed.launch", got=repr(line[:60]), at="")
        from_whom = "other" if self.who == "first" else "first"
        if not hmac.compare_digest(seal.encode(), self._seal(from_whom, self.heard, text).encode()):
            raise NotSealed("launch: the other side does not know the same FLOWEDU_SECRET", at="",
                            expected="the same word in FLOWEDU_SECRET or --secret_file on all machines, or "
                            "in none", got="another, or none", fix="set it where the command is started")
        self.heard += 1
        return self._object(text.encode())

    def lines(self, arrived: bytes) -> list[bytes]:
        """Return the lines that are complete. Raise CommError if one is too long."""
        *whole, self.buffer = (self.buffer + arrived).split(b"\n")
        if any(len(line) > LIMIT for line in (*whole, self.buffer)):
            raise CommError("launch: a line without end", expected=f"at most {LIMIT:,} bytes",
                            got="more", at="")
        return whole

    def hear(self) -> bytes:
        """Wait for the next line.

        Raise CommError if the connection ends, or the line takes longer than the timeout of the socket.
        """
        timeout = self.sock.gettimeout()
        limit = time.monotonic() + timeout if timeout is not None else float("inf")
        try:
            while b"\n" not in self.buffer:
                if timeout is not None:
                    self.sock.settimeout(max(limit - time.monotonic(), 1e-3))
                arrived = self.sock.recv(1 << 12)
                if not arrived:
                    raise CommError("launch: the other machine closed the connection", at="",
                                    fix="see what it printed")
                self.buffer += arrived
                if len(self.buffer.partition(b"\n")[0]) > LIMIT:
                    raise CommError("launch: a line without end", expected=f"at most {LIMIT:,} bytes",
                                    got="more", at="")
                if time.monotonic() > limit:
                    raise TimeoutError
        except TimeoutError:
            raise CommError(f"launch: a message of the other machine took longer than {timeout:g} s", at="",
                            fix="a larger FLOWEDU_TIMEOUT, if the network is slow") from None
        except OSError as error:
            raise CommError("launch: the connection to the other machine broke", got=str(error), at="",
                            fix="see what it printed") from None
        finally:
            self.sock.settimeout(timeout)
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line

    def _seal(self, who: str, count: int, text: str) -> str:
        first, other = (self.own, self.theirs) if self.who == "first" else (self.theirs, self.own)
        return hmac.new(self.secret, f"{first} {other} {who} {count} {text}".encode(), "sha256").hexdigest()

    def _object(self, line: bytes) -> dict:
        try:
            found = json.loads(line)
            # Refuses lone surrogates, which no later step can encode.
            json.dumps(found, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise CommError("launch: not a message of flowedu.distributed.launch", got=repr(line[:60]), at="")
        return found

    def _line(self, message: dict) -> None:
        self.sock.sendall(json.dumps(message).encode() + b"\n")


def shared_secret(file: str = "") -> bytes:
    """Return the secret of all machines: the contents of `file`, else FLOWEDU_SECRET, else no bytes."""
    if not file:
        return os.environ.get("FLOWEDU_SECRET", "").encode()
    try:
        with open(file, "rb") as f:
            word = f.read(1 << 12).strip()
    except OSError as error:
        raise ArgumentError("launch: --secret_file cannot be read", got=str(error), at="",
                            fix="the path of a file with a long random word in it, the same on all "
                                "machines") from None
    if not word:
        raise ArgumentError(f"launch: --secret_file {file} is empty", expected="a long random word",
                            got="nothing", at="",
                            fix="python -c 'import secrets; print(secrets.token_hex())' > " + file)
    return word


def without_secret() -> dict[str, str]:
    """Return the environment of started programs, without the secret, which ranks do not need."""
    return {name: value for name, value in os.environ.items() if name != "FLOWEDU_SECRET"}
