"""Recurrent layers RNN, LSTM, and GRU, and their cells."""
from __future__ import annotations

import math
from collections.abc import Callable

from flowedu.core.layers.module import Module
from flowedu.core.ops.concat import concat
from flowedu.core.ops.view import constant
from flowedu.errors import ArgumentError, ShapeError
from flowedu.nn import functional as F
from flowedu.nn import init
from flowedu.nn.functional import rnn
from flowedu.nn.modules.linear import new_parameter
from flowedu.tensor import Tensor
from flowedu.tensor.devices.conversion import use_device_of

# The deepest published networks have a few thousand layers.
MOST_LAYERS = 10_000


def check_layers(name: str, num_layers: int) -> None:
    """Raise ArgumentError if `num_layers` is greater than MOST_LAYERS."""
    if num_layers > MOST_LAYERS:
        raise ArgumentError(f"{name}: too many layers", expected=f"at most {MOST_LAYERS:,}",
                            got=str(num_layers), fix="num_layers=2")


class _Recurrent(Module):
    """Base class of RNN, LSTM, and GRU. `mode` is the name in functional.rnn."""

    mode = "LSTM"
    _uncalled = ("_init_flat_weights", "_update_flat_weights", "_weights_have_changed")

    def _build(self, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
               proj_size, device, dtype) -> None:
        name = type(self).__name__
        if not 0 <= dropout <= 1:
            raise ArgumentError(f"{name}: dropout should be a number in range [0, 1] representing the "
                                f"probability of an element being zeroed", expected="0 to 1",
                                got=str(dropout), fix="dropout=0.1, say")
        if hidden_size <= 0 or num_layers <= 0:
            raise ArgumentError(f"{name}: hidden_size and num_layers must be greater than zero",
                                expected="1 or more",
                                got=f"hidden_size={hidden_size}, num_layers={num_layers}",
                                fix="hidden_size=128, say")
        check_layers(name, num_layers)
        if proj_size and (self.mode != "LSTM" or not 0 < proj_size < hidden_size):
            raise ArgumentError(f"{name}: proj_size has to be smaller than hidden_size, and is for LSTM only",
                                expected=f"0 to {hidden_size - 1}", got=str(proj_size),
                                fix="proj_size=0 projects nothing")
        self.input_size, self.hidden_size = input_size, hidden_size
        self.num_layers, self.bias = num_layers, bias
        self.batch_first, self.dropout = batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        gates, place = rnn.GATES[self.mode] * hidden_size, {"device": device, "dtype": dtype}
        ways, real = 2 if bidirectional else 1, proj_size or hidden_size
        for k in range(num_layers):
            for way in range(ways):
                end = f"_l{k}" + ("_reverse" if way else "")
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (gates, input_size if k == 0 else real * ways),
                    "weight_hh": (gates, real)}
                shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)} if bias else {}
                shapes |= {"weight_hr": (proj_size, hidden_size)} if proj_size else {}
                for what, shape in shapes.items():
                    setattr(self, what + end, new_parameter(*shape, **place))
        self.flatten_parameters()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters uniformly from [-b, b], where b = 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def flatten_parameters(self) -> None:
        """Do nothing: parameters need not be contiguous in memory."""

    def _weights(self, k: int, way: int) -> tuple:
        end = f"_l{k}" + ("_reverse" if way else "")
        own = self._parameters
        return tuple(own.get(what + end) for what in ("weight_ih", "weight_hh", "bias_ih", "bias_hh",
                                                      "weight_hr"))

    # Subclasses may override the checks and permute_hidden, as in PyTorch.
    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raise ShapeError if the input does not have `input_size` features, or another number of axes."""
        axes = 3 if batch_sizes is None else 2
        if input.ndim != axes:
            raise ShapeError(f"input must have {axes} dimensions, got {input.ndim}", expected=f"{axes} axes",
                             got=f"{type(self).__name__} of input {tuple(input.shape)}",
                             fix="pass (L, N, input_size) or a PackedSequence")
        if input.shape[-1] != self.input_size:
            raise ShapeError(f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                             f"{input.shape[-1]}",
                             expected=f"a last axis of {self.input_size}",
                             got=f"{type(self).__name__} of input {tuple(input.shape)}",
                             fix="a module made with this input_size; batch_first=True for (N, L, features)")

    def _expected_size(self, input: Tensor, batch_sizes: Tensor | None, size: int) -> tuple[int, int, int]:
        if batch_sizes is None:
            samples = input.shape[0 if self.batch_first else 1]
        else:
            samples = int(batch_sizes[0])
        return self.num_layers * (2 if self.bidirectional else 1), samples, size

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """Return the shape of the state h."""
        return self._expected_size(input, batch_sizes, self.proj_size or self.hidden_size)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """Return the shape of the state c of an LSTM."""
        return self._expected_size(input, batch_sizes, self.hidden_size)

    def check_hidden_size(self, hx: Tensor, expected_hidden_size: tuple[int, int, int],
                          msg: str = "Expected hidden size {}, got {}") -> None:
        """Raise ShapeError if a state has another shape."""
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise ShapeError(f"{type(self).__name__}: "
                             + msg.format(tuple(expected_hidden_size), list(hx.shape)),
                             expected=str(expected_hidden_size), got=str(tuple(hx.shape)),
                             fix="leave the state out: zeros are the default")

    def check_forward_args(self, input: Tensor, hidden, batch_sizes: Tensor | None) -> None:
        """Check the input and the state, or the pair of states of an LSTM."""
        self.check_input(input, batch_sizes)
        sizes = [self.get_expected_hidden_size(input, batch_sizes)]
        if self.mode == "LSTM":
            sizes.append(self.get_expected_cell_size(input, batch_sizes))
            for i, size in enumerate(sizes):
                self.check_hidden_size(hidden[i], size, f"Expected hidden[{i}] size {{}}, got {{}}")
        else:
            self.check_hidden_size(hidden, sizes[0])

    def permute_hidden(self, hx, permutation: Tensor | None):
        """Return the state, or the pair of states, with the samples in this order."""
        if permutation is None:
            return hx
        if self.mode == "LSTM":
            return tuple(state.index_select(1, permutation) for state in hx)
        return hx.index_select(1, permutation)

    def _make_zeros(self, input: Tensor, samples: int):
        """Return the state before the first step, or the pair of states of an LSTM."""
        count = self.num_layers * (2 if self.bidirectional else 1)
        sizes = (self.proj_size or self.hidden_size, self.hidden_size)[:2 if self.mode == "LSTM" else 1]
        with use_device_of(input):
            zeros = tuple(constant(shape=(count, samples, n), value=0.0, dtype=input.dtype) for n in sizes)
        return zeros if self.mode == "LSTM" else zeros[0]

    def forward(self, input: Tensor, hx=None):
        from flowedu.nn.utils.rnn import PackedSequence
        if isinstance(input, PackedSequence):
            return self._run_packed(input, hx)
        if input.ndim not in (2, 3):
            raise ShapeError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.ndim}D "
                             f"instead", expected="(L, N, input_size), "
                             "(N, L, input_size) with batch_first, or (L, input_size)",
                             got=str(tuple(input.shape)), fix="x.unsqueeze(1) makes a batch of one")
        axis, single = 0 if self.batch_first else 1, input.ndim == 2
        if single:
            input = input.unsqueeze(axis)
            hx = None if hx is None else self._map_states(hx, lambda state: state.unsqueeze(1))
        if hx is None:
            hx = self._make_zeros(input, input.shape[axis])
        else:
            hx = self.permute_hidden(hx, None)
        self.check_forward_args(input, hx, None)
        out, hidden = self._run(input.transpose(0, 1) if self.batch_first else input, hx, None)
        out = out.transpose(0, 1) if self.batch_first else out
        if single:
            out = out.squeeze(axis)
            hidden = self._map_states(hidden, lambda state: state.squeeze(1))
        return out, self.permute_hidden(hidden, None)

    def _run_packed(self, packed, hx):
        x, lengths = packed.unpack()
        if hx is None:
            hx = self._make_zeros(x, x.shape[1])
        else:
            hx = self.permute_hidden(hx, packed.sorted_indices)
        self.check_forward_args(packed.data, hx, packed.batch_sizes)
        out, hidden = self._run(x, hx, lengths)
        return packed.repack(out), self.permute_hidden(hidden, packed.unsorted_indices)

    def _map_states(self, hx, f: Callable):
        return tuple(map(f, hx)) if self.mode == "LSTM" else f(hx)

    def _run(self, x: Tensor, hx, lengths):
        """Return (outputs, last states) of (L, N, input_size)."""
        states, last = hx if self.mode == "LSTM" else (hx,), []
        ways = 2 if self.bidirectional else 1
        for k in range(self.num_layers):
            outputs = []
            for way in range(ways):
                first = tuple(s.select(0, k * ways + way) for s in states)
                y, end = rnn.layer(self.mode, x, first, self._weights(k, way), way == 1, lengths)
                outputs.append(y)
                last.append(end)
            x = outputs[0] if ways == 1 else concat(*outputs, axis=2)
            if self.dropout and k < self.num_layers - 1:
                x = F.dropout(x, self.dropout, self.training)
        ends = tuple(concat(*[e[i].unsqueeze(0) for e in last], axis=0) for i in range(len(states)))
        return x, ends if self.mode == "LSTM" else ends[0]

    def extra_repr(self) -> str:
        s = f"{self.input_size}, {self.hidden_size}"
        s += f", proj_size={self.proj_size}" if self.proj_size else ""
        s += f", num_layers={self.num_layers}" if self.num_layers != 1 else ""
        s += f", bias={self.bias}" if self.bias is not True else ""
        s += f", batch_first={self.batch_first}" if self.batch_first is not False else ""
        s += f", dropout={self.dropout}" if self.dropout != 0 else ""
        return s + (f", bidirectional={self.bidirectional}" if self.bidirectional is not False else "")


class RNN(_Recurrent):
    """Elman network: h' = tanh(x W_ih.T + b_ih + h W_hh.T + b_hh) for each step.

    A call with (input, h_0) returns (outputs, h_n). h_0 defaults to zeros.

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of the state.
        num_layers: number of layers; the input of each layer is the output of the previous layer.
        nonlinearity: "tanh" or "relu".
        bias: learn the biases b_ih and b_hh.
        batch_first: input and outputs are (N, L, features) instead of (L, N, features).
        dropout: dropout probability of the outputs of all layers except the last.
        bidirectional: also process the sequence in reverse and concatenate the outputs.
        device: device of the parameters; default: the CPU.
        dtype: dtype of the parameters; default: the default dtype.

    Shape:
        input: (L, N, input_size) or (L, input_size), or a PackedSequence.
        h_0: (layers * directions, N, hidden_size).
        outputs: (L, N, directions * hidden_size).
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh",
                 bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, device=None,
                 dtype=None):
        super().__init__()
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.",
                                expected="'tanh' or 'relu'", got=repr(nonlinearity),
                                fix="leave it out: 'tanh' is the default")
        self.nonlinearity = nonlinearity
        self.mode = f"RNN_{nonlinearity.upper()}"
        self._build(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0,
                    device, dtype)


class LSTM(_Recurrent):
    """Long short-term memory (Hochreiter and Schmidhuber 1997).

    A call with (input, (h_0, c_0)) returns (outputs, (h_n, c_n)). The states default to zeros. The
    weights contain the input, forget, cell, and output gates, in this order.

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of the state.
        num_layers: number of layers; the input of each layer is the output of the previous layer.
        bias: learn the biases b_ih and b_hh.
        batch_first: input and outputs are (N, L, features) instead of (L, N, features).
        dropout: dropout probability of the outputs of all layers except the last.
        bidirectional: also process the sequence in reverse and concatenate the outputs.
        proj_size: project the outputs to this size; 0: no projection.
        device: device of the parameters; default: the CPU.
        dtype: dtype of the parameters; default: the default dtype.

    Shape:
        input: (L, N, input_size) or (L, input_size), or a PackedSequence.
        h_0: (layers * directions, N, proj_size or hidden_size).
        c_0: (layers * directions, N, hidden_size).
    """

    mode = "LSTM"

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device=None,
                 dtype=None):
        super().__init__()
        self._build(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                    proj_size, device, dtype)


class GRU(_Recurrent):
    """Gated recurrent unit (Cho et al. 2014).

    A call with (input, h_0) returns (outputs, h_n). h_0 defaults to zeros. The weights contain the
    reset, update, and new gates, in this order.

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of the state.
        num_layers: number of layers; the input of each layer is the output of the previous layer.
        bias: learn the biases b_ih and b_hh.
        batch_first: input and outputs are (N, L, features) instead of (L, N, features).
        dropout: dropout probability of the outputs of all layers except the last.
        bidirectional: also process the sequence in reverse and concatenate the outputs.
        device: device of the parameters; default: the CPU.
        dtype: dtype of the parameters; default: the default dtype.

    Shape:
        input: (L, N, input_size) or (L, input_size), or a PackedSequence.
        h_0: (layers * directions, N, hidden_size).
        outputs: (L, N, directions * hidden_size).
    """

    mode = "GRU"

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, device=None, dtype=None):
        super().__init__()
        self._build(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, 0,
                    device, dtype)


# ---- cells
class _Cell(Module):
    """Base class of the cells."""

    mode = "LSTM"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        gates = rnn.GATES[self.mode] * hidden_size
        for name, shape in (("weight_ih", (gates, input_size)), ("weight_hh", (gates, hidden_size)),
                            ("bias_ih", (gates,)), ("bias_hh", (gates,))):
            wanted = bias or name.startswith("weight")
            self.register_parameter(name, new_parameter(*shape, device=device, dtype=dtype) if wanted
                                    else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters uniformly from [-b, b], where b = 1 / sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def _run(self, x: Tensor, state):
        if x.ndim not in (1, 2) or x.shape[-1] != self.input_size:
            raise ShapeError(f"{type(self).__name__}: input has inconsistent input_size: got "
                             f"{x.shape[-1] if x.ndim else 0}, expected "
                             f"{self.input_size}", expected=f"(N, {self.input_size}) or ({self.input_size},)",
                             got=str(tuple(x.shape)), fix="a cell made with this input_size")
        single = x.ndim == 1
        x = x.unsqueeze(0) if single else x
        if state is None:
            with use_device_of(x):
                zero = constant(shape=(x.shape[0], self.hidden_size), value=0.0, dtype=x.dtype)
            state = (zero, zero)
        else:
            state = state if isinstance(state, (tuple, list)) else (state,)
            state = tuple(s.unsqueeze(0) if single else s for s in state)
        new = rnn.step(self.mode, F.linear(x, self.weight_ih, self.bias_ih), state, self.weight_hh,
                       self.bias_hh)
        return tuple(s.squeeze(0) for s in new) if single else new

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias is True else f", bias={self.bias}")


class RNNCell(_Cell):
    """One step of RNN.

    A call with (input, h) returns the next state. h defaults to zeros.

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of the state.
        bias: learn the biases b_ih and b_hh.
        nonlinearity: "tanh" or "relu".
        device: device of the parameters; default: the CPU.
        dtype: dtype of the parameters; default: the default dtype.

    Shape:
        input: (N, input_size) or (input_size,). h: (N, hidden_size) or (hidden_size,).
    """

    mode = "RNN_TANH"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh",
                 device=None, dtype=None):
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentError(f"Unknown nonlinearity: {nonlinearity}", expected="'tanh' or 'relu'",
                                got=repr(nonlinearity), fix="leave it out: 'tanh' is the default")
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.nonlinearity, self.mode = nonlinearity, f"RNN_{nonlinearity.upper()}"

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._run(input, hx)[0]

    def extra_repr(self) -> str:
        return super().extra_repr() + ("" if self.nonlinearity == "tanh"
                                       else f", nonlinearity={self.nonlinearity}")


class LSTMCell(_Cell):
    """One step of LSTM.

    A call with (input, (h, c)) returns the next (h, c). The states default to zeros.

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of the state.
        bias: learn the biases b_ih and b_hh.
        device: device of the parameters; default: the CPU.
        dtype: dtype of the parameters; default: the default dtype.

    Shape:
        input: (N, input_size) or (input_size,). h, c: (N, hidden_size) or (hidden_size,).
    """

    mode = "LSTM"

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None):
        return self._run(input, hx)


class GRUCell(_Cell):
    """One step of GRU.

    A call with (input, h) returns the next state. h defaults to zeros.

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of the state.
        bias: learn the biases b_ih and b_hh.
        device: device of the parameters; default: the CPU.
        dtype: dtype of the parameters; default: the default dtype.

    Shape:
        input: (N, input_size) or (input_size,). h: (N, hidden_size) or (hidden_size,).
    """

    mode = "GRU"

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._run(input, hx)[0]
