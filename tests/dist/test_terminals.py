"""Laws of ranks that are started by hand with WORLD_SIZE, RANK, MASTER_ADDR, and MASTER_PORT."""
import os
import socket
import subprocess
import sys
import textwrap

import pytest

from common import HANGS
from dist.ranks import SRC, mpi
from flowedu.distributed import terminals
from flowedu.errors import CommError


def start_ranks(tmp_path, source: str, k: int, *words: str) -> list[tuple[int, str, str]]:
    """Run a program in k processes, and return (exit code, stdout, stderr) of each rank."""
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent(source), encoding="utf-8")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(k), "PYTHONPATH": SRC,
              "FLOWEDU_TIMEOUT": str(HANGS), "OMP_NUM_THREADS": "1", "FLOWEDU_NUM_THREADS": "1"}
    ranks = [subprocess.Popen([sys.executable, *words, str(file)], encoding="utf-8", stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env={**os.environ, **shared, "RANK": str(rank),
                                                           "LOCAL_RANK": str(rank)})
             for rank in range(k)]
    outputs = [rank.communicate(timeout=HANGS) for rank in ranks]
    return [(rank.returncode, *output) for rank, output in zip(ranks, outputs)]


@mpi
@pytest.mark.parametrize("k", [2, 3])
def test_ranks_in_terminals_compute_together(tmp_path, k):
    results = start_ranks(tmp_path, """
        import flowedu as flow
        rank = flow.env.get_rank()
        x = flow.full((1, 2), float(rank)).to_global(flow.placement.all("cpu"), flow.sbp.split(0))
        print(rank, flow.env.get_world_size(), flow.env.get_local_rank(), x.numpy().tolist())
        """, k)
    rows = [[float(rank)] * 2 for rank in range(k)]
    assert results == [(0, f"{rank} {k} {rank} {rows}\n", "") for rank in range(k)]


@mpi
def test_ranks_in_terminals_under_the_mock(tmp_path):
    results = start_ranks(tmp_path, "import oneflow as flow\nprint(flow.env.get_rank())\n", 2,
                          "-m", "flowedu.mock", "--as", "oneflow")
    assert results == [(0, f"{rank}\n", "") for rank in range(2)]


@mpi
def test_all_ranks_in_terminals_end_if_one_fails(tmp_path):
    results = start_ranks(tmp_path, """
        import flowedu as flow
        if flow.env.get_rank() == 1:
            raise ValueError("planted")
        flow.ones(2).to_global(flow.placement.all("cpu"), flow.sbp.partial_sum).numpy()
        """, 2)
    assert all(code for code, _, _ in results) and "ValueError: planted" in results[1][2]


@pytest.mark.parametrize("variables", [{}, {"RANK": "2"}, {"MASTER_PORT": "x"}, {"MASTER_ADDR": ""}])
def test_incomplete_variables_are_refused(variables, monkeypatch):
    complete = {"RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"} if variables else {}
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {**complete, **variables}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(CommError, match=r"(?s)mpiexec did not start.*--nproc_per_node 2"):
        terminals.connect(2)


def test_a_folder_that_others_can_write_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(terminals, "Path", lambda name: tmp_path)
    (tmp_path / f"flowedu-{os.getuid()}").mkdir()
    (tmp_path / f"flowedu-{os.getuid()}").chmod(0o777)
    with pytest.raises(CommError, match="not safe"):
        terminals.meeting_place("29500", "0")
