"""Demo of chapter 8: LeNet, trained with kernels in CUDA C, and with the CPU's kernels for comparison.

    FLOWEDU_CUDA=sim python chapters/08_kernels/demo.py [--steps 30] [--batch 20] [--seed 0] [--threads N]
                                                        [--out FOLDER] [--quick]

FLOWEDU_CUDA=sim selects the simulator. Without it, the demo needs a GPU. `make chapter-8` makes this choice.
The demo prints the losses and times of both devices. In the simulator, it also counts the memory accesses of
one step.
"""
import argparse
import io
import os
import time
from pathlib import Path

import numpy as np
from tqdm.auto import tqdm

import flowedu as flow
from flowedu import nn
from flowedu.cuda.machine import kind
from flowedu_course.demo import opening

# Images in the counted step. Counting takes about a second per image.
IMAGES = 1


def said_first(options) -> None:
    """Print the device and, for the simulator, the expected duration."""
    print(f"cuda is {flow.cuda.get_device_name()}")
    if kind() == "sim":
        print(f"this takes about {5 + options.steps * options.batch // 80} s in the simulator, and the first "
              f"time some minutes more: the kernels are compiled, and kept", flush=True)


def batches(options) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return random batches (images, labels) of the MNIST training images."""
    (images, labels), _ = flow.data.load_mnist(100, 100)
    images, labels = images.reshape(-1, 1, 28, 28), labels.reshape(-1)
    order = np.random.default_rng(options.seed).permutation(len(images))
    return [(images[at], labels[at]) for at in (order[i * options.batch:(i + 1) * options.batch]
                                                for i in range(options.steps))]


class Training:
    """LeNet with its optimizer on a device. Objects with equal seeds start with equal weights."""

    def __init__(self, device: str, seed: int):
        flow.manual_seed(seed)
        self.device, self.losses, self.seconds = device, [], 0.0
        self.model = flow.vision.models.lenet5().to(device)
        self.optimizer = flow.optim.Adam(self.model.parameters(), lr=5e-3)

    def step(self, images: np.ndarray, labels: np.ndarray) -> float:
        start = time.perf_counter()
        x, y = flow.tensor(images, device=self.device), flow.tensor(labels, device=self.device)
        loss = nn.functional.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())             # waits for the device
        self.seconds += time.perf_counter() - start
        return self.losses[-1]


def run(options) -> int:
    if not flow.cuda.is_available():
        print("no GPU here, and FLOWEDU_CUDA=sim was not chosen: `make chapter-8` sets up the simulator, and "
              "chooses it")
        return 2
    opening(__file__, options.quick)
    flow.set_num_threads(options.threads)
    said_first(options)
    data = batches(options)
    cpu, cuda = Training("cpu", options.seed), Training("cuda", options.seed)
    cuda.step(*data[0])                             # compiles the kernels
    cuda = Training("cuda", options.seed)
    # disable=None draws the progress bar only in a terminal
    for images, labels in tqdm(data, desc="steps", unit=" steps", leave=False, disable=None):
        cpu.step(images, labels)
        cuda.step(images, labels)

    print(f"\n{'step':>4}  {'loss on the CPU':>16}  {'on cuda':>10}  {'difference':>11}")
    shown = sorted({0, *range(0, options.steps, max(1, options.steps // 5)), options.steps - 1})
    for i in shown:
        print(f"{i:4}  {cpu.losses[i]:16.6f}  {cuda.losses[i]:10.6f}  "
              f"{abs(cpu.losses[i] - cuda.losses[i]):11.1e}")
    most = max(abs(a - b) for a, b in zip(cpu.losses, cuda.losses))
    print(f"largest difference of {options.steps} losses: {most:.1e}")
    here, there = (1e3 * t.seconds / options.steps for t in (cpu, cuda))
    print(f"a step takes {here:.1f} ms on the CPU, {there:.1f} ms "
          f"{'in the simulator, which plays a GPU on one core' if kind() == 'sim' else 'on the GPU'}")
    if kind() == "sim":
        counted(cuda, data[0], options.out)
    else:
        print("what kernels read is counted by the simulator (FLOWEDU_CUDA=sim); on a GPU by Nsight "
              "Compute, ncu")
    if most > 1e-4:
        print("CPU and cuda DIFFER")
        return 1
    return 0


def counted(training: Training, batch, out: Path) -> None:
    """Run one more step under flow.cuda.profile, print its table, and draw it."""
    import pictures

    print(f"\none step of {IMAGES} image, counted, with every check:", flush=True)
    table = io.StringIO()
    with flow.cuda.profile(table) as profile:
        training.step(*(a[:IMAGES] for a in batch))
    print(table.getvalue(), end="")
    print("\nsectors/access: pieces of 32 bytes that 32 threads touch at once; 4 is the least for 32 floats, "
          "32 the most")
    print("picture:", pictures.traffic(profile.kernels, out / "kernels.svg"))


def main() -> int:
    parser = argparse.ArgumentParser(description="Train LeNet on kernels in CUDA C, beside the CPU.")
    parser.add_argument("--steps", type=int, help="default: 30, with --quick 4; on a GPU 300")
    parser.add_argument("--batch", type=int, default=20, help="images of a step")
    parser.add_argument("--seed", type=int, default=0,
                        help="the same seed gives the same run, number for number")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0))
                        if hasattr(os, "sched_getaffinity")
                        else os.cpu_count() or 1, help="of the CPU's kernels; default: one per core")
    parser.add_argument("--out", type=Path, default=Path("build/chapter-8"), help="folder for the picture")
    parser.add_argument("--quick", action="store_true", help="4 steps only, to see that it runs")
    options = parser.parse_args()
    try:
        if not options.steps:
            options.steps = 4
            if not options.quick:
                options.steps = 30 if kind() == "sim" else 300
        if not (1 <= options.steps <= 300 and 1 <= options.batch <= 20) or options.threads < 1:
            parser.error("--steps must be from 1 to 300, --batch from 1 to 20, --threads 1 or more")
        return run(options)
    except flow.errors.DeviceError as error:
        print(error)
        return 2
    except KeyboardInterrupt:
        print("\nstopped")
        return 130


if __name__ == "__main__":
    raise SystemExit(main())
