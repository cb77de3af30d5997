"""What the exercises of chapter 6 must do."""
import contextlib
import itertools
import threading

import numpy as np

import flowedu as flow
from flowedu import comm, nn
from flowedu.core.sbp.ranks import current
from flowedu.core.sbp.sbp import pretty
from flowedu.core.sbp.signature import signatures
from flowedu.core.values.spec import Spec
from flowedu.learn.exercises import Wrong, expect


@contextlib.contextmanager
def devices(k):
    before = current().size
    flow.distributed.set_virtual_devices(k)
    try:
        yield
    finally:
        flow.distributed.set_virtual_devices(before)


def said(signature):
    return ", ".join(map(pretty, signature[:-1])) + " -> " + pretty(signature[-1])


# ---- legal
def scatter(a, sbp):
    if sbp == "B":
        return [a, a]
    if sbp == "P":
        part = 4 * np.random.default_rng(3).standard_normal(a.shape)
        return [part, a - part]
    return np.split(a, 2, int(sbp[1:]))


def gather(parts, sbp):
    if sbp == "B":
        return parts[0] if parts[0].shape == parts[1].shape and np.allclose(*parts) else None
    with contextlib.suppress(ValueError):
        return parts[0] + parts[1] if sbp == "P" else np.concatenate(parts, int(sbp[1:]))


def soft(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


FUNCTIONS = {"matmul": (np.matmul, ((4, 6), (6, 8)), {}), "add": (np.add, ((4, 6), (4, 6)), {}),
             "mul": (np.multiply, ((4, 6), (4, 6)), {}), "softmax": (soft, ((4, 6),), {"axis": 1}),
             "sum": (lambda x: x.sum(0), ((4, 6),), {"axis": (0,)})}


def check_legal(f):
    rng = np.random.default_rng(0)
    for name, (function, shapes, attrs) in FUNCTIONS.items():
        op = flow.ops.REGISTRY[name]
        want = set(signatures(op, [Spec(s, flow.float32) for s in shapes], op.complete(attrs)))
        got = f(function, [rng.standard_normal(s) for s in shapes], scatter, gather)
        if not isinstance(got, (set, frozenset)):
            raise Wrong(f"legal gives {got!r} for {name}", "a set of tuples such as ('S0', 'B', 'S0')")
        if want - got:
            raise Wrong(f"{name}: {said(min(want - got))} is legal, and not in the set",
                        "try every sbp of every input, and compare what comes out with each sbp of the output")
        if got - want:
            raise Wrong(f"{name}: {min(got - want)} is not legal",
                        "gather the parts, and compare with f of the whole inputs")


# ---- all_reduce
def check_all_reduce(f):
    rng = np.random.default_rng(0)
    for k, shape in ((2, (4, 3)), (4, (8, 2)), (3, (7,))):
        parts, sent = [rng.integers(0, 99, shape).astype(np.float64) for _ in range(k)], [0] * k

        def send(source, target, array, sent=sent):
            sent[source] += np.size(array) * (source != target)
            return np.array(array)
        got, n = f([p.copy() for p in parts], send), int(np.prod(shape))
        if not isinstance(got, (list, tuple)) or len(got) != k:
            raise Wrong(f"all_reduce gives {got!r}", f"a list of {k} arrays, one for each device")
        for d, a in enumerate(got):
            expect(f"on {k} devices, device {d} has", a, sum(parts), "the sum of all parts, in their shape")
        if sum(sent) < 2 * (k - 1) * n:
            raise Wrong(f"{sum(sent)} numbers were sent in all; a device has used what nobody sent it",
                        "each piece of the sum needs k-1 addends from elsewhere, and goes to k-1 others")
        share = 2 * (k - 1) * -(-n // k)
        if max(sent) > share:
            raise Wrong(f"device {sent.index(max(sent))} sends {max(sent)} numbers of {sum(sent)}; its share is {share}",
                        "let device i sum the i-th piece (reduce-scatter), then hand it to the others (all-gather)")


# ---- lookup
def check_lookup(f):
    table, rng = np.arange(1.0, 22.0).reshape(7, 3), np.random.default_rng(0)
    for cuts in ((4,), (3, 5), (2, 4, 6)):
        tables, indices = np.split(table, cuts), rng.integers(0, 7, (2, 5))
        got = f([t.copy() for t in tables], indices.copy())
        if not isinstance(got, (list, tuple)) or len(got) != len(tables):
            raise Wrong(f"lookup gives {got!r}", f"a list of {len(tables)} arrays, one for each device")
        for d, (a, first, last) in enumerate(zip(got, (0, *cuts), (*cuts, 7))):
            mine = ((indices >= first) & (indices < last))[..., None]
            expect(f"rows cut at {cuts}: device {d} gives", a, np.where(mine, table[indices], 0.0),
                   "the row where the device has it, zeros where another one has")


# ---- softmax
def check_softmax(f):
    small = np.random.default_rng(0).standard_normal((4, 9)) * 3
    for x, cuts in ((small, (5,)), (small, (2, 6)), (small + 1000, (5,))):
        asked = []

        def all_reduce(arrays, op, asked=asked):
            asked.append(op)
            if any(np.shape(a) != (4, 1) for a in arrays):
                raise Wrong(f"all_reduce of {[np.shape(a) for a in arrays]}", "one number for each row is enough")
            return (np.max if op == "max" else np.sum)(arrays, 0)
        got = f(np.split(x, cuts, 1), all_reduce)
        if not isinstance(got, (list, tuple)) or len(got) != len(cuts) + 1:
            raise Wrong(f"softmax gives {got!r}", f"a list of {len(cuts) + 1} arrays, one for each device")
        for d, (a, b) in enumerate(zip(got, np.split(soft(x), cuts, 1))):
            expect(f"device {d} has", a, b, "exp(x - the largest of the whole row) / the sum over the whole row")
        if len(asked) > 2:
            raise Wrong(f"{len(asked)} all-reduces: {asked}", "the largest of each row, then the sum: two")


# ---- axes
def attention(q, k, v):
    scores = q @ k.swapaxes(2, 3)
    e = np.exp(scores - scores.max(3, keepdims=True))
    return e / e.sum(3, keepdims=True) @ v


OPS = {"norm": (lambda x: (x - x.mean(2, keepdims=True)) / x.std(2, keepdims=True), ((4, 4, 6),)),
       "attention": (attention, ((2, 2, 4, 6), (2, 2, 8, 6), (2, 2, 8, 10))),
       "gram": (lambda x: x.T @ x, ((6, 4),))}


def holds(f, inputs, signature):
    """Whether a signature without partial inputs is true."""
    try:
        parts = [f(*arrays) for arrays in zip(*[scatter(a, s) for a, s in zip(inputs, signature)])]
    except ValueError:
        return False
    got, want = gather(parts, signature[-1]), f(*inputs)
    return got is not None and got.shape == want.shape and np.allclose(got, want)


def derived(equation, inputs, rank):
    """The signatures an equation stands for; checks its form."""
    left, arrow, out = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not arrow or [len(t) for t in terms] != [a.ndim for a in inputs] or len(out) != rank:
        raise Wrong(f"{equation!r} does not fit", "a letter for each axis: 'mk,kn->mn' for two matrices and their product")
    sizes = {}
    for t, a in zip(terms, inputs):
        for letter, n in zip(t, a.shape):
            if sizes.setdefault(letter, n) != n:
                raise Wrong(f"{equation!r}: axis {letter} has the sizes {sizes[letter]} and {n}", "two axes, two letters")
    small = sorted({c for c in left + out if c.islower()})
    return {tuple(f"S{t.index(c)}" if c in t else "B" for t in terms) + (f"S{out.index(c)}" if c in out else "P",)
            for c in small}


def check_axes(f):
    given = f()
    if not isinstance(given, dict) or set(given) != set(OPS) or not all(isinstance(e, str) for e in given.values()):
        raise Wrong(f"axes gives {given!r}", "{'norm': '...->...', 'attention': ..., 'gram': ...}")
    rng = np.random.default_rng(0)
    for name, (function, shapes) in OPS.items():
        inputs = [rng.standard_normal(s) for s in shapes]
        rank = function(*inputs).ndim
        said_so = derived(given[name], inputs, rank)
        for s in sorted(said_so):
            if not holds(function, inputs, s):
                raise Wrong(f"{name}: {given[name]!r} says that {said(s)}; with numbers, it is not so",
                            "an axis that must be seen as a whole gets a capital letter")
        cuts = [["B", *[f"S{i}" for i in range(a.ndim)]] for a in inputs]
        for s in itertools.product(*cuts, ["P", *[f"S{i}" for i in range(rank)]]):
            if any(c != "B" for c in s[:-1]) and s not in said_so and holds(function, inputs, s):
                raise Wrong(f"{name}: {said(s)} would be right, too, and {given[name]!r} does not say so",
                            "which capital letter could be small?")


# ---- ring
def check_ring(f):
    k, n = 4, 12
    sent, lock, plain = {}, threading.Lock(), comm.send

    def send(input, dst, send_meta=True):
        with lock:
            sent.setdefault((flow.env.get_rank(), dst), []).append(input.numel())
        plain(input, dst, send_meta)

    def program():
        return f(flow.arange(n).float() * (flow.env.get_rank() + 1))
    comm.send = send
    try:
        got = flow.distributed.spawn(program, k)
    finally:
        comm.send = plain
    for r, y in enumerate(got):
        expect(f"rank {r} of {k} gets", y.numpy() if isinstance(y, flow.Tensor) else y,
               (np.arange(n) * sum(range(1, k + 1))).astype(np.float32), "a tensor, the sum of all ranks'")
    wrong = sorted(e for e in sent if e[1] != (e[0] + 1) % k)
    if wrong or not sent:
        raise Wrong(f"rank {wrong[0][0]} sends to rank {wrong[0][1]}" if wrong else "nobody called flow.comm.send",
                    "only to the next rank, the last one to the first")
    most = max(sum(numbers) for numbers in sent.values())
    if most > 2 * (k - 1) * n // k:
        raise Wrong(f"a rank sends {most} numbers",
                    f"{2 * (k - 1)} pieces of {n // k}: first partial sums go round, then sums")


# ---- plan
NAMES = ("x", "labels", "0.weight", "0.bias", "2.weight", "2.bias")
DATA = {n: "S0" if n in ("x", "labels") else "B" for n in NAMES}


class Train(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model, self.loss_fn = model, nn.CrossEntropyLoss()
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))

    def build(self, x, labels):
        loss = self.loss_fn(self.model(x), labels)
        loss.backward()
        return loss


def trained(given):
    """(losses of three steps, bytes of a step, the most bytes of parameters on a device)."""
    flow.manual_seed(0)
    place = flow.placement("cpu", [0, 1, 2, 3])
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 64)).to_global(place, flow.sbp.broadcast)
    sbp = {n: flow.sbp.broadcast if s == "B" else flow.sbp.split(int(s[1:])) for n, s in given.items()}
    by_id = {id(p): sbp[n] for n, p in model.named_parameters()}
    for p in model.parameters():
        p.data = p.detach().to_global(sbp=by_id[id(p)])
    x = flow.randn(16, 256, placement=place, sbp=sbp["x"])
    labels = flow.randint(0, 64, (16,), placement=place, sbp=sbp["labels"])
    graph = Train(model)
    losses = [float(graph(x, labels).numpy().mean()) for _ in range(3)]
    return losses, graph.bytes, max(m.parameters for m in graph.memory().values())


def check_plan(f):
    given = f()
    if not isinstance(given, dict) or set(given) != set(NAMES) or not all(
            s in ("B", "S0", "S1") for s in given.values()):
        raise Wrong(f"plan gives {given!r}", f"a dict with {', '.join(NAMES)}; each \"B\", \"S0\" or \"S1\"")
    with devices(4):
        want, moved, whole = trained(DATA)
        losses, less, kept = trained(given)
    expect("the losses", np.array(losses), np.array(want, np.float32), "the sbp never changes them: this is a bug of ours")
    if kept > 0.3 * whole:
        raise Wrong(f"a device keeps {kept:,} of {whole:,} bytes of parameters", "cut both weights. But along which axis?")
    if less > moved / 100:
        raise Wrong(f"a step moves {less:,} bytes; a hundredth of data parallel's are {moved // 100:,}",
                    "the first weight so that the ReLU's input is S(1), the second so that it takes S(1) as it is")
