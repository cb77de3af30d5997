"""Demo of chapter 3: trains a small convolutional network on digits, and draws filters and activations."""
import argparse
import time
from pathlib import Path

import numpy as np

import flowedu as flow
from flowedu.core.layers.context import EAGER
from flowedu_course.demo import opening

FILTERS, EPOCHS, RATE = 8, 8, 0.3


def features(x):
    """Return the activations of the eight filters for images x."""
    return flow.layers.conv2d(x, FILTERS, 5, padding="SAME", activation=flow.math.relu, name="conv")


def network(x):
    """Return ten logits per image."""
    h = flow.nn.max_pool2d(features(x), 4, 4, "VALID")
    return flow.layers.dense(flow.flatten(h, 1), 10, kernel_initializer=flow.xavier_uniform_initializer(),
                             name="out")


def train(images, labels) -> float:
    """Run one epoch of gradient descent, and return the mean loss."""
    total = 0.0
    for x, y in zip(images, labels):
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(flow.tensor(y),
                                                                network(flow.tensor(x))).mean()
        loss.backward()
        for v in EAGER.variables.values():
            v.numpy()[...] -= RATE * v.grad.numpy()
            v.grad = None
        total += loss.item()
    return total / len(images)


def accuracy(images, labels) -> float:
    with flow.no_grad():
        guesses = [network(flow.tensor(x)).numpy().argmax(1) for x in images]
    return float(np.mean(np.array(guesses) == labels))


def picture(digit: np.ndarray, path: Path) -> None:
    """Draw the filters in the first row, and their activations for a digit in the second row."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    kernels = EAGER.variables["conv-weight"].numpy()[:, 0]
    with flow.no_grad():
        seen = features(flow.tensor(digit[None]))[0].numpy()
    figure, axes = plt.subplots(2, FILTERS + 1, figsize=(13, 3.3))
    largest = np.abs(kernels).max()
    for i in range(FILTERS):
        axes[0, i + 1].imshow(kernels[i], cmap="RdBu", vmin=-largest, vmax=largest)
        axes[1, i + 1].imshow(seen[i], cmap="gray")
    axes[1, 0].imshow(digit[0], cmap="gray")
    axes[1, 0].set_title("a digit", fontsize=10)
    axes[0, 4].set_title("the eight 5 x 5 filters (blue: positive, red: negative), and their activations",
                         fontsize=10)
    for a in axes.flat:
        a.axis("off")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100, bbox_inches="tight")
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/chapter-3"), help="folder for the picture")
    out = parser.parse_args().out
    opening(__file__)
    flow.random.seed(0)
    (images, labels), (test_images, test_labels) = flow.data.load_mnist()
    images, labels = images[:60], labels[:60]           # 6,000 images, even if load_mnist returns more
    start = time.perf_counter()
    for epoch in range(EPOCHS):
        loss = train(images, labels)
        print(f"epoch {epoch + 1}: loss {loss:.3f}, test accuracy {accuracy(test_images, test_labels):.3f}")
    count = sum(v.numpy().size for v in EAGER.variables.values())
    print(f"{count:,} weights in {len(EAGER.variables)} variables, trained in "
          f"{time.perf_counter() - start:.1f} s")
    try:
        picture(test_images[0][0], out / "filters.png")
    except ImportError:
        print("nothing drawn: this needs matplotlib (pip install matplotlib)")
    else:
        print(f"filters and activations: {out / 'filters.png'}")


if __name__ == "__main__":
    main()
