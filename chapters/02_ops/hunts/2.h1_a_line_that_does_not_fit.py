import numpy as np

import flowedu as flow


def fit(x, y, steps=200, rate=0.1):
    """Fit y = x @ w + b to n points by gradient descent. Return w, b, and the last loss.

    x has the shape (n, k), and y has the shape (n,).
    """
    x, y = flow.tensor(x), flow.tensor(y)
    w = flow.zeros((x.shape[1], 1), requires_grad=True)
    b = flow.zeros(1, requires_grad=True)
    for _ in range(steps):
        prediction = x @ w + b
        loss = (prediction - y).square().mean()
        dw, db = flow.grad(loss, [w, b])
        with flow.no_grad():
            w -= rate * dw
            b -= rate * db
    return w.numpy().ravel(), b.item(), loss.item()


if __name__ == "__main__":
    x = np.array([[0.0], [1.0], [2.0], [3.0]], np.float32)
    w, b, loss = fit(x, 2 * x[:, 0] + 1)
    print(f"w = {w.round(3)}, b = {b:.3f}, loss = {loss:.3f}; "
          "expected: w = [2.], b = 1.000, loss = 0.000")
