"""Arguments that PyTorch's database of operators calls invalid are refused here, too."""
import pytest

import flowedu as flow

F = flow.nn.functional
X, M = flow.tensor([1.0, 2.0]), flow.tensor([[1.0, 2.0], [3.0, 5.0]])
INVALID = {
    "isclose rtol": lambda: flow.isclose(X, X, rtol=-0.4),
    "isclose atol": lambda: flow.isclose(X, X, atol=-0.4),
    "kthvalue of a number": lambda: flow.kthvalue(flow.tensor(1.0), 3),
    "kthvalue of no axis": lambda: flow.kthvalue(flow.tensor(1.0), 1, 2),
    "masked_scatter uint8": lambda: flow.masked_scatter(X, flow.tensor([0, 1], dtype=flow.uint8), X),
    "masked_scatter float": lambda: flow.masked_scatter(X, X, X),
    "rrelu": lambda: F.rrelu(X, 0.3, 0.1),
    "rrelu while training": lambda: F.rrelu(X, 0.3, 0.1, training=True),
    "exponential_": lambda: flow.zeros(2).exponential_(-1.0),
    "exponential_ of 0": lambda: flow.zeros(2).exponential_(0.0),
    "cov fweights": lambda: flow.cov(M, fweights=flow.tensor([1, -1])),
    "cov aweights": lambda: flow.cov(M, aweights=flow.tensor([1.0, -1.0])),
}


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_argument_is_refused(name):
    with pytest.raises(RuntimeError):
        INVALID[name]()
