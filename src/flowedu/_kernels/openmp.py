"""How idle threads wait. Imported before anything that is linked with OpenMP, which reads its settings when it loads.

gcc's OpenMP lets threads spin for milliseconds after a parallel region. On a machine with other work that steals the
processor from whoever has something to do: a training step got 20 times slower. A short spin keeps back-to-back regions
fast; after it a thread sleeps. Settings of the user's own win.
"""
import os

if not os.environ.keys() & {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}:
    os.environ["GOMP_SPINCOUNT"] = "2000"
