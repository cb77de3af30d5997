"""Milestone 7: train LeNet on image files of any size, and batch similar images to reduce padding."""
import io
import time
from pathlib import Path

import numpy as np

import flowedu as flow
import flowedu.typing as tp
from flowedu.utils.data import BucketSampler
from flowedu.utils.data.buckets import padding
from flowedu_course.exercises import load

WANTED, EPOCHS, FILES = 0.9, 3, 3000
demo = load(Path(__file__).with_name("demo.py"))


def learned(files, labels, test_files, test_labels) -> float:
    """Return the accuracy of LeNet on test files, after training. Its jobs resize all images."""
    train_job, eval_job = demo.define_jobs(max(map(len, files + test_files)))
    rng, found = np.random.default_rng(0), 0.0
    for epoch in range(1, EPOCHS + 1):
        loss, speed = demo.train_epoch(train_job, files, labels, rng, f"epoch {epoch}")
        found = demo.accuracy(eval_job, test_files, test_labels)
        told = f"{found:.1%} of {len(test_files):,} digits, {speed:,.0f} files/s"
        print(f"epoch {epoch}: loss {loss:.3f}, {told}", flush=True)
    return found


def aligned(files, batches) -> int:
    """Return the number of pixels of all aligned batches. Exit if an image is incomplete in its batch."""
    flow.clear_default_session()
    most = max(map(len, files))
    config = flow.function_config()
    config.default_logical_view(flow.scope.mirrored_view())

    @flow.global_function("predict", config)
    def look(some: tp.ListListNumpy.Placeholder((len(batches[0]), most), flow.int8)) -> tp.ListNumpy:
        pictures = flow.image.decode(flow.tensor_list_to_tensor_buffer(some), color_space="GRAY")
        return flow.cast(flow.image.batch_align(pictures, (64, 64, 1), flow.uint8, 8), flow.float32)

    seen = 0
    for chosen in batches:
        (out,) = look(demo.batch(files, chosen))
        # A batch of copies of the first image, which needs no padding for larger images.
        (alone,) = look(demo.batch(files, chosen[:1] * len(chosen)))
        if not np.isclose(out[0].sum(), alone[0].sum()):
            print("milestone 7 missed: a picture is not whole in its batch")
            raise SystemExit(1)
        seen += out.size
    return seen


def main() -> None:
    from PIL import Image
    flow.random.seed(0)
    rng = np.random.default_rng(0)
    (images, labels), (test_images, test_labels) = flow.data.load_mnist(demo.BATCH, demo.BATCH)
    files = demo.draw_anew(images.reshape(-1, 1, 28, 28)[:FILES], rng)
    test_files = demo.draw_anew(test_images.reshape(-1, 1, 28, 28)[:1000], rng)
    start = time.perf_counter()
    found = learned(files, labels.reshape(-1)[:FILES], test_files, test_labels.reshape(-1)[:1000])

    some = test_files[:480]
    sizes = [Image.open(io.BytesIO(f)).size[::-1] for f in some]
    given = [list(range(i, i + 24)) for i in range(0, len(some), 24)]
    similar = list(BucketSampler(sizes, 24))
    pixels = [aligned(some, batches) for batches in (given, similar)]
    print(f"aligned batches of 24: {pixels[0]:,} pixels as they come, {pixels[1]:,} with similar ones "
          f"together; padding {padding(sizes, similar) / padding(sizes, given):.0%} of it")
    print(f"{time.perf_counter() - start:.0f} s")
    if found < WANTED or pixels[1] >= pixels[0]:
        print(f"milestone 7 missed: {found:.1%} of the digits where {WANTED:.0%} are wanted, or batches that "
              f"pad as before")
        raise SystemExit(1)
    print("milestone 7 reached: files of any size, in lists, tensors and batches of your own")


if __name__ == "__main__":
    main()
