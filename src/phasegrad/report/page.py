"""The page: what a reproduction found, in one file that opens anywhere, with its tables and figures beside it."""

from __future__ import annotations

import base64
import csv
import io
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from phasegrad.files import is_unfinished
from phasegrad.report.cells import Column, columns
from phasegrad.report.drawings import draw, picture
from phasegrad.report.figures import save
from phasegrad.reproduction.result import Reproduction, versions
from phasegrad.studies.study import Figure, Outcome, Study, Table, Verdict

PAPER = "The Phase Is the Gradient: Equilibrium Propagation for Frequency Learning in Kuramoto Networks"
_PIXELS_PER_INCH = 120
_TALL = 24


@dataclass(frozen=True)
class Badge:
    """A verdict as the page shows it.

    Parameters
    ----------
    kind : str
        The class that colours it.
    mark : str
        A sign beside the words, for the eye.
    short : str
        The verdict in two or three words.
    long : str
        The whole verdict.
    """

    kind: str
    mark: str
    short: str
    long: str


BADGES = {
    Verdict.REPRODUCED: Badge("reproduced", "✓", "reproduced", Verdict.REPRODUCED.value),
    Verdict.HISTORICAL: Badge("historical", "↺", "historical variant only", Verdict.HISTORICAL.value),
    Verdict.CONTROLLED: Badge("controlled", "≠", "a control changes it", Verdict.CONTROLLED.value),
    Verdict.NOT_REPRODUCED: Badge("missed", "✕", "not reproduced", Verdict.NOT_REPRODUCED.value),
    Verdict.UNTESTABLE: Badge("untestable", "–", "not testable here", Verdict.UNTESTABLE.value),
}


# How a sentence goes on after a number of claims: one of them, or several.
_PHRASES = {
    Verdict.REPRODUCED: ("is reproduced", "are reproduced"),
    Verdict.HISTORICAL: ("holds only under a historical variant", "hold only under a historical variant"),
    Verdict.CONTROLLED: ("holds, but a control changes its meaning", "hold, but a control changes their meaning"),
    Verdict.NOT_REPRODUCED: ("is not reproduced", "are not reproduced"),
    Verdict.UNTESTABLE: ("cannot be tested here", "cannot be tested here"),
}


@dataclass(frozen=True)
class Picture:
    """A drawn figure: its words, its SVG as an address that holds the content itself, and its size on screen."""

    figure: Figure
    source: str
    width: int
    height: int


@dataclass(frozen=True)
class Sheet:
    """A table with its columns laid out; ``tall`` ones scroll in their own box."""

    table: Table
    columns: list[Column]
    tall: bool


@dataclass(frozen=True)
class Section:
    """All the page says about one study."""

    study: Study
    outcome: Outcome
    sheets: list[Sheet]
    pictures: list[Picture]


def write_report(folder: Path, reproduction: Reproduction) -> Path:
    """Write tables, figures and the page into a folder, each file whole, and remove those of an earlier report.

    Parameters
    ----------
    folder : Path
        Made if it is not there. ``tables`` and ``figures`` in it belong to the report.
    reproduction : Reproduction

    Returns
    -------
    Path
        ``index.html``, complete in itself.
    """
    outcomes = [reproduction.outcomes[study.name] for study in reproduction.studies]
    tables = [table for outcome in outcomes for table in outcome.tables]
    figures = [figure for outcome in outcomes for figure in outcome.figures]
    _check_names("table", [table.name for table in tables])
    _check_names("figure", [figure.name for figure in figures])
    write_tables(folder / "tables", tables)
    pictures = {picture.figure.name: picture for picture in write_figures(folder / "figures", figures)}
    sections = [
        Section(
            study,
            outcome,
            [Sheet(table, columns(table), len(table.rows) > _TALL) for table in outcome.tables],
            [pictures[figure.name] for figure in outcome.figures],
        )
        for study, outcome in zip(reproduction.studies, outcomes, strict=True)
    ]
    page = folder / "index.html"
    save(page, render_page(reproduction, sections).encode("utf-8"))
    return page


def write_tables(folder: Path, tables: Iterable[Table]) -> None:
    """Write every table as CSV, numbers in full precision, and remove others."""
    folder.mkdir(parents=True, exist_ok=True)
    written = set()
    for table in tables:
        content = io.StringIO()
        writer = csv.writer(content, lineterminator="\n")
        writer.writerow(table.columns)
        writer.writerows(table.rows)
        written.add(folder / f"{table.name}.csv")
        save(folder / f"{table.name}.csv", content.getvalue().encode("utf-8"))
    _remove_others(folder, written, ("csv",))


def write_figures(folder: Path, figures: Iterable[Figure]) -> list[Picture]:
    """Draw every figure, write it as SVG and PNG, and remove others."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures, written = [], set()
    for figure in figures:
        drawing = draw(figure.name, figure.data)
        content = {ending: picture(drawing, ending) for ending in ("svg", "png")}
        for ending, file in content.items():
            written.add(folder / f"{figure.name}.{ending}")
            save(folder / f"{figure.name}.{ending}", file)
        source = f"data:image/svg+xml;base64,{base64.b64encode(content['svg']).decode('ascii')}"
        width, height = (round(_PIXELS_PER_INCH * inches) for inches in drawing.get_size_inches())
        pictures.append(Picture(figure, source, width, height))
    _remove_others(folder, written, ("svg", "png"))
    return pictures


def render_page(reproduction: Reproduction, sections: list[Section]) -> str:
    """Return the page as HTML that asks for nothing from outside."""
    jinja2 = _import_jinja2()
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("phasegrad.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_keep_percentages,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.j2").render(
        paper=PAPER,
        reproduction=reproduction,
        sections=sections,
        badges=BADGES,
        tally=[(badge, reproduction.counts[verdict]) for verdict, badge in BADGES.items()],
        claims=len(reproduction.judgements),
        summary=summary(reproduction),
        versions=versions(),
    )


def summary(reproduction: Reproduction) -> str:
    """Return what came out in two sentences."""
    claims, studies = len(reproduction.judgements), len(reproduction.studies)
    verdicts = "; ".join(
        f"{count} {_PHRASES[verdict][count != 1]}" for verdict, count in reproduction.counts.items() if count
    )
    return (
        f"{claims} {'claim of the paper was' if claims == 1 else 'claims of the paper were'} tested in {studies} "
        f"{'study' if studies == 1 else 'studies'}, each beside the published figure and the control that decides it. "
        f"Of these, {verdicts or 'none has a verdict'}."
    )


def _keep_percentages(words: Any) -> Any:
    """Return text in which no line can break between a number and its per cent sign."""
    return words.replace(" %", "\N{NO-BREAK SPACE}%") if isinstance(words, str) else words


def _check_names(kind: str, names: list[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"Every {kind} needs a name of its own. Got {', '.join(twice)} more than once.")


def _remove_others(folder: Path, written: set[Path], endings: tuple[str, ...]) -> None:
    """Remove what an earlier report left in the folder, and what a killed one left half done."""
    for path in folder.iterdir():
        if (path.suffix.lstrip(".") in endings and path not in written) or is_unfinished(path):
            path.unlink()


def _import_jinja2() -> Any:
    try:
        import jinja2
    except ImportError:
        raise ImportError(
            "The page needs jinja2, which is not installed. Install it with 'pip install phasegrad[report]'."
        ) from None
    return jinja2
