"""Chapter 6: in which order the stages of a pipeline work. A clock that is only a number runs them: forward takes 1 of it,
backward 2."""
from __future__ import annotations

from flowedu.learn.laws import Law, short

TIME = {False: 1, True: 2}


def _pipelines(rng, size):
    """(stages, micro-batches, whether there is a backward pass)"""
    return rng.randint(1, 1 + size), rng.randint(1, 2 * size), rng.random() < 0.9


def _smaller_pipelines(case):
    s, m, back = case
    yield from ((a, b, back) for a, b in ((s - 1, m), (s, m - 1)) if a >= 1 and b >= 1)


def _passes(case):
    _, m, back = case
    return sorted((i, b) for i in range(m) for b in ((False, True) if back else (False,)))


def _text(order):
    return " ".join(f"{'FB'[back]}{m}" for m, back in order) or "nothing"


def _words(case):
    s, m, back = case
    return f"{s} stage{'s' * (s > 1)}, {m} micro-batch{'es' * (m > 1)}; found: {_text(_passes(case))}"


def _said(case, i, order):
    return [f"  smallest case   {short(_words(case))}", f"  yours           stage {i}: {_text(order)}"]


def _orders(case, yours):
    return [list(yours(i, case[0], _passes(case))) for i in range(case[0])]


def _once_judged(case, yours):
    for i, order in enumerate(_orders(case, yours)):
        if sorted(order) != _passes(case):
            return [*_said(case, i, order), f"  should be       {_text(_passes(case))}, in some order"]
        for n, (m, back) in enumerate(order):
            if back and (m, False) not in order[:n]:
                return [*_said(case, i, order), f"  B{m} comes before F{m}: there are no activations yet"]
    return None


def clocked(orders):
    """(when the last stage is done, the most micro-batches each stage keeps, {stage: the pass it waits for} for ever)."""
    done, at, clock = {}, [0] * len(orders), [0] * len(orders)
    last = len(orders) - 1
    moved = True
    while moved:
        moved = False
        for i, order in enumerate(orders):
            while at[i] < len(order):
                m, back = order[at[i]]
                other = None if (not back and i == 0) or (back and i == last) else (i + 1 if back else i - 1, m, back)
                if other is not None and other not in done:
                    break
                clock[i] = done[i, m, back] = max(clock[i], done.get(other, 0)) + TIME[back]
                at[i] += 1
                moved = True
    kept = []
    for order in orders:
        alive = [0]
        for _, back in order:
            alive.append(alive[-1] + (-1 if back else 1))
        kept.append(max(alive))
    return max(clock), kept, {i: o[at[i]] for i, o in enumerate(orders) if at[i] < len(o)}


def _ends_judged(case, yours):
    orders = _orders(case, yours)
    stuck = clocked(orders)[2]
    if not stuck:
        return None
    lines = _said(case, min(stuck), orders[min(stuck)])[:1]
    for i, p in list(stuck.items())[:3]:
        lines.append(f"  stage {i}: {_text(orders[i])} waits with {_text([p])} for stage {i + 1 if p[1] else i - 1}")
    return [*lines, "  each waits for another, for ever"]


each_once = Law("every pass once, forward before backward", _pipelines, _once_judged, _smaller_pipelines, cases=100,
                told=_words)
ends = Law("no stage waits for ever", _pipelines, _ends_judged, _smaller_pipelines, cases=100, told=_words)


def turns_stars(yours, seed=0):
    """4 stages, 8 micro-batches: when the last is done, and how many micro-batches all stages keep together."""
    time, kept, _ = clocked(_orders((4, 8, True), yours))
    return {"time": time, "kept": sum(kept)}
