"""Chinese texts for students: every English text has a translation with the same names and numbers, a changed
English text is shown in English, and verdicts do not depend on the language.
"""
import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowedu_course import course, handout, kernels, language
from flowedu_course.blocks import slug
from flowedu_course.judge import judged
from flowedu_course.language import HOLE, SETTINGS, columns, cut, fingerprint, padded, short, tr
from flowedu_course.laws import law
from flowedu_course.runner import Runner
from flowedu_course.teach import wrong

HOLES = course.holes()
LEARN = Path(language.__file__).parent
COMMON = tomllib.loads((course.HOME / "chapters" / "zh.toml").read_text(encoding="utf-8"))
ROWS = {row["id"]: row for file in sorted(course.HOME.glob("chapters/*/chapter.zh.toml"))
        for row in tomllib.loads(file.read_text(encoding="utf-8"))["hole"]}
LAG: dict[str, str] = {}                           # {exercise: text missing in its Chinese version}
MOST = 4                                           # exercises that may be outdated at one time
# Tokens that are the same in both languages: code, names with a dot or an underscore, calls, and numbers.
NAMES = re.compile(r"`[^`]+`|\"\w[^\"\s]*\"|[A-Za-z_]\w*\(|[A-Za-z]\w*(?:[._][A-Za-z0-9]+)+|\d[\d.,]*\d|\d",
                   re.ASCII)


@pytest.fixture
def chinese(monkeypatch):
    monkeypatch.setenv("FLOWEDU_LANG", "zh")


def english_rows():
    return [row for c in course.chapters() for row in tomllib.loads((c.folder / "chapter.toml").read_text(
        "utf-8"))["hole"]]


# ---- which language
@given(st.fixed_dictionaries({}, optional={name: st.sampled_from(["", "C", "en_GB.UTF-8", "zh",
                                                                  "zh_CN.UTF-8"])
                                           for name in SETTINGS}))
def test_the_first_language_setting_decides(settings):
    with pytest.MonkeyPatch.context() as patch:
        for name in SETTINGS:
            patch.delenv(name, raising=False)
        for name, value in settings.items():
            patch.setenv(name, value)
        first = next((settings[name] for name in SETTINGS if settings.get(name)), "")
        assert language.language() == ("zh" if first.startswith("zh") else "en")


def test_terminals_without_unicode_get_english(chinese, monkeypatch):
    assert language.language() == "zh"
    monkeypatch.setattr(language, "getpreferredencoding", lambda do: "ISO-8859-1")
    assert language.language() == "en"


def test_untranslated_texts_are_english(chinese):
    assert (tr("nobody says this") == "nobody says this" and tr("nobody says {this}",
                                                                this=3) == "nobody says 3")
    assert tr("right") == "正确" and tr("right", "en") == "right"


def test_a_formatted_line_is_matched_to_its_translation(chinese):
    assert tr("law 1 of 2: no two live results overlap") == "定律 1（共 2 条）：同时存活的结果互不重叠"
    assert tr("  smallest case   a: 64 bytes") == "  最小的例子      a: 64 bytes"
    assert tr("about 1 line, 5 minutes") == "约 1 行，5 分钟"


# completeness
def asked():
    """Return {text: location} of all calls of tr with a literal text."""
    found = {}
    for file in sorted(LEARN.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "tr" and node.args:
                one = node.args[0]
                either = (one.body, one.orelse) if isinstance(one, ast.IfExp) else (one,)
                texts = [n.value for n in either if isinstance(n, ast.Constant)]
                found |= dict.fromkeys(texts, f"{file.name}:{node.lineno}")
    return found


def test_every_text_of_a_command_has_chinese():
    known, texts = language.table(), asked()
    missing = {t: where for t, where in texts.items() if t and t not in known}
    assert len(texts) > 40 and not missing
    unused = {t for section in ("commands", "files") for t in COMMON[section]} - {*texts}
    assert unused <= {"n next  h hint  l list  e exercise  d debug  x reset  s solution  q quit",
                      "up down: move  Enter: select  Esc: back  q quit"}, "nothing says this any more"


def test_every_law_and_star_has_chinese():
    titles = {law(name).title for h in HOLES for name in h.laws}
    stars = {rule.partition("#")[2].strip() for h in HOLES for rule in h.stars} - {""}
    assert titles == {*COMMON["laws"]} and stars == {*COMMON["stars"]}


def test_both_languages_have_the_same_placeholders():
    for section in COMMON.values():
        for text, zh in section.items():
            assert {*HOLE.findall(text)} == {*HOLE.findall(zh)}, text
            assert re.search("[\u4e00-\u9fff]", zh), text


def test_translated_lines_occur_in_the_sources():
    """When a line of a judge changes, it is shown in English until its entry is updated."""
    parts = set()
    for file in LEARN.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            values = getattr(node, "values", [node])
            if (isinstance(node, (ast.JoinedStr, ast.Constant)) and isinstance(getattr(node, "value", ""),
                                                                               str)):
                parts.add("".join(v.value if isinstance(v, ast.Constant) else "{}" for v in values))
    text = "\n".join(parts)
    made = ("about ", "  {found}     {many}", "  {found}     1", "  2 stars", "  3 stars", "  should be",
            "  case ", "  smallest case ", "  line ", "  counted", "  speed")     # parts of lines
    for line in COMMON["lines"]:
        assert line.startswith(made) or re.sub(r"\{\w+\}", "{}", line) in text, line


# ---- exercises
def test_every_exercise_has_chinese():
    assert [*ROWS] == [row["id"] for row in english_rows()]
    assert len(LAG) <= MOST and {*LAG} <= {*ROWS} and all(LAG.values())


@pytest.mark.parametrize("row", english_rows(), ids=lambda r: r["id"])
def test_an_exercise_has_the_same_names_and_numbers_in_both_languages(row):
    zh = ROWS[row["id"]]
    now = fingerprint(row)
    if row["id"] in LAG:
        assert zh["made_from"] != now, f"{row['id']} does not lag: take it out of LAG"
        return
    assert zh["made_from"] == now, f"{row['id']} changed: change chapter.zh.toml ({now}), or name it in LAG"
    assert len(zh["hints"]) == len(row["hints"])
    heads = [[re.split(": |：", t, maxsplit=1)[0] for t in r.get("uses", ())] for r in (row, zh)]
    assert heads[0] == heads[1], "uses"
    for name in ("task", "example"):
        mine, theirs = zh.get(name, row.get(name, "")), row.get(name, "")
        assert {*NAMES.findall(mine)} == {*NAMES.findall(theirs)}, name
    assert len(zh["task"].strip().splitlines()) <= 11 and max(map(columns, zh["task"].splitlines())) <= 150
    for text in (zh["task"], *zh.get("uses", ()), *zh["hints"]):
        words = re.sub(r"\{[^}]*\}|\[[^]]*\]|\([^)]*\)|`[^`]*`", "", text)  # tuples and dicts have commas
        assert (re.search("[\u4e00-\u9fff]", text) and not re.search(r"[\u4e00-\u9fff][,;:?!](\s|$)",
                                                                     words)), text


def test_an_outdated_row_is_shown_in_english():
    english = {"title": "A", "hole": [{"id": "1.1", "title": "t", "task": "do", "hints": ["a", "b"]}]}
    row = {"id": "1.1", "title": "T", "task": "DO", "hints": ["A", "B"],
           "made_from": fingerprint(english["hole"][0])}
    chinese = {"title": "Z", "hole": [row]}
    assert language._of_chapter(english, chinese) == {"A": "Z", "t": "T", "do": "DO", "a": "A", "b": "B"}
    for key, other in (("title", "t2"), ("task", "do not"), ("hints", ["a", "c"]), ("example", "x")):
        changed = {"title": "A", "hole": [{**english["hole"][0], key: other}]}
        assert language._of_chapter(changed, chinese) == {"A": "Z"}


def test_pages_name_exercises_as_their_files_do(chinese):
    """Compare titles, Chinese titles, and minutes on pages, such as `4.7 backward while building（构建时的反向传播，30
    分钟）`.
    """
    by, seen = {h.id: h for h in HOLES}, set()
    for page in sorted(course.HOME.glob("chapters/*/*.zh.md")):
        text = page.read_text(encoding="utf-8").replace("\n> ", " ")
        for id, title, inside in re.findall(r"(\d\.\d+) ([^（\n]{1,60})（([^）]*)分钟）", text):
            hole = by[id]
            minutes = re.search(r"\d+ $", inside)[0]
            name = inside.removesuffix(minutes).rstrip("，？ ")
            seen.add(id)
            assert (title, int(minutes)) == (hole.title.partition(":")[0], hole.minutes), (page.name, id)
            assert short(hole).rstrip("？") == f"{id} {name or title}", (page.name, id)
    assert len(seen) > 25


# exported files and verdicts
@pytest.mark.parametrize("hole", HOLES, ids=lambda h: h.id)
def test_an_unedited_work_file_counts_as_not_begun(hole, chinese, tmp_path):
    text = handout.stub(hole)
    assert tr(hole.task).strip().splitlines()[0] in text and tr(hole.task) != hole.task
    if hole.is_compiled:
        assert handout.untouched(hole, text)
        kernels.alone(hole, text)
    else:
        ast.parse(text)


@pytest.mark.parametrize("hole", HOLES, ids=lambda h: h.id)
def test_the_reading_link_prefers_the_chinese_page(hole, chinese):
    """The page has the heading, and the section names the exercise."""
    path, _, anchor = language.page(hole).partition("#")
    there = (course.HOME / path).with_suffix(".zh.md")
    assert path.endswith(".zh.md") or not there.exists()
    text = (course.HOME / path).read_text(encoding="utf-8")
    sections = re.split(r"^#+ (.*)$", text, flags=re.MULTILINE)
    assert re.search(rf"(?<![\d.]){re.escape(hole.id)} ", dict(zip(map(slug, sections[1::2]),
                                                                   sections[2::2]))[anchor])


def test_the_reading_link_is_the_english_page_in_english():
    assert all(language.page(h) == h.page for h in HOLES)


def test_a_failure_is_reported_in_chinese(chinese, tmp_path):
    runner, hole = Runner(course.HOME, tmp_path / "work"), course.find("4.3")
    file = next(iter(wrong.answers(hole))).put(tmp_path)
    lines = runner.format_verdict(hole, judged(hole, file), file)
    assert re.fullmatch(r"4\.3 place +定律 \d（共 2 条）：.*", lines[0]) and lines[1].startswith("  最小的例子      ")
    assert lines[-1] == "  h：提示 1，共 3 条" and all(columns(line) <= 100 for line in lines)


def test_the_chinese_list_is_aligned(chinese, tmp_path):
    lines = [t for t in Runner(course.HOME, tmp_path / "work").list() if t.startswith("  [")]
    places = {columns(t.partition(" 分钟 ")[0]) for t in lines}
    assert len(lines) == len(HOLES) and len(places) == 1


def test_a_command_uses_the_language_of_its_environment(tmp_path):
    env = {k: v for k, v in os.environ.items() if k not in SETTINGS}
    said = {lang: subprocess.run([sys.executable, "-m", "flowedu_course", "list"], env={**env, "LANG": lang},
                                 text=True,
                                 cwd=tmp_path, capture_output=True, check=True, encoding="utf-8").stdout
            for lang in ("zh", "zh_CN.UTF-8", "C.UTF-8")}
    assert said["zh"] == said["zh_CN.UTF-8"] and said["zh"].startswith("第 1 章：值，先于它的存在")
    assert said["C.UTF-8"].startswith("chapter 1: A value before it exists")


@given(st.text("ab中文，"), st.integers(0, 12))
def test_display_width_in_columns(text, width):
    assert columns(text) == len(text) + sum(c in "中文，" for c in text)
    assert columns(padded(text, width)) == max(width, columns(text))
    short_one = cut(text, width)
    assert text.startswith(short_one) and columns(short_one) <= width
    assert short_one == text or columns(text[:len(short_one) + 1]) > width
