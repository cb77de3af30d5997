"""The chart of README.md and docs/speed.md matches its data, and the files of results that run.py writes."""
import copy
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "benchmarks" / "pictures" / "ratios.svg"


@pytest.fixture
def charts(program):
    return program("charts")


@pytest.fixture
def found():
    return json.loads(PICTURE.with_suffix(".json").read_text(encoding="utf-8"))


def texts(path):
    return [e.text.strip() for e in ElementTree.parse(path).iter() if e.tag.endswith("text") and e.text]


def test_the_chart_is_drawn_from_its_data(charts, found, tmp_path):
    again = charts.draw_ratios(found, tmp_path / "again.svg")
    if found["drawn_by"] == charts.version():                # other versions may use another layout
        assert again.read_bytes() == PICTURE.read_bytes(), \
            f"python benchmarks/run.py --chart {PICTURE.relative_to(ROOT)} --redraw"
    assert sorted(texts(again)) == sorted(texts(PICTURE))


def test_drawing_the_chart_is_reproducible(charts, found, tmp_path):
    one, two = (charts.draw_ratios(found, tmp_path / f"{i}.svg").read_bytes() for i in "12")
    assert one == two and b"<dc:date>" not in one


def test_every_row_with_a_peer_is_drawn_with_its_ratio(charts, found):
    said = texts(PICTURE)
    for p in charts.points(found["rows"]):
        assert p.line in said and p.kind in said and charts.PEERS[p.peer][0] in said
        assert any(f"{p.ratio:.2g}" in t or f"{p.ratio:.2f}" in t for t in said) or p.threads == 1, p
    assert len({p.line for p in charts.points(found["rows"])}) > 15


def test_other_data_give_another_chart(charts, found, tmp_path):
    other = copy.deepcopy(found)
    row = next(iter(next(iter(other["rows"].values())).values()))
    row["times"]["flowedu"] = [2 * t for t in row["times"]["flowedu"]]
    assert charts.draw_ratios(other, tmp_path / "other.svg").read_bytes() != PICTURE.read_bytes()


def test_points_compare_with_the_fastest_peer(charts):
    rows = {"LeNet, training step": {"2": {"times": {"flowedu": [2, 9], "our eager": [1, 1], "job": [1, 1],
                                                     "torch eager": [8, 8], "onnxruntime": [6, 7]}}},
            "eager add": {"1": {"times": {"flowedu": [1, 1], "without": [1, 1], "2 devices": [1, 1]}}},
            "mpi, 2 ranks: all_gather 4 KB": {"0": {"times": {"flowedu": [2, 2], "mpi4py": [1, 1]}}},
            "threads, 2 ranks: all_gather 4 KB": {"0": {"times": {"flowedu": [2, 2], "NumPy": [1, 1]}}}}
    assert charts.points(rows) == [("training", "LeNet, training step", "", 2, "onnxruntime", 3.0),
                                   ("between ranks", "mpi, 2 ranks: all_gather", "4 KB", 0, "mpi4py", 0.5)]


def test_results_of_several_runs_are_merged(program, tmp_path):
    run, file, here = program("run"), tmp_path / "r.json", {"machine": "this one", "versions": "1"}

    def result(name, t):
        return run.Result(name, 0, {"flowedu": [t, 3 * t, 2 * t], "torch eager": [5 * t]})

    order = ["a", "b", "c"]
    run.merged(file, here, {"c": {2: result("c", 1.0)}, "a": {1: result("a", 2.0)}}, order, True)
    run.merged(file, here, {"b": {2: result("b", 1.0)}, "a": {1: result("a", 4.0), 2: result("a", 1.0)}},
               order, False)
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    assert ([*rows] == order and {name: [*by] for name, by in rows.items()} == {"a": ["1", "2"], "b": ["2"],
                                                                                "c": ["2"]})
    assert rows["a"]["1"]["times"] == {"flowedu": [4.0, 8.0], "torch eager": [20.0, 20.0]}
    assert (rows["c"]["2"]["quick"] and not rows["a"]["1"]["quick"] and re.match(r"\d{4}-\d\d-\d\d$",
                                                                                 rows["a"]["1"]["date"]))
    elsewhere = {**here, "machine": "another"}
    with pytest.raises(SystemExit, match="this one: --anew"):
        run.merged(file, elsewhere, {}, order, False)
    assert run.merged(file, elsewhere, {}, order, False, anew=True)["rows"] == {}


def test_an_invalid_results_file_is_refused_and_kept(program, tmp_path):
    kept, file = program("kept"), tmp_path / "r.json"
    file.write_text("{")
    with pytest.raises(SystemExit, match="no JSON"):
        kept.load(file)
    assert file.read_text(encoding="utf-8") == "{" and kept.load(tmp_path / "none.json") == {}
    found = {"a": [1, 2.5], "b": {"c": {"d": [0.1] * 40, "e": "é"}, "f": []}}
    assert kept.load(kept.save(file, found)) == found and [*tmp_path.iterdir()] == [file]


def test_pages_show_the_chart():
    for page in ("README.md", "README.zh.md", "docs/speed.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert re.search(r"!\[[^\]]+\]\((?:\.\./)?benchmarks/pictures/ratios\.svg\)", text), page
