"""Batches of sequences of different lengths: padded with zeros, or packed step by step."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from flowedu.core.ops.concat import concat
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, ShapeError
from flowedu.ops.order import range as range_op
from flowedu.tensor import Tensor, from_numpy
from flowedu.tensor.devices.conversion import beside, use_device_of
from flowedu.tensor.elementwise import where
from flowedu.tensor.shapes.join_and_pad import pad


class PackedSequence(NamedTuple):
    """Packed sequences, the result of pack_padded_sequence and an input of RNN, LSTM, and GRU.

    Args:
        data: (sum of lengths, *): all first steps, then all second steps, and so on, longest sequences first.
        batch_sizes: int64 number of sequences that have each step.
        sorted_indices: order of the sequences by length; default: None.
        unsorted_indices: inverse of sorted_indices; default: None.
    """

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    def _steps(self) -> np.ndarray:
        return self.batch_sizes.peek()

    def unpack(self) -> tuple[Tensor, Tensor]:
        """Return (padded (T, N, *) in sorted order, lengths int64 (N, 1))."""
        sizes = self._steps()
        if not len(sizes):
            raise ShapeError("PackedSequence: no time steps", expected="batch_sizes with one number or more",
                             got="none", fix="nn.utils.rnn.pack_padded_sequence makes it")
        n, starts = int(sizes[0]), np.concatenate([[0], np.cumsum(sizes)])
        rows = [_padded_to(self.data.narrow(0, int(a), int(k)), n).unsqueeze(0)
                for a, k in zip(starts, sizes)]
        lengths = (sizes[:, None] > np.arange(n)).sum(0).astype(np.int64)
        return concat(*rows, axis=0), beside(from_numpy(lengths.reshape(n, 1)), self.data)

    def repack(self, padded: Tensor) -> PackedSequence:
        """Pack padded (T, N, *), in sorted order, with the lengths of this packed sequence."""
        rows = [padded.select(0, t).narrow(0, 0, int(k)) for t, k in enumerate(self._steps())]
        return PackedSequence(concat(*rows, axis=0), self.batch_sizes,
                              self.sorted_indices, self.unsorted_indices)


def _padded_to(x, n: int, value: float = 0.0):
    more = n - x.shape[0]
    return pad(x, [0, 0] * (x.ndim - 1) + [0, more], "constant", value) if more else x


def pack_padded_sequence(input: Tensor, lengths, batch_first: bool = False,
                         enforce_sorted: bool = True) -> PackedSequence:
    """Pack a padded batch of sequences.

    Args:
        input: (T, N, *), or (N, T, *) with batch_first.
        lengths: lengths of the sequences, a list or tensor.
        batch_first: the batch is the first axis.
        enforce_sorted: require decreasing lengths; False sorts the sequences and stores the order.
    """
    counts = (lengths.peek().reshape(-1) if isinstance(lengths, Tensor)
              else np.asarray(lengths, np.int64).reshape(-1))
    x = input.transpose(0, 1) if batch_first else input
    if counts.size != x.shape[1] or counts.min(initial=1) < 1 or counts.max(initial=0) > x.shape[0]:
        raise ShapeError("pack_padded_sequence: Expected `len(lengths)` to be equal to batch_size, and "
                         "lengths in [1, T]",
                         expected=f"{x.shape[1]} lengths of 1 to {x.shape[0]}", got=str(counts.tolist()),
                         fix="the lengths that the batch was padded from")
    order = back = None
    if not enforce_sorted:
        places = np.argsort(-counts, kind="stable").astype(np.int64)
        order, back = (beside(from_numpy(p.astype(np.int64)), x) for p in (places,
                                                                           np.argsort(places, kind="stable")))
        x, counts = x.index_select(1, order), counts[places]
    elif (np.diff(counts) > 0).any():
        raise ArgumentError("`lengths` array must be sorted in decreasing order when `enforce_sorted` "
                            "is True.",
                            expected="from long to short", got=str(counts.tolist()),
                            fix="enforce_sorted=False")
    sizes = (counts[None, :] > np.arange(int(counts.max(initial=0)))[:, None]).sum(1).astype(np.int64)
    rows = [x.select(0, t).narrow(0, 0, int(k)) for t, k in enumerate(sizes)]
    return PackedSequence(concat(*rows, axis=0), from_numpy(sizes), order, back)


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0,
                        total_length: int | None = None) -> tuple[Tensor, Tensor]:
    """Return (padded (T, N, *), lengths int64 (N,)), in the order of the sequences before packing.

    Args:
        sequence: packed sequences.
        batch_first: return (N, T, *).
        padding_value: value of the padding.
        total_length: T; default: the longest length.
    """
    x, lengths = sequence.unpack()
    lengths = lengths.reshape(-1)
    if padding_value:
        with use_device_of(x):
            steps = range_op(size=x.shape[0], dtype=dt.int64).reshape(x.shape[0], 1)
        there = (lengths > steps).reshape(*x.shape[:2], *(1,) * (x.ndim - 2))
        x = where(there, x, padding_value)
    if total_length is not None:
        if total_length < x.shape[0]:
            raise ArgumentError("Expected total_length to be at least the length of the longest sequence "
                                "in input",
                                expected=f"{x.shape[0]} or more", got=str(total_length), fix="leave it out")
        x = _padded_to(x, total_length, padding_value)
    if sequence.unsorted_indices is not None:
        x, lengths = (x.index_select(1, sequence.unsorted_indices),
                      lengths.index_select(0, sequence.unsorted_indices))
    return (x.transpose(0, 1) if batch_first else x), lengths


def pad_sequence(sequences: Sequence[Tensor], batch_first: bool = False,
                 padding_value: float = 0.0) -> Tensor:
    """Stack sequences of different lengths to (longest, N, *).

    Args:
        sequences: tensors (length, *).
        batch_first: return (N, longest, *).
        padding_value: value of the padding.
    """
    if not len(sequences) or not all(s.ndim for s in sequences):
        raise ArgumentError("pad_sequence: no sequences, or one without a length",
                            expected="tensors (length, *)",
                            got=f"{[tuple(s.shape) for s in sequences]}", fix="leave the batch out")
    longest = max(s.shape[0] for s in sequences)
    axis = 0 if batch_first else 1
    return concat(*[_padded_to(s, longest, padding_value).unsqueeze(axis) for s in sequences], axis=axis)


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of different lengths.

    Args:
        sequences: tensors (length, *).
        enforce_sorted: require decreasing lengths; False sorts the sequences and stores the order.
    """
    return pack_padded_sequence(pad_sequence(sequences), [s.shape[0] for s in sequences],
                                enforce_sorted=enforce_sorted)
