"""Chapter 7's demo: training on image files of any size, which the job itself decodes and resizes.

    python chapters/07_tensor_buffer/demo.py [--epochs 3] [--seed 0] [--threads N] [--out FOLDER] [--quick]

Each digit of chapter 4 is resized to a random height and width from 20 to 60 pixels, and stored in memory as
a PNG or JPEG file. The arguments of the job are the bytes of these files.
"""
import argparse
import io
import os
import time
from pathlib import Path

import numpy as np
from tqdm.auto import tqdm

import flowedu as flow
import flowedu.typing as tp
from flowedu_course.demo import opening

BATCH = 100
SIZE = 28                                           # height and width after resizing
MEAN, STD = 33.3, 78.6                              # over the pixels of all digits


def draw_anew(images: np.ndarray, rng) -> list[bytes]:
    """Return each digit (1, 28, 28), with values from 0 to 1, as a PNG or JPEG file of a random size."""
    from PIL import Image

    files = []
    for i, image in enumerate(images):
        width, height = (int(n) for n in rng.integers(20, 61, 2))
        out = io.BytesIO()
        picture = Image.fromarray((image[0] * 255).astype(np.uint8)).resize((width, height),
                                                                            Image.Resampling.BICUBIC)
        picture.save(out, "JPEG" if i % 2 else "PNG", quality=85)
        files.append(out.getvalue())
    return files


# ---- the jobs
def pixels(files):
    """Convert the bytes of files, a tensor list, into a float32 blob (BATCH, 1, SIZE, SIZE)."""
    buffers = flow.tensor_list_to_tensor_buffer(files)                          # (BATCH,) byte arrays
    # (BATCH,) images (height, width, 1), uint8
    pictures = flow.image.decode(buffers, color_space="GRAY")
    # (BATCH, SIZE, SIZE, 1)
    resized, _, _ = flow.image.Resize(pictures, target_size=(SIZE, SIZE), channels=1)
    return flow.image.CropMirrorNormalize(resized, color_space="GRAY", mean=[MEAN], std=[STD])


def lenet(x, train=False):
    """Return the logits (BATCH, 10) of chapter 4's network at half the width."""
    initializer = flow.truncated_normal(0.1)
    for i, filters in enumerate((16, 32), 1):
        x = flow.layers.conv2d(x, filters, 5, padding="SAME", activation=flow.nn.relu, name=f"conv{i}",
                               kernel_initializer=initializer)
        x = flow.nn.max_pool2d(x, ksize=2, strides=2, padding="SAME", name=f"pool{i}", data_format="NCHW")
    x = flow.layers.dense(flow.flatten(x, start_dim=1), 128, activation=flow.nn.relu, name="dense1",
                          kernel_initializer=initializer)
    if train:
        x = flow.nn.dropout(x, rate=0.3, name="dropout")
    return flow.layers.dense(x, 10, kernel_initializer=initializer, name="dense2")


def define_jobs(most_bytes: int):
    """Return (train_job, eval_job). Both take the files of a batch as one tensor list."""
    config = flow.function_config()
    # Tensor lists are fed device by device.
    config.default_logical_view(flow.scope.mirrored_view())
    Files = tp.ListListNumpy.Placeholder((BATCH, most_bytes), flow.int8)
    Labels = tp.ListNumpy.Placeholder((BATCH,), flow.int32)

    @flow.global_function("train", config)
    def train_job(files: Files, labels: Labels) -> tp.ListNumpy:
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, lenet(pixels(files), train=True),
                                                                name="loss")
        flow.optimizer.Adam(flow.optimizer.PiecewiseConstantScheduler([], [1e-3])).minimize(loss)
        return loss

    @flow.global_function("predict", config)
    def eval_job(files: Files) -> tp.ListNumpy:
        return lenet(pixels(files))

    return train_job, eval_job


def batch(files: list[bytes], chosen) -> list[list[np.ndarray]]:
    """Return the argument of a job: for its one device, a list of arrays (1, bytes)."""
    return [[np.frombuffer(files[i], np.int8)[None] for i in chosen]]


# ---- training
def train_epoch(train_job, files, labels, rng, title: str) -> tuple[float, float]:
    """Train on all files once, in random order. Return (mean loss, files per second)."""
    order, losses, start = rng.permutation(len(files)).reshape(-1, BATCH), [], time.perf_counter()
    # disable=None shows the bar only in a terminal.
    with tqdm(total=order.size, desc=title, unit=" files", leave=False, disable=None) as bar:
        for chosen in order:
            losses.append(float(train_job(batch(files, chosen), [labels[chosen]])[0].mean()))
            bar.set_postfix(loss=f"{np.mean(losses[-20:]):.3f}", refresh=False)
            bar.update(BATCH)
    return float(np.mean(losses)), order.size / (time.perf_counter() - start)


def accuracy(eval_job, files, labels) -> float:
    right = 0
    for chosen in np.arange(len(files)).reshape(-1, BATCH):
        right += int((eval_job(batch(files, chosen))[0].argmax(axis=1) == labels[chosen]).sum())
    return right / len(files)


def run(options) -> None:
    flow.random.seed(options.seed)
    flow.set_num_threads(options.threads)
    rng = np.random.default_rng(options.seed)
    (images, labels), (test_images, test_labels) = flow.data.load_mnist(BATCH, BATCH)
    images, labels = images.reshape(-1, 1, 28, 28)[:options.count], labels.reshape(-1)[:options.count]
    test_images = test_images.reshape(-1, 1, 28, 28)[:options.count // 5]
    test_labels = test_labels.reshape(-1)[:options.count // 5]
    files, test_files = draw_anew(images, rng), draw_anew(test_images, rng)
    lengths = [len(f) for f in files + test_files]
    print(f"{len(lengths):,} files of {min(lengths)} to {max(lengths)} bytes, {sum(lengths) / 1e6:.1f} MB "
          f"together")

    train_job, eval_job = define_jobs(max(lengths))
    for epoch in range(1, options.epochs + 1):
        title = f"epoch {epoch}/{options.epochs}"
        loss, speed = train_epoch(train_job, files, labels, rng, title)
        print(f"{title}   loss {loss:.4f}   test accuracy "
              f"{accuracy(eval_job, test_files, test_labels):.2%}   {speed:,.0f} files/s")

    start = time.perf_counter()
    decoded = flow.image.decode(flow.TensorBuffer(files[:500]), color_space="GRAY")
    then = time.perf_counter()
    flow.image.Resize(decoded, (SIZE, SIZE), channels=1)
    print(f"of this, for each file: decoding {(then - start) / 500 * 1e6:.0f} µs, resizing "
          f"{(time.perf_counter() - then) / 500 * 1e6:.0f} µs, both on one thread")
    import pictures
    try:
        drawn = [pictures.memory(decoded[:6], options.out / "memory.svg"),
                 pictures.seen(decoded[:8], SIZE, options.out / "seen.png")]
    except ImportError:
        print("one picture is missing: it needs matplotlib (pip install matplotlib)")
        drawn = [options.out / "memory.svg"]
    print("pictures:", *drawn)


def main() -> int:
    parser = argparse.ArgumentParser(description="Train on picture files of any size.")
    parser.add_argument("--epochs", type=int, help="default: 3, with --quick 1")
    parser.add_argument("--seed", type=int, default=0,
                        help="the same seed gives the same run, number for number")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0))
                        if hasattr(os, "sched_getaffinity")
                        else os.cpu_count() or 1, help="default: one per core")
    parser.add_argument("--out", type=Path, default=Path("build/chapter-7"), help="folder for pictures")
    parser.add_argument("--quick", action="store_true", help="1,000 files only, to see that it runs")
    options = parser.parse_args()
    options.epochs = options.epochs or (1 if options.quick else 3)
    options.count = 1000 if options.quick else 6000
    if options.epochs < 1 or options.threads < 1:
        parser.error("--epochs and --threads must be 1 or more")
    opening(__file__, options.quick)
    try:
        run(options)
    except KeyboardInterrupt:
        print("\nstopped")
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
