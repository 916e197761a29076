"""The gallery: its code is run when the site is built, and the pictures that it writes are those that it shows."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from pathlib import Path

import matplotlib as mpl
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

PAGE = "gallery.md"


def drawn(text: str, folder: Path) -> list[str]:
    """Run the Python blocks of a page in a folder and return the names of the pictures that they wrote."""
    names: dict[str, object] = {}
    with contextlib.chdir(folder):
        for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
            exec(compile(block, PAGE, "exec"), names)
    return sorted(os.listdir(folder))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pictures."""
    text = (Path(config.docs_dir) / PAGE).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, mpl.rc_context({"backend": "agg"}):
        for name in drawn(text, Path(folder)):
            files.append(File.generated(config, name, content=(Path(folder) / name).read_bytes()))
    return files
