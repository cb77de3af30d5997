"""Laws of chapter 6: a ring all-reduce on real ranks (threads), and the layouts of an MLP on four devices."""
from __future__ import annotations

import threading
from contextlib import contextmanager

import numpy as np

import flowedu as flow
from flowedu import nn
from flowedu.distributed import comm
from flowedu.errors import CommError
from flowedu_course.laws import SMALLEST, Words, holds, pair
from flowedu_course.laws.boxing import devices


# ---- a ring
def _rings(rng, size):
    """Draw (number of ranks, shape of each rank's tensor)."""
    return rng.randint(1, min(4, 1 + size)), (*([2] if rng.random() < 0.3 else []), rng.randint(1, 3 * size))


def _smaller_rings(case):
    k, (*rows, n) = case
    others = ((k - 1, (*rows, n)), (k, (n,)), (k, (*rows, n // 2)), (k, (*rows, n - 1)))
    yield from (c for c in others if c[0] >= 1 and c[1][-1] >= 1 and c != case)


@contextmanager
def _counted():
    """Count the elements sent by flow.comm.send inside the context, as {(from, to): elements}."""
    sent, lock, plain = {}, threading.Lock(), comm.send

    def send(input, dst, send_meta=True):
        with lock:
            key = flow.env.get_rank(), dst
            sent[key] = sent.get(key, 0) + input.numel()
        plain(input, dst, send_meta)

    comm.send = send
    try:
        yield sent
    finally:
        comm.send = plain


def _numbers(shape):
    """Return 1, 2, ... as float32, or as float64 or int64 plus an offset that float32 would round."""
    kind = (np.float32, np.float64, np.int64)[shape[-1] % 3]
    more = {np.float32: 0, np.float64: 2.0 ** -30, np.int64: 2 ** 32}[kind]
    return (np.arange(1, 1 + np.prod(shape)) + more).astype(kind).reshape(shape)


def _ran(case, yours):
    """Return (result of each rank, {(from, to): elements}).

    Rank r has 10**r times the same values, so that a sum shows which ranks contributed to it.
    """
    k, shape = case

    def program():
        x = flow.tensor(_numbers(shape) * 10 ** flow.env.get_rank())
        before, got = x.numpy().copy(), yours(x)
        if not np.array_equal(x.numpy(), before):
            return Words("its input x, modified")
        return got.numpy() if isinstance(got, flow.Tensor) else got

    with _counted() as sent:
        return flow.distributed.spawn(program, k), sent


def _describe_ring(case):
    k, shape = case
    return f"{k} rank{'s' * (k > 1)}, {_numbers(shape).dtype} numbers of shape {shape} each"


EDGES = [(1, (1,)), (2, (1,)), (4, (1,)), (4, (4,)), (4, (5,)), (3, (2, 2))]


@holds("every rank gets the sum", _rings, _smaller_rings, cases=24, told=_describe_ring, edges=EDGES)
def sums(case, yours):
    try:
        return _misses(case, _ran(case, yours)[0])
    except CommError as error:
        waiting = [line.strip().removeprefix("got:").strip() for line in str(error).splitlines()
                   if " waits " in line]
        return [_case_line(case),
                *[f"  {line}"[:100] for line in waiting or [str(error).splitlines()[0]]][:5]]


def _case_line(case):
    return f"{SMALLEST}{_describe_ring(case)}; rank r has 10 ** r times {_numbers(case[1]).flat[0]}, ..."


def _misses(case, found):
    """Return the lines of a failure if a rank's result is not the sum, or None."""
    k, shape = case
    said, want = _case_line(case), _numbers(shape) * sum(10 ** r for r in range(k))
    for r, got in enumerate(found):
        if getattr(got, "shape", None) != want.shape or not np.array_equal(got, want):
            mine = got if isinstance(got, Words) else np.asarray(got).tolist()
            return [said, f"  rank {r}", *pair("should be", mine, want.tolist())]
        if got.dtype != want.dtype:
            return [said, f"  rank {r}", *pair("should be", Words(got.dtype), Words(want.dtype))]
    return None


@holds("each rank sends only to the next rank", _rings, _smaller_rings, cases=12, told=_describe_ring,
       edges=EDGES)
def neighbours(case, yours):
    k, shape = case
    _, sent = _ran(case, yours)
    wrong = sorted(e for e in sent if e[1] != (e[0] + 1) % k)
    if wrong or (k > 1 and not sent):
        return [f"  rank {wrong[0][0]} sends to rank {wrong[0][1]}" if wrong else "  no rank calls comm.send",
                "  each rank sends only to the next rank, and the last rank to the first"]
    return None


def ring_all_reduce_stars(yours, seed=0):
    """Return the most elements that a rank sends to the next one, of 4 ranks, for 12 plus for 13 elements."""
    most = 0
    for case in ((4, (12,)), (4, (13,))):
        found, sent = _ran(case, yours)
        sums.accept(case, _misses(case, found))
        most += max(sent.values(), default=0)
    return {"sent": most}


# ---- a plan
SHAPES = {"x": 2, "labels": 1, "0.weight": 2, "0.bias": 1, "2.weight": 2, "2.bias": 1}
DATA = dict.fromkeys(SHAPES, "B") | {"x": "S0", "labels": "S0"}
FEW, MANY = 16, 4096


def _bill(plan, rows):
    """Return (bytes of communication in a training step, largest number of parameter bytes on a device)."""
    flow.manual_seed(0)
    sbp = {n: flow.sbp.broadcast if s == "B" else flow.sbp.split(int(s[1:])) for n, s in plan.items()}
    with devices(4):
        place = flow.placement("cpu", [0, 1, 2, 3])
        model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(),
                              nn.Linear(512, 64)).to_global(place, flow.sbp.broadcast)
        for n, p in model.named_parameters():
            p.data = p.detach().to_global(sbp=sbp[n])

        class Train(nn.Graph):
            def __init__(self):
                super().__init__()
                self.model, self.loss_fn = model, nn.CrossEntropyLoss()
                self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))

            def build(self, x, labels):
                loss = self.loss_fn(self.model(x), labels)
                loss.backward()
                return loss

        graph = Train()
        graph(flow.randn(rows, 256, placement=place, sbp=sbp["x"]),
              flow.randint(0, 64, (rows,), placement=place, sbp=sbp["labels"]))
        return graph.bytes, max(m.parameters for m in graph.memory().values())


def _describe(plan):
    return "  yours           " + ", ".join(f"{n} {plan[n]}" for n in SHAPES)


_describe_plan = "plan({})".format


@holds("each name has a layout", lambda rng, size: rng.choice((FEW, MANY)), cases=6, told=_describe_plan,
       label="case")
def plan_named(case, yours):
    got = yours(case)
    if not isinstance(got, dict) or set(got) != set(SHAPES):
        return pair("should be", got, Words(f"a dict of {', '.join(SHAPES)}"))
    for name, axes in SHAPES.items():
        allowed = ["B", *(f"S{i}" for i in range(axes))]
        if got[name] not in allowed:
            return pair("should be", {name: got[name]}, Words(" or ".join(allowed)))
    return None


@holds("16 rows: at most 1/100 of the bytes", lambda rng, size: FEW, cases=1, told=_describe_plan,
       label="case")
def few_rows(case, yours):
    plan = yours(case)
    moved, kept = _bill(plan, case)
    most, whole = _bill(DATA, case)
    if kept > 0.3 * whole:
        return [_describe(plan), f"  a device stores {kept:,} of {whole:,} bytes of weights"]
    if moved > most / 100:
        return [_describe(plan), f"  a step moves {moved:,} bytes; data parallelism moves {most:,}",
                "  1/100 of that is possible"]
    return None


@holds("4,096 rows: at most data parallelism's bytes", lambda rng, size: MANY, cases=1, told=_describe_plan,
       label="case")
def many_rows(case, yours):
    plan = yours(case)
    moved, most = _bill(plan, case)[0], _bill(DATA, case)[0]
    if moved > most:
        return [_describe(plan), f"  a step moves {moved:,} bytes; data parallelism moves {most:,}"]
    return None
