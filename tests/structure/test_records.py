"""Rules for all op records: complete when defined, kernels exist, and code names ops by their records."""
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
from flowedu.nn.graph import unroll  # noqa: F401  (defines a record)
from flowedu.ops.host import HOST
from flowedu.show import meta
from flowedu.tensor.gradients import node_names

ROOT = Path(flowedu.__file__).parent
EVERY = [*REGISTRY.values(), *HOST.values(),
         *(x for module in (boxings, rank_graphs) for x in vars(module).values() if isinstance(x, Op))]
FIELDS = sorted({*Signature._fields, *Meaning._fields, *DEFAULTS})


@pytest.mark.parametrize("op", EVERY, ids=lambda op: op.name)
def test_a_record_is_complete_when_it_is_defined(op):
    """Every field exists, none can be set or deleted, and none can be added."""
    for field in (*FIELDS, "rules", "defaults", "added_later"):
        before = getattr(op, field, None)
        with pytest.raises(MissingAttributeError, match="complete when it is defined"):
            setattr(op, field, before)
        with pytest.raises(MissingAttributeError):
            delattr(op, field)
        assert getattr(op, field, None) is before and (hasattr(op, field) or field == "added_later")


def test_parts_and_defaults_of_a_record():
    """Each part occurs once, with a kernel or a view. Missing fields have one default for all records."""
    signature, meaning = read("f(x) -> y"), Meaning("a->a", lambda x: x)
    for parts in ([Split(), Split()], [Kernel("copy"), View(lambda strides: (strides, 0))], [meaning],
                  [{"linear": "x"}]):
        with pytest.raises(ArgumentError, match="parts of its record"):
            Op(signature, meaning, *parts)
    with pytest.raises(ArgumentError, match="unknown name"):
        Op(signature, meaning, grad={"x": lambda dz: dz})
    op = Op(signature, meaning, Laws([dict(shapes=[(6,)])]), Split(linear=["x"]))
    assert op.linear == ((("x",), ("y",)),) and op.examples == (dict(shapes=[(6,)]),)
    assert (op.random is False and op.mutates is None and op.contiguous == frozenset()
            and op.name not in REGISTRY)


def test_every_kernel_is_registered():
    """The kernels of all records, and of all kernel files, are in the table."""
    assert {op.cpu for op in REGISTRY.values() if op.cpu} <= {name for name, _ in _kernels.TABLE}
    files = list(Path(_kernels.HERE).rglob("*.pyx"))
    assert len(files) > 20
    for file in files:
        module = importlib.import_module(f"{_kernels.__name__}.{_kernels.ISA}.{file.stem}")
        assert {(k, code) for k, versions in module.table().items()
                for code in versions} <= _kernels.TABLE.keys()


def test_a_later_kernel_replaces_one_with_the_same_name(monkeypatch):
    monkeypatch.setattr(_kernels, "TABLE", dict(_kernels.TABLE) | {("argmax", 0): (1, 2)})
    _kernels.register("argmax")
    assert _kernels.TABLE["argmax", 0] not in [(1, 2), None] and len(_kernels.TABLE) > 100


# ---- op names
def compared(source: str) -> list[int]:
    """Return the lines that compare the name of an op. Unlike in `op is relu`, a typo would go unnoticed."""
    def is_name(e) -> bool:
        return (isinstance(e, ast.Attribute) and e.attr == "name"
                and isinstance(e.value, (ast.Attribute, ast.Name))
                and (e.value.attr if isinstance(e.value, ast.Attribute) else e.value.id) in ("op", "_op"))

    return [e.lineno for e in ast.walk(ast.parse(source)) if isinstance(e, ast.Compare)
            and any(map(is_name, [e.left, *e.comparators]))]


def test_no_code_compares_op_names():
    """The two exceptions check that the name of a new record is not in use."""
    found = {p.name: lines for p in ROOT.rglob("*.py") if (lines := compared(p.read_text(encoding="utf-8")))}
    assert (found.keys() == {"define.py", "host.py"}
            and sum(map(len, found.values())) == 2), "compare ops: `op is relu`"


@pytest.mark.parametrize("source", ['node.op.name == "relu"', 'x = 1 if "relu" != op.name else 2',
                                    "node.op.name in LIMITS",
                                    'f(a.b.op.name not in ("add", "mul"))',
                                    'a < b and norm.op.name == "batch_norm"'])
def test_comparisons_of_op_names_are_found(source):
    assert compared(source) == [1]
    assert not compared("node.op is relu or node.op in LIMITS or hop.name == x.dtype.name or fresh(op.name)")


# ---- lookups by name
# At most this many in the Python files of a folder; lower a number, raise none. nn/amp/lists.py reads its
# lists, ops/sbp_signatures.py takes a name from the user, and oneflow04/math.py and
# oneflow04/custom/optypes.py read tables of OneFlow's names.
LOOKUPS = {"autograd": 0, "core": 31, "cuda": 5, "diagnostics": 2, "distributed": 0, "fast": 1, "nn": 1,
           "oneflow04": 7, "onnx": 3, "ops": 6, "optim": 0, "saving": 1, "tensor": 21}


def count_lookups(source: str) -> int:
    """Return how often a file looks up an op by its name, in REGISTRY or in another name of it."""
    nodes = list(ast.walk(ast.parse(source)))
    names = {"REGISTRY"}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            names |= {a.asname for a in node.names if a.name == "REGISTRY" and a.asname}

    def is_registry(e) -> bool:
        return getattr(e, "id", None) in names or getattr(e, "attr", None) == "REGISTRY"

    for node in nodes:
        if isinstance(node, ast.Assign) and is_registry(node.value):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    subscripts = [n for n in nodes if isinstance(n, ast.Subscript) and is_registry(n.value)]
    methods = [n for n in nodes if isinstance(n, ast.Attribute) and n.attr in ("get", "__getitem__")
               and is_registry(n.value)]
    return len(subscripts) + len(methods)


def test_ops_are_imported_instead_of_looked_up_by_name():
    """Editors, mypy, and readers follow an imported name, and a typo in it fails at import."""
    found = dict.fromkeys(LOOKUPS, 0)
    for path in ROOT.rglob("*.py"):
        if count := count_lookups(path.read_text(encoding="utf-8")):
            folder = path.relative_to(ROOT).parts[0]
            found[folder] = found.get(folder, 0) + count
    assert found.keys() == LOOKUPS.keys()
    more = {folder: n for folder, n in found.items() if n > LOOKUPS[folder]}
    assert not more, "import the op, or its module: from flowedu.core.ops.matmul import matmul"


def test_lookups_by_name_are_found():
    assert count_lookups('y = REGISTRY["add"](ops.REGISTRY[name](x), 1)') == 2
    assert count_lookups('_r = REGISTRY\ny = _r["add"], REGISTRY.get(name)') == 2
    assert count_lookups('from a import REGISTRY as _o\ny = _o["mul"]') == 1
    assert count_lookups("x = table[name], [op for op in REGISTRY.values()], name in REGISTRY") == 0


# ---- calls of imported ops
def slow_calls(source: str) -> list[int]:
    """Return the lines with `op.call(...)` on an imported name, for which CPython makes a bound method."""
    nodes = list(ast.walk(ast.parse(source)))
    names = {a.asname or a.name for n in nodes if isinstance(n, ast.ImportFrom)
             and re.match(r"flowedu\.(core\.ops|ops|fast\.ops)\.", n.module or "") for a in n.names}
    return [n.lineno for n in nodes if isinstance(n, ast.Attribute) and n.attr == "call"
            and isinstance(n.value, ast.Name) and n.value.id in names]


def test_imported_ops_are_called_quickly():
    """The bound method takes about 0.08 us, a quarter of the call of a small matmul (Python 3.11)."""
    found = {p.relative_to(ROOT): lines for p in ROOT.rglob("*.py") if p.relative_to(ROOT).parts[0] != "core"
             and (lines := slow_calls(p.read_text(encoding="utf-8")))}
    assert not found, "write matmul_ops.matmul.call(...), with the module of the op"


def test_slow_calls_are_found():
    imports = "from flowedu.core.ops.matmul import matmul\nfrom flowedu.core.ops import view\n"
    assert slow_calls(f"{imports}y = matmul.call((a, b), ())") == [3]
    assert not slow_calls(f"{imports}y = view.reshape.call((x,), (shape,)), matmul(a, b), op.call((x,), ())")


BARE = re.compile(r"\b(dtype|code) *[<>]=? *\(?[1-9]")


def test_element_types_have_names():
    """Code uses names, such as FLOATS and NUMBERS in Python and FE_F32 in C, instead of integers."""
    assert all(map(BARE.search, ("x.dtype.code < 2", "v.dtype < (2 if op is DIV else 4)", "v.dtype > 7")))
    for path in ROOT.rglob("*.p[yx]*"):
        if path.suffix in (".py", ".pyx", ".pxi", ".pxd"):
            assert not BARE.search(path.read_text(encoding="utf-8")), f"{path}: name the element types"


@pytest.mark.parametrize("table", [node_names.OP_TYPES, node_names._SCALAR, meta.OUTPUTS],
                         ids=["OP_TYPES", "_SCALAR", "OUTPUTS"])
def test_tables_of_oneflow_names_name_records(table):
    assert set(table) <= REGISTRY.keys()
