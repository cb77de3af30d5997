"""Run scripts in separate processes with limits on memory and time, so a crash or a hang fails one test."""
import os
import resource
import subprocess
import sys

ROOM = 1 << 30                       # bytes a child may allocate beyond its memory after the import


def limit_memory(room: int = ROOM) -> None:
    """Limit this process to `room` more bytes of memory.

    Under the address sanitizer, which reserves terabytes, this does nothing; run_child limits the size of
    each array.
    """
    if "libasan" in os.environ.get("LD_PRELOAD", ""):
        return
    with open("/proc/self/statm", encoding="utf-8") as f:
        used = int(f.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + room, used + room))


def run_child(code: str, seconds: float = 120, **env: str) -> str:
    """Run Python source and return its output. Fails if the process crashes or takes too long."""
    environment = {**os.environ, **env}
    if "ASAN_OPTIONS" in environment:
        environment["ASAN_OPTIONS"] += f":max_allocation_size_mb={ROOM >> 20}"
    p = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         encoding="utf-8", env=environment, cwd=os.path.dirname(__file__))
    try:
        out, _ = p.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        p.kill()
        out, _ = p.communicate()
        raise AssertionError(f"did not end within {seconds} s; the last it said:\n{out[-2000:]}") from None
    assert p.returncode == 0, f"exit status {p.returncode}; the last it said:\n{out[-2000:]}"
    return out
