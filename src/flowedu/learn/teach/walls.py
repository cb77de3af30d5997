"""Walls around a process, none of which needs root: no files but those named, no network, no other processes, bounded
memory.

    shut_in(read=[...], memory=1 << 30)         from here on, for this process and for ever; gives the walls that stand

Landlock (Linux 5.13) keeps it from files, a seccomp filter from sockets, other processes and new programs, limits from
memory and time. Where Landlock is not there, the filter refuses to open any file at all.
"""
from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from pathlib import Path

from flowedu.learn import course

READ = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/dev/null", "/dev/zero", "/dev/urandom", "/proc")
LIBC = ctypes.CDLL(None, use_errno=True)
NO_NEW_PRIVS, SECCOMP, FILTER = 38, 22, 2
EPERM, ENOSYS = 1, 38
CLONE_THREAD = 0x10000

# Numbers of system calls: x86-64, arm64 (None: there is none).
CALLS = {
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201),
    "accept": (43, 202), "accept4": (288, 242), "sendto": (44, 206), "sendmsg": (46, 211), "recvmsg": (47, 212),
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kill": (62, 129), "tkill": (200, 130),
    "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438), "setsid": (112, 157), "setpgid": (109, 154),
    "prlimit64": (302, 261), "setrlimit": (160, 164), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "unshare": (272, 97), "setns": (308, 268), "bpf": (321, 280), "perf_event_open": (298, 241),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "shmget": (29, 194),
    "shmat": (30, 196), "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180), "init_module": (175, 105),
    "finit_module": (313, 273), "kexec_load": (246, 104), "reboot": (169, 142), "swapon": (167, 224), "acct": (163, 89),
    "open_by_handle_at": (304, 265), "fanotify_init": (300, 262), "inotify_init1": (294, 26), "fsopen": (430, 430),
    "open_tree": (428, 428), "move_mount": (429, 429), "settimeofday": (164, 170), "clock_settime": (227, 112)}
OPENS = {"open": (2, None), "openat": (257, 56), "openat2": (437, 437), "creat": (85, None)}
CLONE, CLONE3 = (56, 220), (435, 435)
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def shut_in(read: Iterable[Path] = (), write: Iterable[Path] = (), memory: int = 0, seconds: float = 0,
            output: int = 1 << 20, programs: bool = False, landlock: bool = True, listed: Iterable[Path] = ()) -> list[str]:
    """Put them up; memory: bytes beyond those in use, programs: others may be started, listed: folders of which names may
    be read. What could not be built is missing in the list of walls. Raises OSError: not even the filter could be set."""
    walls = ["limits"]
    _limit(memory, seconds, output)
    if LIBC.prctl(NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no new privileges")
    if landlock and _landlock(read, write, listed):
        walls.append("files")
        landlock = False
    elif not programs:
        walls.append("no files at all")
        landlock = True
    _no_capabilities()
    if platform.machine() in MACHINES:
        _seccomp(programs, opens=not landlock)
        walls += ["network", "processes"] if not programs else ["network"]
    return walls


def _limit(memory: int, seconds: float, output: int) -> None:
    if memory:
        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + memory, now + memory))
    if seconds:
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
    resource.setrlimit(resource.RLIMIT_FSIZE, (output, output))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _landlock(read: Iterable[Path], write: Iterable[Path], listed: Iterable[Path]) -> bool:
    """Whether the kernel could be asked: files are opened below these folders alone. (TCP is refused, too, where it
    can.)"""
    create, add, restrict = 444, 445, 446
    version = LIBC.syscall(create, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return False
    every = (1 << 13) - 1 | sum(1 << bit for bit, since in ((13, 2), (14, 3), (15, 5)) if version >= since)
    fields = struct.pack("<QQQ", every, 3 if version > 3 else 0, 3 if version > 5 else 0)
    rules = LIBC.syscall(create, fields, ctypes.c_size_t(24 if version > 5 else 16 if version > 3 else 8), 0)
    if rules < 0:
        return False
    look = 1 << 0 | 1 << 2 | 1 << 3                # execute (of libraries), read files, read folders
    for paths, rights in ((read, look), (write, every & ~(1 << 13)), (listed, 1 << 3)):
        for path in paths:
            if not path.exists():
                continue
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            mine = rights if path.is_dir() else rights & (1 << 0 | 1 << 1 | 1 << 2 | (1 << 14 if version > 2 else 0))
            LIBC.syscall(add, rules, 1, struct.pack("<Qi", mine, fd), 0)
            os.close(fd)
    done = LIBC.syscall(restrict, rules, 0)
    os.close(rules)
    return done == 0


def _no_capabilities() -> None:
    """Also for root."""
    number = 125 if platform.machine() == "x86_64" else 91
    LIBC.syscall(number, struct.pack("<Ii", 0x20080522, 0), struct.pack("<6I", *[0] * 6))


def _seccomp(programs: bool, opens: bool) -> None:
    column, arch = MACHINES[platform.machine()]
    load = lambda at: struct.pack("<HBBI", 0x20, 0, 0, at)
    equal = lambda k, yes, no: struct.pack("<HBBI", 0x15, yes, no, k)
    give = lambda k: struct.pack("<HBBI", 0x06, 0, 0, k)
    refuse, allow = give(0x50000 | EPERM), give(0x7FFF0000)
    names = {**CALLS, **({} if opens else OPENS)}
    if programs:                                   # compilers, and who ends them as a group
        for name in ("fork", "vfork", "execve", "prlimit64", "setrlimit", "setsid", "setpgid", "recvmsg", "kill", "tgkill"):
            names.pop(name, None)
    code = [load(4), equal(arch, 1, 0), give(0x80000000), load(0)]
    if column == 0:                                # the other way to count system calls on x86
        code += [struct.pack("<HBBI", 0x35, 0, 1, 0x40000000), refuse]
    for numbers in names.values():
        if numbers[column] is not None:
            code += [equal(numbers[column], 0, 1), refuse]
    if not programs:
        code += [equal(CLONE3[column], 0, 1), give(0x50000 | ENOSYS), equal(CLONE[column], 0, 4), load(16),
                 struct.pack("<HBBI", 0x45, 1, 0, CLONE_THREAD), refuse, allow]
    code += [allow]
    program = b"".join(code)
    if LIBC.prctl(SECCOMP, FILTER, ctypes.byref(_Filter(len(code), program)), 0, 0):
        raise OSError(ctypes.get_errno(), "the filter of system calls")


# ---- around what
def packages() -> list[Path]:
    """Folders that an answer may read, beside the tree: Python's, and those of installed packages but flowedu."""
    found = [Path(sysconfig.get_path(n)) for n in ("stdlib", "platstdlib")]
    found += [Path(p) for p in ("/usr/lib", "/lib", "/lib64", "/dev/null", "/dev/zero", "/dev/urandom", "/etc/ld.so.cache")]
    found += [p for d in sites() for p in d.iterdir() if "flowedu" not in p.name and p.suffix != ".pth"]
    return found


def sites() -> list[Path]:
    """Where packages are installed."""
    return [Path(p) for p in sys.path if p and Path(p).is_dir() and Path(p).name in ("site-packages", "dist-packages")]


def behind_walls() -> None:
    """For the process that loads an answer: it reads what Python needs, has one folder to write, starts nothing, ends
    nobody, and so does not come near its judge."""
    scratch = os.environ["TMPDIR"]
    os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(dir=scratch)
    shut_in([*map(Path, READ), *packages(), course.HOME / "src", course.HOME / ".venv", Path(sys.prefix),
             Path(sys.base_prefix), Path(scratch)], [Path("/dev/null"), Path(tempfile.tempdir)])
