"""Run the examples of the reference, book/reference/examples/*.txt."""
import doctest
import re
from pathlib import Path

import numpy as np

import flowedu as flow
from flowedu.oneflow04.job import env
from flowedu_course.lesson import fresh


def wrong(text: str, name: str) -> str:
    """Run the lines of an example and return the differences from its output, or ""."""
    said: list[str] = []
    space = {"flow": flow, "np": np, "nn": flow.nn, "F": flow.nn.functional}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
    flow.clear_default_session()
    flow.distributed.set_virtual_devices(1)
    flow.manual_seed(0)
    runner.run(doctest.DocTestParser().get_doctest(text, space, name, name, 0), out=said.append)
    return "".join(said)


def differences(file: Path, monkeypatch) -> str:
    """Return the differences of all examples of a file. Call it in an empty folder; the state is restored."""
    monkeypatch.setattr(env, "_env", env.Environment())
    with fresh():
        return "\n".join(filter(None, (wrong(text, name) for name, text in re.findall(
            r"^# ([^\n]+)\n(.*?)(?=^# |\Z)", file.read_text(encoding="utf-8"), re.M | re.S))))
