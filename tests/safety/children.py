"""Running a script in a process of its own, with limits on memory and time: what crashes or hangs there, fails a test."""
import os
import resource
import subprocess
import sys

ROOM = 1 << 30                       # bytes a child may have beyond what it uses after the import


def limit_memory(room: int = ROOM) -> None:
    """From here on this process gets at most `room` bytes more. (Under the address sanitizer, which reserves terabytes, no
    single array may be larger.)"""
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        return                       # see run_child
    with open("/proc/self/statm", encoding="utf-8") as f:
        used = int(f.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))


def run_child(code: str, seconds: float = 120, **env: str) -> str:
    """What `code`, Python source, prints. Fails where the process dies or does not end in time, with the last it said."""
    environment = {**os.environ, **env}
    if "ASAN_OPTIONS" in environment:
        environment["ASAN_OPTIONS"] += f":max_allocation_size_mb={ROOM >> 20}"
    p = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
                         env=environment, cwd=os.path.dirname(__file__))
    try:
        out, _ = p.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        p.kill()
        out, _ = p.communicate()
        raise AssertionError(f"did not end within {seconds} s; the last it said:\n{out[-2000:]}") from None
    assert p.returncode == 0, f"exit status {p.returncode}; the last it said:\n{out[-2000:]}"
    return out
