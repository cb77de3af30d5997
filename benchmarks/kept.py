"""Results in a JSON file, which is replaced in one step, so a stopped run keeps the last results."""
from __future__ import annotations

import json
import os
from pathlib import Path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return path


def save(path: Path, found: dict) -> Path:
    """Write results to a file, with a list of numbers on one line so that `diff` can compare two runs."""
    return write(path, _text(found) + "\n")


def load(path: Path) -> dict:
    """Return the results in a file, or {} if it does not exist."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as e:
        raise SystemExit(f"{path}: no JSON ({e}); remove it, or name another file") from None


def _text(value, indent: str = "") -> str:
    more = indent + "  "
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(indent + flat) <= 124 or not any(
            isinstance(v, dict | list) for v in (value.values() if isinstance(value, dict) else value)):
        return flat
    if isinstance(value, dict):
        lines = [f"{more}{json.dumps(k, ensure_ascii=False)}: {_text(v, more)}" for k, v in value.items()]
    else:
        lines = [more + _text(v, more) for v in value]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return begin + "\n" + ",\n".join(lines) + "\n" + indent + end
