"""Answers to the exercises of chapter 4."""
import flowedu as flow
import flowedu.typing as tp


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
