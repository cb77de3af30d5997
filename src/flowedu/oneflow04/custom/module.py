"""flow.experimental.custom_op_module: an op from a folder of three files, like OneFlow 0.4's Python kernels.

    user_relu/user_relu_py_api.py       functions that build the op (flow.user_op_builder)
    user_relu/user_relu_py_kernel.py    forward(args), backward(args) on lists of ndarrays
    user_relu/user_relu_cpp_def.cpp     the op's definition in C++

The C++ file is not compiled. Only the names of inputs, outputs, and attributes, and the arguments of backward
are read from it. Without a C++ file, the input is `x`, the output is `y`, and backward gets `(y, dy)`. The
kernel file can set other names: inputs = ("a", "b"), outputs = ("c",), backward_inputs = ("b", "dc"). A
function `infer` in the kernel file has the same meaning as in flow.custom_op.
"""
from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from flowedu.core.ops.record import REQUIRED
from flowedu.errors import CheckError, UnsupportedError
from flowedu.oneflow04.custom.builder import IGNORED
from flowedu.ops.custom.op import custom_op
from flowedu.ops.custom.record import identifiers, named


class Definition(NamedTuple):
    """The names in a C++ definition of a forward op and its backward op."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: dict
    backward: tuple[str, ...]              # for each argument of backward: input, output, or d<output>


class CustomOpModule:
    """An op from a folder.

    Each step returns the module. build_load() creates the op and loads the functions of `api`.
    """

    def __init__(self, name: str, path: str | Path):
        if not isinstance(name, str) or not name.isidentifier():
            raise CheckError("custom_op_module: the name is not a Python name", got=repr(name),
                             expected='such as "user_relu"', fix="name it like its folder")
        self.name, self.folder = name, Path(path) / name
        self.files: dict[str, Path] = {}
        self._api: ModuleType | None = None

    def py_api(self) -> CustomOpModule:
        """Find the file with the functions that build the op."""
        return self._file("py_api", ".py")

    def cpp_def(self) -> CustomOpModule:
        """Find the C++ definition. It is not compiled; names are read from it."""
        return self._file("cpp_def", ".cpp")

    def py_kernel(self) -> CustomOpModule:
        """Find the file with forward and backward."""
        return self._file("py_kernel", ".py")

    def cpp_kernel(self):
        """Raise UnsupportedError: a kernel in C++ would need a compiler."""
        raise self._no_compiler("cpp_kernel")

    def gpu_kernel(self):
        """Raise UnsupportedError: a GPU kernel would need a compiler."""
        raise self._no_compiler("gpu_kernel")

    def build_load(self) -> None:
        """Register `<name>_forward`, with the gradient `<name>_backward`, and load the api."""
        if "py_kernel" in self.files:
            self._register()
        if "py_api" in self.files:
            self._api = self._load("py_api")

    @property
    def api(self) -> ModuleType:
        """The module of the api file, after build_load()."""
        if self._api is None:
            raise CheckError(f"custom_op_module {self.name}: there is no api yet",
                             expected="py_api(), then build_load()",
                             got="api", fix="m.py_api().py_kernel().build_load()")
        return self._api

    # ---- files
    def _file(self, kind: str, ending: str) -> CustomOpModule:
        path = self.folder / f"{self.name}_{kind}{ending}"
        if not path.is_file():
            raise CheckError(f"custom_op_module {self.name}: {path} does not exist",
                             expected=f"{kind}() to find this file",
                             got="no such file", fix="pass the folder that holds the folder "
                             f"{self.name}/ as the second argument")
        self.files[kind] = path
        return self

    def _no_compiler(self, step: str) -> UnsupportedError:
        return UnsupportedError(f"custom_op_module {self.name}: {step}() needs a C++ compiler and OneFlow's "
                                f"headers", expected="a kernel in Python", got=f"{step}()",
                                fix="py_kernel(), with forward and backward in NumPy")

    def _load(self, kind: str) -> ModuleType:
        """Import a file under a unique name, since two modules may have files of the same name."""
        path = self.files[kind]
        name = f"_flowedu_custom_{abs(hash(path.resolve())):x}_{path.stem}"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None         # because path is a .py file
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException as error:
            del sys.modules[name]
            if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "oneflow":
                error.add_note(f"fix: in {path.name}, write `import flowedu as flow` for `import oneflow "
                               f"as flow`")
            raise
        return module

    # ---- the op
    def _register(self) -> None:
        kernel = self._load("py_kernel")
        forward, backward = getattr(kernel, "forward", None), getattr(kernel, "backward", None)
        if not callable(forward):
            raise CheckError(f"custom_op_module {self.name}: {self.files['py_kernel'].name} has no forward",
                             got="none",
                             expected="def forward(args)",
                             fix="define it: it gets a list of arrays, returns one or a list")
        text = (self.files["cpp_def"].read_text(errors="replace", encoding="utf-8") if "cpp_def" in self.files
                else "")
        d = read_definition(self.name, text)
        ins = identifiers(self.name, "inputs", getattr(kernel, "inputs", d.inputs))
        outs = identifiers(self.name, "outputs", getattr(kernel, "outputs", d.outputs))
        given = identifiers(self.name, "backward_inputs", getattr(kernel, "backward_inputs", d.backward))
        infer = getattr(kernel, "infer", None)
        gradient = pass_as_list(backward, given) if callable(backward) else None
        custom_op(f"{self.name}_forward", pass_as_list(forward, ins), gradient, infer, inputs=ins,
                  outputs=outs, attrs=d.attrs, gradient_name=f"{self.name}_backward", replace=True)


def pass_as_list(f: Callable, names: Sequence[str]) -> Callable:
    """Return a function with parameters of these names that calls f(args) with a list of arrays.

    If f has other parameters, as in f(args, alpha), they are attributes.
    """
    extra = tuple(inspect.signature(f).parameters)[1:]

    def call(*arrays, **attrs):
        return f(list(arrays[:len(names)]), *arrays[len(names):], **{n: attrs[n] for n in extra
                                                                     if n in attrs})

    result: Any = call
    example: Any = named(f, (*names, *extra))
    result.__signature__ = example.__signature__
    return result


def custom_op_module(name: str, path: str | Path) -> CustomOpModule:
    """Return an op from the folder `path/name`.

    OneFlow 0.4 copies the folder to the working folder; flowedu does not.

        m = flow.experimental.custom_op_module("user_relu", folder)
        m.py_api().cpp_def().py_kernel().build_load()
        y = m.api.user_relu_forward(x)

    A missing file raises an AssertionError; cpp_kernel() and gpu_kernel() raise NotImplementedError.

    Args:
        name: the name of the op and its folder, a Python identifier.
        path: the folder that contains the folder `name`.
    """
    return CustomOpModule(name, path)


# ---- the C++ file
_REGISTER = re.compile(r'REGISTER_(?:CPU_ONLY_)?USER_OP(_GRAD)?\s*\(\s*"(\w+)"\s*\)')
_ATTR = re.compile(r'\.Attr\s*<[^>]*(?:<[^>]*>)?>\s*\(\s*"(\w+)"\s*(?:,\s*([^()]*?)\s*)?\)')
_BIND = re.compile(
    r'\.InputBind\s*\(\s*"(\w+)"\s*,\s*ctx->FwOp\(\)\.(input|output|output_grad)\s*\(\s*"(\w+)"')


def read_definition(name: str, text: str) -> Definition:
    """Return the names in a C++ definition; missing parts have their defaults."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)
    starts = list(_REGISTER.finditer(text))
    parts = {(m[2], bool(m[1])): text[m.end():n.start() if n else None]
             for m, n in zip(starts, [*starts[1:], None])}
    body = parts.get((f"{name}_forward", False), "")
    ins, outs = (tuple(re.findall(rf'\.{what}\s*\(\s*"(\w+)"', body)) for what in ("Input", "Output"))
    ins, outs = ins or ("x",), outs or ("y",)
    attrs = {n: _default(value) for n, value in _ATTR.findall(body) if n not in IGNORED}
    wanted = re.findall(r'\.Input\s*\(\s*"(\w+)"', parts.get((f"{name}_backward", False), ""))
    bound = {arg: f"d{n}" if side == "output_grad" else n for arg, side, n in
             _BIND.findall(parts.get((f"{name}_forward", True), ""))}
    return Definition(ins, outs, attrs, tuple(bound.get(n, n) for n in wanted) or (outs[0], f"d{outs[0]}"))


def _default(text: str):
    """Return a C++ default as a Python value, or REQUIRED if it is not a literal."""
    if not text:
        return REQUIRED
    if text in ("true", "false"):
        return text == "true"
    try:
        value = ast.literal_eval(text.rstrip("fL").replace("{", "[").replace("}", "]"))
    except (ValueError, SyntaxError):
        return REQUIRED
    return tuple(value) if isinstance(value, list) else value
