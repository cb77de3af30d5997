"""Proxies in the judge for the functions of an answer in another process. A call sends a message."""
from __future__ import annotations

import builtins
import keyword
import re
import socket
from pathlib import Path
from typing import Any

from flowedu import errors
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.call import call_below
from flowedu.core.ops.define import REGISTRY
from flowedu_course.teach.protocol import Broken, Side, receive, send

FAR_METHODS = ("numpy", "item", "tolist", "detach")      # tensor methods that are not ops
PARTS = ("problem", "expected", "got", "fix", "at")      # the texts of a FlowError
ABSENT = object()                                  # marks a missing argument


class Far:
    """An answer in another process, at the other end of a socket."""

    def __init__(self, link: socket.socket, file: Path):
        self.link, self.file, self.depth = link, file, 0
        self.gone: Broken | None = None            # the reason why no more calls are sent
        self.side = Side(True, self.ask)

    def load(self, file: Path, module) -> dict[str, Any]:
        """Return the names that the answer's file defines, as swap.load does, or raise its error."""
        try:
            said = receive(self.link)
        except Broken as error:
            self.gone = error
            raise
        if "raise" in said:
            self._raise(said["raise"])
        return {name: self._function(name, about) for name, about in said["made"].items()
                if _is_name(name) and about.get("args") is not None}

    def _function(self, name: str, about: dict) -> Any:
        """Return a proxy function with the answer's parameters and file name."""
        args, only = list(map(str, about["args"])), list(map(str, about["only"]))
        rest = [str(r) for r in (about["rest"], about["more"]) if r]
        if (not all(_is_name(a) for a in (*args, *only, *rest)) or len({*args, *only,
                                                                        *rest}) != len(args + only + rest)):
            raise Broken(f"{name} has invalid parameters")
        later = len(args) - int(about["defaults"])
        shown = [a if i < later else f"{a}=_absent_" for i, a in enumerate(args)]
        if about["rest"]:
            shown.append(f"*{about['rest']}")
        elif only:
            shown.append("*")
        shown += [f"{a}=_absent_" for a in only]
        shown += [f"**{about['more']}"] if about["more"] else []
        given = f"({''.join(a + ', ' for a in args)}{'*' + about['rest'] + ',' if about['rest'] else ''})"
        named = "{" + "".join(f"{a!r}: {a}, " for a in only) + (f"**{about['more']}" if about["more"]
                                                                else "") + "}"
        text = f"def {name}({', '.join(shown)}):\n    return _far_{name}({given}, {named})\n"
        space = {"_absent_": ABSENT, f"_far_{name}": lambda given, named: self.call(name, given, named)}
        exec(compile(text, str(self.file) if about["here"] else "elsewhere", "exec"), space)
        return space[name]

    def call(self, name: str, given: tuple, named: dict) -> Any:
        if not self.depth:
            self.side.__init__(True, self.ask)     # forget the objects of earlier calls
        given = [v for v in given if v is not ABSENT]
        named = {k: v for k, v in named.items() if v is not ABSENT}
        return self.ask({"run": name, "fresh": not self.depth,
                         **self.side.pack([given, named], changed=self.depth > 0)})

    def ask(self, message: dict) -> Any:
        """Send a message, answer the other side's requests, and return the result."""
        self.depth += 1
        if self.gone:
            raise self.gone
        try:
            send(self.link, message)
            while True:
                said = receive(self.link)
                if "return" in said:
                    return self.side.unpack(said["return"])[0]
                if "raise" in said:
                    self._raise(said["raise"])
                send(self.link, self._answered(said))
        except Broken as error:
            self.gone = error
            raise
        finally:
            self.depth -= 1

    def _answered(self, said: dict) -> dict:
        """Run a function or op of the judge that the answer calls."""
        first, second = self.side.unpack(said)
        try:
            if "op" in said:
                op = REGISTRY[str(said["op"])]
                inputs, attrs = tuple(first), tuple(second)
                result = call_below(op, inputs, attrs) if said.get("below") else op.call(inputs, attrs)
            elif "method" in said:
                name, (x, *rest) = said["method"], first
                if name not in FAR_METHODS or not isinstance(x, Tensor):
                    raise Broken(f"invalid call of method {name}")
                result = getattr(x, name)(*rest)
            else:
                f = self.side.objects.get(said.get("call"))
                if not callable(f) or isinstance(f, type):
                    raise Broken("a call of an object that is not a function")
                result = f(*first, **second)
            return {"return": self.side.pack([result])}
        except Broken:
            raise
        except Exception as error:
            return {"raise": describe_exception(error)}

    def _raise(self, said: dict) -> None:
        """Raise the answer's exception, with the answer's line in the traceback."""
        name, text = str(said.get("type")), str(said.get("text"))[:2000]
        cls = getattr(errors, name, None) or getattr(builtins, name, None)
        if not (isinstance(cls, type) and issubclass(cls, BaseException)):
            cls = type(name if _is_name(name) else "Exception", (Exception,), {})
        error = rebuild_exception(cls, said)
        if cls is SyntaxError:
            cls.__init__(error, text, (self.file.name, int(said.get("line") or 0), 0,
                                       str(said.get("source"))[:200]))
        line = int(said.get("line") or 0)
        if not 0 < line < 100_000 or cls is SyntaxError:
            raise error
        exec(compile("\n" * (line - 1) + "raise _error_", str(self.file), "exec"), {"_error_": error})


def describe_exception(error: BaseException, line: int = 0) -> dict:
    """Return an exception as a message."""
    said = {"type": type(error).__name__, "text": str(error)[:2000], "line": line}
    if isinstance(error, errors.FlowError):
        said["parts"] = {k: str(vars(error).get(k, ""))[:2000] for k in PARTS}
    if isinstance(error, SyntaxError):
        said |= {"text": str(error.msg), "line": error.lineno, "source": (error.text or "").strip()}
    return said


def rebuild_exception(cls: type[BaseException], said: dict) -> BaseException:
    """Return an exception from its message, without running the code of its class."""
    text, parts = str(said.get("text"))[:2000], said.get("parts")
    if issubclass(cls, errors.FlowError):
        parts = parts if isinstance(parts, dict) else {"problem": text}
        return errors._rebuilt(cls, (text,), {k: str(parts.get(k, ""))[:2000] for k in PARTS})
    error = cls.__new__(cls)
    error.args = (text,)
    return error


def _is_name(text: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]{0,60}", text)) and not keyword.iskeyword(text)
