"""NumPy makes float64 arrays of Python numbers.

So mean and deviation are float64 tensors, and every result that depends on them is float64 as well.
print(graph) shows the dtype of each value, and graph.report() the bytes of the arena.
"""
import numpy as np

import flowedu as flow
from flowedu import nn


class Network(nn.Module):
    """Normalize the pixels, and find the column up to which their sum is largest."""

    def __init__(self, mean, deviation):
        super().__init__()
        self.mean = flow.tensor(np.asarray(mean), dtype=flow.float32)
        self.deviation = flow.tensor(np.asarray(deviation), dtype=flow.float32)

    def forward(self, x):
        x = (x - self.mean) / self.deviation
        return x.tanh().cumsum(1).argmax(1)


class Predict(nn.Graph):
    def __init__(self, mean, deviation):
        super().__init__()
        self.network = Network(mean, deviation)

    def build(self, x):
        return self.network(x)


def run(x, mean, deviation):
    """Return the result for x, and the bytes of the graph's arena."""
    graph = Predict(mean, deviation)
    y = graph(flow.tensor(x))
    return y.numpy(), graph._compiled.program.plan.arena


if __name__ == "__main__":
    x = np.ones((64, 256), np.float32)
    y, arena = run(x, [0.5], [0.25])
    print(f"x has {x.nbytes:,} bytes, and the arena has {arena:,} bytes; "
          f"expected: at most {2 * x.nbytes + 4096:,}")
