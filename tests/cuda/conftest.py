"""CUDA kernels: only where FLOWEDU_CUDA=sim or gpu says so (`make test-cuda` does), because `make test` sets up
neither."""
import os
from pathlib import Path

CHOSEN = os.environ.get("FLOWEDU_CUDA") in ("sim", "gpu")
WITHOUT = "test_cuda_source.py"                         # what is so without them
collect_ignore = [p.name for p in Path(__file__).parent.glob("test_*.py") if (p.name == WITHOUT) == CHOSEN]

if CHOSEN:
    os.environ.setdefault("FLOWEDU_CUDA_CHECK", "1")
    os.environ.setdefault("FLOWEDU_CUDA_DEVICES", "4")
    import flowedu as flow

    assert flow.cuda.is_available()                     # the simulator must be there before PyCUDA looks for a driver
