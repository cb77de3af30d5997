"""Demo of chapter 4: trains LeNet as a job function on digits, saves and reloads it, and draws the results.

    python chapters/04_job_functions/demo.py [--epochs 8] [--seed 0] [--threads N] [--out FOLDER] [--quick]

Ctrl-C stops the training and keeps the checkpoint of the last complete epoch. `python -m flowedu.show` with
this file prints the plans.
"""
# ruff: noqa: E402    (the measured time includes the imports)
import time

LAUNCHED = time.perf_counter()

import argparse
import os
import shutil
from pathlib import Path

import numpy as np
from tqdm.auto import tqdm

import flowedu as flow
import flowedu.typing as tp
from flowedu_course.demo import opening

BATCH = 100
Images = tp.Numpy.Placeholder((BATCH, 1, 28, 28))
Labels = tp.Numpy.Placeholder((BATCH,), flow.int32)


def lenet(data, train=False):
    """Return logits (BATCH, 10). Both jobs below call this function while they are compiled."""
    initializer = flow.truncated_normal(0.1)
    conv1 = flow.layers.conv2d(data, 32, 5, padding="SAME", activation=flow.nn.relu, name="conv1",
                               kernel_initializer=initializer)
    pool1 = flow.nn.max_pool2d(conv1, ksize=2, strides=2, padding="SAME", name="pool1", data_format="NCHW")
    conv2 = flow.layers.conv2d(pool1, 64, 5, padding="SAME", activation=flow.nn.relu, name="conv2",
                               kernel_initializer=initializer)
    pool2 = flow.nn.max_pool2d(conv2, ksize=2, strides=2, padding="SAME", name="pool2", data_format="NCHW")
    reshape = flow.reshape(pool2, [pool2.shape[0], -1])
    hidden = flow.layers.dense(reshape, 512, activation=flow.nn.relu, kernel_initializer=initializer,
                               name="dense1")
    if train:
        hidden = flow.nn.dropout(hidden, rate=0.5, name="dropout")
    return flow.layers.dense(hidden, 10, kernel_initializer=initializer, name="dense2")


def define_train_job(steps, on_gradient):
    """Define the job of one training step.

    In the last quarter of the steps, the rate is a fifth of the first rate.
    """

    @flow.global_function("train")
    def train_job(images: Images, labels: Labels) -> tp.Numpy:
        logits = lenet(images, train=True)
        flow.watch_diff(logits, on_gradient)
        loss = flow.nn.sparse_softmax_cross_entropy_with_logits(labels, logits, name="loss")
        rate = flow.optimizer.PiecewiseConstantScheduler([steps * 3 // 4], [1e-3, 2e-4])
        flow.optimizer.Adam(rate).minimize(loss)
        return loss

    return train_job


def define_eval_job():
    """Define the prediction job.

    Its layers have the same names as in train_job, so they share the variables.
    """

    @flow.global_function("predict")
    def eval_job(images: Images) -> tp.Numpy:
        return lenet(images)

    return eval_job


class History:
    """Losses and gradient norms of all steps, and the test accuracy of each epoch."""

    def __init__(self):
        self.losses, self.gradients, self.accuracies = [], [], []
        self.seconds = 0.0

    def on_gradient(self, gradient: tp.Numpy) -> None:
        """Store the norm of d(sum of the losses)/d(logits), divided by the batch size, for watch_diff."""
        self.gradients.append(float(np.linalg.norm(gradient)) / BATCH)

    @property
    def images_per_second(self) -> float:
        return len(self.losses) * BATCH / max(self.seconds, 1e-9)


def train_epoch(train_job, images, labels, rng, history, title) -> None:
    """Train on all batches in random order."""
    order = rng.permutation(len(images)).reshape(-1, BATCH)
    start = time.perf_counter()
    # disable=None draws the progress bar only in a terminal
    with tqdm(total=order.size, desc=title, unit=" images", leave=False, disable=None) as bar:
        for chosen in order:
            history.losses.append(float(train_job(images[chosen], labels[chosen]).mean()))
            bar.set_postfix(loss=f"{np.mean(history.losses[-20:]):.3f}", refresh=False)
            bar.update(BATCH)
    history.seconds += time.perf_counter() - start


def evaluate(eval_job, images, labels):
    """Return (accuracy, logits) of the test images."""
    logits = np.concatenate([eval_job(batch) for batch in images])
    return float((logits.argmax(axis=1) == labels.reshape(-1)).mean()), logits


class Checkpoints:
    """A folder with the newest checkpoint. Older checkpoints are deleted after the new one is complete."""

    def __init__(self, folder: Path):
        self.folder, self.run, self.newest = folder, time.strftime("%Y%m%d-%H%M%S"), None

    def save(self, epoch: int) -> None:
        older = [d for d in self.folder.glob("*-epoch-*") if (d / "snapshot_done").exists()]
        path = self.folder / f"{self.run}-{os.getpid()}-epoch-{epoch}"
        flow.checkpoint.save(str(path))
        self.newest = path
        for directory in older:
            shutil.rmtree(directory, ignore_errors=True)


def train(options, images, labels, test, history, checkpoints):
    """Run all epochs, and return (train_job, logits of the test images)."""
    steps = options.epochs * (len(images) // BATCH)
    train_job, eval_job = define_train_job(steps, history.on_gradient), define_eval_job()
    rng = np.random.default_rng(options.seed)
    flow.get_all_variables()                                    # starts the session, which compiles both jobs
    print(f"training starts {time.perf_counter() - LAUNCHED:.2f} s after launch: {options.epochs} epochs of "
          f"{len(images):,} images on {flow.get_num_threads()} threads, seed {options.seed}")
    for epoch in range(1, options.epochs + 1):
        title, first = f"epoch {epoch}/{options.epochs}", len(history.losses)
        train_epoch(train_job, images, labels, rng, history, title)
        accuracy, logits = evaluate(eval_job, *test)
        history.accuracies.append(accuracy)
        checkpoints.save(epoch)
        print(f"{title}   loss {np.mean(history.losses[first:]):.4f}   test accuracy {accuracy:.2%}   "
              f"{history.images_per_second:,.0f} images/s")
    return train_job, logits


def load_again(path: Path, test):
    """Return (accuracy, logits) of a new session with the variables of the checkpoint."""
    flow.clear_default_session()
    eval_job = define_eval_job()
    flow.load_variables(flow.checkpoint.get(str(path)))         # the state of the optimizer is ignored
    return evaluate(eval_job, *test)


def main() -> int:
    parser = argparse.ArgumentParser(description="Train LeNet on handwritten digits as a job function.")
    parser.add_argument("--epochs", type=int, help="default: 8, with --quick 1")
    parser.add_argument("--seed", type=int, default=0, help="runs with the same seed are bitwise equal")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0))
                        if hasattr(os, "sched_getaffinity")
                        else os.cpu_count() or 1, help="default: one per core")
    parser.add_argument("--out", type=Path, default=Path("build/chapter-4"),
                        help="folder for drawings and the checkpoint")
    parser.add_argument("--quick", action="store_true", help="only 1,000 images, as a test")
    options = parser.parse_args()
    if options.epochs is None:
        options.epochs = 1 if options.quick else 8
    if options.epochs < 1 or options.threads < 1:
        parser.error("--epochs and --threads must be 1 or more")
    opening(__file__, options.quick)
    history, checkpoints = History(), Checkpoints(options.out / "checkpoints")
    try:
        return run(options, history, checkpoints)
    except KeyboardInterrupt:
        print(f"\nstopped after {len(history.losses)} steps; checkpoint: {checkpoints.newest or 'none yet'}")
        return 130


def run(options, history: History, checkpoints: Checkpoints) -> int:
    """Train, draw the results, reload the checkpoint, and print a summary."""
    flow.random.seed(options.seed)
    flow.set_num_threads(options.threads)
    (images, labels), test = flow.data.load_mnist(BATCH, BATCH)
    images, labels = images.reshape(-1, 1, 28, 28), labels.reshape(-1)
    if options.quick:
        images, labels, test = images[:1000], labels[:1000], (test[0][:2], test[1][:2])
    train_job, logits = train(options, images, labels, test, history, checkpoints)

    import pictures  # late, because importing matplotlib takes most of a second

    plan, names = train_job.plan, train_job.argument_names()
    drawn = [pictures.curves(history, len(images) // BATCH, options.out / "training.png"),
             pictures.misread(*test, logits, options.out / "misread.png"),
             pictures.filters(flow.get_all_variables()["conv1-weight"].numpy(), options.out / "filters.png"),
             pictures.draw_memory(plan, options.out / "memory.png", names)]
    accuracy, again = load_again(checkpoints.newest, test)
    same = np.array_equal(again, logits)

    print(f"""
test accuracy    {history.accuracies[-1]:.2%} of {test[1].size:,} test images
training         {history.seconds:.1f} s, {history.images_per_second:,.0f} images/s
memory of a step {plan.arena / 1e6:.1f} MB in one arena; without sharing {plan.sum_bytes / 1e6:.1f} MB
reloaded         {accuracy:.2%} from {checkpoints.newest}: logits {'equal bit for bit' if same else 'DIFFER'}
drawings         {', '.join(str(p) for p in drawn)}""")
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
