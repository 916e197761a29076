"""Docstrings as the site shows them: names in See Also and in single backquotes become links to their pages."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from griffe import Extension, Object

sys.path.insert(0, str(Path(__file__).parent))
from reference import full_name, public_names, source_of

_SEE_ALSO = re.compile(r"^See Also\n-+\n((?:\S.*\n?)+)", re.MULTILINE)
#: Several parameters described together, without a type: each has its own in the signature.
_TOGETHER = re.compile(r"^(\w+(?:, \w+)+)\n((?: {4}.*\n?)+)", re.MULTILINE)
_NAME = re.compile(r"(?<![`\w\[])`((?:phasegrad\.|pg\.)?[A-Za-z_][\w.]*)`(?!`)")


class Links(Extension):
    """Links to the pages of public names."""

    def __init__(self) -> None:
        self.targets = {name: source_of(name, value) for name, value in public_names().items()}
        self.places = {target: name for name, target in self.targets.items()}

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of one object, before it is parsed."""
        if obj.docstring is not None:
            obj.docstring.value = self.linked(obj.docstring.value, obj.path)

    def linked(self, text: str, path: str) -> str:
        """Return a docstring with links; an object does not link to itself."""
        text = _SEE_ALSO.sub(self._see_also, text)
        text = _TOGETHER.sub(lambda found: "".join(f"{name}\n{found[2]}" for name in found[1].split(", ")), text)
        lines = text.split("\n")
        return "\n".join(line if ">>>" in line or "..." in line else self._names(line, path) for line in lines)

    def _see_also(self, found: re.Match[str]) -> str:
        entries = (line.partition(" : ")[::2] for line in found[1].strip().split("\n"))
        items = [f"- [`{name}`][{self.targets[full_name(name) or name]}]: {words}" for name, words in entries]
        return "\n".join(["See Also", "--------", *items, ""])

    def _names(self, line: str, path: str) -> str:
        def link(found: re.Match[str]) -> str:
            name = found[1].removeprefix("phasegrad.").removeprefix("pg.")
            home = self.places.get(path, "").rpartition(".")[0]
            names = (name, f"{home}.{name}", full_name(name))
            target = next((self.targets[each] for each in names if each in self.targets), path)
            return found[0] if path.startswith(target) else f"[`{found[1]}`][{target}]"

        return _NAME.sub(link, line)
