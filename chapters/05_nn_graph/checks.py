"""What the exercises of chapter 5 must do."""
import numpy as np

import flowedu as flow
from flowedu import nn
from flowedu.core.graph.memory import Buffer, place
from flowedu.learn.exercises import Wrong, expect

NODES = [("c", "add", ("a", "b")), ("d", "relu", ("c",)), ("e", "add", ("a", "b")), ("f", "relu", ("e",)),
         ("g", "mul", ("d", "f")), ("h", "neg", ("c",)), ("i", "add", ("b", "a"))]


def check_live(f):
    expect('live(NODES, ["d"])', f(NODES, ["d"]), NODES[:2], "d needs c, which needs the inputs a and b")
    expect('live(NODES, ["g"])', f(NODES, ["g"]), NODES[:5], "walk backwards, and want what a wanted node reads")
    expect('live(NODES, ["a"])', f(NODES, ["a"]), [], "an input needs no node")
    expect("live(NODES, [])", f(NODES, []), [], "nobody asks")


def check_merged(f):
    expect('merged(NODES[:5], ["g"])', f(NODES[:5], ["g"]), (
        [("c", "add", ("a", "b")), ("d", "relu", ("c",)), ("g", "mul", ("d", "d"))], ["g"]),
        "e is c; therefore f is d, and g multiplies d by itself")
    expect('merged(NODES[:4], ["f", "e"])', f(NODES[:4], ["f", "e"]), (NODES[:2], ["d", "c"]), "outputs are read, too")
    expect('merged(NODES[5:], ["i"])', f(NODES[5:], ["i"]), (NODES[5:], ["i"]),
           "add(b, a) is another node than add(a, b): only a pass that knows add may swap")


def check_folded(f):
    flow.manual_seed(0)
    conv, norm = nn.Conv2d(3, 5, 3), nn.BatchNorm2d(5, eps=0.1)
    for t in (norm.weight, norm.bias, norm.running_mean):
        t.detach().copy_(flow.randn(5))
    norm.running_var.copy_(flow.rand(5) + 0.5)
    norm.eval()
    w, b = f(*(t.detach().numpy() for t in (conv.weight, conv.bias, norm.weight, norm.bias, norm.running_mean,
                                            norm.running_var)), 0.1)
    one = nn.Conv2d(3, 5, 3)
    expect("the shapes of folded(...)", (np.shape(w), np.shape(b)), ((5, 3, 3, 3), (5,)), "one scale for each channel")
    with flow.no_grad():
        one.weight.copy_(flow.tensor(np.asarray(w, np.float32)))
        one.bias.copy_(flow.tensor(np.asarray(b, np.float32)))
        x = flow.randn(2, 3, 6, 6)
        difference = (one(x) - norm(conv(x))).abs().max().item()
    if not difference < 1e-4:
        raise Wrong(f"the folded convolution is off by {difference:.2g}",
                    "(w * x + b - mean) * scale + beta, with scale = gamma / sqrt(var + epsilon)")


BUFFERS = [(0, 1, 40), (1, 3, 100), (2, 2, 60), (3, 4, 40), (4, 5, 100)]


def check_peak(f):
    expect("peak(BUFFERS)", f(BUFFERS), 160, "in step 2 there are 100 and 60 bytes")
    expect("peak([])", f([]), 0, "nothing needs nothing")
    expect("peak of one step", f([(3, 3, 7), (3, 3, 8), (4, 9, 1)]), 15, "both steps belong to a life")


def check_offsets(f):
    expect("offsets(BUFFERS)", list(f(BUFFERS)), [100, 0, 100, 100, 0], "the two of 100 bytes never meet: both lie at 0")
    random = np.random.default_rng(0)
    for _ in range(50):
        starts, lives, sizes = random.integers(0, 12, 9), random.integers(0, 5, 9), 64 * random.integers(1, 9, 9)
        buffers = [(int(a), int(a + n), int(s)) for a, n, s in zip(starts, lives, sizes)]
        found = list(f(buffers))
        for i, (a, b, n) in enumerate(buffers):
            for j, (c, d, m) in enumerate(buffers[:i]):
                if a <= d and c <= b and found[i] < found[j] + m and found[j] < found[i] + n:
                    raise Wrong(f"{buffers[j]} at {found[j]} and {buffers[i]} at {found[i]} overlap",
                                "look at all that are alive at some time in between, not only at the last one placed")
        ours = [Buffer(str(i), "temp", n, a, b) for i, (a, b, n) in enumerate(buffers)]
        limit = place(ours)
        if max(x + n for x, (_, _, n) in zip(found, buffers)) > limit * 1.3:
            raise Wrong(f"the arena is larger than need be: flowedu's own plan takes {limit} bytes",
                        "largest first, each at the lowest place that is free")


def check_mean_gradient(f):
    expect("two equal micro-batches", f([np.array([1.0, 2.0]), np.array([3.0, 6.0])], [4, 4]), np.array([2.0, 4.0]),
           "each counts half")
    expect("sizes 3 and 1", f([np.array([1.0]), np.array([5.0])], [3, 1]), np.array([2.0]),
           "a mean over 3 samples stands for 3 samples")
