"""Bounds for samples and results of training in tests, computed from the size of the sample.

A training run rounds differently with each vector width and number of threads, which has the effect of
another seed. So tests compare with random guessing or with the standard error, and not with a figure measured
on one machine.
"""
import math

import numpy as np

# A normal variable is further from its mean than this many standard errors in 2 of 10**9 draws.
SIGMAS = 6


def standard_error(p: float, n: int) -> float:
    """Return the standard error of the share of successes in n independent draws that succeed with
    probability p.
    """
    return math.sqrt(p * (1 - p) / n)


def assert_rate(hits, p: float, draws: int | None = None) -> None:
    """Raise AssertionError unless the share of true elements fits probability `p`.

    draws: number of independent draws, if several elements of `hits` share one; default: the number of
    elements.
    """
    hits = np.asarray(hits, bool)
    error = SIGMAS * standard_error(p, draws or hits.size)
    assert abs(hits.mean() - p) < error, f"the share is {hits.mean():g}: expected {p:g} +- {error:g}"


def assert_mean(x, mean: float, std: float) -> None:
    """Raise AssertionError unless the mean of a sample fits a distribution with this mean and standard
    deviation.
    """
    x = np.asarray(x, np.float64)
    error = SIGMAS * std / math.sqrt(x.size)
    assert abs(x.mean() - mean) < error, f"the mean is {x.mean():g}: expected {mean:g} +- {error:g}"


def assert_std(x, std: float, kurtosis: float = 3.0) -> None:
    """Raise AssertionError unless the standard deviation of a sample fits `std`.

    kurtosis: the fourth central moment over std ** 4; 3 for a normal distribution, and 1.8 for a uniform one.
    The variance of a sample of n has the standard error std ** 2 * sqrt((kurtosis - 1) / n), and its root
    half of that, relatively.
    """
    x = np.asarray(x, np.float64)
    error = SIGMAS * std * math.sqrt((kurtosis - 1) / x.size) / 2
    assert abs(x.std() - std) < error, f"the standard deviation is {x.std():g}: expected {std:g} +- {error:g}"


def most_by_guessing(n: int, classes: int) -> float:
    """Return an accuracy on n examples that random guessing exceeds with probability 1e-9 at most."""
    p = 1 / classes
    return p + SIGMAS * standard_error(p, n)


def assert_learned(losses, classes: int) -> None:
    """Raise AssertionError unless the last losses are below the loss of guessing among `classes`.

    No prediction that ignores its input has a smaller expected cross-entropy than log(classes) on balanced
    classes. The last fifth of the losses must be below that by SIGMAS standard errors of their mean.
    """
    last = np.asarray(losses, np.float64)[-max(3, len(losses) // 5):]
    error = SIGMAS * last.std(ddof=1) / math.sqrt(last.size)
    assert last.mean() + error < math.log(
        classes), f"{last.mean():g} +- {error:g}, guessing: {math.log(classes):g}"


def assert_as_accurate(found: float, other: float, n: int) -> None:
    """Raise AssertionError if `found` is below another accuracy on n examples by more than a new sample would
    be.
    """
    error = SIGMAS * math.sqrt(2) * standard_error(other, n)
    assert found > other - error, f"the accuracy is {found:g}: expected at least {other:g} - {error:g}"
