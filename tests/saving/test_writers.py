"""Every function that writes files, with a full disk, a file in place of a folder, Ctrl-C, and several
threads that write to one path.
"""
import contextlib
import errno
import functools
import os
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest

import flowedu as flow
from flowedu import nn
from flowedu.errors import FlowError, files
from flowedu.errors.files import write_text

resource = pytest.importorskip("resource")
STATE = {"w": flow.arange(3000, dtype=flow.float32)}
MODEL = nn.Linear(40, 40)
PICTURE = flow.tensor(np.random.default_rng(0).integers(0, 256, (3, 40, 40)), dtype=flow.uint8)


class Linear(nn.Graph):
    def __init__(self):
        super().__init__()
        self.model = MODEL

    def build(self, x):
        return self.model(x)


@functools.cache
def make_called_graph():
    made = Linear()
    made(flow.ones(2, 40))
    return made


def draw_route(path):
    x = flow.ones(4, 4, placement=flow.placement("cpu", [0]), sbp=flow.sbp.split(0))
    flow.boxing.route(x, sbp=flow.sbp.broadcast).draw(path)


def export(path):
    pytest.importorskip("onnx")
    flow.onnx.export(MODEL, path, args=(flow.ones(2, 40),))


def save_weights(path):
    pytest.importorskip("safetensors")
    flow.vision.models.save_weights(MODEL, path)


@functools.cache
def log():
    """Create a temporary folder with a log of numbers; it is deleted with the process."""
    folder = tempfile.TemporaryDirectory()
    with flow.utils.tensorboard.SummaryWriter(folder.name) as writer:
        for step in range(3):
            writer.add_scalar("loss", step, step)
    return folder


def draw_dashboard(path):
    flow.utils.tensorboard.dashboard(log().name, path)


def write_scalars(path):
    with flow.utils.tensorboard.SummaryWriter(path) as writer:
        for step in range(20):
            writer.add_scalar("loss", step, step)


def write_records(path):
    """Write records with `path` as the folder, so that the writer replaces its part files."""
    pytest.importorskip("google.protobuf")
    with flow.data.ofrecord_writer(path) as writer:
        for _ in range(5):
            writer.write({"x": b"x" * 1000})


def save_picture(path):
    pytest.importorskip("PIL")
    flow.vision.utils.save_image(PICTURE.float() / 255, path)


def write_png(path):
    pytest.importorskip("PIL")
    flow.vision.io.write_png(PICTURE, str(path))


def write_jpeg(path):
    pytest.importorskip("PIL")
    flow.vision.io.write_jpeg(PICTURE, str(path))


def save_in_one_file(path):
    from flowedu.mock.insides.torch_top import save
    save(STATE, path)


# name: (suffix of the path, write(path)). test_all_writers_use_the_helper finds a missing writer.
WRITERS = {
    "flow.save": ("", lambda path: flow.save(STATE, path)),
    "flow.checkpoint.save": ("", lambda path: flow.save(MODEL.state_dict(), path)),
    "flow.save of a graph": ("", lambda path: flow.save(make_called_graph(), path)),
    "torch.save": (".pt", save_in_one_file),
    "onnx.export": (".onnx", export),
    "graph.draw": (".svg", lambda path: make_called_graph().draw(path)),
    "graph.timeline": (".json", lambda path: make_called_graph().timeline(flow.ones(2, 40)).save(path)),
    "route.draw": (".svg", draw_route),
    "dashboard": (".html", draw_dashboard),
    "save_weights": (".safetensors", save_weights),
    "ofrecord_writer": ("", write_records),
    "save_image": (".png", save_picture),
    "write_png": (".png", write_png),
    "write_jpeg": (".jpg", write_jpeg),
    "write_text": (".txt", lambda path: write_text(path, "x" * 1000)),
}
writers = pytest.mark.parametrize("name", WRITERS)
FILES = [name for name, (ending, _) in WRITERS.items() if ending]
LIMIT = 100          # bytes per file: fewer than any writer here writes


@contextlib.contextmanager
def full_disk():
    """Limit the file size: a larger write fails with EFBIG, as it fails with ENOSPC on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def check_error(error, *names):
    text = str(error)
    assert any(str(name) in text for name in names), text
    assert ".part" not in text and ".partial" not in text, "a name that the caller never gave"
    if isinstance(error, OSError):
        assert error.errno
    else:
        assert isinstance(error, FlowError) and "[Errno" in text


@writers
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, name):
    ending, write = WRITERS[name]
    path = tmp_path / f"a b'ü{ending}"
    write(path)
    before = contents(tmp_path)
    assert before
    with full_disk(), pytest.raises((OSError, FlowError)) as error:
        write(path)
    check_error(error.value, path, tempfile.gettempdir() if name == "torch.save" else path)
    assert contents(tmp_path) == before and len(list(tmp_path.iterdir())) == 1


@writers
def test_a_full_disk_leaves_no_new_file(tmp_path, name):
    ending, write = WRITERS[name]
    path = tmp_path / f"new{ending}"
    with full_disk(), pytest.raises((OSError, FlowError)):
        write(path)
    assert not contents(tmp_path)


@writers
def test_a_folder_that_is_a_file(tmp_path, name):
    ending, write = WRITERS[name]
    (tmp_path / "file").write_text("mine")
    with pytest.raises((OSError, FlowError)) as error:
        write(tmp_path / "file" / f"x{ending}")
    check_error(error.value, tmp_path / "file")
    assert contents(tmp_path) == {"file": b"mine"}


@pytest.mark.parametrize("name", FILES)
def test_a_path_that_is_a_folder(tmp_path, name):
    ending, write = WRITERS[name]
    path = tmp_path / f"x{ending}"
    (path / "inside").mkdir(parents=True)
    with pytest.raises((OSError, FlowError)) as error:
        write(path)
    assert str(path) in str(error.value)
    assert list(tmp_path.rglob("*")) == [path, path / "inside"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("raised", [KeyboardInterrupt, MemoryError, SystemExit])
def test_an_exception_before_the_end_leaves_the_old_file(tmp_path, monkeypatch, name, raised):
    ending, write = WRITERS[name]
    path = tmp_path / f"x{ending}"
    write(path)
    before = contents(tmp_path)

    def replace(*names):
        raise raised
    monkeypatch.setattr(files.os, "replace", replace)
    with pytest.raises(raised):
        write(path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", FILES)
def test_threads_that_write_one_path_do_not_disturb_each_other(tmp_path, monkeypatch, name):
    """Each thread opens its temporary file before any of them renames it."""
    ending, write = WRITERS[name]
    path, errors, count = tmp_path / f"x{ending}", [], 3
    write(path)
    barrier, original = threading.Barrier(count), os.replace

    def replace(*names):
        barrier.wait(600)
        original(*names)

    def run():
        try:
            write(path)
        except BaseException as error:
            errors.append(error)
            barrier.abort()
    monkeypatch.setattr(files.os, "replace", replace)
    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and [p.name for p in tmp_path.iterdir()] == [path.name] and path.stat().st_size > LIMIT


def test_a_log_on_a_full_disk_names_its_file(tmp_path):
    with full_disk(), pytest.raises(OSError) as error:
        write_scalars(tmp_path / "run")
    check_error(error.value, tmp_path / "run")  # scalars.csv or, where it is written first, the event file


def test_errors_of_the_disk_name_the_path_and_have_an_errno(tmp_path):
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, None):
        path = tmp_path / "x"
        with pytest.raises(OSError) as error, files.replacing(path) as f:
            f.write(b"half")
            raise OSError(number, os.strerror(number)) if number else OSError("3 requested and 1 written")
        assert error.value.filename == str(path) and error.value.errno == (number or errno.EIO)
        assert str(path) in str(error.value) and not list(tmp_path.iterdir())


def test_a_file_keeps_its_mode_and_a_link_its_target(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text(encoding="utf-8") == "new"
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o640
    long = tmp_path / ("x" * 255)
    write_text(long, "new")
    assert long.read_text(encoding="utf-8") == "new"


def test_all_writers_use_the_helper():
    """Only the helper calls os.replace and os.rename for files; other modules use them for whole folders or
    parts.
    """
    root = Path(flow.__file__).parent
    allowed = {"errors/files.py", "saving/partial.py", "oneflow04/data/ofrecord.py"}
    found = {str(p.relative_to(root)) for p in root.rglob("*.py") if not p.is_relative_to(root / "swap")
             if any(word in p.read_text(encoding="utf-8") for word in ("os.replace(", "os.rename(",
                                                                       "mkstemp("))}
    assert found == allowed
