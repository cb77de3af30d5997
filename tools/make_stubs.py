"""Write type stubs from live objects where editors and type checkers cannot read the sources (`make stubs`).

A stub (.pyi) is written for each compiled module, for Tensor, whose methods are attached when the package is
imported, for result types that are built from a table, and for each module that imports some of its names on
first use. src/flowedu-stubs (a partial stub package, PEP 561) has the stubs of core, of flowedu itself, and
of the aliases (flowedu/aliases.py); other stubs are next to their sources. A stub also has the private
members of its classes, because `make lint` checks the library itself against the stubs. The build of a wheel
writes no stubs: they are committed, and tests/structure/test_stubs.py fails if they are out of date.
"""
from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
import sys
import textwrap
import types
from collections.abc import Iterator
from pathlib import Path

from stub_signatures import BRANCHES, Names, annotation, home, parameters, returned, signature

import flowedu as flow
from flowedu.aliases import ALIASES
from flowedu.diagnostics.function import PublicFunction

SRC = Path(__file__).parents[1] / "src"
STUBS = SRC / "flowedu-stubs"
FIRST = '"""Written by `make stubs`: do not edit."""\n'
WIDTH, OLDEST = 124, (3, 11)
COMPILED = type(flow.get_num_threads.function)
LATER = """flowedu flowedu.autograd flowedu.cuda flowedu.distributed flowedu.models flowedu.nn
    flowedu.oneflow04.linalg flowedu.oneflow04.math flowedu.oneflow04.unittest flowedu.utils
    flowedu.vision""".split()
MADE = ["flowedu.core.eager.tensor", "flowedu.core.layers.module", "flowedu.tensor.return_types"]
# Attributes that are None for most tensors. With Any in the type, code need not check for None.
SOMETIMES = {"grad": "Tensor | Any", "placement": "Any", "sbp": "Any"}
# Methods of a module that return the module itself.
ITSELF = set("apply bfloat16 cpu cuda double eval float half requires_grad_ share_memory to to_global "
             "to_local train to_empty type".split())
# Results of special methods without a return annotation. Methods that are not listed here return a tensor.
SPECIAL = {"__len__": "int", "__bool__": "bool", "__int__": "int", "__float__": "float", "__index__": "int",
           "__complex__": "complex", "__contains__": "bool", "__iter__": "Iterator[Tensor]",
           "__hash__": "int",
           "__setitem__": "None", "__array__": "Any", "__dlpack__": "Any", "__dlpack_device__": "Any",
           "__repr__": "str",
           "__str__": "str", "__format__": "str", "__call__": "Any", "__getattr__": "Any",
           "__setattr__": "None", "__delattr__": "None", "__dir__": "list[str]", "__init__": "None",
           "__enter__": "Any", "__exit__": "Any"}


GIVEN = {"__contains__": "item, /", "__setitem__": "key, value, /", "__getitem__": "key, /",
         "__format__": "spec, /",
         "__call__": "*args, **kwargs", "__init__": "*args, **kwargs", "__getattr__": "name: str, /",
         "__setattr__": "name: str, value, /", "__delattr__": "name: str, /", "__exit__": "*args"}
_BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
OPERATORS = {f"__{prefix}{name}__" for name in _BINARY for prefix in ("", "r", "i")} | {
    f"__{name}__" for name in "eq ne lt le gt ge neg pos abs invert getitem".split()}


def compiled() -> list[str]:
    """Return the names of the modules written in Cython, without the kernels."""
    found = (p.relative_to(SRC).with_suffix("") for p in sorted(SRC.rglob("*.pyx")))
    return [".".join(p.parts) for p in found if "_kernels" not in p.parts]


C_NAMES = {"int64_t": "int", "size_t": "int", "double": "float", "bint": "bool", "object": "Any"}
NUMBERS = {"int", "float", "bool", "Any"}


@functools.cache
def source_text(module: str) -> str:
    """Return the text of a compiled module: its .pxd, its .pyx, and the files that these include."""
    stem, parts = SRC.joinpath(*module.split(".")), []
    for path in (stem.with_suffix(".pxd"), stem.with_suffix(".pyx")):
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        names = re.findall(r'^include "([\w./]+)"', text, re.M)
        files = [next(f for f in (path.parent / name, SRC / name) if f.exists()) for name in names]
        parts += [text, *(f.read_text(encoding="utf-8") for f in files)]
    return "\n".join(parts)


def optional_arguments(module: str, function: str) -> set[str]:
    """Return the arguments that a compiled function declares with `or None`, which its docstring omits."""
    head = re.search(rf"^def {function}\((.*)\)", source_text(module), re.M)
    return set(re.findall(r"(\w+) or None\b", head[1])) if head else set()


def _bodies(cls: type) -> list[str]:
    """Return the bodies of a compiled class, which may be declared in one file and defined in another."""
    head = rf"^(?:cdef )?class {cls.__name__}\b[^\n]*:[^\n]*\n((?:[ \t]+[^\n]*\n|\n)*)"
    return re.findall(head, source_text(cls.__module__), re.M)


def c_fields(cls: type) -> dict[str, tuple[str, bool]]:
    """Return {attribute: (type, True if it can be set)} from the C declarations of a class.

    A field that is not a number may be None. Its type is a union with Any, so that code need not check for
    None.
    """
    fields = {}
    for body in _bodies(cls):
        for access, kind, names in re.findall(r"^    cdef (public|readonly) (\w+) ([\w, ]+?) *(?:#.*)?$",
                                              body, re.M):
            kind = C_NAMES.get(kind, kind)
            kind = kind if kind in NUMBERS else f"{kind} | Any"
            fields |= dict.fromkeys(names.split(", "), (kind, access == "public"))
    return fields


def instance_attributes(cls: type) -> list[str]:
    """Return the attributes that methods of a Python class in a compiled module assign to `self`."""
    rows = [row for body in _bodies(cls) for row in re.findall(r"^ +((?:self\.\w+, )*self\.\w+) = ",
                                                               body, re.M)]
    return sorted({name for row in rows for name in re.findall(r"self\.(\w+)", row)} - {*dir(cls)})


def op_fields() -> list[str]:
    """Return the fields of an op's record (core/ops/record.py), which the class reads from its dictionary."""
    fields = vars(flow.core.ops.define.REGISTRY["add"])
    return [name for name in sorted(fields) if name not in dir(flow.core.ops.call.OpBase)]


def comment(value) -> str:
    """Return the first sentence of a docstring after its signature."""
    paragraphs = [" ".join(p.split()) for p in (inspect.getdoc(value) or "").split("\n\n") if p.strip()]
    if paragraphs and (type(value) is COMPILED or re.match(r"\w+: '?[\w.]+'?$|[\w.]+\(.*\)$", paragraphs[0])):
        paragraphs = paragraphs[1:]
    first = re.match(r".*?\.(?= [A-Z`]|$)", paragraphs[0]) if paragraphs else None
    return (first[0] if first else "".join(paragraphs[:1])).replace("\\", "/").replace('"""', "'''")


class Stub:
    """The stub of one module."""

    def __init__(self, module: str):
        self.module = importlib.import_module(module)
        self.body: list[str] = []
        public = list(self._public())
        self.names = Names(module, {name for name, _ in public})
        self.imports: set[tuple[str, str, str]] = set()
        for name, value in public:
            self._say(name, value)
        if "__all__" in vars(self.module) and module != "flowedu":
            self.body.append(f"__all__ = {sorted(self.module.__all__)!r}")

    def _public(self) -> Iterator[tuple[str, object]]:
        """Yield the public names of the module: in a module of LATER all of flowedu's, else its own."""
        own, path = vars(self.module), self.module.__name__
        listed = own.get("__all__", ())
        ends = listed or self.module.__dir__() if path in LATER else {*own, *listed}
        for name in sorted({*ends}):
            if name[0] == "_" and name != "__version__":
                continue
            value = getattr(self.module, name)
            place = (value.__name__ if isinstance(value, types.ModuleType)
                     else getattr(value, "__module__", None) or path)
            leaked = not place.startswith("flowedu") or place.startswith("flowedu.diagnostics.")
            if name in listed or place == path and not isinstance(value, types.ModuleType) or (
                    path in LATER and not leaked and type(value).__name__ != "_Feature"):
                yield name, value

    def text(self) -> str:
        rows = self._imports()
        return FIRST + "\n".join([*rows, *[""] * bool(rows and self.body), *self.body]) + "\n"

    def _imports(self) -> list[str]:
        """Return the import statements, one for each module, wrapped if they are long."""
        found: dict[str, set[str]] = {}
        for module, name, short in {*self.imports, *((a, b, c) for c, (a, b) in self.names.needed.items())}:
            again = short != name or (module, name, short) in self.imports          # "as" re-exports it
            found.setdefault(module, set()).add(f"{name} as {short}" if again else name)
        rows = [f"import {module} as {name.removeprefix(' as ')}" for module, names in found.items()
                for name in names
                if name.startswith(" as ")]
        for module, names in sorted(found.items()):
            if names := ", ".join(sorted(n for n in names if n[0] != " ")):
                line = f"from {module} import {names}"
                rows += [line] if len(line) < WIDTH else [f"from {module} import (",
                                                          *(
                    line.replace("\0", " ") for line in textwrap.wrap(
                        names.replace(" as ", "\0as\0") + ")", WIDTH, initial_indent="    ",
                        subsequent_indent="    ", break_long_words=False))]
        return rows

    def _say(self, name: str, value) -> None:
        if isinstance(value, types.ModuleType):
            parent, _, child = value.__name__.rpartition(".")
            self.imports.add((parent, child, name) if parent else ("", child, name))
        elif isinstance(value, type):
            place = home(value)
            if place is None:
                self.body.append(f"{name}: {self.names.of('typing', 'Any')}")
            elif place[0] == self.module.__name__:
                self._class(name, value)
            else:
                self.imports.add((*place, name))
        elif callable(value) and not isinstance(type(value),
                                                type(flow.Tensor)) and hasattr(value, "__name__"):
            self.body += self._function(name, value)
        else:
            self.body.append(f"{name}: {self._type(value)}")

    def _type(self, value) -> str:
        return (annotation(type(value), {}, self.names) if value is not None
                else self.names.of("typing", "Any"))

    def _function(self, name: str, value, cls: type | None = None) -> list[str]:
        """Return the lines of a function, with an overload for each signature of its name."""
        f, kind = value, type(value)
        method = cls is not None
        indent = "    " * method
        if isinstance(value, (staticmethod, classmethod)):
            f = value.__func__
        f = f.function if isinstance(f, PublicFunction) else f
        meanings = [(f, {}, "")]
        if name in BRANCHES and (getattr(f, "__module__", "") or "").startswith("flowedu.tensor"):
            meanings = [(f, chosen, gives.format(name)) for chosen, gives in BRANCHES[name]]
        if getattr(value, "choice", None) is not None and not method:
            meanings.append((value.choice.older, {}, ""))
        rows, mark = [], {staticmethod: "@staticmethod", classmethod: "@classmethod"}.get(kind)
        for f, chosen, gives in meanings:
            own = getattr(inspect.unwrap(f), "__globals__", vars(self.module))
            sig = signature(f)
            optional = set() if method else optional_arguments(self.module.__name__, name)
            if sig and optional:
                sig = sig.replace(parameters=[p.replace(annotation=f"{p.annotation} | None")
                                              if p.name in optional else p for p in sig.parameters.values()])
            if sig:
                given = parameters(sig, own, self.names, method and kind is not staticmethod, chosen)
            else:
                given = "self, *args, **kwargs" if method else "*args, **kwargs"
            special = (method and (SPECIAL.get(name) or "Tensor" * (name in OPERATORS
                                                                    and issubclass(flow.Tensor, cls))))
            result = gives or special or (returned(f, name, sig) if sig else "")
            if method and name in ITSELF and issubclass(cls, flow.nn.Module):
                result = "Self"
            arrow = f" -> {annotation(result, own, self.names)}" if result else ""
            overload = [f"{indent}@{self.names.of('typing', 'overload')}"] if len(meanings) > 1 else []
            said = comment(f) if name[0] != "_" else ""
            rows += [*overload, *([indent + mark] if mark else []),
                     *self._documented(f"{indent}def {name}({given}){arrow}:", said, indent)]
        return rows

    @staticmethod
    def _documented(head: str, said: str, indent: str) -> list[str]:
        if not said:
            return [head + " ..."]
        text = f'"""{said}{" " * said.endswith(chr(34))}"""'
        return [f"{head} {text}"] if len(head) + len(text) < WIDTH else [head, f"{indent}    {text}"]

    def _class(self, name: str, cls: type) -> None:
        """Append a class with its methods, including attached ones and informative special methods."""
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            tensor, base = (self.names.of("flowedu.core.eager.tensor", "Tensor"),
                            self.names.of("typing", "NamedTuple"))
            self.body += [f"class {name}({base}):", f'    """{comment(cls)}"""',
                          *(f"    {field}: {tensor}" for field in cls._fields)]
            return
        bases = [annotation(b, {}, self.names) for b in cls.__bases__ if b is not object]
        bases += [f"metaclass={annotation(type(cls), {}, self.names)}"] * (type(cls) is not type)
        said = comment(cls)
        self.body.append(f"class {name}{'(' + ', '.join(bases) + ')' if bases else ''}:")
        inside = Names(self.names.module, self.names.taken | {n for n in dir(cls) if n[0] != "_"})
        inside.needed, outside, self.names = self.names.needed, self.names, inside
        rows = [f'    """{said}"""'] if said else []
        rows += [f"    {n}: {annotation(kind, vars(self.module), self.names)}"
                 for n, kind in inspect.get_annotations(cls).items()]
        rows += [f"    {n}: {self.names.of('typing', 'Any')}" for n in self._untyped_fields(cls)]
        for member in sorted(vars(cls)):
            if not member.startswith("__") or member in SPECIAL or member in OPERATORS or isinstance(
                    vars(cls)[member], (types.FunctionType, PublicFunction, property,
                                        COMPILED)) and "cython" not in member:
                rows += self._member(cls, member)
        if {"__new__", "__init__"} & {*vars(cls)} == {"__new__"} and "__cinit__" in "".join(_bodies(cls)):
            kind, itself = self.names.of("typing", "Any"), self.names.of("typing", "Self")
            rows.append(f"    def __new__(cls, *args: {kind}, **kwargs: {kind}) -> {itself}: ...")
        self.names = outside
        self.body += rows or ["    ..."]

    def _untyped_fields(self, cls: type) -> list[str]:
        if cls is flow.core.ops.call.OpBase:
            return op_fields()
        heap = bool(cls.__flags__ & 1 << 9)                 # set for classes of a `class` statement
        return instance_attributes(cls) if heap and self.module.__name__ in compiled() else []

    def _member(self, cls: type, name: str) -> list[str]:
        value = vars(cls)[name]
        tensors = issubclass(flow.Tensor, cls)
        if type(value).__name__ in ("property", "getset_descriptor", "member_descriptor") or not (
                callable(value) or isinstance(value, (staticmethod, classmethod))):
            kind, settable = self._declared_in_c(cls, name)
            if settable:
                return [f"    {name}: {kind}"]
            kind = kind or (self._of_tensor(name, value) if tensors else self._attribute(cls, name, value))
            if isinstance(value, property) or type(value).__name__ == "getset_descriptor":
                setter = [f"    @{name}.setter",
                          f"    def {name}(self, value) -> None: ..."] * _is_settable(cls, name)
                head = f"    def {name}(self) -> {kind}:"
                return ["    @property", *self._documented(head, comment(value), "    "), *setter]
            return [f"    {name}: {kind}"]
        if type(value).__name__ in ("wrapper_descriptor", "method_descriptor") and name.startswith("__"):
            one = {"__neg__": "", "__pos__": "", "__abs__": "", "__invert__": ""} | dict.fromkeys(SPECIAL, "")
            given = GIVEN.get(name, one.get(name, "other, /"))
            kind = SPECIAL.get(name, "Tensor" if tensors else "Any")
            return [f"    def {name}({', '.join(filter(None, ('self', given)))}) -> {self._special(kind)}: "
                    f"..."]
        rows = self._function(name, value, cls)
        return [row + "  # type: ignore[override]" * (name in ("__eq__", "__ne__")) for row in rows]

    def _declared_in_c(self, cls: type, name: str) -> tuple[str, bool]:
        """Return (type, True if it can be set) of a C field; ("", False) for other attributes."""
        if self.module.__name__ not in compiled():
            return "", False
        kind, settable = c_fields(cls).get(name, ("", False))
        space = {**vars(flow.core.eager.dispatch), **vars(self.module)}
        return kind and annotation(kind, space, self.names), settable

    def _special(self, kind: str) -> str:
        return annotation(kind, vars(flow.core.eager.tensor), self.names)

    def _attribute(self, cls: type, name: str, value) -> str:
        """Return the type of an attribute from its getter, its docstring, or its value."""
        if isinstance(value, property) and value.fget is not None:
            sig = signature(value.fget)
            if sig is not None and sig.return_annotation is not sig.empty:
                return annotation(sig.return_annotation, getattr(value.fget, "__globals__", {}), self.names)
        if type(value).__name__ in ("property", "getset_descriptor", "member_descriptor"):
            first = (value.__doc__ or "").partition("\n")[0]
            kind = first.partition(f"{name}: ")[2].strip("'") if f"{name}: " in first else ""
            kind = {"int64_t": "int", "object": "", "size_t": "int"}.get(kind, kind)
            return annotation(kind if kind.isidentifier() else "Any", vars(self.module), self.names)
        return self._type(value)

    def _of_tensor(self, name: str, value) -> str:
        """Return the type of a tensor's attribute, from the value of an example."""
        if name in SOMETIMES:
            return annotation(SOMETIMES[name], vars(flow.core.eager.tensor), self.names)
        try:
            return self._type(getattr(flow.ones(2, 2), name))
        except Exception:  # noqa: BLE001  (of a global tensor, say)
            return self.names.of("typing", "Any")


def _is_settable(cls: type, name: str) -> bool:
    value = vars(cls)[name]
    if isinstance(value, property):
        return value.fset is not None
    return any(f"@{name}.setter" in body for body in _bodies(cls))


def aliases() -> dict[Path, str]:
    """Return {path: text} of a stub for each alias.

    py.typed marks the package as partial.
    """
    found = {}
    for path, there in sorted(ALIASES.items()):
        if not path.startswith("_"):
            found[STUBS / (path.replace(".", "/") + ".pyi")] = f"{FIRST}from flowedu.{there} import *\n"
    return found


def stub_path(module: str, source: Path) -> Path:
    """Return the path of a module's stub, which is next to its source except for core and flowedu itself."""
    name = source.name.partition(".")[0] + ".pyi"
    if module == "flowedu" or module.startswith(("flowedu.core.", "flowedu._kernels.core.")):
        return STUBS / source.with_name(name).relative_to(SRC / "flowedu")
    return source.with_name(name)


def written() -> dict[Path, str]:
    """Return {path: text} of all stubs."""
    found = aliases()
    for module in [*compiled(), *MADE, *LATER]:
        source = Path(sys.modules[module].__file__) if module in sys.modules else Path(
            importlib.import_module(module).__file__)
        found[stub_path(module, source)] = Stub(module).text()
    return found


def outline(text: str) -> list[tuple]:
    """Return the classes and functions of a stub, with parameter names and without types and defaults."""
    nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.ClassDef, ast.FunctionDef))]
    return sorted((n.name, *(a.arg for a in ast.walk(n) if isinstance(a, ast.arg)
                             and isinstance(n, ast.FunctionDef)))
                  for n in nodes)


def same(text: str, other: str) -> bool:
    """Return True if two stubs are equal. Except under the oldest supported Python, only outlines count."""
    return text == other or sys.version_info[:2] != OLDEST and outline(text) == outline(other)


def main(check: bool = False) -> int:
    """Write the stubs and return the exit status. check: only print outdated stubs; 1 if there are any."""
    files, others = written(), {*SRC.rglob("*.pyi")}
    old = [p for p, text in files.items() if not p.exists() or not same(p.read_text(encoding="utf-8"), text)]
    stale = [*old, *(others - {*files})]
    if check:
        print("\n".join(sorted(str(p.relative_to(SRC)) for p in stale)) or "the stubs are up to date")
        return bool(stale)
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path], encoding="utf-8") if path in files else path.unlink()
    print(f"{len(files)} stubs, {sum(text.count(chr(10)) for text in files.values())} lines, {len(stale)} of "
          f"them new")
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
