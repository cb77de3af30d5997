"""flow.utils.data: datasets, samplers, collation, and DataLoader with and without worker processes."""
import collections
import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
from common import HANGS
from flowedu.errors import FlowError
from flowedu.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
    random_split,
)

pytestmark = pytest.mark.skipif(os.name == "nt", reason="fork")
Point = collections.namedtuple("Point", "x y")


class Numbers(Dataset):
    """Dataset whose item i is f(i)."""

    def __init__(self, n, f=int):
        self.n, self.f = n, f

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.f(i)


class Stream(IterableDataset):
    """Iterable dataset of 0 to n - 1, divided among the workers."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        return iter(range(0 if info is None else info.id, self.n, 1 if info is None else info.num_workers))


def lists(loader):
    return [batch.tolist() for batch in loader]


def children():
    return {p.pid for p in multiprocessing.active_children()}


@pytest.fixture(autouse=True)
def nothing_stays_behind():
    """Check after each test that all worker processes have ended and been waited for, and that their shared
    memory is freed.
    """
    yield
    gc.collect()
    assert not children()
    zombies = [p for p in processes_of(os.getpid()) if p[1] == "Z"]
    assert not zombies
    assert not list_shared_memory(os.getpid())


def list_shared_memory(pid):
    """Return the names of shared memory that a loader of this process left."""
    names = os.listdir("/dev/shm") if os.path.isdir("/dev/shm") else ()
    return [n for n in names if n.startswith(f"flowedu-{pid}-")]


def processes_of(parent):
    """Return [(pid, state)] of the children of a process."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8") as f:
                    fields = f.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == parent:
                found.append((int(name), fields[0]))
    return found


# --- data sets
# -------------------------------------------------------------------------------------------------------

def test_tensor_dataset():
    x, y = flow.tensor(np.arange(12.0).reshape(6, 2)), flow.tensor([0, 1, 2, 3, 4, 5])
    data = TensorDataset(x, y)
    assert len(data) == 6 and [t.tolist() for t in data[2]] == [[4, 5], 2]
    batches = list(DataLoader(data, 4))
    slow = list(DataLoader(data, 4, collate_fn=lambda items: default_collate(items)))        # item by item
    for a, b in zip(batches, slow):
        assert type(a) is type(b) is list
        for t, u in zip(a, b):
            assert t.tolist() == u.tolist() and t.dtype is u.dtype
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        TensorDataset(x, y[:3])


def test_concat_and_subset_datasets():
    a, b = Numbers(3), Numbers(2, lambda i: 10 + i)
    both = a + b
    assert (isinstance(both, ConcatDataset) and [both[i] for i in range(5)] == [0, 1, 2, 10, 11]
            and both[-1] == 11)
    for i in (5, -6):
        with pytest.raises(IndexError):
            both[i]
    with pytest.raises(AssertionError, match="empty"):
        ConcatDataset([])
    with pytest.raises(AssertionError, match="ChainDataset"):
        ConcatDataset([Stream(3)])
    chain = Stream(2) + Stream(3)
    assert isinstance(chain, ChainDataset) and list(chain) == [0, 1, 0, 1, 2]
    assert [Subset(both, [4, 0])[i] for i in range(2)] == [11, 0]


def test_random_split():
    flow.manual_seed(1)
    a, b = random_split(Numbers(10), [7, 3])
    assert (len(a), len(b)) == (7, 3) and sorted([*a.indices, *b.indices]) == list(range(10))
    flow.manual_seed(1)
    again, _ = random_split(Numbers(10), [7, 3])
    assert a.indices == again.indices
    one, _ = random_split(Numbers(10), [7, 3], flow.Generator().manual_seed(5))
    two, _ = random_split(Numbers(10), [7, 3], generator=flow.Generator().manual_seed(5))
    assert one.indices == two.indices
    assert [len(s) for s in random_split(Numbers(10), [0.5, 0.25, 0.25])] == [6, 2, 2]
    with pytest.raises(ValueError, match="Sum of input lengths does not equal"):
        random_split(Numbers(10), [7, 4])
    with pytest.raises(ValueError, match="add up to 1"):
        random_split(Numbers(10), [0.7, 0.4])


# --- samplers
# --------------------------------------------------------------------------------------------------------

def test_samplers_return_the_documented_orders():
    data = Numbers(6)
    assert list(SequentialSampler(data)) == list(range(6))
    assert sorted(RandomSampler(data)) == list(range(6)) and len(RandomSampler(data)) == 6
    many = RandomSampler(data, num_samples=14)
    order = list(many)
    assert len(many) == len(order) == 14 and sorted(order[:6]) == sorted(order[6:12]) == list(range(6))
    drawn = list(RandomSampler(data, replacement=True, num_samples=200))
    assert set(drawn) == set(range(6)) and len(drawn) == 200
    assert sorted(SubsetRandomSampler([3, 5, 9])) == [3, 5, 9]
    assert set(WeightedRandomSampler([0, 1, 0, 3.0], 50)) == {1, 3}
    assert (list(BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3],
                                                       [4]] and len(BatchSampler(range(5), 2, False)) == 3)
    assert (list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
            and len(BatchSampler(range(5), 2, True)) == 2)


def test_a_seed_repeats_orders_and_epochs_differ():
    def epochs():
        loader = DataLoader(Numbers(30), 30, shuffle=True)
        return [lists(loader)[0] for _ in range(3)]

    flow.manual_seed(7)
    first = epochs()
    flow.manual_seed(7)
    assert epochs() == first and first[0] != first[1] != first[2]
    flow.manual_seed(8)
    assert epochs() != first
    g = flow.Generator().manual_seed(3)
    one = lists(DataLoader(Numbers(9), 9, shuffle=True, generator=g))
    g.manual_seed(3)
    assert lists(DataLoader(Numbers(9), 9, shuffle=True, generator=g)) == one


def test_distributed_sampler():
    shares = [list(DistributedSampler(Numbers(5), 2, r, shuffle=False)) for r in range(2)]
    assert shares == [[0, 2, 4], [1, 3, 0]]
    shares = [list(DistributedSampler(Numbers(5), 2, r, shuffle=False, drop_last=True)) for r in range(2)]
    assert shares == [[0, 2], [1, 3]]
    one, two = (DistributedSampler(Numbers(40), 2, r, seed=1) for r in range(2))
    first = list(one), list(two)
    assert (sorted(first[0] + first[1]) == list(range(40)) and (list(one), list(two)) == first
            and len(one) == 20)
    one.set_epoch(1)
    assert list(one) != first[0]
    assert list(DistributedSampler(Numbers(1), 3, 2, shuffle=False)) == [0]
    assert len(DistributedSampler(Numbers(5))) == 5
    with pytest.raises(ValueError, match="Invalid rank 2"):
        DistributedSampler(Numbers(5), 2, 2)


# --- collating
# -------------------------------------------------------------------------------------------------------

def test_default_collate_stacks_items_and_keeps_structure():
    a = default_collate([np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)])
    assert a.shape == (2, 2, 3) and a.dtype is flow.float32
    assert default_collate([flow.tensor([1, 2]), flow.tensor([3, 4])]).tolist() == [[1, 2], [3, 4]]
    assert default_collate([np.int32(1), np.int32(2)]).dtype is flow.int32
    for items, dtype in (([1, 2], flow.int64), ([1.5, 2], flow.float64), ([2.5, 1], flow.float64),
                         ([True, False], flow.bool)):
        t = default_collate(items)
        assert t.dtype is dtype and t.tolist() == items
    assert default_collate([("a", 1), ("b", 2)])[0] == ("a", "b")
    made = default_collate([{"x": [1, 2.0], "s": b"q"}, {"x": [3, 4.0], "s": b"r"}])
    assert type(made) is dict and type(made["x"]) is list and made["s"] == [b"q", b"r"]
    assert made["x"][0].tolist() == [1, 3] and made["x"][1].dtype is flow.float64
    point = default_collate([Point(1, "a"), Point(2, "b")])
    assert type(point) is Point and point.x.tolist() == [1, 2] and point.y == ("a", "b")
    ordered = default_collate([collections.OrderedDict(a=1)])
    assert type(ordered) is collections.OrderedDict
    w = flow.tensor([1.0], requires_grad=True)
    default_collate([w, w * 2]).sum().backward()
    assert w.grad.tolist() == [3]
    big = default_collate([np.array([1, 2], ">i4"), np.array([1, 2, 3, 4], np.int32)[::-2]])
    assert big.tolist() == [[1, 2], [4, 2]]


@pytest.mark.parametrize(("items", "error", "words"), [
    ([flow.zeros(2), flow.zeros(3)], RuntimeError, "equal size"),
    ([flow.zeros(2), flow.zeros(2, dtype=flow.int64)], RuntimeError, "int64"),
    ([(1, 2), (1,)], RuntimeError, "equal size"),
    ([object()], TypeError, "found object"),
    ([None, None], TypeError, "found NoneType"),
    ([np.array(["a"])], TypeError, "numbers"),
])
def test_uncollatable_items_are_refused(items, error, words):
    with pytest.raises(error, match=words) as e:
        default_collate(items)
    assert isinstance(e.value, FlowError) and "fix:" in str(e.value)


@pytest.mark.torch
@settings(max_examples=30)
@given(st.recursive(st.sampled_from(["int", "float", "bool", "str", "array", "tensor"]),
                    lambda inner: st.one_of(st.lists(inner, min_size=1, max_size=3), st.dictionaries(
                        st.text(max_size=2), inner, max_size=3), st.tuples(inner, inner)), max_leaves=6),
       st.integers(1, 3))
def test_collate_matches_pytorch(kind, n):
    torch = pytest.importorskip("torch")

    def item(kind, i, tensor):
        if isinstance(kind, dict):
            return {k: item(v, i, tensor) for k, v in kind.items()}
        if isinstance(kind, (list, tuple)):
            return type(kind)(item(v, i, tensor) for v in kind)
        return {"int": i, "float": i / 2, "bool": i > 1, "str": str(i), "array": np.full((2,), i, np.int32),
                "tensor": tensor([[float(i)]])}[kind]

    def plain(x):
        if isinstance(x, dict):
            return {k: plain(v) for k, v in x.items()}
        if isinstance(x, (list, tuple)):
            return type(x)(map(plain, x))
        return x if isinstance(x, str) else (x.tolist(), str(x.dtype).split(".")[1])

    got = default_collate([item(kind, i, flow.tensor) for i in range(n)])
    assert plain(got) == plain(torch.utils.data.default_collate([item(kind, i, torch.tensor)
                                                                 for i in range(n)]))


# --- DataLoader
# ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches_come_in_order(workers):
    slow_first = Numbers(11, lambda i: (time.sleep(0.05 if i < 3 else 0), i)[1])
    loader = DataLoader(slow_first, 2, num_workers=workers)
    assert lists(loader) == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10]] and len(loader) == 6
    assert lists(DataLoader(Numbers(5), 2, drop_last=True, num_workers=workers)) == [[0, 1], [2, 3]]
    assert lists(DataLoader(Numbers(6), batch_sampler=[[5, 1], [2]], num_workers=workers)) == [[5, 1], [2]]
    assert lists(DataLoader(Numbers(6), 2, sampler=[5, 1, 3], num_workers=workers)) == [[5, 1], [3]]
    assert list(DataLoader(Numbers(3), batch_size=None, num_workers=workers)) == [0, 1, 2]
    assert lists(DataLoader(Numbers(0), 2, num_workers=workers)) == []
    whole = DataLoader(Numbers(4, lambda i: np.full(2, i)), None, num_workers=workers)
    assert [x.tolist() for x in whole] == [[0, 0], [1, 1], [2, 2], [3, 3]]


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_ways_to_start_a_process(context):
    data = TensorDataset(flow.tensor(np.arange(10.0)), flow.tensor(np.arange(10)))
    got = [[t.tolist() for t in b] for b in DataLoader(data, 5, num_workers=1,
                                                       multiprocessing_context=context)]
    assert got == [[[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]], [[5, 6, 7, 8, 9], [5, 6, 7, 8, 9]]]


def test_the_order_does_not_depend_on_workers():
    found = []
    for workers in (0, 1, 2):
        flow.manual_seed(11)
        loader = DataLoader(Numbers(23), 4, shuffle=True, num_workers=workers)
        found.append([lists(loader), lists(loader), flow.rand(1).item()])
    assert found[0] == found[1] == found[2]


def test_batches_of_every_type_are_transferred():
    """Large and small arrays, strided arrays, strings, named tuples, and None are transferred and are
    writable.
    """
    def item(i):
        return {"big": np.full((3, 200, 50), i, np.float32), "small": flow.tensor([i]), "text": f"item {i}",
                "point": Point(i, np.zeros((0, 3))), "bool": i > 2, "half": np.full(3, i, np.float16)}

    def none(items):
        batch = default_collate(items)
        return {**batch, "none": None, "turned": flow.from_numpy(np.arange(60000.0).reshape(200, 300).T),
                "grad": flow.ones(2, requires_grad=True), "array": np.arange(5), "set": {1, 2}}

    for batch, n in zip(DataLoader(Numbers(5, item), 3, num_workers=2, collate_fn=none), (3, 2)):
        assert batch["big"].shape == (n, 3, 200, 50) and batch["big"].dtype is flow.float32
        first = int(batch["small"][0].item())
        np.testing.assert_array_equal(batch["big"].numpy()[:, 0, 0, 0], range(first, first + n))
        assert batch["text"] == [f"item {first + i}" for i in range(n)] and type(batch["point"]) is Point
        assert batch["point"].y.shape == (n, 0, 3) and batch["none"] is None and batch["set"] == {1, 2}
        np.testing.assert_array_equal(batch["turned"].numpy(), np.arange(60000.0).reshape(200, 300).T)
        assert (batch["grad"].requires_grad and type(batch["array"]) is np.ndarray
                and batch["half"].dtype is flow.float16)
        batch["big"].mul_(2)
        batch["array"][0] = 9
        assert batch["big"].numpy()[1, 0, 0, 0] == 2 * (first + 1)


def test_retained_batches_keep_their_values():
    """The memory of a batch is reused only when nothing refers to the batch."""
    data = Numbers(40, lambda i: np.full((30, 1000), i, np.float32))
    loader = DataLoader(data, 1, num_workers=2, persistent_workers=True)
    kept = [b for i, b in enumerate(loader) if i % 3 == 0]
    row = kept[1][0, 2]                              # a view keeps the memory alive
    del kept[1]
    for batch in loader:
        assert batch.shape == (1, 30, 1000)
    assert [int(b.numpy().mean()) for b in kept] == [0, *range(6, 40, 3)] and row.numpy().mean() == 3
    for b in kept:
        assert (b.numpy() == b.numpy().flat[0]).all()
    loader._pool.close()


def test_iterable_datasets():
    assert lists(DataLoader(Stream(5), 2)) == [[0, 1], [2, 3], [4]]
    assert lists(DataLoader(Stream(5), 2, drop_last=True)) == [[0, 1], [2, 3]]
    assert list(DataLoader(Stream(3), None)) == [0, 1, 2]
    for workers in (1, 2, 3):
        found = lists(DataLoader(Stream(20), 3, num_workers=workers))
        assert sorted(sum(found, [])) == list(range(20))
    assert lists(DataLoader(Stream(9), 2, num_workers=2)) == [[0, 2], [1, 3], [4, 6], [5, 7], [8]]
    assert lists(DataLoader(Stream(0), 2, num_workers=2)) == []

    class Sized(Stream):
        def __len__(self):
            return self.n

    assert len(DataLoader(Sized(5), 2)) == 3 and len(DataLoader(Sized(5), 2, drop_last=True)) == 2


def test_workers_really_overlap(tmp_path):
    """Each item waits until its neighbor is in progress, so sequential workers would wait forever."""
    def meet(i):
        (tmp_path / str(i)).touch()
        limit = time.monotonic() + HANGS
        while not (tmp_path / str(i ^ 1)).exists():
            assert time.monotonic() < limit, "alone"
            time.sleep(0.001)
        return i

    assert lists(DataLoader(Numbers(6, meet), 1, num_workers=2)) == [[0], [1], [2], [3], [4], [5]]


def test_worker_info():
    def look(i):
        info = get_worker_info()
        return info.id, info.num_workers, info.seed, len(info.dataset), flow.get_num_threads(), os.getpid()

    assert get_worker_info() is None
    items = [b[0] for b in DataLoader(Numbers(4, look), 1, num_workers=2, collate_fn=list)]
    assert [i[:2] for i in items] == [(0, 2), (1, 2), (0, 2), (1, 2)] and {i[3] for i in items} == {4}
    assert items[1][2] == items[0][2] + 1 and {i[4] for i in items} == {1}
    assert len({i[5] for i in items}) == 2 and os.getpid() not in {i[5] for i in items}


def test_random_numbers_in_workers():
    def chance(i):
        return random.random(), np.random.rand(), flow.rand(1).item()        # noqa: NPY002

    def epochs(workers):
        loader = DataLoader(Numbers(4, chance), 1, num_workers=workers, collate_fn=list)
        return [[b[0] for b in loader] for _ in range(2)]

    flow.manual_seed(5)
    first = epochs(2)
    flow.manual_seed(5)
    assert epochs(2) == first
    numbers = [x for epoch in first for item in epoch for x in item]
    assert len(set(numbers)) == len(numbers), "no two workers and no two epochs have the same numbers"


def test_worker_init_fn_and_persistent_workers(tmp_path):
    def begin(number):
        (tmp_path / f"{number}-{os.getpid()}").touch()

    loader = DataLoader(Numbers(4, lambda i: os.getpid()), 1, num_workers=2, worker_init_fn=begin,
                        persistent_workers=True)
    pids = [set(sum(lists(loader), [])) for _ in range(3)]
    assert pids[0] == pids[1] == pids[2] == children() and len(list(tmp_path.iterdir())) == 2
    for _, _batch in zip(range(1), loader):          # an unfinished epoch
        pass
    assert set(sum(lists(loader), [])) == pids[0]
    old = iter(loader)
    new = iter(loader)
    next(new)
    with pytest.raises(ValueError, match="another iteration has begun"):
        next(old)
    del loader, old, new
    gc.collect()
    assert not children()
    loader = DataLoader(Numbers(2, lambda i: os.getpid()), 1, num_workers=1, worker_init_fn=begin)
    assert set(sum(lists(loader), [])) != set(sum(lists(loader), []))


# --- errors
# ----------------------------------------------------------------------------------------------------------

class Odd(Exception):
    def __init__(self, a, b):
        super().__init__(a)
        self.b = b


def fails(i):
    if i == 3:
        raise KeyError("no item 3")
    return i


def test_an_exception_keeps_its_position_and_the_worker_traceback():
    it = iter(DataLoader(Numbers(6, fails), 1, num_workers=2))
    assert [next(it).item() for _ in range(3)] == [0, 1, 2]
    with pytest.raises(KeyError, match="no item 3") as e:
        next(it)
    note = "\n".join(e.value.__notes__)
    assert "DataLoader worker process 1" in note and "in fails" in note and "Traceback" in note
    assert [x.item() for x in it] == [4, 5], "and the rest can still be had"


def test_flow_errors_are_transferred_completely():
    with pytest.raises(RuntimeError, match="equal size") as e:
        list(DataLoader(Numbers(4, lambda i: flow.zeros(i + 1)), 2, num_workers=1))
    assert isinstance(e.value, FlowError) and e.value.fix and str(e.value).count("fix:") == 1


@pytest.mark.parametrize("f", [lambda i: (_ for _ in ()).throw(Odd(1, 2)), lambda i: Odd.missing])
def test_an_unpicklable_exception(f):
    with pytest.raises((RuntimeError, AttributeError), match="Odd"):
        list(DataLoader(Numbers(1, f), 1, num_workers=1))


def test_an_unpicklable_batch():
    with pytest.raises(Exception, match="pickle|local"):
        list(DataLoader(Numbers(1, lambda i: lambda: i), 1, num_workers=1, collate_fn=list))


def test_an_exception_at_the_start():
    def begin(number):
        raise LookupError("no licence")

    with pytest.raises(LookupError, match="no licence"):
        list(DataLoader(Numbers(2), 1, num_workers=2, worker_init_fn=begin))


@pytest.mark.parametrize(("end", "words"), [(lambda: os.kill(os.getpid(), signal.SIGKILL),
                                             "killed by signal: SIGKILL"),
                                            (lambda: os._exit(3), "exited unexpectedly, with code 3"),
                                            (lambda: sys.exit(4), "exited unexpectedly, with code 4")])
def test_a_worker_that_ends_is_reported(end, words, capfd):
    loader = DataLoader(Numbers(40, lambda i: end() if i == 5 else i), 1, num_workers=2)
    with pytest.raises(RuntimeError, match=words) as e:
        list(loader)
    assert "pid" in str(e.value) and "fix:" in str(e.value) and not children()


def test_a_slow_worker_ends_with_a_timeout_error():
    with pytest.raises(RuntimeError, match="timed out after 0.3 seconds"):
        list(DataLoader(Numbers(2, lambda i: time.sleep(1000)), 1, num_workers=1, timeout=0.3))


def test_an_abandoned_iteration():
    loader = DataLoader(Numbers(1000, lambda i: np.zeros(50000)), 1, num_workers=2, prefetch_factor=4)
    for i, _ in enumerate(loader):
        if i == 2:
            break
    gc.collect()
    assert not children()


@pytest.mark.parametrize("how", ["SIGINT", "SIGKILL"])
def test_workers_end_with_the_main_process(how, tmp_path):
    """Ctrl-C reaches the whole process group; a killed main process cannot notify its workers."""
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent("""
        import os, time
        import flowedu as flow
        from flowedu.utils.data import DataLoader, Dataset

        class Slow(Dataset):
            def __len__(self): return 10000
            def __getitem__(self, i): time.sleep(0.01); return i, os.getpid()

        try:
            for n, (x, pid) in enumerate(DataLoader(Slow(), 2, num_workers=2)):
                print(*sorted(set(pid.tolist())), flush=True)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """), encoding="utf-8")
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               encoding="utf-8",
                               start_new_session=True)
    pids = {int(process.stdout.readline()) for _ in range(6)}
    assert len(pids) == 2
    if how == "SIGINT":
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=HANGS)
        assert out.splitlines()[-1] == "interrupted" and process.returncode == 0 and "Traceback" not in err
    else:
        process.kill()
        process.communicate(timeout=HANGS)
    limit = time.monotonic() + HANGS
    while any(alive(p) for p in pids) and time.monotonic() < limit:
        time.sleep(0.05)
    assert not any(alive(p) for p in pids) and not list_shared_memory(process.pid)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_workers_compute_while_the_main_process_has_threads():
    """Fork while the threads of a large product sleep: the child computes alone and does not wait for
    them.
    """
    old = flow.get_num_threads()
    flow.set_num_threads(2)
    try:
        a = flow.ones(600, 600)
        (a @ a).sum().item()
        data = Numbers(3, lambda i: (flow.ones(300, 300) @ flow.ones(300, 300))[0, 0].item() + i)
        assert lists(DataLoader(data, 1, num_workers=2, timeout=HANGS)) == [[300], [301], [302]]
        assert (a @ a)[0, 0].item() == 600
    finally:
        flow.set_num_threads(old)


@pytest.mark.parametrize(("options", "error", "words"), [
    ({"num_workers": -1}, ValueError, "non-negative"),
    ({"num_workers": 1.5}, TypeError, "num_workers"),
    ({"timeout": -1}, ValueError, "timeout"),
    ({"prefetch_factor": 2}, ValueError, "prefetch_factor.*multiprocessing"),
    ({"persistent_workers": True}, ValueError, "persistent_workers"),
    ({"num_workers": 1, "prefetch_factor": 0}, ValueError, "positive"),
    ({"shuffle": True, "sampler": [0]}, ValueError, "mutually exclusive with shuffle"),
    ({"batch_sampler": [[0]], "batch_size": 2}, ValueError, "mutually exclusive with batch_size"),
    ({"batch_sampler": [[0]], "shuffle": True}, ValueError, "mutually exclusive"),
    ({"batch_size": None, "drop_last": True}, ValueError, "disables auto-batching"),
    ({"batch_size": 0}, ValueError, "positive"),
    ({"dataset": Stream(3), "shuffle": True}, ValueError, "IterableDataset"),
    ({"dataset": Stream(3), "sampler": [0]}, ValueError, "IterableDataset"),
    ({"dataset": object()}, TypeError, "len"),
])
def test_refusals_report_a_fix(options, error, words):
    with pytest.raises(error, match=words) as e:
        DataLoader(**{"dataset": Numbers(3), **options})
    assert isinstance(e.value, FlowError) and "fix:" in str(e.value)


def test_default_convert():
    x = default_convert({"a": [np.ones(2), 3], "b": Point(np.float32(1), "s")})
    assert isinstance(x["a"][0], flow.Tensor) and x["a"][1] == 3 and x["b"].x.item() == 1 and x["b"].y == "s"


class Forking(Dataset):
    """Forks its process in item 2; the child ends as `how` specifies."""

    def __init__(self, how):
        self.how = how

    def __len__(self):
        return 6

    def __getitem__(self, i):
        if i == 2 and os.fork() == 0 and self.how == "raise":
            raise ValueError("in the copy")
        return np.float32(i)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize("how", ["return", "raise"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_copy_of_a_worker_does_not_use_its_pipe(how):
    for _ in range(3):
        batches = [b.tolist() for b in DataLoader(Forking(how), batch_size=2, num_workers=1, timeout=HANGS)]
        assert batches == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize("batch, dtype", [
    ([1, 2], flow.int64), ([1, 2.5], flow.float32), ([2.5, 1], flow.float64), ([1.5, 2.5], flow.float64),
    ([True, False], flow.bool), ([1, True], flow.int64), ([True, 2.5], flow.float32)])
def test_the_dtype_of_collated_numbers(batch, dtype):
    """As in PyTorch, float64 if the first item is a float, otherwise the dtype of flow.tensor(batch)."""
    from flowedu.utils.data import default_collate
    for items, part in ((batch, lambda y: y), ([(x, x) for x in batch], lambda y: y[0]),
                        ([{"x": x} for x in batch], lambda y: y["x"])):
        got = part(default_collate(items))
        assert got.dtype is dtype and got.tolist() == batch
