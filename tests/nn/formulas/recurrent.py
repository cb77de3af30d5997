"""Recurrent networks: single steps, and whole sequences."""
import numpy as np

from .activations import sigmoid


def step(mode, x, state, w_ih, w_hh, b_ih, b_hh, w_hr=None):
    """Return the next state, (h,) or (h, c), from x (N, I) and h (N, H)."""
    h = state[0]
    a, b = x @ w_ih.T + b_ih, h @ w_hh.T + b_hh
    if mode == "LSTM":
        i, f, g, o = np.split(a + b, 4, -1)
        c = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        return (h if w_hr is None else h @ w_hr.T), c
    if mode == "GRU":
        (ar, az, an), (br, bz, bn) = np.split(a, 3, -1), np.split(b, 3, -1)
        r, z = sigmoid(ar + br), sigmoid(az + bz)
        return ((1 - z) * np.tanh(an + r * bn) + z * h,)
    return (np.tanh(a + b) if mode == "tanh" else np.maximum(a + b, 0),)


def weights_of(parameters, end):
    """Return (w_ih, w_hh, b_ih, b_hh, w_hr) with this suffix; missing biases are 0."""
    w_ih, w_hh = parameters[f"weight_ih{end}"], parameters[f"weight_hh{end}"]
    none = np.zeros(len(w_ih))
    return (w_ih, w_hh, parameters.get(f"bias_ih{end}", none), parameters.get(f"bias_hh{end}", none),
            parameters.get(f"weight_hr{end}"))


def run_layers(mode, x, states, parameters, layers, ways):
    """Return (outputs (L, N, ...), last states) from x (L, N, I) and states (layers * directions, N, ...)."""
    ends = []
    for k in range(layers):
        outputs = []
        for way in range(ways):
            state = tuple(s[k * ways + way] for s in states)
            steps = []
            for row in x[::-1] if way else x:
                state = step(mode, row, state, *weights_of(parameters, f"_l{k}" + "_reverse" * way))
                steps.append(state[0])
            outputs.append(np.stack(steps[::-1] if way else steps))
            ends.append(state)
        x = np.concatenate(outputs, -1)
    return x, tuple(np.stack(s) for s in zip(*ends))
