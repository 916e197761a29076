"""The pages of the documentation run, and print what they show."""

from pathlib import Path

import pytest
from test_readme import run_examples

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("page", ["power-grid.md", "scaling.md"])
def test_every_example_of_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_examples((DOCS / page).read_text(encoding="utf-8"), page)
