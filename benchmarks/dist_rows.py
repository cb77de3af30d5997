"""Rows of several devices: collectives, data parallel LeNet, and the cost of a global op.

Collectives and boxing are compared with mpi4py. Collectives run in separate processes (dist_ranks.py), with
all ways of one size interleaved. The launcher gives each rank one thread, so these rows are measured once,
independent of --threads.
"""
from __future__ import annotations

import functools
import json
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import flowedu as flow
import jobs
import twins
from flowedu.core.sbp.ranks import set_virtual_devices
from launched import has_mpi, launch
from model_rows import arrays

RANKS, DTENSOR = (Path(__file__).with_name(f"{name}.py") for name in ("dist_ranks", "dist_torch"))
SIZES = {"4 KB": 4 << 10, "64 KB": 64 << 10, "1 MB": 1 << 20, "16 MB": 16 << 20, "64 MB": 64 << 20}
PEER = {"mpi": "mpi4py", "threads": "NumPy"}


@functools.cache
def _measured(engine: str, kind: str, nbytes: int, rounds: int) -> dict[str, list[float]]:
    """Return the seconds per call of each way, interleaved on two ranks."""
    return json.loads(launch(engine, RANKS, kind, nbytes, rounds))


@functools.cache
def _dtensor(kind: str, nbytes: int, rounds: int) -> dict[str, list[float]]:
    """Return the seconds of PyTorch's DTensor in two processes over gloo; {} without PyTorch."""
    if find_spec("torch") is None:
        return {}
    command = [sys.executable, str(DTENSOR), kind, str(nbytes), str(rounds)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=True,
                                     timeout=600).stdout)


def _collectives(Row, engine: str, goal: float) -> list:
    names = {("all_reduce", "out"): "all_reduce, out=", ("all_reduce", "comm"): "all_reduce",
             ("all_reduce", "perform"): "boxing P -> B", ("all_reduce", "to_global"): "P -> B, to_global",
             ("all_gather", "out"): "all_gather, out=", ("all_gather", "comm"): "all_gather",
             ("all_gather", "perform"): "boxing S(0) -> B", ("all_gather",
                                                             "to_global"): "S(0) -> B, to_global"}
    found = []
    for (kind, way), name in names.items():
        for size, nbytes in SIZES.items():
            def timed(rounds, kind=kind, way=way, nbytes=nbytes):
                times = _measured(engine, kind, nbytes, rounds)
                dtensor = _dtensor(kind, nbytes, rounds) if engine == "mpi" and way == "to_global" else {}
                return {"flowedu": times[way], PEER[engine]: times["raw"], **dtensor}
            found.append(Row(f"{engine}, 2 ranks: {name} {size}", None, goal, rounds=20, timed=timed))
    return found


def _empty_script(rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {"flowedu": [], "python": []}
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "empty.py"
        script.write_text("")
        for _ in range(rounds):
            for name, f in (("flowedu", lambda: launch("mpi", script)),
                            ("python", lambda: subprocess.run([sys.executable, "-c", "import flowedu"],
                                                              check=True))):
                start = time.perf_counter()
                f()
                times[name].append(time.perf_counter() - start)
    return times


# ---- training
def _placed():
    """Give this process two virtual devices and return their placement. Local tensors are not affected."""
    set_virtual_devices(2)
    return flow.placement("cpu", [0, 1])


def lenet():
    """Return training steps of LeNet on two virtual devices and on one device.

    They run as graph, eagerly, and as job. Each of the two devices has half the batch, and one device has the
    same number of threads.
    """
    B, S0 = flow.sbp.broadcast, flow.sbp.split(0)
    r = np.random.default_rng(1)
    x, y = r.standard_normal((100, 1, 28, 28)).astype(np.float32), r.integers(0, 10, 100)
    place, loss = _placed(), flow.nn.functional.cross_entropy
    found = {}
    for name, parallel, graph in (("flowedu", True, True), ("2 devices, eager", True, False),
                                  ("one device", False, True), ("one device, eager", False, False)):
        flow.manual_seed(0)
        model = twins.lenet(flow)
        given = flow.tensor(x), flow.tensor(y)
        if parallel:
            model = model.to_global(place, B)
            given = tuple(flow.tensor(a, placement=place, sbp=S0) for a in (x, y))
        step = (twins.graph_step if graph else _eager)(flow, model,
                                                       flow.optim.SGD(model.parameters(), lr=1e-3), loss)
        found[name] = functools.partial(step, *given)
    losses = {name: [f().numpy().item() for _ in range(3)] for name, f in found.items()}
    for name, some in losses.items():
        np.testing.assert_allclose(some, losses["one device"], rtol=1e-4, err_msg=name)
    flow.manual_seed(0)
    found["job, 2 devices"] = jobs.lenet(arrays(twins.lenet(flow)), x, y, _on_both)
    return found


def _eager(flow, model, optimizer, loss):
    return twins.eager_step(model, optimizer, loss)


def _on_both():
    """Return the config of a job on two devices, which splits the batch over them."""
    flow.config.cpu_device_num(2)
    config = flow.function_config()
    config.default_placement_scope(flow.scope.placement("cpu", "0:0-1"))
    return config


# ---- one op
def _op(f, shape):
    """Return calls of f on local tensors, and on global tensors on one device and on two."""
    a, b = np.random.default_rng(0).standard_normal((2, *shape)).astype(np.float32)
    both, one = _placed(), flow.placement("cpu", [0])
    found, results = {}, []
    for name, given in (("flowedu", {"placement": one, "sbp": flow.sbp.broadcast}), ("without", {}),
                        ("2 devices", {"placement": both, "sbp": flow.sbp.split(0)})):
        x = flow.tensor(a, **given)
        y = flow.tensor(b, **given) if f is _add or not given else flow.tensor(
            b, placement=given["placement"], sbp=flow.sbp.broadcast)
        found[name] = functools.partial(f, x, y)
        results.append(found[name]().numpy())
    for z in results[1:]:
        np.testing.assert_allclose(results[0], z, rtol=1e-5, atol=1e-4)
    return found


def _add(x, y):
    return x + y


def _matmul(x, y):
    return x @ y


def rows(Row) -> list:
    """Return the rows. `target`: ratio to the peer, or to the same call without devices; 0 for no target."""
    overhead = 1 / 1.5
    found = [
        Row("LeNet batch 100 on 2 virtual devices", lambda threads: lenet(), 0, rounds=20),
        Row("global add on one device, 4x4", lambda threads: _op(_add, (4, 4)), overhead, inner=20000,
            rounds=20),
        Row("global add on one device, 1 MB", lambda threads: _op(_add, (512, 512)), 0.95, inner=500,
            rounds=20),
        Row("global matmul on one device, 512", lambda threads: _op(_matmul, (512, 512)), 0.95, inner=20,
            rounds=20),
        *_collectives(Row, "threads", 0)]
    if not has_mpi():
        return [*found, Row("mpi: left out, pip install mpi4py mpich", None, 0, timed=lambda rounds: {})]
    return [*found, *_collectives(Row, "mpi", 0.8),
            Row("launch of an empty script on 2 ranks", None, 0, rounds=5, timed=_empty_script)]
