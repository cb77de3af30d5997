"""Modules as functions of their parameters: functional_call, and stacked parameters of many modules."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from flowedu.autograd.batching import stacked
from flowedu.core.eager.tensor import Tensor
from flowedu.core.layers.module import Module
from flowedu.errors import ArgumentError, NameKeyError


def _places(module: Module, values: Mapping[str, Tensor], tie_weights: bool, strict: bool
            ) -> list[tuple[dict, str, Tensor]]:
    """Return (a table of a module, a name in it, the new value) for each of the values.

    A tensor that several modules share has one entry for each of its places.
    """
    places: dict[str, tuple[dict, str]] = {}
    shared: dict[int, list[str]] = {}
    for path, part in module.named_modules(remove_duplicate=False):
        for table in (part._parameters, part._buffers):
            for name, t in table.items():
                if t is not None:
                    full = f"{path}.{name}" if path else name
                    places[full] = table, name
                    shared.setdefault(id(t), []).append(full)
    unknown = [name for name in values if name not in places]
    missing = [name for name in places if name not in values] if strict else []
    if unknown or missing:
        raise NameKeyError(f"functional_call: names that do not fit {type(module).__name__}",
                           expected=", ".join(places)[:120],
                           fix="dict(module.named_parameters()) has the names",
                           got=", ".join([*(f"unknown {n}" for n in unknown),
                                          *(f"no {n}" for n in missing)])[:120])
    given = dict(values)
    if tie_weights:
        for names in shared.values():
            value = next((values[n] for n in names if n in values), None)
            given |= {n: value for n in names if value is not None and n not in values}
    return [(*places[name], value) for name, value in given.items()]


def functional_call(module: Module,
                    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
                    args=None, kwargs: Mapping | None = None, *, tie_weights: bool = True,
                    strict: bool = False):
    """Call module(*args, **kwargs) with other parameters and buffers, without changing the module.

    Args:
        module: module to call.
        parameter_and_buffer_dicts: {path: tensor}, or several such dicts.
        args: tuple of arguments, or one argument; default: none.
        kwargs: keyword arguments; default: none.
        tie_weights: if the module has a tensor under several names, replace it under all of them.
        strict: require all parameters and buffers.
    """
    if isinstance(parameter_and_buffer_dicts, Mapping):
        parameter_and_buffer_dicts = (parameter_and_buffer_dicts,)
    values: dict[str, Tensor] = {}
    for table in parameter_and_buffer_dicts:
        if twice := values.keys() & table.keys():
            raise ArgumentError("functional_call: a name is given twice", expected="each name in one dict",
                                got=", ".join(sorted(twice)), fix="{**a, **b}, where the second is right")
        values |= table
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    places = _places(module, values, tie_weights, strict)
    own = [table[name] for table, name, _ in places]
    try:
        for table, name, value in places:
            table[name] = value
        return module(*args, **(kwargs or {}))
    finally:
        for (table, name, _), old in zip(places, own):
            table[name] = old


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return (parameters, buffers) of modules of one kind, stacked along a new first axis: {path: tensor}.

    vmap over functional_call then runs all models at once. The parameters are leaves that require a
    gradient.

    Args:
        models: modules with the same structure.
    """
    if not models or any(type(m) is not type(models[0]) for m in models):
        raise ArgumentError("stack_module_state: the models are not of one kind",
                            expected="modules of one class",
                            got=", ".join(type(m).__name__ for m in models) or "none", fix="build them alike")

    def together(name: str) -> dict[str, Tensor]:
        tables = [dict(getattr(m, name)()) for m in models]
        return {path: stacked([t[path].detach() for t in tables]) for path in tables[0]}

    parameters = together("named_parameters")
    for path, p in models[0].named_parameters():
        parameters[path].requires_grad_(p.requires_grad)
    return parameters, together("named_buffers")
