"""What holds of every record, whatever it says: it is complete when it is defined, its kernel is there, and nobody knows an
op by its name."""
import ast
import importlib
import re
from pathlib import Path

import pytest

import flowedu
from flowedu import _kernels
from flowedu.core.ops.define import REGISTRY, Op
from flowedu.core.ops.record import DEFAULTS, Kernel, Laws, Meaning, Signature, Split, View, read
from flowedu.distributed import rank_graphs
from flowedu.distributed.graph import nodes as boxings
from flowedu.errors import ArgumentError, MissingAttributeError
from flowedu.nn.graph import unroll  # noqa: F401  (a record of its own)
from flowedu.ops.host import HOST
from flowedu.show import meta
from flowedu.tensor import node_names

ROOT = Path(flowedu.__file__).parent
EVERY = [*REGISTRY.values(), *HOST.values(),
         *(x for module in (boxings, rank_graphs) for x in vars(module).values() if isinstance(x, Op))]
FIELDS = sorted({*Signature._fields, *Meaning._fields, *DEFAULTS})


@pytest.mark.parametrize("op", EVERY, ids=lambda op: op.name)
def test_a_record_is_complete_when_it_is_defined(op):
    """It has every field, and none can be set: not from Python, and none is added."""
    for field in (*FIELDS, "rules", "defaults", "added_later"):
        before = getattr(op, field, None)
        with pytest.raises(MissingAttributeError, match="complete when it is defined"):
            setattr(op, field, before)
        with pytest.raises(MissingAttributeError):
            delattr(op, field)
        assert getattr(op, field, None) is before and (hasattr(op, field) or field == "added_later")


def test_the_parts_of_a_record():
    """Each once, and a kernel or a view; what is not said has one default for all."""
    signature, meaning = read("f(x) -> y"), Meaning("a->a", lambda x: x)
    for parts in ([Split(), Split()], [Kernel("copy"), View(lambda strides: (strides, 0))], [meaning], [{"linear": "x"}]):
        with pytest.raises(ArgumentError, match="parts of its record"):
            Op(signature, meaning, *parts)
    with pytest.raises(ArgumentError, match="unknown name"):
        Op(signature, meaning, grad={"x": lambda dz: dz})
    op = Op(signature, meaning, Laws([dict(shapes=[(6,)])]), Split(linear=["x"]))
    assert op.linear == ((("x",), ("y",)),) and op.examples == (dict(shapes=[(6,)]),)
    assert op.random is False and op.mutates is None and op.contiguous == frozenset() and op.name not in REGISTRY


def test_every_kernel_is_registered():
    """What a record names is in the table, and of a kernel file that no record asks for nothing is."""
    assert {op.cpu for op in REGISTRY.values() if op.cpu} <= {name for name, _ in _kernels.TABLE}
    files = list(Path(_kernels.HERE).rglob("*.pyx"))
    assert len(files) > 20
    for file in files:
        module = importlib.import_module(f"{_kernels.__name__}.{_kernels.ISA}.{file.stem}")
        assert {(k, code) for k, versions in module.table().items() for code in versions} <= _kernels.TABLE.keys()


def test_a_kernel_registered_later_takes_the_place_of_one_of_its_name(monkeypatch):
    monkeypatch.setattr(_kernels, "TABLE", dict(_kernels.TABLE) | {("argmax", 0): (1, 2)})
    _kernels.register("argmax")
    assert _kernels.TABLE["argmax", 0] not in [(1, 2), None] and len(_kernels.TABLE) > 100


# ---- names are for messages
def compared(source: str) -> list[int]:
    """Lines that compare the name of an op: a typo is a rule that never holds. `node.op is relu` cannot be misspelt."""
    def is_name(e) -> bool:
        return isinstance(e, ast.Attribute) and e.attr == "name" and isinstance(e.value, (ast.Attribute, ast.Name)) and (
            e.value.attr if isinstance(e.value, ast.Attribute) else e.value.id) in ("op", "_op")

    return [e.lineno for e in ast.walk(ast.parse(source)) if isinstance(e, ast.Compare)
            and any(map(is_name, [e.left, *e.comparators]))]


def test_no_op_is_known_by_its_name():
    """But to see whether the name of a new record is taken."""
    found = {p.name: lines for p in ROOT.rglob("*.py") if (lines := compared(p.read_text(encoding="utf-8")))}
    assert found.keys() == {"define.py", "host.py"} and sum(map(len, found.values())) == 2, "compare ops: `op is relu`"


@pytest.mark.parametrize("source", ['node.op.name == "relu"', 'x = 1 if "relu" != op.name else 2', "node.op.name in LIMITS",
                                    'f(a.b.op.name not in ("add", "mul"))', 'a < b and norm.op.name == "batch_norm"'])
def test_a_name_that_is_compared_is_seen(source):
    assert compared(source) == [1]
    assert not compared("node.op is relu or node.op in LIMITS or hop.name == x.dtype.name or fresh(op.name)")


BARE = re.compile(r"\b(dtype|code) *[<>]=? *\(?[1-9]")


def test_element_types_have_names():
    """Not numbers: FLOATS and NUMBERS in Python, FE_F32 and its like in C."""
    assert all(map(BARE.search, ("x.dtype.code < 2", "v.dtype < (2 if op is DIV else 4)", "v.dtype > 7")))
    for path in ROOT.rglob("*.p[yx]*"):
        if path.suffix in (".py", ".pyx", ".pxi", ".pxd"):
            assert not BARE.search(path.read_text(encoding="utf-8")), f"{path}: name the element types"


@pytest.mark.parametrize("table", [node_names.OP_TYPES, node_names._SCALAR, meta.OUTPUTS],
                         ids=["OP_TYPES", "_SCALAR", "OUTPUTS"])
def test_tables_of_oneflow_names_name_records(table):
    assert set(table) <= REGISTRY.keys()
