"""Complete trainings: LeNet on real digits and a small GPT learn as well in bfloat16, and in float16 with a
scaler, as in float32. Without a scaler, float16 learns nothing if gradients are small.
"""
import numpy as np
import pytest

import flowedu as flow
import flowedu.nn.functional as F
from bounds import assert_as_accurate, most_by_guessing
from flowedu import amp, nn
from flowedu.models import GPT
from flowedu.oneflow04.data.mnist import SUBSET, read

DIGITS = read(SUBSET)
PICTURES, TESTED = (a[:, None].astype("f4") / 255 for a in (DIGITS.x_train, DIGITS.x_test))
STEPS, BATCH = 120, 32


def make_lenet():
    flow.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5),
                         nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 84), nn.ReLU(), nn.Linear(84, 10))


def batches(steps=STEPS):
    rng = np.random.default_rng(0)
    for _ in range(steps):
        rows = rng.integers(0, len(PICTURES), BATCH)
        yield flow.tensor(PICTURES[rows]), flow.tensor(DIGITS.y_train[rows].astype("i8"))


def accuracy(model, dtype=flow.float32) -> float:
    with flow.no_grad():
        return float((model(flow.tensor(TESTED).to(dtype)).float().argmax(1).numpy() == DIGITS.y_test).mean())


def train_lenet(half=None, scaler=None, weight=1.0) -> float:
    """Return the accuracy after training in autocast; weight: factor of the loss, for which the rate
    compensates.
    """
    model, scaler = make_lenet(), scaler or amp.GradScaler(enabled=False)
    optimizer = flow.optim.SGD(model.parameters(), lr=0.05 / weight, momentum=0.9)
    for x, y in batches():
        with amp.autocast("cpu", dtype=half or flow.bfloat16, enabled=half is not None):
            loss = F.cross_entropy(model(x), y) * weight
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    return accuracy(model)


@pytest.fixture(scope="module")
def reached() -> float:
    """Return the accuracy of float32 training."""
    found = train_lenet()
    assert found > most_by_guessing(len(TESTED), 10)
    return found


@pytest.mark.parametrize("half", [flow.bfloat16, flow.float16], ids=repr)
def test_lenet_learns_in_autocast_as_in_float32(half, reached):
    found = train_lenet(half, amp.GradScaler() if half is flow.float16 else None)
    assert_as_accurate(found, reached, len(TESTED))


def test_lenet_entirely_in_bfloat16(reached):
    model = make_lenet().bfloat16()
    optimizer = flow.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, master_weights=True)
    for x, y in batches():
        F.cross_entropy(model(x.bfloat16()), y).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert_as_accurate(accuracy(model, flow.bfloat16), reached, len(TESTED))


@pytest.mark.slow
def test_float16_without_a_scale_does_not_train_on_a_small_loss(reached):
    """The loss is weighted by a millionth, like one of several goals, or one in m^2 for errors of
    millimeters. float32 and bfloat16 still train; in float16 the gradients are 0.
    """
    small = 1e-6
    for half, scaler in ((None, None), (flow.bfloat16, None), (flow.float16, amp.GradScaler(2.0 ** 24))):
        assert_as_accurate(train_lenet(half, scaler, weight=small), reached, len(TESTED))
    assert train_lenet(flow.float16, weight=small) < most_by_guessing(len(TESTED), 10)


# ---- a small GPT
TEXT = "she sells sea shells by the sea shore. the shells she sells are sea shells, i am sure. " * 4
LETTERS = sorted({*TEXT})
CODES = np.array([LETTERS.index(c) for c in TEXT])


def lines(steps=80, length=24):
    rng = np.random.default_rng(1)
    for _ in range(steps):
        starts = rng.integers(0, len(CODES) - length - 1, 12)
        rows = np.stack([CODES[i:i + length + 1] for i in starts])
        yield flow.tensor(rows[:, :-1].copy()), flow.tensor(rows[:, 1:].copy())


def gpt():
    flow.manual_seed(2)
    return GPT(len(LETTERS), n_layer=2, n_head=2, d=32, block_size=24)


def last_losses(losses) -> float:
    return float(np.mean(losses[-5:]))


def train_gpt_eagerly(half=None, scaler=None, whole=False) -> float:
    """Train; whole: the entire model is in `half`, else in autocast."""
    model, scaler, losses = gpt(), scaler or amp.GradScaler(enabled=False), []
    model = model.to(half) if whole else model
    optimizer = flow.optim.AdamW(model.parameters(), lr=5e-3, master_weights=whole)
    for x, y in lines():
        with amp.autocast("cpu", dtype=half or flow.bfloat16, enabled=half is not None and not whole):
            loss = model(x, y)[1]
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        losses.append(loss.item())
    return last_losses(losses)


def train_gpt_in_graph(half, scaler) -> float:
    model = gpt()

    class Step(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            groups = [{"params": [*model.parameters()], "clip_grad_max_norm": 1.0,
                       "clip_grad_norm_type": 2.0}]
            self.add_optimizer(flow.optim.AdamW(groups, lr=5e-3))
            self.config.enable_amp(True, dtype=half)
            self.set_grad_scaler(scaler)

        def build(self, x, y):
            loss = self.model(x, y)[1]
            loss.backward()
            return loss

    step = Step()
    return last_losses([step(x, y).item() for x, y in lines()])


def entropy_of_pairs() -> float:
    """Return the entropy of a letter of TEXT, given the one before it: the best loss of a table of pairs."""
    pairs = np.zeros((len(LETTERS), len(LETTERS)))
    np.add.at(pairs, (CODES[:-1], CODES[1:]), 1)
    given = np.broadcast_to(pairs.sum(1, keepdims=True), pairs.shape)[pairs > 0]
    return float(-(pairs[pairs > 0] * np.log(pairs[pairs > 0] / given)).sum() / pairs.sum())


@pytest.fixture(scope="module")
def lost() -> float:
    found = train_gpt_eagerly()
    assert found < entropy_of_pairs()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("train", [
    lambda: train_gpt_eagerly(flow.bfloat16), lambda: train_gpt_eagerly(flow.bfloat16, whole=True),
    lambda: train_gpt_eagerly(flow.float16, amp.GradScaler()),
    lambda: train_gpt_eagerly(flow.float16, amp.GradScaler(), whole=True),
    lambda: train_gpt_in_graph(flow.bfloat16, amp.GradScaler(enabled=False)),
    lambda: train_gpt_in_graph(flow.float16, amp.GradScaler())],
    ids=["bfloat16", "bfloat16 all", "float16", "float16 all", "bfloat16 graph", "float16 graph"])
def test_a_small_gpt_learns_as_in_float32(train, lost):
    assert train() < lost * 1.15 + 0.02
