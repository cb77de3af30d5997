"""Answers to the exercises of chapter 4."""
import math

import flowedu as flow
import flowedu.typing as tp
from flowedu.core.graph.ir import GraphValue


def momentum_steps(gradients, rates, momentum=0.9):
    w = m = 0.0
    path = []
    for g, rate in zip(gradients, rates):
        m = momentum * m - rate * sum(g) / len(g)
        w += m
        path.append(w)
    return path


def lifetimes(calls, outputs):
    lives = {}
    for step, (result, reads) in enumerate(calls):
        for name in reads:
            if name in lives:
                lives[name] = (lives[name][0], step)
        lives[result] = (step, step)
    for name in outputs:
        if name in lives:
            lives[name] = (lives[name][0], len(calls))
    return lives


def most_alive(sizes, lives):
    steps = range(max((last for _, last in lives.values()), default=-1) + 1)
    return max((sum(sizes[n] for n, (first, last) in lives.items() if first <= s <= last) for s in steps), default=0)


def place(sizes, lives):
    offsets = {}
    for name in sorted(lives, key=lambda n: (-sizes[n], lives[n])):
        first, last = lives[name]
        meets = sorted((o, o + sizes[n]) for n, o in offsets.items() if lives[n][0] <= last and first <= lives[n][1])
        at = 0
        for begin, end in meets:
            if at + sizes[name] <= begin:       # it fits below this neighbour
                break
            at = max(at, end)
        offsets[name] = at
    return offsets


def fused(calls, elementwise, outputs):
    readers = {}
    for result, reads in calls:
        for name in set(reads):
            readers.setdefault(name, []).append(result)
    groups = {result: [result] for result, _ in calls}
    for result, _ in calls:                     # in order, so that a chain hands on all it has gathered
        one = readers.get(result, [])
        if len(one) == 1 and result not in outputs and {result, one[0]} <= set(elementwise):
            groups[one[0]] = groups.pop(result) + groups[one[0]]
    order = [result for result, _ in calls]
    return [sorted(groups[r], key=order.index) for r in order if r in groups]


def spiral_jobs(batch):
    def network(x):
        start = flow.kaiming_initializer(shape=(32, 32))
        for i in range(2):
            x = flow.layers.dense(x, 32, activation=flow.math.tanh, kernel_initializer=start, name=f"hidden{i}")
        return flow.layers.dense(x, 2, kernel_initializer=start, name="logits")

    Points, Labels = tp.Numpy.Placeholder((batch, 2)), tp.Numpy.Placeholder((batch,), flow.int32)

    @flow.global_function("train")
    def train(points: Points, labels: Labels) -> tp.Numpy:
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, network(points))
        flow.optimizer.Adam(flow.optimizer.PiecewiseConstantScheduler([], [0.01])).minimize(loss)
        return loss

    @flow.global_function("predict")
    def read(points: Points) -> tp.Numpy:
        return network(points)

    return train, read


# ---- the second lesson: devices.md
def replay(calls, known):
    found = dict(known)

    def swapped(x):
        if isinstance(x, GraphValue):
            return found[x]
        return type(x)(map(swapped, x)) if isinstance(x, (list, tuple)) else x

    for call in calls:
        made = call.f(*map(swapped, call.args), **{name: swapped(x) for name, x in call.kwargs.items()})
        found.update(zip(call.results, made if isinstance(made, (list, tuple)) else [made]))
    return found


def local_shapes(shape, layout, k):
    if layout in ("B", "P"):
        return [tuple(shape)] * k
    axis = int(layout[1:])
    if axis >= len(shape) or shape[axis] < k:
        return None
    each, more = divmod(shape[axis], k)
    return [(*shape[:axis], each + (i < more), *shape[axis + 1:]) for i in range(k)]


def bytes_moved(shape, source, target, k):
    n = 4 * math.prod(shape)
    if source == target or source == "B" or (source[0], target) == ("S", "P"):
        return 0
    if source == "P":
        return (k - 1) * n * (2 if target == "B" else 1)
    if target == "B":
        return (k - 1) * n
    a, b = int(source[1:]), int(target[1:])     # a device keeps where its old part and its new one meet
    old, new = local_shapes(shape, source, k), local_shapes(shape, target, k)
    return n - sum(n // (shape[a] * shape[b]) * x[a] * y[b] for x, y in zip(old, new))
