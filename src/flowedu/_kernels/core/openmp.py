"""OpenMP wait policy of idle threads.

Import this before anything that is linked with OpenMP, because OpenMP reads its settings when it
loads. By default gcc's OpenMP threads spin for milliseconds after a parallel region. On a busy
machine this takes the processor from other processes: a training step got 20 times slower. A short
spin keeps back-to-back regions fast. Then the thread sleeps. A user's own settings, and a libgomp
that was loaded before (PyTorch ships the same one), take precedence. The setting is removed from
the environment at once, so child processes and other libraries do not use it.
"""
import ctypes
import os

if not os.environ.keys() & {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}:
    os.environ["GOMP_SPINCOUNT"] = "2000"
    try:
        ctypes.CDLL("libgomp.so.1")
    except OSError:                              # another compiler's OpenMP, or none
        pass
    finally:
        del os.environ["GOMP_SPINCOUNT"]
