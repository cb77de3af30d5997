"""Call public functions, Tensor methods, and modules with random arguments (`make fuzz`).

    make fuzz ARGS="--seconds 120 --seed 1"        # or --calls 5000; --show 17 prints and runs only call 17

Calls run in child processes. A finding is a crash, a call that does not end, or an error of the interpreter
(SystemError, RecursionError). Each is printed as one line that reproduces it. Exceptions that are neither of
flowedu.errors nor a TypeError are counted as poor messages; with --strict, they are findings. Call number i
of a seed is always the same, and time only limits the number of calls. The exit status is 1 if there are
findings.
"""
from __future__ import annotations

import argparse
import inspect
import os
import random
import resource
import select
import subprocess
import sys
import time

ROOM = 1 << 30            # bytes a child may allocate beyond its memory after the import
GRAVE = ("did not end", "the process died", "SystemError", "RecursionError")
LIMIT = 20.0              # seconds per call, enough for a busy machine

TENSORS = ["flow.ones(2, 3)", "flow.ones(3)", "flow.tensor(2.0)", "flow.arange(6)", "flow.tensor([0, 1])",
           "flow.ones(0)", "flow.ones(2, 0, 3)", "flow.tensor([True, False])", "flow.ones(1, 2, 4, 4)",
           "flow.ones(1, 2, 3, 3, 3)", "flow.randn(4, 4)[:, ::2]", "flow.ones(3, 2).t()",
           "flow.ones(2, 3).half()",
           "flow.ones(2, 3).bfloat16()", "flow.ones(2, 3, dtype=flow.float64)",
           "flow.ones(2, 3).to(flow.int8)",
           "flow.ones(2, 3).to(flow.uint8)", "flow.tensor([float('nan'), float('inf'), -1.0])",
           "flow.ones(1).expand(3, 4)", "flow.ones(2, 3, requires_grad=True)", "flow.tensor([2**62, -2**62])",
           "flow.tensor([-1, 5])", "flow.ones(2, 3, 4)"]
INTS = ["0", "1", "2", "3", "-1", "-2", "7", "2**31", "2**32", "2**62", "2**63 - 1", "2**63", "-2**63",
        "-2**31", "10**30"]
NUMBERS = ["0.0", "0.5", "-1.5", "float('nan')", "float('inf')", "-float('inf')", "1e300", "1e-300", "True"]
LISTS = ["()", "[]", "(1,)", "(0, 1)", "(2, 3)", "(2, -1)", "[1, 1]", "(2**62, 2)", "(0, 2**62)", "(1, 1, 1)",
         "(0.5, 2)", "[None]", "['x']", "(1,) * 30", "[[1, 2], [3]]", "(-1, -1)"]
OTHERS = ["None", "'x'", "''", "'mean'", "'sum'", "object()", "np.ones(2)", "np.float32(2)", "flow.float32",
          "flow.int8", "{}", "[flow.ones(2, 3)] * 2", "(flow.ones(2), flow.ones(3))", "slice(None)",
          "b'x'", "1j", "lambda x: x", "range(3)", "flow.char", "flow.record", "flow.tensor_buffer"]
SIZED = ("dim", "axis", "axes", "n", "k", "size", "shape", "num", "kernel_size", "stride", "padding",
         "dilation", "groups", "start", "end", "steps", "offset", "bins", "repeats", "sections", "features",
         "channels", "depth", "shift", "length")
NUMERIC = ("p", "eps", "alpha", "beta", "value", "low", "high", "mean", "std", "momentum", "slope", "min",
           "max", "weight_decay")
# These functions end the process, communicate, write files, change later calls, or create many layers.
LEFT_OUT = set("""Transformer TransformerDecoder TransformerEncoder clear_default_session empty_cache
    enable_eager_execution from_dlpack global_function load load_graph manual_seed register_hook save
    save_graph seed set_cache set_default_dtype set_default_tensor_type set_deterministic_debug_mode
    set_grad_enabled set_num_threads set_printoptions set_rng_state share_memory_ sync_default_session
    to_dlpack user_op_builder user_op_module_builder watch watch_diff""".split())


def targets(flow) -> list[tuple[str, object]]:
    """Return [(source text, function)], such as "flow.nn.functional.pad", "{x}.add_", "flow.nn.Linear"."""
    found = {}
    for prefix, space in (("flow", flow), ("flow.nn.functional", flow.nn.functional),
                          ("flow.linalg", flow.linalg), ("flow.nn.init", flow.nn.init)):
        for name in dir(space):
            f = getattr(space, name, None)
            home = getattr(getattr(f, "function", f), "__module__", None) or ""
            if not name.startswith("_") and name not in LEFT_OUT and not inspect.isclass(f) and callable(
                    f) and \
                    home.startswith(("flowedu.tensor", "flowedu.nn")):
                found[f"{prefix}.{name}"] = f
    for name in dir(flow.Tensor):
        f = inspect.getattr_static(flow.Tensor, name)
        if not name.startswith("_") and name not in LEFT_OUT and callable(f) and not isinstance(
                f, (staticmethod, classmethod)):
            found[f"{{x}}.{name}"] = f
    for name in dir(flow.nn):
        c = getattr(flow.nn, name)
        if (inspect.isclass(c) and issubclass(c, flow.nn.Module) and name not in LEFT_OUT
            | {"Module", "Graph"}):
            found[f"flow.nn.{name}"] = c
    return sorted(found.items())


def argument(rng: random.Random, name: str) -> str:
    """Return a value for a parameter of this name: often a plausible one, sometimes an arbitrary one."""
    sized = (name in SIZED or any(name.endswith((f"_{w}", f"{w}_size")) or name.startswith(f"{w}_")
                                  for w in SIZED))
    if sized:
        likely = INTS[:7] + LISTS[:6]
    else:
        likely = NUMBERS + INTS[:5] if name in NUMERIC else TENSORS
    if rng.random() < 0.65:
        return rng.choice(likely)
    return rng.choice(rng.choice([INTS, INTS, NUMBERS, LISTS, TENSORS, OTHERS]))


def call_text(table, seed: int, number: int) -> str:
    """Return the source text of call `number`."""
    rng = random.Random(seed * 1_000_003 + number)
    path, f = table[number % len(table)] if number < len(table) else rng.choice(table)
    method = path.startswith("{x}")
    try:
        parameters = list(inspect.signature(f).parameters.values())[1 if method else 0:]
    except (ValueError, TypeError):
        parameters = []
    args = []
    named = False
    for p in parameters:
        if (p.kind is p.VAR_KEYWORD or p.name in ("device", "placement", "sbp", "out", "generator",
                                                  "pin_memory")):
            named |= p.kind is not p.KEYWORD_ONLY
            continue
        if p.kind is p.VAR_POSITIONAL:
            if not named:
                args += [argument(rng, "size" if method else "input") for _ in range(rng.randrange(4))]
        elif p.default is p.empty and p.kind is not p.KEYWORD_ONLY and not named:
            args.append(argument(rng, p.name))
        elif rng.random() < 0.35:
            args.append(f"{p.name}={argument(rng, p.name)}")
            named = True
        else:
            named |= p.kind is not p.KEYWORD_ONLY
    text = f"{path.replace('{x}', rng.choice(TENSORS))}({', '.join(args)})"
    if inspect.isclass(f) and rng.random() < 0.7:
        text += f"({rng.choice(TENSORS)})"
    return text


# ---- the child process: runs calls, and prints each one before it runs
def verdict(text: str, space: dict, own: type) -> str:
    """Run a call and return a description of its fault, or ""."""
    try:
        result = eval(text, space)
        for t in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(t, space["flow"].Tensor) and t.numel() < 1 << 16:
                repr(t)
    except (own, TypeError, NotImplementedError):
        return ""
    except Exception as e:
        return f"{type(e).__name__}: {str(e)[:100]}"
    return ""


def child(seed: int, first: int, last: int) -> None:
    import warnings

    import numpy as np

    import flowedu as flow
    from flowedu.errors import FlowError
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    table = targets(flow)
    flow.set_num_threads(1)
    if "libasan" not in os.environ.get("LD_PRELOAD", ""):
        with open("/proc/self/statm", encoding="utf-8") as f:
            used = int(f.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
    for number in range(first, last):
        text = call_text(table, seed, number)
        sys.stdout.write(f"> {number} {text}\n")
        sys.stdout.flush()
        flow.manual_seed(0)
        flow.set_grad_enabled(True)
        wrong = verdict(text, {"flow": flow, "np": np}, FlowError)
        if wrong:
            sys.stdout.write(f"! {wrong}\n".replace("\n", " ").rstrip() + "\n")


# ---- the parent process
def watch(seed: int, calls: int, seconds: float, bar) -> tuple[int, list[tuple[str, str]]]:
    """Run calls in child processes and return (number of calls, [(call, fault)])."""
    found, number, end = [], 0, time.monotonic() + seconds
    while number < calls and time.monotonic() < end:
        p = subprocess.Popen([sys.executable, __file__, "--child", str(number), "--seed", str(seed),
                              "--calls", str(calls)],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             env={**os.environ, "PYTHONUNBUFFERED": "1"})
        text, buffer, hung = "", b"", False
        os.set_blocking(p.stdout.fileno(), False)
        last = time.monotonic()
        while True:
            ready = select.select([p.stdout], [], [], 0.5)[0]
            data = p.stdout.read() if ready else None
            if data == b"":
                break
            for line in ((buffer + data).split(b"\n")[:-1] if data else ()):
                last, line = time.monotonic(), line.decode(errors="replace")
                if line.startswith("> "):
                    number, text = int(line.split(" ", 2)[1]) + 1, line.split(" ", 2)[2]
                    bar.update(number - bar.n)
                elif line.startswith("! "):
                    found.append((text, line[2:]))
            buffer = (buffer + data).rpartition(b"\n")[2] if data else buffer
            hung = time.monotonic() - last > LIMIT + (40 if not text else 0)
            if hung or time.monotonic() > end:
                p.kill()
                break
        p.wait()
        p.stdout.close()
        if hung:
            found.append((text, f"did not end within {LIMIT:.0f} s"))
        elif p.returncode != 0 and time.monotonic() < end:
            found.append((text, f"the process died: exit status {p.returncode}"))
            if not text:
                break
    return number, found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--show", type=int)
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        child(options.seed, options.child, options.calls)
        return 0
    if options.show is not None:
        import flowedu as flow
        print(call_text(targets(flow), options.seed, options.show), flush=True)
        child(options.seed, options.show, options.show + 1)
        return 0
    from tqdm import tqdm
    with tqdm(total=options.calls if options.calls < 1_000_000 else None, unit=" calls", disable=None) as bar:
        made, found = watch(options.seed, options.calls, options.seconds, bar)
    poor = [] if options.strict else [f for f in found if not f[1].startswith(GRAVE)]
    found = [f for f in found if f not in poor]
    seen = set()
    for text, wrong in found:
        kind = (text.split("(")[0], wrong.split(":")[0])
        if kind not in seen:
            seen.add(kind)
            print(f"{text}\n    {wrong}")
    print(f"{made} calls, seed {options.seed}: {len(found)} findings in {len({k[0] for k in seen})} "
          f"functions, {len(poor)} poor messages")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
