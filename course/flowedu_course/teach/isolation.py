"""Sandbox for a process that runs a student's answer.

It allows only the named files, no network, no other processes, and limited memory. It needs no special
rights.

    shut_in(read=[...], memory=1 << 30)     restricts this process until it ends and returns the restrictions

Landlock (Linux 5.13) restricts which files are opened. A seccomp filter lists the system calls that are
allowed and refuses all others. Limits bound memory, time, and open files. Without Landlock the filter refuses
to open or look up any file. A process that runs as root first becomes the user NOBODY. README.md in this
folder lists what the sandbox does not block.
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

from flowedu_course import course

READ = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/dev/null", "/dev/zero", "/dev/urandom",
        "/proc")
LIBC = ctypes.CDLL(None, use_errno=True)
KEEP_CAPABILITIES, SECCOMP, NO_NEW_PRIVS, AMBIENT, FILTER, RAISE = 8, 22, 38, 47, 2, 2       # for prctl
EPERM, ENOSYS = 1, 38
NOBODY = 65534                                     # user and group that a process of root becomes
DAC_READ_SEARCH = 2                                # the capability to read files of other users
OPEN_FILES = 64

# Numbers of the system calls that are allowed, on x86-64 and arm64 (None: the machine does not have the
# call). All others are refused with EPERM. They act only on this process, on open files, or on files that
# Landlock restricts.
ALLOWED = {
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "fstat": (5, 80), "lseek": (8, 62),
    "pread64": (17, 67),
    "pwrite64": (18, 68), "readv": (19, 65), "writev": (20, 66), "dup": (32, 23), "dup2": (33, None),
    "dup3": (292, 24), "poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72),
    "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215), "brk": (12, 214), "mremap": (25, 216),
    "madvise": (28, 233), "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132), "sched_yield": (24, 124), "nanosleep": (35, 101),
    "restart_syscall": (219, 128), "futex": (202, 98), "set_robust_list": (273, 99), "exit": (60, 93),
    "exit_group": (231, 94), "getpid": (39, 172), "getppid": (110, 173), "gettid": (186, 178),
    "getuid": (102, 174),
    "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177), "uname": (63, 160),
    "getcwd": (79, 17),
    "getrusage": (98, 165), "times": (100, 153), "sysinfo": (99, 179), "gettimeofday": (96, 169),
    "time": (201, None), "getrlimit": (97, 163), "getrandom": (318, 278),
    "rseq": (334, 293)}
# Calls that take file names; refused without Landlock.
FILES = {
    "open": (2, None), "openat": (257, 56), "stat": (4, None), "lstat": (6, None), "newfstatat": (262, 79),
    "access": (21, None), "faccessat": (269, 48), "readlink": (89, None), "readlinkat": (267, 78),
    "getdents64": (217, 61)}
# Calls that write; Landlock refuses them outside the writable folders.
WRITING = {
    "unlink": (87, None), "unlinkat": (263, 35), "rmdir": (84, None), "mkdir": (83, None),
    "mkdirat": (258, 34),
    "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276), "ftruncate": (77, 46)}
# Calls of compilers, and of the process that starts them and sets up the sandbox of the answer.
PROGRAMS = {
    "fork": (57, None), "vfork": (58, None), "clone": (56, 220), "execve": (59, 221), "wait4": (61, 260),
    "waitid": (247, 95), "pipe": (22, None), "pipe2": (293, 59), "kill": (62, 129), "tgkill": (234, 131),
    "setsid": (112, 157), "setpgid": (109, 154), "getpgrp": (111, None), "prlimit64": (302, 261),
    "setrlimit": (160, 164),
    "setitimer": (38, 103), "prctl": (157, 167), "arch_prctl": (158, None), "set_tid_address": (218, 96),
    "capget": (125, 90), "capset": (126, 91), "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446), "fcntl": (72, 25), "chdir": (80, 49), "fchdir": (81, 50),
    "umask": (95, 166),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "epoll_create1": (291, 20),
    "mbind": (237, 235),
    "symlink": (88, None), "symlinkat": (266, 36), "fadvise64": (221, 223), "fsync": (74, 82),
    "copy_file_range": (326, 285), "sendfile": (40, 71),
    "close_range": (436, 436), "sched_getaffinity": (204, 123), "statfs": (137, 43), "fstatfs": (138, 44),
    "getpgid": (121, 155), "rt_sigtimedwait": (128, 137), "rt_sigsuspend": (130, 133), "msync": (26, 227)}
# Newer forms of older calls; programs fall back to the older ones if the kernel does not have these.
ABSENT = {"clone3": (435, 435), "statx": (332, 291), "faccessat2": (439, 439)}
# Refused unless their arguments are harmless: see _conditions.
CONDITIONAL = {"clone": (56, 220), "kill": (62, 129), "tgkill": (234, 131), "prctl": (157, 167),
               "fcntl": (72, 25), "ioctl": (16, 29), "sched_getaffinity": (204, 123), "prlimit64": (302, 261),
               "clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115)}
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
# Flags of clone: a thread; all flags that the C library sets for it.
THREAD, OF_THREADS = 0x10000, 0x7D0F00
FCNTL = (0, 1, 2, 3, 1030)                         # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC
IOCTL = (0x5401, 0x5413, 0x5450, 0x5451)           # TCGETS, TIOCGWINSZ, FIONCLEX, FIOCLEX
CLOCKS = tuple(range(12))                          # the clocks that do not belong to another process
PRCTL = (15, 16)                                   # PR_SET_NAME, PR_GET_NAME of a thread


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def shut_in(read: Iterable[Path] = (), write: Iterable[Path] = (), memory: int = 0, seconds: float = 0,
            output: int = 1 << 20, programs: bool = False, landlock: bool = True,
            listed: Iterable[Path] = ()) -> list[str]:
    """Restrict this process permanently.

    Args:
        read: files and folders that may be read.
        write: folders (and devices) that may be written.
        memory: bytes beyond those in use.
        seconds: CPU time; 0 for no limit.
        output: largest file size in bytes.
        programs: True if other programs may be started.
        landlock: False to set up the sandbox without Landlock.
        listed: folders that may be listed.

    Returns:
        The names of the restrictions. Without Landlock, "no files at all" replaces "files".

    Raises:
        OSError: If the filter cannot be set, or a process of root cannot become another user.
    """
    if platform.machine() not in MACHINES:
        raise OSError(ENOSYS, f"no sandbox on {platform.machine()}: the system-call filter supports "
                      f"{' and '.join(MACHINES)}")
    write = list(write)
    walls = ["limits"]
    _limit(memory, seconds, output, programs)
    landlock = landlock and _landlock_version() > 0
    _drop_rights(write, files=landlock or programs)
    if LIBC.prctl(NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_NO_NEW_PRIVS could not be set")
    if landlock and _landlock(read, write, listed):
        walls.append("files")
    else:
        landlock = False
        walls += [] if programs else ["no files at all"]
    files = landlock or programs
    _seccomp(programs, files, writing=files and any(p.is_dir() for p in write))
    walls += ["network", "processes"] if not programs else ["network"]
    return walls


def limit_memory(memory: int) -> None:
    """Let this process map `memory` bytes more than it has mapped now."""
    now = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + memory, now + memory))


def _limit(memory: int, seconds: float, output: int, programs: bool) -> None:
    if memory:
        limit_memory(memory)
    if seconds:
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
    resource.setrlimit(resource.RLIMIT_FSIZE, (output, output))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not programs:
        resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))


def _drop_rights(write: list[Path], files: bool) -> None:
    """Become NOBODY if this is root, and give up all capabilities but reading files.

    Landlock restricts which files can be read.

    Raises OSError if root cannot become another user.
    """
    if os.geteuid() == 0:
        for folder, _, names in (row for path in write if path.is_dir() for row in os.walk(path)):
            for path in (folder, *(os.path.join(folder, name) for name in names)):
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        LIBC.prctl(KEEP_CAPABILITIES, 1, 0, 0, 0)
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        except OSError as error:
            raise OSError(error.errno, "answers do not run as root, and this process could not change its "
                          "user: grade as an ordinary user") from None
    head, data = struct.pack("<Ii", 0x20080522, 0), ctypes.create_string_buffer(24)
    get, put = (125, 126) if platform.machine() == "x86_64" else (90, 91)
    LIBC.syscall(get, head, data)
    permitted = struct.unpack("<6I", data.raw)[1]
    left = permitted & 1 << DAC_READ_SEARCH if files else 0
    if LIBC.syscall(put, head, struct.pack("<6I", left, left, left, 0, 0, 0)):
        raise OSError(ctypes.get_errno(), "the capabilities could not be dropped")
    if left:                                       # compilers inherit it
        LIBC.prctl(AMBIENT, RAISE, DAC_READ_SEARCH, 0, 0)


def _landlock_version() -> int:
    return LIBC.syscall(444, None, ctypes.c_size_t(0), 1)


def _landlock(read: Iterable[Path], write: Iterable[Path], listed: Iterable[Path]) -> bool:
    """Allow only files below these folders, and refuse TCP if the kernel can. Return False on failure."""
    create, add, restrict = 444, 445, 446
    version = _landlock_version()
    every = (1 << 13) - 1 | sum(1 << bit for bit, since in ((13, 2), (14, 3), (15, 5)) if version >= since)
    fields = struct.pack("<QQQ", every, 3 if version > 3 else 0, 3 if version > 5 else 0)
    size = 8                                       # bytes of `fields` that this version reads
    if version > 3:
        size = 24 if version > 5 else 16
    rules = LIBC.syscall(create, fields, ctypes.c_size_t(size), 0)
    if rules < 0:
        return False
    look = 1 << 0 | 1 << 2 | 1 << 3                # execute (of libraries), read files, read folders
    of_files = 1 << 0 | 1 << 1 | 1 << 2            # execute, write, read
    if version > 2:
        of_files |= 1 << 14                        # truncate
    for paths, rights in ((read, look), (write, every & ~(1 << 13)), (listed, 1 << 3)):
        for path in paths:
            if not path.exists():
                continue
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            allowed = rights if path.is_dir() else rights & of_files
            LIBC.syscall(add, rules, 1, struct.pack("<Qi", allowed, fd), 0)
            os.close(fd)
    done = LIBC.syscall(restrict, rules, 0)
    os.close(rules)
    return done == 0


def _seccomp(programs: bool, files: bool, writing: bool) -> None:
    """Set the filter, which lists the allowed calls and refuses all others.

    Raises OSError if the kernel rejects it.
    """
    code = filter_code(programs, files, writing, os.getpid())
    program = b"".join(code)
    if LIBC.prctl(SECCOMP, FILTER, ctypes.byref(_Filter(len(code), program)), 0, 0):
        raise OSError(ctypes.get_errno(), "the system-call filter could not be set")


def _load(at: int) -> bytes:
    return struct.pack("<HBBI", 0x20, 0, 0, at)


def _equal(k: int, yes: int, no: int) -> bytes:
    return struct.pack("<HBBI", 0x15, yes, no, k)


def _any_bit(k: int, yes: int, no: int) -> bytes:
    return struct.pack("<HBBI", 0x45, yes, no, k)


def _give(k: int) -> bytes:
    return struct.pack("<HBBI", 0x06, 0, 0, k)


ALLOW, REFUSE, KILL, MISSING = (_give(k) for k in (0x7FFF0000, 0x50000 | EPERM, 0x80000000, 0x50000 | ENOSYS))


def filter_code(programs: bool, files: bool, writing: bool, pid: int) -> list[bytes]:
    """Return the instructions of the filter (see seccomp(2))."""
    column, machine = MACHINES[platform.machine()]
    tables = ((FILES, files), (WRITING, writing), (PROGRAMS, programs))
    allowed = ALLOWED | {name: row for table, there in tables if there for name, row in table.items()}
    conditional = {n: c for n, c in _conditions(pid).items() if n not in allowed}
    code = [_load(4), _equal(machine, 1, 0), KILL, _load(0)]
    if column == 0:                                # x32 calls, the other ABI of x86-64
        code += [struct.pack("<HBBI", 0x35, 0, 1, 0x40000000), REFUSE]
    for numbers, reply in ((allowed, ALLOW), (ABSENT, MISSING)):
        for row in numbers.values():
            if row[column] is not None:
                code += [_equal(row[column], 0, 1), reply]
    for name, lines in conditional.items():
        code += [_equal(CONDITIONAL[name][column], 0, len(lines)), *lines]
    return [*code, REFUSE]


def _conditions(pid: int) -> dict[str, list[bytes]]:
    """Return {call of CONDITIONAL: instructions that allow or refuse it by its arguments}."""
    low, high = (lambda n: _load(16 + 8 * n)), (lambda n: _load(20 + 8 * n))
    only = lambda n, *values: [low(n), *(c for v in values for c in (_equal(v, 0, 1), ALLOW)), REFUSE]
    no_new_limit = [low(0), _equal(0, 0, 5), low(2), _equal(0, 0, 3), high(2), _equal(0, 0, 1), ALLOW, REFUSE]
    thread = [low(0), _any_bit(0xFFFFFFFF & ~OF_THREADS, 2, 0), _any_bit(THREAD, 0, 1), ALLOW, REFUSE]
    return {"clone": thread, "kill": only(0, pid), "tgkill": only(0, pid), "prctl": only(0, *PRCTL),
            "fcntl": only(1, *FCNTL), "ioctl": only(1, *IOCTL), "sched_getaffinity": only(0, 0, pid),
            "prlimit64": no_new_limit,
            **dict.fromkeys(("clock_gettime", "clock_getres", "clock_nanosleep"), only(0, *CLOCKS))}


# ---- folders
def packages() -> list[Path]:
    """Return the folders outside the tree that an answer may read: Python and packages except flowedu."""
    found = [Path(sysconfig.get_path(n)) for n in ("stdlib", "platstdlib")]
    found += [Path(p) for p in ("/usr/lib", "/lib", "/lib64", "/dev/null", "/dev/zero", "/dev/urandom",
                                "/etc/ld.so.cache")]
    found += [p for d in sites() for p in d.iterdir() if "flowedu" not in p.name and p.suffix != ".pth"]
    return found


def sites() -> list[Path]:
    """Return the folders with installed packages."""
    return [Path(p) for p in sys.path if p and Path(p).is_dir() and Path(p).name in ("site-packages",
                                                                                     "dist-packages")]


def behind_walls() -> None:
    """Restrict a process that loads a compiled answer: it reads Python's files and writes to one folder."""
    scratch = os.environ["TMPDIR"]
    os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(dir=scratch)
    shut_in([*map(Path, READ), *packages(), course.HOME / "src", course.HOME / "course",
             course.HOME / ".venv",
             Path(sys.prefix), Path(sys.base_prefix), Path(scratch)], [Path("/dev/null"),
                                                                       Path(tempfile.tempdir)])
