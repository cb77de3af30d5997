"""Input arrays for the cases in cases.py."""
import numpy as np


def make_input_arrays() -> dict[str, np.ndarray]:
    """Return the inputs that cases may use. Floats are float64, all distinct, and far from points where a
    derivative jumps.
    """
    rng = np.random.default_rng(7)

    def f(*shape):
        return np.round(rng.standard_normal(shape) * 1.3, 3) + 0.0004

    a = {"a": f(3, 4), "b": f(3, 4), "c": f(4), "v": f(5), "v3": f(3), "B": f(2, 3, 4), "C": f(2, 4, 5),
         "D": f(4, 1, 3, 4),
         "E": f(2, 3, 5), "L2": f(2, 5), "B4": f(1, 2, 3, 4).transpose(1, 0, 2, 3), "sq": f(4, 4),
         "row": f(3, 1),
         "one": f(1, 3, 1), "x3": f(4, 3), "y3": f(4, 3), "s": np.array(1.3), "p": np.abs(f(3, 4)) + 0.4,
         "u": np.tanh(f(3, 4)) * 0.8, "dd": f(4, 4) + 6 * np.eye(4)}
    a["a0"] = a["a"].copy()
    a["a0"][1, 2] = a["a0"][2, 0] = a["a0"][2, 3] = 0
    a["t0"] = np.array([[1.0, 3, 3], [2, 2, 0]])
    a["n1"] = np.array([[1.0, np.nan, -2, np.inf], [0.5, 3, -np.inf, 2], [-0.0, 1, 1, 7]])
    a["n2"] = np.array([[1.0, -np.inf], [2, -np.inf]])
    a["n3"] = np.array([-1.5, 0.0, 2.9, 100.0])
    a["e"], a["e4"] = np.zeros((3, 0)), np.zeros((0, 4))
    a["i"], a["k"] = rng.integers(-6, 7, (3, 4)), rng.integers(0, 4, (3, 4))
    a["k3"], a["i1"] = rng.integers(0, 3, (3, 4)), rng.integers(1, 5, (3, 4)) * rng.choice([-1, 1], (3, 4))
    a["k1"], a["si"], a["v8"] = rng.integers(1, 5, (3, 4)), np.array(4), np.array([1, 1, 2, 2, 2, 3, 1])
    a["q"], a["q2"], a["q2B"] = rng.random((3, 4)) > 0.5, rng.random((3, 4)) > 0.5, rng.random((2, 3)) > 0.4
    a["q"][0, 0] = a["q"][1, 0] = a["q"][0, 3] = True
    a["i8"], a["u8"] = rng.integers(-90, 90, (3, 4)).astype(np.int8), rng.integers(0, 9,
                                                                                   (3, 4)).astype(np.uint8)
    a["i32"], a["h"] = rng.integers(-9, 9, (3, 4)).astype(np.int32), f(3, 4).astype(np.float16)
    a["a32"], a["s32"] = f(3, 4).astype(np.float32), np.array(0.3, np.float32)
    return a


INPUTS = make_input_arrays()


def split(case: str) -> tuple[str, str]:
    text, _, flags = case.partition("#")
    return text.strip(), flags.strip()
