"""flow.array_api on a GPU: results are on the device of the arrays and equal those of the CPU."""
import numpy as np
import pytest

import flowedu as flow

xp = flow.array_api
A, I, V = [[1.5, -2.0, 0.0], [4.0, 0.25, -1.0]], [[3, 1, 2], [2, 2, 1]], [3.0, 1.0, 2.0]
CALLS = """add(a, 2)|multiply(2.0, a)|maximum(0.5, a)|where(a > 0, a, 0.0)|clip(a, -1.0, 1.0)|sign(a)|nextafter(a, a + 1.0)
    sum(i)|std(a, axis=1)|argmax(a, axis=0)|count_nonzero(a)|cumulative_sum(a, axis=1, include_initial=True)|all(i)
    take(a, xp.asarray([2, 0], device=d), axis=1)|sort(v, descending=True)|isin(i, 2)|isin(2, i)
    searchsorted(xp.sort(v), 1.5)|searchsorted(xp.sort(v), a)|unique_all(i).indices
    unique_inverse(i).inverse_indices|concat([i, a])|flip(a)|stack([i, a])
    expand_dims(a, axis=(0, -1))|repeat(v, 2)|matmul(a, v)|vecdot(a, v)|linalg.solve(xp.eye(3, device=d) + 1.0, v)
    linalg.outer(v, v)|linalg.cross(v, a)|eye(3, k=1, device=d)|arange(3, device=d)|linspace(0.0, 1.0, 3, device=d)
    full((2,), 3, device=d)|ones_like(a)|astype(a, xp.int32)|asarray(a, copy=True)|from_dlpack(a)|meshgrid(v, v)[0]
    tril(a)"""


@pytest.mark.parametrize("call", [c.strip() for line in CALLS.splitlines() for c in line.split("|")])
def test_results_are_on_the_device_of_the_arrays(call):
    def evaluate(device):
        arrays = {name: xp.asarray(x, device=device) for name, x in {"a": A, "i": I, "v": V}.items()}
        return eval(f"xp.{call}", {"xp": xp, "d": device, **arrays})

    device = xp.__array_namespace_info__().devices()[1]
    result, expected = evaluate(device), evaluate("cpu")
    assert (result.device == device and expected.device == flow.device("cpu")
            and result.dtype is expected.dtype)
    # float32 sums of at most 6 values below 10 in another order: the error is below 6 * 10 * 2**-24 < 1e-5.
    np.testing.assert_allclose(result.cpu().numpy(), expected.numpy(), atol=1e-5)


def test_copies_between_devices():
    x = flow.ones(2, device="cuda")
    assert (x.to_device("cpu").device == flow.device("cpu") and x.to_device("cpu").to_device("cuda").device
            == x.device)
    assert flow.from_dlpack(x, device="cpu").device == flow.device("cpu")
    with pytest.raises(BufferError, match="copy=False"):
        flow.from_dlpack(x, device="cpu", copy=False)
