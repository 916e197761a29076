"""The lab: the page that `phasegrad.lab` writes, beside the documentation."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig

import phasegrad as pg

PAGE = "lab/index.html"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give the lab its place in the navigation, before the gallery."""
    if hasattr(pg, "lab"):
        place = next(k for k, entry in enumerate(config.nav or []) if "Gallery" in entry)
        config.nav.insert(place, {"Lab": PAGE})  # type: ignore[union-attr]
    return config


def on_post_build(config: MkDocsConfig) -> None:
    """Write the page into the site."""
    if hasattr(pg, "lab"):
        place = Path(config.site_dir) / PAGE
        place.parent.mkdir(exist_ok=True)
        pg.lab(out=place, open=False)
