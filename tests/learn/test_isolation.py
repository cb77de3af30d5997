"""The sandbox of an answer, call by call: every system call that is not on the short list below is refused
with any arguments.
"""
import json
import os
import platform
import signal
import stat
import subprocess
import sys

import pytest

from common import HANGS
from flowedu_course.teach import isolation

MACHINE = platform.machine()
COLUMN = isolation.MACHINES[MACHINE][0]
# The calls that an answer may make. A commit that adds a name must describe its effect on other processes and
# files.
ON_ITSELF = """read write close fstat lseek pread64 pwrite64 readv writev dup dup2 dup3 poll ppoll select pselect6
mmap mprotect munmap brk mremap madvise rt_sigaction rt_sigprocmask rt_sigreturn sigaltstack
sched_yield nanosleep restart_syscall futex set_robust_list exit exit_group getpid getppid gettid
getuid geteuid getgid getegid uname getcwd getrusage times sysinfo gettimeofday time getrlimit
getrandom rseq""".split()
ON_FILES = "open openat stat lstat newfstatat access faccessat readlink readlinkat getdents64".split()
BY_ARGUMENTS = """clone kill tgkill prctl fcntl ioctl sched_getaffinity prlimit64 clock_gettime clock_getres
clock_nanosleep""".split()
# Calls that answers could make in the past, or that a list could omit: call numbers on x86-64 and arm64.
DANGEROUS = {
    "connect": (42, 203), "socket": (41, 198), "sendto": (44, 206), "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    "recvmmsg": (299, 243), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54), "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None), "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463), "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "removexattrat": (466, 466), "getxattr": (191, 8), "listxattr": (194, 11), "file_setattr": (469, 469),
    "setpriority": (141, 140), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122), "sched_setattr": (314, 274), "ioprio_set": (251, 30),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447), "inotify_init": (253, None), "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "move_pages": (279, 239), "migrate_pages": (256, 238), "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272), "ptrace": (101, 117),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "mount": (165, 40),
    "umount2": (166, 39), "fsopen": (430, 430), "move_mount": (429, 429), "open_tree": (428, 428),
    "mount_setattr": (442, 442), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97),
    "setns": (308, 268),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424),
    "clone3": (435, 435),
    "openat2": (437, 437), "fork": (57, None), "vfork": (58, None), "execve": (59, 221),
    "execveat": (322, 281),
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "getpgid": (121, 155),
    "getsid": (124, 156), "setsid": (112, 157), "setpgid": (109, 154), "setrlimit": (160, 164),
    "shmget": (29, 194),
    "msgget": (68, 186), "mq_open": (240, 180), "get_robust_list": (274, 100),
    "sched_getscheduler": (145, 120),
    "getpriority": (140, 141), "capset": (126, 91), "seccomp": (317, 277), "setuid": (105, 146),
    "setresuid": (117, 147),
    "mknodat": (259, 33), "truncate": (76, 45), "unlinkat": (263, 35), "renameat2": (316, 276),
    "linkat": (265, 37),
    "symlinkat": (266, 36), "quotactl": (179, 60), "syslog": (103, 116), "landlock_restrict_self": (446, 446)}
THERE = {name: row[COLUMN] for name, row in DANGEROUS.items() if row[COLUMN] is not None}
# The kernel's own probes use these numbers: they bypass the filter, and a caller from elsewhere gets SIGILL
# (x86-64).
PROBES = {"x86_64": {335, 336}}.get(MACHINE, set())
LAST = 600  # above the last call number of any kernel; x32 numbers start at 512

CALL = """
import ctypes, json, os, sys
from pathlib import Path
from flowedu_course.teach import isolation
parent, libc = os.getppid(), ctypes.CDLL(None, use_errno=True)
def call(n, *args):
    ctypes.set_errno(0)
    got = libc.syscall(*(ctypes.c_long(x) for x in (n, *args)))
    return ctypes.get_errno() if got == -1 else 0
"""


def run(program, *arguments, code=0):
    """Run a program that has `call`, `parent`, and `isolation`, and return its output, parsed as JSON."""
    done = subprocess.run([sys.executable, "-c", CALL + program, *map(str, arguments)], capture_output=True,
                          encoding="utf-8", timeout=10 * HANGS)
    assert done.returncode == code, done
    return json.loads(done.stdout.splitlines()[-1]) if done.stdout else None


def allowed():
    rows = isolation.ALLOWED | isolation.FILES | isolation.CONDITIONAL
    return {row[COLUMN] for row in rows.values() if row[COLUMN] is not None}


def test_the_allowed_calls_are_the_reviewed_ones():
    assert [*isolation.ALLOWED] == ON_ITSELF and [*isolation.FILES] == ON_FILES
    assert sorted(isolation.CONDITIONAL) == sorted(BY_ARGUMENTS)
    assert not allowed() & set(THERE.values())


def test_every_other_call_is_refused():
    """Try all call numbers, including x32, with meaningless arguments. ENOSYS is allowed if the C library
    then uses an older call.
    """
    numbers = [n for n in range(LAST) if n not in allowed() | PROBES] + [1 << 30 | n
                                                                         for n in range(LAST)] + [-1, 1 << 31]
    replies = run("isolation.shut_in()\nprint(json.dumps({n: call(n, *[-1] * 6) for n in "
                  "json.loads(sys.argv[1])}))", json.dumps(numbers))
    absent = {row[COLUMN] for row in isolation.ABSENT.values()}
    assert absent <= {*numbers}
    # A tracer uses -1 to skip a call, so a kernel may answer it before the filter runs.
    right = dict.fromkeys(map(str, absent), (38,)) | {"-1": (1, 38)}
    assert {n: e for n, e in replies.items() if e not in right.get(n, (1,))} == {}


def test_each_dangerous_call_is_refused_by_the_filter():
    """Call each by name with meaningless arguments, even if the kernel would refuse it for other reasons."""
    replies = run("isolation.shut_in()\nprint(json.dumps({k: call(n, *[-1] * 6) "
                  "for k, n in json.loads(sys.argv[1]).items()}))", json.dumps(THERE))
    assert {k: e for k, e in replies.items() if e != (38 if k == "clone3" else 1)} == {}


REFUSED = {
    "clone": ["0, 0", "17, 0", "0x10000000 | 0x7d0f00, 0", "0x7d0f00 & ~0x10000, 0", "1 << 32 | 17, 0"],
    "kill": ["parent, 0", "-1, 0", "0, 0", "1, 0"], "tgkill": ["parent, parent, 0", "-1, parent, 0"],
    "prctl": ["4, 0", "36, 1", "1, 9", "22, 2, 0", "0x53564d41, 0, 0, 0, 0", "35, 1, 0", "59, 0, 0, 0, 0"],
    "fcntl": [f"0, {c}, 1" for c in (4, 5, 6, 7, 8, 10, 15, 1024, 1026, 1031, 1033, 1036)],
    "ioctl": [f"0, {c}, 0" for c in (0x5412, 0x541D, 0x5452, 0x540E, 0x541B, 0x6601, 0xAE01)],
    "sched_getaffinity": ["parent, 8, 0", "1, 8, 0"],
    "prlimit64": ["parent, 7, 0, 0", "0, 7, 1 << 40, 0", "0, 7, 4096, 0"],
    "clock_gettime": ["~parent << 3 | 2, 0"], "clock_getres": ["~parent << 3 | 2, 0"],
    "clock_nanosleep": ["~parent << 3 | 2, 0, 0, 0"]}


def test_other_processes_are_refused_by_arguments():
    """Calls that a process may make only on itself."""
    assert REFUSED.keys() == {*BY_ARGUMENTS}
    cases = [(isolation.CONDITIONAL[name][COLUMN], a) for name, rows in REFUSED.items() for a in rows]
    replies = run("isolation.shut_in()\nprint(json.dumps([[n, a, call(n, *eval(f'({a},)'))] for n, a in "
                  "json.loads(sys.argv[1])]))", json.dumps(cases))
    assert [r for r in replies if r[2] != 1] == []


@pytest.mark.parametrize("landlock", [True, False])
def test_legitimate_operations_work(landlock):
    """Threads, matrix products, time, random numbers, own signals, and the library's kernels work."""
    program = """
import threading, time, random, signal
import numpy as np
import flowedu as flow
isolation.shut_in([*map(Path, isolation.READ), *isolation.packages()], landlock=json.loads(sys.argv[1]))
found = []
threads = [threading.Thread(target=found.append, args=(i,)) for i in range(4)]
[t.start() for t in threads], [t.join() for t in threads]
flow.set_num_threads(3)
x = flow.ones(300, 300)
signal.signal(signal.SIGUSR1, lambda *a: found.append("signal"))
os.kill(os.getpid(), signal.SIGUSR1)
time.sleep(0.001)
print(json.dumps([len(found), float((x @ x).sum()), float((np.ones((300, 300)) @ np.ones(300)).sum()),
                  time.process_time() > 0, random.SystemRandom().random() < 1, os.getuid() != 0, os.cpu_count() > 0]))
"""
    assert run(program, json.dumps(landlock)) == [5, 300 ** 3, 300 ** 2] + [True] * 4


def test_a_file_of_another_keeps_its_mode_owner_times_and_attributes(tmp_path):
    """Python's functions cannot change a file or folder that the process could change before it entered the
    sandbox.
    """
    file = tmp_path / "of-another.py"
    file.write_text("x = 1\n")
    os.utime(file, (1000, 1000))
    file.chmod(0o640)
    attacks = ["os.chmod(f, 0)", "os.chmod(f, 0o777)", "os.utime(f, (0, 0))",
               "os.setxattr(f, 'user.x', b'evil')",
               "os.chown(f, 1, 1)", "os.truncate(f, 0)", "os.unlink(f)", "os.rename(f, f + 'x')",
               "os.link(f, f + 'y')",
               "os.setpriority(os.PRIO_PROCESS, parent, 19)", "os.sched_setaffinity(parent, {0})",
               "os.getpgid(parent)",
               "os.sched_setscheduler(parent, os.SCHED_IDLE, os.sched_param(0))", "os.memfd_create('x')",
               "os.getsid(1)", "os.nice(1)"]
    attacks += [a.replace("f,", "d,").replace("f)", "d)") for a in attacks[:5]]
    before, priority = file.stat(), os.getpriority(os.PRIO_PROCESS, 0)
    program = """
f, d = sys.argv[1], os.path.dirname(sys.argv[1])
isolation.shut_in([Path(d)], [])
left = []
for attack in json.loads(sys.argv[2]):
    try:
        eval(attack)
        left.append(attack)
    except PermissionError:
        pass
print(json.dumps(left))
"""
    assert run(program, file, json.dumps(attacks)) == []
    after = file.stat()
    fields = ("st_mode", "st_uid", "st_gid", "st_mtime", "st_size", "st_nlink")
    assert [getattr(after, n) for n in fields] == [getattr(before, n) for n in fields]
    assert os.listxattr(file) == [] and os.getpriority(os.PRIO_PROCESS, 0) == priority
    assert ([p.name for p in tmp_path.iterdir()] == [file.name]
            and stat.S_IMODE(tmp_path.stat().st_mode) & 0o700 == 0o700)


def test_the_sandbox_drops_root_and_all_capabilities(tmp_path):
    """Only named private folders can be read, and only a writable folder can be written."""
    private, other, scratch = (tmp_path / n for n in ("private", "other", "scratch"))
    for folder in (private, other, scratch):
        folder.mkdir(0o700)
        (folder / "text").write_text("text")
    program = """
private, other, scratch = map(Path, sys.argv[1:])
isolation.shut_in([private], [scratch])
(scratch / "new").write_text("new")
try:
    text = (other / "text").read_text()
except PermissionError:
    text = ""
print(json.dumps([0 in (os.getuid(), os.geteuid(), os.getgid(), os.getegid()), (private / "text").read_text(), text]))
"""
    assert run(program, private, other, scratch) == [False, "text", ""]
    assert (scratch / "new").read_text(encoding="utf-8") == "new"


def test_root_that_cannot_become_another_user_does_not_grade():
    program = """
def refuse(*a):
    raise PermissionError(1, "no")
os.geteuid, os.setgroups = (lambda: 0), refuse
try:
    isolation.shut_in()
except OSError as error:
    print(json.dumps(error.strerror))
"""
    assert "grade as an ordinary user" in run(program)


def test_an_unknown_processor_does_not_grade():
    program = """
isolation.platform.machine = lambda: "pdp11"
try:
    isolation.shut_in()
except OSError as error:
    print(json.dumps(error.strerror))
"""
    assert "pdp11" in run(program)


def test_few_files_are_open():
    program = """
isolation.shut_in(isolation.packages() + [Path("/dev/null")])
found = []
try:
    while True:
        found.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error:
    print(json.dumps(error.errno))
"""
    assert run(program) == 24


def test_without_landlock_no_file_is_looked_up():
    program = """
isolation.shut_in(landlock=False)
print(json.dumps([os.path.exists(p) for p in ("/", "/etc/passwd", sys.executable)]))
"""
    assert run(program) == [False] * 3


if MACHINE == "x86_64":
    def test_calls_of_32_bits_end_the_process():
        """Run int 0x80 (getpid of i386) in a page that is first written and then executed."""
        program = """
import mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(b"\\xb8\\x14\\0\\0\\0\\xcd\\x80\\xc3")
f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
isolation.shut_in()
f()
"""
        done = subprocess.run([sys.executable, "-c", CALL + program], capture_output=True, timeout=10 * HANGS)
        # SIGSEGV comes from a kernel without 32-bit calls.
        assert -done.returncode in (signal.SIGSYS, signal.SIGSEGV), done
