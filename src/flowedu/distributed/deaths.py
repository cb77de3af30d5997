"""Order in which the ranks of this machine end, as the launcher observes it."""
from __future__ import annotations

import contextlib
import os
import select
import socket
import tempfile

WATCHED = "FLOWEDU_WATCHED_AT"                     # the address of the launcher's socket
LINUX = hasattr(select, "epoll") and hasattr(os, "pidfd_open")


class Deaths:
    """The order in which the processes of this machine ended.

    Each process holds a connection to the launcher (`die_in_order`). When the process ends, Linux closes the
    connection before other processes can detect the end. At that moment, Linux adds the connection to the
    ready list of the launcher's epoll, so the launcher can read the order at any later time. Children of a
    process also hold the connection, so the process is listed when all of them have ended. The order is
    unknown on other systems and other machines.
    """

    def __init__(self):
        self.host, self.processes, self.gone = socket.gethostname().encode(), {}, []
        self.server = self.folder = None
        self.epoll = select.epoll() if LINUX else None
        if self.epoll is not None:
            with contextlib.suppress(OSError):               # a folder with a long name, or a full disk
                self.folder = tempfile.TemporaryDirectory(prefix="flowedu-")
                self.server = socket.socket(socket.AF_UNIX)
                self.server.setblocking(False)
                self.server.bind(self.address)
                self.server.listen(4096)

    @property
    def address(self) -> str:
        return os.path.join(self.folder.name, "ranks") if self.folder else ""

    def expect(self, pid: int, host: bytes) -> None:
        if self.epoll is None or host != self.host:
            return
        with contextlib.suppress(OSError):                   # no further connection
            while self.server is not None:
                came, _ = self.server.accept()
                # The first of three integers.
                pid = came.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED)
                self._follow(came.detach(), pid)
        try:
            self._follow(os.pidfd_open(pid), pid)
        except ProcessLookupError:                           # its entry came late: it ended before the others
            self.gone.append(pid)
        except OSError:                                      # the kernel is old
            pass

    def _follow(self, fd: int, pid: int) -> None:
        self.processes[fd] = pid
        self.epoll.register(fd, select.EPOLLIN)

    def order(self) -> list[int]:
        """Return the ids of the processes that have ended, in order. Call this method only once."""
        pids = ([self.processes[fd] for fd, _ in self.epoll.poll(0, len(self.processes))] if self.processes
                else [])
        for fd in self.processes:
            os.close(fd)
        for held in (self.epoll, self.server):
            if held is not None:
                held.close()
        if self.folder is not None:
            self.folder.cleanup()
        return list(dict.fromkeys([*self.gone, *pids]))


def die_in_order() -> None:
    """Hold the sockets of MPICH and of the launcher at high file descriptors of a rank.

    MPICH's socket is above all existing files, and the launcher's is above all later files.

    Linux closes the files of a process that ended from the highest descriptor down, so the launcher detects
    the end first and hydra's proxy next. The proxy then ends the others, and it may report any of these
    processes, even one that it ended itself.
    """
    import fcntl  # Unix only, as MPICH
    import resource

    if name := os.environ.get("PMI_FD"):
        fcntl.fcntl(int(name), fcntl.F_DUPFD_CLOEXEC, max(int(n) for n in os.listdir("/dev/fd")) + 1)
    if address := os.environ.get(WATCHED):
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        # The launcher is on another machine.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as ours:
            ours.settimeout(1)
            ours.connect(address)
            fcntl.fcntl(ours.fileno(), fcntl.F_DUPFD_CLOEXEC, (min(most, 1024) if most > 0 else 1024) - 8)
