"""Selection of CUDA tests: they run only with FLOWEDU_CUDA=sim or gpu (`make test-cuda` sets it), because
`make test` installs neither.
"""
import os
from pathlib import Path

CHOSEN = os.environ.get("FLOWEDU_CUDA") in ("sim", "gpu")
WITHOUT = "test_cuda_source.py"                         # runs only without a CUDA device
collect_ignore = [p.name for p in Path(__file__).parent.glob("test_*.py") if (p.name == WITHOUT) == CHOSEN]

if CHOSEN:
    os.environ.setdefault("FLOWEDU_CUDA_CHECK", "1")
    os.environ.setdefault("FLOWEDU_CUDA_DEVICES", "4")
    import flowedu as flow

    assert flow.cuda.is_available()  # start the simulator before PyCUDA searches for a driver
