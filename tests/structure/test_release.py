"""Rules for releases: version, changelog, and citation agree, and workflows name existing targets."""
import ast
import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import flowedu as flow
from common import load_tool
from flowedu_course import course

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
HEADING = re.compile(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", re.MULTILINE)


def test_the_version_is_defined_in_one_place():
    """It is a string literal in flowedu/__init__.py, because the build reads it without an import."""
    top = ast.parse((ROOT / "src" / "flowedu" / "__init__.py").read_text(encoding="utf-8"))
    said, = [n.value.value for n in top.body if isinstance(n, ast.Assign)
             and ast.unparse(n.targets[0]) == "__version__"]
    assert (said == flow.__version__ == importlib.metadata.version("flowedu")
            and re.fullmatch(r"\d+\.\d+\.\d+", said))
    assert not re.search(r"^version = \"", (ROOT / "pyproject.toml").read_text(encoding="utf-8"),
                         re.MULTILINE)


def test_changelog_and_citation_have_this_version():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (first, _), *released = HEADING.findall(changes)
    assert first == "Unreleased" and len(released) == changes.count("\n## ") - 1 and all(
        day for _, day in released)
    numbers = [tuple(map(int, version.split("."))) for version, _ in released]
    assert released[0][0] == flow.__version__ and numbers == sorted(numbers, reverse=True)
    kinds = re.findall(r"^### (.*)$", changes, re.MULTILINE)
    assert kinds and {*kinds} <= {"Added", "Changed", "Faster", "Deprecated", "Removed", "Fixed", "Security"}
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.*)$", cited, re.MULTILINE) == [flow.__version__]
    assert ('license = "Apache-2.0"' in (ROOT / "pyproject.toml").read_text("utf-8")
            and "\nlicense: Apache-2.0\n" in cited)


def commands(workflow: dict) -> list[str]:
    """Return the commands of the steps of a workflow, with the values of its matrices filled in."""
    found = []
    for job in workflow["jobs"].values():
        matrix = job.get("strategy", {}).get("matrix", {"": [""]})
        (key, values), = matrix.items()
        found += [re.sub(rf"\${{{{ *matrix\.{key} *}}}}", str(value), step["run"]) for value in values
                  for step in job["steps"] if "run" in step]
    return found


def unknown(command: str) -> list[str]:
    """Return the make targets in a command that the Makefile does not define."""
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    words = command.partition("make ")[2].split()
    targets = [w for w in words if "=" not in w and not w.startswith(("-", '"'))]
    return [t for t in targets if not re.search(rf"^([\w-]+ )*{re.escape(t)}( [\w-]+)*:", rules,
                                                re.MULTILINE)]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.stem)
def test_workflows_name_existing_targets(path):
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    runs = commands(workflow)
    assert path.stem == "wheels" or any(line.startswith("make build") for line in runs)
    assert [*map(unknown, runs)] == [[]] * len(runs)
    assert all("${{" not in line
               for line in runs), "what a person types is handed on by env, not pasted into a command"
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] and all("run" in s or re.fullmatch(r"actions/[\w-]+@v\d+", s["uses"])
                                              for s in job["steps"])


def test_workflows_run_ci_and_build_wheels_and_publish_the_book():
    yaml = pytest.importorskip("yaml")
    read = {p.stem: yaml.safe_load(p.read_text(encoding="utf-8")) for p in WORKFLOWS}
    assert {*read} == {"ci", "classroom", "pages", "wheels"}
    assert read["ci"]["jobs"]["test"]["strategy"]["matrix"]["python"] == ["3.11", "3.13"]
    stages = re.findall(r"^make (?!peers)(.*)$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"),
                        re.MULTILINE)
    run = {w for line in commands(read["ci"]) for w in line.split()}
    assert run >= {"test", "peers"} | {stage.split()[0] for stage in stages}
    assert "make book" in commands(read["pages"])
    chapters = re.findall(r"grade-all .*CH=(\d+)", "\n".join(commands(read["classroom"])))
    assert [*map(int, chapters)] == [c.number for c in course.chapters() if c.holes]


def test_missing_make_targets_are_found():
    assert unknown("make build") == [] and unknown("taskset --cpu-list 0 make tset ARGS=x -s") == ["tset"]
    assert unknown("make chapter-% YOURS=1") == []


def test_no_file_names_a_package_registry():
    """The choice of a package index is left to the user."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True,
                           encoding="utf-8").stdout.split()
    names = ("pypi" + ".org", "pythonhosted" + ".org", "anaconda" + ".org", "npmjs" + ".com")
    texts = {f: (ROOT / f).read_text(errors="ignore", encoding="utf-8") for f in files
             if (ROOT / f).is_file()}
    assert not [(f, n) for f, text in texts.items() for n in names if n in text]


# ---- configuration files of tools
def test_configuration_files_are_consistent():
    yaml = pytest.importorskip("yaml")
    hooks = yaml.safe_load((ROOT
                            / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]
    assert {h["id"] for h in hooks} == {"ruff", "subject"}
    for hook in hooks:
        assert all((ROOT / word).exists() for word in hook["entry"].split() if word.startswith("tools/"))
    forms = [yaml.safe_load(p.read_text(encoding="utf-8"))
             for p in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")]
    assert sum("body" in form for form in forms) == 2
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    assert unknown(container["postCreateCommand"].replace("chapter-1", "chapter-%")) == []
    editor = (ROOT / ".editorconfig").read_text(encoding="utf-8")
    assert "root = true" in editor and "[Makefile]\nindent_style = tab" in editor


@pytest.mark.parametrize(("platform", "last"), [("linux", "manylinux_x86_64"), ("macos", "macosx_arm64")])
def test_cibuildwheel_builds_a_wheel_for_each_python(platform, last):
    """Lists the builds of pyproject.toml only, because building needs containers or a Mac."""
    pytest.importorskip("cibuildwheel")
    archs = ["--archs", "x86_64"] if platform == "linux" else []
    done = subprocess.run([sys.executable, "-m", "cibuildwheel", "--platform", platform, *archs,
                           "--print-build-identifiers"], cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.stdout.split() == [f"{python}-{last}" for python in ("cp311", "cp312", "cp313")], done.stderr
    required = tomllib.loads((ROOT
                              / "pyproject.toml").read_text(encoding="utf-8"))["project"]["requires-python"]
    assert required == ">=3.11"


@pytest.fixture(scope="module")
def subject():
    return load_tool("check_subject")


@pytest.mark.parametrize("message", ["conv: fold batch norm", "docs, tests: embed the tour", "a: " + "b" * 69,
                                     "# note\n\nsbp: need one hop\n\nWhy.", "CHANGELOG: add a line"])
def test_a_subject_is_accepted(subject, message):
    assert subject.problems(message) == []


@pytest.mark.parametrize("message", ["", "Fix it", "conv: folded batch norm", "conv: folding batch norm",
                                     "conv: made it",
                                     "conv: fold it.", "a: " + "b" * 70, "Merge branch 'x' of y", "conv:fold",
                                     "the engine tells pow: fold it"])
def test_a_subject_is_refused(subject, message, tmp_path, capsys):
    assert subject.problems(message)
    (tmp_path / "message").write_text(message, encoding="utf-8")
    assert subject.main([str(tmp_path / "message")]) == 1 and capsys.readouterr().out
