"""Chapter 6: a ring of real ranks (threads), and a plan for an MLP on four devices."""
from __future__ import annotations

import threading
from contextlib import contextmanager

import numpy as np

from flowedu.learn.laws import Law, Words, pair
from flowedu.learn.laws.boxing import devices


# ---- a ring
def _rings(rng, size):
    """(ranks, shape of what each has)"""
    return rng.randint(1, min(4, 1 + size)), (*([2] if rng.random() < 0.3 else []), rng.randint(1, 3 * size))


def _smaller_rings(case):
    k, (*rows, n) = case
    others = ((k - 1, (*rows, n)), (k, (n,)), (k, (*rows, n // 2)), (k, (*rows, n - 1)))
    yield from (c for c in others if c[0] >= 1 and c[1][-1] >= 1 and c != case)


@contextmanager
def _counted():
    """Inside, {(from, to): numbers sent}, of flow.comm.send."""
    import flowedu as flow
    from flowedu.distributed import comm
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
    """1, 2, ...; in turn as float32, as doubles with a fraction, and as whole numbers that no float32 holds."""
    kind = (np.float32, np.float64, np.int64)[shape[-1] % 3]
    more = {np.float32: 0, np.float64: 2.0 ** -30, np.int64: 2 ** 32}[kind]
    return (np.arange(1, 1 + np.prod(shape)) + more).astype(kind).reshape(shape)


def _ran(case, yours):
    """(what each rank gets, {(from, to): numbers}). A sum of powers of ten tells whose numbers are in it."""
    import flowedu as flow
    k, shape = case

    def program():
        x = flow.tensor(_numbers(shape) * 10 ** flow.env.get_rank())
        before, got = x.numpy().copy(), yours(x)
        if not np.array_equal(x.numpy(), before):
            return Words("its own x, written to")
        return got.numpy() if isinstance(got, flow.Tensor) else got

    with _counted() as sent:
        return flow.distributed.spawn(program, k), sent


def _ring_words(case):
    k, shape = case
    return f"{k} rank{'s' * (k > 1)}, {_numbers(shape).dtype} numbers of shape {shape} each"


def _sums_judged(case, yours):
    from flowedu.errors import CommError
    k, shape = case
    said = f"  smallest case   {_ring_words(case)}; rank r has 10 ** r times {_numbers(shape).flat[0]}, ..."
    try:
        found, _ = _ran(case, yours)
    except CommError as error:
        told = [line.strip().removeprefix("got:").strip() for line in str(error).splitlines() if " waits " in line]
        return [said, *[f"  {line}"[:100] for line in told or [str(error).splitlines()[0]]][:5]]
    want = _numbers(shape) * sum(10 ** r for r in range(k))
    for r, got in enumerate(found):
        if getattr(got, "shape", None) != want.shape or not np.array_equal(got, want):
            mine = got if isinstance(got, Words) else np.asarray(got).tolist()
            return [said, f"  rank {r}", *pair("should be", mine, want.tolist())]
        if got.dtype != want.dtype:
            return [said, f"  rank {r}", *pair("should be", Words(got.dtype), Words(want.dtype))]
    return None


def _neighbours_judged(case, yours):
    k, shape = case
    _, sent = _ran(case, yours)
    wrong = sorted(e for e in sent if e[1] != (e[0] + 1) % k)
    if wrong or (k > 1 and not sent):
        return [f"  smallest case   {_ring_words(case)}",
                f"  rank {wrong[0][0]} sends to rank {wrong[0][1]}" if wrong else "  nobody calls comm.send",
                "  a rank sends to the next one only, the last to the first"]
    return None


sums = Law("every rank gets the sum", _rings, _sums_judged, _smaller_rings, cases=24, told=_ring_words)
neighbours = Law("a rank sends to the next one only", _rings, _neighbours_judged, _smaller_rings, cases=12,
                 told=_ring_words)


def ring_all_reduce_stars(yours, seed=0):
    """The most that a rank sends, on 4 ranks, of 12 numbers and of 13."""
    return {"sent": sum(max(_ran((4, (n,)), yours)[1].values(), default=0) for n in (12, 13))}


# ---- a plan
SHAPES = {"x": 2, "labels": 1, "0.weight": 2, "0.bias": 1, "2.weight": 2, "2.bias": 1}
DATA = dict.fromkeys(SHAPES, "B") | {"x": "S0", "labels": "S0"}
FEW, MANY = 16, 4096


def _bill(plan, rows):
    """(loss of a step, its bytes, the most bytes of parameters on a device)"""
    import flowedu as flow
    from flowedu import nn
    flow.manual_seed(0)
    sbp = {n: flow.sbp.broadcast if s == "B" else flow.sbp.split(int(s[1:])) for n, s in plan.items()}
    with devices(4):
        place = flow.placement("cpu", [0, 1, 2, 3])
        model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 64)).to_global(place, flow.sbp.broadcast)
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


def _told(plan):
    return "  yours           " + ", ".join(f"{n} {plan[n]}" for n in SHAPES)


def _named_judged(case, yours):
    got = yours(case)
    if not isinstance(got, dict) or set(got) != set(SHAPES):
        return [f"  case            plan({case})", *pair("should be", got, Words(f"a dict of {', '.join(SHAPES)}"))]
    for name, axes in SHAPES.items():
        allowed = ["B", *(f"S{i}" for i in range(axes))]
        if got[name] not in allowed:
            return [f"  case            plan({case})", *pair("should be", {name: got[name]}, Words(" or ".join(allowed)))]
    return None


def _few_judged(case, yours):
    plan = yours(case)
    moved, kept = _bill(plan, case)
    most, whole = _bill(DATA, case)
    if kept > 0.3 * whole:
        return [f"  case            plan({case})", _told(plan), f"  a device keeps {kept:,} of {whole:,} bytes of weights"]
    if moved > most / 100:
        return [f"  case            plan({case})", _told(plan), f"  a step moves {moved:,} bytes, data parallel {most:,}",
                "  a hundredth of that is possible"]
    return None


def _many_judged(case, yours):
    plan = yours(case)
    moved, most = _bill(plan, case)[0], _bill(DATA, case)[0]
    if moved > most:
        return [f"  case            plan({case})", _told(plan), f"  a step moves {moved:,} bytes, data parallel {most:,}"]
    return None


_plan_words = "plan({})".format
plan_named = Law("a layout for each name", lambda rng, size: rng.choice((FEW, MANY)), _named_judged, cases=6,
                 told=_plan_words)
few_rows = Law("16 rows: a hundredth of the bytes", lambda rng, size: FEW, _few_judged,
               cases=1, told=_plan_words)
many_rows = Law("4,096 rows: as few as data parallelism", lambda rng, size: MANY, _many_judged, cases=1, told=_plan_words)
