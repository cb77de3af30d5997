"""loss has a gradient function, so total has one, too.

It refers to the calls of all earlier steps, and the tape keeps them. item() returns a Python number,
which has no history.
"""
import numpy as np

import flowedu as flow


def step(x, y, w, total, rate=0.05):
    """Take one step of gradient descent for y = x @ w. Return the new w, and total + loss."""
    x, y = flow.tensor(x), flow.tensor(y)
    w = flow.tensor(w, requires_grad=True)
    loss = (x @ w - y).square().mean()
    gradient, = flow.grad(loss, w)
    w = w.detach() - rate * gradient
    total += loss.item()
    return w.numpy(), total


if __name__ == "__main__":
    def kept_calls(x):
        """Return the number of calls that the tape keeps because x may still be differentiated."""
        kept, todo = {}, [getattr(x, "grad_fn", None)]
        while todo:
            node = todo.pop()
            if hasattr(node, "op") and id(node) not in kept:
                kept[id(node)] = node
                todo += node.edges
        return len(kept)

    x, y = np.array([[1, 0], [1, 1], [1, 2]], np.float32), np.array([1, 3, 5], np.float32)
    w, total = np.zeros(2, np.float32), 0.0
    for i in range(1, 41):
        w, total = step(x, y, w, total)
        if i in (10, 20, 40):
            print(f"{i} steps: w = {w.round(2)}, mean loss {float(total) / i:.3f}, "
                  f"the tape keeps {kept_calls(total)} calls")
