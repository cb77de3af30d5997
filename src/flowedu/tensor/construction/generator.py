"""Random generators and the default one, with manual_seed and get_rng_state.

A Generator stores a seed and counts its draws. The numbers of a draw are a function of the seed and the count
(ops/random.py), so that equal seeds give equal numbers for any number of threads.
"""
from __future__ import annotations

import os

import numpy as np

from flowedu.core.eager.dispatch import call_seeded, slots
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.call import OpBase, current_interpreter
from flowedu.core.values import thread_state as ambient
from flowedu.core.values.thread_state import during, register_fields, thread_state
from flowedu.errors import ArgumentError, DTypeError
from flowedu.errors.once import inert
from flowedu.tensor.construction.creation import from_numpy
from flowedu.tensor.devices.device import device, usable

register_fields(draws=None)              # the thread's stream of the default generator; None: the shared one

_MASK63 = 0x7FFFFFFFFFFFFFFF


class Generator:
    """Random generator, for the argument `generator` of random functions: `flow.Generator().manual_seed(1)`.

    Args:
        device: accepted for compatibility.
    """

    seedings = 0                         # the number of seedings

    def __init__(self, device: str | device = "cpu") -> None:
        self.device = device
        if device is not None:
            usable(device)
        self._seed, self._draws = 67280421310721 if device is not None else _fresh_seed(), 0

    def manual_seed(self, seed: int) -> Generator:
        """Restart with a seed and return the generator."""
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
            raise DTypeError("manual_seed: the seed is not an integer", expected="an int",
                             got=type(seed).__name__, fix="int(seed)")
        if not -0x8000000000000000 <= seed <= 0xFFFFFFFFFFFFFFFF:
            raise ArgumentError("manual_seed: the seed has more than 64 bits", expected="-2**63 to 2**64-1",
                                got=str(seed), fix="seed % 2**64")
        self._seed, self._draws = int(seed) & 0xFFFFFFFFFFFFFFFF, 0
        self.seedings += 1
        ambient.changes += 1
        return self

    def seed(self) -> int:
        """Set an unpredictable seed and return it."""
        self.manual_seed(_fresh_seed())
        return self._seed

    def initial_seed(self) -> int:
        """Return the last seed."""
        return self._seed

    def get_state(self) -> Tensor:
        """Return the state of the generator as 16 bytes (uint8)."""
        return from_numpy(np.array([self._seed, self._draws], "<u8").view(np.uint8).copy())

    def set_state(self, state: Tensor) -> Generator:
        """Restore the state returned by get_state."""
        a = state.numpy()
        if a.dtype != np.uint8 or a.shape != (16,):
            raise ArgumentError("set_state: this is not the state of a generator",
                                expected="16 bytes, from get_state()",
                                got=f"{a.dtype} {a.shape}", fix="save flow.get_rng_state() and pass that")
        self._seed, self._draws = (int(x) for x in a.copy().view("<u8"))
        return self

    def next(self) -> tuple[int, int]:
        """Return (seed, draw) for the next op.

        In a graph, each op gets a new seed and draw 0, because the runs of the graph count the draws.
        """
        self._draws += 1
        if current_interpreter() is None:
            return _mixed(self._seed), self._draws
        return _mixed(self._seed + self._draws * 0x9E3779B97F4A7C15), 0

    def __repr__(self) -> str:
        return f"<flowedu.Generator seed={self._seed} draws={self._draws}>"


def draw(op: OpBase, inputs: tuple, attrs: tuple, generator: Generator | None = None) -> Tensor:
    """Run a random op with the next seed and draw of a generator, which follow the attributes `attrs`."""
    seed, count = (generator or default_generator).next()
    if current_interpreter() is None:
        if thread_state.observer is None:
            return call_seeded(op, inputs, (*attrs, 0, 0), seed, count)
        return thread_state.observer(op, inputs, (*attrs, 0, 0), (seed, count))
    return op.call(inputs, (*attrs, seed, count))


def _mixed(seed: int) -> int:
    """Return a positive int64 seed such that neighboring seeds are far apart (splitmix64)."""
    z = (seed + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return (z ^ (z >> 31)) & _MASK63


def _fresh_seed() -> int:
    return int.from_bytes(os.urandom(8), "little") & _MASK63


class _Default(Generator):
    """The default generator.

    A thread that is a rank (flow.distributed.spawn) has its own random sequence, as a process has. Otherwise
    the values would depend on which rank draws first.
    """

    def __init__(self) -> None:
        self.device, self._shared = "cpu", [_fresh_seed(), 0, 0]

    def _row(self) -> list[int]:
        return thread_state.draws or self._shared

    @property
    def _seed(self) -> int:
        return self._row()[0]

    @_seed.setter
    def _seed(self, seed: int) -> None:
        self._row()[0] = seed

    @property
    def _draws(self) -> int:
        return self._row()[1]

    @_draws.setter
    def _draws(self, draws: int) -> None:
        self._row()[1] = draws

    @property
    def seedings(self) -> int:
        return self._row()[2]

    @seedings.setter
    def seedings(self, count: int) -> None:
        self._row()[2] = count


default_generator = _Default()


def own_generator() -> during:
    """Return a context manager in which this thread has its own copy of the default generator.

    The copy starts in the generator's current state.
    """
    return during(draws=list(default_generator._shared))


def manual_seed(seed: int) -> Generator:
    """Seed the default generator, so that all later random numbers are reproducible, and return it.

    Args:
        seed: integer.
    """
    default_generator.manual_seed(seed)
    if slots.seed is not None:                            # other sources of random numbers
        slots.seed(seed)
    return default_generator


def seed() -> int:
    """Set an unpredictable seed of the default generator and return it."""
    value = _fresh_seed()
    manual_seed(value)
    return value


def initial_seed() -> int:
    """Return the last seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """Return the state of the default generator, a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Restore a state of the default generator.

    Args:
        new_state: result of get_rng_state.
    """
    default_generator.set_state(new_state)


class fork_rng:
    """Context manager that restores the default generator's state at the end.

    Args:
        devices: accepted for compatibility; default: None.
        enabled: if False, the state is not restored; default: True.
    """

    def __init__(self, devices: object = None, enabled: bool = True) -> None:
        inert("fork_rng(devices)", not devices, True, "there is one generator, the CPU's")
        self.enabled = enabled

    def __enter__(self) -> None:
        self.state = default_generator.get_state()

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            default_generator.set_state(self.state)
