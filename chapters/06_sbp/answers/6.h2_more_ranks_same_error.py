"""With the same seed, each rank draws the same samples.

So the mean over all ranks is the mean of one rank. A seed that depends on the rank gives different
samples, and the same samples in every run.
"""
import numpy as np

import flowedu as flow


def program(n, seed):
    """Draw n samples on each rank. Return the samples of this rank, and the mean of all samples."""
    flow.manual_seed(1000 * seed + flow.env.get_rank())
    samples = flow.randn(n)
    total = flow.comm.all_reduce(samples.sum())
    return samples.numpy(), total.item() / (n * flow.env.get_world_size())


def draw(n, seed, ranks):
    """Return the samples of each rank, and the mean."""
    results = flow.distributed.spawn(lambda: program(n, seed), ranks)
    return [samples for samples, _ in results], results[0][1]


if __name__ == "__main__":
    for ranks in (1, 4, 16):
        errors = [abs(draw(100, seed, ranks)[1]) for seed in range(50)]
        print(f"{ranks} ranks: average error of the mean {np.mean(errors):.4f}; "
              f"expected: about {0.08 / ranks ** 0.5:.4f}")
