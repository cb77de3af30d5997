"""The gradient of scale is the sum of dy * normal.

The program uses dnormal, which is dy * scale. Both are equal while scale is 1, so a check with the
initial weights finds nothing. gradcheck with a random scale reports a wrong gradient of input 1.
"""
import numpy as np

import flowedu as flow


class RowNorm(flow.autograd.Function):
    """scale * (x - mean) / deviation, with the mean and the deviation of each row of x."""

    @staticmethod
    def forward(ctx, x, scale):
        centered = x - x.mean(1, keepdim=True)
        deviation = (centered.square().mean(1, keepdim=True) + 1e-5).sqrt()
        normal = centered / deviation
        ctx.save_for_backward(normal, deviation, scale)
        return scale * normal

    @staticmethod
    def backward(ctx, dy):
        normal, deviation, scale = ctx.saved_tensors
        dnormal = dy * scale
        dscale = (dy * normal).sum(0)
        along = (dnormal * normal).mean(1, keepdim=True)
        dx = (dnormal - dnormal.mean(1, keepdim=True) - along * normal) / deviation
        return dx, dscale


def gradients(x, scale, dy):
    """Return the gradients of x and scale, if dy is the gradient of RowNorm's result."""
    x, scale = flow.tensor(x, requires_grad=True), flow.tensor(scale, requires_grad=True)
    y = RowNorm.apply(x, scale)
    return [g.numpy() for g in flow.grad(y, [x, scale], flow.tensor(dy))]


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    x, target = (rng.normal(size=(8, 4)).astype(np.float32) for _ in range(2))
    layers = {"RowNorm": RowNorm.apply,
              "layer_norm": lambda x, scale: flow.nn.functional.layer_norm(x, (4,), scale)}
    for name, layer in layers.items():
        scale = flow.ones(4, requires_grad=True)
        for _ in range(5):
            loss = (layer(flow.tensor(x), scale) - flow.tensor(target)).square().sum()
            with flow.no_grad():
                scale -= 0.05 * flow.grad(loss, scale)[0]
        print(f"{name:12} loss after 5 steps: {loss.item():.4f}, scale {scale.numpy().round(3)}")
