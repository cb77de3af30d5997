"""A generated class: submissions of every kind, drawn from a seed."""
import random
from pathlib import Path

from flowedu_course.handout import stub
from flowedu_course.teach import stubs, wrong

BROKEN = ["def f(:\n", "raise ValueError('at the top')\n", "import nowhere\n", "\x00", "x = 1\n"]
LOOPS = "def {name}({given}):\n    while True:\n        pass\n"


def write(folder: Path, holes, students: int, seed: int = 0) -> dict[str, dict[str, str]]:
    """Write folders of submissions and return {student: {hole: kind}}; the kinds are right, stub, wrong,
    broken, loop, and missing.
    """
    rng, told = random.Random(seed), {}
    right = {h.id: stubs.answer_text(h) for h in holes}
    for i in range(students):
        name = f"student-{i:03d}"
        work = folder / name
        work.mkdir(parents=True)
        fair = rng.random()                        # the student's skill
        told[name] = {}
        for h in holes:
            kind = "right" if rng.random() < fair else rng.choices(
                ["wrong", "stub", "broken", "missing", "loop"], [8, 3, 2, 2, 1])[0]
            told[name][h.id] = kind
            text = {"right": right[h.id], "stub": stub(h), "broken": rng.choice(BROKEN),
                    "wrong": rng.choice(wrong.answers(h)).text, "missing": "",
                    "loop": LOOPS.format(name=h.functions[0], given="*a, **k")}[kind]
            if kind != "missing":
                (work / h.file).write_text(text, encoding="utf-8")
    return told
