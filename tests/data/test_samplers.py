"""Samplers: the frequency and order of items, for any sizes."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu.errors import ArgumentError
from flowedu.utils.data import (
    BatchSampler,
    BucketSampler,
    DistributedSampler,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    random_split,
)
from flowedu.utils.data.buckets import padding

SIZE = st.integers(1, 40)


@given(st.integers(0, 40), SIZE, st.booleans())
def test_batches_are_slices(n, size, drop):
    want = [list(range(n))[k:k + size] for k in range(0, n, size)]
    if drop:
        want = [b for b in want if len(b) == size]
    sampler = BatchSampler(range(n), size, drop)
    assert list(sampler) == want and len(sampler) == len(want)


@given(SIZE, st.integers(1, 6), st.booleans(), st.booleans(), st.integers(0, 3))
def test_shares_of_all_ranks_cover_the_dataset(n, ranks, drop, shuffle, epoch):
    """Items are distributed round-robin; the first ones are repeated or the last ones dropped so that all
    ranks get equally many.
    """
    shares = []
    for r in range(ranks):
        sampler = DistributedSampler(range(n), ranks, r, shuffle=shuffle, seed=5, drop_last=drop)
        sampler.set_epoch(epoch)
        shares.append(list(sampler))
        assert len(sampler) == len(shares[-1]) == (n // ranks if drop else -(-n // ranks))
    dealt = [x for row in zip(*shares) for x in row]
    order = (flow.randperm(n, generator=flow.Generator().manual_seed(5 + epoch)).tolist() if shuffle
             else list(range(n)))
    assert dealt == [order[i % n] for i in range(len(dealt))]


@given(SIZE, st.integers(1, 100))
def test_random_orders_repeat_no_item_within_an_epoch(n, count):
    order = list(RandomSampler(range(n), num_samples=count))
    for k in range(0, count, n):
        part = order[k:k + n]
        assert len(set(part)) == len(part) and set(part) <= set(range(n))
    assert sorted(SubsetRandomSampler(range(5, 5 + n))) == list(range(5, 5 + n))


def test_every_order_is_equally_likely():
    flow.manual_seed(3)
    seen = np.zeros((4, 4))
    for _ in range(2000):
        for place, item in enumerate(RandomSampler(range(4))):
            seen[place, item] += 1
    np.testing.assert_allclose(seen / 2000, 0.25, atol=0.05)
    drawn = list(RandomSampler(range(4), replacement=True, num_samples=4000))
    np.testing.assert_allclose(np.bincount(drawn) / 4000, 0.25, atol=0.05)


def test_weights_are_probabilities():
    flow.manual_seed(4)
    weights = [0.0, 1.0, 3.0, 4.0]
    drawn = np.bincount(list(WeightedRandomSampler(weights, 8000)), minlength=4)
    np.testing.assert_allclose(drawn / 8000, np.array(weights) / 8, atol=0.03)
    once = list(WeightedRandomSampler(weights, 3, replacement=False))
    assert sorted(once) == [1, 2, 3]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5))
def test_split_by_numbers(lengths):
    parts = random_split(range(sum(lengths)), lengths)
    assert [len(p) for p in parts] == lengths
    assert sorted(x for p in parts for x in p) == list(range(sum(lengths)))


@given(SIZE, st.lists(st.integers(1, 9), min_size=1, max_size=5))
def test_split_by_parts(n, shares):
    """Sizes are rounded down, and the remainder goes to the first parts."""
    parts = [s / sum(shares) for s in shares]
    want = [int(np.floor(n * p)) for p in parts]
    for k in range(n - sum(want)):
        want[k % len(want)] += 1
    assert [len(p) for p in random_split(range(n), parts)] == want


# ---- buckets
@given(st.integers(1, 3).flatmap(lambda axes: st.lists(st.tuples(*[st.integers(0, 30)] * axes), max_size=60)),
       SIZE, st.booleans(), st.booleans())
def test_buckets_have_each_item_once(sizes, count, shuffle, drop):
    sampler = BucketSampler(sizes, count, shuffle, drop)
    batches = list(sampler)
    assert len(batches) == len(sampler) and all(len(b) == count for b in batches[:-1] if not shuffle)
    left_out = len(sizes) % count if drop else 0
    assert sorted(i for b in batches for i in b) == sorted({i for b in batches for i in b}) and max(
        [len(b) for b in batches], default=0) <= count
    assert sum(map(len, batches)) == len(sizes) - left_out


@given(st.integers(0, 9))
def test_buckets_need_a_quarter_of_the_padding(seed):
    sizes = [tuple(s) for s in np.random.default_rng(seed).integers(20, 100, (240, 2)).tolist()]
    plain = padding(sizes, list(BatchSampler(range(240), 12, False)))
    assert padding(sizes, list(BucketSampler(sizes, 12))) < 0.3 * plain


def test_padding_counts_positions_outside_of_items():
    assert padding([(2, 3), (1, 4), (5, 5)], [[0, 1], [2]]) == 2 * 8 - 6 - 4
    assert padding([(3,), (1,)], [[0, 1]]) == 2 and padding([], []) == 0


def test_a_shuffled_bucket_sampler_follows_its_generator():
    sizes = list(range(40))
    first, again = (list(BucketSampler(sizes, 4, True, generator=flow.Generator().manual_seed(3)))
                    for _ in range(2))
    assert (first == again != list(BucketSampler(sizes, 4))
            and sorted(first) == sorted(BucketSampler(sizes, 4)))


@pytest.mark.parametrize("sizes", [[(1, 2), (3,)], [()], ["ab"], [(1, -2)], [None], 5])
def test_invalid_sizes_are_refused(sizes):
    with pytest.raises(ArgumentError, match="BucketSampler"):
        BucketSampler(sizes, 2)


def test_classes_can_be_subscripted():
    """A subscripted class is a valid base, as in `class Digits(Dataset[int])`."""
    data = flow.utils.data
    for kind in (data.Dataset, data.IterableDataset, data.TensorDataset, data.Sampler, data.BatchSampler,
                 data.DataLoader):
        made = type("Made", kind[int].__mro_entries__((kind[int],)), {})
        assert issubclass(made, kind) and kind[int].__origin__ is kind and kind[int].__args__ == (int,)
    assert len(data.DataLoader[int]([1, 2, 3])) == 3
