"""Rule: a path in a comment or a docstring ends the path of an existing file of the repository."""
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILES = [p for top in ("src", "course", "tools", "benchmarks", "book", "chapters", "docs")
         for p in (ROOT / top).rglob("*")
         if p.suffix in (".py", ".pyx", ".pxd", ".pxi", ".h", ".cu")]
NAMED = re.compile(
    r"(?<![\w/.{}*<\"'])((?:\.\./)?(?:[\w-]+/)*[\w-]+\.(?:py|pyx|pxd|pxi|md|toml|cu))\b(?![\w(*\"'])")
# Files of users, of builds, and of other projects.
ON_DEVICE = ("kernel.cu", "file.py", "hubconf.py", "train.py", "build/", "work/", "user_relu/", "python/ops/")


def list_known_paths() -> set[str]:
    """Return all suffixes of the paths of files, such as graph/fuse.py for src/flowedu/fast/graph/fuse.py."""
    tops = ("src", "course", "tests", "tools", "benchmarks", "book", "chapters", "docs")
    paths = [p.relative_to(ROOT).parts for top in tops for p in (ROOT / top).rglob("*.*")] + \
        [p.relative_to(ROOT).parts for p in ROOT.glob("*.*")]
    return {"/".join(parts[i:]) for parts in paths for i in range(len(parts))}


def unknown(text: str, known: set[str]) -> list[str]:
    """Return the paths in a text that match no existing file."""
    named = [m[1] for m in NAMED.finditer(text)]
    return [n for n in named if n.removeprefix("../") not in known and not any(n.startswith(e)
                                                                               for e in ON_DEVICE)]


def test_every_path_that_is_named_exists():
    there = list_known_paths()
    lines = [(p, i, line) for p in FILES for i, line in enumerate(p.read_text(encoding="utf-8").splitlines(),
                                                                  1)]
    found = [f"{p.relative_to(ROOT)}:{i}: {name}" for p, i, line in lines for name in unknown(line, there)]
    assert not found, "\n".join(found)


def test_missing_paths_are_found():
    said = '"""As graph/fuse.py, in dist/nobody.py (../there.pyx)."""'
    assert unknown(said, {"graph/fuse.py"}) == ["dist/nobody.py", "../there.pyx"]
