"""Milestone 8: a network that runs on your Cython kernels, and on the library's kernels for comparison.

Your kernels compute products, softmax, argmax, and the number of correct predictions. If you have also solved
8.9 or 8.11, your kernels in CUDA C classify some of the same images.
"""
import os
import time

import numpy as np

import flowedu as flow
from flowedu import nn
from flowedu.core.ops.define import REGISTRY
from flowedu.swap import RUNNING
from flowedu_course import course, kernels
from flowedu_course.fallback import times

WANTED, STEPS = 0.9, 180
NAMES = {"matmul": "8.6", "softmax": "8.2", "argmax": "8.4", "cumsum": "8.3"}


def digits():
    """Return (images, labels) for training and for testing. An image is a row of 784 floats."""
    (images, labels), (others, right) = flow.data.load_mnist(100, 100)
    return (images.reshape(-1, 784), labels.reshape(-1)), (others.reshape(-1, 784), right.reshape(-1))


def trained(images: np.ndarray, labels: np.ndarray) -> nn.Sequential:
    """Return a network 784 -> 64 -> 10 after STEPS training steps.

    Your kernel computes the products of the forward pass. The library computes those of the backward pass,
    because they have transposed operands.
    """
    flow.manual_seed(0)
    model = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer, rng = flow.optim.Adam(model.parameters(), lr=2e-3), np.random.default_rng(0)
    for _ in range(STEPS):
        at = rng.choice(len(images), 100, replace=False)
        loss = nn.functional.cross_entropy(model(flow.tensor(images[at])), flow.tensor(labels[at]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def weights(model: nn.Sequential) -> list[np.ndarray]:
    """Return the parameters, of the shapes (784, 64), (64,), (64, 10), and (10,)."""
    return [np.ascontiguousarray(p.detach().numpy().T) for p in model.parameters()]


def looked_at(parts: list[np.ndarray], images: np.ndarray, labels: np.ndarray):
    """Return (probabilities, number of correct predictions up to each image, seconds) of the network."""
    w1, b1, w2, b2 = map(flow.tensor, parts)
    x, right = flow.tensor(images), flow.tensor(labels)
    start = time.perf_counter()
    hidden = REGISTRY["matmul"](x, w1) + b1
    p = flow.softmax(REGISTRY["matmul"](flow.relu(hidden), w2) + b2, 1)
    hits = flow.cumsum((flow.argmax(p, 1) == right).to(flow.float32), 0)
    return p.numpy(), hits.numpy(), time.perf_counter() - start


def on_the_cpu() -> tuple[bool, list[np.ndarray], np.ndarray]:
    """Compare your kernels with the library's. Return (True if the milestone is reached, weights, images)."""
    (images, labels), (others, right) = digits()
    start = time.perf_counter()
    parts = weights(trained(images, labels))
    print(f"trained on {len(images):,} digits in {time.perf_counter() - start:.1f} s")
    mine = looked_at(parts, others, right)
    ran = {name: times(name) for name in NAMES}
    with kernels.libraries():
        own = looked_at(parts, others, right)
    accuracy, most = mine[1][-1] / len(others), float(np.abs(mine[0] - own[0]).max())
    for name, id in NAMES.items():
        print(f"  {name:8s} "
              f"{f'yours ran {ran[name]:,} times' if ran[name] else f'the library (yours is {id})'}")
    took = f"{1e3 * mine[2]:.1f} ms; by the library in {1e3 * own[2]:.1f} ms"
    print(f"{len(others):,} others: {accuracy:.1%} right, in {took}")
    print(f"largest difference of a probability: {most:.1e}; hits counted alike: "
          f"{np.array_equal(mine[1], own[1])}")
    return accuracy >= WANTED and most < 1e-4 and np.array_equal(mine[1], own[1]), parts, others[:20]


def in_cuda(parts: list[np.ndarray], images: np.ndarray) -> bool:
    """Run the network on your kernels in CUDA C. Return False if the probabilities differ."""
    both = [course.find(id) for id in ("8.9", "8.11")]
    holes = [h for h in both if h.objects[0] in RUNNING]
    still = [h for h in both if h not in holes]
    if lacks := kernels.missing(both[0]):
        print(f"in CUDA C: not run; {lacks}")
        return True
    if not holes or any(h.withheld for h in still):
        print(f"in CUDA C: not run; not right yet: {', '.join(h.short for h in still)}")
        return True
    os.environ.setdefault("FLOWEDU_CUDA", "sim")
    from flowedu.cuda.lessons import LADDERS
    product, softmax = LADDERS["product"]["shared"], LADDERS["softmax"]["warp"]
    w1, b1, w2, b2 = parts
    got = softmax(product(np.maximum(product(images, w1) + b1, 0), w2) + b2)
    want = looked_at(parts, images, np.zeros(len(images), np.int64))[0]
    same = np.allclose(got, want, atol=1e-4)
    print(f"in CUDA C ({flow.cuda.get_device_name()}): {len(images)} digits through "
          f"{', '.join(h.short for h in holes)}: {'the same' if same else 'OTHER'} probabilities")
    return same


def main() -> None:
    flow.set_num_threads(min(2, os.cpu_count() or 1))
    reached, parts, images = on_the_cpu()
    if not (in_cuda(parts, images) and reached):
        print(f"milestone 8 missed: {WANTED:.0%} of the digits, and the library's numbers, are wanted")
        raise SystemExit(1)
    print("milestone 8 reached: a network runs on your kernels")


if __name__ == "__main__":
    main()
