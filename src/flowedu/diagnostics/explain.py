"""From a bare TypeError or AttributeError to an error that names the function, the argument, and the user's line.

Runs only when a call of a public function has failed (diagnostics/function.pyx). Two kinds of mistakes come here: arguments
that the function does not have, before its first line ran; and arguments of a type that some line inside cannot work with.
Errors of the user's own code, called back by ours, are left alone.
"""
from __future__ import annotations

import inspect
import re
import sys
import types

from flowedu.core.eager.dispatch import TensorBase
from flowedu.diagnostics.parameters import fits, of_type, retyped, wants_tensor
from flowedu.errors import CallError, FlowError, NotATensorError, ours, told_value
from flowedu.errors.nearest import nearest

_LIBRARIES = {*sys.stdlib_module_names, "numpy", "PIL", "onnx", "_cython_3"}
_UNEXPECTED = re.compile(r"(?:([\w.<>]+)\(\) )?got an unexpected keyword argument '(\w+)'")


def explained(function, args: list, kwargs: dict, error: Exception) -> FlowError | None:
    """Return the exception to raise instead of `error` of function(*args, **kwargs); None: `error` itself."""
    if ours(sys._getframe(1)):                           # the function that the user called will say it
        return None
    return reworded(function, args, kwargs, error)


def reworded(function, args: list, kwargs: dict, error: Exception) -> FlowError | None:
    """Return `explained`'s result for any caller of the function."""
    name = _name(function, args)
    good = isinstance(error, FlowError) and error.expected and not isinstance(error, NotATensorError)
    if good or not _inside(error):
        return None
    signature = _signature(function, args, kwargs)
    if signature is None:
        return None
    given = _given(signature, args, kwargs)[function.owner is not None:]
    if isinstance(error, NotATensorError):
        return _tell_whose(name, given, error)
    if isinstance(error, FlowError):
        return _wrong_type(name, given, error)
    hidden = int(function.owner is not None)
    return _wrong_call(name, signature, args, kwargs, error, hidden) or _wrong_type(name, given, error)


def misfit(name: str, function, args: tuple, kwargs: dict) -> CallError | None:
    """The error for a call that does not fit the signature of a function or bound method; None: it does fit."""
    try:
        signature = inspect.signature(function)
        signature.bind(*args, **kwargs)
    except ValueError:
        return None
    except TypeError as e:
        return _wrong_call(name, signature, list(args), kwargs, e.with_traceback(None))
    return None


def raise_misfit(module, args: tuple, kwargs: dict, error: TypeError) -> None:
    """Raise a clearer error if `error`, caught by the caller of module.forward, means that the arguments do not fit."""
    if error.__traceback__.tb_next is None:              # no line of forward ran
        clearer = misfit(f"{type(module).__name__}.forward", module.forward, args, kwargs)
        if clearer is not None:
            raise clearer


def _inside(error: BaseException) -> bool:
    """Whether no line of the user's own was running when the error came up."""
    step = error.__traceback__
    while step is not None:
        frame = step.tb_frame
        if not ours(frame) and not frame.f_code.co_filename.endswith(".pyx") \
                and frame.f_globals.get("__name__", "").partition(".")[0] not in _LIBRARIES:
            return False
        step = step.tb_next
    return True


def _signature(function, args: list, kwargs: dict) -> inspect.Signature | None:
    """Return the signature of the function, or of the one of two that this call meant."""
    choice = function.choice
    try:
        return inspect.signature(choice.choose(tuple(args), kwargs) if choice is not None else function.function)
    except (TypeError, ValueError):
        return None


def _name(function, args: list) -> str:
    """Return the name that the user called: `hypot`, `Tensor.sum`, `Linear`."""
    name = function.name
    if function.owner is None:
        return name
    owner = type(args[0]).__name__ if args and isinstance(args[0], function.owner) else function.owner.__name__
    return owner if name in ("__init__", "__new__") else f"{owner}.{name}"


# ---- arguments that the function does not have
def _wrong_call(name: str, signature, args: list, kwargs: dict, error: Exception, hidden: int = 0) -> CallError | None:
    """The error for a call that does not fit the signature. hidden: how many parameters the user does not write (self)."""
    if not isinstance(error, TypeError):
        return None
    parameters = list(signature.parameters.values())
    shown, own = parameters[hidden:], args[hidden:]
    more = dict(expected=f"{name}({_parameters(shown)})", got=f"{name}({_arguments(own, kwargs)})")
    unknown = [k for k in kwargs if k not in signature.parameters]
    inner = _UNEXPECTED.search(str(error))
    if inner and inner[2] in kwargs:                     # also where the function passed it on
        unknown = [inner[2]]
    elif any(p.kind is p.VAR_KEYWORD for p in parameters) or error.__traceback__ is not None:
        unknown = []
    if unknown:
        known = [p.name for p in shown if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY)]
        known += [n for n in _names_inside(error, inner) if n not in known]
        free = [n for n in known if n not in kwargs]
        close = nearest(unknown[0], free) or nearest(unknown[0], known)
        return _said(f"{name}: there is no argument {unknown[0]!r}", fix=f"{close}=..." if close else
                     "leave it out; " + (f"there are: {', '.join(known)}" if known else "it takes none"), **more)
    if error.__traceback__ is not None and binds(signature, args, kwargs):      # the call itself was right
        return None
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(args) > len(places) and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        return _said(f"{name}: {len(own)} arguments, where at most {len(places) - hidden} have a place",
                     fix=f"by name: {named[0]}=..." if named else "leave out the last", **more)
    for p in places[:len(args)]:
        if p.name in kwargs:
            return _said(f"{name}: the argument {p.name!r} is given twice, by its place and by name",
                         fix=f"leave out one of the two {p.name!r}", **more)
    for p in parameters[len(args):]:
        if p.default is p.empty and p.name not in kwargs and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            return _said(f"{name}: the argument {p.name!r} is missing", fix=f"{name}({_parameters(shown, True)})", **more)
    return None


def binds(signature, args: list, kwargs: dict) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _said(problem: str, **more: str) -> CallError:
    error = CallError(problem, **more)
    error.__cause__, error.__suppress_context__ = None, True
    return error


def _parameters(parameters: list[inspect.Parameter], required: bool = False) -> str:
    """`input, dim=None, *, keepdim=False`; required: only those without default."""
    plain = [p.replace(annotation=p.empty) for p in parameters]
    if required:
        return ", ".join(p.name for p in plain if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD))
    return str(inspect.Signature(plain))[1:-1]


def _arguments(args: list, kwargs: dict) -> str:
    """The call as it was made, in few words: `float32[2, 3], dim=0`."""
    def short(x) -> str:
        text = told_value(x)
        return text.split(" ", 2)[2] if isinstance(x, (bool, int, float, str)) else text

    return ", ".join([*map(short, args), *(f"{k}={short(v)}" for k, v in kwargs.items())])


def _names_inside(error: Exception, inner: re.Match | None) -> list[str]:
    """The parameters of the function that refused a keyword, where another one had passed it on."""
    if inner is None or error.__traceback__ is None:
        return []
    step = error.__traceback__
    while step.tb_next is not None:
        step = step.tb_next
    found = None
    for part in (inner[1] or "").split("."):
        found = getattr(found, part, None) if found is not None else step.tb_frame.f_globals.get(part)
    try:
        return [n for n in inspect.signature(found).parameters if n != "self"] if found is not None else []
    except (TypeError, ValueError):
        return []


# ---- arguments of a type that does not work
def _given(signature, args: list, kwargs: dict) -> list[tuple[inspect.Parameter, object]]:
    """(parameter, value) of every argument the user wrote."""
    try:
        bound = signature.bind_partial(*args, **kwargs)
    except TypeError:
        return []
    return [(signature.parameters[name], value) for name, value in bound.arguments.items()]


def _place(x, given: list) -> tuple[str, inspect.Parameter] | None:
    """Which argument x is, or in which list: ("other", its parameter), ("tensors[1]", ...)."""
    for p, value in given:
        if value is x:
            return p.name, p
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
        for i, y in enumerate(inner):
            if y is x:
                return f"{p.name}[{i}]", p
    return None


def _tell_whose(name: str, given: list, error: NotATensorError) -> NotATensorError | None:
    """The error of an op inside, with the name of the user's function and argument."""
    found = _place(error.culprit, given)
    if found is None:
        return _wrong_type(name, given, error)           # something inside made another thing of it
    return error.told(problem=f"{name}: {found[0]} is not a tensor", fix=error.fix if "wrap it" not in error.fix else
                      f"wrap it: flow.tensor({found[0]})").with_traceback(None)


def _wrong_type(name: str, given: list, error: Exception) -> FlowError | None:
    """The error for an argument of a type that some line inside could not work with."""
    found, culprit = None, getattr(error, "obj", None)
    if isinstance(error, AttributeError) and not isinstance(culprit, (TensorBase, types.ModuleType)):
        found = _place(culprit, given)
    if found is None:
        misfits = [(p.name, p, v) for p, v in given if not fits(v, p)] or _accused(given, error)
        if not misfits:
            return None
        place, p, culprit = misfits[0]
        found = place, p
    place, p = found
    if wants_tensor(p):
        better = NotATensorError(name, culprit, place)
    else:
        better = CallError(f"{name}: {place} is of a type that does not work here",
                           expected=of_type(p) or f"what the docstring of {name} says", got=told_value(culprit),
                           fix=retyped(name, place, culprit, p))
    better.__cause__ = error
    return better


def _accused(given: list, error: Exception) -> list[tuple[str, inspect.Parameter, object]]:
    """The arguments without annotation, of a type that Python's TypeError names: `'str' object cannot be ...`."""
    kinds = re.findall(r"'(\w+)'", str(error)) if isinstance(error, TypeError) else []
    for kind in (str, dict, set, complex, float):        # int is mostly the other side of the comparison
        for p, value in given:
            if kind.__name__ in kinds and not wants_tensor(p):
                parts = enumerate(value) if p.kind is p.VAR_POSITIONAL else [(None, value)]
                found = [(p.name if i is None else f"{p.name.rstrip('_')}[{i}]", p, v) for i, v in parts if type(v) is kind]
                if found:
                    return found
    return []
