"""Ranks that are processes: the laws of test_comm.py under mpiexec, and errors that end all ranks."""
import re
from pathlib import Path

import pytest

from dist import comm_laws
from dist.ranks import launch, mpi

LAWS = Path(comm_laws.__file__).read_text(encoding="utf-8")
START = """
    import os, signal, sys, time
    import numpy as np
    from flowedu.core.sbp.ranks import current
    c = current().comm(current().rank)
    ones = np.ones(4, "f4")
"""


@mpi
@pytest.mark.parametrize("k, options", [(2, ()), (3, ("debug",)), (4, ())])
def test_collectives_on_processes_follow_all_laws(tmp_path, k, options):
    said = launch(tmp_path, LAWS, k, args=options)
    assert said.code == 0, said.err
    assert sorted(said.out.splitlines()) == [f"rank {r} of {k} ok, machine 0 of 1" for r in range(k)]


def ends(tmp_path, script: str, *words, k: int = 2, options=(), env=None):
    """Assert that the script ends with an error that contains all of `words`."""
    said = launch(tmp_path, START + script, k, *options, env=env)
    assert said.code != 0, said.err
    for word in words:
        assert word in said.err, said.err
    return said


@mpi
def test_a_killed_rank_ends_all_and_is_reported(tmp_path):
    said = ends(tmp_path, """
    c.barrier()
    if c.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    c.all_reduce(ones)
    """, "launch: rank 1 (process ")
    assert said.code in (9, 137)
    assert "was killed by signal 9 (SIGKILL)" in said.err or "ended first" in said.err, said.err


@mpi
def test_an_exception_of_one_rank_ends_all_and_is_reported(tmp_path):
    ends(tmp_path, """
    if c.rank == 1:
        raise ValueError("mine")
    c.all_reduce(ones)
    """, "[rank 1] ValueError: mine", 'script.py", line 9, in <module>')


@mpi
def test_an_exception_ends_ranks_that_compute(tmp_path):
    ends(tmp_path, """
    if c.rank == 1:
        raise ValueError("mine")
    while True:
        pass
    """, "[rank 1] ValueError: mine")


@mpi
def test_a_call_to_a_finished_rank_is_reported(tmp_path):
    ends(tmp_path, """
    if c.rank != 1:
        c.all_reduce(ones)
    """, "a rank waits for one that has ended", "rank 1 has finished",
         "rank 0 waits in all_reduce sum float32 (4,) of ranks 0, 1, script.py:9: c.all_reduce(ones)")


@mpi
@pytest.mark.parametrize("options", [(), ("--debug",)], ids=["default", "debug"])
@pytest.mark.parametrize("one, other, words", [
    ("c.all_reduce(ones)", "c.all_gather(ones)", ("all_reduce sum float32 (4,)", "all_gather float32 (4,)")),
    ("c.all_reduce(ones)", "c.all_reduce(np.ones(5, 'f4'))", ("sum float32 (4,)", "sum float32 (5,)")),
    ("c.all_reduce(ones)", "c.all_reduce(ones.view('i4'))", ("float32 (4,)", "int32 (4,)")),
    ("c.all_reduce(np.ones(200_000))", "c.all_reduce(np.ones(300_000))", ("float64 (200000,)",
                                                                          "float64 (300000,)")),
    ("c.all_reduce(ones)", "c.barrier()", ("all_reduce sum", "barrier of ranks 0, 1")),
], ids=["collective", "shape", "dtype", "large", "barrier"])
def test_different_calls_are_reported(tmp_path, one, other, words, options):
    ends(tmp_path, f"""
    c.barrier()
    if c.rank == 0:
        {one}
    else:
        {other}
    """, "collectives of one group differ", *words, options=options)


@mpi
def test_a_cycle_of_waiting_ranks_is_reported(tmp_path):
    """Rank 0 waits for 1, 1 for 2, and 2 for 0."""
    ends(tmp_path, "    c.recv((c.rank + 1) % 3, (1,), 'f4')\n", "ranks wait for each other",
         "rank 0 waits in recv from rank 1 float32 (1,)", "rank 2 waits in recv from rank 0", k=3)


@mpi
def test_overlapping_groups_in_different_order(tmp_path):
    ends(tmp_path, "    c.barrier((0, 1) if c.rank == 0 else (1, 2) if c.rank == 1 else (0, 2))\n",
         "ranks wait for each other", "rank 0 waits in new group of ranks 0, 1", k=3)


@mpi
def test_messages_of_wrong_size(tmp_path):
    ends(tmp_path, "    c.exchange([(1 - c.rank, np.ones(3))], [(1 - c.rank, (4,), 'f8')])\n",
         "expects another array than rank", "send to rank", "float64 (3,)", "float64 (4,)")


@mpi
def test_a_message_without_receiver(tmp_path):
    ends(tmp_path, "    c.rank and c.send(0, np.ones(500_000))\n",
         "rank 1 sent arrays that were not received")


@mpi
def test_a_long_wait_is_reported_and_ends(tmp_path):
    said = ends(tmp_path, """
    c.barrier()
    if c.rank == 2:
        time.sleep(1e5)
    c.barrier()
    """, "(FLOWEDU_TIMEOUT)", k=3, env={"FLOWEDU_NOTICE": "0.8", "FLOWEDU_TIMEOUT": "3"})
    told = (r"rank [01] has waited \d+ s in barrier of ranks 0, 1, 2, script.py:11: c.barrier\(\) for "
            r"ranks .*2")
    for words in (told, r"has waited \d+ s for ranks .*2 \(FLOWEDU_TIMEOUT\)"):
        assert re.search(words, said.err), said.err


@mpi
def test_a_slow_rank_is_waited_for(tmp_path):
    said = launch(tmp_path, START + """
    time.sleep(2.5 * c.rank)
    print(c.all_reduce(ones)[0], flush=True)
    """, 2)
    assert said.code == 0 and said.out.split() == ["2.0", "2.0"], said.err


@mpi
def test_the_exit_code_of_a_rank_is_reported(tmp_path):
    assert ends(tmp_path, "    if c.rank == 1: sys.exit(3)\n    c.barrier()\n",
                "[rank 1] exited with code 3").code == 3
    said = ends(tmp_path, "    if c.rank == 1: os._exit(0)\n    c.barrier()\n", "without a word (os._exit")
    # in hydra's words
    assert re.search(r"rank 1 (\(process \d+ on .*\) ended first, |left )without", said.err), said.err


@mpi
def test_an_asynchronous_sum_that_one_rank_omits(tmp_path):
    ends(tmp_path, """
    wait = c.start_all_reduce(ones)
    if c.rank == 0:
        c.start_all_reduce(np.ones(2))()
    """, "start_all_reduce sum float64 (2,)", "rank 1 has finished")
