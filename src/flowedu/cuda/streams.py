"""Streams and events: queues of work on a GPU, and marks in them. `with flow.cuda.stream(s):` queues on s.

Without that everything is queued on the default stream, which waits for all others and they for it.
"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flowedu.core.values.thread_state import during, register_fields, thread_state
from flowedu.cuda.faults import check
from flowedu.cuda.machine import machine
from flowedu.errors import CallError, KernelError
from flowedu.tensor.device import device as Device
from flowedu.tensor.device import index_of

register_fields(streams=None)         # {GPU: the stream that the thread's work is queued on}; others: the default stream


class Stream:
    """A queue of work on a device (default: the current one): calls return at once, kernels run in order.

    Attributes: device_index; handle, PyCUDA's Stream, None for the default stream; cuda_stream, the driver's number of it.
    """

    def __init__(self, device: Any = None, priority: int = 0, *, handle: Any = ...):
        m = machine()
        with m.on(index_of(device)) as self.device_index:
            self.handle = m.driver.Stream() if handle is ... else handle
        self.cuda_stream = 0 if self.handle is None else int(self.handle.handle)
        self.priority = priority

    @property
    def device(self):
        return Device("cuda", self.device_index)

    def synchronize(self) -> None:
        """Waits until all that was queued so far is done. Raises what went wrong in it."""
        m = machine()
        with m.on(self.device_index), check("synchronize"):
            m.driver.Context.synchronize() if self.handle is None else self.handle.synchronize()

    def query(self) -> bool:
        """Whether all that was queued is done."""
        return self.record_event(Event()).query() if self.handle is None else bool(self.handle.is_done())

    def record_event(self, event: Event | None = None) -> Event:
        """Puts a mark behind what is queued so far."""
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """What is queued from here on starts after the mark."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """What is queued from here on starts after what is queued on the other stream so far."""
        self.wait_event(stream.record_event())

    def __eq__(self, other) -> bool:
        return isinstance(other, Stream) and hash(self) == hash(other)

    def __hash__(self) -> int:
        return self.cuda_stream + self.device_index

    def __repr__(self) -> str:
        return f"<flowedu.cuda.Stream device=cuda:{self.device_index} cuda_stream={self.cuda_stream:#x}>"


class Event:
    """A mark in a stream. enable_timing: `elapsed_time` can be asked between two of them."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False):
        self.enable_timing, self.blocking = enable_timing, blocking
        if interprocess:
            raise CallError("Event(interprocess=True): events of other processes are not known here", expected="False",
                            got="True")
        self._event, self.stream = None, None

    def record(self, stream: Stream | None = None) -> None:
        """Puts the mark behind what is queued on the stream (default: the current one) so far."""
        m = machine()
        self.stream = stream or current_stream()
        with m.on(self.stream.device_index):
            kinds = m.driver.event_flags
            if self._event is None:
                self._event = m.driver.Event((0 if self.enable_timing else kinds.DISABLE_TIMING)
                                             | (kinds.BLOCKING_SYNC if self.blocking else 0))
            self._event.record(self.stream.handle)

    def wait(self, stream: Stream | None = None) -> None:
        """What is queued on the stream (default: the current one) from here on starts after the mark."""
        stream, m = stream or current_stream(), machine()
        if self._event is not None and stream != self.stream:
            with m.on(stream.device_index):
                if stream.handle is None:                # PyCUDA cannot say it of the default stream
                    self._event.synchronize()
                else:
                    stream.handle.wait_for_event(self._event)

    def query(self) -> bool:
        """Whether the stream has come to the mark."""
        return self._event is None or bool(self._event.query())

    def synchronize(self) -> None:
        """Waits until the stream has come to the mark."""
        if self._event is not None:
            self._event.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this mark to a later one."""
        if not (self.enable_timing and end_event.enable_timing and self._event and end_event._event):
            raise KernelError("elapsed_time: these events do not measure", expected="two recorded events with "
                              "enable_timing=True", got="others", fix="flow.cuda.Event(enable_timing=True)")
        return float(self._event.time_till(end_event._event))


_default: dict[int, Stream] = {}


def default_stream(device: Any = None) -> Stream:
    """The stream that work is queued on where nothing else is said."""
    index = index_of(device)
    index = machine().use() if index is None else index
    if index not in _default:
        _default[index] = Stream(index, handle=None)
    return _default[index]


def current_stream(device: Any = None) -> Stream:
    """The stream that this thread queues work on, on a device (default: the current one)."""
    streams = thread_state.streams
    if streams:
        index = index_of(device)
        found = streams.get(machine().use() if index is None else index)
        if found is not None:
            return found
    return _default.get(device) or default_stream(device)


@contextmanager
def stream(s: Stream | None) -> Iterator[Stream | None]:
    """Inside it this thread's work is queued on a stream, whose device is the current one. None: nothing changes."""
    if s is None:
        yield None
        return
    with machine().on(s.device_index), during(streams={**(thread_state.streams or {}), s.device_index: s}):
        yield s


StreamContext = stream


def set_stream(s: Stream) -> None:
    """This thread's work on the stream's device is queued on it from here on."""
    thread_state.streams = {**(thread_state.streams or {}), s.device_index: s}
