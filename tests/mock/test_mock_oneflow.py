"""Names that only the mocked `oneflow` has, and functions with OneFlow's behaviour instead of PyTorch's."""
import importlib
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu import mock
from flowedu.errors import ArgumentError, ShapeError


@pytest.fixture(autouse=True)
def oneflow():
    with mock.enable("oneflow"):
        yield importlib.import_module("oneflow")


# ---- labels
@given(st.integers(1, 4), st.integers(1, 3), st.lists(st.integers(1, 3), max_size=2),
       st.sampled_from(["mean", "sum", "none"]), st.booleans())
def test_labels_of_any_shape_are_flattened(n, classes, places, reduction, is_flat):
    """Losses are those of labels (N, ...), and with "none" they have the shape of the labels."""
    own = importlib.import_module("oneflow")
    rng = np.random.default_rng(0)
    x = flow.tensor(rng.normal(size=(n, classes, *places)).astype("f4"))
    labels = flow.tensor(rng.integers(0, classes, (n, *places)))
    other_shape = (labels.numel(),) if is_flat else (*labels.shape, 1)
    want = flow.nn.functional.cross_entropy(x, labels, reduction=reduction).numpy()
    results = [own.nn.functional.cross_entropy(x, labels.reshape(other_shape), reduction=reduction),
               own.nn.CrossEntropyLoss(reduction=reduction)(x, labels.reshape(other_shape))]
    for result in results:
        expected_shape = other_shape if reduction == "none" else ()
        np.testing.assert_array_equal(result.numpy(), want.reshape(expected_shape))


def test_labels_of_another_number_are_refused(oneflow):
    for shape in [(4,), (3, 2), (0, 1), ()]:
        with pytest.raises(ShapeError, match="Expected target size"):
            oneflow.nn.CrossEntropyLoss()(flow.ones(3, 5), flow.zeros(*shape, dtype=flow.int64))
    with pytest.raises(ShapeError):                                   # flowedu's own loss is PyTorch's
        flow.nn.CrossEntropyLoss()(flow.ones(3, 5), flow.zeros(3, 1, dtype=flow.int64))


def test_the_loss_is_flowedus_with_classes_of_probabilities(oneflow):
    loss = oneflow.nn.CrossEntropyLoss(label_smoothing=0.1)
    assert isinstance(loss, flow.nn.CrossEntropyLoss) and repr(loss) == "CrossEntropyLoss()"
    x, p = flow.randn(3, 5), flow.softmax(flow.randn(3, 5), 1)
    assert loss(x, p).item() == flow.nn.CrossEntropyLoss(label_smoothing=0.1)(x, p).item()
    assert loss(x[0], flow.tensor(2)).item() == flow.nn.CrossEntropyLoss(label_smoothing=0.1)(
        x[0], flow.tensor(2)).item()


# ---- records
def test_records_are_written_and_read_back(oneflow):
    record = importlib.import_module("oneflow.core.record.record_pb2")
    assert oneflow.core.record.record_pb2 is record
    message = record.OFRecord(feature={"label": record.Feature(int32_list=record.Int32List(value=[7]))})
    read_back = record.OFRecord.FromString(message.SerializeToString())
    assert read_back.feature["label"].int32_list.value[:] == [7]
    with mock.enable("torch"), pytest.raises(ModuleNotFoundError):
        importlib.import_module("torch.core.record.record_pb2")


# ---- mock_torch
def test_mock_torch_is_the_mock_of_torch(oneflow):
    before = sys.modules.get("torch")
    mock_torch = importlib.import_module("oneflow.mock_torch")
    assert oneflow.mock_torch is mock_torch
    with mock_torch.enable():
        assert importlib.import_module("torch").nn.Linear is flow.nn.Linear
    mock_torch.enable()
    mock_torch.enable(verbose=True)
    for nested in (True, False):
        mock_torch.disable()
        assert mock.is_enabled("torch") is nested
    mock_torch.disable()
    assert sys.modules.get("torch") is before and mock.is_enabled("oneflow")


@pytest.mark.parametrize("options", [{"lazy": True}, {"extra_dict": {"a": "b"}}])
def test_mock_torch_refuses_what_it_does_not_do(oneflow, options):
    with pytest.raises(ArgumentError, match="mock_torch.enable"):
        oneflow.mock_torch.enable(**options)
    assert not mock.is_enabled("torch")
