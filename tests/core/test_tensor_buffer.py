"""TensorBuffers, TensorLists, and the ops between them, eagerly and in jobs."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import flowedu as flow
import flowedu.typing as tp
from common import f32, fresh_session, refused
from flowedu.errors import ArgumentError, DTypeError, ShapeError
from flowedu.ops.host import HOST

__all__ = ["fresh_session"]

TYPES = [np.float32, np.float64, np.int32, np.int64, np.uint8, np.int8, np.bool_]
any_array = st.sampled_from(TYPES).flatmap(lambda t: arrays(t, array_shapes(min_dims=0, max_dims=3,
                                                                            max_side=4)))


@st.composite
def equal_rank(draw):
    """Draw arrays of one rank and dtype with different shapes, including empty ones."""
    rank, kind = draw(st.integers(1, 4)), draw(st.sampled_from(TYPES))
    shapes = draw(st.lists(st.tuples(*[st.integers(0, 5)] * rank), min_size=1, max_size=6))
    return [draw(arrays(kind, s)) for s in shapes]


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


# ---- TensorBuffer
@given(st.lists(any_array, max_size=6))
def test_a_buffer_returns_the_stored_arrays(items):
    buffer = flow.TensorBuffer(items)
    assert (buffer.shape == (len(items),) and buffer.dtype is flow.tensor_buffer
            and buffer.size == len(buffer) == len(items))
    assert all(same(a, b) for a, b in zip(buffer, items)) and buffer.nbytes == sum(a.nbytes for a in items)
    assert same_blocks(buffer, items)


def same_blocks(container, items):
    return [(m.shape, m.dtype.numpy, m.nbytes) for m in container.memory()] == [(a.shape, a.dtype, a.nbytes)
                                                                                for a in items]


@given(st.lists(any_array, min_size=1, max_size=6))
def test_every_tensor_of_a_buffer_has_separate_memory(items):
    # views are copied
    blocks = sorted(m for m in flow.TensorBuffer([a[...] for a in items]).memory() if m.nbytes)
    assert all(a.address + a.nbytes <= b.address for a, b in zip(blocks, blocks[1:]))


def test_a_buffer_keeps_arrays_that_own_their_memory_and_copies_the_rest():
    whole = f32(4, 6)
    buffer = flow.TensorBuffer([whole, whole[1], whole.T, b"abc", [1.0, 2.0], flow.tensor([3.0])])
    assert buffer[0] is whole and not np.shares_memory(buffer[1], whole) and buffer[2].flags.c_contiguous
    assert same(buffer[3], np.frombuffer(b"abc", np.uint8)) and same(buffer[4], np.array([1.0, 2.0]))
    assert same(buffer[5], np.array([3], np.float32))


def test_a_buffer_is_indexed_like_a_nested_list():
    buffer = flow.gen_tensor_buffer((2, 3), [(i + 1,) for i in range(6)], list(range(6)))
    assert buffer[1, 2].shape == (6,) and buffer[-1, 0].shape == (4,)
    assert buffer[1].shape == (3,) and buffer[1][0] is buffer[1, 0]
    assert buffer[:, 1:].shape == (2, 2) and [a.shape for a in buffer[:, 2].items] == [(3,), (6,)]
    assert len(buffer) == 2 and [row.shape for row in buffer] == [(3,), (3,)]
    with pytest.raises(IndexError):
        buffer[2]
    with pytest.raises(IndexError):
        flow.TensorBuffer([f32(1)])[1]


def test_repr_and_attributes_of_a_buffer():
    bytes_ = np.zeros((2, 3), np.uint8)
    assert repr(flow.TensorBuffer([bytes_, f32(1)])) == "TensorBuffer(shape=(2,): uint8[2, 3], float32[1])"
    assert repr(flow.TensorBuffer([f32(1)] * 5)).endswith("float32[1], ...)")
    with refused(ShapeError, "3 arrays", "(2, 2)"):
        flow.TensorBuffer([f32(1)] * 3, (2, 2))
    with refused(DTypeError, "array 1", "complex64"):
        flow.TensorBuffer([f32(1), np.zeros(2, np.complex64)])
    with refused(NotImplementedError, "tensor_buffer_to_list_of_tensors"):
        flow.TensorBuffer([f32(1)]).numpy()


# ---- TensorList
@given(equal_rank())
def test_a_list_returns_the_stored_arrays(items):
    tensors = flow.TensorList(items)
    assert len(tensors) == len(items) and all(same(a, b) for a, b in zip(tensors, items))
    assert tensors[-1].shape == items[-1].shape and same_blocks(tensors, items)
    assert tensors.shape == (sum(a.shape[0] for a in items),
                             *np.array([a.shape for a in items])[:, 1:].max(axis=0))


@given(equal_rank())
def test_a_list_is_contiguous_without_gaps(items):
    tensors = flow.TensorList(items)
    blocks = tensors.memory()
    assert blocks[0].address == tensors.data.ctypes.data and tensors.data.flags.owndata
    assert all(a.address + a.nbytes == b.address for a, b in zip(blocks, blocks[1:]))
    assert sum(b.nbytes for b in blocks) == tensors.nbytes == sum(a.nbytes for a in items)
    assert list(np.diff(tensors.offsets)) == [a.size for a in items] and tensors.offsets[0] == 0
    for view, block in zip(tensors, blocks):
        assert not view.size or view.ctypes.data == block.address


def test_the_tensors_of_a_list_are_views_and_arrays_are_copies():
    tensors = flow.TensorList([f32(2, 3), f32(1, 2)])
    copies = tensors.arrays()
    tensors[1][0, 1] = 7
    assert tensors.data[-1] == 7 and copies[1][0, 1] != 7
    with pytest.raises(IndexError, match="tensor 2 of a TensorList of 2"):
        tensors[2]


def test_a_list_casts_its_tensors_and_refuses_mixed_ranks_and_dtypes():
    assert flow.TensorList([np.arange(3), f32(2)], dtype=flow.float32).dtype is flow.float32
    assert flow.TensorList([], dtype=flow.int8, rank=3).spec == ((0, 0, 0), flow.int8)
    assert repr(flow.TensorList([f32(1, 2)])) == "TensorList(1 x float32: (1, 2))"
    with refused(ShapeError, "tensor 1", "rank 2"):
        flow.TensorList([f32(2), f32(2, 2)])
    with refused(DTypeError, "tensor 1", "int64", "float32"):
        flow.TensorList([f32(2), np.arange(2)])
    with refused(DTypeError, "empty"):
        flow.TensorList([])


# ---- ops
@given(arrays(np.float32, array_shapes(min_dims=1, max_dims=4, max_side=4)), st.data())
def test_a_tensor_survives_conversion_to_a_buffer_and_back(x, data):
    d = data.draw(st.integers(0, x.ndim - 1))
    buffer = flow.tensor_to_tensor_buffer(flow.tensor(x), d)
    assert buffer.shape == x.shape[:x.ndim - d]
    y = flow.tensor_buffer_to_tensor(buffer, flow.float32, x.shape[x.ndim - d:])
    assert isinstance(y, flow.Tensor) and same(y.numpy(), x)


@given(st.lists(array_shapes(min_dims=2, max_dims=2, max_side=5), min_size=1, max_size=5), st.data())
def test_a_list_survives_conversion_to_a_buffer_and_back(shapes, data):
    items = [data.draw(arrays(np.int32, (1, *s))) for s in shapes]
    buffer = flow.tensor_list_to_tensor_buffer(flow.TensorList(items))
    assert buffer.shape == (len(items),) and all(same(a, b[0]) for a, b in zip(buffer, items))
    back = flow.tensor_buffer_to_tensor_list(buffer, (5, 5), flow.int32)
    assert isinstance(back, flow.TensorList) and all(same(a, b) for a, b in zip(back, items))
    parts = flow.tensor_list_split(back)
    assert isinstance(parts, tuple) and all(same(a.numpy(), b[0]) for a, b in zip(parts, items))


def test_a_list_is_cast_and_an_array_counts_as_a_list_of_its_rows():
    floats = flow.tensor_buffer_to_tensor_list(flow.TensorBuffer([np.array([1, 2], np.int64)]), (4,),
                                               flow.float32)
    assert same(floats[0], np.array([[1, 2]], np.float32))
    x = f32(3, 2)
    assert all(same(a, b) for a, b in zip(flow.tensor_list_to_tensor_buffer(flow.tensor(x)), x))
    assert [t.shape for t in flow.tensor_list_split(flow.tensor(x))] == [(2,)] * 3


def test_a_generated_buffer_holds_the_requested_values():
    buffer = flow.gen_tensor_buffer([2, 2], [(2, 1), (1, 2), (2, 4), (4, 2)], [0.0, 1.0, 2.0, 3.0])
    static = flow.tensor_buffer_to_list_of_tensors(buffer[1], (8,), flow.float)
    assert [t.shape for t in static] == [(8,)] * 2 and [float(t.mean()) for t in static] == [2, 3]
    for t, v, s in zip(flow.tensor_buffer_to_list_of_tensors(buffer, (100, 100), flow.float, True), range(4),
                       (2, 2, 8, 8)):
        assert t.dtype is flow.float32 and t.numel() == s and (t.numpy() == v).all()
    assert flow.gen_tensor_buffer([1], [(3,)], [7], flow.int64)[0].dtype == np.int64


def test_results_do_not_share_memory_with_inputs():
    buffer = flow.TensorBuffer([f32(2, 3)])
    before = buffer[0].copy()
    for y in (flow.tensor_buffer_to_list_of_tensors(buffer, (2, 3), flow.float)[0],
              flow.tensor_buffer_to_list_of_tensors(buffer, (9, 9), flow.float, True)[0],
              flow.tensor_buffer_to_tensor(buffer, flow.float, (2, 3))):
        y.numpy()[...] = 0
    x = f32(2, 3)
    tensors = flow.TensorList([x[None]])
    flow.tensor_list_split(tensors)[0].numpy()[...] = 0
    flow.tensor_list_to_tensor_buffer(tensors)[0][...] = 0
    assert same(buffer[0], before) and same(tensors[0][0], x)


def test_errors_name_the_instance():
    mixed = flow.TensorBuffer([f32(2, 3), f32(2, 3), f32(3, 2), np.zeros((2, 3), np.uint8)])
    square = flow.TensorBuffer(mixed.items, (2, 2))
    with refused(ShapeError, "instance 2", "(3, 2)", "(2, 3)"):
        flow.tensor_buffer_to_tensor(mixed, flow.float32, (2, 3))
    with refused(ShapeError, "instance (1, 0)"):
        flow.tensor_buffer_to_tensor(square, flow.float32, (2, 3))
    with refused(DTypeError, "instance 1", "uint8", "float32"):
        flow.tensor_buffer_to_tensor(mixed[1::2], flow.float32, (2, 3))
    with refused(ShapeError, "instance 2", "at most 5", "(3, 2)"):
        flow.tensor_buffer_to_tensor_list(flow.TensorBuffer([f32(1, 5), f32(2, 1), f32(3, 2)]), (1, 5),
                                          flow.float32)
    with refused(ShapeError, "instance 0", "rank 2"):
        flow.tensor_buffer_to_tensor_list(mixed, (6,), flow.float32)
    with refused(ShapeError, "instance 0", "6 elements", "dynamic_out=True"):
        flow.tensor_buffer_to_list_of_tensors(mixed, (7,), flow.float)
    with refused(ShapeError, "instance 0", "at most 5"):
        flow.tensor_buffer_to_list_of_tensors(mixed, (5,), flow.float, True)
    with refused(DTypeError, "instance 3", "uint8"):
        flow.tensor_buffer_to_list_of_tensors(mixed, (6,), flow.float, True)
    with refused(ShapeError, "tensor 1", "(2, 3)", "(1, 2, 3)"):
        flow.tensor_list_to_tensor_buffer(flow.TensorList([f32(1, 3), f32(2, 3)]))


one = flow.TensorBuffer([f32(3)])


@pytest.mark.parametrize("call, error, words", [
    (lambda: flow.tensor_to_tensor_buffer(flow.tensor(f32(2, 3)), 2), ArgumentError, ("instance_dims", "2")),
    (lambda: flow.tensor_to_tensor_buffer(f32(2, 3), 1), DTypeError, ("flow.tensor",)),
    (lambda: flow.tensor_to_tensor_buffer([1.0], 0), DTypeError, ("list",)),
    (lambda: flow.tensor_buffer_to_tensor(flow.tensor(f32(2)), flow.float, (3,)), DTypeError,
     ("to_tensor_buffer",)),
    (lambda: flow.tensor_buffer_to_tensor(one, flow.float, 3), ArgumentError, ("instance_shape",)),
    (lambda: flow.tensor_buffer_to_tensor(one, flow.record, (3,)), DTypeError, ("record",)),
    (lambda: flow.gen_tensor_buffer([2], [(1,)], [0.0]), ArgumentError, ("2", "1 shapes")),
    (lambda: flow.gen_tensor_buffer([1], [(0,)], [0.0]), ArgumentError, ("shape_list[0]",)),
    (lambda: flow.gen_tensor_buffer([1], [(1,)], [0.0], flow.uint8), DTypeError, ("uint8",)),
    (lambda: flow.tensor_list_split(one), DTypeError, ("tensor_buffer_to_list",)),
    (lambda: flow.tensor_list_to_tensor_buffer(one), DTypeError, ("tensor list",)),
    (lambda: flow.tensor_buffer_to_tensor_list(flow.TensorBuffer(one, (1, 1)), (3,), flow.float), ShapeError,
     ("(N,)",)),
])
def test_wrong_arguments_raise_with_these_words(call, error, words):
    with refused(error, *words):
        call()


# ---- in jobs
def mirrored():
    config = flow.function_config()
    config.default_logical_view(flow.scope.mirrored_view())
    return config


def test_a_round_trip_in_a_job():
    """The round trip of OneFlow's own test."""
    @flow.global_function()
    def job(x: tp.Numpy.Placeholder((16, 24, 32, 36))) -> tp.Numpy:
        buffer = flow.tensor_to_tensor_buffer(x, instance_dims=2)
        assert buffer.shape == (16, 24) and buffer.dtype is flow.tensor_buffer
        return flow.tensor_buffer_to_tensor(buffer, flow.float32, [32, 36])

    x = f32(16, 24, 32, 36)
    for _ in range(2):
        assert same(job(x), x)


def test_a_job_accepts_and_returns_lists_of_varying_sizes():
    @flow.global_function(function_config=mirrored())
    def job(x: tp.ListListNumpy.Placeholder((3, 6, 5))) -> tp.ListListNumpy:
        buffer = flow.tensor_list_to_tensor_buffer(x)
        assert buffer.shape == (3,)
        y = flow.tensor_buffer_to_tensor_list(buffer, (6, 5), flow.float64)
        assert y.shape == (3, 6, 5) and y.is_dynamic
        return y

    for sizes in (((6, 5), (1, 1), (2, 4)), ((3, 3),) * 3, ((5, 6), (1, 30), (1, 1))):
        items = [f32(1, *s, seed=i) for i, s in enumerate(sizes)]
        (out,) = job([items])
        assert ([type(a) for a in out] == [np.ndarray] * 3 and all(same(a, b.astype(np.float64))
                                                                   for a, b in zip(out, items)))


def test_a_generated_buffer_in_a_job():
    """The typical flow of OneFlow 0.4: every buffer becomes a dynamic blob, which other ops work on."""
    @flow.global_function(function_config=mirrored())
    def job() -> list[tp.ListNumpy]:
        x = flow.gen_tensor_buffer([2, 2], [(2, 1), (1, 2), (2, 4), (4, 2)], [0.0, 1.0, 2.0, 3.0])
        blobs = flow.tensor_buffer_to_list_of_tensors(x, (100, 100), flow.float, True)
        assert all(b.is_dynamic and b.shape == (100, 100) for b in blobs)
        return [b * 2 for b in blobs]

    got = [a for (a,) in job()]
    assert ([a.shape for a in got] == [(2, 1), (1, 2), (2, 4), (4, 2)]
            and [a.max() for a in got] == [0, 2, 4, 6])


def test_the_blobs_of_a_list_can_be_computed_with():
    @flow.global_function(function_config=mirrored())
    def job(x: tp.ListListNumpy.Placeholder((2, 4, 4))) -> list[tp.ListNumpy]:
        return [flow.math.relu(p) for p in flow.tensor_list_split(x)]

    items = [f32(1, 4, 2), f32(1, 3, 3, seed=1)]
    assert all(same(a, np.maximum(b[0], 0)) for (a,), b in zip(job([items]), items))
    with refused(ShapeError, "tensor 1", "(2, 2, 2)"):
        job([[f32(1, 2, 2), f32(2, 2, 2)]])


def test_a_buffer_cannot_leave_a_job_or_be_computed_with():
    @flow.global_function()
    def job(x: tp.Numpy.Placeholder((2, 3))) -> tp.Numpy:
        return flow.math.relu(flow.tensor_to_tensor_buffer(x, 1))

    with refused(DTypeError, "tensor_buffer_to_tensor"):
        job(f32(2, 3))


def test_a_wrong_dtype_is_reported_while_the_job_is_built():
    @flow.global_function()
    def job(x: tp.Numpy.Placeholder((2, 3))) -> tp.Numpy:
        return flow.tensor_buffer_to_tensor(x, flow.float, (3,))

    with refused(DTypeError, "not a TensorBuffer", "test_tensor_buffer.py"):
        job(f32(2, 3))


# ---- every host op of this package returns the shape that it infers
def test_inferred_shapes_match_results():
    buffer = flow.TensorBuffer([f32(2, 3) for _ in range(6)], (2, 3))
    row = buffer[0]
    cases = {"tensor_to_tensor_buffer": ([flow.tensor(f32(2, 3, 4))], {"instance_dims": 1}),
             "tensor_buffer_to_tensor": ([buffer], {"dtype": flow.float32, "instance_shape": (2, 3)}),
             "gen_tensor_buffer": ([], {"shape": (2,), "shape_list": ((1,), (2,)), "value_list": (0, 1),
                                        "data_type": flow.float32}),
             "tensor_buffer_item": ([buffer], {"index": 1, "out_shape": (6,), "out_dtype": flow.float32,
                                               "dynamic_out": False}),
             "tensor_list_to_tensor_buffer": ([flow.TensorList([f32(1, 2), f32(1, 3)])], {}),
             "tensor_buffer_to_tensor_list": ([row], {"shape": (2, 3), "dtype": flow.float32}),
             "tensor_list_item": ([flow.TensorList([f32(1, 2, 2), f32(1, 2, 2)])], {"index": 1})}
    for name, (inputs, attrs) in cases.items():
        op = HOST[name]
        promised = op.infer([x.spec for x in inputs], op.complete(attrs))[0]
        assert op(*inputs, **attrs).spec == promised, name


def test_a_list_shorter_than_its_placeholder():
    with refused(ShapeError, "fewer"):
        HOST["tensor_list_item"](flow.TensorList([f32(1, 2)]), index=1)
