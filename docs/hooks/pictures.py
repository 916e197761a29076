"""Pictures: those of the gallery are drawn when the site is built, and each SVG has a second one for the dark.

Pages name a picture once, `![words](picture.svg)`; on the site both stand there, and the theme shows the one that fits.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from pathlib import Path

import matplotlib as mpl
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from phasegrad import pictures as drawing  # a name that begins with on_ would be taken for an event

GALLERY = "gallery.md"
_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
_PICTURE = re.compile(r"!\[([^\]]*)\]\(([\w/.-]+)\.svg\)")


def drawn(text: str, folder: Path) -> dict[str, bytes]:
    """Run the Python blocks of a page in a folder and return the pictures that they wrote, by name."""
    names: dict[str, object] = {}
    with contextlib.chdir(folder), mpl.rc_context({"backend": "agg"}):
        for block in _BLOCK.findall(text):
            exec(compile(block, GALLERY, "exec"), names)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def twice(markdown: str) -> str:
    """Return the text of a page with every picture in both versions."""
    both = r"![\1](\2.svg#only-light)![\1](\2-dark.svg#only-dark)"
    return _PICTURE.sub(both, markdown)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pictures of the gallery, and a dark version of every SVG that pages show."""
    text = (Path(config.docs_dir) / GALLERY).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        pictures = drawn(text, Path(folder))
    for name, content in pictures.items():
        files.append(File.generated(config, name, content=content))
    stored = {file.src_uri: file.content_bytes for file in files if file.src_uri.startswith("images/")}
    for name, content in {**pictures, **stored}.items():
        if name.endswith(".svg"):
            dark = name.removesuffix(".svg") + "-dark.svg"
            files.append(File.generated(config, dark, content=drawing.on_dark(content)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Show every picture in the version that fits."""
    return twice(markdown)
