"""Streams and events: queues of work on a GPU, and markers in them.

`with flow.cuda.stream(s):` queues work on s. Other work is queued on the default stream. It waits for all
other streams, and they wait for it.
"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flowedu.core.values.thread_state import during, register_fields, thread_state
from flowedu.cuda.faults import check
from flowedu.cuda.machine import machine
from flowedu.errors import CallError, KernelError
from flowedu.tensor.devices.device import device as Device
from flowedu.tensor.devices.device import index_of

register_fields(streams=None)         # {GPU: current stream of the thread}, if it is not the default one


class Stream:
    """Queue of work on a device: calls return at once, and kernels run in order.

    Attributes: device_index; handle, PyCUDA's Stream, None for the default stream; cuda_stream, the driver's
    pointer as an int.

    Args:
        device: index, name, or flow.device of a GPU; default: the current one.
        priority: stored as an attribute, without effect; default: 0.
        handle: PyCUDA stream to wrap, None for the default stream; by default a new stream is created.
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
        """Wait until all work queued so far is done, and raise its errors."""
        m = machine()
        with m.on(self.device_index), check("synchronize"):
            m.driver.Context.synchronize() if self.handle is None else self.handle.synchronize()

    def query(self) -> bool:
        """Return True if all queued work is done."""
        return self.record_event(Event()).query() if self.handle is None else bool(self.handle.is_done())

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event after the work queued so far, and return it.

        Args:
            event: event to record; default: a new one.
        """
        event = event or Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Make work queued later wait for an event.

        Args:
            event: recorded event of another stream.
        """
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Make work queued later wait for the work queued so far on another stream.

        Args:
            stream: the other stream.
        """
        self.wait_event(stream.record_event())

    def __eq__(self, other) -> bool:
        return isinstance(other, Stream) and hash(self) == hash(other)

    def __hash__(self) -> int:
        return self.cuda_stream + self.device_index

    def __repr__(self) -> str:
        return f"<flowedu.cuda.Stream device=cuda:{self.device_index} cuda_stream={self.cuda_stream:#x}>"


class Event:
    """Marker in a stream.

    Args:
        enable_timing: record the time, for `elapsed_time`; default: False.
        blocking: let the waiting thread sleep instead of spin; default: False.
        interprocess: only False is supported.

    Raises:
        CallError: `interprocess` is True.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False):
        self.enable_timing, self.blocking = enable_timing, blocking
        if interprocess:
            raise CallError("Event(interprocess=True): events of other processes are not known here",
                            expected="False", got="True")
        self._event: Any = None
        self.stream: Stream | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Record the event after the work queued so far on a stream.

        Args:
            stream: a Stream; default: the current one.
        """
        m = machine()
        self.stream = stream = stream or current_stream()
        with m.on(stream.device_index):
            flags = m.driver.event_flags
            if self._event is None:
                self._event = m.driver.Event((0 if self.enable_timing else flags.DISABLE_TIMING)
                                             | (flags.BLOCKING_SYNC if self.blocking else 0))
            self._event.record(stream.handle)

    def wait(self, stream: Stream | None = None) -> None:
        """Make work queued later on a stream wait for the event.

        Args:
            stream: a Stream; default: the current one.
        """
        stream, m = stream or current_stream(), machine()
        if self._event is not None and stream != self.stream:
            with m.on(stream.device_index):
                if stream.handle is None:                # PyCUDA has no such call for the default stream
                    self._event.synchronize()
                else:
                    stream.handle.wait_for_event(self._event)

    def query(self) -> bool:
        """Return True if the stream has reached the event."""
        return self._event is None or bool(self._event.query())

    def synchronize(self) -> None:
        """Wait until the stream has reached the event."""
        if self._event is not None:
            self._event.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Return the time from this event to a later one, in milliseconds.

        Args:
            end_event: the later event. Both are recorded, with enable_timing=True.

        Raises:
            KernelError: an event was not recorded or has no timing.
        """
        if not (self.enable_timing and end_event.enable_timing and self._event and end_event._event):
            raise KernelError("elapsed_time: these events do not measure",
                              expected="two recorded events with enable_timing=True", got="others",
                              fix="flow.cuda.Event(enable_timing=True)")
        return float(self._event.time_till(end_event._event))


_default: dict[int, Stream] = {}


def default_stream(device: Any = None) -> Stream:
    """Return the default stream of a device.

    Args:
        device: index, name, or flow.device of a GPU; default: the current one.
    """
    index = index_of(device)
    index = machine().use() if index is None else index
    if index not in _default:
        _default[index] = Stream(index, handle=None)
    return _default[index]


def current_stream(device: Any = None) -> Stream:
    """Return the stream on which this thread queues work of a device.

    Args:
        device: index, name, or flow.device of a GPU; default: the current one.
    """
    streams = thread_state.streams
    if streams:
        index = index_of(device)
        current = streams.get(machine().use() if index is None else index)
        if current is not None:
            return current
    return _default.get(device) or default_stream(device)


@contextmanager
def stream(s: Stream | None) -> Iterator[Stream | None]:
    """Queue this thread's work on a stream inside a `with` block; its device becomes the current one.

    Args:
        s: a Stream; None changes nothing.
    """
    if s is None:
        yield None
        return
    with machine().on(s.device_index), during(streams={**(thread_state.streams or {}), s.device_index: s}):
        yield s


StreamContext = stream


def set_stream(s: Stream) -> None:
    """Queue this thread's later work of the stream's device on a stream.

    Args:
        s: a Stream.
    """
    thread_state.streams = {**(thread_state.streams or {}), s.device_index: s}
