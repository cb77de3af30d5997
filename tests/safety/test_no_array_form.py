"""Law: no function creates a tensor with a dtype that arrays cannot have (char, record, tensor_buffer)."""
import pytest

import flowedu as flow
from flowedu.errors import FlowError

NONE = [d for d in flow.dtypes() if d.code < 0]
WAYS = [
    "ones(2).to(k)", "ones(2).to(dtype=k, copy=True)", "ones(2).to(flow.device('cpu'), k)", "ones(2).type(k)",
    "cast(flow.ones(2), k)", "tensor([1], dtype=k)", "as_tensor([1], dtype=k)", "zeros(2, dtype=k)",
    "empty(2, dtype=k)", "full((2,), 1, dtype=k)",
    "ones_like(flow.ones(2), dtype=k)", "ones(2).new_zeros(2, dtype=k)", "arange(3, dtype=k)",
    "linspace(0, 1, 3, dtype=k)",
    "eye(2, dtype=k)", "rand(2, dtype=k)", "randn(2, dtype=k)", "randint(0, 3, (2,), dtype=k)",
    "nn.Linear(2, 2, dtype=k)",
    "nn.Linear(2, 2).to(k)", "ones(2).sum(dtype=k)", "ones(2).mean(dtype=k)", "ones(2).prod(dtype=k)",
    "ones(2).view(k)",
    "ones(2).cumsum(0, dtype=k)", "ones(2).cumprod(0, dtype=k)", "softmax(flow.ones(2), 0, dtype=k)",
    "nn.functional.log_softmax(flow.ones(2), 0, dtype=k)"]


def test_dtypes_without_an_array_form():
    assert {d.name for d in NONE} == {"char", "record", "tensor_buffer"}


@pytest.mark.parametrize("kind", NONE, ids=lambda d: d.name)
@pytest.mark.parametrize("way", WAYS)
def test_tensors_of_these_dtypes_are_refused(way, kind):
    """Reading such a tensor would crash the process."""
    with pytest.raises(FlowError):
        eval(f"flow.{way}", {"flow": flow, "k": kind})


@pytest.mark.parametrize("kind", [d for d in flow.dtypes() if d.code >= 0], ids=lambda d: d.name)
@pytest.mark.parametrize("way", ["ones(2).to(k)", "tensor([1], dtype=k)", "cast(flow.ones(2), k)",
                                 "zeros(2, dtype=k)"])
def test_tensors_of_all_other_dtypes_are_created(way, kind):
    assert eval(f"flow.{way}", {"flow": flow, "k": kind}).dtype is kind
