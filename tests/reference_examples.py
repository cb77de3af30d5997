"""Runs the examples of the reference, book/reference/examples/*.txt."""
import doctest
import re
from pathlib import Path

import numpy as np

import flowedu as flow
from flowedu.learn.lesson import fresh
from flowedu.oneflow04.job import env


def wrong(text: str, name: str) -> str:
    """What differs when the lines of an example are typed; "" where nothing does."""
    said: list[str] = []
    space = {"flow": flow, "np": np, "nn": flow.nn, "F": flow.nn.functional}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
    flow.clear_default_session()
    flow.distributed.set_virtual_devices(1)
    flow.manual_seed(0)
    runner.run(doctest.DocTestParser().get_doctest(text, space, name, name, 0), out=said.append)
    return "".join(said)


def differences(file: Path, monkeypatch) -> str:
    """Of all examples of a file, which leave nothing behind: to be called in a folder of its own."""
    monkeypatch.setattr(env, "_env", env.Environment())
    with fresh():
        return "\n".join(filter(None, (wrong(text, name) for name, text in re.findall(
            r"^# ([^\n]+)\n(.*?)(?=^# |\Z)", file.read_text(encoding="utf-8"), re.M | re.S))))
