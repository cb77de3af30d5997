"""Registered ops without a CUDA kernel, with reasons. The list may only shrink, except for ops based on
LAPACK or pocketfft and ops that CPU passes insert (OF_THE_CPU in cuda/plan.py).
"""

NO_KERNEL: dict[str, str] = {
    "inverted_residual": "graphs of a GPU have its three convolutions",
    **dict.fromkeys(
        "cholesky leading_minor eigh svd qr lu pseudo_inverse slogdet matrix_exp rfft irfft".split(),
        "LAPACK and pocketfft work in main memory: flow.linalg and flow.fft send numbers there and back "
        "(tests/cuda/test_engine_functions.py)"),
    **dict.fromkeys(("attention", "attention_grad"),
                    "a GPU computes the scores (nn/functional/attention.py)"),
    **dict.fromkeys(
        "lstm lstm_grad gru gru_grad rnn rnn_grad".split(),
        "nn.LSTM, GRU and RNN go step by step on a GPU (nn/functional/rnn.py), with kernels that are there")}
