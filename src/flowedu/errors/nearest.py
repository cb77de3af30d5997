"""Suggestions for names that do not exist."""
from __future__ import annotations

from collections.abc import Callable, Iterable

from flowedu.errors import MissingAttributeError, format_location, user_place
from flowedu.errors.elsewhere import elsewhere

FEW = 24                                             # names that a message lists

# Names of NumPy, TensorFlow and other libraries, and their names in flowedu.
ALIASES = {"axis": ("dim",), "axes": ("dim", "dims", "axis", "perm"), "dims": ("dim",),
           "dim": ("axis", "dims"),
           "keepdims": ("keepdim",), "keepdim": ("keepdims",), "x": ("input",), "y": ("other", "target"),
           "a": ("input",),
           "lr": ("learning_rate",), "learning_rate": ("lr",), "in_channel": ("in_channels",), "p": ("rate",),
           "filters": ("out_channels",), "units": ("out_features",), "use_bias": ("bias",),
           "strides": ("stride",),
           "activation": ("nonlinearity",), "weights": ("weight",), "label": ("target",),
           "labels": ("target",),
           "bs": ("batch_size",), "workers": ("num_workers",), "decay": ("weight_decay",), "rate": ("p",)}


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name in `names` that `name` probably means, or None.

    Similar letters do not imply a similar meaning: dsplit is not a typo of split, nor RAdam of Adam. A
    candidate is therefore a name of another library (ALIASES), the same name except for case and underscores,
    or a name with one typo (two in a long name) after its first letter.
    """
    names = list(names)
    for other in ALIASES.get(name, ()):
        if other in names:
            return other
    plain = {n.lower().replace("_", ""): n for n in reversed(names)}
    if name.lower().replace("_", "") in plain:
        return plain[name.lower().replace("_", "")]
    # a wrong letter is rarer
    close = [(slips(name, n), len(n) == len(name) and sorted(n) != sorted(name), n)
             for n in names if abs(len(n) - len(name)) < 3 and _alike(name, n)]
    return min([c for c in close if c[0] <= (2 if len(name) > 9 else 1)], default=(None,))[-1]


def _alike(name: str, other: str) -> bool:
    """Return True if `name` may be a typo of `other`.

    In a short name only exchanged, doubled, or missing letters count. A digit is never a typo: vgg13 is not
    vgg11.
    """
    if [c for c in name if c.isdigit()] != [c for c in other if c.isdigit()]:
        return False
    if name[:1] != other[:1] and name[:2] != other[1::-1]:
        return False
    if len(name) == len(other):
        return len(name) > 4 or sorted(name) == sorted(other)
    return len(other) > 3 or any(other[:i] + c + other[i:] == name for i, c in enumerate(other))


def slips(a: str, b: str) -> int:
    """Return the number of typos between a and b: removed, inserted, replaced, or exchanged letters.
    """
    before: list[int] = []
    last = list(range(len(b) + 1))
    for i, c in enumerate(a):
        row = [i + 1]
        for j, d in enumerate(b):
            row.append(min(last[j] + (c != d), last[j + 1] + 1, row[j] + 1))
            if i and j and (c, a[i - 1]) == (b[j - 1], d):
                row[-1] = min(row[-1], before[j - 1] + 1)
        before, last = last, row
    return last[-1]


def similar(name: str, names: Iterable[str]) -> str | None:
    """Return the most similar of names that users chose, such as those of variables."""
    import difflib
    close = difflib.get_close_matches(name, list(names), 1)
    return close[0] if close else None


def _ours(prefix: str) -> str:
    """Return `flow.linalg.` for a program's prefix `torch.linalg.`, and `flow.vision.` for `torchvision.`."""
    home, _, rest = prefix.partition(".")
    if home in ("torchvision", "flowvision"):
        return f"flow.vision.{rest}"
    return prefix if home in ("x", "") else f"flow.{rest}"


class UnknownNameError(MissingAttributeError):
    """A name that a module or an object does not have.

    The text is created when it is read, so that `hasattr` is fast.
    """

    def __init__(self, owner: str, name: str, names: Callable[[], Iterable[str]], prefix: str = ""):
        """Set owner, a description of the object; prefix: the text before the name in a program: "flow."."""
        Exception.__init__(self)
        self.missing, self._owner, self._names = name, owner, names
        self._prefix, self._place = prefix, user_place()

    def __getattr__(self, attribute: str):
        if attribute not in ("problem", "expected", "got", "fix", "at"):
            raise AttributeError(attribute)
        name, prefix, names = self.missing, self._prefix, [n for n in self._names() if not n.startswith("_")]
        there = elsewhere(_ours(prefix), name)
        close = None if there else nearest(name, names)
        self.problem = f"{self._owner} has no attribute {name!r}"
        self.expected = f"one of {', '.join(names)}" if 0 < len(names) <= FEW else ""
        if close:
            self.expected = f"perhaps {close!r}"
        self.got, self.at = repr(name), format_location(self._place)
        self.fix = (there or (f"{prefix}{close}" if close else f"dir({prefix.rstrip('.') or 'x'}) lists the "
                              f"names there are"))
        return vars(self)[attribute]

    def __str__(self) -> str:
        return self._text()

    def __reduce__(self):
        from flowedu.errors import _rebuilt
        return _rebuilt, (MissingAttributeError, (str(self),), {k: getattr(self, k) for k in (
            "problem", "expected", "got", "fix", "at")})
