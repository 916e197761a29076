"""The page: what a reproduction found, in one file that opens anywhere, with its tables and figures beside it."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from phasegrad._files import is_unfinished, write_bytes
from phasegrad._validation import counted, require
from phasegrad.pictures import on_dark, picture
from phasegrad_paper.report.cells import folded
from phasegrad_paper.report.document import claims_document
from phasegrad_paper.report.drawings import draw
from phasegrad_paper.report.findings import decisive_figure, findings
from phasegrad_paper.report.verdicts import BADGES, Badge
from phasegrad_paper.reproduction import Reproduction, versions
from phasegrad_paper.studies import Figure, Judgement, Table

PAPER = "The Phase Is the Gradient: Equilibrium Propagation for Frequency Learning in Kuramoto Networks"
_PIXELS_PER_INCH = 120
_TALL = 24
_WIDE = 620


class Picture(NamedTuple):
    """A drawn figure: its SVG, for light and for dark pages, as addresses that hold the content, and its size."""

    light: str
    dark: str
    width: int
    height: int

    @property
    def wide(self) -> bool:
        """Whether it would be too small to read on a phone."""
        return self.width > _WIDE


def write_report(folder: Path, reproduction: Reproduction) -> Path:
    """Write tables, figures, claims and the page into a folder, each file whole, and remove those of an earlier report.

    The folder is made if it is not there; ``tables`` and ``figures`` in it belong to the report. Returns the page,
    ``index.html``, which is complete in itself.
    """
    outcomes = [reproduction.outcomes[study.name] for study in reproduction.studies]
    tables = [table for outcome in outcomes for table in outcome.tables]
    figures = [figure for outcome in outcomes for figure in outcome.figures]
    for kind, names in (("table", [table.name for table in tables]), ("figure", [figure.name for figure in figures])):
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            raise ValueError(f"Every {kind} needs a name of its own. Got {', '.join(twice)} more than once.")
    _write_tables(folder / "tables", tables)
    pictures = {figure.name: picture for figure, picture in _write_figures(folder / "figures", figures)}
    verdicts = {judgement.claim.key: judgement.verdict for judgement in reproduction.judgements}
    write_bytes(folder / "claims.md", claims_document(reproduction.studies, verdicts).encode("utf-8"))
    page = folder / "index.html"
    write_bytes(page, _render(reproduction, pictures).encode("utf-8"))
    return page


def _write_tables(folder: Path, tables: Iterable[Table]) -> None:
    """Write every table as CSV, numbers in full precision, and remove others."""
    folder.mkdir(parents=True, exist_ok=True)
    written = set()
    for table in tables:
        content = io.StringIO()
        writer = csv.writer(content, lineterminator="\n")
        writer.writerow(table.columns)
        writer.writerows(table.rows)
        written.add(folder / f"{table.name}.csv")
        write_bytes(folder / f"{table.name}.csv", content.getvalue().encode("utf-8"))
    _remove_others(folder, written, ("csv",))


def _write_figures(folder: Path, figures: Iterable[Figure]) -> Iterator[tuple[Figure, Picture]]:
    """Draw every figure, write it as SVG and PNG, and remove others."""
    folder.mkdir(parents=True, exist_ok=True)
    written = set()
    for figure in figures:
        drawing = draw(figure.name, figure.data)
        content = {ending: picture(drawing, ending) for ending in ("svg", "png")}
        for ending, file in content.items():
            written.add(folder / f"{figure.name}.{ending}")
            write_bytes(folder / f"{figure.name}.{ending}", file)
        size = (round(_PIXELS_PER_INCH * inches) for inches in drawing.get_size_inches())
        yield figure, Picture(_address(content["svg"]), _address(on_dark(content["svg"])), *size)
    _remove_others(folder, written, ("svg", "png"))


def _address(svg: bytes) -> str:
    """Return an address that holds a picture itself, less what no eye sees, a quarter of its size.

    Comments, metadata, line breaks, names that nothing refers to, and decimals beyond a hundredth of a point.
    """
    lean = re.sub(rb"<!--.*?-->|<metadata>.*?</metadata>", b"", svg, flags=re.DOTALL)
    lean = re.sub(rb">\s+<", b"><", re.sub(rb"\s+", b" ", lean))
    places = re.compile(rb'(?<= d=)"[^"]*"|(?<= [xy]=)"[^"]*"|translate\([^)]*\)')
    lean = places.sub(lambda place: re.sub(rb"(\.\d\d)\d+", rb"\1", place.group()), lean)
    used = set(re.findall(rb'(?:href="#|url\(#)([^")]+)', lean))
    lean = re.sub(rb' id="([^"]*)"', lambda name: name.group() if name.group(1) in used else b"", lean)
    lean = lean.replace(b"xlink:href=", b"href=")
    return f"data:image/svg+xml;base64,{base64.b64encode(lean).decode('ascii')}"


def _render(reproduction: Reproduction, pictures: dict[str, Picture]) -> str:
    """Return the page as HTML that asks for nothing from outside."""
    require(("jinja2",), "report", "The page")
    import jinja2
    import markupsafe

    script = resources.files("phasegrad_paper.report").joinpath("templates", "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    shown = decisive_figure(reproduction)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("phasegrad_paper.report"), autoescape=True, undefined=jinja2.StrictUndefined,
        finalize=_keep_percentages, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    return environment.get_template("page.html.j2").render(
        paper=PAPER, reproduction=reproduction, pictures=pictures, badges=BADGES, folded=folded, tall=_TALL,
        summary=summary(reproduction), findings=findings(reproduction), decisive=shown, versions=versions(),
        script=markupsafe.Markup(script), digest=digest, verdicts_of=verdicts_of,
        sections=[(study, reproduction.outcomes[study.name]) for study in reproduction.studies],
    )  # fmt: skip


def summary(reproduction: Reproduction) -> str:
    """Return what came out in two sentences."""
    claims, studies = len(reproduction.judgements), len(reproduction.studies)
    verdicts = "; ".join(
        f"{count} {BADGES[verdict].one if count == 1 else BADGES[verdict].several}"
        for verdict, count in reproduction.counts.items()
        if count
    )
    return (
        f"{reproduction.tested} of {counted(claims, 'claim')} of the paper {'was' if claims == 1 else 'were'} tested "
        f"in {studies} {'study' if studies == 1 else 'studies'}, each beside the published figure and the control that "
        f"decides it. Of all, {verdicts or 'none has a verdict'}."
    )


def verdicts_of(judgements: Iterable[Judgement]) -> list[tuple[Badge, int]]:
    """Return how many claims have which verdict, those that there are."""
    found = Counter(judgement.verdict for judgement in judgements)
    return [(badge, found[verdict]) for verdict, badge in BADGES.items() if found[verdict]]


def _keep_percentages(words: Any) -> Any:
    """Return text in which no line can break between a number and its per cent sign, or within 1 - a."""
    if not isinstance(words, str):
        return words
    return words.replace(" %", "\N{NO-BREAK SPACE}%").replace("1 - ", "1\N{NO-BREAK SPACE}-\N{NO-BREAK SPACE}")


def _remove_others(folder: Path, written: set[Path], endings: tuple[str, ...]) -> None:
    """Remove what an earlier report left in the folder, and what a killed one left half done."""
    for path in folder.iterdir():
        if (path.suffix.lstrip(".") in endings and path not in written) or is_unfinished(path):
            path.unlink()
