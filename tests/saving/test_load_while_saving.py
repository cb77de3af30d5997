"""Loading while another thread or process saves to the same path returns one state or the other, never a
mixture.
"""
import builtins
import copy
import gc
import io
import os
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import flowedu as flow
from common import fresh_session  # noqa: F401
from flowedu.saving import partial
from flowedu.saving.folder import CheckpointFileError, read, write

pytestmark = pytest.mark.skipif(os.open not in os.supports_dir_fd,
                                reason="files are opened by their paths here")


class Between:
    """Context manager that calls `act` just before the `when`-th file is opened, counted from 0."""

    def __init__(self, monkeypatch, act, when):
        self.patch = monkeypatch
        self.act = act
        self.when = when
        self.opened = 0
        self.busy = True

    def __enter__(self):
        for module, name in ((builtins, "open"), (io, "open"), (os, "open")):
            self.patch.setattr(module, name, self.noticed(getattr(module, name)))
        self.busy = False
        return self

    def noticed(self, real):
        def opened(*args, **kwargs):
            if not self.busy:
                self.busy = True
                if self.opened == self.when:
                    self.act()
                self.opened += 1
                self.busy = False
            return real(*args, **kwargs)
        return opened

    def __exit__(self, *error):
        self.busy = True
        self.patch.undo()


def state(i):
    return {"w": flow.full((50,), float(i)), "b": [flow.full((5,), float(i)), flow.full((3,), float(i))],
            "step": i}


def collect_elements(loaded):
    """Return the set of all elements in a loaded value."""
    if isinstance(loaded, dict):
        return set().union(*map(collect_elements, loaded.values()))
    if isinstance(loaded, (list, tuple)):
        return set().union(*map(collect_elements, loaded))
    return set(map(float, np.asarray(loaded.numpy() if hasattr(loaded, "numpy") else loaded).reshape(-1)))


def save_graph(path, i):
    class Net(flow.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = (flow.nn.Parameter(flow.full((2,), float(i))) for _ in range(2))

        def forward(self, x):
            return x * 0.0 + self.a, x * 0.0 + self.b

    class Predict(flow.nn.Graph):
        def __init__(self):
            super().__init__()
            self.net = Net()

        def build(self, x):
            return self.net(x)

    graph = Predict()
    graph(flow.zeros(2))
    flow.save(graph, str(path))


def checkpoint(path, i):
    write(path, {"a": np.full(2, i, np.float32), "b": np.full(2, i, np.float32)}, replace=True)


def start_from(path):
    """Return the values of variables that a session starts from a snapshot."""
    flow.clear_default_session()
    config = flow.function_config()
    config.default_initialize_with_snapshot_path(str(path))

    @flow.global_function(function_config=config)
    def job(x: flow.typing.Numpy.Placeholder((2,))) -> flow.typing.Numpy:
        a, b = (flow.get_variable(n, (2,), initializer=flow.zeros_initializer()) for n in "ab")
        return flow.concat([x * 0 + a, x * 0 + b], axis=0)

    return job(np.zeros(2, np.float32))


KINDS = {"state": (lambda path, i: flow.save(state(i), path), flow.load),
         "graph": (save_graph, lambda path: flow.load_graph(path)(flow.zeros(2))),
         "checkpoint": (checkpoint, flow.load),       # read variable by variable after load has returned
         "snapshot": (checkpoint, start_from)}


@pytest.mark.parametrize("locks", [True, False], ids=["locks", "no_locks"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_save_between_any_two_files_of_a_load(tmp_path, monkeypatch, kind, locks):
    if not locks:                                     # as on file systems without locks
        import fcntl

        def refuse(*args):
            raise OSError("no locks available")
        monkeypatch.setattr(fcntl, "flock", refuse)
    save, load = KINDS[kind]
    path = tmp_path / "c"
    save(path, 1)
    for when in range(100):
        with pytest.MonkeyPatch.context() as patch, Between(patch, lambda i=when + 2: save(path, i),
                                                            when) as between:
            try:
                got = collect_elements(load(path))
            except CheckpointFileError as error:      # without locks, the writer cannot know about the reader
                assert not locks and kind in ("checkpoint", "snapshot") and "was removed since" in str(error)
                continue
        assert got in ({float(when + 1)}, {float(when + 2)}), f"a save before file {when} was opened: {got}"
        if between.opened <= when:
            break
    assert 3 < when < 99, "every file that is opened had a save before it"
    assert os.listdir(tmp_path) == ["c"]


def test_a_process_loads_while_another_saves(tmp_path):
    """Test two processes that do not coordinate reads and writes."""
    path = tmp_path / "c"
    flow.save(state(0), path)
    script = textwrap.dedent("""
        import sys
        import flowedu as flow
        for i in range(1, 151):
            flow.save({"w": flow.full((50,), float(i)),
                       "b": [flow.full((5,), float(i)), flow.full((3,), float(i))], "step": i}, sys.argv[1])
        """)
    writer = subprocess.Popen([sys.executable, "-c", script, str(path)], stderr=subprocess.PIPE,
                              encoding="utf-8")
    try:
        last = 0.0
        while writer.poll() is None:
            got = collect_elements(flow.load(path))
            assert len(got) == 1, got
            found, = got
            assert found >= last, "what is loaded gets newer"
            last = found
    finally:
        writer.kill()
        errors = writer.communicate()[1]
    assert writer.returncode == 0, errors
    assert collect_elements(flow.load(path)) == {150.0}
    flow.save(state(151), path)
    assert os.listdir(tmp_path) == ["c"]


def test_lazy_variables_belong_to_the_loaded_checkpoint(tmp_path):
    """Variables are read on access, which may be long after load."""
    checkpoint(tmp_path / "c", 1)
    first = flow.load(tmp_path / "c")
    copies = [copy.copy(first), copy.deepcopy(first)]
    for i in (2, 3):
        checkpoint(tmp_path / "c", i)
    for variables in (first, *copies):
        assert collect_elements(variables) == {1.0}
    assert collect_elements(flow.load(tmp_path / "c")) == {3.0}
    assert len(os.listdir(tmp_path)) == 2, "what somebody still reads from is kept under a hidden name"
    del variables, copies
    gc.collect()
    assert collect_elements(first) == {1.0}
    del first
    gc.collect()
    assert os.listdir(tmp_path) == ["c"], "the last who reads from it removes it"


def test_a_removed_checkpoint_is_reported(tmp_path):
    checkpoint(tmp_path / "c", 1)
    got = read(tmp_path / "c")
    os.rename(tmp_path / "c" / "a" / "out", tmp_path / "gone")
    with pytest.raises(CheckpointFileError, match="was removed"):
        got["a"].numpy()
    again = pickle.loads(pickle.dumps(got["b"]))
    assert collect_elements(again) == {1.0}


def test_few_descriptors_stay_open(tmp_path):
    """One file descriptor for all variables of a checkpoint, and none for a state that was loaded
    completely.
    """
    gc.collect()
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else pytest.skip("no /proc")
    write(tmp_path / "c", {f"v{i}": np.zeros(2) for i in range(50)})
    flow.save(state(1), tmp_path / "s")
    kept = [flow.load(tmp_path / "s") for _ in range(5)], read(tmp_path / "c")
    assert len(kept[1]) == 50 and len(os.listdir("/proc/self/fd")) == before + 1
    for damaged in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(CheckpointFileError):
            flow.load(damaged)
    kept = None  # noqa: F841
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_folder_removed_before_it_is_locked_is_created_again(tmp_path, monkeypatch):
    made, cleaned = os.mkdir, []

    def mkdir(path, *args, **kwargs):
        made(path, *args, **kwargs)
        if ".partial-" in str(path) and not cleaned:
            cleaned.append(path)
            partial.clean(tmp_path)                   # as by another process that saves to the same folder

    monkeypatch.setattr(os, "mkdir", mkdir)
    flow.save(state(1), tmp_path / "c")
    assert cleaned and collect_elements(flow.load(tmp_path / "c")) == {1.0} and os.listdir(tmp_path) == ["c"]


def test_a_folder_that_is_renamed_before_it_is_locked_is_kept(tmp_path, monkeypatch):
    """The lock would be on another directory, so nothing is removed."""
    if partial.fcntl is None:
        return
    old, new = tmp_path / ".c.partial-0123456789ab", tmp_path / "c"
    for folder in (old, new):
        folder.mkdir()
        (folder / "name").write_text(folder.name, encoding="utf-8")
    lock = partial.lock

    def exchange_first(fd, shared=False):
        monkeypatch.setattr(partial, "lock", lock)
        partial._exchange(old, new)
        return lock(fd, shared)

    monkeypatch.setattr(partial, "lock", exchange_first)
    partial.clean(tmp_path)
    assert (old / "name").read_text(encoding="utf-8") == new.name and (new / "name").read_text(
        encoding="utf-8") == old.name
