"""How idle threads wait. Imported before anything that is linked with OpenMP, which reads its settings when it loads.

gcc's OpenMP lets threads spin for milliseconds after a parallel region. On a machine with other work that steals the
processor from whoever has something to do: a training step got 20 times slower. A short spin keeps back-to-back regions
fast; after it a thread sleeps. Settings of the user's own win, and so does a library that somebody loaded before us
(PyTorch brings the same one). The setting is ours alone: neither child processes nor others find it in the environment.
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
