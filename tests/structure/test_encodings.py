"""Rules for text files and paths: calls name the encoding, and shell lines quote values with spaces.

Without `encoding=`, Python reads and writes text in the encoding of the user's locale, which is ASCII under
the C locale. The same applies to the output of a process (`text=True`).
"""
import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOPS = ("src", "course", "tests", "tools", "benchmarks", "book", "chapters", "setup.py")
# Folders with unchanged third-party programs, and with parts of files of src.
OTHERS = ("programs", "wrong", "right", "stubs")
PROCESSES = {"run", "Popen", "check_output"}
TEMPORARY = {"TemporaryFile", "NamedTemporaryFile", "SpooledTemporaryFile"}


def keyword(call: ast.Call, name: str) -> object:
    """Return the constant value of a keyword, None if it is absent, and ... if it is not a constant."""
    node = next((k.value for k in call.keywords if k.arg == name), None)
    return None if node is None else getattr(node, "value", ...) if isinstance(node, ast.Constant) else ...


def is_text_mode(mode: object, default: str) -> bool:
    """True for the mode of a text file. False for a computed mode, which is assumed to be correct."""
    mode = default if mode is None else mode
    return isinstance(mode, str) and set(mode) <= set("rwxat+") and "b" not in mode


def is_ascii(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isascii()


def lacks_encoding(call: ast.Call) -> bool:
    """True if a call opens, reads or writes text without a named encoding. An ASCII literal needs none."""
    names = {k.arg for k in call.keywords}
    if names & {"encoding", None}:
        return False
    f, args = call.func, call.args
    method = isinstance(f, ast.Attribute)
    name = f.attr if method else getattr(f, "id", "")
    if name in PROCESSES:
        return keyword(call, "text") is True or keyword(call, "universal_newlines") is True
    if name in TEMPORARY:
        return is_text_mode(getattr(args[0], "value", ...) if args else keyword(call, "mode"), "w+b")
    if name in ("open", "fdopen"):
        of_path = method and getattr(f.value, "id", "") not in ("io", "os", "codecs")
        rest = args if of_path else args[1:]
        return is_text_mode(getattr(rest[0], "value", ...) if rest else keyword(call, "mode"), "r")
    if method and name == "read_text":
        return not args
    return method and name == "write_text" and len(args) == 1 and not is_ascii(args[0])


def without_encoding(source: str) -> list[int]:
    """Return the lines of calls without an encoding."""
    return sorted(n.lineno for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call)
                  and lacks_encoding(n))


def has_open_shell_line(call: ast.Call) -> bool:
    """True if a call passes a shell line with a value that is neither in quotes nor quoted by shlex."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if not (keyword(call, "shell") is True or name in ("system", "popen")) or not call.args:
        return False
    if not isinstance(call.args[0], ast.JoinedStr):
        return not isinstance(call.args[0], ast.Constant)
    values = [v.value for v in call.args[0].values if isinstance(v, ast.FormattedValue)]
    quoted = ("shlex.quote", "quote", "shlex.join")
    return not all(isinstance(v, ast.Call) and ast.unparse(v.func) in quoted for v in values)


def open_shell_lines(source: str) -> list[int]:
    """Return the lines of calls that give a shell a value without shlex.quote."""
    return sorted(n.lineno for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call)
                  and has_open_shell_line(n))


def unquoted_variables(script: str) -> list[int]:
    """Return the lines of a shell script with an unquoted variable that may be a path.

    Assignments need no quotes. Numbers ($?, $#, $$, $SECONDS, arithmetic) contain no spaces.
    """
    found = []
    for number, line in enumerate(script.splitlines(), 1):
        bare = re.sub(r"""'[^']*'|"(?:\\.|\$\((?:[^()]|\([^()]*\))*\)|[^"\\])*"|\$\(\(.*?\)\)|(?:^|\s)#.*""",
                      "", line)
        bare = re.sub(r"(?:^|(?<=\s))\w+=\S*", "", bare)
        if re.search(r"\$(?:\{?(?!SECONDS\b|status\b|shown\b)[A-Za-z_]\w*|[@*]|[1-9])", bare):
            found.append(number)
    return found


def files() -> list[Path]:
    found = [p for top in TOPS for p in ([ROOT / top] if top.endswith(".py")
                                         else sorted((ROOT / top).rglob("*.py")))]
    return [p for p in found if not {*p.relative_to(ROOT).parts} & {*OTHERS}]


def report(rule) -> str:
    return "\n".join(f"{p.relative_to(ROOT)}:{i}" for p in files()
                     for i in rule(p.read_text(encoding="utf-8")))


def test_text_files_name_their_encoding():
    found = report(without_encoding)
    assert not found, f'add encoding="utf-8" (for a process: in place of text=True):\n{found}'


def test_shell_lines_quote_their_values():
    found = report(open_shell_lines)
    assert not found, f"pass a list of arguments, or use shlex.quote:\n{found}"


def test_scripts_quote_their_variables():
    scripts = [p for p in (*(ROOT / "tools").iterdir(), ROOT / ".ci" / "run") if p.is_file() and not p.suffix]
    assert len(scripts) >= 4
    found = [f"{p.relative_to(ROOT)}:{i}" for p in scripts
             for i in unquoted_variables(p.read_text(encoding="utf-8"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("bad", [
    "p.read_text()", "p.write_text(text)", "p.write_text('ü')", "open(p)", "open(p, 'w')", "p.open()",
    "p.open('a')",
    "os.fdopen(3, 'w')", "io.open(p)", "run(c, text=True)", "subprocess.Popen(c, universal_newlines=True)",
    "tempfile.NamedTemporaryFile('w')", "with open(p) as f:\n    pass"])
def test_a_missing_encoding_is_found(bad):
    assert without_encoding(bad) == [1]


@pytest.mark.parametrize("good", [
    "p.read_text('utf-8')", "p.read_text(encoding='utf-8')", "p.write_text('abc')", "open(p, 'rb')",
    "p.open('wb')",
    "run(c, encoding='utf-8')", "run(c)", "tempfile.TemporaryFile()", "open(p, mode)", "Image.open(p, 'rb')",
    "f(**options)"])
def test_a_named_encoding_passes(good):
    assert without_encoding(good) == []


@pytest.mark.parametrize("bad", [
    "run(f'ls {path}', shell=True)", "run('ls ' + path, shell=True)", "os.system(f\"ls '{path}'\")"])
def test_an_unquoted_value_is_found(bad):
    assert open_shell_lines(bad) == [1]


def test_quoted_values_pass():
    assert open_shell_lines(
        "run(f'ls {shlex.quote(path)}', shell=True)\nrun(['ls', path])\nos.system('ls')") == []


def test_unquoted_variables_of_scripts_are_found():
    assert unquoted_variables('cd $home\ncp "$a" ${b}\nrm $1\n') == [1, 2, 3]
    script = ('cd "$home"\nx=$a\nexit $status\necho "$(dirname "$0")" $((SECONDS / 60)) \'$a\' # $a\n')
    assert unquoted_variables(script) == []
