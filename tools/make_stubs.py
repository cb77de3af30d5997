"""make stubs: write what editors and type checkers cannot read from the sources, from the live objects.

A stub (.pyi, beside the file that it describes) is written for each compiled module, for Tensor, whose methods are attached
as the package is imported, for results that are made by a table, and for each module that imports some of its names when
they are asked for. src/flowedu-stubs has the paths that are aliases (flowedu/aliases.py). Nothing here runs when a wheel
is built: the stubs are in the checkout, and tests/structure/test_stubs.py says when they are old.
"""
from __future__ import annotations

import ast
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
FIRST = '"""Written by `make stubs`: do not edit."""\n'
WIDTH, OLDEST = 124, (3, 11)
COMPILED = type(flow.get_num_threads.function)
LATER = """flowedu flowedu.autograd flowedu.cuda flowedu.distributed flowedu.models flowedu.nn flowedu.oneflow04.linalg
    flowedu.oneflow04.math flowedu.oneflow04.unittest flowedu.utils flowedu.vision""".split()
MADE = ["flowedu.core.eager.tensor", "flowedu.core.layers.module", "flowedu.tensor.return_types"]
# Attributes of a tensor that are None of most: whoever asks for them knows that they are there.
SOMETIMES = {"grad": "Tensor | Any", "placement": "Any", "sbp": "Any"}
# Methods of a module that give the module itself.
ITSELF = set("apply bfloat16 cpu cuda double eval float half requires_grad_ share_memory to to_global to_local train "
             "to_empty type".split())
# A method that Python calls, and what it gives where the function does not say: a tensor, if neither.
SPECIAL = {"__len__": "int", "__bool__": "bool", "__int__": "int", "__float__": "float", "__index__": "int",
           "__complex__": "complex", "__contains__": "bool", "__iter__": "Iterator[Tensor]", "__hash__": "int",
           "__setitem__": "None", "__array__": "Any", "__dlpack__": "Any", "__dlpack_device__": "Any", "__repr__": "str",
           "__str__": "str", "__format__": "str", "__call__": "Any", "__getattr__": "Any", "__setattr__": "None",
           "__delattr__": "None", "__dir__": "list[str]", "__init__": "None",
           "__enter__": "Any", "__exit__": "Any"}


GIVEN = {"__contains__": "item, /", "__setitem__": "key, value, /", "__getitem__": "key, /", "__format__": "spec, /",
         "__call__": "*args, **kwargs", "__init__": "*args, **kwargs", "__getattr__": "name: str, /",
         "__setattr__": "name: str, value, /", "__delattr__": "name: str, /", "__exit__": "*args"}
_BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
OPERATORS = {f"__{prefix}{name}__" for name in _BINARY for prefix in ("", "r", "i")} | {
    f"__{name}__" for name in "eq ne lt le gt ge neg pos abs invert getitem".split()}


def compiled() -> list[str]:
    """The modules that are written in Cython, kernels left out."""
    found = (p.relative_to(SRC).with_suffix("") for p in sorted(SRC.rglob("*.pyx")))
    return [".".join(p.parts) for p in found if "_kernels" not in p.parts]


def comment(value) -> str:
    """The first sentence of a docstring that is no signature."""
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
        """What a user may ask the module for: of a module of names all of ours, else what is defined there."""
        own, path = vars(self.module), self.module.__name__
        listed = own.get("__all__", ())
        ends = listed or self.module.__dir__() if path in LATER else {*own, *listed}
        for name in sorted({*ends}):
            if name[0] == "_" and name != "__version__":
                continue
            value = getattr(self.module, name)
            place = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None) or path
            leaked = not place.startswith("flowedu") or place.startswith("flowedu.diagnostics.")
            if name in listed or place == path and not isinstance(value, types.ModuleType) or (
                    path in LATER and not leaked and type(value).__name__ != "_Feature"):
                yield name, value

    def text(self) -> str:
        rows = self._imports()
        return FIRST + "\n".join([*rows, *[""] * bool(rows and self.body), *self.body]) + "\n"

    def _imports(self) -> list[str]:
        """A line, or as many as it takes, for each module of which something is imported."""
        found: dict[str, set[str]] = {}
        for module, name, short in {*self.imports, *((a, b, c) for c, (a, b) in self.names.needed.items())}:
            again = short != name or (module, name, short) in self.imports          # "as": for users, too
            found.setdefault(module, set()).add(f"{name} as {short}" if again else name)
        rows = [f"import {module} as {name.removeprefix(' as ')}" for module, names in found.items() for name in names
                if name.startswith(" as ")]
        for module, names in sorted(found.items()):
            if names := ", ".join(sorted(n for n in names if n[0] != " ")):
                line = f"from {module} import {names}"
                rows += [line] if len(line) < WIDTH else [f"from {module} import (",
                                                          *(
                    line.replace("\0", " ") for line in textwrap.wrap(
                        names.replace(" as ", "\0as\0") + ")", WIDTH, initial_indent="    ", subsequent_indent="    ",
                        break_long_words=False))]
        return rows

    def _say(self, name: str, value) -> None:
        if isinstance(value, types.ModuleType):
            parent, _, child = value.__name__.rpartition(".")
            self.imports.add((parent, child, name) if parent else ("", child, name))
        elif isinstance(value, type):
            place = home(value)
            if place is None:
                self.body.append(f"{name}: {self.names.of('typing', 'Any')}")
            elif place[0] == self.module.__name__ and place[0] not in LATER:
                self._class(name, value)
            else:
                self.imports.add((*place, name))
        elif callable(value) and not isinstance(type(value), type(flow.Tensor)) and hasattr(value, "__name__"):
            self.body += self._function(name, value)
        else:
            self.body.append(f"{name}: {self._type(value)}")

    def _type(self, value) -> str:
        return annotation(type(value), {}, self.names) if value is not None else self.names.of("typing", "Any")

    def _function(self, name: str, value, cls: type | None = None) -> list[str]:
        """The lines of a function: one, or an overload for each meaning of its name."""
        f, kind, method, indent = value, type(value), cls is not None, "    " * (cls is not None)
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
            given = parameters(sig, own, self.names, method and kind is not staticmethod, chosen) if sig \
                else "self, *args, **kwargs" if method else "*args, **kwargs"
            special = method and (SPECIAL.get(name) or "Tensor" * (name in OPERATORS and issubclass(flow.Tensor, cls)))
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
        """A class with its methods, attached ones among them; what Python calls itself, only where it says something."""
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            tensor, base = self.names.of("flowedu.core.eager.tensor", "Tensor"), self.names.of("typing", "NamedTuple")
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
                 for n, kind in inspect.get_annotations(cls).items() if n[0] != "_"]
        for member in sorted(vars(cls)):
            if member[0] != "_" or member in SPECIAL or member in OPERATORS or member.startswith("__") and isinstance(
                    vars(cls)[member], (types.FunctionType, PublicFunction, property, COMPILED)) and "cython" not in member:
                rows += self._member(cls, member)
        self.names = outside
        self.body += rows or ["    ..."]

    def _member(self, cls: type, name: str) -> list[str]:
        value = vars(cls)[name]
        tensors = issubclass(flow.Tensor, cls)
        if type(value).__name__ in ("property", "getset_descriptor", "member_descriptor") or not (
                callable(value) or isinstance(value, (staticmethod, classmethod))):
            kind = self._attribute(cls, name, value) if not tensors else self._of_tensor(name, value)
            if isinstance(value, property) or type(value).__name__ == "getset_descriptor":
                setter = [f"    @{name}.setter", f"    def {name}(self, value) -> None: ..."] * _is_written(value)
                head = f"    def {name}(self) -> {kind}:"
                return ["    @property", *self._documented(head, comment(value), "    "), *setter]
            return [f"    {name}: {kind}"]
        if type(value).__name__ in ("wrapper_descriptor", "method_descriptor") and name[0] == "_":      # C knows no names
            one = {"__neg__": "", "__pos__": "", "__abs__": "", "__invert__": ""} | dict.fromkeys(SPECIAL, "")
            given = GIVEN.get(name, one.get(name, "other, /"))
            kind = SPECIAL.get(name, "Tensor" if tensors else "Any")
            return [f"    def {name}({', '.join(filter(None, ('self', given)))}) -> {self._special(kind)}: ..."]
        rows = self._function(name, value, cls)
        return [row + "  # type: ignore[override]" * (name in ("__eq__", "__ne__")) for row in rows]

    def _special(self, kind: str) -> str:
        return annotation(kind, vars(flow.core.eager.tensor), self.names)

    def _attribute(self, cls: type, name: str, value) -> str:
        """The type of an attribute: what its getter, its docstring or its value says."""
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
        """The type of a tensor's attribute, as a tensor has it."""
        if name in SOMETIMES:
            return annotation(SOMETIMES[name], vars(flow.core.eager.tensor), self.names)
        try:
            return self._type(getattr(flow.ones(2, 2), name))
        except Exception:  # noqa: BLE001  (of a global tensor, say)
            return self.names.of("typing", "Any")


def _is_written(value) -> bool:
    return isinstance(value, property) and value.fset is not None


def aliases() -> dict[Path, str]:
    """A stub for each path that is an alias. (py.typed beside them says that what is not there lies in flowedu itself.)"""
    folder = SRC / "flowedu-stubs"
    found = {}
    for path, there in sorted(ALIASES.items()):
        if not path.startswith("_"):
            found[folder / (path.replace(".", "/") + ".pyi")] = f"{FIRST}from flowedu.{there} import *\n"
    return found


def written() -> dict[Path, str]:
    """{file: what has to be in it}."""
    found = aliases()
    for module in [*compiled(), *MADE, *LATER]:
        source = Path(sys.modules[module].__file__) if module in sys.modules else Path(
            importlib.import_module(module).__file__)
        stem = source.name.partition(".")[0]
        file = source.with_name(f"{stem}.pyi") if module != "flowedu" else SRC / "flowedu-stubs" / "__init__.pyi"
        found[file] = Stub(module).text()
    return found


def outline(text: str) -> list[tuple]:
    """What a stub tells, however it is worded: its classes and functions, with the names of their parameters."""
    nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.ClassDef, ast.FunctionDef))]
    return sorted((n.name, *(a.arg for a in ast.walk(n) if isinstance(a, ast.arg) and isinstance(n, ast.FunctionDef)))
                  for n in nodes)


def same(text: str, other: str) -> bool:
    """Whether two stubs are one. The words are those that the oldest Python gives; under a newer one they may differ."""
    return text == other or sys.version_info[:2] != OLDEST and outline(text) == outline(other)


def main(check: bool = False) -> int:
    """Write the stubs. check: only name those that are not what would be written, and say by the exit status if any."""
    files, others = written(), {*SRC.rglob("*.pyi")}
    old = [p for p, text in files.items() if not p.exists() or not same(p.read_text(encoding="utf-8"), text)]
    stale = [*old, *(others - {*files})]
    if check:
        print("\n".join(sorted(str(p.relative_to(SRC)) for p in stale)) or "the stubs are up to date")
        return bool(stale)
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path], encoding="utf-8") if path in files else path.unlink()
    print(f"{len(files)} stubs, {sum(text.count(chr(10)) for text in files.values())} lines, {len(stale)} of them new")
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
