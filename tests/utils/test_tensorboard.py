"""flow.utils.tensorboard: logged values are in the table, in TensorBoard event files, and on the page."""
import builtins
import math
import re
import warnings
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu import mock
from flowedu.errors import once
from flowedu.errors.extras import install
from flowedu.show.dashboard import HEIGHT, chart
from flowedu.utils.tensorboard import SummaryWriter, dashboard, scalars

SVG = "{http://www.w3.org/2000/svg}"
tags = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Zl", "Zp"]), min_size=1,
               max_size=8)
rows = st.lists(st.tuples(tags, st.integers(0, 1000), st.floats(width=32)), max_size=12)


@pytest.fixture
def nothing_told(monkeypatch):
    monkeypatch.setattr(once, "told", told := set())
    monkeypatch.setattr("flowedu.utils.tensorboard.told", told)


@pytest.fixture
def alone(monkeypatch, nothing_told):
    """Make tensorboard impossible to import."""
    real = builtins.__import__

    def missing(name, *rest):
        if name.startswith("tensorboard"):
            raise ModuleNotFoundError(f"No module named {name!r}")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)


def collect_warnings(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [w for w in found if issubclass(w.category, UserWarning)]


def same(a, b):
    return a == b or math.isnan(a) and math.isnan(b)


@given(rows)
def test_numbers_are_read_as_they_were_written(tmp_path_factory, rows):
    folder, want = tmp_path_factory.mktemp("log"), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for tag, step, value in rows:  # each writer appends to the file of the previous one
            with SummaryWriter(folder) as writer:
                writer.add_scalar(tag, value, step)
            want.setdefault(tag, {})[step] = value
        with SummaryWriter(folder):
            pass
    found = scalars(folder / "scalars.csv")
    assert [(t, [*line]) for t, line in found.items()] == [(t, [*line]) for t, line in want.items()]
    assert all(same(found[t][s], want[t][s]) for t in want for s in want[t])


def test_a_table_of_numbers(tmp_path, alone):
    for step in range(2):                                 # the second writer appends to the same file
        with SummaryWriter(tmp_path / "log") as w:
            w.add_scalar("loss", flow.tensor(0.5), step, walltime=1.0)
            w.add_scalars("acc", {"train": 1, "test": 2}, walltime=2.0)
            w.flush()
    lines = (tmp_path / "log" / "scalars.csv").read_text(encoding="utf-8").splitlines()
    assert lines == ["tag,step,value,time", "loss,0,0.5,1.0", "acc/train,,1.0,2.0", "acc/test,,2.0,2.0",
                     "loss,1,0.5,1.0", "acc/train,,1.0,2.0", "acc/test,,2.0,2.0"]
    assert scalars(tmp_path / "log" / "scalars.csv")["acc/test"] == {0: 2.0, 1: 2.0}
    assert w.get_logdir() == str(tmp_path / "log")
    assert [p.name for p in (tmp_path / "log").iterdir()] == ["scalars.csv"]


def test_missing_tensorboard_warns_once(tmp_path, alone):
    first = collect_warnings(lambda: SummaryWriter(tmp_path / "a"))
    assert [w.filename for w in first] == [__file__]
    assert "a/scalars.csv alone" in str(first[0].message) and install("tensorboard") in str(first[0].message)
    writer = SummaryWriter(tmp_path / "b")
    assert not collect_warnings(lambda: SummaryWriter(tmp_path / "c"))
    for call in (lambda: writer.add_text("t", "words"), lambda: writer.add_histogram("h", np.ones(3))):
        assert len(collect_warnings(call)) == 1 and not collect_warnings(call)


def test_unsupported_images_warn(tmp_path, nothing_told):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        writer = SummaryWriter(tmp_path)
    writer.add_scalar("a", 1)
    assert scalars(tmp_path / "scalars.csv") == {"a": {0: 1.0}}, "a line is on disk as soon as it is written"
    assert "not kept" in str(collect_warnings(lambda: writer.add_image("x", None))[0].message)
    assert not collect_warnings(lambda: writer.add_graph(None))


def test_tensorboard_reads_the_event_files(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    values = np.random.default_rng(0).normal(size=20).astype(np.float32)
    with SummaryWriter(tmp_path, filename_suffix=".mine") as writer:
        for step, v in enumerate(values.tolist()):
            writer.add_scalar("train/loss", v, 3 * step, walltime=100.0 + step)
        writer.add_scalars("acc", {"train": 1, "test": 2}, 7)
        writer.add_histogram("weights", flow.ones(3, 4, requires_grad=True), 5, bins=4)
        writer.add_text("words", "# hello", 1)
    read = EventAccumulator(str(tmp_path))
    read.Reload()
    assert read.Tags()["scalars"] == ["train/loss", "acc/train", "acc/test"]
    assert read.Tags()["tensors"] == ["weights", "words"]
    assert [(e.step, e.value, e.wall_time) for e in read.Scalars("train/loss")] == [
        (3 * i, v, 100.0 + i) for i, v in enumerate(values.tolist())]
    table = scalars(tmp_path / "scalars.csv")
    assert {t: {e.step: e.value for e in read.Scalars(t)} for t in table} == table
    histogram, = read.Tensors("weights")
    assert histogram.step == 5 and b"hello" in read.Tensors("words")[0].tensor_proto.string_val[0]
    assert len([*tmp_path.glob("events.out.tfevents.*.mine")]) == 1


def test_steps_from_purge_step_on_are_forgotten(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for begin, value in ((0, 1.0), (3, 2.0)):
        with SummaryWriter(tmp_path, purge_step=begin, filename_suffix=f".{begin}") as writer:
            for step in range(begin, begin + 5):
                writer.add_scalar("loss", value, step)
    read = EventAccumulator(str(tmp_path))
    read.Reload()
    assert [(e.step, e.value) for e in read.Scalars("loss")] == [(s, 1.0 + (s > 2)) for s in range(8)]


# ---- the page
lines = st.dictionaries(tags, st.dictionaries(st.integers(0, 50), st.floats(-1e6, 1e6) | st.sampled_from(
    [math.nan, math.inf]), max_size=8), min_size=1, max_size=3)


@given(tags, lines)
def test_a_chart_has_every_finite_point(title, lines):
    root = ElementTree.fromstring(chart(title, lines).svg())
    drawn = [p.get("points") for p in root.iter(SVG + "polyline")][3:]  # after the three lines of the grid
    points = [tuple(map(float, p.split(","))) for line in drawn for p in line.split()]
    finite = [(s, v) for line in lines.values() for s, v in sorted(line.items()) if math.isfinite(v)]
    assert len(points) == len(finite)

    def order(numbers):
        return np.argsort(numbers, kind="stable").tolist()

    for mine, theirs in zip(zip(*points), zip(*finite)):
        up = np.diff(np.array(mine)[order(theirs)])
        assert (up >= -0.01).all() if mine is not None and theirs == tuple(s for s, _ in finite) else (
            up <= 0.01).all()
    assert all(-0.01 <= x <= 560.01 and -0.01 <= y <= HEIGHT for x, y in points)
    said = [e.text for e in root.iter(SVG + "text")]
    assert title in said and all(any(s.startswith(f"{n}: ") for s in said) for n in lines)


def test_a_page_compares_runs(tmp_path, nothing_told):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for run, rate in (("slow", 0.1), ("deep/fast", 0.5)):
            with SummaryWriter(tmp_path / run) as writer:
                for step in range(5):
                    writer.add_scalar("loss", math.exp(-rate * step), step)
                writer.add_scalar(f"only <{rate}>", 1.0, 0)
    path = dashboard(tmp_path)
    assert path == tmp_path / "index.html"
    assert dashboard(tmp_path,
                     tmp_path / "b" / "c.html").read_text(encoding="utf-8") == path.read_text(
                         encoding="utf-8")
    root = ElementTree.fromstring(re.sub("<!DOCTYPE html>", "", path.read_text(encoding="utf-8")))
    charts = [*root.iter(SVG + "svg")]
    assert [c.get("aria-label") for c in charts] == ["loss", "only <0.5>", "only <0.1>"]
    words = [e.text for e in charts[0].iter(SVG + "text")]
    assert "deep/fast: 0.1353 at the end" in words and "slow: 0.6703 at the end" in words


def test_a_page_without_runs_is_refused(tmp_path):
    with pytest.raises(flow.errors.ArgumentError, match=r"dashboard: log_dir"):
        dashboard(tmp_path)


def test_programs_for_torch_can_import_it():
    with mock.enable("torch"):
        from torch.utils.tensorboard import SummaryWriter as theirs
        from torch.utils.tensorboard.writer import SummaryWriter as same
    assert theirs is same is flow.utils.tensorboard.SummaryWriter
