"""Tensors take attributes of the user, which copies of the object share or copy as in PyTorch."""
import copy
import gc
import pickle
import weakref

import pytest

import flowedu as flow

# {how another tensor is made: True if it has the attributes}
MAKERS = {
    "deepcopy": (copy.deepcopy, True), "copy": (copy.copy, True),
    "pickle": (lambda t: pickle.loads(pickle.dumps(t)), True), "add_": (lambda t: t.add_(1), True),
    "requires_grad_": (lambda t: t.requires_grad_(False), True), "clone": (lambda t: t.clone(), False),
    "view": (lambda t: t[:], False), "detach": (lambda t: t.detach(), False),
    "data": (lambda t: t.data, False),
    "add": (lambda t: t + 1, False), "double": (lambda t: t.double(), False)}


@pytest.mark.parametrize("name", MAKERS)
def test_other_tensors_have_the_attributes_as_in_pytorch(name):
    make, has = MAKERS[name]
    x = flow.ones(2)
    x.tag, x.require_grad = ["label"], False
    y = make(x)
    assert hasattr(y, "tag") is hasattr(y, "require_grad") is has
    assert x.tag == ["label"] and x.tolist()[0] in (1.0, 2.0)
    if has and y is not x:
        assert y.tag == ["label"] and (y.tag is x.tag) is (name == "copy")


@pytest.mark.torch
@pytest.mark.parametrize("name", MAKERS)
def test_the_table_is_pytorchs(name):
    torch = pytest.importorskip("torch")
    make, has = MAKERS[name]
    x = torch.ones(2)
    x.tag = ["label"]
    assert hasattr(make(x), "tag") is has


def test_an_attribute_may_refer_to_its_tensor():
    x = flow.ones(2)
    x.own = [x]
    y = copy.deepcopy(x)
    assert y.own[0] is y
    alive = weakref.ref(x)
    del x
    gc.collect()
    assert alive() is None


def test_deleted_and_missing_attributes_raise():
    x = flow.ones(2)
    x.tag = 1
    del x.tag
    with pytest.raises(AttributeError):
        _ = x.tag
    with pytest.raises(AttributeError):
        x.shape = (1, 2)


class Label:
    """A value whose release a test can observe."""


@pytest.mark.parametrize("make", [lambda: flow.ones(2), lambda: flow.nn.Parameter(flow.ones(2)),
                                  lambda: flow.ones(2, requires_grad=True) * 2, lambda: flow.ones(2)[0:1]])
def test_new_tensors_do_not_inherit_the_attributes_of_freed_ones(make):
    for _ in range(3):
        held, labels = [make() for _ in range(200)], []    # more than the library reuses
        for x in held:
            x.label = Label()
            labels.append(weakref.ref(x.label))
        del held, x
        assert not any(vars(make()) for _ in range(200))
        assert [label for label in labels if label() is not None] == []
