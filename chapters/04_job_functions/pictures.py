"""Drawings of the demo of chapter 4."""
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from flowedu.show.picture import draw_memory

__all__ = ["curves", "draw_memory", "filters", "misread"]


def save(figure: Figure, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return path


def smooth(numbers, width: int = 15) -> np.ndarray:
    """Return the mean of each element and the `width` - 1 elements before it."""
    sums = np.cumsum([0.0, *numbers])
    return np.array([(sums[i] - sums[max(i - width, 0)]) / min(i, width) for i in range(1, len(sums))])


def curves(history, steps_per_epoch: int, path: Path) -> Path:
    """Draw the loss and the gradient norm of each step, and the test accuracy of each epoch."""
    figure = Figure(figsize=(10, 7), layout="constrained")
    top, middle, bottom = figure.subplots(3, 1, sharex=True)
    for axes, numbers, label in ((top, history.losses, "loss"), (bottom, history.gradients,
                                                                 "norm of d loss / d logits")):
        axes.plot(numbers, color="#a9cbe3", linewidth=0.8)
        axes.plot(smooth(numbers), color="#1f5f99")
        axes.set(ylabel=label, yscale="log")
    ends = [steps_per_epoch * (i + 1) - 1 for i in range(len(history.accuracies))]
    middle.plot(ends, [100 * a for a in history.accuracies], "o-", color="#b03a2e")
    middle.set(ylabel="test accuracy (%)")
    for x, a in zip(ends, history.accuracies):
        middle.annotate(f"{100 * a:.1f}", (x, 100 * a), xytext=(0, 6), textcoords="offset points",
                        ha="center", fontsize=8)
    middle.margins(y=0.25)
    bottom.set_xlabel("step")
    top.set_title("training: each step (light) and the mean of 15 (dark)")
    return save(figure, path)


def misread(images: np.ndarray, labels: np.ndarray, logits: np.ndarray, path: Path, most: int = 40) -> Path:
    """Draw the misclassified digits, the most confident errors first."""
    images, labels, guesses = images.reshape(-1, 28, 28), labels.reshape(-1), logits.argmax(axis=1)
    exps = np.exp(logits - logits.max(axis=1, keepdims=True))
    sure = exps.max(axis=1) / exps.sum(axis=1)
    wrong = np.flatnonzero(guesses != labels)
    wrong = wrong[np.argsort(-sure[wrong])]
    columns = 8
    lines = max(1, -(-min(len(wrong), most) // columns))
    figure = Figure(figsize=(1.3 * columns, 1.6 * lines + 0.6), layout="constrained")
    for axes in figure.subplots(lines, columns, squeeze=False).flat:
        axes.axis("off")
    for axes, i in zip(figure.axes, wrong[:most]):
        axes.imshow(images[i], cmap="gray_r")
        axes.set_title(f"{labels[i]} as {guesses[i]}\nprobability {sure[i]:.0%}", fontsize=8)
    figure.suptitle(f"{len(wrong)} of {len(labels):,} test digits are misclassified")
    return save(figure, path)


def filters(weight: np.ndarray, path: Path) -> Path:
    """Draw the kernels of the first layer (filters, 1, height, width).

    Blue is negative, and red is positive.
    """
    figure = Figure(figsize=(8, 4.4), layout="constrained")
    limit = float(np.abs(weight).max())
    for axes, kernel in zip(figure.subplots(4, -(-len(weight) // 4)).flat, weight):
        axes.imshow(kernel[0], cmap="RdBu_r", vmin=-limit, vmax=limit)
        axes.axis("off")
    figure.suptitle(f"the {len(weight)} filters of conv1 after training")
    return save(figure, path)
