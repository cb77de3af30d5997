"""A copy of this checkout in a folder with a space in its name, in which tests run commands as a new user
would.
"""
import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

from common import HANGS

ROOT = Path(__file__).parents[2]


def checkout(folder: Path, copy=shutil.copy2, wanted=lambda name: True) -> None:
    """Copy the wanted files of this checkout into a folder: tracked files and untracked files that are not
    ignored.
    """
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                           capture_output=True, encoding="utf-8", check=True).stdout.split("\0")
    for name in filter(wanted, {*names} - {""}):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            copy(ROOT / name, folder / name)


@functools.cache
def ordinary() -> tuple[str, ...]:
    """Return the command prefix that drops root's privileges, or () if the user is not root or the kernel
    forbids it.
    """
    words = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
    if os.geteuid() or not shutil.which(words[0]):
        return ()
    asked = subprocess.run([*words, "bash", "-c", "id -u; grep CapEff /proc/self/status"],
                           capture_output=True, encoding="utf-8")
    return words if asked.stdout.split() == ["1000", "CapEff:", 16 * "0"] else ()


class House:
    """Temporary checkout: `with House(folder) as h: h.type("make list")`. It copies installed and compiled
    files, so no network is needed.
    """

    def __init__(self, folder: Path):
        self.folder, self.home = folder / "flow edu", folder / "home"
        self.home.mkdir(parents=True)
        checkout(self.folder)
        shutil.copytree(ROOT / ".venv", self.folder / ".venv", symlinks=True,
                        ignore=shutil.ignore_patterns("linked-*"))
        shutil.copytree(ROOT / "build" / "kernels", self.folder / "build" / "kernels")

    def type(self, line: str, rc: int = 0, within: Path | None = None) -> str:
        """Run the line and return its stdout and stderr. The environment has no locale, no terminal, no
        package index, and an empty home folder.
        """
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "PIP_NO_INDEX": "1",
               "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")}
        done = subprocess.run([*ordinary(), "bash", "-c",
                               line.replace("python ", f"'{self.folder}/.venv/bin/python' ", 1)
                               if line.startswith("python ") else line],
                              cwd=within or self.folder, env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding="utf-8", timeout=4 * HANGS)
        assert (done.returncode == rc and "Traceback" not in done.stdout), (line, done.returncode,
                                                                            done.stdout[-4000:])
        return done.stdout


def documented() -> dict[str, str]:
    """Return {command: first page that contains it} for commands in back quotes or code blocks of all
    pages.
    """
    found: dict[str, str] = {}
    pages = subprocess.run(["git", "ls-files", "-z", "*.md"], cwd=ROOT, capture_output=True,
                           encoding="utf-8", check=True).stdout
    for page in pages.split("\0")[:-1]:
        text = (ROOT / page).read_text(encoding="utf-8")
        blocks = re.findall(r"(?ms)^```(?:sh|bash|console|)\n(.*?)^```$", text)
        prose = re.sub(r"(?ms)^```.*?^```$", "", text)
        lines = "\n".join(blocks).splitlines()
        lines += [*re.findall(r"(?m)^ {4}(\S.*)$", prose), *re.findall(r"`([^`\n]+)`", prose)]
        for line in lines:
            if re.match(WORDS, line.removeprefix("$ ")):
                found.setdefault(re.sub(r"\s+#.*|  +.*", "", line.removeprefix("$ ")).strip(" \\"), page)
    return found


WORDS = r"(?:[A-Z_]+=\S+ )*(?:make(?: [-a-zA-Z]|$)|python3? -m |pip |bash )"


def targets() -> set[str]:
    """Return the targets that `make help` lists, with chapters as chapter-N."""
    said = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, encoding="utf-8",
                          check=True).stdout
    return {kind(f"make {name}") for name in re.findall(r"^  ([a-z][-a-z%\d]+) ", said, re.MULTILINE)}


def kind(command: str) -> str:
    """Normalize a command: `make chapter-4 LESSON=1` to "make chapter-N", `python -m flowedu.show x.py` to
    "python -m flowedu.show".
    """
    words = [w for w in command.split() if not re.match(r"[A-Z_]+=", w)]
    words = words[:3] if words[0].startswith("python") else words[:2]
    return re.sub(r"(-)(\d+|%)$", r"\1N", " ".join(words))
