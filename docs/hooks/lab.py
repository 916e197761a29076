"""The lab: the page that `phasegrad.lab` writes, as part of the site."""

from __future__ import annotations

import tempfile
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import phasegrad as pg

PAGE = "lab/index.html"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page."""
    with tempfile.TemporaryDirectory() as folder:
        content = pg.lab(out=Path(folder) / "index.html", open=False).read_bytes()
    files.append(File.generated(config, PAGE, content=content))
    return files
