"""Tables in pages of documentation: as Markdown, between the markers of a page."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from phasegrad._files import printable, write_bytes
from phasegrad_paper.studies.study import Table


def markdown(table: Table) -> str:
    """Return a table as Markdown."""
    lines = [table.columns, ["---"] * len(table.columns), *table.rows]
    rows = ["| " + " | ".join(str(cell).replace("|", "/") for cell in line) + " |" for line in lines]
    return "\n".join([*rows, "", table.note]).rstrip() + "\n"


def fill_page(path: Path, tables: Iterable[Table]) -> None:
    """Write the tables of a page anew; everything outside its markers stays."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(f"There is no page {printable(path)}. Name one with markers for tables.") from None
    write_bytes(path, filled(text, tables).encode("utf-8"))


def filled(text: str, tables: Iterable[Table]) -> str:
    """Return the text of a page with the tables between its markers written anew.

    A table stands between the lines ``<!-- table NAME -->`` and ``<!-- end of table -->``.
    """
    made = {table.name: markdown(table) for table in tables}

    def written(found: re.Match[str]) -> str:
        if found[1] not in made:
            raise ValueError(f"There is no table {found[1]!r:.60}. Tables are {', '.join(made)}.")
        return f"<!-- table {found[1]} -->\n\n{made[found[1]]}\n<!-- end of table -->"

    return re.sub(r"<!-- table ([\w-]+) -->\n.*?<!-- end of table -->", written, text, flags=re.DOTALL)
