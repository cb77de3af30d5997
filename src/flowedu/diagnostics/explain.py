"""Conversion of a TypeError or AttributeError to an error with function, argument, and the user's line.

It runs only after a call of a public function has failed (diagnostics/function.pyx). It handles arguments
that do not match the signature, and arguments whose type a line inside the function cannot process.
Errors in functions of the user that flowedu calls are not changed.
"""
from __future__ import annotations

import inspect
import re
import sys
import types

from flowedu.core.eager.dispatch import TensorBase
from flowedu.diagnostics.parameters import fits, of_type, retyped, wants_tensor
from flowedu.errors import CallError, FlowError, NotATensorError, format_value, ours
from flowedu.errors.nearest import nearest

_LIBRARIES = {*sys.stdlib_module_names, "numpy", "PIL", "onnx", "_cython_3"}
_UNEXPECTED = re.compile(r"(?:([\w.<>]+)\(\) )?got an unexpected keyword argument '(\w+)'")


def explained(function, args: list, kwargs: dict, error: Exception) -> FlowError | None:
    """Return a better exception than `error` for function(*args, **kwargs), or None to raise `error`."""
    if ours(sys._getframe(1)):                           # the function that the user called raises it
        return None
    return reworded(function, args, kwargs, error)


def reworded(function, args: list, kwargs: dict, error: Exception) -> FlowError | None:
    """Return the result of `explained`, for any caller of the function."""
    name = _name(function, args)
    good = isinstance(error, FlowError) and error.expected and not isinstance(error, NotATensorError)
    if good or not _inside(error):
        return None
    signature = _signature(function, args, kwargs)
    if signature is None:
        return None
    bound = _bind(signature, args, kwargs)[function.owner is not None:]
    if isinstance(error, NotATensorError):
        return _tell_whose(name, bound, error)
    if isinstance(error, FlowError):
        return _wrong_type(name, bound, error)
    hidden = int(function.owner is not None)
    return _wrong_call(name, signature, args, kwargs, error, hidden) or _wrong_type(name, bound, error)


def misfit(name: str, function, args: tuple, kwargs: dict) -> CallError | None:
    """Return the error for a call that does not fit the signature of a function or bound method, or None."""
    try:
        signature = inspect.signature(function)
        signature.bind(*args, **kwargs)
    except ValueError:
        return None
    except TypeError as e:
        return _wrong_call(name, signature, list(args), kwargs, e.with_traceback(None))
    return None


def raise_misfit(module, args: tuple, kwargs: dict, error: TypeError) -> None:
    """Raise a clearer error if `error` means that the arguments do not fit module.forward."""
    if error.__traceback__ is None or error.__traceback__.tb_next is None:  # no line of forward ran
        clearer = misfit(f"{type(module).__name__}.forward", module.forward, args, kwargs)
        if clearer is not None:
            raise clearer


def _inside(error: BaseException) -> bool:
    """Return True if no line of the user's code was running when the error was raised."""
    step = error.__traceback__
    while step is not None:
        frame = step.tb_frame
        if not ours(frame) and not frame.f_code.co_filename.endswith(".pyx") \
                and frame.f_globals.get("__name__", "").partition(".")[0] not in _LIBRARIES:
            return False
        step = step.tb_next
    return True


def _signature(function, args: list, kwargs: dict) -> inspect.Signature | None:
    """Return the signature of the function, or of its older meaning if the call selects that."""
    choice = function.choice
    try:
        return inspect.signature(choice.choose(tuple(args), kwargs) if choice is not None
                                 else function.function)
    except (TypeError, ValueError):
        return None


def _name(function, args: list) -> str:
    """Return the name that the user called: `hypot`, `Tensor.sum`, `Linear`."""
    name = function.name
    if function.owner is None:
        return name
    owner = (type(args[0]).__name__ if args and isinstance(args[0], function.owner)
             else function.owner.__name__)
    return owner if name in ("__init__", "__new__") else f"{owner}.{name}"


# ---- arguments that the function does not have
def _wrong_call(name: str, signature, args: list, kwargs: dict, error: Exception,
                hidden: int = 0) -> CallError | None:
    """Return the error for a call that does not fit the signature.

    `hidden` counts parameters that users do not write (self).
    """
    if not isinstance(error, TypeError):
        return None
    parameters = list(signature.parameters.values())
    shown, shown_args = parameters[hidden:], args[hidden:]
    more = dict(expected=f"{name}({_parameters(shown)})", got=f"{name}({_arguments(shown_args, kwargs)})")
    unknown = [k for k in kwargs if k not in signature.parameters]
    inner = _UNEXPECTED.search(str(error))
    if inner and inner[2] in kwargs:                     # also for a keyword that the function passed on
        unknown = [inner[2]]
    elif any(p.kind is p.VAR_KEYWORD for p in parameters) or error.__traceback__ is not None:
        unknown = []
    if unknown:
        known = [p.name for p in shown if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY)]
        known += [n for n in _names_inside(error, inner) if n not in known]
        free = [n for n in known if n not in kwargs]
        close = nearest(unknown[0], free) or nearest(unknown[0], known)
        others = f"there are: {', '.join(known)}" if known else "it takes none"
        return _call_error(f"{name}: there is no argument {unknown[0]!r}",
                           fix=f"{close}=..." if close else f"leave it out; {others}", **more)
    if error.__traceback__ is not None and binds(signature, args, kwargs):      # the call fits the signature
        return None
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(args) > len(places) and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        most = len(places) - hidden
        return _call_error(f"{name}: {len(shown_args)} arguments, where at most {most} have a place",
                           fix=f"by name: {named[0]}=..." if named else "leave out the last", **more)
    for p in places[:len(args)]:
        if p.name in kwargs:
            return _call_error(f"{name}: the argument {p.name!r} is given twice, by its place and by name",
                               fix=f"leave out one of the two {p.name!r}", **more)
    for p in parameters[len(args):]:
        if p.default is p.empty and p.name not in kwargs and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            return _call_error(f"{name}: the argument {p.name!r} is missing",
                               fix=f"{name}({_parameters(shown, True)})", **more)
    return None


def binds(signature, args: list | tuple, kwargs: dict) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _call_error(problem: str, **more: str) -> CallError:
    error = CallError(problem, **more)
    error.__cause__, error.__suppress_context__ = None, True
    return error


def _parameters(parameters: list[inspect.Parameter], required: bool = False) -> str:
    """Return `input, dim=None, *, keepdim=False`; with `required`, only parameters without default."""
    plain = [p.replace(annotation=p.empty) for p in parameters]
    if required:
        return ", ".join(p.name for p in plain if p.default is p.empty
                         and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD))
    return str(inspect.Signature(plain))[1:-1]


def _arguments(args: list, kwargs: dict) -> str:
    """Return a short form of the arguments of a call: `float32[2, 3], dim=0`."""
    def short(x) -> str:
        text = format_value(x)
        return text.split(" ", 2)[2] if isinstance(x, (bool, int, float, str)) else text

    return ", ".join([*map(short, args), *(f"{k}={short(v)}" for k, v in kwargs.items())])


def _names_inside(error: Exception, inner: re.Match | None) -> list[str]:
    """Return the parameters of an inner function that raised the error for a keyword passed on to it."""
    if inner is None or error.__traceback__ is None:
        return []
    step = error.__traceback__
    while step.tb_next is not None:
        step = step.tb_next
    target = None
    for part in (inner[1] or "").split("."):
        target = getattr(target, part, None) if target is not None else step.tb_frame.f_globals.get(part)
    try:
        return [n for n in inspect.signature(target).parameters if n != "self"] if target is not None else []
    except (TypeError, ValueError):
        return []


# ---- arguments of a type that does not work
def _bind(signature, args: list, kwargs: dict) -> list[tuple[inspect.Parameter, object]]:
    """Return (parameter, value) for every argument of the call."""
    try:
        bound = signature.bind_partial(*args, **kwargs)
    except TypeError:
        return []
    return [(signature.parameters[name], value) for name, value in bound.arguments.items()]


def _place(x, bound: list) -> tuple[str, inspect.Parameter] | None:
    """Return (name, parameter) of the argument or element that is x: ("other", p), ("tensors[1]", p)."""
    for p, value in bound:
        if value is x:
            return p.name, p
        items = value.values() if isinstance(value, dict) else value
        if not isinstance(value, (dict, list, tuple)):
            items = ()
        for i, y in enumerate(items):
            if y is x:
                return f"{p.name}[{i}]", p
    return None


def _tell_whose(name: str, bound: list, error: NotATensorError) -> FlowError | None:
    """Return the error of an inner op, renamed to the user's function and argument."""
    target = _place(error.culprit, bound)
    if target is None:
        return _wrong_type(name, bound, error)           # the value was converted inside
    fix = f"wrap it: flow.tensor({target[0]})" if "wrap it" in error.fix else error.fix
    return error.with_texts(problem=f"{name}: {target[0]} is not a tensor", fix=fix).with_traceback(None)


def _wrong_type(name: str, bound: list, error: Exception) -> FlowError | None:
    """Return the error for an argument of a type that some line inside could not process."""
    target, culprit = None, getattr(error, "obj", None)
    if isinstance(error, AttributeError) and not isinstance(culprit, (TensorBase, types.ModuleType)):
        target = _place(culprit, bound)
    if target is None:
        arguments = _list_arguments(bound)
        misfits = [a for a in arguments if not fits(a[2], a[1])] or _find_accused(arguments, error)
        if not misfits:
            return None
        place, p, culprit = misfits[0]
        target = place, p
    place, p = target
    better: CallError | NotATensorError
    if wants_tensor(p):
        better = NotATensorError(name, culprit, place)
    else:
        better = CallError(f"{name}: {place} is of a type that does not work here",
                           expected=of_type(p) or f"a value that the docstring of {name} says",
                           got=format_value(culprit), fix=retyped(name, place, culprit, p))
    better.__cause__ = error
    return better


def _list_arguments(bound: list) -> list[tuple[str, inspect.Parameter, object]]:
    """Return (place, parameter, value) per argument. Values of *args are separate: ("sizes[0]", p, value)."""
    arguments = []
    for p, value in bound:
        if p.kind is p.VAR_POSITIONAL:
            arguments += [(f"{p.name.rstrip('_')}[{i}]", p, v) for i, v in enumerate(value)]
        else:
            arguments.append((p.name, p, value))
    return arguments


def _find_accused(arguments: list, error: Exception) -> list[tuple[str, inspect.Parameter, object]]:
    """Return arguments without annotation whose type is in the TypeError, such as `'str' object cannot`."""
    kinds = re.findall(r"'(\w+)'", str(error)) if isinstance(error, TypeError) else []
    for kind in (str, dict, set, complex, float):        # int is usually the other operand
        accused: list[tuple[str, inspect.Parameter, object]] = [
            (place, p, v) for place, p, v in arguments if type(v) is kind and not wants_tensor(p)]
        if accused and kind.__name__ in kinds:
            return accused
    return []
