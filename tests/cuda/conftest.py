"""CUDA kernels: only where FLOWEDU_CUDA=sim or gpu says so (`make test-cuda` does), because `make test` sets up neither."""
import os

CHOSEN = os.environ.get("FLOWEDU_CUDA") in ("sim", "gpu")
collect_ignore_glob = [] if CHOSEN else ["test_*.py"]

if CHOSEN:
    os.environ.setdefault("FLOWEDU_CUDA_CHECK", "1")
    os.environ.setdefault("FLOWEDU_CUDA_DEVICES", "4")
    import flowedu as flow

    assert flow.cuda.is_available()                     # the simulator must be there before PyCUDA looks for a driver
