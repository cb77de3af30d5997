"""Attributes of tensors and aliases of functions that no other file tests."""
import numpy as np
import pytest

import flowedu as flow


def test_flags_and_counts():
    x = flow.ones(2, 3)
    assert (x.is_cpu and not (x.is_cuda or x.is_meta or x.is_quantized or x.is_sparse or x.is_lazy
                              or x.is_global))
    assert x.is_eager and x.is_local and x.layout == "strided"
    assert x.ndimension() == x.dim() == 2 and x.nelement() == x.numel() == 6 and x.output_nr == 0
    assert flow.zeros(0, 4).nelement() == 0 and flow.tensor(1.0).ndimension() == 0
    y = flow.tensor([1.0, 2.0], requires_grad=True).unbind()[1]
    assert y.shape == () and y.grad_fn is not None


def test_aliases_of_functions():
    x = flow.tensor([[1.0, 2.0, 3.0]])
    assert x.H.tolist() == x.T.tolist() and x.H.data_ptr() == x.data_ptr()
    made = x.new_empty(2, 4)
    assert made.shape == (2, 4) and made.dtype is x.dtype
    whole = flow.tensor([1, 2]).new_empty((3,))
    assert whole.shape == (3,) and whole.dtype is flow.int64
    one = flow.placement("cpu", [0])
    assert x.to_consistent(one, flow.sbp.broadcast).is_global


@pytest.mark.parametrize("name, f", [("broadcast_add", np.add), ("broadcast_sub", np.subtract),
                                     ("broadcast_mul", np.multiply), ("broadcast_div", np.divide)])
def test_names_of_oneflow_0_4_with_broadcasting(name, f):
    a, b = np.arange(1.0, 7).reshape(2, 3), np.array([[2.0], [4.0]])
    np.testing.assert_array_equal(getattr(flow, name)(flow.tensor(a), flow.tensor(b)).numpy(), f(a, b))


@pytest.mark.parametrize("name", ["fixed_placement", "device_prior_placement"])
def test_placements_that_have_a_new_name(name, capsys):
    made = getattr(flow, name)("cpu", "0:0")
    assert isinstance(made, type(flow.scope.placement("cpu", "0:0"))) and name in capsys.readouterr().out


def test_the_block_cache_can_be_disabled():
    """Without the cache, freed memory returns to the system at once."""
    flow.empty_cache()
    try:
        flow.set_cache(False)
        x = flow.ones(1000, 100)
        assert x.sum().item() == 100_000
        del x
        assert flow.memory_stats()["cached"] == 0
    finally:
        flow.set_cache(True)


def test_random_integers_like_another_tensor():
    flow.manual_seed(1)
    x = flow.zeros(50, 40, dtype=flow.int32)
    a = flow.randint_like(x, 5)
    b = flow.randint_like(x, -3, 4, dtype=flow.int64)
    assert a.shape == b.shape == x.shape and a.dtype is flow.int32 and b.dtype is flow.int64
    assert set(a.flatten().tolist()) == set(range(5)) and set(b.flatten().tolist()) == set(range(-3, 4))
    np.testing.assert_allclose(np.bincount(a.flatten().numpy()) / 2000, 0.2, atol=0.05)


def test_aliases():
    assert flow.image_resize is flow.image.resize and flow.image_target_resize is flow.image.target_resize
    assert flow.consistent_user_op_module_builder.function is flow.user_op_module_builder.function


def test_a_job_description_outside_of_a_job_is_refused():
    with pytest.raises(NotImplementedError):
        flow.current_global_function_desc()


@pytest.mark.parametrize("kind", [d for d in flow.dtypes() if d.code >= 0], ids=lambda d: d.name)
def test_type_queries(kind):
    x = flow.ones(2, 3).to(kind)
    assert flow.is_tensor(x) and flow.numel(x) == x.numel() == 6
    assert flow.is_floating_point(x) == x.is_floating_point() == ("float" in kind.name)
    assert flow.is_nonzero(x[0, 0]) and not flow.is_nonzero(flow.zeros(1).to(kind))
    assert not (x.is_xpu or x.is_mps or x.is_mkldnn or x.is_nested)


def test_is_tensor_and_is_nonzero_of_other_values():
    assert not any(map(flow.is_tensor, (1, [1.0], np.ones(2), None, flow.Tensor)))
    with pytest.raises(RuntimeError, match="one value"):
        flow.is_nonzero(flow.ones(2))
