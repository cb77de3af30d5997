"""Two machines, simulated by network namespaces where that is permitted."""
import os
import subprocess
import sys

import pytest

from common import HANGS
from dist import comm_laws
from dist.ranks import command, environment, mpi, run_command


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=HANGS)


@pytest.fixture
def machines(tmp_path):
    """Create {address: namespace} of two connected namespaces, and a program that runs a command in one, like
    ssh.
    """
    names = {f"10.99.7.{i}": f"flowedu{os.getpid()}n{i}" for i in (1, 2)}
    (first, a), (second, b) = names.items()
    try:
        for n in names.values():
            ip("netns", "add", n)
        ip("link", "add", "eth1", "netns", a, "type", "veth", "peer", "name", "eth1", "netns", b)
        for address, n in names.items():
            ip("-n", n, "addr", "add", f"{address}/24", "dev", "eth1")
            ip("-n", n, "link", "set", "lo", "up")
            ip("-n", n, "link", "set", "eth1", "up")
    except (OSError, subprocess.CalledProcessError) as error:
        _remove(names)
        pytest.skip(f"this machine permits no network namespaces: {error}")
    shell = tmp_path / "shell"
    shell.write_text(f"""#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
host=$1; shift
case $host in {first}) n={a};; *) n={b};; esac
exec ip netns exec $n sh -c "$*"
""", encoding="utf-8")
    shell.chmod(0o755)
    yield names, shell
    _remove(names)


def _remove(names):
    for n in names.values():
        subprocess.run(["ip", "netns", "del", n], capture_output=True, check=False)


def on_first(machines, folder, text, *options):
    names, shell = machines
    (folder / "script.py").write_text(text, encoding="utf-8")
    first = next(iter(names))
    cmd = ["ip", "netns", "exec", names[first], *command("--hosts", ",".join(f"{a}:2" for a in names),
                                                         *options)]
    return run_command([*cmd, str(folder / "script.py")], env=environment(HYDRA_LAUNCHER="ssh",
                                                                          HYDRA_LAUNCHER_EXEC=str(shell)))


@mpi
def test_laws_on_two_machines(machines, tmp_path):
    with open(comm_laws.__file__, encoding="utf-8") as f:
        done = on_first(machines, tmp_path, f.read())
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {r} of 4 ok, machine {r // 2} of 2" for r in range(4)]


@mpi
def test_one_is_killed_on_the_other_machine(machines, tmp_path):
    done = on_first(machines, tmp_path, """
import os, signal
import flowedu as flow
flow.comm.barrier()
if flow.env.get_rank() == 3:
    os.kill(os.getpid(), signal.SIGKILL)
flow.comm.all_reduce(flow.ones(3))
""")
    assert done.returncode != 0 and "launch: rank 3 (process " in done.stderr, (done.stdout, done.stderr)


@mpi
def test_machines_started_by_hand(machines, tmp_path):
    names, _ = machines
    (first, a), (_, b) = names.items()
    (tmp_path / "script.py").write_text("import flowedu as flow\nprint(flow.env.get_rank(), "
                                        "flow.env.get_node_rank())\n")
    words = command("--nnodes", 2, "--nproc_per_node", 1, "--master_addr", first, "--master_port", 29512)
    script = str(tmp_path / "script.py")
    other = subprocess.Popen(["ip", "netns", "exec", b, *words, "--node_rank", "1", script],
                             env=environment(),
                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=sys.stderr.fileno())
    done = run_command(["ip", "netns", "exec", a, *words, "--node_rank", "0", script])
    assert (done.returncode, other.wait(HANGS)) == (0, 0), done.stderr
    assert sorted(done.stdout.splitlines()) == ["0 0", "1 1"]
