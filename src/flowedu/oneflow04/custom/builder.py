"""flow.user_op_builder: OneFlow's way to call an op by its type.

    op = flow.user_op_builder("r1").Op("relu").Input("in", [x]).Output("out").Build()
    y = op.InferAndTryRun().SoleOutputBlob()

oneflow04/custom/optypes.py lists the types; flow.custom_op adds new ones.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowedu.core.ops.record import REQUIRED
from flowedu.core.values.dtype import dtype
from flowedu.errors import ArgumentError, CheckError, JobBuildAndInferError
from flowedu.oneflow04.custom.optypes import OpType, op_type
from flowedu.ops.front import front

IGNORED = ("device_sub_tag",)              # attributes of OneFlow without effect in flowedu


class UserOpBuilder:
    """A builder of one op. Every method except Build returns the builder."""

    def __init__(self, op_name: str | None, type_name: str | None = None):
        if op_name is not None and (not isinstance(op_name, str) or not op_name):
            raise CheckError("user_op_builder: the op's name is not a string",
                             expected='user_op_builder("relu1")',
                             got=repr(op_name), fix="name the op; the name is unique in a job")
        self.name = op_name
        self.type_name: Any = type_name     # a str; Build raises an error for None
        self.inputs: dict[str, tuple] = {}
        self.outputs: dict[str, int] = {}
        self.attrs: dict[str, Any] = {}

    def OpName(self, op_name: str) -> UserOpBuilder:
        """Set the name of the op.

        Args:
            op_name: the name.
        """
        self.name = op_name
        return self

    def Op(self, op_type_name: str) -> UserOpBuilder:
        """Set the type of the op.

        Args:
            op_type_name: a type such as "relu".
        """
        self.type_name = op_type_name
        return self

    def Input(self, input_name: str, input_blob_list: Sequence) -> UserOpBuilder:
        """Set the blobs of one input.

        Args:
            input_name: the name of the input.
            input_blob_list: a list of blobs or tensors.
        """
        if not isinstance(input_blob_list, (list, tuple)):
            raise CheckError(f"user_op_builder: Input({input_name!r}) is not a list",
                             expected="a list of blobs",
                             got=type(input_blob_list).__name__, fix=f".Input({input_name!r}, [x])")
        self.inputs[input_name] = tuple(input_blob_list)
        return self

    def Output(self, output_name: str, num: int = 1) -> UserOpBuilder:
        """Request an output. The order of these calls is the order of RemoteBlobList.

        Args:
            output_name: the name of the output.
            num: the number of its blobs.
        """
        if type(num) is not int or num < 1:
            raise CheckError(f"user_op_builder: Output({output_name!r}) has no number of blobs",
                             got=repr(num), expected="an int, 1 or more", fix=f".Output({output_name!r})")
        self.outputs[output_name] = num
        return self

    def Attr(self, attr_name: str, attr_value: Any, attr_type_name: str | None = None) -> UserOpBuilder:
        """Set an attribute.

        Args:
            attr_name: the name of the attribute.
            attr_value: its value.
            attr_type_name: has no effect; old scripts pass it.
        """
        if not isinstance(attr_name, str):
            raise CheckError("user_op_builder: an attribute's name is not a string", expected="a str",
                             got=repr(attr_name), fix='.Attr("axis", 1)')
        self.attrs[attr_name] = attr_value
        return self

    def Build(self) -> UserOp:
        """Check all settings and return the op.

        Raises:
            ArgumentError: an output is not requested. The error is a ValueError.
            CheckError: an attribute has another type than its default. The error is an AssertionError.
            JobBuildAndInferError: a type or a name is unknown, or a setting is missing. The error is a
                RuntimeError.
        """
        kind = self._kind()
        self._check_inputs(kind)
        for name in kind.outputs:
            if name not in self.outputs:
                raise ArgumentError(f"output_arg_name {name} of {self.name} op is not set in python op "
                                    f"builder",
                                    expected=f"every output of {self.type_name}: {', '.join(kind.outputs)}",
                                    got=", ".join(self.outputs) or "none", fix=f'.Output("{name}")')
        self._unknown("output", self.outputs, kind.outputs)
        many = [n for n, num in self.outputs.items() if num != 1]
        if many:
            raise JobBuildAndInferError(f"user_op_builder: {self.type_name} gives one blob for {many[0]}",
                                        expected="num=1",
                                        got=str(self.outputs[many[0]]), fix=f'.Output("{many[0]}")')
        return UserOp(self.name, self.type_name, kind, dict(self.inputs), tuple(self.outputs),
                      self._check_attrs(kind))

    # ---- checks
    def _kind(self) -> OpType:
        if not self.type_name:
            raise CheckError(f"user_op_builder: the op {self.name} has no type", expected='.Op("relu")',
                             got="no .Op", fix="call .Op(op_type_name) before Build()")
        return op_type(self.type_name)

    def _unknown(self, what: str, given, known) -> None:
        extra = [n for n in given if n not in known]
        if extra:
            raise JobBuildAndInferError(f"user_op_builder: {self.type_name} has no {what} {extra[0]!r}",
                                        got=extra[0],
                                        expected=", ".join(known) or "none",
                                        fix=f"correct the name of the {what}")

    def _check_inputs(self, kind: OpType) -> None:
        self._unknown("input", self.inputs, [n.rstrip("*?") for n in kind.inputs])
        for mark in kind.inputs:
            name = mark.rstrip("*?")
            count = len(self.inputs.get(name, ()))
            if count != 1 and not (mark.endswith("*") and count) and not (mark.endswith("?") and not count):
                raise JobBuildAndInferError(f"user_op_builder: {self.type_name} needs its input {name!r}",
                                            expected="one blob" + " or more" * mark.endswith("*"),
                                            got=f"{count} blobs", fix=f'.Input("{name}", [x])')

    def _check_attrs(self, kind: OpType) -> dict[str, Any]:
        attrs = {n: v for n, v in self.attrs.items() if n in kind.attrs or n not in IGNORED}
        self._unknown("attribute", attrs, kind.attrs)
        for name, default in kind.attrs.items():
            if name not in attrs:
                if default is REQUIRED:
                    raise JobBuildAndInferError(f"user_op_builder: {self.type_name} needs its attribute "
                                                f"{name!r}",
                                                expected=f"a value for each of {', '.join(kind.attrs)}",
                                                got="none", fix=f'.Attr("{name}", value)')
            elif not same_kind(attrs[name], default):
                raise CheckError(f"user_op_builder: {self.type_name}: the attribute {name!r} is of "
                                 f"another kind",
                                 expected=f"one like its default, {default!r}", got=repr(attrs[name]),
                                 fix=f'.Attr("{name}", {default!r})')
        return {**{n: v for n, v in kind.attrs.items() if v is not REQUIRED}, **attrs}


def same_kind(value: Any, default: Any) -> bool:
    """Return True if an attribute with this default accepts the value.

    Ints are accepted as floats, lists as tuples.
    """
    if default is None or default is REQUIRED:
        return True
    if isinstance(default, bool):
        return isinstance(value, bool)
    if isinstance(default, float):
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if isinstance(default, tuple):
        return isinstance(value, (list, tuple))
    return (isinstance(value, dtype if isinstance(default, dtype) else type(default))
            and not isinstance(value, bool))


class UserOp:
    """An op that is ready to run: InferAndTryRun(), then its outputs."""

    def __init__(self, name: str | None, type_name: str, kind: OpType, inputs: dict, order: tuple[str, ...],
                 attrs: dict):
        self.name, self.type_name, self.kind = name, type_name, kind
        self.inputs, self.order, self.attrs = inputs, order, attrs
        self.blobs: dict[str, list] | None = None

    def InferAndTryRun(self) -> UserOp:
        """Add the op to the job that is being built, or run it in eager mode."""
        values: list[Any] = []
        for mark in self.kind.inputs:
            given = self.inputs.get(mark.rstrip("*?"), ())
            if mark.endswith("*"):
                values.append(list(given))
            else:
                values.append(given[0] if given else None)
        kind, attrs = self.kind, self.attrs

        @front(self.type_name.capitalize())
        def run(*values):
            return kind.run(*values, **attrs)

        found = run(*values, name=self.name)
        found = found if isinstance(found, tuple) else (found,)
        self.blobs = {n: [y] for n, y in zip(kind.outputs, found, strict=True)}
        return self

    def RemoteBlobDict(self) -> dict[str, list]:
        """Return {output: its blobs}."""
        if self.blobs is None:
            raise CheckError(f"user_op_builder: {self.name} has not run",
                             expected=".Build().InferAndTryRun()",
                             got="outputs asked for before InferAndTryRun()",
                             fix="call InferAndTryRun() first")
        return {n: list(self.blobs[n]) for n in self.order}

    def RemoteBlobList(self) -> tuple:
        """Return a tuple of all output blobs, in the order of the Output calls."""
        return tuple(y for blobs in self.RemoteBlobDict().values() for y in blobs)

    def SoleOutputBlob(self):
        """Return the only output. Raise CheckError if the op has several."""
        blobs = self.RemoteBlobList()
        if len(blobs) != 1:
            raise CheckError(f"user_op_builder: {self.type_name} has {len(blobs)} outputs", expected="one",
                             got=", ".join(self.order), fix="RemoteBlobList() gives them all")
        return blobs[0]

    def InitOpKernel(self) -> None:
        """Do nothing. OneFlow's modules call this method once."""


class UserOpModuleBuilder(UserOpBuilder):
    """A builder that can be used for several calls: .OpName(name).Input(...).Build() for each."""

    def __init__(self, op_type_name: str):
        super().__init__(None, op_type_name)

    def Op(self, op_type_name: str):
        raise ArgumentError("user_op_module_builder: the type is given already",
                            expected=f"{self.type_name!r}", got=f".Op({op_type_name!r})", fix="leave .Op out")

    def InputSize(self, input_name: str, input_blob_size: int) -> UserOpModuleBuilder:
        """Set the number of blobs of an input, which Build() checks.

        Args:
            input_name: the name of the input.
            input_blob_size: the number of blobs.
        """
        if type(input_blob_size) is not int or input_blob_size < 0 or input_name in self.inputs:
            raise CheckError(f"user_op_module_builder: InputSize({input_name!r}) does not fit",
                             got=repr(input_blob_size),
                             expected="an int, once for every input", fix=f'.InputSize("{input_name}", 1)')
        self.inputs[input_name] = (None,) * input_blob_size
        return self

    def CheckAndComplete(self) -> UserOpModuleBuilder:
        """Check the type, names, and attributes."""
        self.Build()
        return self

    @property
    def user_op_module(self) -> UserOp:
        """The op without its inputs, on which only InitOpKernel() is called."""
        return self.Build()


def user_op_builder(op_name: str) -> UserOpBuilder:
    """Return a builder for one op of a job. It also works in eager mode.

        y = (flow.user_op_builder("pool").Op("max_pool_2d").Input("x", [x]).Output("y")
             .Attr("pool_size", [2, 2]).Attr("strides", [2, 2])
             .Build().InferAndTryRun().SoleOutputBlob())

    Args:
        op_name: the name of the op. flow.scope.namespace adds its prefix.
    """
    return UserOpBuilder(op_name)


def user_op_module_builder(op_type_name: str) -> UserOpModuleBuilder:
    """Return a builder for several ops of one type. OneFlow's modules create one and use it for each call.

    Args:
        op_type_name: the type, such as "relu".
    """
    return UserOpModuleBuilder(op_type_name)


consistent_user_op_builder = user_op_builder
consistent_user_op_module_builder = user_op_module_builder
